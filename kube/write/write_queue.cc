#include "kube/write/write_queue.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace fairlead::kube {
namespace {

struct Laner {
  WriteLane operator()(const model::BindPod&) const { return WriteLane::kBind; }
  WriteLane operator()(const model::EvictPod&) const { return WriteLane::kEvict; }
  WriteLane operator()(const model::SetPodUnschedulable&) const { return WriteLane::kStatus; }
  WriteLane operator()(const model::CallPlugin&) const { return WriteLane::kBind; }
  WriteLane operator()(const model::NominateNode&) const { return WriteLane::kStatus; }
  WriteLane operator()(const model::SetPodGroupSchedulability&) const { return WriteLane::kStatus; }
  WriteLane operator()(const model::SetPodGroupAnnotations&) const { return WriteLane::kStatus; }
  WriteLane operator()(const model::SetPodGroupScheduled&) const { return WriteLane::kStatus; }
  WriteLane operator()(const model::SetConditions&) const { return WriteLane::kStatus; }
  WriteLane operator()(const model::SetKaiStatus&) const { return WriteLane::kStatus; }
  WriteLane operator()(const model::CreateNodeRequest&) const { return WriteLane::kNode; }
  WriteLane operator()(const model::UpdateNodeRequestStatus&) const { return WriteLane::kNode; }
  WriteLane operator()(const model::DeleteNodeRequest&) const { return WriteLane::kNode; }
  WriteLane operator()(const model::SetNodeTaint&) const { return WriteLane::kNode; }
  WriteLane operator()(const model::LaunchNode&) const { return WriteLane::kNode; }
  WriteLane operator()(const model::TerminateNode&) const { return WriteLane::kNode; }
  WriteLane operator()(const model::StoreUsage&) const { return WriteLane::kStatus; }
  WriteLane operator()(const model::EmitEvent&) const { return WriteLane::kEvent; }
  // Bindings wait for these.
  WriteLane operator()(const model::CreateGpuReservation&) const { return WriteLane::kBind; }
  WriteLane operator()(const model::ApplyConfigMap&) const { return WriteLane::kBind; }
  WriteLane operator()(const model::ReserveClaim&) const { return WriteLane::kBind; }
  WriteLane operator()(const model::SetExtendedClaim&) const { return WriteLane::kBind; }
  WriteLane operator()(const model::BindVolume&) const { return WriteLane::kBind; }
  WriteLane operator()(const model::SelectVolumeNode&) const { return WriteLane::kBind; }
  WriteLane operator()(const model::AskExtenders&) const { return WriteLane::kBind; }
  WriteLane operator()(const model::ReadObject&) const { return WriteLane::kBind; }
  WriteLane operator()(const model::WritePodGroup&) const { return WriteLane::kBind; }
  WriteLane operator()(const model::SetPodGroup&) const { return WriteLane::kBind; }
  WriteLane operator()(const model::DeletePod&) const { return WriteLane::kEvict; }
  WriteLane operator()(const model::SetSuspended&) const { return WriteLane::kEvict; }
  WriteLane operator()(const model::ListSuspended&) const { return WriteLane::kEvict; }
  WriteLane operator()(const model::DeallocateClaim&) const { return WriteLane::kEvict; }
};

struct ObjectNamer {
  template <typename T>
  static std::string Pod(const T& a) {
    return absl::StrCat("pod/", model::Key(a.ns, a.name));
  }
  template <typename T>
  static std::string Group(const T& a) {
    return absl::StrCat("group/", model::Key(a.ns, a.name));
  }
  template <typename T>
  static std::string Claim(const T& a) {
    return absl::StrCat("claim/", model::Key(a.ns, a.name));
  }
  static std::string Request(absl::string_view name) { return absl::StrCat("request/", name); }

