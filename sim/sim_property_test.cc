// Small random worlds with random faults and restarts. The invariants of sim/invariants.h hold
// after every step. Once the faults stop, every pod that may run does run, no unneeded node is
// left, and the same seed gives the same trace.
//
// sim/property_testing.h says how to choose other worlds.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "scheduler/model/api_names.h"
#include "sim/property_testing.h"

namespace fairlead::sim {
namespace {

constexpr absl::Duration kFaultsEnd = absl::Hours(3);
constexpr absl::Duration kEnd = absl::Hours(24);

// One random world, built from its seed alone.
class World : public testing::RandomWorld {
 public:
  explicit World(uint64_t seed) : RandomWorld(seed, kEnd), share_random_(seed ^ 0x5AFE) {
    scenario_.hook.cluster_gpu_limit = random_.Between(3, 16);
    scenario_.hook.unneeded_after = absl::Minutes(random_.Between(1, 15));
    AddPlatform();
    const int64_t workloads = random_.Between(2, 10);
    for (int64_t i = 0; i < workloads; ++i) AddWorkload(i);
  }

  static FaultOptions Faults(uint64_t seed) {
    Random random(seed ^ 0x5EED);
    FaultOptions faults;
    faults.seed = seed;
    for (int i = 0; i < kFaultPoints; ++i) {
      // Each world has some kinds of faults and not others.
      if (random.Below(2) == 0) {
        faults.Set(static_cast<FaultPoint>(i), static_cast<int32_t>(random.Between(1, 60)));
      }
    }
    return faults;
  }

 private:
  model::Queue Queue(const std::string& name, const std::string& parent) {
    model::Queue queue;
    queue.meta.name = name;
    queue.parent = parent;
    queue.priority = random_.Below(2) == 0 ? 100 : 200;
    queue.cpu = queue.memory = {model::kUnlimited, model::kUnlimited, 1'000'000};
    const int64_t quota = random_.Between(0, 5);
    const int64_t limit = random_.Below(2) == 0 ? quota + random_.Between(0, 5) : model::kUnlimited;
    queue.gpu = {quota * 1000, limit == model::kUnlimited ? limit : limit * 1000,
                 1'000'000 * random_.Between(0, 3)};
    if (random_.Below(3) == 0) queue.reclaim_min_runtime = absl::Minutes(random_.Between(1, 60));
    return queue;
  }

  void AddPlatform() {
    Manifest& manifest = Step(absl::ZeroDuration()).apply[0];
    for (const auto& [name, value] :
         {std::make_pair("train", 50), std::make_pair("inference", 125)}) {
      model::PriorityClass priority_class;
      priority_class.meta.name = name;
      priority_class.value = value;
      manifest.objects.emplace_back(priority_class);
    }
    model::Queue root = Queue("root", "");
    if (root.gpu.limit != model::kUnlimited) root.gpu.limit += 6000;
    manifest.objects.emplace_back(root);
    for (const char* name : {"a", "b", "c"}) manifest.objects.emplace_back(Queue(name, "root"));
    model::NodePool pool;
    pool.meta.name = "pool";
    pool.instance_types = {"g5.xlarge", "g5.12xlarge"};
    if (random_.Below(2) == 0) {
      pool.startup_taints = {{"example.com/starting", "", model::TaintEffect::kNoSchedule}};
    }
    manifest.objects.emplace_back(pool);
  }

