// ExpectedCapacity follows pods and nodes; and a placement that skips the second question because
// of it is the one that both questions would give (placement_oracle_test.cc compares with a scan).
#include "scheduler/engine/expected_capacity.h"

#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/state/transaction.h"

namespace fairlead::engine {
namespace {

using model::testing::MakeNode;
using model::testing::PodBuilder;

class ExpectedCapacityTest : public ::testing::Test {
 protected:
  ExpectedCapacityTest() : state_(Options()) {
    state_.UpsertNode(MakeNode("n", 8));
    state_.Subscribe(&expected_);
  }
  ~ExpectedCapacityTest() override {
    EXPECT_EQ(expected_.CheckConsistency(), "");
    state_.Unsubscribe(&expected_);
  }
  static state::StateOptions Options() {
    state::StateOptions options;
    options.scheduler_names = {"fairlead"};
    return options;
  }
  static PodBuilder Pod(bool ours = true) {
    PodBuilder pod("ns", "p");
    pod.Queue("q").Gpus(1);
    if (!ours) pod.Scheduler("another");
    return pod;
  }
  state::ClusterState state_;
  ExpectedCapacity expected_{state_};
};

TEST_F(ExpectedCapacityTest, PodsThatTerminate) {
  for (const bool ours : {true, false}) {
    state_.UpsertPod(Pod(ours).On("n").Build());
    EXPECT_FALSE(expected_.Any());
    model::Pod leaves = Pod(ours).On("n").Build();
    leaves.meta.deletion = model::testing::At(5);
    state_.UpsertPod(leaves);
    EXPECT_TRUE(expected_.Any());
    state_.RemovePod("ns", "p", "");
    EXPECT_FALSE(expected_.Any());
  }
}

TEST_F(ExpectedCapacityTest, PromisesAndTheirUndo) {
  state_.UpsertPod(Pod().Build());
  {
    state::Transaction txn(state_);
    txn.Pipeline(state_.FindPod("ns", "p"), state_.FindNode("n"));
    EXPECT_TRUE(expected_.Any());
  }
  EXPECT_FALSE(expected_.Any());
}

TEST_F(ExpectedCapacityTest, NodesThatTakeNoBindings) {
  state_.UpsertOrderedNode(MakeNode("ordered", 8), "ordered");
  EXPECT_TRUE(expected_.Any());
  state_.UpsertNode(MakeNode("ordered", 8));
  EXPECT_TRUE(expected_.Any()) << "it has registered, and is not ready for use";
  state_.SetNodeUsable(state_.FindNode("ordered"), true);
  EXPECT_FALSE(expected_.Any());
  state_.UpsertOrderedNode(MakeNode("another", 8), "another");
  state_.RemoveOrderedNode("another");
  EXPECT_FALSE(expected_.Any());
}

}  // namespace
}  // namespace fairlead::engine
