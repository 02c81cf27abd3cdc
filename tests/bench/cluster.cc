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

model::PodGroup OwnGroup(model::Pod& pod, absl::string_view queue) {
  model::PodGroup group =
      model::testing::MakeGroup(pod.meta.ns, absl::StrCat("g-", pod.meta.name), queue, 1);
  const std::string* says = pod.meta.labels.Find(model::kPreemptibilityLabel);
  if (says != nullptr) {
    group.preemptibility = *says == "preemptible" ? model::Preemptibility::kPreemptible
                                                  : model::Preemptibility::kNonPreemptible;
  }
  pod.meta.annotations.Set(model::kPodGroupAnnotation, group.meta.name);
  return group;
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

void LoopCluster::AddNodes(int64_t count) {
  for (int64_t i = 0; i < count; ++i) Add(GpuNode(i));
}

void LoopCluster::Sync() {
  for (const model::Kind kind : model::kAllKinds) loop_->Apply(model::Synced{kind});
}

void LoopCluster::Remove(const model::Pod& pod) {
  loop_->Apply(model::Delete{model::Kind::kPod, pod.meta.ns, pod.meta.name, pod.meta.uid});
}

void LoopCluster::Confirm(const core::StepResult& result) {
  for (const model::Action& action : result.actions) {
    loop_->Apply(model::ActionResult{action.id, absl::OkStatus()});
  }
}

int64_t Writes(const core::StepResult& result) {
  return static_cast<int64_t>(result.actions.size()) - Count<model::EmitEvent>(result);
}

EngineCluster::EngineCluster() : state_(core::KwokOptions().state), tree_(state_.resource_names()) {
  framework::Registry registry;
  Require(plugins::RegisterAll(registry).ok(), "plugins do not register");
  auto framework = framework::Framework::Make(framework::DefaultProfile(), registry);
  Require(framework.ok(), framework.status().ToString());
  engine::EngineOptions options;
  options.hook_on = false;
  engine_ = std::make_unique<engine::Engine>(options, &state_, &tree_, *std::move(framework));
}

}  // namespace fairlead::bench
