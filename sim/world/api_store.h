// All objects by type and key, the version counter, and the changes of late: what etcd and the
// watch cache are to a real API server. It knows nothing of rules; see api_writes.h.
//
// History: every change is kept until Forget, or until a type has kMaxHistory younger ones. A watch
// may begin at OldestStart or later.
//
// Ownership: owns the objects. Thread-safety: none, one thread. Complexity: O(log n) an access.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "sim/world/api_object.h"

namespace fairlead::sim::world {

struct Change {
  ResourceType type;
  uint64_t version = 0;
  ObjectPtr before;  // null: created
  ObjectPtr after;   // null: gone
  // Of a change after which the object is not seen any more (gone, or out of a selector): `before`
  // with the change's version.
  [[nodiscard]] const ObjectPtr& Gone() const;

 private:
  mutable ObjectPtr gone_;
};

class ApiStore {
 public:
  static constexpr size_t kMaxHistory = 4096;
  using Objects = std::map<std::string, ObjectPtr, std::less<>>;

  ApiStore();

  // Null if there is none.
  [[nodiscard]] ObjectPtr Find(ResourceType type, absl::string_view key) const;
  [[nodiscard]] const Objects& All(ResourceType type) const { return TableOf(type).objects; }

  // Creates or replaces; sets metadata.resourceVersion.
  ObjectPtr Put(ResourceType type, Json object, absl::string_view actor);
  // Nothing if there is none.
  void Erase(ResourceType type, absl::string_view key, absl::string_view actor);
  // Makes no version and tells no listener: for events that have expired.
  void Drop(ResourceType type, absl::string_view key);

  // Called within every change, after it, in the order of registration.
  using Listener = std::function<void(const Change& change, absl::string_view actor)>;
  void Listen(Listener listener) { listeners_.push_back(std::move(listener)); }

  // Whether new objects of the type get an empty status (ApiServer::DefaultStatus).
  void DefaultStatus(ResourceType type, bool has_default) {
    TableOf(type).defaults_status = has_default;
  }
  [[nodiscard]] bool defaults_status(ResourceType type) const {
    return TableOf(type).defaults_status;
  }

  void Forget();
  [[nodiscard]] const std::deque<Change>& History(ResourceType type) const {
    return TableOf(type).history;
  }
  [[nodiscard]] uint64_t OldestStart(ResourceType type) const { return TableOf(type).oldest_start; }
  [[nodiscard]] uint64_t version() const { return version_; }
  // How often Forget was called.
  [[nodiscard]] uint64_t compactions() const { return compactions_; }

 private:
  struct Table {
    Objects objects;
    std::deque<Change> history;
    uint64_t oldest_start = 0;
    bool defaults_status = false;
  };
  Table& TableOf(ResourceType type) { return tables_[static_cast<size_t>(type)]; }
  [[nodiscard]] const Table& TableOf(ResourceType type) const {
    return tables_[static_cast<size_t>(type)];
  }
  void Record(Change change, absl::string_view actor);

  std::array<Table, kResourceTypes> tables_;
  std::vector<Listener> listeners_;
  uint64_t version_ = 1, compactions_ = 0;
};

}  // namespace fairlead::sim::world