  std::string operator()(const model::BindPod& a) const { return Pod(a); }
  std::string operator()(const model::EvictPod& a) const { return Pod(a); }
  std::string operator()(const model::SetPodUnschedulable& a) const { return Pod(a); }
  std::string operator()(const model::NominateNode& a) const { return Pod(a); }
  std::string operator()(const model::CallPlugin& a) const {
    return a.call->question == nullptr ? Pod(*a.call) : absl::StrCat("plugin/", a.call->plugin);
  }
  std::string operator()(const model::SetPodGroupSchedulability& a) const { return Group(a); }
  std::string operator()(const model::SetPodGroupAnnotations& a) const { return Group(a); }
  std::string operator()(const model::SetPodGroupScheduled& a) const { return Group(a); }
  std::string operator()(const model::SetConditions& a) const {
    return absl::StrCat(model::KindTitle(a.kind), "/", model::Key(a.ns, a.name));
  }
  std::string operator()(const model::SetKaiStatus& a) const {
    return a.kind == model::Kind::kPodGroup ? Group(a) : absl::StrCat("queue/", a.name);
  }
  std::string operator()(const model::CreateNodeRequest& a) const {
    return Request(a.request->meta.name);
  }
  std::string operator()(const model::UpdateNodeRequestStatus& a) const {
    return Request(a.request->meta.name);
  }
  std::string operator()(const model::DeleteNodeRequest& a) const { return Request(a.name); }
  std::string operator()(const model::SetNodeTaint& a) const {
    return absl::StrCat("node/", a.node);
  }
  std::string operator()(const model::LaunchNode& a) const { return Request(a.request->meta.name); }
  std::string operator()(const model::TerminateNode& a) const { return Request(a.request_name); }
  std::string operator()(const model::CreateGpuReservation& a) const { return Pod(a); }
  std::string operator()(const model::DeletePod& a) const { return Pod(a); }
  std::string operator()(const model::ApplyConfigMap& a) const {
    return absl::StrCat("configmap/", model::Key(a.ns, a.name));
  }
  std::string operator()(const model::ReserveClaim& a) const { return Claim(a); }
  std::string operator()(const model::DeallocateClaim& a) const { return Claim(a); }
  std::string operator()(const model::SetExtendedClaim& a) const { return Pod(a); }
  std::string operator()(const model::BindVolume& a) const {
    return absl::StrCat("volume/", a.volume);
  }
  std::string operator()(const model::SelectVolumeNode& a) const {
    return absl::StrCat("volume-claim/", model::Key(a.ns, a.name));
  }
  // It writes nothing; the binding that follows waits for it.
  std::string operator()(const model::AskExtenders& a) const { return Pod(a); }
  std::string operator()(const model::ReadObject& a) const {
    return absl::StrCat("object/", a.kind, "/", model::Key(a.ns, a.name));
  }
  std::string operator()(const model::SetSuspended& a) const {
    return absl::StrCat("object/", a.object->kind, "/", model::Key(a.object->ns, a.object->name));
  }
  std::string operator()(const model::ListSuspended& a) const {
    return absl::StrCat("objects/", a.group, "/", a.kind);
  }
  std::string operator()(const model::WritePodGroup& a) const { return Group(a.group->meta); }
  std::string operator()(const model::SetPodGroup& a) const { return Pod(a); }
  std::string operator()(const model::StoreUsage& a) const {
    return absl::StrCat("usage/", model::Key(a.ns, a.name));
  }
  std::string operator()(const model::EmitEvent& a) const {
    return absl::StrCat("event/", static_cast<int>(a.about), "/", model::Key(a.ns, a.name));
  }
};

}  // namespace

const char* WriteLaneName(WriteLane lane) {
  switch (lane) {
    case WriteLane::kBind:
      return "bind";
    case WriteLane::kEvict:
      return "evict";
    case WriteLane::kNode:
      return "node";
    case WriteLane::kStatus:
      return "status";
    case WriteLane::kEvent:
      return "event";
  }
  return "?";
}

WriteLane LaneOf(const model::Action& action) { return std::visit(Laner{}, action.what); }
std::string WrittenObject(const model::Action& action) {
  return std::visit(ObjectNamer{}, action.what);
}

WriteLane WriteQueue::MostUrgent(const Line& line) {
  WriteLane lane = WriteLane::kEvent;
  for (const auto& job : line.jobs) lane = std::min(lane, job->lane);
  return lane;
}

void WriteQueue::MakeReady(const std::string& object, Line& line, bool first) {
  if (line.ticket == 0) ++ready_;
  line.lane = MostUrgent(line);
  line.ticket = ++tickets_;
  std::deque<Entry>& lane = lanes_[static_cast<size_t>(line.lane)];
  if (first) {
    lane.emplace_front(object, line.ticket);
  } else {
    lane.emplace_back(object, line.ticket);
  }
}

