// The plugins that look at what is on the node: NodeResourcesFit, NodePorts, NodePlacement.
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/plugins/common.h"
#include "scheduler/plugins/plugin_test_util.h"
#include "scheduler/plugins/scale.h"

namespace fairlead::plugins {
namespace {

using model::testing::kGiB;

model::PodSpec Requests(model::ResourceList requests) {
  model::PodSpec spec;
  spec.requests = std::move(requests);
  return spec;
}

// "nvidia.com/gpu 2000, pods 1" of the refusal.
std::string Missing(const framework::Framework& framework, const framework::Context& context,
                    const state::NodeInfo& node) {
  framework::Status why;
  framework.Filter(context, node, &why);
  std::string out;
  for (const auto& m : why.missing) {
    absl::StrAppend(&out, out.empty() ? "" : ", ", context.state.resource_names().Name(m.resource),
                    " ", m.amount);
  }
  return out;
}

TEST_F(PluginTest, NodeResourcesFit) {
  const auto fit = Only("NodeResourcesFit");
  AddNode(MakeNode("n", 8, 4, 16));
  AddPod(PodBuilder("ns", "runs").Gpus(6).Cpu(1000).On("n"));
  struct Case {
    model::ResourceList requests;
    const char* why;
    const char* missing;
  };
  const Case cases[] = {
      {{}, "", ""},
      {{{"cpu", 3000}, {"memory", 15 * kGiB}, {"nvidia.com/gpu", 2000}}, "", ""},
      {{{"cpu", 3001}}, "U Insufficient cpu", "cpu 1"},
      {{{"nvidia.com/gpu", 4000}}, "U Insufficient nvidia.com/gpu", "nvidia.com/gpu 2000"},
      {{{"nvidia.com/gpu", 9000}}, "X Insufficient nvidia.com/gpu", "nvidia.com/gpu 7000"},
      {{{"cpu", 4000}, {"memory", 16 * kGiB}, {"nvidia.com/gpu", 8000}},
       "U Insufficient cpu, Insufficient memory, Insufficient nvidia.com/gpu",
       "cpu 1000, memory 1073741824, nvidia.com/gpu 6000"},
      {{{"rdma/hca", 1}}, "X Insufficient rdma/hca", "rdma/hca 1"},
      // One of two cannot be cured by evictions, so neither can the whole.
      {{{"cpu", 4000}, {"rdma/hca", 1}},
       "X Insufficient cpu, Insufficient rdma/hca",
       "cpu 1000, rdma/hca 1"},
  };
  for (const Case& c : cases) {
    Waiting(Requests(c.requests));
    EXPECT_EQ(Why(*fit, "n"), c.why);
    EXPECT_EQ(Missing(*fit, Ctx(), Node("n")), c.missing);
  }
}

TEST_F(PluginTest, NodeResourcesFitByRoom) {
  const auto fit = Only("NodeResourcesFit");
  AddNode(MakeNode("n", 8));
  AddPod(PodBuilder("ns", "runs").Gpus(4).On("n"));
  AddPod(PodBuilder("ns", "ends").Gpus(3).On("n").Deleting());
  AddPod(PodBuilder("ns", "promised").Gpus(1));
  state::Transaction txn(state_);
  txn.Pipeline(state_.FindPod("ns", "promised"), state_.FindNode("n"));
  struct Case {
    int64_t gpus;
    bool now, future, empty;
  };
  // Idle 1, promised 1, releasing 3.
  for (const Case& c :
       {Case{1, false, true, true}, Case{3, false, true, true}, Case{4, false, false, true},
        Case{8, false, false, true}, Case{9, false, false, false}}) {
    const state::PodClass pod_class = [&] {
      state::PodClass made;
      made.spec = std::make_shared<model::PodSpec>();
      made.requests.Set(model::kGpu, c.gpus * 1000);
      return made;
    }();
    const auto fits = [&](Capacity capacity) {
      return fit->Filter({state_, pod_class, 0, capacity}, Node("n"), nullptr);
    };
    EXPECT_EQ(fits(Capacity::kNow), c.now) << c.gpus;
    EXPECT_EQ(fits(Capacity::kFuture), c.future) << c.gpus;
    EXPECT_EQ(fits(Capacity::kEmpty), c.empty) << c.gpus;
  }
}

TEST_F(PluginTest, NodeResourcesFitPodSlots) {
  const auto fit = Only("NodeResourcesFit");
  model::Node node = MakeNode("n", 0);
  model::Set(node.allocatable, "pods", 1);
  AddNode(node);
  Waiting({});
  EXPECT_EQ(Why(*fit, "n"), "");
  AddPod(PodBuilder("ns", "runs").On("n"));
  EXPECT_EQ(Why(*fit, "n"), "U Too many pods");
  EXPECT_EQ(Missing(*fit, Ctx(), Node("n")), "pods 1");
  EXPECT_EQ(Why(*fit, "n", Capacity::kEmpty), "");
  Waiting(Requests({{"cpu", 64000}}));
  EXPECT_EQ(Why(*fit, "n"), "U Too many pods, Insufficient cpu");
}

TEST_F(PluginTest, NodeResourcesFitOvercommittedResourceOnlyRefusesPodsThatWantIt) {
  const auto fit = Only("NodeResourcesFit");
  AddNode(MakeNode("n", 2));
  AddPod(PodBuilder("ns", "other").Gpus(4).On("n"));  // bound by a scheduler that did not look
  Waiting(Requests({{"cpu", 1000}}));
  EXPECT_EQ(Why(*fit, "n"), "");
  Waiting(Requests({{"nvidia.com/gpu", 1000}}));
  EXPECT_EQ(Why(*fit, "n"), "U Insufficient nvidia.com/gpu");
  EXPECT_EQ(Missing(*fit, Ctx(), Node("n")), "nvidia.com/gpu 3000")
      << "what has to go, not the request";
}

TEST_F(PluginTest, NodeResourcesFitIgnored) {
  AddNode(MakeNode("n", 0));
  Waiting(Requests({{"a.com/x", 1}, {"b.com/y", 1}}));
  EXPECT_EQ(Why(*Only("NodeResourcesFit", R"({"ignoredResources":["a.com/x"]})"), "n"),
            "X Insufficient b.com/y");
  EXPECT_EQ(Why(*Only("NodeResourcesFit", R"({"ignoredResourceGroups":["a.com","b.com"]})"), "n"),
            "");
  Waiting(Requests({{"cpu", 1'000'000}}));
  EXPECT_EQ(Why(*Only("NodeResourcesFit", R"({"ignoredResources":["cpu"]})"), "n"),
            "X Insufficient cpu")
      << "only extended resources can be ignored";
}

TEST_F(PluginTest, OnlyAmountsThatAFilterLooksAtAreBounds) {
  Waiting(Requests({{"a.com/x", 1}, {"cpu", 1}}));
  const model::ResourceIndex x = *state_.resource_names().Find("a.com/x");
  const auto all = Only("NodeResourcesFit");
  EXPECT_TRUE(all->ChecksAmountOf(state_, x));
  EXPECT_TRUE(all->ChecksAmountOf(state_, model::kCpu));
  const auto some = Only("NodeResourcesFit", R"({"ignoredResources":["a.com/x"]})");
  EXPECT_FALSE(some->ChecksAmountOf(state_, x));
  EXPECT_TRUE(some->ChecksAmountOf(state_, model::kCpu));
  EXPECT_FALSE(Only("NodeReady")->ChecksAmountOf(state_, model::kCpu));
}

// The arithmetic without allocation agrees with the rows' own.
TEST_F(PluginTest, FreeAmountsAgreeWithTheState) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 500; ++round) {
    state::NodeInfo node;
    for (model::ResourceIndex i = 0; i < 8; ++i) {
      if (random() % 2 == 0) node.allocatable.Set(i, static_cast<int64_t>(random() % 1000));
      for (model::ResourceSum* sum : {&node.used, &node.releasing, &node.pipelined}) {
        if (random() % 2 == 0) sum->Add(i, static_cast<int64_t>(random() % 1000));
      }
    }
    for (model::ResourceIndex i = 0; i < 9; ++i) {
      ASSERT_EQ(FreeAmount(node, Capacity::kNow, i), node.Available()[i]);
      ASSERT_EQ(FreeAmount(node, Capacity::kFuture, i), node.Future()[i]);
      ASSERT_EQ(FreeAmount(node, Capacity::kEmpty, i), node.allocatable[i]);
    }
  }
}

