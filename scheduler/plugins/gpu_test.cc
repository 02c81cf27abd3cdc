// GpuKind and GpuSharing: which nodes may take shares of GPUs and MIG instances, and which are
// preferred.
#include "scheduler/plugins/plugin_test_util.h"
#include "scheduler/plugins/scale.h"

namespace fairlead::plugins {
namespace {

model::Node GpuNode(absl::string_view name, int64_t gpus, absl::string_view memory = "1000") {
  model::Node node = MakeNode(name, gpus);
  if (!memory.empty()) node.meta.labels.Set(model::kGpuMemoryLabel, memory);
  return node;
}

model::PodSpec Share(int64_t milli, int64_t memory_mib, int64_t devices = 1) {
  model::PodSpec spec;
  spec.requests = {{"cpu", 1000}};
  spec.gpu_share = {milli, memory_mib, devices};
  return spec;
}

model::PodSpec Mig(absl::string_view profile, int64_t count) {
  model::PodSpec spec;
  spec.requests = {{"cpu", 1000}};
  model::Set(spec.requests, absl::StrCat("nvidia.com/mig-", profile), count);
  return spec;
}

class GpuPluginTest : public PluginTest {
 protected:
  void Runs(absl::string_view name, absl::string_view node, int64_t milli, absl::string_view group,
            bool ends = false) {
    PodBuilder pod("ns", name);
    pod.GpuFraction(milli).On(node).Label(model::kGpuGroupLabel, group);
    if (ends) pod.Deleting();
    AddPod(pod);
  }
};

TEST_F(GpuPluginTest, KindOfGpu) {
  AddNode(MakeNode("cpu", 0));
  AddNode(GpuNode("gpu", 2));
  AddNode(GpuNode("silent", 2, ""));
  model::Node mixed = GpuNode("mixed", 1);
  mixed.meta.labels.Set(model::kMigStrategyLabel, "mixed");
  model::Set(mixed.allocatable, "nvidia.com/mig-1g.10gb", 2);
  AddNode(mixed);
  model::Node marked = MakeNode("marked", 0);
  marked.meta.labels.Set(model::kMigEnabledLabel, "true");
  AddNode(marked);
  model::Node single = GpuNode("single", 7);
  single.meta.labels.Set(model::kMigEnabledLabel, "true");
  single.meta.labels.Set(model::kMigStrategyLabel, "single");
  AddNode(single);

  const char* no_gpu = "X node(s) have no GPU to share";
  const char* slices = "X node(s) have only slices of GPUs (MIG), not shared";
  const char* no_mig = "X MIG job cannot be scheduled on non-MIG node";
  const char* legacy =
      "X asks for MIG by annotation, which is not placed any more: request it instead";
  model::PodSpec legacy_spec;
  legacy_spec.legacy_mig = {{"nvidia.com/mig-1g.10gb", 1}};
  struct Case {
    model::PodSpec spec;
    std::map<std::string, std::string> refused;
  };
  const Case cases[] = {
      {Share(0, 0), {}},
      {Share(500, 0), {{"cpu", no_gpu}, {"marked", no_gpu}, {"single", slices}}},
      {Share(500, 0, 2),
       {{"cpu", no_gpu},
        {"marked", no_gpu},
        {"single", slices},
        {"mixed", "X node(s) have fewer than the 2 shared GPUs requested"}}},
      {Share(0, 1000),
       {{"cpu", no_gpu},
        {"marked", no_gpu},
        {"single", slices},
        {"silent",
         "X node(s) do not say how much memory a GPU has (label nvidia.com/gpu.memory)"}}},
      {Share(0, 1001),
       {{"cpu", no_gpu},
        {"marked", no_gpu},
        {"single", slices},
        {"gpu", "X node(s) have GPUs with less than 1001 MiB of memory"},
        {"mixed", "X node(s) have GPUs with less than 1001 MiB of memory"},
        {"silent",
         "X node(s) do not say how much memory a GPU has (label nvidia.com/gpu.memory)"}}},
      {Mig("1g.10gb", 1),
       {{"cpu", no_mig},
        {"gpu", no_mig},
        {"silent", no_mig},
        {"single", "X node(s) offer MIG as plain GPUs (strategy single), not by profile"}}},
      {legacy_spec,
       {{"cpu", legacy},
        {"gpu", legacy},
        {"silent", legacy},
        {"mixed", legacy},
        {"marked", legacy},
        {"single", legacy}}},
  };
  const auto kind = OnlyForShares("GpuKind");
  for (const Case& c : cases) {
    Waiting(c.spec);
    for (const char* name : {"cpu", "gpu", "silent", "mixed", "marked", "single"}) {
      const auto it = c.refused.find(name);
      const std::string expected = it == c.refused.end() ? "" : it->second;
      for (Capacity capacity : {Capacity::kNow, Capacity::kFuture, Capacity::kEmpty}) {
        EXPECT_EQ(Why(*kind, name, capacity), expected) << name;
      }
      // Part of what a node is: also asked of nodes that are only thought of.
      EXPECT_EQ(kind->FilterNodeObject(Ctx(Capacity::kEmpty), Node(name), nullptr),
                expected.empty());
    }
  }
}

TEST_F(GpuPluginTest, RoomForShares) {
  AddNode(GpuNode("n", 2));
  Runs("a", "n", 600, "g");
  Runs("b", "n", 600, "h", true);
  const auto sharing = Only("GpuSharing");
  struct Case {
    model::PodSpec spec;
    const char *now, *future, *empty;
  };
  const Case cases[] = {
      {Share(400, 0), "", "", ""},
      {Share(500, 0), "U Insufficient shared GPU: requested 0.5 GPU", "", ""},
      {Share(400, 0, 2), "U Insufficient shared GPU: requested 0.4 of each of 2 GPUs", "", ""},
      {Share(500, 0, 2), "U Insufficient shared GPU: requested 0.5 of each of 2 GPUs",
       "U Insufficient shared GPU: requested 0.5 of each of 2 GPUs", ""},
      {Share(100, 0, 3), "X Insufficient shared GPU: requested 0.1 of each of 3 GPUs",
       "X Insufficient shared GPU: requested 0.1 of each of 3 GPUs",
       "X Insufficient shared GPU: requested 0.1 of each of 3 GPUs"},
      {Share(0, 401), "U Insufficient shared GPU: requested 401 MiB of GPU memory", "", ""},
  };
  for (const Case& c : cases) {
    Waiting(c.spec);
    EXPECT_EQ(Why(*sharing, "n", Capacity::kNow), c.now);
    EXPECT_EQ(Why(*sharing, "n", Capacity::kFuture), c.future);
    EXPECT_EQ(Why(*sharing, "n", Capacity::kEmpty), c.empty);
  }
  Waiting(Share(500, 0, 2));
  framework::Status why;
  EXPECT_FALSE(sharing->Filter(Ctx(), Node("n"), &why));
  ASSERT_EQ(why.missing.size(), 1u);
  EXPECT_EQ(why.missing[0].resource, model::kGpu);
  EXPECT_EQ(why.missing[0].amount, 1000);
}

TEST_F(GpuPluginTest, WholeGpusAndSharesExcludeEachOther) {
  AddNode(GpuNode("n", 2));
  Runs("a", "n", 100, "g");
  model::PodSpec whole;
  whole.requests = {{"nvidia.com/gpu", 2000}};
  Waiting(whole);
  const auto fit = Only("NodeResourcesFit");
  EXPECT_EQ(Why(*fit, "n"), "U Insufficient nvidia.com/gpu");
  EXPECT_EQ(Why(*fit, "n", Capacity::kEmpty), "");
  Runs("a", "n", 100, "g", true);
  EXPECT_EQ(Why(*fit, "n", Capacity::kFuture), "");
}

TEST_F(GpuPluginTest, ANewSharedGpuNeedsASlotForItsReservationPod) {
  model::Node node = GpuNode("n", 2);
  model::Set(node.allocatable, "pods", 2);
  AddNode(node);
  const auto sharing = Only("GpuSharing");
  const char* reason =
      "Too many pods (a GPU that becomes shared needs a slot for its reservation pod)";
  Waiting(Share(500, 0));
  EXPECT_EQ(Why(*sharing, "n"), "");
  Waiting(Share(500, 0, 2));
  EXPECT_EQ(Why(*sharing, "n"), absl::StrCat("X ", reason));
  // One slot is left: enough to join, not to begin.
  Runs("a", "n", 600, "g");
  Waiting(Share(400, 0));
  EXPECT_EQ(Why(*sharing, "n"), "");
  Waiting(Share(500, 0));
  EXPECT_EQ(Why(*sharing, "n"), absl::StrCat("U ", reason));
}

TEST_F(GpuPluginTest, AGpuThatIsSharedComesFirst) {
  AddNode(GpuNode("a", 2));
  AddNode(GpuNode("b", 2));
  AddNode(GpuNode("c", 2));
  Runs("shared", "b", 500, "g");
  Runs("ends", "c", 900, "g", true);
  const auto sharing = Only("GpuSharing");
  Waiting(Share(300, 0));
  EXPECT_EQ(Score(*sharing, "a"), 0);
  EXPECT_EQ(Score(*sharing, "b"), kSharedGpuStep);
  // Whatever the room asked about: one that has to be waited for counts too.
  EXPECT_EQ(Score(*sharing, "c"), kSharedGpuStep);
  EXPECT_EQ(Score(*sharing, "c", Capacity::kFuture), kSharedGpuStep);
  Waiting(Share(600, 0));
  EXPECT_EQ(Score(*sharing, "b"), 0);
  auto all = framework::Framework::Make(framework::DefaultProfile(), registry_);
  ASSERT_TRUE(all.ok()) << all.status();
  Waiting(Share(300, 0));
  EXPECT_GT(Score(**all, "b"), Score(**all, "a"));
  EXPECT_TRUE((*all)->NodeLocal(Ctx().pod_class));
}

TEST_F(GpuPluginTest, MigKeepsAwayFromLegacyMig) {
  for (const char* name : {"m", "n"}) {
    model::Node node = MakeNode(name, 0);
    model::Set(node.allocatable, "nvidia.com/mig-1g.10gb", 4);
    AddNode(node);
  }
  model::Pod legacy = PodBuilder("ns", "legacy").On("m");
  legacy.spec.legacy_mig = {{"nvidia.com/mig-1g.10gb", 1}};
  AddPod(legacy);
  const auto sharing = Only("GpuSharing");
  Waiting(Mig("1g.10gb", 1));
  EXPECT_EQ(Why(*sharing, "m"), "U node(s) run pods that hold MIG by annotation");
  EXPECT_EQ(Why(*sharing, "m", Capacity::kFuture),
            "U node(s) run pods that hold MIG by annotation");
  EXPECT_EQ(Why(*sharing, "m", Capacity::kEmpty), "");
  EXPECT_EQ(Why(*sharing, "n"), "");
  // Nodes with nothing but MIG are GPU nodes.
  Waiting(Share(0, 0));
  EXPECT_EQ(Score(*Only("ResourceType"), "m"), 0);
}

TEST_F(GpuPluginTest, PlainPodsKeepAwayFromThoseThatRefuseThem) {
  AddNode(MakeNode("m", 0));
  AddNode(MakeNode("n", 0));
  AddPod(PodBuilder("ns", "before").Label("app", "web"));
  model::Pod hater = PodBuilder("ns", "hater").On("m");
  model::PodAffinityTerm term;
  term.selector.none = false;
  term.selector.requirements = {{"app", model::SelectorOperator::kIn, {"web"}}};
  term.topology_key = model::kHostnameLabel;
  hater.spec.pod_anti_affinity = {term};
  AddPod(hater);
  AddPod(PodBuilder("ns", "after").Label("app", "web"));
  AddPod(PodBuilder("ns", "other").Label("app", "db"));
  const auto affinity = Only("InterPodAffinity");
  const auto may = [&](absl::string_view name, absl::string_view node) {
    const state::PodRecord& pod = state_.pod(state_.FindPod("ns", name));
    return affinity->Filter(
        {state_, state_.pod_class(pod.pod_class), pod.pod_class, Capacity::kNow}, Node(node),
        nullptr);
  };
  for (const char* name : {"before", "after"}) {
    EXPECT_FALSE(may(name, "m")) << name;
    EXPECT_TRUE(may(name, "n")) << name;
  }
  EXPECT_TRUE(may("other", "m"));
  // Pods that no term selects stay on the fast path.
  const state::PodRecord& other = state_.pod(state_.FindPod("ns", "other"));
  EXPECT_TRUE(affinity->NodeLocal(state_.pod_class(other.pod_class)));
}

}  // namespace
}  // namespace fairlead::plugins
