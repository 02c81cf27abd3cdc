// The simulated API server's store: objects by kind and key, with uids and resource versions that
// count up. Listeners are called for every change at once (the watches of watch.h add the delay).
//
// Ownership: owns the objects. Thread-safety: none, one thread. Determinism: uids and versions are
// counters; iteration is by key. Complexity: O(log n) per access, plus a copy of the object per
// change.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "scheduler/model/cluster_event.h"
#include "scheduler/model/kind.h"
#include "sim/event_queue.h"

namespace fairlead::sim {

using model::KindOf;
using model::MetaOf;
using model::Object;

enum class ChangeType : uint8_t { kAdded, kModified, kDeleted };

class ApiServer {
 public:
  // Borrows the clock.
  explicit ApiServer(const EventQueue* queue) : queue_(queue) {}

  // Called at the end of every change, in the order of registration. A listener must not change
  // objects itself; it posts to the event queue.
  using Listener = std::function<void(ChangeType, const Object&)>;
  void Listen(Listener listener) { listeners_.push_back(std::move(listener)); }

  // Sets uid, version and creation time. AlreadyExists if the key is taken.
  template <typename T>
  absl::Status Create(T object) {
    const std::string key = model::Key(object.meta);
    auto& table = Table<T>();
    if (table.contains(key)) return absl::AlreadyExistsError(absl::StrCat(key, " already exists"));
    Stamp(object.meta, /*created=*/true);
    if constexpr (std::is_same_v<T, model::Pod>) Admit(object);
    const T& stored = table.emplace(key, std::move(object)).first->second;
    Tell(ChangeType::kAdded, stored);
    return absl::OkStatus();
  }
  absl::Status CreateAny(Object object) {
    return std::visit([this](auto& typed) { return Create(std::move(typed)); }, object);
  }

  // Takes over an object of another server as it is, with its uid, version and times. Later
  // versions are higher than its own. AlreadyExists if the key is taken.
  template <typename T>
  absl::Status Adopt(T object) {
    const std::string key = model::Key(object.meta);
    uint64_t version = 0;
    if (absl::SimpleAtoi(object.meta.resource_version, &version)) {
      version_ = std::max(version_, version);
    }
    const auto [it, added] = Table<T>().emplace(key, std::move(object));
    if (!added) return absl::AlreadyExistsError(absl::StrCat(key, " already exists"));
    Tell(ChangeType::kAdded, it->second);
    return absl::OkStatus();
  }

  // `change` modifies the object; false if there is none.
  template <typename T, typename Fn>
  bool Modify(const std::string& key, Fn change) {
    auto& table = Table<T>();
    auto it = table.find(key);
    if (it == table.end()) return false;
    change(it->second);
    Stamp(it->second.meta, /*created=*/false);
    Tell(ChangeType::kModified, it->second);
    return true;
  }

  // Removes the object at once; false if there is none.
  template <typename T>
  bool Remove(const std::string& key) {
    auto& table = Table<T>();
    auto it = table.find(key);
    if (it == table.end()) return false;
    T last = std::move(it->second);
    table.erase(it);
    Stamp(last.meta, /*created=*/false);
    Tell(ChangeType::kDeleted, std::move(last));
    return true;
  }

  bool Remove(model::Kind kind, const std::string& key);

  // Null if there is none. Valid until the object changes.
  template <typename T>
  [[nodiscard]] const T* Find(const std::string& key) const {
    const auto& table = std::get<std::map<std::string, T>>(tables_);
    auto it = table.find(key);
    return it == table.end() ? nullptr : &it->second;
  }
  template <typename T>
  [[nodiscard]] const std::map<std::string, T>& All() const {
    return std::get<std::map<std::string, T>>(tables_);
  }
  // Every object of the kind, by key.
  void ForEach(model::Kind kind, const std::function<void(const Object&)>& fn) const;

  [[nodiscard]] absl::Time now() const { return queue_->now(); }
  // The resourceVersion of the last change of anything: that of a list that begins now.
  [[nodiscard]] std::string version() const;
  // An unused uid.
  std::string NewUid();

 private:
  template <typename T>
  std::map<std::string, T>& Table() {
    return std::get<std::map<std::string, T>>(tables_);
  }
  // The admission of pods: spec.priority from its PriorityClass, or from the global default.
  void Admit(model::Pod& pod) const;
  void Stamp(model::ObjectMeta& meta, bool created);
  void Tell(ChangeType type, Object object);

  const EventQueue* queue_;
  uint64_t version_ = 0, uids_ = 0;
  std::tuple<
      std::map<std::string, model::Pod>, std::map<std::string, model::Node>,
      std::map<std::string, model::Queue>, std::map<std::string, model::PodGroup>,
      std::map<std::string, model::PriorityClass>, std::map<std::string, model::Topology>,
      std::map<std::string, model::NodeRequest>, std::map<std::string, model::NodePool>,
      std::map<std::string, model::PodDisruptionBudget>, std::map<std::string, model::DeviceClass>,
      std::map<std::string, model::ResourceSlice>, std::map<std::string, model::ResourceClaim>,
      std::map<std::string, model::NodeResourceTopology>, std::map<std::string, model::Namespace>,
      std::map<std::string, model::PersistentVolumeClaim>,
      std::map<std::string, model::PersistentVolume>, std::map<std::string, model::StorageClass>,
      std::map<std::string, model::CsiNode>, std::map<std::string, model::CsiDriver>,
      std::map<std::string, model::CsiStorageCapacity>,
      std::map<std::string, model::VolumeAttachment>, std::map<std::string, model::Service>,
      std::map<std::string, model::ReplicationController>, std::map<std::string, model::ReplicaSet>,
      std::map<std::string, model::StatefulSet>, std::map<std::string, model::NativePodGroup>,
      std::map<std::string, model::PodTemplate>, std::map<std::string, model::CapacityBuffer>,
      std::map<std::string, model::ProvisioningRequest>,
      std::map<std::string, model::DeviceTaintRule>>
      tables_;
  std::vector<Listener> listeners_;
};

// A pod that no longer uses its node.
inline bool IsTerminal(const model::Pod& pod) {
  return pod.phase == model::PodPhase::kSucceeded || pod.phase == model::PodPhase::kFailed;
}

}  // namespace fairlead::sim