TEST_F(PluginTest, NodePorts) {
  const auto ports = Only("NodePorts");
  constexpr char kNo[] = "U node(s) didn't have free ports for the requested pod ports";
  struct Case {
    model::HostPort taken, wanted;
    bool fits;
  };
  const Case cases[] = {
      {{80, "TCP", ""}, {80, "TCP", ""}, false},
      {{80, "TCP", ""}, {81, "TCP", ""}, true},
      {{80, "TCP", ""}, {80, "UDP", ""}, true},
      {{80, "", ""}, {80, "TCP", ""}, false},
      {{80, "TCP", "10.0.0.1"}, {80, "TCP", "10.0.0.2"}, true},
      {{80, "TCP", "10.0.0.1"}, {80, "TCP", "10.0.0.1"}, false},
      {{80, "TCP", "0.0.0.0"}, {80, "TCP", "10.0.0.1"}, false},
      {{80, "TCP", "10.0.0.1"}, {80, "TCP", ""}, false},
  };
  AddNode(MakeNode("n", 0));
  for (const Case& c : cases) {
    model::Pod runs = PodBuilder("ns", "runs").On("n");
    runs.spec.host_ports = {c.taken};
    AddPod(runs);
    model::PodSpec spec;
    spec.host_ports = {{1, "TCP", ""}, c.wanted};
    Waiting(spec);
    EXPECT_EQ(Why(*ports, "n"), c.fits ? "" : kNo);
    EXPECT_EQ(Why(*ports, "n", Capacity::kEmpty), "");
    runs.meta.deletion = model::testing::At(5);
    AddPod(runs);
    EXPECT_EQ(Why(*ports, "n"), c.fits ? "" : kNo) << "still there";
    EXPECT_EQ(Why(*ports, "n", Capacity::kFuture), "") << "will be gone";
    state_.RemovePod("ns", "runs", "");
    EXPECT_EQ(Why(*ports, "n"), "");
  }
}

