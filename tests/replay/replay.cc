#include "tests/replay/replay.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "queues/tree.h"
#include "scheduler/engine/engine.h"
#include "scheduler/framework/framework.h"
#include "scheduler/model/api_names.h"
#include "scheduler/plugins/registry.h"
#include "scheduler/state/cluster_state.h"
#include "tests/replay/go_random.h"

namespace fairlead::replay {
namespace {

absl::StatusOr<framework::Profile> MakeProfile(const std::string& plugin,
                                               const std::vector<TracePod>& pods) {
  framework::Profile profile = framework::DefaultProfile();
  if (plugin == "default") return profile;
  const bool learned = plugin == "GpuFragmentation:learned";
  if (!learned && plugin != "GpuFragmentation") {
    return absl::InvalidArgumentError(absl::StrCat("there is no --plugin ", plugin));
  }
  for (framework::ProfilePlugin& entry : profile.plugins) {
    if (entry.name == "GpuSharing") entry.score = false;
    if (entry.name == "NodePlacement") {
      entry = {"GpuFragmentation", 1, learned ? "" : TypicalArgs(pods)};
    }
  }
  return profile;
}

model::Queue OpenQueue() {
  model::Queue queue;
  queue.meta.name = state::StateOptions().default_queue;
  queue.meta.uid = "uid-queue";
  for (model::QueueResource* resource : {&queue.gpu, &queue.cpu, &queue.memory}) {
    *resource = {model::kUnlimited, model::kUnlimited, 1'000'000};
  }
  return queue;
}

class Cluster {
 public:
  explicit Cluster(std::unique_ptr<framework::Framework> framework)
      : state_(Options()), tree_(state_.resource_names()) {
    engine::EngineOptions options;
    options.hook_on = false;
    options.consolidation = options.reclaim = options.preempt = options.stale_gangs = false;
    engine_ = std::make_unique<engine::Engine>(options, &state_, &tree_, std::move(framework));
    tree_.Upsert(OpenQueue());
    engine_->OnQueuesChanged();
  }
  void Add(const model::Node& node) { state_.UpsertNode(node); }
  // False: it found no place and is removed again.
  bool Offer(const model::Pod& pod) {
    state_.UpsertPod(pod);
    const engine::CycleResult cycle = engine_->RunCycle(pod.meta.creation);
    if (!cycle.bindings.empty()) return true;
    state_.RemovePod(pod.meta.ns, pod.meta.name, pod.meta.uid);
    return false;
  }
  [[nodiscard]] std::string CheckConsistency() const { return engine_->CheckConsistency(); }

 private:
  static state::StateOptions Options() {
    state::StateOptions options;
    options.scheduler_names = {model::kDefaultSchedulerName};
    return options;
  }
  state::ClusterState state_;
  queues::QueueTree tree_;
  std::unique_ptr<engine::Engine> engine_;
};

std::vector<std::string> Names(const std::vector<TraceNode>& nodes,
                               const std::optional<int64_t>& shuffle) {
  std::vector<std::string> names;
  for (const TraceNode& node : nodes) names.push_back(node.name);
  if (shuffle.has_value()) GoRandom(*shuffle).Shuffle(names);
  return names;
}

// Means over the samples that round to a percent.
class Curve {
 public:
  void Add(double arrived_percent, double allocated_percent) {
    const auto at = static_cast<size_t>(std::floor(arrived_percent + 0.5));
    if (at >= sums_.size()) sums_.resize(at + 1, {0, 0});
    sums_[at].first += allocated_percent;
    ++sums_[at].second;
  }
  [[nodiscard]] std::vector<double> Means() const {
    std::vector<double> means;
    for (const auto& [sum, count] : sums_) {
      means.push_back(count > 0 ? sum / count : std::nan(""));
    }
    return means;
  }

 private:
  std::vector<std::pair<double, int>> sums_;
};

}  // namespace

double ReplayResult::Final() const {
  for (size_t i = curve.size(); i-- > 0;) {
    if (!std::isnan(curve[i])) return curve[i];
  }
  return 0;
}

absl::StatusOr<ReplayResult> Replay(const std::vector<TraceNode>& nodes,
                                    const std::vector<TracePod>& pods,
                                    const ReplayOptions& options) {
  ReplayResult result;
  for (const TraceNode& node : nodes) result.capacity_milli += node.gpus * 1000;
  if (result.capacity_milli == 0) return absl::InvalidArgumentError("the nodes have no GPUs");
  framework::Registry registry;
  FAIRLEAD_RETURN_IF_ERROR(plugins::RegisterAll(registry));
  FAIRLEAD_ASSIGN_OR_RETURN(const framework::Profile profile, MakeProfile(options.plugin, pods));
  FAIRLEAD_ASSIGN_OR_RETURN(std::unique_ptr<framework::Framework> framework,
                            framework::Framework::Make(profile, registry));
  Cluster cluster(std::move(framework));
  const std::vector<std::string> names = Names(nodes, options.shuffle_names);
  for (size_t i = 0; i < nodes.size(); ++i) cluster.Add(ToNode(nodes[i], names[i]));

  Curve curve;
  const auto percent = [&](int64_t milli) {
    return 100.0 * static_cast<double>(milli) / static_cast<double>(result.capacity_milli);
  };
  const std::vector<size_t> order =
      PublishedOrder(pods, options.seed, result.capacity_milli, options.percent);
  for (size_t number = 0; number < order.size(); ++number) {
    const TracePod& pod = pods[order[number]];
    // A pod beyond the percentage does not arrive.
    if (result.arrived_milli + pod.Demand() > result.capacity_milli * options.percent / 100) break;
    result.arrived_milli += pod.Demand();
    if (cluster.Offer(ToPod(pod, number))) {
      result.allocated_milli += pod.Demand();
      ++result.placed;
    } else {
      ++result.refused;
    }
    curve.Add(percent(result.arrived_milli), percent(result.allocated_milli));
  }
  result.curve = curve.Means();
  const std::string wrong = cluster.CheckConsistency();
  if (!wrong.empty()) return absl::InternalError(absl::StrCat("inconsistent: ", wrong));
  return result;
}

}  // namespace fairlead::replay
