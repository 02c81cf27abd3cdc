// NodePools that are wrong, through the whole decision loop.
#include <gmock/gmock.h>

#include "core/machines_testing.h"

namespace fairlead::core::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NodePoolsTest : public MachinesTest {
 protected:
  static model::NodePool Pool(const std::string& invalid = "", const std::string& label = "a") {
    model::NodePool pool;
    pool.meta.name = "p";
    pool.meta.uid = "pool-uid";
    pool.invalid = invalid;
    pool.labels.Set("team", label);
    return pool;
  }
  void SetUp() override {
    MachinesTest::SetUp();
    options_.emit_events = true;
    Restart();
  }
  // The events about NodePools, and what was told of the pod.
  void Note(const StepResult& result) override {
    for (const auto& event : Of<model::EmitEvent>(result)) {
      if (event.about == model::Kind::kNodePool) told_.push_back(event.note);
    }
    for (const auto& verdict : Of<model::SetPodUnschedulable>(result)) {
      said_ = verdict.verdict_json;
    }
    for (const auto& write : Of<model::SetConditions>(result)) {
      for (const model::Condition& condition : write.conditions) {
        conditions_.push_back(absl::StrCat(condition.status, ": ", condition.message));
      }
    }
  }
  std::vector<std::string> conditions_;  // that were sent
  std::vector<std::string> told_;
  std::string said_;
};

constexpr char kFault[] = "spec.maxNodes: -2 must not be negative";

// Without any NodePool the whole catalogue is on offer. A wrong one is not none.
TEST_F(NodePoolsTest, NothingIsProvisionedFromAWrongPoolAlone) {
  Begin();
  Put(Pool(kFault));
  AddPod(GpuPod("p0"));
  Play(absl::Minutes(5));
  EXPECT_EQ(created_, 0);
  EXPECT_THAT(told_, ElementsAre(absl::StrCat(kFault, "; nothing is provisioned from it")));
  EXPECT_THAT(said_, HasSubstr(absl::StrCat("NodePool p: ", kFault)));
  Put(Pool());
  Play(absl::Minutes(5));
  EXPECT_EQ(bound_.count("p0"), 1u);
}

TEST_F(NodePoolsTest, TheConditionReadySaysWhetherTheSpecIsInForce) {
  Begin();
  Put(Pool());
  Play(absl::Minutes(1));
  EXPECT_THAT(conditions_, ElementsAre("True: nodes are provisioned from it"));
  Put(Pool(kFault));
  Put(Pool(kFault));
  Play(absl::Minutes(1));
  Put(Pool());
  Play(absl::Minutes(1));
  EXPECT_THAT(conditions_, ElementsAre("True: nodes are provisioned from it",
                                       absl::StrCat("False: ", kFault,
                                                    "; the last right version stays in force"),
                                       "True: nodes are provisioned from it"));
}

TEST_F(NodePoolsTest, AConditionThatTheObjectHasIsNotWritten) {
  Begin();
  model::NodePool pool = Pool();
  pool.ready_condition = {"Ready", "True", "InForce", "nodes are provisioned from it", 0, {}};
  Put(pool);
  Play(absl::Minutes(1));
  EXPECT_THAT(conditions_, IsEmpty());
}

TEST_F(NodePoolsTest, ARefusedConditionIsRepeatedWithPauses) {
  Begin();
  refuse_pool_status_ = true;
  Put(Pool());
  Play(absl::Minutes(5));
  EXPECT_GT(conditions_.size(), 2u);
  EXPECT_LT(conditions_.size(), 20u);
  refuse_pool_status_ = false;
  Play(absl::Minutes(5));
  const size_t sent = conditions_.size();
  Play(absl::Minutes(30));
  EXPECT_EQ(conditions_.size(), sent);
}

TEST_F(NodePoolsTest, TheLastRightVersionStaysInForce) {
  Begin();
  Put(Pool("", "a"));
  Play(absl::Seconds(5));
  Put(Pool(kFault, "b"));
  Put(Pool(kFault, "b"));
  AddPod(GpuPod("p0"));
  Play(absl::Minutes(5));
  ASSERT_EQ(bound_.count("p0"), 1u);
  EXPECT_EQ(nodes_.begin()->second.meta.labels.Get("team"), "a");
  EXPECT_THAT(told_, ElementsAre(absl::StrCat(kFault, "; the last right version stays in force")));
  EXPECT_EQ(terminated_, 0);
}

TEST_F(NodePoolsTest, OfAnotherObjectOfItsNameNothingStays) {
  Begin();
  Put(Pool());
  Play(absl::Seconds(5));
  model::NodePool again = Pool(kFault);
  again.meta.uid = "another";
  Put(again);
  AddPod(GpuPod("p0"));
  Play(absl::Minutes(5));
  EXPECT_EQ(created_, 0);
}

TEST_F(NodePoolsTest, AProviderThatIsNotConfiguredIsAFault) {
  Begin();
  model::NodePool pool = Pool();
  pool.provider = "karpenter";
  Put(pool);
  AddPod(GpuPod("p0"));
  Play(absl::Minutes(5));
  EXPECT_EQ(created_, 0);
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_THAT(told_[0], HasSubstr("spec.provider: \"karpenter\" is not configured; configured "
                                  "providers: kwok"));
  EXPECT_THAT(said_, HasSubstr("is not configured"));
}

TEST_F(NodePoolsTest, AWrongPoolThatGoesLeavesTheCatalogue) {
  Begin();
  Put(Pool(kFault));
  AddPod(GpuPod("p0"));
  Play(absl::Minutes(1));
  loop_->Apply(model::Delete{model::Kind::kNodePool, "", "p", "pool-uid"});
  Play(absl::Minutes(5));
  EXPECT_EQ(bound_.count("p0"), 1u);
}

// The hook is off: what a pool names is not this process's concern.
TEST_F(NodePoolsTest, NothingIsToldWithoutTheHook) {
  options_.hook.enabled = false;
  Restart();
  Begin();
  model::NodePool pool = Pool();
  pool.provider = "karpenter";
  Put(pool);
  Play(absl::Minutes(1));
  EXPECT_THAT(told_, IsEmpty());
}

}  // namespace
}  // namespace fairlead::core::testing