std::optional<uint64_t> WriteQueue::Add(std::string object, WriteJob job) {
  ++SizeOf(job);
  Line& line = objects_[object];
  std::optional<uint64_t> replaced;
  if (job.replaces) {
    for (size_t i = line.active ? 1 : 0; i < line.jobs.size(); ++i) {
      if (!line.jobs[i]->replaceable || line.jobs[i]->attempts > 0) continue;
      replaced = line.jobs[i]->action_id;
      --SizeOf(*line.jobs[i]);
      line.jobs.erase(line.jobs.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
  }
  line.jobs.push_back(std::make_unique<WriteJob>(std::move(job)));
  // A ready line keeps its place unless it has become more urgent.
  if (!line.active && (line.ticket == 0 || MostUrgent(line) < line.lane)) {
    MakeReady(object, line, /*first=*/false);
  }
  return replaced;
}

void WriteQueue::SkipStale(std::deque<Entry>& lane) {
  while (!lane.empty()) {
    const auto line = objects_.find(lane.front().first);
    if (line != objects_.end() && line->second.ticket == lane.front().second) return;
    lane.pop_front();
  }
}

bool WriteQueue::HasReady() const { return ready_ > 0; }

bool WriteQueue::HasReady(WriteLane lane) {
  std::deque<Entry>& entries = lanes_[static_cast<size_t>(lane)];
  SkipStale(entries);
  return !entries.empty();
}

WriteJob* WriteQueue::Start(WriteLane lane) {
  if (!HasReady(lane)) return nullptr;
  std::deque<Entry>& entries = lanes_[static_cast<size_t>(lane)];
  const std::string object = std::move(entries.front().first);
  entries.pop_front();
  Line& line = objects_[object];
  line.active = true;
  line.ticket = 0;
  --ready_;
  WriteJob* job = line.jobs.front().get();
  active_[job->action_id] = object;
  return job;
}

WriteJob* WriteQueue::FindActive(uint64_t action_id) {
  const auto found = active_.find(action_id);
  return found == active_.end() ? nullptr : objects_[found->second].jobs.front().get();
}

void WriteQueue::Requeue(uint64_t action_id) { Requeue(action_id, /*first=*/true); }

void WriteQueue::RequeueIn(WriteLane lane, uint64_t action_id) {
  WriteJob* job = FindActive(action_id);
  FAIRLEAD_CHECK(job != nullptr, absl::StrCat("action ", action_id, " is not active"));
  --SizeOf(*job);
  job->lane = lane;
  ++SizeOf(*job);
  Requeue(action_id, /*first=*/false);
}

void WriteQueue::Requeue(uint64_t action_id, bool first) {
  const auto found = active_.find(action_id);
  FAIRLEAD_CHECK(found != active_.end(), absl::StrCat("action ", action_id, " is not active"));
  const std::string object = std::move(found->second);
  active_.erase(found);
  Line& line = objects_[object];
  line.active = false;
  MakeReady(object, line, first);
}

WriteJob WriteQueue::Finish(uint64_t action_id) {
  const auto found = active_.find(action_id);
  FAIRLEAD_CHECK(found != active_.end(), absl::StrCat("action ", action_id, " is not active"));
  const std::string object = std::move(found->second);
  active_.erase(found);
  const auto entry = objects_.find(object);
  Line& line = entry->second;
  WriteJob job = std::move(*line.jobs.front());
  line.jobs.pop_front();
  --SizeOf(job);
  line.active = false;
  if (line.jobs.empty()) {
    objects_.erase(entry);
  } else {
    MakeReady(object, line, /*first=*/false);
  }
  return job;
}

std::optional<WriteJob> WriteQueue::Withdraw(const std::string& object, uint64_t action_id) {
  const auto entry = objects_.find(object);
  if (entry == objects_.end()) return std::nullopt;
  Line& line = entry->second;
  for (size_t i = line.active ? 1 : 0; i < line.jobs.size(); ++i) {
    if (line.jobs[i]->action_id != action_id || line.jobs[i]->attempts > 0) continue;
    WriteJob job = std::move(*line.jobs[i]);
    line.jobs.erase(line.jobs.begin() + static_cast<std::ptrdiff_t>(i));
    --SizeOf(job);
    if (line.jobs.empty()) {
      if (line.ticket != 0) --ready_;
      objects_.erase(entry);
    }
    return job;
  }
  return std::nullopt;
}

std::vector<WriteJob> WriteQueue::Drop(bool on_wire_too) {
  std::vector<WriteJob> dropped;
  for (auto entry = objects_.begin(); entry != objects_.end();) {
    Line& line = entry->second;
    std::deque<std::unique_ptr<WriteJob>> kept;
    for (auto& job : line.jobs) {
      if (job->on_wire && !on_wire_too) {
        kept.push_back(std::move(job));
        continue;
      }
      active_.erase(job->action_id);
      --SizeOf(*job);
      dropped.push_back(std::move(*job));
    }
    line.jobs = std::move(kept);
    if (line.ticket != 0) --ready_;
    line.ticket = 0;
    line.active = !line.jobs.empty();
    if (line.active) {
      ++entry;
    } else {
      objects_.erase(entry++);
    }
  }
  for (std::deque<Entry>& lane : lanes_) lane.clear();
  std::sort(dropped.begin(), dropped.end(),
            [](const WriteJob& a, const WriteJob& b) { return a.action_id < b.action_id; });
  return dropped;
}

}  // namespace fairlead::kube
