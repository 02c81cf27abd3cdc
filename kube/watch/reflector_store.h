// What one reflector has told the core so far, as (key -> uid, resourceVersion), and how new data
// from the server turn into the fewest true events:
// - A watch event gives an Upsert or a Delete, or nothing if it is older than the known object.
// - A snapshot (a list, or the initial events of a watch) is staged and then compared as a whole:
//   Deletes for vanished objects, Upserts for new or changed ones, nothing for the rest.
// - An object with a known name and another uid is another object: Delete and Upsert.
// - An object that `keeps` refuses counts as absent.
// The core keeps the objects themselves; this class keeps only what the comparison needs, about 250
// bytes per object.
//
// Thread-safety: none, the reflector's lock guards it. Complexity: O(1) per watch event; O(n log d)
// per snapshot of n objects, d of them vanished.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "kube/codec/codec.h"
#include "scheduler/model/cluster_event.h"

namespace fairlead::kube {

class ReflectorStore {
 public:
  using Keeps = bool (*)(const Object&);
  explicit ReflectorStore(model::Kind kind, Keeps keeps = nullptr) : kind_(kind), keeps_(keeps) {}

  // An event of the watch proper: kAdded, kModified, kDeleted or kBookmark; a kError is ignored.
  void Apply(WatchEvent event, std::vector<model::ClusterEvent>& out);

  // A snapshot: Begin, any number of Stage and Unstage, and one Commit; or Begin again, or Discard.
  void BeginSnapshot();
  void Stage(Object object);
  void Unstage(const model::ObjectMeta& meta);
  // Returns false and changes nothing if the snapshot is older than the known state and
  // `allow_older` is not set. Ends the snapshot in either case.
  bool Commit(absl::string_view resource_version, bool allow_older,
              std::vector<model::ClusterEvent>& out);
  void Discard();

  // Every known object is gone (the kind was removed from the server).
  void DeleteAll(std::vector<model::ClusterEvent>& out);

  // The newest version seen, from which a watch resumes. Empty before the first snapshot.
  [[nodiscard]] const std::string& resource_version() const { return version_; }
  [[nodiscard]] size_t size() const { return known_.size(); }

 private:
  struct Known {
    std::string uid, version;
    uint64_t seen_in = 0;  // number of the last snapshot that has the object
  };

  void Upsert(Object object, std::vector<model::ClusterEvent>& out);
  void AdvanceTo(absl::string_view version);
  void DeleteUnseen(std::vector<model::ClusterEvent>& out);
  [[nodiscard]] model::Delete DeleteOf(absl::string_view key, const Known& known) const;
  [[nodiscard]] bool Counts(const Object& object) const {
    return keeps_ == nullptr || keeps_(object);
  }

  const model::Kind kind_;
  const Keeps keeps_;
  std::string version_;
  absl::flat_hash_map<std::string, Known> known_;  // by model::Key

  uint64_t snapshot_ = 0;
  // New and changed objects of the snapshot, in the order of arrival; nullopt: removed by Unstage.
  std::vector<std::optional<Object>> staged_;
  absl::flat_hash_map<std::string, size_t> staged_index_;
};

}  // namespace fairlead::kube
