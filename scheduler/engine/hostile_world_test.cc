// Random histories of a small cluster whose tenants stop at nothing: labels, annotations, groups,
// amounts and phases of live pods change at any time, uids are used again, queues and groups are
// deleted and made again, claims and nodes come and go. Whatever happens, the engine goes on, and
// after every step each derived number is what a recount makes of the rows.
#include <gtest/gtest.h>

#include <iostream>
#include <limits>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "scheduler/engine/engine_testing.h"
#include "scheduler/model/testing/affinity_builders.h"
#include "scheduler/model/testing/budget_builders.h"
#include "scheduler/model/testing/device_builders.h"

namespace fairlead::engine {
namespace {

using model::Set;
using model::testing::At;
using model::testing::MakeGroup;
using model::testing::MakeNode;
using model::testing::MakeQueue;
using model::testing::PodBuilder;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

class HostileWorld {
 public:
  explicit HostileWorld(uint64_t seed)
      : random_(seed),
        state_(testing::OurPods({.duration_weight = static_cast<int64_t>(seed % 2)})),
        tree_(state_.resource_names()) {
    EngineOptions options;
    options.reservations.on = seed % 3 == 0;
    options.reservations.reserve_after = absl::Seconds(20);
    options.spread_parts = seed % 5 == 0;
    options.stale_gangs = true;
    if (seed % 4 == 0) {
      framework::Registry registry;
      EXPECT_TRUE(plugins::RegisterAll(registry).ok());
      framework::Profile profile = framework::DefaultProfile();
      const std::string without = profile.plugins[Below(profile.plugins.size())].name;
      std::erase_if(profile.plugins, [&](const auto& plugin) { return plugin.name == without; });
      engine_ = std::make_unique<Engine>(options, &state_, &tree_,
                                         *framework::Framework::Make(profile, registry));
    } else {
      engine_ = testing::MakeEngine(options, state_, tree_);
    }
    for (int i = 0; i < 3; ++i) state_.UpsertNode(Node(i));
    for (const char* queue : {"q0", "q1", "top"}) tree_.Upsert(MakeQueue(queue, "", -1, -1));
    state_.UpsertDeviceObject(model::testing::MakeDeviceClass("gpu.nvidia.com"));
  }

  void Step() {
    switch (Below(16)) {
      case 0:
        state_.UpsertNode(Node(static_cast<int>(Below(4))));
        break;
      case 1:
        if (Below(3) == 0) state_.RemoveNode(absl::StrCat("n", Below(4)), "");
        break;
      case 2:
        ChangeQueue();
        break;
      case 3:
        ChangeGroup();
        break;
      case 4:
        state_.RemovePod("ns", absl::StrCat("p", Below(kPods)), "");
        break;
      case 5:
        ChangeDevices();
        break;
      case 6:
        ChangePolicy();
        break;
      case 7:
      case 8:
      case 9:
        Cycle();
        break;
      default:
        state_.UpsertPod(Pod());
    }
  }

  std::string Check() const { return engine_->CheckConsistency(); }

 private:
  static constexpr size_t kPods = 14;

  size_t Below(size_t bound) { return static_cast<size_t>(random_() % bound); }
  bool OneIn(size_t bound) { return Below(bound) == 0; }
  std::string Queue() {
    static constexpr const char* kQueues[] = {"q0", "q1", "top", "leaf", "ghost", ""};
    return kQueues[Below(std::size(kQueues))];
  }
  int64_t Amount() {
    static constexpr int64_t kAmounts[] = {0, 1, 1000, 2000, 8000, -1, kMost, kLeast, kMost / 2};
    return OneIn(3) ? kAmounts[Below(std::size(kAmounts))] : static_cast<int64_t>(Below(4)) * 1000;
  }

  model::Node Node(int number) {
    model::Node node = MakeNode(absl::StrCat("n", number), static_cast<int64_t>(Below(5)));
    if (OneIn(3)) node.meta.labels.Set(model::kGpuMemoryLabel, absl::StrCat(Amount()));
    if (OneIn(4)) node.meta.labels.Set("zone", absl::StrCat("z", Below(2)));
    if (OneIn(8)) Set(node.allocatable, model::kGpuName, Amount());
    if (OneIn(8)) Set(node.allocatable, model::kAmdGpuName, Amount());
    if (OneIn(8)) Set(node.allocatable, "nvidia.com/mig-2g.20gb", Amount());
    if (OneIn(6)) node.taints.push_back({"soft", "", model::TaintEffect::kPreferNoSchedule});
    if (OneIn(10)) node.taints.push_back({"hard", "", model::TaintEffect::kNoSchedule});
    if (OneIn(10)) node.meta.uid = absl::StrCat("again-", Below(3));
    node.unschedulable = OneIn(10);
    node.ready = !OneIn(10);
    return node;
  }

