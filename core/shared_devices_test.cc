// Devices of several nodes, and taints of admins, in the decision loop.
#include "absl/strings/str_cat.h"
#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"
#include "scheduler/model/testing/device_builders.h"

namespace fairlead::core::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kFabricClass[] = "fabric.io";

class SharedDevicesTest : public DecisionLoopTest {
 protected:
  SharedDevicesTest() {
    options_.hook.enabled = false;
    Restart();
  }
  void Begin(int64_t devices) {
    SyncAll();
    Put(MakeQueue("team", "", kUnlimited, kUnlimited));
    Put(model::testing::MakeDeviceClass(kFabricClass));
    for (const char* name : {"n1", "n2"}) {
      model::Node node = MakeNode(name, 0);
      node.meta.labels.Set("rack", "r");
      Put(node);
    }
    slice_ = model::testing::MakeSlice("fabric", devices, kFabricClass);
    slice_.nodes = {"", false, {{{{"rack", model::SelectorOperator::kIn, {"r"}}}, {}}}};
    Put(slice_);
  }
  // A pod that only the node admits, and its claim.
  void Ask(const std::string& name, const std::string& node) {
    model::ResourceClaim claim = model::testing::MakeClaim(name, 1, kFabricClass);
    claim.meta.uid = "uid-claim-" + name;
    claim.meta.resource_version = "1";
    Put(claim);
    model::Pod pod = PodBuilder("ns", name).Queue("team").Build();
    pod.spec.resource_claims = {name};
    pod.spec.has_required_node_affinity = true;
    pod.spec.required_node_terms = {model::TermOfNode(node)};
    Put(pod);
  }

  model::ResourceSlice slice_;
};

TEST_F(SharedDevicesTest, TwoPodsOnTwoNodesDoNotGetOneDeviceInOneCycle) {
  Begin(1);
  Ask("a", "n1");
  Ask("b", "n2");
  const auto writes = Of<model::ReserveClaim>(Step(1));
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_THAT(*writes[0].allocation.node_terms, ElementsAre(slice_.nodes.terms[0]));
  EXPECT_EQ(writes[0].allocation.devices[0].pool, "fabric");
  EXPECT_THAT(Of<model::ReserveClaim>(Step(2)), IsEmpty());
}

TEST_F(SharedDevicesTest, ADeviceForEach) {
  Begin(2);
  Ask("a", "n1");
  Ask("b", "n2");
  const auto writes = Of<model::ReserveClaim>(Step(1));
  ASSERT_THAT(writes, SizeIs(2));
  EXPECT_NE(writes[0].allocation.devices[0].device, writes[1].allocation.devices[0].device);
}

TEST_F(SharedDevicesTest, AGangNeedsADeviceForEachOfItsPods) {
  Begin(1);
  Put(model::testing::MakeGroup("ns", "g", "team", 2));
  for (const char* name : {"g-0", "g-1"}) {
    model::ResourceClaim claim = model::testing::MakeClaim(name, 1, kFabricClass);
    claim.meta.uid = absl::StrCat("uid-claim-", name);
    claim.meta.resource_version = "1";
    Put(claim);
    model::Pod pod = PodBuilder("ns", name).Group("g").Build();
    pod.spec.resource_claims = {name};
    Put(pod);
  }
  EXPECT_THAT(Of<model::ReserveClaim>(Step(1)), IsEmpty());
  slice_.devices.push_back({"1", {}, {}});
  Put(slice_);
  EXPECT_THAT(Of<model::ReserveClaim>(Step(2)), SizeIs(2));
}

TEST_F(SharedDevicesTest, AWriteOfUnknownOutcomeKeepsTheDeviceFromAllNodes) {
  Begin(1);
  Ask("a", "n1");
  const StepResult step = Step(1);
  ASSERT_THAT(Of<model::ReserveClaim>(step), SizeIs(1));
  for (const Action& action : step.actions) {
    loop_->Apply(model::ActionResult{action.id, absl::UnavailableError("lost")});
  }
  Ask("b", "n2");
  for (const model::ReserveClaim& write : Of<model::ReserveClaim>(Step(2))) {
    EXPECT_EQ(write.name, "a");
  }
}

TEST_F(SharedDevicesTest, APodThatWaitedForATaintedDeviceIsTriedAgainWhenTheRuleGoes) {
  model::DeviceTaintRule rule;
  rule.meta.name = "rule";
  rule.meta.uid = "uid-rule";
  rule.driver = kFabricClass;
  rule.taint = {"broken", "", "NoSchedule"};
  Begin(1);
  Put(rule);
  Ask("a", "n1");
  EXPECT_THAT(Of<model::ReserveClaim>(Step(1)), IsEmpty());
  loop_->Apply(model::Delete{model::Kind::kDeviceTaintRule, "", "rule", "uid-rule"});
  EXPECT_THAT(Of<model::ReserveClaim>(Step(2)), SizeIs(1));
}

// Upstream's device taint eviction controller deletes the pod.
TEST_F(SharedDevicesTest, ARuleEvictsNothingAndTheNextPodGetsAnotherDevice) {
  model::DeviceTaintRule rule;
  rule.meta.name = "rule";
  rule.meta.uid = "uid-rule";
  rule.device = "0";
  rule.taint = {"broken", "", "NoExecute"};
  Begin(2);
  Ask("a", "n1");
  ASSERT_THAT(Of<model::ReserveClaim>(Step(1)), SizeIs(1));
  model::ResourceClaim claim = model::testing::Allocated(
      model::testing::MakeClaim("a", 1, kFabricClass), "fabric", {"0"}, kFabricClass);
  claim.meta.uid = "uid-claim-a";
  claim.meta.resource_version = "2";
  claim.reserved_for = {"uid-ns-a"};
  Put(claim);
  model::Pod running = PodBuilder("ns", "a").Queue("team").On("n1").Build();
  running.spec.resource_claims = {"a"};
  Put(running);
  Put(rule);
  for (int64_t at : {2, 60, 600}) EXPECT_THAT(EvictedIn(Step(at)), IsEmpty());
  Ask("b", "n1");
  const auto writes = Of<model::ReserveClaim>(Step(601));
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_EQ(writes[0].name, "b");
  EXPECT_EQ(writes[0].allocation.devices[0].device, "1");
}

}  // namespace
}  // namespace fairlead::core::testing
