// Verdicts on API objects: which ones are written, and which writes update them.
//
//   lone pod         condition PodScheduled=False (code, one sentence or what nodes said), the
//                    verdict annotation and nominatedNodeName, in one write
//   PodGroup         the whole verdict, in one write
//   pods of a group  the condition alone
//
// A write is *news* if the code (the condition's reason) differs from the last written one, else a
// *refresh*: the same code with another hash. News of lone pods and groups go at once, after the
// bindings of the step; so does another nominatedNodeName, on which other autoscalers act. The
// first verdict of a workload that victims make room for waits for kPassesSoon: most of these
// workloads start before that, and their verdicts would be written to be cleared. Of a workload
// that a plugin's answer about nodes is awaited for (Verdict::awaited) nothing is looked at for so
// long: what is told of it stays. Conditions of a group's pods go at kConditionsPerSecond, but at
// once if another autoscaler acts on them (the hook is off and the reason is, or was,
// Unschedulable). Refreshes of all kinds together go at kRefreshesPerSecond: those of verdicts, and
// those of the conditions of groups' pods, take turns. No hash includes changing numbers (position,
// used, node counts): a change of them alone is never written.
//
// A workload has one write of its verdict in flight: what changes meanwhile waits for the answer.
// At most `max_in_flight` writes are unanswered; the others wait here, and are made when their turn
// comes, so that a verdict that changes again is written once. Clears go first. First verdicts go
// before changed ones, but every fourth place is for a changed one.
//
// A write that was refused has changed nothing: what is written is again what was before it. Such a
// write, and one whose outcome is unknown, is repeated after a pause that doubles
// (base/write_attempts.h) if it is still due: the watch may show by then that it was done, or the
// former verdict may be the desired one again. Writes that failed several times in a row are
// repeated at kRepeatsPerSecond together. What the watch shows is not believed if it may be from
// before the write: the same verdict was written or shown earlier, and the watch has not shown what
// was written between them.
// The same holds for a clear: what was told before it is told still if the clear was refused.
// A verdict is cleared when the group's bindings have been seen, or kBindings after they were
// decided: until then they may be refused, and the group waits for the same reason. A group that
// certainly bears none is not cleared. A pod that was bound while its verdict was in flight loses
// the verdict when it is seen on its node.
//
// For the workloads behind an entry (engine::Waiting::behind), Update checks only those that came
// since, had an entry of their own in the step before, or still have to be written. It checks all
// of them when their verdict has changed.
//
// A pod that waits again after a slow binding may have a nominatedNodeName that no verdict gave it
// (nominations.h): its next verdict, or condition, is due at once and clears the name.
//
// Ownership: borrows the state. Thread-safety: the owner's thread. Complexity: O(entries + changes)
// per step; texts and hashes are made only for verdicts that differ from those of the step before.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/derived_names.h"
#include "base/write_attempts.h"
#include "core/reconcile/due_times.h"
#include "core/reconcile/nominations.h"
#include "scheduler/engine/engine.h"
#include "scheduler/model/action.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

class StatusUpdater {
 public:
  static constexpr int64_t kRefreshesPerSecond = 4;
  static constexpr int64_t kConditionsPerSecond = 100;
  static constexpr int64_t kRepeatsPerSecond = 50;

  struct Settings {
    bool hook_on = false, emit_events = false;
    int64_t max_in_flight = 1000;                           // model::kUnlimited: any number
    std::shared_ptr<DerivedNames> derived_names = nullptr;  // of hashes
  };
  // `send` sends an action and returns its id. Each write is answered, with Answered.
  StatusUpdater(const state::ClusterState& state, Nominations& nominations, Settings settings,
                std::function<uint64_t(model::Action)> send)
      : state_(state),
        nominations_(nominations),
        settings_(std::move(settings)),
        send_(std::move(send)) {}