  model::Pod Pod() {
    PodBuilder builder("ns", absl::StrCat("p", Below(kPods)));
    builder.Created(static_cast<int64_t>(Below(3)));
    if (OneIn(8)) builder.Scheduler("other");
    if (!OneIn(4)) builder.Queue(Queue());
    if (OneIn(2)) builder.Group(absl::StrCat("g", Below(3)));
    if (OneIn(3)) builder.Preemptible(OneIn(2));
    if (OneIn(4)) builder.Priority("pc", static_cast<int32_t>(Below(200)));
    if (OneIn(5)) builder.Label(model::kTaskPriorityLabel, absl::StrCat(Below(3)));
    if (OneIn(6)) builder.Label(model::kSubGroupLabel, absl::StrCat("s", Below(3)));
    if (OneIn(6)) builder.Label("app", absl::StrCat("a", Below(2)));
    if (OneIn(6)) builder.Label(model::kGpuGroupLabel, absl::StrCat("gpu", Below(3)));
    if (OneIn(8)) builder.Annotation(model::kExpectedDurationAnnotation, "99999999h");
    if (OneIn(8)) builder.Annotation(model::kPreemptionDelayAnnotation, OneIn(2) ? "1s" : "-1s");
    switch (Below(4)) {
      case 0:
        builder.GpuFraction(OneIn(5) ? Amount() : static_cast<int64_t>(1 + Below(999)),
                            OneIn(5) ? Amount() : static_cast<int64_t>(1 + Below(3)));
        break;
      case 1:
        if (OneIn(2)) builder.GpuMemory(OneIn(3) ? Amount() : static_cast<int64_t>(100 * Below(9)));
        break;
      default:
        break;
    }
    model::Pod pod = builder.Build();
    if (OneIn(2)) Set(pod.spec.requests, model::kGpuName, Amount());
    if (OneIn(8)) Set(pod.spec.requests, "memory", Amount());
    if (OneIn(10)) Set(pod.spec.requests, "nvidia.com/mig-9223372036854775807g.1gb", Amount());
    if (OneIn(10)) Set(pod.spec.requests, absl::StrCat("example.com/r", Below(99)), Amount());
    if (OneIn(10)) Set(pod.spec.legacy_mig, "nvidia.com/mig-1g.5gb", Amount());
    if (OneIn(8)) {
      const model::PodAffinityTerm term =
          model::testing::AppTerm("a0", OneIn(2) ? "zone" : model::kHostnameLabel);
      (OneIn(2) ? pod.spec.pod_affinity : pod.spec.pod_anti_affinity).push_back(term);
      pod.spec.labels_for_affinity = pod.meta.labels;
    }
    if (OneIn(4)) {
      pod.spec.resource_claims = {absl::StrCat("c", Below(3))};
      if (OneIn(3)) pod.spec.resource_claims.push_back(absl::StrCat("c", Below(3)));
    }
    if (OneIn(12)) pod.spec.claim_templates = {"t"};
    if (OneIn(10)) pod.scheduling_gates = {"gate"};
    if (OneIn(10)) pod.nominated_node_name = absl::StrCat("n", Below(5));
    if (OneIn(4)) pod.meta.generation = static_cast<int64_t>(Below(3));
    if (OneIn(6)) {
      static constexpr const char* kQueues[] = {"top/q0", "leaf", "top/ghost", "/", "q1"};
      pod.meta.annotations.Set(model::kStartedUnderAnnotation, kQueues[Below(5)]);
      static constexpr const char* kWords[] = {"preemptible", "non-preemptible", "maybe"};
      pod.meta.annotations.Set(model::kStartedAsAnnotation, kWords[Below(3)]);
    }
    if (OneIn(10)) pod.invalid = "as a test says";
    if (OneIn(6)) pod.meta.uid = absl::StrCat("uid-again-", Below(4));
    if (OneIn(3)) pod.node_name = absl::StrCat("n", Below(5));
    static constexpr model::PodPhase kPhases[] = {
        model::PodPhase::kPending,   model::PodPhase::kRunning, model::PodPhase::kRunning,
        model::PodPhase::kSucceeded, model::PodPhase::kFailed,  model::PodPhase::kUnknown};
    if (!pod.node_name.empty() || OneIn(6)) pod.phase = kPhases[Below(std::size(kPhases))];
    if (OneIn(8)) pod.meta.deletion = At(1);
    return pod;
  }

  void ChangeQueue() {
    const std::string name = OneIn(3) ? "leaf" : absl::StrCat("q", Below(2));
    if (OneIn(3)) {
      tree_.Remove(OneIn(5) ? "top" : name);
    } else {
      model::Queue queue =
          MakeQueue(name, name == "leaf" || OneIn(4) ? "top" : "",
                    static_cast<int64_t>(Below(4)) - 1, static_cast<int64_t>(Below(9)) - 1);
      if (OneIn(6)) queue.gpu.quota = Amount();
      if (OneIn(6)) queue.gpu.over_quota_weight_micro = Amount();
      if (OneIn(6)) queue.parent = Queue();
      if (OneIn(4)) queue.gpu.lending_limit = static_cast<int64_t>(Below(3)) * 1000;
      tree_.Upsert(queue);
    }
  }

