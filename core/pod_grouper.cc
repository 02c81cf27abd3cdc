#include "core/pod_grouper.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/group_name.h"
#include "scheduler/verdict/verdict.h"

namespace fairlead::core {
namespace {

constexpr char kGrantRights[] = "grant the rights of manifests/grouping";
constexpr char kNameGroup[] = "or name a PodGroup in annotation pod-group-name of the pod";

// What a group depends on needs nothing of where its pod may run.
model::Pod Trimmed(const model::Pod& pod) {
  model::Pod out;
  out.meta = pod.meta;
  out.priority_class_name = pod.priority_class_name;
  return out;
}

bool IsYounger(const model::ObjectMeta& a, const model::ObjectMeta& b) {
  return a.creation != b.creation ? a.creation > b.creation : a.name > b.name;
}

// It is, or becomes, what the group is like.
bool Decides(const model::Pod& pod, const std::optional<model::Pod>& youngest) {
  return !youngest.has_value() || youngest->meta.uid == pod.meta.uid ||
         IsYounger(pod.meta, youngest->meta);
}

std::string Held(absl::string_view why, absl::string_view help = "") {
  return verdict::HeldByPlugin(PodGrouper::kName, why, help);
}

std::string HelpAgainst(const absl::Status& problem) {
  if (absl::IsPermissionDenied(problem)) return kGrantRights;
  return absl::IsUnavailable(problem) ? "wait until the API server answers" : "";
}

// Why owners say no group, and what helps. Readers put the help into a second line.
std::string WhyNoGroup(const absl::Status& status) {
  const absl::string_view message = status.message();
  const size_t line = message.find('\n');
  if (line != absl::string_view::npos) {
    return Held(message.substr(0, line), message.substr(line + 1));
  }
  if (absl::IsNotFound(status)) {
    return Held(message,
                "delete the pod, whose owner is gone, or remove its reference to the owner");
  }
  if (absl::IsInvalidArgument(status)) {
    return Held(message, absl::StrCat("correct that, ", kNameGroup));
  }
  return Held(message, HelpAgainst(status));
}

}  // namespace

// What the owners are known to be, for one question.
class PodGrouper::Lookup final : public grouping::Objects {
 public:
  Lookup(const OwnerCache& owners, const state::ClusterState& state, absl::Time not_before,
         OwnerCache::Keys& looked)
      : owners_(owners), state_(state), not_before_(not_before), looked_(looked) {}
  [[nodiscard]] absl::StatusOr<const Json*> Find(const grouping::ObjectName& name) const override {
    const std::string key = OwnerCache::KeyOf(name);
    looked_.insert(key);
    return owners_.Find(key, not_before_);
  }
  [[nodiscard]] bool HasPriorityClass(absl::string_view name) const override {
    return state_.FindPriorityClass(name) != state::kNoId;
  }