  // `waiting` is everything that waits now, `changes` what came and left since the last Update.
  // Sends the due writes.
  void Update(const engine::Engine& engine, const std::vector<engine::Waiting>& waiting,
              const engine::WaitingChanges& changes, absl::Time now);
  // Sends the writes that are due by time, or by an answer, alone.
  void Flush(absl::Time now);
  // False: the id belongs to no write.
  bool Answered(uint64_t action_id, const absl::Status& status, absl::Time now);
  // The watch showed the pod. Call it for pods on a node that have a verdict, and for all pods
  // while AwaitsBound().
  void PodSeen(state::PodId pod);
  [[nodiscard]] bool AwaitsBound() const { return !bound_.empty() || !leaving_.empty(); }

  // Writes that wait for their pace or for a place in flight; in flight; and those to be repeated
  // after a pause.
  [[nodiscard]] size_t queued() const {
    size_t pods = 0;
    for (const auto& lane : pods_) pods += lane.size();
    return firsts_.size() + news_.size() + refreshes_.size() + pods + bound_.size() +
           clears_.size();
  }
  [[nodiscard]] size_t in_flight() const { return in_flight_.size(); }
  [[nodiscard]] size_t retries() const { return retries_.size() + paced_retries_.size(); }
  // Pods of groups whose last written conditions are remembered. O(groups).
  [[nodiscard]] size_t conditions_known() const;

  // What the last Update says of the workload; none if it does not wait.
  struct Told {
    verdict::Code code;
    std::string sentence;
  };
  [[nodiscard]] std::optional<Told> ToldOf(const state::Workload& workload) const;
  // When what stayed as it was, because an answer is awaited, is to be told: Update is to be called
  // by then. Infinite future if never.
  [[nodiscard]] absl::Time stays_until() const { return stays_until_; }
  // When Flush has something to write although nothing changed; infinite future if never.
  [[nodiscard]] absl::Time wake_at() const { return wake_at_; }
  // Since when the workload has waited with the code of the last Update; infinite past if it did
  // not wait then (or its row belongs to another workload by now).
  [[nodiscard]] absl::Time Since(state::WorkloadId workload) const;

 private:
  static constexpr WriteAttempts::Rules kRules = {.backoff = {absl::Seconds(1), absl::Minutes(1)}};
  static constexpr absl::Duration kBindings = absl::Seconds(10);
  static constexpr absl::Duration kPassesSoon = absl::Seconds(2);

  // At most so many per second on average, `burst` of them at once.
  class Pace {
   public:
    Pace(int64_t per_second, int64_t burst)
        : each_(absl::Seconds(1) / per_second), slack_((burst - 1) * each_) {}
    // Takes a place if one is free; else tells when one will be.
    bool Take(absl::Time now, absl::Time& wake_at);

