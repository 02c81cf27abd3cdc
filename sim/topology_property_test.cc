// Random clusters, partly filled, and random gangs that have to be in one zone or on one node. At
// every moment the pods of a set run in one domain. No more nodes are requested than pods need, and
// hardly any stays unused. (A starting pod may find a better place than its nominated node and
// leave that to a pod whose own node is then not needed.) In the end all have run and no node is
// left. With stock-outs, launches that never arrive and restarts, all of this holds except the
// bound on unused nodes.
//
// sim/property_testing.h says how to choose other worlds.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"
#include "sim/property_testing.h"

namespace fairlead::sim {
namespace {

constexpr absl::Duration kTopologyEnd = absl::Hours(12);
constexpr absl::Duration kLook = absl::Seconds(20);

// Pods that have to share a value of a node label, by the prefix of their names.
struct BoundSet {
  std::string prefix, label;
};

class TopologyWorld : public testing::RandomWorld {
 public:
  TopologyWorld(uint64_t seed, bool with_faults)
      : RandomWorld(seed, kTopologyEnd), elastic_(with_faults) {
    scenario_.hook.unneeded_after = absl::Minutes(random_.Between(1, 15));
    scenario_.hook.ready_timeout = absl::Minutes(10);
    AddPlatform();
    AddOldNodes();
    for (int64_t i = random_.Between(1, 6); i > 0; --i) AddGang(i);
    if (with_faults) AddFaults();
  }

  [[nodiscard]] const std::vector<BoundSet>& sets() const { return sets_; }
  // Pods that could need a node.
  [[nodiscard]] int64_t pods() const { return pods_; }

  [[nodiscard]] hook::Catalog Catalog() {
    const auto type = [&](const char* name, int64_t gpus, int64_t price_micro_usd) {
      hook::InstanceType made;
      made.name = name;
      made.cpu_milli = 8000 * gpus;
      made.memory_bytes = gpus << 36;
      made.gpu_model = "Test-GPU";
      made.gpu_count = gpus;
      made.on_demand_micro_usd = price_micro_usd;
      for (const std::string& zone : zones_) {
        if (gpus == 1 || random_.Below(3) > 0) made.zones.push_back(zone);
      }
      if (made.zones.empty()) made.zones = {zones_.back()};
      return made;
    };
    return hook::Catalog::FromTypes(
        {type("a1", 1, 1'000'000), type("a4", 4, 1'000'000 * random_.Between(3, 5))});
  }

 private:
  void AddPlatform() {
    Manifest& manifest = Step(absl::ZeroDuration()).apply[0];
    model::Queue queue;
    queue.meta.name = "q";
    queue.cpu = queue.memory = queue.gpu = {model::kUnlimited, model::kUnlimited, 1'000'000};
    manifest.objects.emplace_back(queue);
    model::Topology topology;
    topology.meta.name = "t";
    topology.levels = {{model::kZoneLabel, "zone"}, {model::kHostnameLabel, "host"}};
    manifest.objects.emplace_back(topology);
    for (int64_t i = random_.Between(2, 3); i > 0; --i) zones_.push_back(absl::StrCat("z", i));
    std::sort(zones_.begin(), zones_.end());
  }

  // Adds nodes that existed before, and pods that occupy some of them for a while.
  void AddOldNodes() {
    Manifest& manifest = Step(absl::ZeroDuration()).apply[0];
    int64_t gpus = 0;
    for (int64_t i = random_.Between(0, 5); i > 0; --i) {
      model::Node node;
      node.meta.name = absl::StrCat("old-", i);
      node.meta.labels.Set(model::kHostnameLabel, node.meta.name);
      node.meta.labels.Set("old", "true");
      // Some are outside the tree.
      if (random_.Below(5) > 0) node.meta.labels.Set(model::kZoneLabel, Zone());
      const int64_t has = random_.Between(1, 4);
      gpus += has;
      node.allocatable = {{"cpu", 8000 * has}, {"memory", has << 36}, {"pods", 110}};
      model::Set(node.allocatable, model::kGpuName, has * 1000);
      node.ready = true;
      manifest.objects.emplace_back(node);
    }
    if (gpus == 0) return;
    run_seconds_ = random_.Between(300, 7200);
    ControllerSpec fill = Job("fill", random_.Between(0, gpus));
    fill.pod_template.spec.node_selector.Set("old", "true");
    if (fill.replicas > 0) Step(absl::Seconds(5)).apply[0].controllers = {fill};
  }

