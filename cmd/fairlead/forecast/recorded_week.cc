#include "cmd/fairlead/forecast/recorded_week.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "journal/record.h"
#include "scheduler/model/api_names.h"
#include "sim/api_server.h"

namespace fairlead::cmd {
namespace {

std::string OwnerUid(const model::Pod& pod) {
  for (const model::OwnerReference& owner : pod.meta.owners) {
    if (owner.controller) return owner.uid;
  }
  return "";
}

// What another pod like it would be made from.
model::Pod TemplateOf(const model::Pod& pod, bool& left_out) {
  model::Pod made = pod;
  made.meta.name.clear();
  made.meta.uid.clear();
  made.meta.resource_version.clear();
  made.meta.deletion.reset();
  made.meta.owners.clear();
  for (const char* key : {model::kVerdictAnnotation, model::kStartedUnderAnnotation,
                          model::kStartedAsAnnotation, model::kVisibleDevicesAnnotation,
                          model::kGpuPortionAnnotation, model::kBindDecisionAnnotation,
                          model::kNumaObservedAnnotation, model::kNumaPredictedAnnotation}) {
    made.meta.annotations.Erase(key);
  }
  made.meta.labels.Erase(model::kGpuGroupLabel);
  made.node_name.clear();
  made.nominated_node_name.clear();
  made.phase = model::PodPhase::kPending;
  made.ready = false;
  made.start_time = absl::InfiniteFuture();
  made.scheduled = {};
  made.held_by.clear();
  made.numa_zones.clear();
  made.scheduling_gates.clear();  // they were taken off some time; that is a part of the wait
  left_out = !made.spec.resource_claims.empty() || !made.spec.claim_templates.empty() ||
             !made.spec.volume_claims.empty();
  made.spec.resource_claims.clear();
  made.spec.claim_templates.clear();
  made.spec.volume_claims.clear();
  made.generated_claims.clear();
  made.awaited_claims.clear();
  made.extended_claim.clear();
  return made;
}

// The kinds that are played as they changed.
bool IsPlayed(model::Kind kind) {
  switch (kind) {
    case model::Kind::kQueue:
    case model::Kind::kNodePool:
    case model::Kind::kPriorityClass:
    case model::Kind::kTopology:
    case model::Kind::kPodGroup:
    case model::Kind::kNamespace:
      return true;
    default:
      return false;
  }
}

// Without what a controller writes about it.
void DropStatus(model::Object& object) {
  std::visit(
      [](auto& typed) {
        typed.meta.resource_version.clear();
        typed.meta.uid.clear();
        typed.meta.deletion.reset();
      },
      object);
  if (auto* queue = std::get_if<model::Queue>(&object)) queue->status.reset();
  if (auto* pool = std::get_if<model::NodePool>(&object)) pool->ready_condition = {};
  if (auto* group = std::get_if<model::PodGroup>(&object)) {
    group->schedulability_hash.clear();
    group->scheduling_conditions.clear();
    group->meta.annotations.Erase(model::kStaleSinceAnnotation);
    group->meta.annotations.Erase(model::kLastStartAnnotation);
    group->meta.annotations.Erase(model::kLastEvictionAnnotation);
  }
}

sim::ObjectRef RefOf(model::Kind kind, absl::string_view ns, absl::string_view name) {
  return {model::KindName(kind), model::Key(ns, name)};
}

}  // namespace

WeekReader::WeekReader(journal::ReadOptions read)
    : derived_(std::make_shared<journal::DerivedTable>()), driver_(std::move(read), derived_) {}

absl::Status WeekReader::Take(absl::string_view bytes) {
  FAIRLEAD_ASSIGN_OR_RETURN(const journal::Record record, journal::Decode(bytes));
  if (const auto* derived = std::get_if<journal::Derived>(&record)) {
    derived_->Add(*derived);
    return absl::OkStatus();
  }
  const auto* stepped = std::get_if<journal::Stepped>(&record);
  if (stepped != nullptr && driver_.has_started()) {
    if (!now_.has_value()) week_.from = stepped->now;
    now_ = week_.to = stepped->now;
    for (const model::Action& action : driver_.Step(stepped->now).actions) {
      if (const auto* evict = std::get_if<model::EvictPod>(&action.what)) Evicted(evict->uid);
      if (const auto* set = std::get_if<model::SetSuspended>(&action.what)) {
        for (const model::Suspendable::Pod& pod : set->object->pods) Evicted(pod.uid);
      }
    }
    return absl::OkStatus();
  }
  if (const auto* start = std::get_if<journal::Start>(&record)) {
    if (!driver_.has_started()) week_.start = *start;
  }
  FAIRLEAD_RETURN_IF_ERROR(driver_.Tell(record));
  if (const auto* applied = std::get_if<journal::Applied>(&record)) {
    if (const auto* upsert = std::get_if<model::Upsert>(&applied->event)) {
      Upserted(upsert->object);
    } else if (const auto* gone = std::get_if<model::Delete>(&applied->event)) {
      Deleted(*gone);
    }
  }
  return absl::OkStatus();
}

void WeekReader::Evicted(const std::string& uid) {
  const auto life = lives_.find(uid);
  if (life != lives_.end()) life->second.evicted = true;
}

bool WeekReader::IsOurs(const model::Pod& pod) const {
  const std::vector<std::string>& names = week_.start.scheduler_names;
  return std::find(names.begin(), names.end(), pod.scheduler_name) != names.end() &&
         pod.meta.ns != model::kReservationNamespace;
}

void WeekReader::Upserted(const model::Object& object) {
  const absl::Time at = now_.value_or(absl::InfinitePast());
  if (const auto* pod = std::get_if<model::Pod>(&object)) return PodUpserted(*pod);
  if (const auto* node = std::get_if<model::Node>(&object)) {
    // Nodes of others, once each: what changes of them later is not played.
    if (node->meta.labels.Has(model::kNodeRequestLabel)) return;
    if (!foreign_nodes_.insert(node->meta.name).second) return;
    model::Node kept = *node;
    kept.meta.resource_version.clear();
    week_.changes.push_back({at, kept, RefOf(model::Kind::kNode, "", node->meta.name)});
    return;
  }
  if (IsPlayed(model::KindOf(object))) Changed(object);
}

void WeekReader::Changed(model::Object object) {
  DropStatus(object);
  const model::ObjectMeta& meta = model::MetaOf(object);
  const sim::ObjectRef ref = RefOf(model::KindOf(object), meta.ns, meta.name);
  std::string bytes = journal::EncodeApplied(model::Upsert{object});
  std::string& last = last_[absl::StrCat(ref.kind, " ", ref.key)];
  if (last == bytes) return;
  last = std::move(bytes);
  week_.changes.push_back({now_.value_or(absl::InfinitePast()), std::move(object), ref});
}

void WeekReader::Deleted(const model::Delete& gone) {
  const absl::Time at = now_.value_or(absl::InfinitePast());
  const sim::ObjectRef ref = RefOf(gone.kind, gone.ns, gone.name);
  if (gone.kind == model::Kind::kPod) {
    PodEnded(gone.uid);
    if (foreign_pods_.erase(gone.uid) > 0) week_.changes.push_back({at, std::nullopt, ref});
  } else if (gone.kind == model::Kind::kNode) {
    if (foreign_nodes_.erase(gone.name) > 0) week_.changes.push_back({at, std::nullopt, ref});
  } else if (gone.kind != model::Kind::kPodGroup && IsPlayed(gone.kind)) {
    // A group stays for jobs that end later than they did.
    if (last_.erase(absl::StrCat(ref.kind, " ", ref.key)) > 0) {
      week_.changes.push_back({at, std::nullopt, ref});
    }
  }
}

void WeekReader::ForeignPod(const model::Pod& pod) {
  if (sim::IsTerminal(pod) || !foreign_nodes_.contains(pod.node_name)) return;
  if (!foreign_pods_.insert(pod.meta.uid).second) return;
  bool left_out = false;
  model::Pod kept = TemplateOf(pod, left_out);
  kept.meta.name = pod.meta.name;
  kept.node_name = pod.node_name;
  week_.changes.push_back({now_.value_or(absl::InfinitePast()), kept,
                           RefOf(model::Kind::kPod, pod.meta.ns, pod.meta.name)});
}

size_t WeekReader::JobOf(const model::Pod& pod) {
  const std::string owner = OwnerUid(pod);
  if (const auto waiting = to_come_back_.find(owner);
      !owner.empty() && waiting != to_come_back_.end() && !waiting->second.empty()) {
    const size_t job = waiting->second.front();
    waiting->second.erase(waiting->second.begin());
    return job;
  }
  RecordedJob& job = week_.jobs.emplace_back();
  job.pod = TemplateOf(pod, job.left_out_claims);
  job.queue = std::string(pod.meta.labels.Get(model::kQueueLabel));
  job.arrived = now_.value_or(absl::InfinitePast());
  return week_.jobs.size() - 1;
}

void WeekReader::PodUpserted(const model::Pod& pod) {
  if (!IsOurs(pod)) return ForeignPod(pod);
  const bool ended = sim::IsTerminal(pod);
  auto life = lives_.find(pod.meta.uid);
  if (life == lives_.end()) {
    if (ended) return;
    life = lives_.emplace(pod.meta.uid, Life{JobOf(pod)}).first;
    owner_of_[pod.meta.uid] = OwnerUid(pod);
    pod_of_[life->second.job] = pod.meta.uid;
  }
  if (pod.meta.deletion.has_value()) MakeWay(pod.meta.uid, life->second);
  RecordedJob& job = week_.jobs[life->second.job];
  const absl::Time at = now_.value_or(absl::InfinitePast());
  if (!pod.node_name.empty() && !std::exchange(life->second.bound, true)) {
    job.started = at;
    job.ran.reset();
  }
  if (ended) PodEnded(pod.meta.uid);
}

// A controller makes the next pod as soon as the evicted one is to be deleted.
void WeekReader::MakeWay(const std::string& uid, Life& life) {
  if (!life.evicted || std::exchange(life.made_way, true)) return;
  ++week_.jobs[life.job].evictions;
  if (const std::string& owner = owner_of_[uid]; !owner.empty()) {
    to_come_back_[owner].push_back(life.job);
  }
}

void WeekReader::PodEnded(const std::string& uid) {
  const auto found = lives_.find(uid);
  if (found == lives_.end() || std::exchange(found->second.ended, true)) return;
  Life& life = found->second;
  MakeWay(uid, life);
  RecordedJob& job = week_.jobs[life.job];
  // Not of one in whose place there is another by now.
  if (pod_of_[life.job] != uid) return;
  if (life.bound && now_.has_value()) job.ran = *now_ - std::max(*job.started, week_.from);
}

absl::StatusOr<RecordedWeek> WeekReader::Finish() {
  if (!now_.has_value()) return absl::FailedPreconditionError("the journal has no step");
  // What was there before the first step was there from the beginning.
  for (RecordedJob& job : week_.jobs) {
    job.arrived = std::max(job.arrived, week_.from);
    if (job.started.has_value()) job.started = std::max(*job.started, week_.from);
  }
  for (RecordedChange& change : week_.changes) change.at = std::max(change.at, week_.from);
  return std::move(week_);
}

}  // namespace fairlead::cmd
