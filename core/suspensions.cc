#include "core/suspensions.h"

#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/owner_cache.h"
#include "core/pod_grouper.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/group_name.h"
#include "scheduler/verdict/verdict.h"

namespace fairlead::core {
namespace {

// Kueue suspends and releases by itself what has this label.
constexpr char kKueueQueueLabel[] = "kueue.x-k8s.io/queue-name";

// Null: absent, or something on the way is no object.
const Json* At(const Json& object, absl::string_view path) {
  const absl::StatusOr<grouping::Path> parsed = grouping::Path::Parse(path);
  if (!parsed.ok()) return nullptr;
  const absl::StatusOr<const Json*> found = parsed->Find({.object = object, .pod = {}});
  return found.ok() ? *found : nullptr;
}

bool IsTrue(const Json& object, absl::string_view path) {
  const Json* value = At(object, path);
  return value != nullptr && value->type() == Json::Type::kBool && value->text() == "true";
}

// A field of another type is not ours to overwrite.
bool IsFalse(const Json& object, absl::string_view path) {
  const Json* value = At(object, path);
  if (value == nullptr || value->is_null()) return true;
  return value->type() == Json::Type::kBool && value->text() == "false";
}

std::string WhyHeld(const grouping::ObjectName& suspended) {
  return verdict::HeldByPlugin(
      PodGrouper::kName, absl::StrCat(suspended.Text(), " is suspended until its pods have ended"),
      "wait");
}

bool MaySuspend(const Json& object, absl::string_view uid, absl::string_view path) {
  const Json* deletion = object.At({"metadata", "deletionTimestamp"});
  return object.TextAt({"metadata", "uid"}) == uid &&
         (deletion == nullptr || deletion->is_null()) &&
         object.At({"metadata", "labels", kKueueQueueLabel}) == nullptr && IsFalse(object, path);
}

}  // namespace

// What was read for one row.
class Suspensions::Lookup final : public grouping::Objects {
 public:
  Lookup(const Row& row, const state::ClusterState& state) : row_(row), state_(state) {}
  [[nodiscard]] absl::StatusOr<const Json*> Find(const grouping::ObjectName& name) const override {
    const auto found = row_.objects.find(name.Text());
    if (found == row_.objects.end()) return nullptr;
    if (!found->second.ok()) return found->second.status();
    return &*found->second;
  }
  [[nodiscard]] bool HasPriorityClass(absl::string_view name) const override {
    return state_.FindPriorityClass(name) != state::kNoId;
  }