  std::string Zone() { return zones_[random_.Below(zones_.size())]; }

  ControllerSpec Job(const std::string& name, int64_t pods) {
    ControllerSpec spec;
    spec.kind = ControllerKind::kJob;
    spec.ns = "ns";
    spec.name = name;
    spec.replicas = spec.completions = pods;
    model::Pod& pod = spec.pod_template;
    pod.meta.ns = pod.spec.ns = "ns";
    pod.scheduler_name = model::kDefaultSchedulerName;
    pod.meta.labels.Set(model::kQueueLabel, "q");
    pod.meta.annotations.Set(kRunSecondsAnnotation, absl::StrCat(run_seconds_));
    pod.spec.requests = {{"cpu", 1000}, {"memory", int64_t{1} << 30}};
    model::Set(pod.spec.requests, model::kGpuName, 1000);
    return spec;
  }

  void AddMembers(const model::PodGroup& group, const std::string& sub_group, int64_t pods,
                  Manifest& manifest) {
    const std::string name = absl::StrCat(group.meta.name, sub_group);
    ControllerSpec job = Job(name, pods);
    job.pod_template.meta.annotations.Set(model::kPodGroupAnnotation, group.meta.name);
    if (!sub_group.empty()) job.pod_template.meta.labels.Set(model::kSubGroupLabel, sub_group);
    manifest.controllers.push_back(std::move(job));
    pods_ += pods;
  }

  void AddGang(int64_t number) {
    Manifest& manifest = Step(absl::Seconds(random_.Between(30, 3600))).apply[0];
    run_seconds_ = random_.Between(300, 7200);
    model::PodGroup group;
    group.meta.ns = "ns";
    group.meta.name = absl::StrCat("g", number);
    group.queue = "q";
    const auto bind = [this](const std::string& prefix, bool host) {
      sets_.push_back({prefix, host ? model::kHostnameLabel : model::kZoneLabel});
      return model::TopologyConstraint{"t", host ? "host" : model::kZoneLabel,
                                       !host && random_.Below(3) == 0 ? "host" : ""};
    };
    const uint64_t shape = random_.Below(4);
    if (shape <= 1) {  // one set
      const bool host = shape == 1;
      const int64_t pods = random_.Between(2, host ? 4 : 6);
      // Pods above the minimum queue behind other pods, which may take their node.
      group.min_member = static_cast<int32_t>(elastic_ ? random_.Between(1, pods) : pods);
      group.topology = bind(group.meta.name + "-", host);
      AddMembers(group, "", pods, manifest);
    } else {  // sub-groups, each bound by itself, perhaps within one zone
      if (shape == 3) group.topology = bind(group.meta.name, /*host=*/false);
      for (const char* name : {"a", "b"}) {
        model::SubGroup sub;
        sub.name = name;
        const int64_t pods = random_.Between(1, 4);
        sub.min_member = static_cast<int32_t>(pods);
        sub.topology = bind(absl::StrCat(group.meta.name, name), random_.Below(2) == 0);
        group.sub_groups.push_back(sub);
        AddMembers(group, name, pods, manifest);
      }
    }
    manifest.objects.emplace_back(group);
  }

  void AddFaults() {
    for (int64_t i = random_.Between(1, 4); i > 0; --i) {
      ScriptedFault fault;
      const uint64_t kind = random_.Below(4);
      fault.kind = kind <= 1   ? ScriptedFault::Kind::kStockout
                   : kind == 2 ? ScriptedFault::Kind::kNeverArrives
                               : ScriptedFault::Kind::kRestart;
      fault.instance_type = random_.Below(2) == 0 ? "a1" : "a4";
      fault.zone = Zone();
      fault.duration = absl::Minutes(random_.Between(5, 60));
      Step(absl::Seconds(random_.Between(1, 5400))).faults = {fault};
    }
  }