  void AddWorkload(int64_t number) {
    ControllerSpec spec;
    spec.ns = "ns";
    spec.name = absl::StrCat("w", number);
    model::Pod& pod = spec.pod_template;
    pod.meta.ns = pod.spec.ns = "ns";
    pod.scheduler_name = model::kDefaultSchedulerName;
    const std::string queue = std::vector<std::string>{"a", "b", "c"}[random_.Below(3)];
    pod.meta.labels.Set(model::kQueueLabel, queue);
    pod.spec.requests = {{"cpu", 1000 * random_.Between(1, 3)},
                         {"memory", 1'000'000'000 * random_.Between(1, 8)}};
    const int64_t gpus = random_.Below(4) == 0 ? random_.Between(2, 4) : 1;
    if (share_random_.Below(3) == 0) {
      pod.spec.gpu_share = {share_random_.Between(1, 9) * 100, 0, 1 + (gpus > 1 ? 1 : 0)};
    } else {
      model::Set(pod.spec.requests, model::kGpuName, gpus * 1000);
    }
    pod.priority_class_name = random_.Below(3) == 0 ? "inference" : "train";
    const absl::Duration at = absl::Seconds(random_.Between(60, 7200));
    ScenarioStep& step = Step(at);
    spec.replicas = spec.completions = random_.Between(1, 4);
    const uint64_t shape = random_.Below(3);
    if (shape == 0) {  // a service, gone before the faults end
      ScenarioStep& removal = Step(at + absl::Minutes(random_.Between(5, 55)));
      removal.remove = {{"Deployment", absl::StrCat("ns/", spec.name)}};
      scenario_.timeline[scenario_.timeline.size() - 2].apply[0].controllers = {spec};
      return;
    }
    spec.kind = ControllerKind::kJob;
    pod.meta.annotations.Set(kRunSecondsAnnotation, absl::StrCat(random_.Between(30, 3600)));
    if (shape == 1) {  // a gang
      pod.meta.annotations.Set(model::kPodGroupAnnotation, spec.name);
      model::PodGroup group;
      group.meta.ns = "ns";
      group.meta.name = spec.name;
      group.queue = queue;
      group.priority_class_name = pod.priority_class_name;
      group.min_member = static_cast<int32_t>(spec.replicas);
      step.apply[0].objects.emplace_back(group);
    }
    step.apply[0].controllers = {spec};
  }

  Random share_random_;
};

// What has to be true at the end. "" if it is.
std::string ProblemAtTheEnd(Simulator& simulator, int64_t gpu_cap) {
  const core::View view = simulator.view();
  for (const core::WaitingRow& row : view.waiting) {
    const verdict::Code code = row.verdict.code;
    if (verdict::CategoryOf(code) == verdict::Category::kCapacity) {
      return absl::StrCat(row.workload, " waits for capacity that could be had: ", row.message);
    }
    if (code != verdict::Code::kGpuCapReached) continue;
    int64_t gpus = 0;
    for (const std::string& key : row.pods) {
      const model::PodSpec& spec = simulator.cluster().server().Find<model::Pod>(key)->spec;
      gpus += model::Get(spec.requests, model::kGpuName);
      if (spec.gpu_share.IsSet()) gpus += spec.gpu_share.devices * 1000;
    }
    // The pool's types have 1 and 4 GPUs: a pod that does not fit into a small one may need a large
    // one.
    if (gpus <= 1000 || (gpu_cap >= 16 && gpus <= 16000)) {
      return absl::StrCat(row.workload, " would fit under the cap: ", row.message);
    }
  }
  if (!simulator.cluster().cloud().machines().empty()) {
    return absl::StrCat(simulator.cluster().cloud().machines().size(), " machines are left over");
  }
  for (const auto& [key, pod] : simulator.cluster().server().All<model::Pod>()) {
    if (!pod.node_name.empty() && !IsTerminal(pod)) return absl::StrCat(key, " never ended");
  }
  return "";
}

struct Outcome : testing::Outcome {
  int64_t shares = 0;  // bindings of pods that have a part of a GPU
};

// Runs until the faults end, with some restarts on the way.
absl::Status RunFaultyHours(Simulator& simulator, uint64_t seed) {
  const absl::Time start = simulator.scenario().start;
  absl::Status status;
  Random random(seed ^ 0xDEAD);
  const uint64_t restarts = random.Below(4);
  absl::Duration at;
  for (uint64_t i = 0; i < restarts && status.ok(); ++i) {
    at += absl::Milliseconds(random.Between(1, 3'600'000));
    status = simulator.RunUntil(start + at);
    if (status.ok()) status = simulator.Restart();
  }
  if (status.ok()) status = simulator.RunUntil(start + kFaultsEnd);
  simulator.cluster().faults().Stop();
  return status;
}

Outcome RunOne(uint64_t seed, bool with_faults) {
  const World world(seed);
  SimulatorOptions options = testing::StrictOptions(with_faults);
  if (with_faults) options.cluster.faults = World::Faults(seed);
  Outcome outcome;
  const auto run = [&](Simulator& simulator) {
    absl::Status status = with_faults ? RunFaultyHours(simulator, seed) : absl::OkStatus();
    if (status.ok()) status = simulator.Run();
    // Ended pods are gone by now; the trace has their bindings.
    const std::vector<absl::string_view> parts =
        absl::StrSplit(simulator.trace(), model::kVisibleDevicesAnnotation);
    outcome.shares = static_cast<int64_t>(parts.size()) - 1;
    return status.ok() ? ProblemAtTheEnd(simulator, *world.scenario().hook.cluster_gpu_limit)
                       : std::string(status.message());
  };
  testing::RunWorld(world, options, run, outcome);
  return outcome;
}

void RunWorlds(bool with_faults) {
  int64_t shares = 0;
  testing::RunEverySeedTwice([&](uint64_t seed) { return RunOne(seed, with_faults); },
                             [&](const Outcome& outcome) { shares += outcome.shares; });
  if (::testing::Test::HasFatalFailure() || testing::OnlySeed() != 0) return;
  EXPECT_GT(shares, 0) << "no world has shared GPUs";
}

TEST(SimProperty, CalmWorldsKeepEveryInvariant) { RunWorlds(/*with_faults=*/false); }

TEST(SimProperty, FaultyWorldsKeepEveryInvariantAndRecover) { RunWorlds(/*with_faults=*/true); }

}  // namespace
}  // namespace fairlead::sim