   private:
    absl::Duration each_, slack_;
    absl::Time next_ = absl::InfinitePast();
  };
  struct Condition {
    std::string reason, sentence;
    friend bool operator==(const Condition&, const Condition&) = default;
  };
  // Where a group's row stands whose pods may bear another condition than the desired one.
  enum class PodsLane : uint8_t {
    kNone,
    kLook,     // to be compared, with all that may be written at once
    kNews,     // the next write waits for its pace
    kRefresh,  // the same, of another sentence for the same reason
    kPaused,   // in retries_, after a failed write
  };
  // How far the conditions of a group's pods are written: places in Workload::pods, as of its
  // version. Pods before them are written, or wait for another pace.
  struct PodsWalk {
    static constexpr size_t kNone = SIZE_MAX;
    uint64_t version = 0;
    size_t look = 0;                       // to be compared
    size_t news = kNone, refresh = kNone;  // wait for the pace of news, and of refreshes
  };
  enum class PodWrite : uint8_t { kNone, kNow, kNews, kRefresh };
  // What a row returns to if its write is refused: nothing was done.
  struct Former {
    std::string hash, nominated, reason;
    bool watch_tells = true;
    std::vector<std::string> unshown;
    absl::flat_hash_map<std::string, Condition> pods;  // of a missing group
  };
  struct Row {
    bool is_group = false;
    std::string ns, name, uid;  // ids are reused: this identifies the row's workload
    verdict::Verdict verdict;   // as of the last change of more than changing numbers
    std::string hash;           // of it
    std::string nominated;      // of a lone pod
    Condition condition;        // the condition that its pods should have; no reason: none
    // Last written, or in flight.
    std::string written_hash, written_nominated, written_reason;
    WriteAttempts write;      // of that; one for all pods of a missing group
    uint64_t written_as = 0;  // names it
    size_t unanswered = 0;    // its actions
    bool watch_tells = true;  // if the watch shows that write, it was done
    // Values that the watch may show still, of before that write.
    std::vector<std::string> unshown;
    std::unique_ptr<Former> former;  // before the write in flight; null: it may be done in part
    // The last write was refused: what is written is what was before it.
    bool undone = false;
    // The clear (Removal::serial) after which the row began, until a write of the row may be done.
    uint64_t after_clear = 0;
    absl::flat_hash_map<std::string, Condition> pods;  // of a group, by uid
    WriteAttempts conditions;                          // of these
    size_t unanswered_conditions = 0;
    bool queued_news = false, queued_refresh = false;
    bool put_off = false;  // in put_off_
    PodsLane pods_lane = PodsLane::kNone;
    std::array<bool, 4> in_pods = {};  // by PodsLane: the row is in pods_[lane], perhaps in vain
    PodsWalk walk;
    bool look_at_pods = true;  // conditions of a group's pods may differ from the desired ones
    bool tell_event = false;
    bool leaving = false;  // in leaving_: nothing is written
    uint64_t version = 0;  // of the workload, at the last check of its pods
    absl::Time since = absl::InfinitePast();
    uint64_t round = 0;   // last Update that found it waiting
    uint64_t serial = 0;  // of the row
  };
  // What an action in flight writes.
  struct Ticket {
    enum class To : uint8_t { kRow, kCondition, kBoundPod, kClear };
    To to = To::kRow;
    uint32_t id = 0;       // of the workload, or of the bound pod
    uint64_t serial = 0;   // Row::written_as, Row::serial, or Removal::serial
    std::string uid, key;  // of the pod; "namespace/name" of a group to be cleared
  };
  struct Removal {
    WriteAttempts attempts;
    uint64_t serial = 0;               // of the last one
    std::vector<std::string> unshown;  // as of the row that was removed
    std::string hash;                  // what the group certainly had before; empty: not known
  };
  // A group that this process has cleared.
  struct Cleared {
    std::string uid;
    std::vector<std::string> unshown;  // values that the watch may show still
    uint64_t serial = 0;               // of the last clear
    std::string hash = {};             // of the verdict that it has still: the clear was refused
    bool done = false;                 // the last clear was accepted
  };
  // A workload for which a plugin's answer is awaited.
  struct Awaited {
    std::string uid;
    absl::Time since;
  };
  // The workloads behind an entry, as of the last Update.
  struct ClassRow {
    verdict::Verdict verdict;  // of the entry, without its position
    uint64_t round = 0;
  };

