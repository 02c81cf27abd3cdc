// What providers say unasked: reports of machines, and what they sell.
#include <gmock/gmock.h>

#include "autoscale-hook/hook_fixture_testing.h"
#include "autoscale-hook/machines/machine_reports.h"

namespace fairlead::hook::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Phase = model::NodeRequestPhase;
using verdict::Code;

class ReportsTest : public HookTest {
 protected:
  void Report(MachineState state, const std::string& id = "", absl::Status why = absl::OkStatus()) {
    hook_->OnMachineReport({"kwok", TheName(), The().meta.uid, id, state, std::move(why)}, now_);
  }
  // A machine of a request that the hook has never seen.
  void ReportLost(MachineState state, const std::string& name = "fl-01d1") {
    hook_->OnMachineReport({"kwok", name, "uid-old", "cloud://old", state, absl::OkStatus()}, now_);
  }
  StepOutput AfterGrace() {
    StepAndApply();
    now_ += kUnclaimedGrace;
    return StepAndApply();
  }
  const Demand demand_ = {Item("team/a", Spec(1000, 4, 1), 1)};
};

TEST_F(ReportsTest, MachineThatWillNotComeFailsWithTheReason) {
  BuyLaunched();
  const std::string name = TheName();
  Report(MachineState::kGone, "", absl::ResourceExhaustedError("sold out"));
  const StepOutput out = StepAndApply(demand_);
  EXPECT_EQ(requests_.at(name).phase, Phase::kFailed);
  EXPECT_EQ(requests_.at(name).failure, "Stockout");
  EXPECT_EQ(requests_.at(name).message, "sold out");
  ASSERT_EQ(out.created.size(), 1u) << "another type, at once";
  EXPECT_EQ(out.created[0].request.instance_type, "h.1");
}

// The outcome of a call may be unknown, that of a machine that is gone is not.
TEST_F(ReportsTest, ReasonOfAnUnknownOutcomeIsAFailureToo) {
  BuyLaunched();
  Report(MachineState::kGone, "", absl::UnavailableError("the zone burns"));
  StepAndApply();
  EXPECT_EQ(ThePhase(), Phase::kFailed);
  EXPECT_THAT(The().message, HasSubstr("the zone burns"));
}

TEST_F(ReportsTest, NothingIsEndedOfAMachineThatIsGone) {
  BuyLaunched();
  Report(MachineState::kRunning, "cloud://1");
  StepAndApply();
  EXPECT_EQ(The().provider_id, "cloud://1");
  Report(MachineState::kGone, "cloud://1");
  StepAndApply();
  EXPECT_EQ(ThePhase(), Phase::kFailed);
  const StepOutput out = StepAndApply();
  EXPECT_THAT(All<model::TerminateNode>(out), IsEmpty());
  EXPECT_THAT(requests_, IsEmpty()) << "the object is deleted";
}

TEST_F(ReportsTest, AnswerThatIsLostIsReplacedByAReport) {
  Buy();
  Report(MachineState::kStarting);
  StepAndApply();
  EXPECT_EQ(ThePhase(), Phase::kLaunched);
}

TEST_F(ReportsTest, NodeOfAMachineThatIsGoneIsNotWaitedFor) {
  BuyReady();
  nodes_.at(TheName()).provider_id = "cloud://1";
  StepAndApply();
  nodes_.at(TheName()).registered = nodes_.at(TheName()).ready = false;
  StepAndApply();
  EXPECT_EQ(ThePhase(), Phase::kReady) << "a kubelet may register again";
  Report(MachineState::kGone, "cloud://1");
  StepAndApply();
  EXPECT_EQ(ThePhase(), Phase::kDraining);
  EXPECT_EQ(The().message, "the machine is gone");
}

TEST_F(ReportsTest, MachineThatComesBackIsEnded) {
  BuyLaunched();
  Report(MachineState::kRunning, "cloud://1");
  Report(MachineState::kGone, "cloud://1", absl::InternalError("lost"));
  StepAndApply();
  ASSERT_EQ(ThePhase(), Phase::kFailed);
  Report(MachineState::kRunning, "cloud://1");
  const auto ends = All<model::TerminateNode>(StepAndApply());
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].provider_id, "cloud://1");
  EXPECT_FALSE(requests_.empty());
}

TEST_F(ReportsTest, LaunchThatIsAcceptedAfterTheReportIsEnded) {
  Buy();
  Report(MachineState::kGone, "", absl::ResourceExhaustedError("sold out"));
  StepAndApply();
  ASSERT_EQ(ThePhase(), Phase::kFailed);
  Answer(true, absl::OkStatus());
  EXPECT_EQ(All<model::TerminateNode>(StepAndApply()).size(), 1u);
}

TEST_F(ReportsTest, OneOfTwoMachinesIsGone) {
  BuyTwo();
  Report(MachineState::kGone, "cloud://2");
  nodes_.erase("ip-2");
  StepAndApply();
  EXPECT_EQ(ThePhase(), Phase::kReady);
  EXPECT_FALSE(hook_->machines().Find(TheName())->reported_gone);
}