 private:
  const OwnerCache& owners_;
  const state::ClusterState& state_;
  const absl::Time not_before_;
  OwnerCache::Keys& looked_;
};

absl::StatusOr<grouping::Grouping> PodGrouper::GroupOf(const model::Pod& pod, absl::Time not_before,
                                                       OwnerCache::Keys& objects) const {
  return grouping::GroupOf(pod, *options_.table, Lookup(owners_, state_, not_before, objects));
}

bool PodGrouper::IsOurs(const model::Pod& pod) const {
  const std::vector<std::string>& ours = state_.options().scheduler_names;
  return std::find(ours.begin(), ours.end(), pod.scheduler_name) != ours.end();
}

bool PodGrouper::MayWait(const model::Pod& pod) {
  return pod.node_name.empty() && !pod.meta.deletion.has_value() &&
         model::GroupNameOf(pod).empty() && pod.phase == model::PodPhase::kPending;
}

bool PodGrouper::Waits(const model::Pod& pod) const { return IsOurs(pod) && MayWait(pod); }

// ---- events -------------------------------------------------------------------------------------

PodGrouper::Passed PodGrouper::PassedAs(const model::Pod& pod,
                                        const grouping::Grouping& grouping) const {
  using Kind = grouping::Grouping::Kind;
  const bool grouped = grouping.kind == Kind::kGroup;
  return {pod.meta.uid, grouping.kind == Kind::kLone,
          IsOfOtherShard(grouped ? grouping.group.meta : pod.meta)};
}

std::optional<PodGrouper::Passed> PodGrouper::PassesUnread(const model::Pod& pod) const {
  OwnerCache::Keys looked;
  const absl::StatusOr<grouping::Grouping> grouping = GroupOf(pod, absl::InfiniteFuture(), looked);
  if (!grouping.ok()) return std::nullopt;
  using Kind = grouping::Grouping::Kind;
  if (grouping->kind != Kind::kLone && grouping->kind != Kind::kForeign) return std::nullopt;
  return PassedAs(pod, *grouping);
}

PodGrouper::Answer PodGrouper::AnswerOf(const PodRow& row) {
  return row.quiet ? Answer{.withheld = true} : Answer{.held_by = row.held_by};
}

PodGrouper::Answer PodGrouper::PodSeen(const model::Pod& pod) {
  if (!options_.enabled) return {};
  const std::string key = model::Key(pod.meta);
  const bool waits = Waits(pod);
  if (const auto passed = passed_.find(key); passed != passed_.end()) {
    if (waits && passed->second.uid == pod.meta.uid) return passed->second.AsAnswer();
    passed_.erase(passed);
  }
  if (const auto found = pods_.find(key);
      found != pods_.end() && (!waits || found->second.pod.meta.uid != pod.meta.uid)) {
    Drop(key);
  }
  if (!waits) {
    Member(pod);
    return {};
  }
  const auto [place, made] = pods_.try_emplace(key);
  PodRow& row = place->second;
  row.pod = pod;
  if (const std::optional<Passed> passed = PassesUnread(pod)) {
    passed_[key] = *passed;
    Drop(key);
    return passed->AsAnswer();
  }
  if (made) {
    new_.insert(key);
    row.held_by = Held("its owners have not been read");
    // What the state has already is not taken from it.
    const state::PodId known = state_.FindPod(pod.meta.ns, pod.meta.name);
    row.quiet = known == state::kNoId || state_.pod(known).uid != pod.meta.uid;
    row.shown_later = !IsOfOtherShard(pod.meta);
  } else {
    again_.insert(key);
  }
  if (!row.quiet) row.shown = row.held_by;
  return AnswerOf(row);
}

void PodGrouper::Drop(const std::string& key) {
  const auto found = pods_.find(key);
  if (found == pods_.end()) return;
  PodRow& row = found->second;
  owners_.Depend({false, key}, row.objects, {});
  LeaveGroup(key, row);
  if (row.since.has_value()) quiet_.erase({*row.since + kQuiet, key});
  pods_.erase(found);
  new_.erase(key);
  again_.erase(key);
  name_.erase(key);
}

void PodGrouper::PodGone(const std::string& ns, const std::string& name, const std::string& uid) {
  if (!options_.enabled) return;
  const std::string key = model::Key(ns, name);
  if (const auto passed = passed_.find(key);
      passed != passed_.end() && (uid.empty() || passed->second.uid == uid)) {
    passed_.erase(passed);
  }
  if (const auto found = pods_.find(key);
      found != pods_.end() && (uid.empty() || found->second.pod.meta.uid == uid)) {
    Drop(key);
  }
  const state::PodId pod = state_.FindPod(ns, name);
  if (pod == state::kNoId || (!uid.empty() && state_.pod(pod).uid != uid)) return;
  const state::WorkloadId id = state_.pod(pod).workload;
  if (id == state::kNoId || !state_.workload(id).is_group) return;
  const state::Workload& group = state_.workload(id);
  left_groups_.insert(model::Key(group.ns, group.name));
  maybe_idle_.insert(model::Key(group.ns, group.name));
}

void PodGrouper::GroupSeen(const model::PodGroup& group) {
  if (!options_.enabled) return;
  const std::string key = model::Key(group.meta);
  const bool followed = groups_.MayFollow(key);
  groups_.Seen(group);
  LookAgainAt(key);
  if (groups_.MayFollow(key) != followed) changed_groups_.insert(key);
}

void PodGrouper::GroupGone(const std::string& ns, const std::string& name, const std::string& uid) {
  const std::string key = model::Key(ns, name);
  if (!options_.enabled || !groups_.Gone(key, uid)) return;
  deleted_groups_.insert(key);
  maybe_idle_.insert(key);
}

void PodGrouper::LookAgainAt(const std::string& group) {
  for (const std::string& pod : groups_.Awaiting(group)) {
    again_.insert(pod);
    name_.insert(pod);
  }
}

// ---- answers ------------------------------------------------------------------------------------

void PodGrouper::ObjectRead(const model::ReadObject& read, const model::ActionResult& result,
                            absl::Time now) {
  for (const OwnerCache::User& user : owners_.Answered(read, result, now)) {
    (user.is_group ? changed_groups_ : again_).insert(user.key);
  }
}

void PodGrouper::GroupWritten(const std::string& group, const absl::Status& status,
                              absl::Time now) {
  if (groups_.Written(group, status, now)) LookAgainAt(group);
}

void PodGrouper::PodWritten(const std::string& pod, const std::string& uid,
                            const absl::Status& status, absl::Time now) {
  const auto found = pods_.find(pod);
  if (found == pods_.end() || found->second.pod.meta.uid != uid) return;
  found->second.write.Answered(status, now, rules_);
  found->second.problem = ToldProblem(status);
  again_.insert(pod);
  name_.insert(pod);
}

// ---- pods ---------------------------------------------------------------------------------------

void PodGrouper::LeaveGroup(const std::string& key, PodRow& row) {
  if (row.group.empty()) return;
  groups_.Release(row.group, key);
  maybe_idle_.insert(row.group);
  row.group.clear();
  row.sub_group.clear();
}

void PodGrouper::TakeGroup(const std::string& key, PodRow& row, grouping::Grouping grouping) {
  const std::string group = model::Key(grouping.group.meta);
  if (row.group != group) {
    LeaveGroup(key, row);
    row.write.Settle();
  }
  if (row.sub_group != grouping.sub_group) row.write.Settle();
  row.group = group;
  row.sub_group = std::move(grouping.sub_group);
  groups_.Await(group, key);
  name_.insert(key);
  const auto [found, made] = group_rows_.try_emplace(group);
  if (!Decides(row.pod, found->second.youngest)) {
    // What the youngest says may not have been looked at.
    if (groups_.DesiredOf(group) == nullptr) changed_groups_.insert(group);
    return;
  }
  found->second.youngest = Trimmed(row.pod);
  OwnerCache::Keys objects;
  if (groups_.MayFollow(group)) objects = row.objects;
  owners_.Depend({true, group}, found->second.objects, std::move(objects));
  Desire(group, std::move(grouping.group));
}

std::string PodGrouper::WaitsForGroup(const PodRow& row) const {
  const std::string group = absl::StrCat("PodGroup ", row.group);
  switch (groups_.ReadinessOf(row.group, row.sub_group)) {
    case OwnedGroups::Readiness::kInProgress:
      return Held(absl::StrCat(group, " is being written for it"));
    case OwnedGroups::Readiness::kWriteRefused: {
      const absl::Status problem = groups_.ProblemOf(row.group);
      return Held(absl::StrCat(group, " cannot be written: ", problem.message()),
                  HelpAgainst(problem));
    }
    case OwnedGroups::Readiness::kNoSubGroup:
      return Held(absl::StrCat(group, ", which does not follow its owner, has no sub-group ",
                               row.sub_group),
                  absl::StrCat("add that sub-group to it, or delete it, ", kNameGroup));
    case OwnedGroups::Readiness::kReady:
      break;
  }
  if (row.problem.ok()) return Held(absl::StrCat("it is being put into ", group));
  return Held(absl::StrCat("it cannot be put into ", group, ": ", row.problem.message()),
              HelpAgainst(row.problem));
}

std::optional<PodGrouper::Answer> PodGrouper::Evaluate(const std::string& key, PodRow& row,
                                                       absl::Time now) {
  using Kind = grouping::Grouping::Kind;
  const OwnerCache::User user{false, key};
  OwnerCache::Keys objects;
  absl::StatusOr<grouping::Grouping> grouping =
      GroupOf(row.pod, *row.since - OwnerCache::kRecent, objects);
  owners_.Depend(user, row.objects, std::move(objects));
  if (!grouping.ok()) {
    LeaveGroup(key, row);
    owners_.ReadSoon(row.objects);
    row.held_by = WhyNoGroup(grouping.status());
  } else if (grouping->kind == Kind::kLone || grouping->kind == Kind::kForeign ||
             (grouping->kind == Kind::kGroup && IsOfOtherShard(grouping->group.meta))) {
    return PassedAs(row.pod, *grouping).AsAnswer();
  } else if (grouping->kind == Kind::kNeeds) {
    owners_.Want(grouping->needs, user, OwnerCache::Reason::kAwaited, now);
    const absl::Status problem = owners_.ProblemOf(grouping->needs);
    const std::string why = absl::StrCat(grouping->needs.Text(), ", by which it is grouped, ");
    row.held_by = problem.ok() ? Held(absl::StrCat(why, "has not been read"))
                               : Held(absl::StrCat(why, "cannot be read: ", problem.message()),
                                      HelpAgainst(problem));
  } else {
    TakeGroup(key, row, *std::move(grouping));
    row.held_by = WaitsForGroup(row);
    // The pod may be there because its owner has changed within kRecent.
    OwnerCache::Keys older;
    for (const std::string& object : row.objects) {
      const absl::StatusOr<const Json*> newer = owners_.Find(object, *row.since);
      if (newer.ok() && *newer == nullptr) older.insert(object);
    }
    owners_.ReadNow(older, now);
  }
  if (row.quiet || row.shown == row.held_by) return std::nullopt;
  row.shown = row.held_by;
  return AnswerOf(row);
}

// ---- groups -------------------------------------------------------------------------------------

void PodGrouper::Member(const model::Pod& pod) {
  const absl::string_view name = pod.meta.annotations.Get(model::kPodGroupAnnotation);
  if (name.empty() || pod.meta.owners.empty() || !IsOurs(pod)) return;
  const std::string key = model::Key(pod.meta.ns, name);
  const bool goes = pod.meta.deletion.has_value() || pod.phase == model::PodPhase::kSucceeded ||
                    pod.phase == model::PodPhase::kFailed;
  if (goes) {
    if (group_rows_.contains(key)) left_groups_.insert(key);
    return;
  }
  GroupRow& row = group_rows_[key];
  if (row.youngest.has_value() && row.youngest->meta.uid == pod.meta.uid) return;
  if (!Decides(pod, row.youngest) || !Decides(pod, row.candidate)) return;
  row.candidate = Trimmed(pod);
  changed_groups_.insert(key);
  maybe_idle_.insert(key);
}

void PodGrouper::Desire(const std::string& key, model::PodGroup group) {
  groups_.Desire(key, std::move(group));
  for (const std::string& pod : groups_.Awaiting(key)) name_.insert(pod);
}

void PodGrouper::EvaluateGroup(const std::string& key, absl::Time not_before, absl::Time now) {
  using Kind = grouping::Grouping::Kind;
  const auto found = group_rows_.find(key);
  if (found == group_rows_.end()) return;
  GroupRow& row = found->second;
  const OwnerCache::User user{true, key};
  if (!groups_.MayFollow(key)) {
    owners_.Depend(user, row.objects, {});
    return;
  }
  const auto reason = not_before > absl::InfinitePast() ? OwnerCache::Reason::kAwaited
                                                        : OwnerCache::Reason::kRepeated;
  OwnerCache::Keys objects;
  std::vector<grouping::ObjectName> needed;
  // True if it says the group, or will when more has been read.
  const auto says = [&](const model::Pod& pod) {
    absl::StatusOr<grouping::Grouping> grouping = GroupOf(pod, not_before, objects);
    if (!grouping.ok()) return false;
    if (grouping->kind == Kind::kNeeds) needed.push_back(grouping->needs);
    if (grouping->kind == Kind::kLone) {
      return groups_.DesireOne(key, grouping->group.meta.owners.front().uid);
    }
    if (grouping->kind != Kind::kGroup) return grouping->kind == Kind::kNeeds;
    if (model::Key(grouping->group.meta) != key) return false;
    Desire(key, std::move(grouping->group));
    return true;
  };
  bool decided = false;
  if (row.candidate.has_value()) {
    const bool may = says(*row.candidate);
    decided = may && needed.empty();
    if (decided) row.youngest = std::move(row.candidate);
    if (decided || !may) row.candidate.reset();
  }
  // An owner that is gone, or cannot be read, leaves the group as it is; of one that is to be made
  // anew another pod may know more.
  if (!decided && row.youngest.has_value() && !says(*row.youngest) &&
      groups_.DesiredOf(key) == nullptr) {
    row.youngest.reset();
    LookAgainAt(key);
  }
  owners_.Depend(user, row.objects, std::move(objects));
  for (const grouping::ObjectName& name : needed) owners_.Want(name, user, reason, now);
}

// ---- steps --------------------------------------------------------------------------------------

// After kQuiet a pod is shown as held back.
void PodGrouper::TakeTime(absl::Time now) {
  for (const std::string& key : std::exchange(new_, {})) {
    PodRow& row = pods_.at(key);
    row.since = now;
    if (row.quiet && row.shown_later) quiet_.emplace(now + kQuiet, key);
    again_.insert(key);
  }
  while (!quiet_.empty() && quiet_.begin()->first <= now) {
    const std::string key = quiet_.begin()->second;
    quiet_.erase(quiet_.begin());
    pods_.at(key).quiet = false;
    again_.insert(key);
  }
}

std::vector<PodGrouper::Decided> PodGrouper::EvaluatePods(absl::Time now) {
  std::vector<Decided> decided;
  for (const std::string& key : std::exchange(again_, {})) {
    const auto found = pods_.find(key);
    if (found == pods_.end()) continue;
    PodRow& row = found->second;
    const std::optional<Answer> answer = Evaluate(key, row, now);
    if (!answer.has_value()) continue;
    decided.push_back({row.pod, *answer});
    if (!answer->held_by.empty()) continue;
    passed_[key] = {row.pod.meta.uid, answer->lone, answer->other_shard};
    Drop(key);
  }
  return decided;
}

void PodGrouper::EvaluateGroups(absl::Time now) {
  for (const std::string& key : std::exchange(left_groups_, {})) {
    const auto found = group_rows_.find(key);
    if (found != group_rows_.end()) owners_.ReadNow(found->second.objects, now);
  }
  for (const std::string& key : std::exchange(deleted_groups_, {})) {
    for (const std::string& pod : groups_.Awaiting(key)) {
      const auto found = pods_.find(pod);
      if (found == pods_.end() || !found->second.since.has_value()) continue;
      // What was read before may be gone by now.
      if (quiet_.erase({*found->second.since + kQuiet, pod}) > 0) quiet_.emplace(now + kQuiet, pod);
      found->second.since = now;
      again_.insert(pod);
    }
    EvaluateGroup(key, now - OwnerCache::kRecent, now);
  }
  for (const std::string& key : std::exchange(changed_groups_, {})) {
    EvaluateGroup(key, absl::InfinitePast(), now);
  }
}

void PodGrouper::WritePods(absl::Time now, std::vector<model::Action>& actions) {
  for (auto it = name_.begin(); it != name_.end();) {
    const auto found = pods_.find(*it);
    // An answer, or a change of the group, brings it back.
    if (found == pods_.end() || found->second.group.empty() || found->second.write.in_flight() ||
        groups_.ReadinessOf(found->second.group, found->second.sub_group) !=
            OwnedGroups::Readiness::kReady) {
      it = name_.erase(it);
      continue;
    }
    PodRow& row = found->second;
    if (!row.write.MayGo(now)) {
      wake_at_ = std::min(wake_at_, row.write.due());
      ++it;
      continue;
    }
    row.write.Sent(now, rules_);
    const model::ObjectMeta& meta = row.pod.meta;
    actions.push_back({0, model::SetPodGroup{meta.ns, meta.name, meta.uid,
                                             row.group.substr(meta.ns.size() + 1), row.sub_group}});
    it = name_.erase(it);
  }
}

void PodGrouper::ForgetIdleGroups() {
  for (const std::string& key : std::exchange(maybe_idle_, {})) {
    if (!groups_.IsIdle(key)) continue;
    groups_.Forget(key);
    const auto found = group_rows_.find(key);
    if (found == group_rows_.end()) continue;
    owners_.Depend({true, key}, found->second.objects, {});
    group_rows_.erase(found);
  }
}

std::vector<PodGrouper::Decided> PodGrouper::Step(absl::Time now,
                                                  std::vector<model::Action>& actions) {
  wake_at_ = absl::InfiniteFuture();
  if (!options_.enabled) return {};
  ForgetIdleGroups();
  TakeTime(now);
  EvaluateGroups(now);
  std::vector<Decided> decided = EvaluatePods(now);
  EvaluateGroups(now);
  if (!again_.empty()) wake_at_ = now;
  wake_at_ = std::min(wake_at_, owners_.Step(now, actions));
  wake_at_ = std::min(wake_at_, groups_.Step(now, actions));
  WritePods(now, actions);
  if (!quiet_.empty()) wake_at_ = std::min(wake_at_, quiet_.begin()->first);
  return decided;
}

}  // namespace fairlead::core
