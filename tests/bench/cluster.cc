#include "tests/bench/cluster.h"

#include "absl/strings/str_format.h"
#include "scheduler/model/api_names.h"
#include "scheduler/plugins/registry.h"
#include "tests/bench/harness.h"

namespace fairlead::bench {

using model::testing::MakeNode;

std::string Numbered(absl::string_view prefix, int64_t number) {
  return absl::StrFormat("%s-%06d", prefix, number);
}

model::Node GpuNode(int64_t number) {
  model::Node node = MakeNode(Numbered("node", number), 8, 128, 1024);
  node.meta.labels.Set(model::kGpuProductLabel, "NVIDIA-H100-80GB-HBM3");
  node.meta.labels.Set(model::kGpuMemoryLabel, "81559");
  node.meta.labels.Set(model::kGpuCountLabel, "8");
  node.meta.labels.Set(model::kZoneLabel, absl::StrCat("zone-", number % 3));
  node.meta.labels.Set(model::kArchLabel, "amd64");
  node.meta.labels.Set(model::kOsLabel, "linux");
  return node;
}

model::Pod GpuPod(absl::string_view prefix, int64_t number, absl::string_view queue) {
  return model::testing::PodBuilder(kNamespace, Numbered(prefix, number)).Gpus(1).Queue(queue);
}

model::Pod RunningOn(model::Pod pod, int64_t node) {
  pod.node_name = Numbered("node", node);
  pod.phase = model::PodPhase::kRunning;
  return pod;
}

namespace {

std::string OwnGroupName(absl::string_view pod) { return absl::StrCat("g-", pod); }

}  // namespace

model::PodGroup OwnGroup(model::Pod& pod) {
  model::PodGroup group = model::testing::MakeGroup(pod.meta.ns, OwnGroupName(pod.meta.name),
                                                    pod.meta.labels.Get(model::kQueueLabel), 1);
  const std::string* says = pod.meta.labels.Find(model::kPreemptibilityLabel);
  if (says != nullptr) {
    group.preemptibility = *says == "preemptible" ? model::Preemptibility::kPreemptible
                                                  : model::Preemptibility::kNonPreemptible;
  }
  pod.meta.annotations.Set(model::kPodGroupAnnotation, group.meta.name);
  return group;
}

std::string NameOf(absl::string_view name, bool groups) {
  return absl::StrCat(name, groups ? "/groups" : "");
}

core::Options LoopCluster::QuietOptions() {
  core::Options options = core::KwokOptions();
  options.hook.enabled = false;
  options.emit_events = false;
  options.evictions.max_in_flight = model::kUnlimited;  // a step shows all its decisions
  options.verdicts_in_flight = model::kUnlimited;
  return options;
}

LoopCluster::LoopCluster(core::Options options) {
  auto loop = core::DecisionLoop::Make(options, &hook::Catalog::BuiltIn());
  Require(loop.ok(), loop.status().ToString());
  loop_ = *std::move(loop);
}

void LoopCluster::AddJob(model::Pod pod, bool groups) {
  if (groups) Add(OwnGroup(pod));
  Add(pod);
}

void LoopCluster::RemoveJob(const model::Pod& pod, bool groups) {
  Remove(pod);
  if (!groups) return;
  loop_->Apply(model::Delete{model::Kind::kPodGroup, pod.meta.ns, OwnGroupName(pod.meta.name), ""});
}

void LoopCluster::AddNodes(int64_t count) {
  for (int64_t i = 0; i < count; ++i) Add(GpuNode(i));
}

void LoopCluster::Sync() {
  for (const model::Kind kind : model::kAllKinds) loop_->Apply(model::Synced{kind});
}

void LoopCluster::Remove(const model::Pod& pod) {
  loop_->Apply(model::Delete{model::Kind::kPod, pod.meta.ns, pod.meta.name, pod.meta.uid});
}

core::StepResult LoopCluster::DecideAnew() {
  model::NodePool pool;
  pool.meta.name = Numbered("spare", pools_++);
  pool.invalid = "made for this benchmark";
  Add(pool);
  core::StepResult result = Step();
  Require(result.decided, "nothing was decided anew");
  return result;
}

void LoopCluster::Confirm(const core::StepResult& result) {
  for (const model::Action& action : result.actions) {
    loop_->Apply(model::ActionResult{action.id, absl::OkStatus()});
  }
}

int64_t Writes(const core::StepResult& result) {
  return static_cast<int64_t>(result.actions.size()) - Count<model::EmitEvent>(result);
}

namespace {

state::StateOptions StateFor(const framework::Profile& profile) {
  core::Options options = core::KwokOptions();
  options.profiles = {profile};
  return core::StateOptionsFor(options);
}

}  // namespace

EngineCluster::EngineCluster(const framework::Profile& profile)
    : state_(StateFor(profile)), tree_(state_.resource_names()) {
  framework::Registry registry;
  Require(plugins::RegisterAll(registry).ok(), "plugins do not register");
  auto framework = framework::Framework::Make(profile, registry);
  Require(framework.ok(), framework.status().ToString());
  engine::EngineOptions options;
  options.hook_on = false;
  engine_ = std::make_unique<engine::Engine>(options, &state_, &tree_, *std::move(framework));
}

void EngineCluster::AddJob(model::Pod pod, bool groups) {
  if (groups) state_.UpsertPodGroup(OwnGroup(pod));
  state_.UpsertPod(pod);
}

void EngineCluster::RemoveJob(state::PodId pod, bool groups) {
  const state::PodRecord& record = state_.pod(pod);
  const std::string ns(record.ns), name(record.name), uid(record.uid);
  state_.RemovePod(ns, name, uid);
  if (groups) state_.RemovePodGroup(ns, OwnGroupName(name), "");
}

}  // namespace fairlead::bench
