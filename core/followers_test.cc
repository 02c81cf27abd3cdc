// Pods that wait for a pod that is placed after them, in the same cycle or by another scheduler.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"

namespace fairlead::core::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr char kZone[] = "zone";

class FollowersTest : public NoHookTest {
 protected:
  void PutNode(const std::string& name, const std::string& zone) {
    model::Node node = MakeNode(name, 0, 8, 64);
    node.meta.labels.Set(kZone, zone);
    Put(node);
  }
  static PodBuilder App(const std::string& name, const std::string& app) {
    return PodBuilder("ns", name).Queue("q").Cpu(100).Label("app", app);
  }
  static model::LabelSelector Selects(const std::string& app) {
    model::LabelSelector selector;
    selector.none = false;
    selector.requirements.push_back({"app", model::SelectorOperator::kIn, {app}});
    return selector;
  }
  // Must be in the zone of a pod of that app.
  static model::Pod Near(const std::string& name, const std::string& app, const std::string& near) {
    model::Pod pod = App(name, app);
    model::PodAffinityTerm& term = pod.spec.pod_affinity.emplace_back();
    term.selector = Selects(near);
    term.topology_key = kZone;
    pod.spec.labels_for_affinity = pod.meta.labels;
    return pod;
  }
  static model::Pod Spread(PodBuilder builder) {
    model::Pod pod = builder;
    model::TopologySpreadConstraint& constraint = pod.spec.topology_spread.emplace_back();
    constraint.topology_key = kZone;
    constraint.selector = Selects("web");
    constraint.honor_node_affinity = false;  // zones that the pod may not be in count
    pod.spec.labels_for_affinity = pod.meta.labels;
    return pod;
  }
};

TEST_F(FollowersTest, APodIsPlacedWithTheOneThatItMustBeNear) {
  PutNode("a", "z1");
  Put(Near("follower", "x", "cache"));
  EXPECT_THAT(BoundIn(Step(1)), IsEmpty());
  Put(App("leader", "cache").Created(1).Build());
  EXPECT_THAT(BoundIn(Step(2)), ElementsAre("leader", "follower"));
}

TEST_F(FollowersTest, AChainLongerThanAStepIsPlacedAtOnce) {
  PutNode("a", "z1");
  constexpr int kPods = 12;
  for (int i = 0; i < kPods; ++i) {
    Put(Near(absl::StrCat("pod-", 10 + i), absl::StrCat("app-", i), absl::StrCat("app-", i + 1)));
  }
  EXPECT_THAT(BoundIn(Step(1)), IsEmpty());
  Put(App("last", absl::StrCat("app-", kPods)).Created(1).Build());
  std::vector<std::string> bound;
  StepResult step;
  int steps = 0;
  do {
    step = Step(2);
    const std::vector<std::string> more = BoundIn(step);
    bound.insert(bound.end(), more.begin(), more.end());
  } while (step.wake_at <= At(2) && ++steps < 10);
  EXPECT_THAT(bound, SizeIs(kPods + 1));
}

TEST_F(FollowersTest, APodIsPlacedWithTheOneThatRaisesTheMinimumOfItsSpread) {
  PutNode("a", "z1");
  PutNode("b", "z2");
  Put(App("running", "web").Scheduler("another").On("a").Build());  // nothing moves it
  Put(Spread(App("follower", "web").NodeSelector(kZone, "z1")));
  EXPECT_THAT(BoundIn(Step(1)), IsEmpty()) << "z1 would be two ahead";
  Put(App("leader", "web").NodeSelector(kZone, "z2").Created(1).Build());
  EXPECT_THAT(BoundIn(Step(2)), UnorderedElementsAre("leader", "follower"));
}

TEST_F(FollowersTest, APodOfAnotherSchedulerIsFollowedToo) {
  PutNode("a", "z1");
  Put(Near("follower", "x", "cache"));
  EXPECT_THAT(BoundIn(Step(1)), IsEmpty());
  Put(App("leader", "cache").Scheduler("another").On("a").Build());
  EXPECT_THAT(BoundIn(Step(2)), ElementsAre("follower"));
}

}  // namespace
}  // namespace fairlead::core::testing