  // An answer is awaited for the entry, and has been for less than kPassesSoon.
  bool StaysAsItIs(const engine::Waiting& entry, const std::map<state::WorkloadId, Awaited>& before,
                   absl::Time now);
  // Updates one entry, of the workload alone.
  void Renew(const engine::Waiting& entry, absl::Time now);
  // The `place`th behind `entry`.
  void RenewBehind(const engine::Waiting& entry, state::WorkloadId workload, int64_t place,
                   absl::Time now);
  static bool IsRowOf(const Row& row, const state::Workload& workload);
  static bool IsWaiting(const state::PodRecord& pod);
  [[nodiscard]] bool HasWaitingPod(const state::Workload& workload) const;
  static std::string ValueOf(absl::string_view hash, absl::string_view nominated);
  static bool IsAsGroup(const state::Workload& workload);
  // True if the former scheduler left a reason for waiting on a running workload.
  static bool BearsFormerReason(const state::Workload& workload);
  Row& RowOf(const state::Workload& workload, const engine::Waiting& entry, absl::Time now);
  void Start(Row& row, const state::Workload& workload);
  void SetCondition(const state::Workload& workload, Row& row) const;
  void Enqueue(state::WorkloadId id, Row& row, absl::Time now);
  // Nothing is written yet, and it may start before kPassesSoon is over: the row is looked at again
  // then.
  bool IsPutOff(state::WorkloadId id, Row& row, absl::Time now);
  // True if the watch shows this verdict on all objects that bear it.
  [[nodiscard]] bool Shows(const state::Workload& workload, absl::string_view hash,
                           absl::string_view nominated) const;
  // True if the watch shows the last write, and may be believed.
  [[nodiscard]] bool ShowsWritten(const state::Workload& workload, const Row& row) const;
  // Nothing is written until the answer is there, or the pause after a failure is over.
  static bool AwaitsAnswer(const Row& row, absl::Time now) {
    return row.write.in_flight() || row.write.Pauses(now);
  }
  // What the watch may show after the last write of the row, and before the next one is shown.
  [[nodiscard]] std::vector<std::string> Unshown(const state::Workload& workload,
                                                 const Row& row) const;
  // Call it before another value is written than the last one.
  void NoteUnshown(const state::Workload& workload, Row& row) const;
  // The last write failed, and may have been done or not.
  static bool IsUnsure(const Row& row) { return row.write.failed() && !row.undone; }
  // Something differs from the last write, or that one may not have been done.
  static bool HasNews(const Row& row) {
    return IsUnsure(row) || row.written_reason != row.condition.reason ||
           row.written_nominated != row.nominated;
  }
  static bool HasRefresh(const Row& row) { return row.written_hash != row.hash; }
  [[nodiscard]] Row* FindRow(const state::Workload& workload) const;

  [[nodiscard]] bool Full() const {
    return settings_.max_in_flight != model::kUnlimited &&
           in_flight_.size() >= static_cast<size_t>(settings_.max_in_flight);
  }
  template <typename W>
  void Send(W write, Ticket&& ticket) {
    in_flight_.emplace(send_({0, std::move(write)}), std::move(ticket));
  }
  void Write(state::WorkloadId id, Row& row, absl::Time now);
  void WriteGroup(const state::Workload& workload, const Row& row, Ticket ticket);
  void WritePod(const state::PodRecord& pod, const Row& row, bool whole, Ticket ticket);
  // Writes conditions of a group's pods. The lane in which those stand that have to wait.
  // Complexity: O(pods) for the first look; then what is written and one pod more.
  PodsLane WritePods(const state::Workload& workload, Row& row, absl::Time now);
  // The same for those that wait for the pace of `what`, from `at` on. True if none is left.
  bool WritePaced(const state::Workload& workload, Row& row, PodWrite what, size_t& at,
                  absl::Time now);
  // What has to be written of the pod's condition.
  PodWrite DueOf(const state::Workload& workload, Row& row, const state::PodRecord& pod) const;
  // True if the pace of `what` has a place now.
  bool TakePace(PodWrite what, absl::Time now);
  void WriteCondition(const state::Workload& workload, Row& row, const state::PodRecord& pod,
                      absl::Time now);
  std::deque<state::WorkloadId>& Lane(PodsLane lane) { return pods_[static_cast<size_t>(lane)]; }
  static bool& InLane(Row& row, PodsLane lane) { return row.in_pods[static_cast<size_t>(lane)]; }
  // Moves the row to the lane. A place that it has there already is its place again, so that it is
  // in no lane twice, however often it changes between them.
  void EnterLane(state::WorkloadId id, Row& row, PodsLane lane);
  // Drops conditions of pods that are gone, if there are many.
  void ForgetGonePods(const state::Workload& workload, Row& row) const;
  void EmitChange(const state::Workload& workload, const Row& row) const;
  [[nodiscard]] Row* RowAt(state::WorkloadId id) const {
    return id < rows_.size() ? rows_[id].get() : nullptr;
  }
  // Call Remember before a write, and Undo if all of it was refused.
  static void Remember(const state::Workload& workload, Row& row);
  static void Undo(Row& row);
  // Answers to a row: its write, or one of its conditions.
  void RowAnswered(const Ticket& ticket, Outcome outcome, absl::Time now);
  // Call it for a clear of a group that was refused, and none of whose attempts is in doubt.
  void ClearRefused(const Ticket& ticket, const Removal& removal, absl::Time now);
  void ConditionAnswered(const Ticket& ticket, Outcome outcome, absl::Time now);
  // One of the answers to `write`, of which `unanswered` are missing. True if it failed by this
  // one: the row is looked at again after the pause.
  bool PartAnswered(Row& row, WriteAttempts& write, size_t& unanswered, const Ticket& ticket,
                    Outcome outcome, absl::Time now);

