// The PodGroup objects of pods that are grouped by their owners: which are to be made, and what of
// those that are there follows the owners.
//
// A group that we make is annotated fairlead.dev/follows-owner: "true". Of a group with that
// annotation its minimums, its sub-groups, its priority class, its preemptibility and its delays
// are changed when they differ from what the owners say; what they no longer say stays. Its queue,
// its labels, its topology and those of its sub-groups, markUnschedulable and schedulingBackoff are
// its users' once it is there. A group without the annotation, which a user or another program has
// made, is never written. Pods join it as it is.
//
// A group is made only while a pod waits to be put into it, or in it after it was deleted. After a
// deletion nothing is desired until Desire(): the owner may be gone, and the group with it.
//
// Ownership: borrows the state. Thread-safety: the owner's thread. Determinism: in the order of the
// keys, "namespace/name". Complexity: O(log groups) per call, O(pods of the group) where it is made
// or deleted; Step O(what is to be written).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/write_attempts.h"
#include "scheduler/model/action.h"
#include "scheduler/model/workload_objects.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

// What a verdict says of an answer to a write; OK: nothing. A write that came too late, or met
// another version, is repeated soon, and its reason is over by then.
inline absl::Status ToldProblem(const absl::Status& status) {
  const bool passes =
      absl::IsAborted(status) || absl::IsCancelled(status) || absl::IsFailedPrecondition(status);
  return passes ? absl::OkStatus() : status;
}

class OwnedGroups {
 public:
  OwnedGroups(const state::ClusterState& state, Backoff backoff)
      : state_(state), rules_{.backoff = backoff, .unseen = backoff} {}

  // The watch shows the object.
  void Seen(const model::PodGroup& group);
  // An empty uid: whichever is there. True if it is gone.
  bool Gone(const std::string& key, const std::string& uid);

  // What the owners say. The group is to be there while Await() has pods for it.
  void Desire(const std::string& key, model::PodGroup group);
  // Null: nothing.
  [[nodiscard]] const model::PodGroup* DesiredOf(const std::string& key) const;
  // The owner of that uid has one pod by now, which would need no group: the minimum is 1. False if
  // the group is of another owner, has sub-groups, or is not there.
  bool DesireOne(const std::string& key, const std::string& owner_uid);
  // The pod waits to be put into the group, or no longer.
  void Await(const std::string& key, const std::string& pod);
  void Release(const std::string& key, const std::string& pod);
  [[nodiscard]] const std::set<std::string>& Awaiting(const std::string& key) const;

  // Whether a pod can be put into it.
  enum class Readiness : uint8_t {
    kReady,
    kInProgress,    // it is to be made or changed, or is being deleted
    kNoSubGroup,    // it does not follow its owner, and lacks the sub-group
    kWriteRefused,  // ProblemOf says why
  };
  [[nodiscard]] Readiness ReadinessOf(const std::string& key, absl::string_view sub_group) const;
  [[nodiscard]] absl::Status ProblemOf(const std::string& key) const;
  // False: it is there, and is never written.
  [[nodiscard]] bool MayFollow(const std::string& key) const;

  // Nothing is known of the group any more: it is not there, and no pod waits for it.
  [[nodiscard]] bool IsIdle(const std::string& key) const;
  void Forget(const std::string& key) { rows_.erase(key); }

  // The answer to an action of Step. True if ProblemOf() says something else now.
  bool Written(const std::string& key, const absl::Status& status, absl::Time now);
  // Appends what is due. Returns when the next repetition is.
  absl::Time Step(absl::Time now, std::vector<model::Action>& actions);

 private:
  struct Object {
    std::string uid, resource_version, owner_uid;
    bool follows = false;
    bool terminating = false;
    model::PodGroupSpec spec;
  };
  struct Row {
    std::optional<model::PodGroup> desired;
    bool was_ours = false;  // the last object that was there followed its owner
    std::set<std::string> pods;
    WriteAttempts write;
    absl::Status problem;  // of the last write
  };
  [[nodiscard]] static bool Differs(const Object& object, const model::PodGroup& desired);
  // Pods that name it wait, and it was deleted.
  [[nodiscard]] bool IsMissed(const std::string& key, const Row& row) const;
  [[nodiscard]] bool IsToBeWritten(const std::string& key, const Row& row) const;
  [[nodiscard]] model::PodGroup WriteOf(const std::string& key, const Row& row) const;

  const state::ClusterState& state_;
  const WriteAttempts::Rules rules_;
  std::map<std::string, Object> seen_;  // these by "namespace/name"
  std::map<std::string, Row> rows_;
  std::set<std::string> open_;  // of rows_: perhaps to be written
};

}  // namespace fairlead::core