TEST_F(PluginTest, NodePlacement) {
  const auto pack = Only("NodePlacement");
  const auto spread = Only("NodePlacement", R"({"gpu":"spread","cpu":"spread"})");
  AddNode(MakeNode("empty", 8));
  AddNode(MakeNode("half", 8));
  AddNode(MakeNode("small", 4));
  AddPod(PodBuilder("ns", "a").Gpus(5).Cpu(32000).On("half"));
  Waiting(Requests({{"cpu", 64000}, {"nvidia.com/gpu", 1000}}));
  EXPECT_EQ(Score(*pack, "half"), kPlacementRange - 3000);
  EXPECT_EQ(Score(*pack, "small"), kPlacementRange - 4000);
  EXPECT_EQ(Score(*pack, "empty"), kPlacementRange - 8000);
  EXPECT_EQ(Score(*spread, "empty"), kPlacementRange);
  EXPECT_EQ(Score(*spread, "small"), kPlacementRange);
  EXPECT_EQ(Score(*spread, "half"), kPlacementRange * 3 / 8);
  Waiting(Requests({{"cpu", 1000}}));
  EXPECT_EQ(Score(*pack, "half"), kPlacementRange - 32000) << "CPU decides for pods without GPUs";
  EXPECT_EQ(Score(*spread, "half"), kPlacementRange / 2);
  // What ends there is in the way of no pod: it counts as free, whatever the capacity.
  AddPod(PodBuilder("ns", "a").Gpus(5).Cpu(32000).On("half").Deleting());
  EXPECT_EQ(Score(*pack, "half"), kPlacementRange - 64000);
  EXPECT_EQ(Score(*pack, "half", Capacity::kFuture), kPlacementRange - 64000);
}

TEST_F(PluginTest, NodePlacementStaysInRange) {
  const auto pack = Only("NodePlacement");
  const auto spread = Only("NodePlacement", R"({"cpu":"spread"})");
  AddNode(MakeNode("none", 0, 0));
  AddNode(MakeNode("huge", 0, int64_t{1} << 40));
  AddNode(MakeNode("over", 0, 2));
  AddPod(PodBuilder("ns", "a").Cpu(9000).On("over"));
  Waiting(Requests({{"cpu", 1}}));
  EXPECT_EQ(Score(*pack, "none"), kPlacementRange);
  EXPECT_EQ(Score(*pack, "huge"), 0);
  EXPECT_EQ(Score(*pack, "over"), kPlacementRange);
  EXPECT_EQ(Score(*spread, "none"), 0);
  EXPECT_EQ(Score(*spread, "huge"), kPlacementRange);
  EXPECT_EQ(Score(*spread, "over"), 0);
}

TEST_F(PluginTest, NodePlacementOfOtherGpus) {
  const auto pack = Only("NodePlacement");
  model::Node node = MakeNode("n", 0);
  model::Set(node.allocatable, model::kAmdGpuName, 4000);
  AddNode(node);
  Waiting(Requests({{"amd.com/gpu", 1000}, {"cpu", 1000}}));
  EXPECT_EQ(Score(*pack, "n"), kPlacementRange - 4000);
}

// The tiers of the default profile: a preference outweighs the kind of node, that outweighs
// tightness.
TEST_F(PluginTest, ScoresComposeLexicographically) {
  auto made = framework::Framework::Make(framework::DefaultProfile(), registry_);
  ASSERT_TRUE(made.ok()) << made.status();
  const framework::Framework& all = **made;
  AddNode(MakeNode("gpu-tight", 8, 1));
  AddNode(MakeNode("cpu-loose", 0, 900'000));
  model::Node avoided = MakeNode("cpu-avoided", 0, 1);
  avoided.taints = {{"x", "", model::TaintEffect::kPreferNoSchedule}};
  AddNode(avoided);
  Waiting(Requests({{"cpu", 1000}}));
  EXPECT_GT(Score(all, "cpu-loose"), Score(all, "gpu-tight"));
  EXPECT_GT(Score(all, "gpu-tight"), Score(all, "cpu-avoided"));
}

}  // namespace
}  // namespace fairlead::plugins
