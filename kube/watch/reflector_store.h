// What one reflector has told the core so far, as (key -> uid, resourceVersion), and how a new
// picture of the server turns into the fewest true events:
//  - a watch event gives an Upsert or a Delete, or nothing if it is older than what is known;
//  - a snapshot (a list, or the initial events of a watch) is staged aside and then compared as a
//    whole: Deletes for what vanished, Upserts for what is new or changed, nothing for the rest;
//  - an object of a known name with another uid is another object: Delete and Upsert.
// The objects themselves live in the core; here is only what the comparison needs.
//
// Thread-safety: none, the reflector's lock guards it.
// Complexity: O(1) a watch event; O(n log d) a snapshot of n objects, d of them vanished.
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
  explicit ReflectorStore(model::Kind kind) : kind_(kind) {}

  // An event of the watch proper: kAdded, kModified, kDeleted or kBookmark; a kError is ignored.
  void Apply(WatchEvent event, std::vector<model::ClusterEvent>& out);

  // A snapshot: Begin, any number of Stage and Unstage, and one Commit; or Begin again, or Discard.
  void BeginSnapshot();
  void Stage(Object object);
  void Unstage(const model::ObjectMeta& meta);
  // False, and nothing changes, if the snapshot is older than what is known and `allow_older` is
  // not set. Either way the snapshot is over.
  bool Commit(absl::string_view resource_version, bool allow_older,
              std::vector<model::ClusterEvent>& out);
  void Discard();

  // Every known object is gone (the kind was removed from the server).
  void DeleteAll(std::vector<model::ClusterEvent>& out);

  // The newest version seen: where a watch resumes. Empty before the first snapshot.
  [[nodiscard]] const std::string& resource_version() const { return version_; }
  [[nodiscard]] size_t size() const { return known_.size(); }

 private:
  struct Known {
    std::string ns, name, uid, version;
    uint64_t seen_in = 0;  // number of the last snapshot that held it
  };

  void Upsert(Object object, std::vector<model::ClusterEvent>& out);
  void AdvanceTo(absl::string_view version);
  void DeleteUnseen(std::vector<model::ClusterEvent>& out);
  [[nodiscard]] model::Delete DeleteOf(const Known& known) const;

  model::Kind kind_;
  std::string version_;
  absl::flat_hash_map<std::string, Known> known_;

  uint64_t snapshot_ = 0;
  // New and changed objects of the snapshot, in the order of arrival; nullopt: unstaged again.
  std::vector<std::optional<Object>> staged_;
  absl::flat_hash_map<std::string, size_t> staged_index_;
};

}  // namespace fairlead::kube