  void TakeRetries(absl::Time now);
  void TakePutOff(absl::Time now);
  void FlushNews(absl::Time now);
  // Complexity: what is written, what has changed, and one row more a lane.
  void FlushPods(absl::Time now);
  void FlushPods(PodsLane lane, absl::Time now);
  void FlushRefreshes(absl::Time now);
  void FlushBound(absl::Time now);
  void FlushClears(absl::Time now);
  // Drops entries of rows that are gone, if there are many.
  void Compact(std::deque<state::WorkloadId>& lane, absl::FunctionRef<bool(Row&)> is_queued) const;
  // Clears verdicts of workloads that no longer wait: a pod's binding removed its verdict; a
  // group's is removed here.
  void Clear(const std::vector<state::WorkloadId>& gone, absl::Time now);
  // True if the verdict stays until the bindings of the group are known.
  bool KeepForBindings(state::WorkloadId id, absl::Time now);
  // Clears the verdicts of groups in leaving_ whose bindings are known, or overdue.
  void ClearBound(absl::Time now);
  // The group of the row, which goes, has to be cleared.
  void AddClear(const Row& row);
  // True if the row began after a clear that is known to be done: `unshown` is gone.
  [[nodiscard]] bool BeganCleared(const Row& row) const;
  void TrimCleared();

  const state::ClusterState& state_;
  Nominations& nominations_;
  const Settings settings_;
  const std::function<uint64_t(model::Action)> send_;
  std::vector<std::unique_ptr<Row>> rows_;  // by WorkloadId; null: does not wait
  std::vector<state::WorkloadId> alone_;  // had an entry of their own in the last Update, in order
  std::deque<state::WorkloadId> firsts_, news_, refreshes_;
  // By PodsLane. May include some that stand in another lane now; each row once.
  std::array<std::deque<state::WorkloadId>, 4> pods_;
  DueTimes<state::WorkloadId> retries_, paced_retries_, put_off_;
  absl::flat_hash_map<uint64_t, Ticket> in_flight_;  // by action id
  absl::flat_hash_map<uint64_t, ClassRow> equivalence_classes_;
  // Groups that wait no longer, and whose bindings are not known -> until when they may stay so.
  std::map<state::WorkloadId, absl::Time> leaving_;
  // By "namespace/name". May include some that are gone.
  absl::flat_hash_map<std::string, Cleared> cleared_;
  size_t trim_cleared_at_ = 1024;
  std::map<std::string, Removal> clears_;  // groups ("namespace/name") to be cleared
  std::map<state::PodId, Removal> bound_;  // have a verdict although they are on a node
  Pace refresh_pace_{kRefreshesPerSecond, 1};
  bool pods_were_refreshed_ = false;  // by the last place of that pace; else a verdict was
  Pace pods_pace_{kConditionsPerSecond, 32};
  Pace repeat_pace_{kRepeatsPerSecond, 1};
  std::map<state::WorkloadId, Awaited> awaited_;  // of entries in the last Update
  absl::Time stays_until_ = absl::InfiniteFuture();
  std::vector<state::WorkloadId> came_meanwhile_;  // behind such entries, and not looked at
  absl::Time wake_at_ = absl::InfiniteFuture();
  bool was_full_ = false;  // writes wait for a place in flight
  uint64_t round_ = 0, serials_ = 0, turn_ = 0;
};

}  // namespace fairlead::core