// The report of a new process comes before the watch of its requests.
TEST_F(ReportsTest, ReportWaitsForItsRequest) {
  BuyLaunched();
  const model::NodeRequest request = The();
  requests_.clear();
  Restart();
  hook_->OnMachineReport({"kwok", request.meta.name, request.meta.uid, "cloud://1",
                          MachineState::kRunning, absl::OkStatus()},
                         now_);
  StepAndApply();
  EXPECT_THAT(hook_->machines().rows(), IsEmpty());
  requests_.emplace(request.meta.name, request);
  StepAndApply();
  EXPECT_EQ(The().provider_id, "cloud://1");
  EXPECT_THAT(All<model::TerminateNode>(AfterGrace()), IsEmpty());
}

TEST_F(ReportsTest, MachineWithoutARequestCountsAndIsEnded) {
  options_.cluster_gpu_limit = 1;
  options_.max_nodes = 1;
  Restart();
  ReportLost(MachineState::kRunning);
  EXPECT_THAT(All<model::TerminateNode>(StepAndApply()), IsEmpty()) << "its request may come";
  const int lists = lists_;
  const StepOutput out = AfterGrace();
  EXPECT_THAT(out.look_again, ElementsAre("fl-01d1"));
  EXPECT_EQ(lists_, lists + 1) << "nodes are listed before";
  const auto ends = All<model::TerminateNode>(out);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].provider_id, "cloud://old");
  EXPECT_THAT(Step(demand_).created, IsEmpty()) << "it counts against the cap of nodes";
  Answer(false, absl::OkStatus());
  EXPECT_EQ(StepAndApply(demand_).created.size(), 1u);
}

TEST_F(ReportsTest, MachineWithoutARequestIsKeptWhileAListShowsItsNode) {
  answer_lists_ = false;
  ReportLost(MachineState::kRunning);
  StepAndApply();
  now_ += kUnclaimedGrace;
  const StepOutput out = StepAndApply();
  ASSERT_TRUE(AnswerList(out, absl::OkStatus(), {{"ip-1", "uid-ip-1", "", "cloud://old"}}));
  EXPECT_THAT(All<model::TerminateNode>(StepAndApply()), IsEmpty());
}

TEST_F(ReportsTest, MachineWithoutARequestAndWithANodeIsAdopted) {
  ReportLost(MachineState::kRunning);
  nodes_["ip-1"] = Arrived("ip-1", "fl-01d1");
  nodes_["ip-1"].instance_type = "g.1";
  nodes_["ip-1"].provider_id = "cloud://old";
  nodes_["ip-1"].needed = true;
  const StepOutput out = AfterGrace();
  EXPECT_THAT(out.look_again, IsEmpty());
  EXPECT_THAT(All<model::TerminateNode>(out), IsEmpty());
  EXPECT_EQ(TheName(), "fl-01d1");
  StepAndApply();
  EXPECT_EQ(ThePhase(), Phase::kReady);
}

TEST_F(ReportsTest, MachinesOfOthersAreLeftAlone) {
  ReportLost(MachineState::kRunning, "node-7");
  const StepOutput out = AfterGrace();
  EXPECT_THAT(out.actions, IsEmpty());
  EXPECT_THAT(hook_->machines().rows(), IsEmpty());
}

TEST_F(ReportsTest, MachineWithoutARequestThatGoesIsForgotten) {
  ReportLost(MachineState::kRunning);
  ReportLost(MachineState::kGone);
  EXPECT_THAT(AfterGrace().look_again, IsEmpty());
}

// ---- what providers sell

TEST_F(ReportsTest, PoolsOfAProviderHaveItsOwnCatalogue) {
  model::NodePool pool;
  pool.meta.name = "aws";
  pool.provider = "aws";
  pools_.push_back(pool);
  pool.meta.name = "kwok";
  pool.provider.clear();
  pools_.push_back(pool);
  const uint64_t version = hook_->offers_version();
  auto sold =
      std::make_shared<const Catalog>(Catalog::FromTypes({Type("asg-1", 4, 16, 1, kDollar / 2)}));
  hook_->OnOffers("aws", sold);
  EXPECT_NE(hook_->offers_version(), version);
  StepAndApply(demand_);
  EXPECT_EQ(The().instance_type, "asg-1");
  EXPECT_EQ(The().provider, "aws");
  // It is sold no more: the next one comes from the other pool.
  hook_->OnOffers("aws", std::make_shared<const Catalog>());
  EXPECT_EQ(hook_->GpusOf(The()), 1) << "by its label";
  const StepOutput out = Step({Item("team/b", Spec(1000, 4, 1), 1)});
  ASSERT_EQ(out.created.size(), 1u);
  EXPECT_EQ(out.created[0].request.instance_type, "g.1");
}

TEST_F(ReportsTest, OffersOutliveANewConfiguration) {
  hook_->OnOffers("kwok", std::make_shared<const Catalog>(
                              Catalog::FromTypes({Type("asg-1", 4, 16, 1, kDollar / 2)})));
  Reload();
  StepAndApply(demand_);
  EXPECT_EQ(The().instance_type, "asg-1");
}

}  // namespace
}  // namespace fairlead::hook::testing
