// Groups pods by their owners (grouping/): reads the owners, makes PodGroups, and names them on the
// pods. Off unless the configuration says otherwise (docs/grouping.md).
//
//   seen ──▶ owners are read ──▶ alone, or not ours to group: the state has the pod as it is
//                          └───▶ its PodGroup is there, or is made ──▶ the pod names it
//
// Until then the pod is not scheduled. For kQuiet it is withheld from the state: most pods are
// grouped before that, and nothing is written about them. After that the state has it as held back,
// with the reason and what helps, which its verdict says.
//
// A pod counts on owners as they were when it was first seen, or later (kRecent aside): a Job that
// has just been scaled up is not grouped by what it was. What was decided about a pod that is alone
// stays. A pod that names a PodGroup, whatever wrote that, is left alone; that group follows its
// owners if it is ours (owned_groups.h). They are read again (owner_cache.h) now and then, and when
// one of its pods goes.
//
// In a shard (shard.h) a pod that waits belongs to the shard of its future PodGroup, which makes
// the group; if it is alone, to that of its own label. Until that is known it is withheld from
// shards that its own label does not name.
//
// Ownership: borrows the state. Thread-safety: the owner's thread. Determinism: in the order of
// names. Complexity: PodSeen O(owners * log objects + what the row reads); Step O(what is due).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/write_attempts.h"
#include "core/options.h"
#include "core/owned_groups.h"
#include "core/owner_cache.h"
#include "core/shard.h"
#include "grouping/grouping.h"
#include "scheduler/model/action.h"
#include "scheduler/model/cluster_event.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

class PodGrouper {
 public:
  static constexpr absl::Duration kQuiet = absl::Seconds(2);
  static constexpr char kName[] = "Grouping";  // in verdicts

  // `shard`: of the process, if it has one.
  PodGrouper(const state::ClusterState& state, const GroupingOptions& options,
             std::optional<Shard> shard, Backoff backoff)
      : state_(state),
        options_(options),
        shard_(std::move(shard)),
        rules_{.backoff = backoff, .unseen = backoff},
        owners_(options.reads_per_second, backoff),
        groups_(state, backoff) {}
  [[nodiscard]] bool enabled() const { return options_.enabled; }

  struct Answer {
    bool withheld = false;     // the state is not to have it yet
    std::string held_by = {};  // not empty: the state is to have it with this
    bool lone = false;         // it is known that no group will come
    bool other_shard = false;  // it belongs to one
  };
  // Whether a pod of ours may still be put into a group.
  static bool MayWait(const model::Pod& pod);
  // Call it before the state has the pod.
  Answer PodSeen(const model::Pod& pod);
  // Call it before the state removes the pod. An empty uid: whichever is there.
  void PodGone(const std::string& ns, const std::string& name, const std::string& uid);
  void GroupSeen(const model::PodGroup& group);
  void GroupGone(const std::string& ns, const std::string& name, const std::string& uid);

  void ObjectRead(const model::ReadObject& read, const model::ActionResult& result, absl::Time now);
  // `group`, `pod`: "namespace/name".
  void GroupWritten(const std::string& group, const absl::Status& status, absl::Time now);
  void PodWritten(const std::string& pod, const std::string& uid, const absl::Status& status,
                  absl::Time now);

  // Pods that the state is to have from now on, or has otherwise.
  struct Decided {
    model::Pod pod;
    Answer answer;  // not withheld
  };
  // Appends what is to be read and written.
  std::vector<Decided> Step(absl::Time now, std::vector<model::Action>& actions);
  [[nodiscard]] absl::Time wake_at() const { return wake_at_; }
  // Pods that wait to be put into a group.
  [[nodiscard]] size_t waiting() const { return pods_.size(); }

 private:
  struct PodRow {
    model::Pod pod;
    std::optional<absl::Time> since;  // of the first step that knew it
    bool quiet = true;                // withheld
    bool shown_later = true;          // it is quiet for kQuiet at most
    std::string held_by, shown;       // why it waits; what the state has
    std::string group, sub_group;     // once that is known
    OwnerCache::Keys objects;         // that its group depends on
    WriteAttempts write;
    absl::Status problem;  // of the last write
  };
  struct GroupRow {
    std::optional<model::Pod> youngest;  // says what the group is
    // Names the group and is younger; perhaps its owners say another one.
    std::optional<model::Pod> candidate;
    OwnerCache::Keys objects;
  };
  struct Passed {
    std::string uid;
    bool lone = false;
    bool other_shard = false;
    [[nodiscard]] Answer AsAnswer() const { return {.lone = lone, .other_shard = other_shard}; }
  };
  class Lookup;

  [[nodiscard]] bool IsOurs(const model::Pod& pod) const;
  // Whether it may need a group.
  [[nodiscard]] bool Waits(const model::Pod& pod) const;
  // `objects`: where it looked.
  absl::StatusOr<grouping::Grouping> GroupOf(const model::Pod& pod, absl::Time not_before,
                                             OwnerCache::Keys& objects) const;

  // ---- pods
  [[nodiscard]] bool IsOfOtherShard(const model::ObjectMeta& meta) const {
    return shard_.has_value() && !shard_->Has(meta);
  }
  // Of a pod of which it is known what it belongs to.
  [[nodiscard]] Passed PassedAs(const model::Pod& pod, const grouping::Grouping& grouping) const;
  // What is known without any read. Nothing: it waits.
  std::optional<Passed> PassesUnread(const model::Pod& pod) const;
  [[nodiscard]] static Answer AnswerOf(const PodRow& row);
  // Nothing: the state has it as it is to have it.
  std::optional<Answer> Evaluate(const std::string& key, PodRow& row, absl::Time now);
  void TakeGroup(const std::string& key, PodRow& row, grouping::Grouping grouping);
  void LeaveGroup(const std::string& key, PodRow& row);
  // Why it waits in spite of its group, and what helps.
  [[nodiscard]] std::string WaitsForGroup(const PodRow& row) const;
  void Drop(const std::string& key);

  // ---- groups
  // A pod that names it.
  void Member(const model::Pod& pod);
  // By the youngest of its pods, if it may follow its owners. `not_before`: as Find; finite: pods
  // wait for it.
  void EvaluateGroup(const std::string& key, absl::Time not_before, absl::Time now);
  void Desire(const std::string& key, model::PodGroup group);
  // Pods that wait to be put into it.
  void LookAgainAt(const std::string& group);

  // ---- parts of a step
  void TakeTime(absl::Time now);
  void EvaluateGroups(absl::Time now);
  std::vector<Decided> EvaluatePods(absl::Time now);
  void WritePods(absl::Time now, std::vector<model::Action>& actions);
  void ForgetIdleGroups();

  const state::ClusterState& state_;
  const GroupingOptions options_;
  const std::optional<Shard> shard_;
  const WriteAttempts::Rules rules_;
  OwnerCache owners_;
  OwnedGroups groups_;
  std::map<std::string, PodRow> pods_;  // that wait; these by "namespace/name"
  std::map<std::string, Passed> passed_;
  std::map<std::string, GroupRow> group_rows_;
  std::set<std::string> new_;                           // of pods_: they have no time yet
  std::set<std::pair<absl::Time, std::string>> quiet_;  // of pods_: until then
  std::set<std::string> again_, name_;                  // of pods_: to be evaluated; to be named
  std::set<std::string> changed_groups_, left_groups_;  // of group_rows_: owners changed; pods went
  std::set<std::string> deleted_groups_, maybe_idle_;   // likewise: the object; perhaps forgotten
  absl::Time wake_at_ = absl::InfiniteFuture();
};

}  // namespace fairlead::core
