#include "sim/world/foreign_scheduler.h"

#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "sim/world/facts.h"
#include "sim/world/objects.h"

namespace fairlead::sim::world {
namespace {

constexpr char kForeignSchedulerActor[] = "default-scheduler";
constexpr absl::Duration kRetry = absl::Seconds(5);

}  // namespace

void BindAs(ApiServer* server, absl::string_view actor, const std::string& ns,
            const std::string& name, absl::string_view uid, const std::string& node) {
  server
      ->Modify(
          ResourceType::kPods, ns, name,
          [&](Json& pod) -> absl::Status {
            if (pod["metadata"].contains("deletionTimestamp")) {
              return absl::FailedPreconditionError("it is terminating");
            }
            if (!uid.empty() && TextAt(pod, {"metadata", "uid"}) != uid) {
              return absl::FailedPreconditionError("it is another pod");
            }
            pod["spec"]["nodeName"] = node;
            return absl::OkStatus();
          },
          actor)
      .IgnoreError();
}

ForeignScheduler::ForeignScheduler(EventQueue* time, ApiServer* server, uint64_t seed)
    : time_(time), server_(server), random_(seed) {
  server->Listen([this](const ApiServer::Commit& commit) {
    if (commit.type != ResourceType::kPods || commit.before != nullptr) return;
    const PodFacts pod = ReadPod(*commit.after);
    if (pod.scheduler != kForeignSchedulerActor || !pod.node.empty()) return;
    time_->After(absl::Milliseconds(random_.Between(5, 400)),
                 [this, ns = pod.ns, name = pod.name] { Decide(ns, name); });
  });
  server->Precede([this](const kube::HttpRequest& request) { Race(request); });
}

// Once a node: a removal that is always raced would never end.
void ForeignScheduler::Race(const kube::HttpRequest& request) {
  constexpr absl::string_view kNodes = "/api/v1/nodes/";
  if (time_->now() >= race_until_ || request.method != "PATCH") return;
  if (!absl::StartsWith(request.path, kNodes)) return;
  if (!absl::StrContains(request.body, "fairlead.dev/to-be-removed")) return;
  const std::string name = request.path.substr(kNodes.size());
  const Json* const object = server_->Find(ResourceType::kNodes, "", name);
  if (object == nullptr || ReadNode(*object).removing || !raced_.insert(name).second) return;
  Operation fields;
  fields.With("ns", "team-b")
      .With("scheduler", kForeignSchedulerActor)
      .With("cpu", 100)
      .With("run", 20);
  Json pod = MakePod(fields, absl::StrCat("race-", name));
  pod["spec"]["nodeName"] = name;
  server_->Create(ResourceType::kPods, std::move(pod), kForeignSchedulerActor).IgnoreError();
}

void ForeignScheduler::Decide(const std::string& ns, const std::string& name) {
  const Json* object = server_->Find(ResourceType::kPods, ns, name);
  if (object == nullptr) return;
  const PodFacts pod = ReadPod(*object);
  if (!pod.node.empty() || pod.terminating) return;
  std::map<std::string, Amounts> used;
  server_->ForEach(ResourceType::kPods, [&](const Json& other) {
    const PodLife life = ReadPodLife(other);
    if (life.active()) used[life.node] += ReadPod(other).requests;
  });
  std::vector<std::string> fitting;
  server_->ForEach(ResourceType::kNodes, [&](const Json& other) {
    const NodeFacts node = ReadNode(other);
    if (!node.ready || node.tainted || node.unschedulable) return;
    Amounts need = used[node.name];
    need += pod.requests;
    if (need.FitsIn(node.allocatable)) fitting.push_back(node.name);
  });
  if (fitting.empty()) {
    time_->After(kRetry, [this, ns, name] { Decide(ns, name); });
    return;
  }
  const std::string node = fitting[random_.Below(fitting.size())];
  const int64_t lag_ms = absl::ToInt64Milliseconds(lag_);
  time_->After(absl::Milliseconds(random_.Between(0, lag_ms)),
               [this, ns, name, node] { Bind(ns, name, node); });
}

void ForeignScheduler::Bind(const std::string& ns, const std::string& name,
                            const std::string& node) {
  if (server_->Find(ResourceType::kNodes, "", node) == nullptr) return Decide(ns, name);
  BindAs(server_, kForeignSchedulerActor, ns, name, /*uid=*/"", node);
}

}  // namespace fairlead::sim::world
