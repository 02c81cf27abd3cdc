// The numbers for metrics are those of the rows that people see.
#include "core/view.h"

#include <map>
#include <string>

#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"

namespace fairlead::core::testing {
namespace {

class TotalsTest : public DecisionLoopTest {
 protected:
  void ExpectTheNumbersOfTheView() {
    const View view = loop_->MakeView(At(1));
    const Totals totals = loop_->Count();
    std::map<verdict::Code, std::pair<int64_t, int64_t>> waiting, counted;
    for (const WaitingRow& row : view.waiting) {
      ++waiting[row.verdict.code].first;
      waiting[row.verdict.code].second += static_cast<int64_t>(row.pods.size());
    }
    for (const auto& [code, of_code] : totals.waiting) {
      counted[code] = {of_code.workloads, of_code.pods};
    }
    EXPECT_EQ(counted, waiting);
    std::map<std::string, int64_t> nodes, running, allocated;
    for (const NodeRow& row : view.nodes) ++nodes[row.status];
    EXPECT_EQ(totals.nodes, nodes);
    for (const RunningRow& row : view.running) ++running[row.queue];
    ASSERT_EQ(totals.queues.size(), view.queues.size());
    for (size_t i = 0; i < totals.queues.size(); ++i) {
      EXPECT_EQ(totals.queues[i].name, view.queues[i].name);
      EXPECT_EQ(totals.queues[i].running_pods, running[totals.queues[i].name]);
      EXPECT_EQ(totals.queues[i].waiting_workloads, view.queues[i].waiting_workloads);
    }
    EXPECT_EQ(totals.gpus_held, view.gpus_held);
    EXPECT_EQ(totals.price_micro_usd_per_hour, view.price_micro_usd_per_hour);
  }
};

TEST_F(TotalsTest, AreTheNumbersOfTheView) {
  options_.hook.cluster_gpu_limit = 6;
  Restart();
  SyncAll();
  Put(MakeQueue("dept", "", kUnlimited, kUnlimited));
  for (const char* queue : {"a", "b"}) Put(MakeQueue(queue, "dept", kUnlimited, 12));
  Put(MakeNode("own", 3));
  for (int i = 0; i < 20; ++i) {
    const char* queue = i % 3 == 0 ? "a" : "b";
    Put(PodBuilder("ns", absl::StrCat("lone-", i)).Queue(queue).Gpus(1).Created(i).Build());
  }
  for (int g = 0; g < 5; ++g) {
    const std::string name = absl::StrCat("gang-", g);
    Put(MakeGroup("ns", name, "b", 2));
    for (int i = 0; i < 2; ++i) {
      Put(PodBuilder("ns", absl::StrCat(name, "-", i)).Group(name).Gpus(1).Created(30 + g).Build());
    }
  }
  const StepResult result = Step(1);
  ASSERT_FALSE(Of<model::CreateNodeRequest>(result).empty());
  ASSERT_FALSE(Of<model::BindPod>(result).empty());
  ExpectTheNumbersOfTheView();
  AnswerAll(result);
  (void)Step(2);
  ExpectTheNumbersOfTheView();
  // A queue is deleted under what runs in it.
  loop_->Apply(model::Delete{model::Kind::kQueue, "", "a", ""});
  (void)Step(3);
  ExpectTheNumbersOfTheView();
}

TEST_F(TotalsTest, RowsSayWhatPodsRequestAndOnWhichNodesTheyCount) {
  Restart();
  SyncAll();
  Put(MakeQueue("a", "", kUnlimited, kUnlimited));
  Put(MakeNode("own", 1));
  Put(PodBuilder("ns", "runs").Queue("a").Gpus(1).Created(0).Build());
  Put(PodBuilder("ns", "waits").Queue("a").Gpus(1).Created(1).Build());
  const StepResult result = Step(1);
  const auto created = Of<model::CreateNodeRequest>(result);
  ASSERT_EQ(created.size(), 1u);
  const std::string name = created[0].request->meta.name;
  const std::vector<model::NodeRequest> requests = loop_->NodeRequests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].meta.name, name);
  EXPECT_EQ(requests[0].reason_workloads, std::vector<std::string>{"ns/waits"});
  const View view = loop_->MakeView(At(1));
  ASSERT_EQ(view.running.size(), 1u);
  EXPECT_EQ(view.running[0].gpu_milli, 1000);
  EXPECT_GT(view.running[0].cpu_milli, 0);
  for (const NodeRow& node : view.nodes) {
    EXPECT_EQ(node.promised_gpu_milli, node.name == "own" ? 0 : 1000) << node.name;
  }
  EXPECT_EQ(view.nodes.size(), 2u);
}

}  // namespace
}  // namespace fairlead::core::testing
