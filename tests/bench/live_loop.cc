#include "tests/bench/live_loop.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"

namespace fairlead::bench {
namespace {

kube::EncodedWrite CreateNamespace() {
  return {"POST", "/api/v1/namespaces", kube::kJson,
          absl::StrCat(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":")", kNamespace,
                       R"("}})")};
}

bool PodGoes(const model::ClusterEvent& event) {
  if (const auto* gone = std::get_if<model::Delete>(&event)) return gone->kind == model::Kind::kPod;
  const auto* seen = std::get_if<model::Upsert>(&event);
  const auto* pod = seen == nullptr ? nullptr : std::get_if<model::Pod>(&seen->object);
  return pod != nullptr && pod->meta.deletion.has_value();
}

}  // namespace

kube::EncodedWrite CreatePod(const PodToCreate& pod) {
  const std::string node =
      pod.node.empty() ? "" : absl::StrCat(R"("nodeName":")", pod.node, R"(",)");
  const std::string annotations =
      pod.group.empty() ? ""
                        : absl::StrCat(R"(,"annotations":{")", model::kPodGroupAnnotation, R"(":")",
                                       pod.group, R"("})");
  return {"POST", absl::StrCat("/api/v1/namespaces/", kNamespace, "/pods"), kube::kJson,
          absl::StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", pod.name,
                       R"(","labels":{"kai.scheduler/queue":")", pod.queue, R"("})", annotations,
                       R"(},"spec":{"schedulerName":"fairlead",)", node,
                       R"("terminationGracePeriodSeconds":0,"containers":[{"name":"main",)"
                       R"("image":"none","resources":{"requests":{"cpu":"1","memory":"1Gi"},)"
                       R"("limits":{"nvidia.com/gpu":")",
                       pod.gpus, R"("}}}]}})")};
}

kube::EncodedWrite CreatePodGroup(absl::string_view name, absl::string_view queue) {
  return {"POST",
          absl::StrCat("/apis/scheduling.run.ai/v2alpha2/namespaces/", kNamespace, "/podgroups"),
          kube::kJson,
          absl::StrCat(R"({"apiVersion":"scheduling.run.ai/v2alpha2","kind":"PodGroup",)",
                       R"("metadata":{"name":")", name, R"("},"spec":{"minMember":1,"queue":")",
                       queue, R"("}})")};
}

void AddPod(std::vector<kube::EncodedWrite>& create, PodToCreate pod, bool groups) {
  if (groups) {
    pod.group = absl::StrCat("g-", pod.name);
    create.push_back(CreatePodGroup(pod.group, pod.queue));
  }
  create.push_back(CreatePod(pod));
}

kube::EncodedWrite MarkRunning(absl::string_view name) {
  return {"PATCH", absl::StrCat("/api/v1/namespaces/", kNamespace, "/pods/", name, "/status"),
          "application/merge-patch+json", R"({"status":{"phase":"Running"}})"};
}

void SendOrEnd(ApiClient& api, const std::vector<kube::EncodedWrite>& writes,
               absl::string_view what, int in_flight) {
  Require(api.SendAll(writes, in_flight) == static_cast<int64_t>(writes.size()), what);
}

void CreateNodes(ApiClient& api, int64_t count) {
  std::vector<kube::EncodedWrite> create, status;
  for (int64_t n = 0; n < count; ++n) {
    model::Node node = GpuNode(n);
    node.meta.uid.clear();
    create.push_back(kube::EncodeCreateNode(node));
    status.push_back(kube::EncodeNodeStatus(node));
  }
  SendOrEnd(api, create, "nodes were not created");
  SendOrEnd(api, status, "the nodes' status was not written");
}

std::unique_ptr<ControlPlane> StartOrSkip(Run& run, absl::string_view name,
                                          const std::string& crds) {
  if (run.control_plane.empty()) {
    run.report.Skip(name, "no control plane; `make test` builds one (it needs Go)");
    return nullptr;
  }
  auto plane = ControlPlane::Start(run.control_plane, crds);
  if (!plane.ok()) {
    run.report.Skip(name, plane.status().ToString());
    return nullptr;
  }
  ApiClient api((*plane)->config(), 1);
  SendOrEnd(api, {CreateNamespace()}, "the namespace was not created");
  return *std::move(plane);
}

LiveLoop::LiveLoop(const ControlPlane& plane, const core::Options& options,
                   const std::vector<model::Queue>& queues,
                   const kube::WriteWindow::Options& window)
    : api_(plane.config(), 2) {
  auto loop = core::DecisionLoop::Make(options, &hook::Catalog::BuiltIn());
  Require(loop.ok(), loop.status().ToString());
  loop_ = *std::move(loop);
  source_ =
      std::make_unique<kube::ClusterSource>(api_.transport(), api_.transport(), clock_, queue_);
  kube::ExecutorOptions executor_options;
  executor_options.identity.host = "bench";
  executor_options.window = window;
  executor_ = std::make_unique<kube::Executor>(
      api_.transport(), api_.transport(), clock_, queue_, executor_options,
      // A cloud that accepts every order at once.
      [this](const model::Action& action) {
        queue_.Push(model::ActionResult{action.id, absl::OkStatus()});
      });
  for (const model::Queue& queue : queues) loop_->Apply(model::Upsert{queue});
}

LiveLoop::~LiveLoop() {
  executor_->Drain(absl::Seconds(20));
  source_->Stop();
  api_.transport().Shutdown();
}

void LiveLoop::Read() {
  source_->Start();
  while (!loop_->synced()) Drain(absl::Seconds(1));
}

void LiveLoop::Decide() {
  const Stopwatch watch;
  core::StepResult result = loop_->Step(clock_.Now());
  gather_until_ = clock_.Steady() + kube::GatherAfter(absl::Seconds(watch.Seconds()));
  wake_at_ = result.wake_at;
  for (model::Action& action : result.actions) {
    if (std::holds_alternative<model::BindPod>(action.what)) binds_.insert(action.id);
    if (std::holds_alternative<model::EvictPod>(action.what)) evictions_.insert(action.id);
    executor_->Submit(std::move(action));
  }
  ++decisions_.count;
  decisions_.seconds += watch.Seconds();
  decisions_.cpu_seconds += watch.ThreadCpuSeconds();
}

void LiveLoop::Wait() {
  Drain(std::clamp(wake_at_ - clock_.Now(), absl::ZeroDuration(), absl::Seconds(1)));
}

void LiveLoop::Drain(absl::Duration wait) {
  events_.clear();
  queue_.DrainInto(events_, wait, gather_until_ - clock_.Steady());
  for (const model::ClusterEvent& event : events_) {
    if (const auto* result = std::get_if<model::ActionResult>(&event)) {
      if (binds_.erase(result->action_id) > 0) ++(result->status.ok() ? bound_ : refused_);
      if (evictions_.erase(result->action_id) > 0 && result->status.ok()) ++evicted_;
    }
    saw_pod_go_ = saw_pod_go_ || PodGoes(event);
    loop_->Apply(event);
  }
}

}  // namespace fairlead::bench