  void ChangeGroup() {
    const std::string name = absl::StrCat("g", Below(3));
    if (OneIn(3)) {
      state_.RemovePodGroup("ns", name, "");
      return;
    }
    model::PodGroup group =
        MakeGroup("ns", name, OneIn(3) ? "" : Queue(), static_cast<int32_t>(Below(4)));
    if (OneIn(6)) group.min_member = OneIn(2) ? 2'000'000'000 : -3;
    group.preemptibility = static_cast<model::Preemptibility>(Below(3));
    if (OneIn(3)) {
      for (int i = 0; i < 2; ++i) {
        model::SubGroup set;
        set.name = absl::StrCat("s", Below(3));
        if (OneIn(3)) set.parent = absl::StrCat("s", Below(3));
        set.min_member = static_cast<int32_t>(Below(3));
        group.sub_groups.push_back(set);
      }
    }
    if (OneIn(4)) group.meta.annotations.Set(model::kStaleSinceAnnotation, "never");
    if (OneIn(4)) group.topology = {"topo", "rack", ""};
    state_.UpsertPodGroup(group);
  }

  void ChangeDevices() {
    const std::string claim = absl::StrCat("c", Below(3));
    switch (Below(5)) {
      case 0:
        state_.UpsertDeviceObject(
            model::testing::MakeSlice(absl::StrCat("n", Below(3)), static_cast<int64_t>(Below(4))));
        break;
      case 1:
        state_.RemoveResourceClaim("ns", claim);
        break;
      case 2:
        if (OneIn(4)) {
          state_.RemoveDeviceClass("gpu.nvidia.com");
        } else {
          state_.UpsertDeviceObject(model::testing::MakeDeviceClass("gpu.nvidia.com"));
        }
        break;
      default: {
        model::ResourceClaim object = model::testing::MakeClaim(
            claim, OneIn(5) ? Amount() : static_cast<int64_t>(1 + Below(2)), "gpu.nvidia.com",
            Queue());
        if (OneIn(5)) object = model::testing::AllOf(object);
        if (OneIn(3)) {
          object = model::testing::Allocated(object, absl::StrCat("n", Below(3)),
                                             {absl::StrCat(Below(3)), absl::StrCat(Below(3))});
        }
        if (OneIn(6)) {
          object.requests[0].selectors = {
              absl::StrCat("device.attributes['gpu.nvidia.com'].index == ", Below(400))};
        }
        state_.UpsertDeviceObject(object);
      }
    }
  }

  void ChangePolicy() {
    switch (Below(5)) {
      case 0: {
        model::PriorityClass priority_class;
        priority_class.meta.name = "pc";
        priority_class.value = static_cast<int32_t>(Below(200));
        state_.UpsertPriorityClass(priority_class);
        break;
      }
      case 1:
        state_.RemovePriorityClass("pc");
        break;
      case 2:
        state_.UpsertDisruptionBudget(
            model::testing::MakeBudget("b", OneIn(2) ? "a0" : "", static_cast<int64_t>(Below(2))));
        break;
      case 3: {
        const std::string name = absl::StrCat("n", 3 + Below(2));
        if (OneIn(2)) {
          state_.UpsertOrderedNode(MakeNode(name, 4), "r", {absl::StrCat("ns/g", Below(3))});
        } else {
          state_.RemoveOrderedNode(name);
        }
        break;
      }
      default: {
        model::Topology topology;
        topology.meta.name = "topo";
        topology.levels = {{OneIn(2) ? "zone" : model::kHostnameLabel, "rack"}};
        state_.UpsertTopology(topology);
      }
    }
  }

  void Cycle() {
    now_ += static_cast<int64_t>(Below(40));
    const CycleResult result = engine_->RunCycle(At(now_));
    ASSERT_EQ(engine_->CheckConsistency(), "");
    for (const Binding& binding : result.bindings) {
      if (!OneIn(4)) continue;
      engine_->OnBindFailed(binding.pod, At(now_));
      state_.ForgetBinding(binding.pod);
    }
    for (const Eviction& eviction : result.evictions) {
      if (OneIn(2)) continue;
      state_.ForgetEviction(eviction.pod);
      engine_->OnEvictionRefused(eviction.pod, At(now_ + 10), OneIn(2), At(now_));
    }
    (void)engine_->Numbers();
    (void)engine_->ExpandEquivalents(result.waiting);
  }

  std::mt19937_64 random_;
  state::ClusterState state_;
  queues::QueueTree tree_;
  std::unique_ptr<Engine> engine_;
  int64_t now_ = 100;
};

TEST(HostileWorldTest, NothingThatTenantsWriteEndsTheEngineOrBendsItsAccounts) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    HostileWorld world(seed);
    for (int step = 0; step < 150; ++step) {
      world.Step();
      ASSERT_EQ(world.Check(), "") << "step " << step;
    }
  }
}

}  // namespace
}  // namespace fairlead::engine