  bool elastic_;
  std::vector<std::string> zones_;
  std::vector<BoundSet> sets_;
  int64_t pods_ = 0, run_seconds_ = 0;
};

// The first set with pods in two domains at once. "" if there is none.
std::string TornSet(const ApiServer& server, const std::vector<BoundSet>& sets) {
  for (const BoundSet& set : sets) {
    std::set<std::string> values;
    for (const auto& [key, pod] : server.All<model::Pod>()) {
      const bool member = pod.meta.name.rfind(set.prefix, 0) == 0;
      if (!member || pod.node_name.empty() || IsTerminal(pod) || pod.meta.deletion) continue;
      const auto* node = server.Find<model::Node>(pod.node_name);
      if (node == nullptr) continue;
      const std::string* value = node->meta.labels.Find(set.label);
      if (value == nullptr || !node->meta.labels.Has(model::kZoneLabel)) {
        return absl::StrCat(key, " is outside the topology");
      }
      values.insert(*value);
    }
    if (values.size() > 1) {
      return absl::StrCat(set.prefix, "*: ", *values.begin(), " and ", *values.rbegin());
    }
  }
  return "";
}

std::string ProblemAtTheEnd(Simulator& simulator, const TopologyWorld& world, bool with_faults) {
  const core::View view = simulator.view();
  std::set<std::string> late;  // pods above their gang's minimum that had no place while the gang
                               // ran
  for (const core::WaitingRow& row : view.waiting) {
    if (row.verdict.code != verdict::Code::kGangIncomplete) continue;
    late.insert(row.pods.begin(), row.pods.end());
  }
  for (const auto& [key, pod] : simulator.cluster().server().All<model::Pod>()) {
    if (pod.phase == model::PodPhase::kSucceeded || late.contains(key)) continue;
    return absl::StrCat(key, " has not run");
  }
  if (!simulator.cluster().cloud().machines().empty()) return "machines are left over";
  if (with_faults) return "";
  if (simulator.recorder().evictions() > 0) return "a pod was evicted";
  const core::BillTotals bill = simulator.bill();
  if (bill.nodes_requested > world.pods()) {
    return absl::StrCat(bill.nodes_requested, " nodes were requested for ", world.pods(), " pods");
  }
  return "";
}

struct TopologyOutcome : testing::Outcome {
  int64_t requested = 0, unused = 0;
};

// Runs until the end or until a set is torn. "" if nothing went wrong.
std::string ProblemOnTheWay(Simulator& simulator, const TopologyWorld& world) {
  const absl::Time start = world.scenario().start;
  for (absl::Duration at; at <= kTopologyEnd; at += kLook) {
    const absl::Status status = simulator.RunUntil(start + at);
    if (!status.ok()) return std::string(status.message());
    const std::string torn = TornSet(simulator.cluster().server(), world.sets());
    if (!torn.empty()) return absl::StrCat(absl::FormatDuration(at), ": ", torn);
  }
  return "";
}

TopologyOutcome RunOneTopology(uint64_t seed, bool with_faults) {
  TopologyWorld world(seed, with_faults);
  const hook::Catalog catalog = world.Catalog();
  SimulatorOptions options = testing::StrictOptions(with_faults);
  options.catalog = &catalog;
  // A pod that is moved or evicted leaves nodes that were provisioned for it.
  options.core.engine.consolidation = false;
  TopologyOutcome outcome;
  const auto run = [&](Simulator& simulator) {
    const std::string problem = ProblemOnTheWay(simulator, world);
    outcome.requested = simulator.bill().nodes_requested;
    outcome.unused = simulator.bill().duplicate_nodes;
    return problem.empty() ? ProblemAtTheEnd(simulator, world, with_faults) : problem;
  };
  testing::RunWorld(world, options, run, outcome);
  return outcome;
}

void RunTopologies(bool with_faults) {
  int64_t requested = 0, unused = 0;
  testing::RunEverySeedTwice([&](uint64_t seed) { return RunOneTopology(seed, with_faults); },
                             [&](const TopologyOutcome& outcome) {
                               requested += outcome.requested;
                               unused += outcome.unused;
                             });
  // The bounds are of many worlds: one may need no node, or see its few nodes come in vain.
  if (::testing::Test::HasFatalFailure() || testing::OnlySeed() != 0) return;
  EXPECT_GT(requested, 0) << "no world had to buy";
  if (!with_faults) {
    EXPECT_LE(unused * 50, requested) << unused << " of " << requested << " came in vain";
  }
}

TEST(TopologyProperty, GangsOfCalmWorldsRunInOneDomain) { RunTopologies(/*with_faults=*/false); }

TEST(TopologyProperty, GangsOfFaultyWorldsRunInOneDomain) { RunTopologies(/*with_faults=*/true); }

}  // namespace
}  // namespace fairlead::sim
