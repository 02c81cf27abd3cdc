#include "sim/world/controllers.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sim/world/api_json.h"
#include "sim/world/facts.h"
#include "sim/world/objects.h"

namespace fairlead::sim::world {
namespace {

constexpr char kControllerActor[] = "controller";
constexpr absl::Duration kKeepDone = absl::Seconds(10);

// Names of owners may be longer than a label.
std::string OwnerOf(const Json& pod) {
  const Json& metadata = pod["metadata"];
  const auto owners = metadata.find("ownerReferences");
  return owners == metadata.end() || owners->empty() ? "" : TextAt(owners->front(), {"name"});
}

}  // namespace

Controllers::Controllers(EventQueue* time, ApiServer* server, uint64_t seed)
    : time_(time), server_(server), random_(seed) {
  server->Listen([this](const ApiServer::Commit& commit) {
    if (commit.type == ResourceType::kPods) OnPod(commit);
    if (commit.type == ResourceType::kJobs && commit.after != nullptr) OnJobObject(*commit.after);
    if (commit.type == ResourceType::kPodGroups && commit.before == nullptr) OnGroup(*commit.after);
  });
}

void Controllers::AddJob(const Operation& operation) {
  const std::string name = operation.Text("name");
  if (name.empty() || jobs_.contains(name)) return;
  Job& job = jobs_[name];
  job.fields = operation;
  job.ns = operation.Text("ns");
  job.wanted = operation.Number("pods", 1);
  job.stateful = operation.Text("kind") == "stateful";
  job.deployment = job.stateful || operation.Text("kind") == "deployment";
  const std::string grouping = operation.Text("grouping");
  job.late_group = grouping == "late";
  if (grouping == "own") {
    job.fields.With("group", name);
    server_->Create(ResourceType::kPodGroups, MakeGroup(operation), kControllerActor).IgnoreError();
  }
  if (grouping == "owners") CreateOwner(name, job);
  Wake(name, absl::Milliseconds(random_.Between(1, 200)));
}

ResourceType Controllers::OwnerType(const Job& job) {
  if (job.stateful) return ResourceType::kStatefulSets;
  return job.deployment ? ResourceType::kReplicaSets : ResourceType::kJobs;
}

// Pods are only told apart from those of other jobs by their owner.
void Controllers::CreateOwner(const std::string& name, Job& job) {
  const ResourceRow& row = RowOf(OwnerType(job));
  Json object = {{"apiVersion", std::string(row.group_version)},
                 {"kind", std::string(row.kind)},
                 {"metadata", {{"name", name}, {"namespace", job.ns}}}};
  if (job.deployment) {
    object["spec"] = {{"replicas", job.wanted},
                      {"selector", {{"matchLabels", {{"sim/job", JobLabel(name)}}}}}};
  } else {
    object["metadata"]["annotations"]["kai.scheduler/batch-min-member"] =
        absl::StrCat(job.fields.Number("min", 1));
    object["spec"] = {{"parallelism", job.wanted}, {"completions", job.wanted}};
  }
  server_->Create(row.type, std::move(object), kControllerActor).IgnoreError();
  const Json* made = server_->Find(row.type, job.ns, name);
  if (made != nullptr) job.uid = TextAt(*made, {"metadata", "uid"});
}

void Controllers::OnJobObject(const Json& object) {
  const std::string name = TextAt(object, {"metadata", "name"});
  const auto found = jobs_.find(name);
  if (found == jobs_.end() || found->second.uid != TextAt(object, {"metadata", "uid"})) return;
  Wake(name, absl::Milliseconds(found->second.fields.Number("suspend_ms", 20)));
}

bool Controllers::IsSuspended(const std::string& name, const Job& job) const {
  if (job.deployment || job.uid.empty() || job.fields.Text("suspend") == "ignored") return false;
  const Json* object = server_->Find(ResourceType::kJobs, job.ns, name);
  return object != nullptr && object->contains("spec") &&
         (*object)["spec"].value("suspend", Json()) == Json(true);
}

void Controllers::RemoveOwner(const std::string& name, const Job& job) {
  if (job.uid.empty()) return;
  server_->Remove(OwnerType(job), job.ns, name, kControllerActor).IgnoreError();
  CollectGroups(job.ns, job.uid);
}

// A group that is made after its owner has gone is collected too.
void Controllers::OnGroup(const Json& group) {
  const auto owners = group["metadata"].find("ownerReferences");
  if (owners == group["metadata"].end() || owners->empty()) return;
  const std::string ns = TextAt(group, {"metadata", "namespace"});
  const std::string name = TextAt(owners->front(), {"name"});
  const std::string uid = TextAt(owners->front(), {"uid"});
  for (const ResourceType type :
       {ResourceType::kJobs, ResourceType::kReplicaSets, ResourceType::kStatefulSets}) {
    const Json* owner = server_->Find(type, ns, name);
    if (owner != nullptr && TextAt(*owner, {"metadata", "uid"}) == uid) return;
  }
  CollectGroups(ns, uid);
}

void Controllers::CollectGroups(const std::string& ns, const std::string& owner_uid) {
  time_->After(absl::Milliseconds(random_.Between(1, 2000)), [this, ns, owner_uid] {
    std::vector<std::string> groups;
    server_->ForEach(ResourceType::kPodGroups, [&](const Json& group) {
      const auto owners = group["metadata"].find("ownerReferences");
      if (owners == group["metadata"].end() || owners->empty()) return;
      if (TextAt(owners->front(), {"uid"}) != owner_uid) return;
      groups.push_back(TextAt(group, {"metadata", "name"}));
    });
    for (const std::string& name : groups) {
      server_->Remove(ResourceType::kPodGroups, ns, name, kControllerActor).IgnoreError();
    }
  });
}

void Controllers::DeleteJob(const std::string& name) {
  const auto found = jobs_.find(name);
  if (found == jobs_.end()) return;
  const Job job = std::move(found->second);
  jobs_.erase(found);
  for (const std::string& pod : job.pods) {
    server_->Remove(ResourceType::kPods, job.ns, pod, kControllerActor).IgnoreError();
  }
  RemoveOwner(name, job);
  server_->Remove(ResourceType::kPodGroups, job.ns, name, kControllerActor).IgnoreError();
  server_->Remove(ResourceType::kPodDisruptionBudgets, job.ns, name, kControllerActor)
      .IgnoreError();
}

void Controllers::Scale(const std::string& name, int64_t pods) {
  const auto found = jobs_.find(name);
  if (found == jobs_.end()) return;
  found->second.wanted = pods;
  if (!found->second.uid.empty()) {
    const int64_t minimum = std::min(pods, found->second.fields.Number("min", 1));
    server_
        ->Modify(
            OwnerType(found->second), found->second.ns, name,
            [&](Json& changed) {
              if (found->second.deployment) {
                changed["spec"]["replicas"] = pods;
                return absl::OkStatus();
              }
              changed["spec"]["parallelism"] = changed["spec"]["completions"] = pods;
              changed["metadata"]["annotations"]["kai.scheduler/batch-min-member"] =
                  absl::StrCat(minimum);
              return absl::OkStatus();
            },
            kControllerActor)
        .IgnoreError();
  }
  Wake(name, absl::Milliseconds(50));
}

void Controllers::SetSuspended(const std::string& name, bool suspended) {
  const auto found = jobs_.find(name);
  if (found == jobs_.end() || found->second.uid.empty() || found->second.deployment) return;
  server_
      ->Modify(
          ResourceType::kJobs, found->second.ns, name,
          [suspended](Json& changed) {
            changed["spec"]["suspend"] = suspended;
            changed["metadata"].erase("labels");
            return absl::OkStatus();
          },
          kControllerActor)
      .IgnoreError();
}

void Controllers::Suspend(const std::string& name, absl::Duration lasting) {
  SetSuspended(name, true);
  time_->After(lasting, [this, name] { SetSuspended(name, false); });
}

void Controllers::AddBudget(const std::string& name, int64_t min_available,
                            const std::string& unhealthy) {
  const auto found = jobs_.find(name);
  if (found == jobs_.end() || found->second.min_available >= 0) return;
  found->second.min_available = min_available;
  Json budget = {{"apiVersion", "policy/v1"},
                 {"kind", "PodDisruptionBudget"},
                 {"metadata", {{"name", name}, {"namespace", found->second.ns}}},
                 {"spec",
                  {{"minAvailable", min_available},
                   {"selector", {{"matchLabels", {{"sim/job", JobLabel(name)}}}}}}}};
  if (!unhealthy.empty()) budget["spec"]["unhealthyPodEvictionPolicy"] = unhealthy;
  server_->Create(ResourceType::kPodDisruptionBudgets, std::move(budget), kControllerActor)
      .IgnoreError();
  Wake(name, absl::Milliseconds(50));
}

void Controllers::OnPod(const ApiServer::Commit& commit) {
  const Json& object = commit.after != nullptr ? *commit.after : *commit.before;
  const std::string owner = OwnerOf(object);
  const auto found = jobs_.find(owner);
  if (found == jobs_.end()) return;
  const std::string name = TextAt(object, {"metadata", "name"});
  Job& job = found->second;
  if (commit.after == nullptr) {
    // A job counts a pod that succeeded although it is gone.
    if (job.pods.erase(name) > 0 && ReadPod(*commit.before).succeeded) ++job.succeeded;
  } else if (commit.before == nullptr) {
    job.pods.insert(name);
    if (job.late_group) {
      const auto delay = absl::Milliseconds(job.fields.Number("late_ms", 1000));
      time_->After(delay, [this, owner, name] { Group(owner, name); });
    }
  } else if (commit.actor == kControllerActor) {
    return;
  }
  Wake(owner, absl::Milliseconds(20));
}

void Controllers::Wake(const std::string& name, absl::Duration delay) {
  Job& job = jobs_.at(name);
  if (job.scheduled) return;
  job.scheduled = true;
  time_->After(delay, [this, name] { Reconcile(name); });
}

void Controllers::Reconcile(const std::string& name) {
  const auto found = jobs_.find(name);
  if (found == jobs_.end()) return;
  Job& job = found->second;
  job.scheduled = false;
  int64_t succeeded = job.succeeded;
  std::vector<std::string> live, failed;
  for (const std::string& pod : job.pods) {
    const Json* object = server_->Find(ResourceType::kPods, job.ns, pod);
    if (object == nullptr) continue;
    const PodLife life = ReadPodLife(*object);
    if (life.succeeded) ++succeeded;
    if (!life.terminal && !life.terminating) live.push_back(pod);
  }
  if (!job.deployment && succeeded >= job.wanted) {
    if (job.pods.empty()) {
      time_->After(kKeepDone, [this, name] { DeleteJob(name); });
    }
    return;
  }
  int64_t wanted = job.deployment ? job.wanted : job.wanted - succeeded;
  if (IsSuspended(name, job)) wanted = 0;
  const auto gap = absl::Milliseconds(job.fields.Number("gap_ms"));
  if (gap > absl::ZeroDuration() && wanted > static_cast<int64_t>(live.size()) + 1) {
    wanted = static_cast<int64_t>(live.size()) + 1;
    Wake(name, gap);
  }
  if (job.stateful) {
    FillNumbers(name, job);
  } else {
    for (auto i = static_cast<int64_t>(live.size()); i < wanted; ++i) CreatePod(name, job);
  }
  for (auto i = static_cast<int64_t>(live.size()); i > wanted; --i) {
    server_->Remove(ResourceType::kPods, job.ns, live[static_cast<size_t>(i - 1)], kControllerActor)
        .IgnoreError();
  }
  if (job.min_available >= 0) UpdateBudget(name, job);
}

void Controllers::FillNumbers(const std::string& name, Job& job) {
  for (int64_t number = 0; number < job.wanted; ++number) {
    if (job.pods.contains(absl::StrCat(name, "-", number))) continue;
    job.next_number = number;
    CreatePod(name, job);
  }
}

// The sub-group that has the fewest pods.
std::string Controllers::SmallestPart(const Job& job, int64_t parts) const {
  std::vector<int64_t> counts(static_cast<size_t>(parts), 0);
  for (const std::string& pod : job.pods) {
    const Json* object = server_->Find(ResourceType::kPods, job.ns, pod);
    if (object == nullptr) continue;
    const PodFacts facts = ReadPod(*object);
    for (size_t i = 0; i < counts.size(); ++i) {
      if (facts.sub_group == absl::StrCat("s", i) && !facts.terminating) ++counts[i];
    }
  }
  return absl::StrCat("s", std::min_element(counts.begin(), counts.end()) - counts.begin());
}

void Controllers::CreatePod(const std::string& name, Job& job) {
  const std::string pod = absl::StrCat(name, "-", job.next_number++);
  Json object = MakePod(job.fields, pod);
  // Of the ReplicaSets a pod-grouper makes gangs of those of Knative.
  if (job.deployment && job.late_group) {
    object["metadata"]["labels"]["serving.knative.dev/revision"] = JobLabel(name);
  }
  const int64_t parts = job.fields.Number("sub_groups");
  if (parts > 0) {
    object["metadata"]["labels"]["kai.scheduler/subgroup-name"] = SmallestPart(job, parts);
  }
  object["metadata"]["ownerReferences"] =
      Json::array({{{"apiVersion", std::string(RowOf(OwnerType(job)).group_version)},
                    {"kind", job.stateful     ? "StatefulSet"
                             : job.deployment ? "ReplicaSet"
                                              : "Job"},
                    {"name", name},
                    {"uid", job.uid.empty() ? absl::StrCat("owner-", name) : job.uid},
                    {"controller", true}}});
  if (!job.uid.empty() && !job.deployment) object["spec"]["restartPolicy"] = "Never";
  ++created_;
  server_->Create(ResourceType::kPods, std::move(object), kControllerActor).IgnoreError();
}

// As a pod-grouper that was slow: the group comes after the pods, and so does the annotation.
void Controllers::Group(const std::string& name, const std::string& pod) {
  const auto found = jobs_.find(name);
  if (found == jobs_.end()) return;
  server_->Create(ResourceType::kPodGroups, MakeGroup(found->second.fields), "pod-grouper")
      .IgnoreError();
  server_
      ->Modify(
          ResourceType::kPods, found->second.ns, pod,
          [&](Json& changed) {
            changed["metadata"]["annotations"]["pod-group-name"] = name;
            return absl::OkStatus();
          },
          "pod-grouper")
      .IgnoreError();
}

void Controllers::UpdateBudget(const std::string& name, const Job& job) {
  int64_t healthy = 0;
  for (const std::string& pod : job.pods) {
    const Json* object = server_->Find(ResourceType::kPods, job.ns, pod);
    if (object == nullptr) continue;
    const PodFacts facts = ReadPod(*object);
    if (facts.running && facts.ready && !facts.terminating) ++healthy;
  }
  const int64_t allowed = std::max<int64_t>(0, healthy - job.min_available);
  server_
      ->Modify(
          ResourceType::kPodDisruptionBudgets, job.ns, name,
          [&](Json& changed) {
            changed["status"] = {{"disruptionsAllowed", allowed},
                                 {"currentHealthy", healthy},
                                 {"desiredHealthy", job.min_available},
                                 {"expectedPods", static_cast<int64_t>(job.pods.size())},
                                 {"observedGeneration", 1}};
            return absl::OkStatus();
          },
          kControllerActor)
      .IgnoreError();
}

}  // namespace fairlead::sim::world
