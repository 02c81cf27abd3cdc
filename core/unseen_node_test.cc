// Machines whose node the watch has not shown, through the whole decision loop.
#include "core/machines_testing.h"
#include "gmock/gmock.h"

namespace fairlead::core::testing {
namespace {

using Phase = model::NodeRequestPhase;

class UnseenNodeTest : public MachinesTest {
 protected:
  // The watch of nodes is dead, a node comes, and its request is cancelled.
  void CancelUnseen() {
    Begin();
    AddPod(GpuPod("p0"));
    node_watch_dead_ = true;
    Play(absl::Seconds(45));
    ASSERT_EQ(launched_, 1);
    EndPod("p0");
    Play(absl::Seconds(60), absl::Seconds(1));
    ASSERT_EQ(nodes_.size(), 1u);
    ASSERT_EQ(requests_.begin()->second.phase, Phase::kDraining);
  }
  // A pod of another scheduler is on the node that the watch has not shown.
  void ExpectThePodStays() {
    CancelUnseen();
    model::Node node = nodes_.begin()->second;
    model::Pod foreign;
    foreign.meta.ns = "other";
    foreign.meta.name = foreign.meta.uid = "foreign";
    foreign.node_name = node.meta.name;
    foreign.phase = model::PodPhase::kRunning;
    bound_["foreign"] = node.meta.name;
    Play(absl::Minutes(10));
    EXPECT_EQ(terminated_, 0);
    EXPECT_THAT(requests_.begin()->second.message, ::testing::HasSubstr(node.meta.name));
    Put(foreign);
    Put(node);
    node_watch_dead_ = false;
    Play(absl::Minutes(30));
    EXPECT_EQ(terminated_, 0);
    EXPECT_EQ(nodes_.begin()->second.taints.size(), 1u) << "no other pod may come";
    bound_.erase("foreign");
    loop_->Apply(model::Delete{model::Kind::kPod, "other", "foreign", ""});
    Play(absl::Minutes(5));
    EXPECT_EQ(terminated_, 1);
    EXPECT_TRUE(requests_.empty());
  }
};

TEST_F(UnseenNodeTest, IsNotEndedUnderAPodOfAnotherScheduler) { ExpectThePodStays(); }

TEST_F(UnseenNodeTest, WithoutOurLabelIsFoundByItsProviderId) {
  own_names_ = true;
  labels_ = false;
  ExpectThePodStays();
}

TEST_F(UnseenNodeTest, NothingEndsWhileNodesCannotBeListed) {
  refuse_lists_ = true;
  CancelUnseen();
  nodes_.clear();
  Play(absl::Minutes(30));
  EXPECT_EQ(terminated_, 0);
  EXPECT_THAT(requests_.begin()->second.message, ::testing::HasSubstr("could not be listed"));
  refuse_lists_ = false;
  Play(absl::Minutes(3));
  EXPECT_EQ(terminated_, 1);
  EXPECT_TRUE(requests_.empty());
}

TEST_F(UnseenNodeTest, AMachineThatHasNoneEndsAfterOneList) {
  Begin();
  AddPod(GpuPod("p0"));
  Play(absl::Seconds(10));
  EndPod("p0");
  Play(absl::Seconds(45), absl::Seconds(1));
  EXPECT_EQ(terminated_, 1);
  EXPECT_TRUE(requests_.empty());
  EXPECT_EQ(last_list_, 1u);
}

}  // namespace
}  // namespace fairlead::core::testing