 private:
  const Row& row_;
  const state::ClusterState& state_;
};

Suspensions::Suspensions(const state::ClusterState& state, const GroupingOptions& options,
                         std::vector<std::string> marks, Backoff backoff)
    : state_(state), options_(options), marks_(std::move(marks)), rules_{.backoff = backoff} {
  BecomeLeader();
}

void Suspensions::BecomeLeader() {
  rows_.clear();
  held_.clear();
  kinds_.clear();
  if (!enabled()) return;
  for (const grouping::KindRow& row : options_.table->rows()) {
    const bool can = row.suspend.has_value() && !row.suspend->path.empty();
    if (!can || row.group == "*" || row.kind == "*") continue;
    const bool known = std::any_of(kinds_.begin(), kinds_.end(), [&](const KindRow& kind) {
      return kind.group == row.group && kind.kind == row.kind;
    });
    if (!known) kinds_.push_back({row.group, row.kind, row.suspend->path.text(), {}, false});
  }
}

// ---- what may be suspended ----------------------------------------------------------------------

state::PodId Suspensions::Find(const model::EvictPod& pod) const {
  const state::PodId id = state_.FindPod(pod.ns, pod.name);
  return id != state::kNoId && state_.pod(id).uid == pod.uid ? id : state::kNoId;
}

bool Suspensions::AllGo(state::WorkloadId workload,
                        const std::vector<model::EvictPod>& pods) const {
  std::set<absl::string_view> uids;
  for (const model::EvictPod& pod : pods) uids.insert(pod.uid);
  const state::PodIds& all = state_.workload(workload).pods;
  return std::all_of(all.begin(), all.end(), [&](state::PodId id) {
    const state::PodRecord& pod = state_.pod(id);
    return pod.terminating || !state::HoldsNode(pod.status) || uids.contains(pod.uid);
  });
}

bool Suspensions::MayTake(const std::vector<model::EvictPod>& pods) const {
  std::vector<state::PodId> there;
  for (const model::EvictPod& pod : pods) {
    if (const state::PodId id = Find(pod); id != state::kNoId) there.push_back(id);
  }
  if (there.empty()) return false;
  const state::PodRecord& first = state_.pod(there.front());
  if (first.workload == state::kNoId || !AllGo(first.workload, pods)) return false;
  // A pod that is alone, and never ends by itself, is no work that can be suspended.
  if (!state_.workload(first.workload).is_group && !first.runs_to_end) return false;
  return std::all_of(there.begin(), there.end(), [&](state::PodId id) {
    const state::PodRecord& pod = state_.pod(id);
    return pod.has_controller && state_.BudgetsOf(pod).empty();
  });
}

bool Suspensions::IsWorkload(const grouping::Grouping& grouping, const Row& row) const {
  const state::PodId id = state_.FindPod(row.pod.ns, row.pod.name);
  if (id == state::kNoId || state_.pod(id).workload == state::kNoId) return false;
  const state::Workload& workload = state_.workload(state_.pod(id).workload);
  if (!workload.is_group) return grouping.kind == grouping::Grouping::Kind::kLone;
  return grouping.kind == grouping::Grouping::Kind::kGroup &&
         grouping.group.meta.name == workload.name;
}

bool Suspensions::HasOurMark(const Json& object) const {
  const std::string by = object.TextAt({"metadata", "annotations", model::kSuspendedByAnnotation});
  return object.At({"metadata", "labels", model::kSuspendedLabel}) != nullptr &&
         std::find(marks_.begin(), marks_.end(), by) != marks_.end();
}

std::vector<model::EvictPod> Suspensions::Take(std::vector<model::EvictPod> evictions) {
  if (!enabled()) return evictions;
  std::vector<model::EvictPod> others;
  const auto workload_of = [&](const model::EvictPod& evict) {
    const state::PodId pod = Find(evict);
    return pod == state::kNoId ? state::kNoId : state_.pod(pod).workload;
  };
  for (auto begin = evictions.begin(); begin != evictions.end();) {
    const state::WorkloadId workload = workload_of(*begin);
    const auto end = std::find_if(std::next(begin), evictions.end(), [&](const auto& evict) {
      return workload_of(evict) != workload;
    });
    std::vector<model::EvictPod> pods(std::make_move_iterator(begin), std::make_move_iterator(end));
    begin = end;
    if (workload == state::kNoId || !MayTake(pods)) {
      others.insert(others.end(), std::make_move_iterator(pods.begin()),
                    std::make_move_iterator(pods.end()));
      continue;
    }
    Row& row = rows_[next_++];
    row.pod = {"v1", "Pod", pods.front().ns, pods.front().name, pods.front().uid};
    row.needs = row.pod;
    row.reason = pods.front().message;
    row.pods = std::move(pods);
  }
  return others;
}

// ---- answers ------------------------------------------------------------------------------------

void Suspensions::Enter(Row& row, Phase phase, absl::Time now) {
  row.phase = phase;
  row.since = now;
  row.hopeless = false;
  row.read.reset();
  row.write.Settle();
  row.failed_reads = 0;
  row.read_due = absl::InfinitePast();
}

bool Suspensions::FindOwner(Row& row, absl::Time now) {
  const absl::StatusOr<Json>& object = row.objects.at(row.pod.Text());
  if (!object.ok() || object->TextAt({"metadata", "uid"}) != row.pod.uid) return false;
  const absl::StatusOr<model::Pod> pod = grouping::PodFrom(*object, row.pod);
  if (!pod.ok()) return false;
  const absl::StatusOr<grouping::Grouping> grouping =
      grouping::GroupOf(*pod, *options_.table, Lookup(row, state_));
  if (!grouping.ok()) return false;
  if (grouping->kind == grouping::Grouping::Kind::kNeeds) {
    row.needs = grouping->needs;
    return true;
  }
  if (grouping->suspend.empty() || !IsWorkload(*grouping, row)) return false;
  const bool busy = std::any_of(rows_.begin(), rows_.end(), [&](const auto& other) {
    return other.second.object.uid == grouping->suspendable.uid;
  });
  const auto read = row.objects.find(grouping->suspendable.Text());
  if (busy || read == row.objects.end() || !read->second.ok() ||
      !MaySuspend(*read->second, grouping->suspendable.uid, grouping->suspend)) {
    return false;
  }
  row.object = grouping->suspendable;
  row.path = grouping->suspend;
  if (grouping->kind == grouping::Grouping::Kind::kGroup) {
    row.group = model::Key(row.pod.ns, grouping->group.meta.name);
  }
  Enter(row, Phase::kSuspend, now);
  row.read = *std::move(read->second);
  row.objects.clear();
  return true;
}

// False: it is not suspended, and cannot be.
bool Suspensions::ReadBeforeSuspending(Row& row, const absl::StatusOr<Json>& object,
                                       absl::Time now) {
  if (!object.ok()) return false;
  if (HasOurMark(*object) && IsTrue(*object, row.path)) {
    Enter(row, Phase::kEnding, now);
    return true;
  }
  row.read = *object;
  return MaySuspend(*object, row.object.uid, row.path);
}

void Suspensions::ObjectRead(const model::ReadObject& read, const model::ActionResult& result,
                             absl::Time now) {
  const auto found = rows_.find(read.suspension);
  if (found == rows_.end() || !found->second.reading) return;
  Row& row = found->second;
  row.reading = false;
  absl::StatusOr<Json> object = ObjectOf(result);
  if (absl::IsUnavailable(object.status()) || absl::IsAborted(object.status()) ||
      absl::IsResourceExhausted(object.status())) {
    row.read_due = now + rules_.backoff.Pause(++row.failed_reads);
    return;
  }
  if (object.ok()) {
    row.failed_reads = 0;
    row.gone_since = absl::InfiniteFuture();
  } else if (absl::IsNotFound(object.status())) {
    row.gone_since = std::min(row.gone_since, now);
  }
  bool goes_on = true;
  if (row.phase == Phase::kOwners) {
    row.objects.insert_or_assign(row.needs->Text(), std::move(object));
    row.needs.reset();
    goes_on = FindOwner(row, now);
  } else if (row.phase == Phase::kSuspend) {
    goes_on = ReadBeforeSuspending(row, object, now);
  } else if (object.ok()) {
    row.done = object->TextAt({"metadata", "uid"}) != row.object.uid || !HasOurMark(*object);
    row.read = *std::move(object);
  } else {
    row.done = now - row.gone_since >= kGone;
    row.read_due = now + rules_.backoff.Pause(++row.failed_reads);
  }
  if (!goes_on) row.hopeless = true;
}

void Suspensions::Written(uint64_t number, const absl::Status& status, absl::Time now) {
  const auto found = rows_.find(number);
  if (found == rows_.end() || !found->second.write.in_flight()) return;
  Row& row = found->second;
  const Outcome outcome = row.write.Answered(status, now, rules_);
  row.read.reset();
  row.read_due = row.write.due();
  if (outcome == Outcome::kDone) {
    if (row.phase == Phase::kRelease) {
      row.done = true;
      return;
    }
    Enter(row, Phase::kEnding, now);
    return;
  }
  // After a conflict, or in doubt, the object says what is true. Other refusals are final.
  const bool again = outcome == Outcome::kUnknown || absl::IsAborted(status);
  if (row.phase == Phase::kSuspend && !again) row.hopeless = true;
}

void Suspensions::Listed(const std::string& group, const std::string& kind,
                         const model::ActionResult& result, absl::Time now) {
  const auto found = std::find_if(kinds_.begin(), kinds_.end(), [&](const KindRow& row) {
    return row.group == group && row.kind == kind;
  });
  if (found == kinds_.end() || !found->list.in_flight()) return;
  if (absl::IsUnimplemented(result.status)) {
    kinds_.erase(found);
    return;
  }
  found->list.Answered(result.status, now, rules_);
  if (!result.status.ok()) return;
  const std::string path = found->path;
  if (found->again) {
    kinds_.erase(found);
  } else {
    found->again = true;
    found->list.Settle(now + kGone);
  }
  const absl::StatusOr<Json> list = ObjectOf(result);
  if (!list.ok() || !list->is_array()) return;
  for (const Json& object : list->items()) {
    const std::string uid = object.TextAt({"metadata", "uid"});
    const bool known = std::any_of(rows_.begin(), rows_.end(),
                                   [&](const auto& row) { return row.second.object.uid == uid; });
    if (known || uid.empty() || !HasOurMark(object)) continue;
    Row& row = rows_[next_++];
    row.object = {object.TextAt({"apiVersion"}), object.TextAt({"kind"}),
                  object.TextAt({"metadata", "namespace"}), object.TextAt({"metadata", "name"}),
                  uid};
    row.path = path;
    Enter(row, Phase::kRelease, now);
    row.not_before = now + kStops;
  }
}

// ---- steps --------------------------------------------------------------------------------------

void Suspensions::Read(uint64_t number, Row& row, const grouping::ObjectName& object,
                       absl::Time now, std::vector<model::Action>& actions) {
  if (row.reading) return;
  if (row.read_due > now) return WakeAt(row.read_due);
  row.reading = true;
  actions.push_back({0, model::ReadObject{object.api_version, object.kind, object.ns, object.name,
                                          object.uid, number}});
}

void Suspensions::Write(uint64_t number, Row& row, bool suspended, absl::Time now,
                        std::vector<model::Action>& actions) {
  if (row.write.in_flight()) return;
  if (!row.read.has_value()) return Read(number, row, row.object, now, actions);
  if (!row.write.MayGo(now)) return WakeAt(row.write.due());
  row.write.Sent(now, rules_);
  model::Suspendable object{row.object.api_version,
                            row.object.kind,
                            row.object.ns,
                            row.object.name,
                            row.object.uid,
                            row.read->TextAt({"metadata", "resourceVersion"}),
                            row.path};
  if (suspended) {
    object.by = marks_.front();
    object.reason = row.reason;
    for (const model::EvictPod& pod : row.pods) object.pods.push_back({pod.name, pod.uid});
  }
  actions.push_back({0, model::SetSuspended{number, suspended, std::move(object)}});
}

void Suspensions::Evict(Row& row, absl::Time now, Progress& progress) const {
  for (model::EvictPod& pod : std::exchange(row.pods, {})) {
    const state::PodId id = Find(pod);
    if (id == state::kNoId || state_.pod(id).terminating) {
      progress.going.push_back(pod.uid);
    } else if (now - row.taken > kFresh) {
      progress.late.push_back(pod.uid);
    } else {
      progress.evict.push_back(pod);
    }
    if (id != state::kNoId) row.ends.push_back(std::move(pod));
  }
}

bool Suspensions::Suspend(uint64_t number, Row& row, absl::Time now, Progress& progress) {
  // What was true when its pods were taken may have changed.
  if (!row.hopeless && MayTake(row.pods) && now < row.since + kStops) {
    WakeAt(row.since + kStops);
    Write(number, row, /*suspended=*/true, now, progress.actions);
    return false;
  }
  if (row.write.in_flight()) return false;
  Evict(row, now, progress);
  if (!row.write.in_doubt()) return true;
  // What was sent may still come, while no other write changes the version.
  const absl::Time over = row.write.unknown_at() + kDoubtLasts;
  Enter(row, Phase::kRelease, now);
  row.not_before = over;
  return false;
}

bool Suspensions::End(Row& row, absl::Time now, Progress& progress) {
  if (now >= row.since + kStops) {
    Evict(row, now, progress);
  } else {
    for (model::EvictPod& pod : std::exchange(row.pods, {})) {
      const state::PodId id = Find(pod);
      const bool goes = id == state::kNoId || state_.pod(id).terminating;
      if (goes) progress.going.push_back(pod.uid);
      if (id != state::kNoId) (goes ? row.ends : row.pods).push_back(std::move(pod));
    }
    WakeAt(row.since + kStops);
  }
  // One that serves nothing any more runs on.
  std::erase_if(row.ends, [&](const model::EvictPod& pod) {
    const state::PodId id = Find(pod);
    return id == state::kNoId || state_.pod(id).status != state::PodStatus::kReleasing;
  });
  if (row.pods.empty() && (row.ends.empty() || now >= row.since + kEnds)) {
    Enter(row, Phase::kRelease, now);
  } else {
    WakeAt(row.since + kEnds);
  }
  return false;
}

bool Suspensions::Release(uint64_t number, Row& row, absl::Time now, Progress& progress) {
  if (row.done) return true;
  if (now < row.not_before) {
    WakeAt(row.not_before);
    return false;
  }
  Write(number, row, /*suspended=*/false, now, progress.actions);
  return false;
}

bool Suspensions::StepRow(uint64_t number, Row& row, absl::Time now, bool may_suspend,
                          Progress& progress) {
  switch (row.phase) {
    case Phase::kOwners:
      if (row.taken == absl::InfinitePast()) row.taken = row.since = now;
      if (row.hopeless || now >= row.since + kStops) {
        Evict(row, now, progress);
        return true;
      }
      WakeAt(row.since + kStops);
      Read(number, row, *row.needs, now, progress.actions);
      return false;
    case Phase::kSuspend:
      // Until the watch is fresh again, what is decided may be wrong.
      if (!may_suspend && !row.write.open()) return false;
      return Suspend(number, row, now, progress);
    case Phase::kEnding:
      return End(row, now, progress);
    case Phase::kRelease:
      return Release(number, row, now, progress);
  }
  return true;
}

void Suspensions::ListKinds(absl::Time now, std::vector<model::Action>& actions) {
  for (KindRow& kind : kinds_) {
    if (kind.list.in_flight()) continue;
    if (!kind.list.MayGo(now)) {
      WakeAt(kind.list.due());
      continue;
    }
    kind.list.Sent(now, rules_);
    actions.push_back({0, model::ListSuspended{kind.group, kind.kind}});
  }
}

void Suspensions::Hold(Row& row, bool held, Progress& progress) {
  if (row.group.empty() || held_.contains(row.group) == held) return;
  std::string why = WhyHeld(row.object);
  if (held) {
    held_.emplace(row.group, why);
  } else {
    held_.erase(row.group);
  }
  progress.holds.push_back({row.group, std::move(why), held});
}

std::string Suspensions::HeldBy(const model::Pod& pod) const {
  if (held_.empty() || !pod.node_name.empty()) return "";
  const auto found = held_.find(model::Key(pod.meta.ns, model::GroupNameOf(pod)));
  return found == held_.end() ? "" : found->second;
}

Suspensions::Progress Suspensions::Step(absl::Time now, bool may_suspend) {
  Progress progress;
  wake_at_ = absl::InfiniteFuture();
  ListKinds(now, progress.actions);
  for (auto it = rows_.begin(); it != rows_.end();) {
    // A phase that ends here goes on at once.
    Row& row = it->second;
    const Phase phase = row.phase;
    const bool over = StepRow(it->first, row, now, may_suspend, progress);
    Hold(row, !over && (row.phase == Phase::kSuspend || row.phase == Phase::kEnding), progress);
    if (over) {
      it = rows_.erase(it);
    } else if (row.phase == phase) {
      ++it;
    }
  }
  return progress;
}

size_t Suspensions::suspended() const {
  return static_cast<size_t>(std::count_if(rows_.begin(), rows_.end(), [](const auto& row) {
    return row.second.phase >= Phase::kEnding || row.second.write.open();
  }));
}

}  // namespace fairlead::core
