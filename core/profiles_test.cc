// Several profiles in one process: each places the pods of its scheduler name.
#include <map>
#include <string>

#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"
#include "scheduler/framework/default_profiles.h"

namespace fairlead::core::testing {
namespace {

using framework::ProfileBase;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class ProfilesTest : public DecisionLoopTest {
 protected:
  ProfilesTest() {
    options_.profiles = {framework::DefaultProfile(ProfileBase::kFairlead),
                         framework::DefaultProfile(ProfileBase::kUpstream)};
    options_.profiles[1].scheduler_name = "default-scheduler";
    options_.state.scheduler_names = {"fairlead", "default-scheduler", "kai-scheduler"};
    options_.hook.enabled = false;
  }
  void Begin() {
    Restart();
    SyncAll();
    Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  }
  static model::Pod Of8(const std::string& name, const std::string& scheduler) {
    model::Pod pod = PodBuilder("ns", name).Queue("q").Cpu(1000);
    pod.scheduler_name = scheduler;
    pod.spec.scoring_requests = {1000, 1 << 30};
    return pod;
  }
  std::map<std::string, std::string> Bound(const StepResult& step) {
    std::map<std::string, std::string> nodes;
    for (const model::BindPod& bind : Of<model::BindPod>(step)) nodes[bind.name] = bind.node;
    return nodes;
  }
};

// KAI packs, kube-scheduler spreads; a name without a profile goes by the first.
TEST_F(ProfilesTest, EachPlacesThePodsOfItsName) {
  Begin();
  Put(MakeNode("empty", 0, 8, 64));
  Put(MakeNode("used", 0, 8, 64));
  model::Pod there = Of8("there", "fairlead");
  there.node_name = "used";
  there.phase = model::PodPhase::kRunning;
  Put(there);
  Put(Of8("packed", "fairlead"));
  Put(Of8("spread", "default-scheduler"));
  Put(Of8("kai", "kai-scheduler"));
  EXPECT_THAT(Bound(Step(0)),
              ElementsAre(Pair("kai", "used"), Pair("packed", "used"), Pair("spread", "empty")));
}

// Images count for the profile that scores them, also after an update of the node.
TEST_F(ProfilesTest, ImagesCountForProfilesThatScoreThem) {
  Begin();
  for (const char* name : {"a", "b"}) Put(MakeNode(name, 0, 8, 64));
  model::Node with = MakeNode("c", 0, 8, 64);
  with.images = {{"big:latest", int64_t{900} << 20}};
  Put(with);
  model::Pod pod = Of8("p", "default-scheduler");
  pod.images = {{"big:latest"}, 1};
  Put(pod);
  EXPECT_THAT(Bound(Step(0)), ElementsAre(Pair("p", "c")));
  model::Pod other = Of8("other", "fairlead");
  other.images = pod.images;
  other.spec.requests = {{model::kCpuName, 7500}};
  Put(other);
  EXPECT_THAT(Bound(Step(1)), ElementsAre(Pair("other", "a")));
}

// Of kube-scheduler's base alone: the larger node is liked better until a Service says that the
// pods there are alike.
TEST_F(ProfilesTest, AServiceSpreadsThePodsOfKubeSchedulersProfile) {
  Begin();
  Put(MakeNode("large", 0, 64, 512));
  Put(MakeNode("small", 0, 8, 64));
  const auto web = [](const std::string& name) {
    model::Pod pod = Of8(name, "default-scheduler");
    pod.meta.labels.Set("app", "web");
    return pod;
  };
  for (const char* name : {"1", "2", "3", "4", "5"}) {
    model::Pod pod = web(name);
    pod.spec.requests = {{model::kCpuName, 10}};
    pod.spec.scoring_requests = {10, 1 << 20};
    pod.node_name = "large";
    pod.phase = model::PodPhase::kRunning;
    Put(pod);
  }
  Put(web("before"));
  EXPECT_THAT(Bound(Step(0)), ElementsAre(Pair("before", "large")));
  model::Service service;
  service.meta.ns = "ns";
  service.meta.name = "web";
  service.selector = {{"app", "web"}};
  Put(service);
  Put(web("with"));
  EXPECT_THAT(Bound(Step(1)), ElementsAre(Pair("with", "small")));
  loop_->Apply(model::Delete{model::Kind::kService, "ns", "web", ""});
  Put(web("without"));
  EXPECT_THAT(Bound(Step(2)), ElementsAre(Pair("without", "large")));
}

// The source does not ask for what no profile reads, and no decision waits for it.
TEST_F(ProfilesTest, ServicesAreReadForProfilesWithDefaultConstraintsAlone) {
  const auto waits_for = [&](model::Kind kind) {
    Restart();
    for (const model::Kind each : model::kAllKinds) {
      if (each != kind) loop_->Apply(model::Synced{each});
    }
    EXPECT_EQ(loop_->synced(), !Reads(options_, kind)) << model::KindName(kind);
    return !loop_->synced();
  };
  for (const model::KindTraits& traits : model::kKindTraits) {
    if (traits.is_spread_source) {
      EXPECT_TRUE(waits_for(traits.kind));
    }
  }
  for (framework::ProfilePlugin& plugin : options_.profiles[1].plugins) {
    if (plugin.name == "PodTopologySpread") plugin.args_json = R"({"defaultingType":"List"})";
  }
  EXPECT_FALSE(waits_for(model::Kind::kService));
  options_.profiles.pop_back();
  EXPECT_FALSE(waits_for(model::Kind::kReplicaSet));
  EXPECT_TRUE(waits_for(model::Kind::kPod));
}

TEST_F(ProfilesTest, PodsOfAProfileWithoutPreemptionEvictNobody) {
  for (const bool evicts : {true, false}) {
    options_.profiles[1].default_preemption = evicts;
    Begin();
    Put(MakeNode("n", 0, 1, 64));
    Put(PodBuilder("ns", "low").Queue("q").Cpu(1000).Priority("p1", 1).On("n"));
    model::Pod high = PodBuilder("ns", "high").Queue("q").Cpu(1000).Priority("p90", 90);
    high.scheduler_name = "default-scheduler";
    Put(high);
    if (evicts) {
      EXPECT_THAT(EvictedIn(Step(0)), ElementsAre("low"));
    } else {
      EXPECT_THAT(EvictedIn(Step(0)), IsEmpty());
    }
  }
}

}  // namespace
}  // namespace fairlead::core::testing
