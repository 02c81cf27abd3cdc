// Nodes provisioned, used and scaled down, through the whole decision loop.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"
#include "scheduler/model/api_names.h"
#include "scheduler/verdict/text.h"

namespace fairlead::core::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST_F(PurchaseTest, BuysForTwoUnderTheLimitAndNothingForTheThird) {
  Morning();
  const StepResult result = Step(1);
  const auto created = Of<model::CreateNodeRequest>(result);
  ASSERT_EQ(created.size(), 2u);  // two of $1.00, not one of $4.50
  for (const auto& create : created) EXPECT_EQ(create.request->instance_type, "gpu.small");
  std::map<std::string, std::string> reasons;
  std::map<std::string, std::string> nominated;
  for (const auto& write : Of<model::SetPodUnschedulable>(result)) {
    reasons[write.name] = write.reason;
    nominated[write.name] = write.nominated_node;
  }
  EXPECT_EQ(reasons.at("p0"), "NodesRequested");
  EXPECT_EQ(reasons.at("p1"), "NodesRequested");
  EXPECT_EQ(reasons.at("p2"), "QueueLimitReached");
  EXPECT_NE(nominated.at("p0"), "");
  EXPECT_NE(nominated.at("p0"), nominated.at("p1"));
  EXPECT_EQ(nominated.at("p2"), "");
  // Nothing more is provisioned while nothing changes (I4), nor when an unrelated pod comes.
  AnswerAll(result);
  for (int at = 2; at < 20; ++at) {
    EXPECT_TRUE(Of<model::CreateNodeRequest>(Step(at)).empty());
  }
}

// The cycle that pipelines pods to the ordered nodes searches for no victims. What the searches of
// the cycle before it have said of a pod below a limit is told, and is not told again a step later.
TEST_F(PurchaseTest, AnOrderChangesNothingForAPodThatALimitHolds) {
  SyncAll();
  Put(MakeQueue("research", "", 0, 2));
  Put(MakeNode("present", 1));
  Put(PodBuilder("ns", "runs").Queue("research").Gpus(1).On("present").Build());
  Put(PodBuilder("ns", "held").Queue("research").Gpus(2).Created(1).Build());
  Put(PodBuilder("ns", "buys").Queue("research").Gpus(1).Created(2).Build());
  const StepResult ordered = Step(1);
  ASSERT_THAT(Of<model::CreateNodeRequest>(ordered), SizeIs(1));
  std::map<std::string, std::string> told;
  for (const auto& write : Of<model::SetPodUnschedulable>(ordered)) {
    told[write.name] = write.verdict_json;
  }
  EXPECT_THAT(told["held"], HasSubstr("\"QueueLimitReached\""));
  EXPECT_THAT(told["held"], HasSubstr("reclaim: queue research would exceed its fair share"));
  AnswerAll(ordered);
  for (const auto& create : Of<model::CreateNodeRequest>(ordered)) Put(Stored(create.request));
  for (int at = 2; at < 5; ++at) {
    const StepResult next = Step(at);
    AnswerAll(next);
    for (const auto& write : Of<model::SetPodUnschedulable>(next)) {
      ADD_FAILURE() << at << " " << write.name << " " << write.verdict_json;
    }
  }
}

// The room of one pod of the gang is there, so two nodes complete it; not three.
TEST_F(PurchaseTest, GangBuysForThePodsThatFindNoRoom) {
  SyncAll();
  Put(MakeQueue("q", "", model::kUnlimited, model::kUnlimited));
  Put(MakeNode("present", 1));
  Put(MakeGroup("ns", "gang", "q", 3));
  for (int i = 0; i < 3; ++i) {
    Put(PodBuilder("ns", absl::StrCat("g", i)).Group("gang").Gpus(1).Build());
  }
  const StepResult result = Step(1);
  EXPECT_THAT(Of<model::CreateNodeRequest>(result), SizeIs(2));
  AnswerAll(result);
  for (const auto& create : Of<model::CreateNodeRequest>(result)) Put(Stored(create.request));
  for (int at = 2; at < 60; ++at) {
    const StepResult next = Step(at);
    AnswerAll(next);
    EXPECT_THAT(Of<model::CreateNodeRequest>(next), SizeIs(0)) << at;
    EXPECT_THAT(Of<model::BindPod>(next), SizeIs(0)) << at;
  }
  // The room goes to a pod of another scheduler: one more node is needed.
  Put(PodBuilder("ns", "foreign").Scheduler("other").Gpus(1).On("present").Build());
  EXPECT_THAT(Of<model::CreateNodeRequest>(Step(60)), SizeIs(1));
}

TEST_F(PurchaseTest, RestartBuysNothingTwice) {
  Morning();
  const StepResult result = Step(1);
  const auto created = Of<model::CreateNodeRequest>(result);
  ASSERT_EQ(created.size(), 2u);
  Restart();
  for (const auto& create : created) Put(Stored(create.request));
  Morning();
  const StepResult after = Step(2);
  EXPECT_TRUE(Of<model::CreateNodeRequest>(after).empty());
  // The provider may not have received them: they are sent again, which is harmless.
  EXPECT_EQ(loop_->MakeView(At(2)).gpus_held, 2);
}

TEST_F(PurchaseTest, NodeIsUsedWhenItsDevicesAreThereAndGivenBackWhenEmpty) {
  Morning();
  StepResult result = Step(1);
  const auto created = Of<model::CreateNodeRequest>(result);
  ASSERT_EQ(created.size(), 2u);
  AnswerAll(result);
  for (const auto& create : created) Put(Stored(create.request));
  auto launches = Of<model::LaunchNode>(result);
  result = Step(2);
  for (const auto& launch : Of<model::LaunchNode>(result)) launches.push_back(launch);
  AnswerAll(result);
  ASSERT_EQ(launches.size(), 2u);
  model::Node expected = launches[0].node;
  const std::string name = launches[0].request->meta.name;
  EXPECT_EQ(expected.meta.name, name);
  expected.meta.uid = "uid-node";
  expected.meta.labels.Set(model::kNodeRequestLabel, name);
  expected.meta.labels.Set(model::kInstanceTypeLabel, "gpu.small");
  expected.allocatable = {{"cpu", 8000}, {"memory", 32 * model::testing::kGiB}, {"pods", 110}};
  Put(expected);  // no GPU yet
  EXPECT_TRUE(Of<model::BindPod>(Step(3)).empty());
  expected.taints.clear();
  expected.ready = true;  // reported by its kubelet; the launched node is not ready yet
  model::Set(expected.allocatable, model::kGpuName, 1000);
  Put(expected);
  result = Step(4);
  const auto binds = Of<model::BindPod>(result);
  ASSERT_EQ(binds.size(), 1u);
  EXPECT_EQ(binds[0].node, name);
  AnswerAll(result);

  // Everything goes away: both nodes are scaled down, the registered one after its taint is seen.
  for (int i = 0; i < 3; ++i) {
    loop_->Apply(model::Delete{model::Kind::kPod, "ns", absl::StrCat("p", i), ""});
  }
  bool tainted = false;
  bool terminated = false;
  absl::Time now = At(5);
  for (int round = 0; round < 50 && !terminated; ++round) {
    result = loop_->Step(now);
    for (const auto& taint : Of<model::SetNodeTaint>(result)) {
      EXPECT_EQ(taint.taint.key, model::kRemovalTaint);
      EXPECT_TRUE(taint.present);
      tainted = true;
      expected.taints = {taint.taint};
      Put(expected);
    }
    for (const auto& terminate : Of<model::TerminateNode>(result)) {
      if (terminate.request_name == name) {
        EXPECT_TRUE(tainted) << "removed before its taint was seen";
        terminated = true;
      }
    }
    AnswerAll(result);
    now = std::max(now + absl::Seconds(1), std::min(result.wake_at, now + absl::Minutes(10)));
  }
  EXPECT_TRUE(terminated);
}

// In the step after the purchase the promised pods are seen, and the third is not bought for again.
TEST_F(PurchaseTest, PodsThatShareAZoneAreBoughtForBesideThoseThatArePromisedNodes) {
  SyncAll();
  Put(MakeQueue("research", "", 8, 8));
  const auto tied = [](int number) {
    model::Pod pod = PodBuilder("ns", absl::StrCat("p", number))
                         .Queue("research")
                         .Gpus(1)
                         .Label("app", "a")
                         .Created(number);
    model::PodAffinityTerm term;
    term.selector.none = false;
    term.selector.requirements.push_back({"app", model::SelectorOperator::kIn, {"a"}});
    term.topology_key = model::kZoneLabel;
    pod.spec.pod_affinity.push_back(term);
    pod.spec.labels_for_affinity = pod.meta.labels;
    return pod;
  };
  Put(tied(0));
  Put(tied(1));
  StepResult result = Step(1);
  EXPECT_EQ(Of<model::CreateNodeRequest>(result).size(), 2u);
  AnswerAll(result);
  Put(tied(2));
  result = Step(2);
  EXPECT_EQ(Of<model::CreateNodeRequest>(result).size(), 1u);
  AnswerAll(result);
  for (int at = 3; at < 10; ++at) EXPECT_TRUE(Of<model::CreateNodeRequest>(Step(at)).empty());
}

TEST_F(PurchaseTest, GpuCapIsACodeOfItsOwn) {
  options_.hook.cluster_gpu_limit = 1;
  Restart();
  Morning();
  std::map<std::string, std::string> reasons;
  const StepResult result = Step(1);
  for (const auto& write : Of<model::SetPodUnschedulable>(result))
    reasons[write.name] = write.reason;
  EXPECT_EQ(Of<model::CreateNodeRequest>(result).size(), 1u);
  EXPECT_EQ(reasons.at("p0"), "NodesRequested");
  EXPECT_EQ(reasons.at("p1"), "GpuCapReached");
  // `p1` is not served, so nothing of the limit is promised to it.
  EXPECT_EQ(reasons.at("p2"), "GpuCapReached");
}

// Every node that could take `large` exceeds the cap by itself: it is not charged to its queue.
TEST_F(PurchaseTest, PodThatACapExcludesHoldsNoOtherBelowALimit) {
  options_.hook.cluster_gpu_limit = 3;
  Restart();
  SyncAll();
  Put(MakeQueue("research", "", 4, 4));
  Put(PodBuilder("ns", "large").Queue("research").Gpus(4).Created(0).Build());
  Put(PodBuilder("ns", "small").Queue("research").Gpus(1).Created(1).Build());
  EXPECT_EQ(Of<model::CreateNodeRequest>(Step(1)).size(), 1u);
  std::map<std::string, verdict::Code> codes;
  for (const WaitingRow& row : loop_->MakeView(At(1)).waiting) {
    codes[row.workload] = row.verdict.code;
  }
  EXPECT_EQ(codes.at("ns/large"), verdict::Code::kGpuCapReached);
  EXPECT_EQ(codes.at("ns/small"), verdict::Code::kNodesRequested);
}

// The machine costs money from its launch on: an object must record it.
TEST_F(PurchaseTest, NothingIsLaunchedBeforeTheRequestIsSeenToExist) {
  for (const absl::Status& answer : {absl::OkStatus(), absl::UnavailableError("outcome unknown"),
                                     absl::AlreadyExistsError("of an earlier attempt")}) {
    SCOPED_TRACE(answer.ToString());
    Restart();
    Morning();
    const StepResult first = Step(1);
    const auto created = Of<model::CreateNodeRequest>(first);
    ASSERT_EQ(created.size(), 2u);
    EXPECT_TRUE(Of<model::LaunchNode>(first).empty());
    AnswerThe<model::CreateNodeRequest>(first, answer);
    EXPECT_TRUE(Of<model::LaunchNode>(Step(2)).empty());
    Put(MakeNode("elsewhere", 0));
    const StepResult third = Step(3);
    EXPECT_TRUE(Of<model::LaunchNode>(third).empty());
    for (const auto& again : Of<model::CreateNodeRequest>(third)) {
      EXPECT_TRUE(absl::IsUnavailable(answer)) << "asked again without need";
      EXPECT_TRUE(again.request->meta.name == created[0].request->meta.name ||
                  again.request->meta.name == created[1].request->meta.name)
          << "bought twice";
    }
    Put(Stored(created[0].request));
    // The machines of a decision are ordered together: the other request may be seen in a moment.
    EXPECT_TRUE(Of<model::LaunchNode>(Step(4)).empty());
    const auto launched = Of<model::LaunchNode>(Step(7));
    ASSERT_EQ(launched.size(), 1u);
    EXPECT_EQ(launched[0].request->meta.name, created[0].request->meta.name);
  }
}

// A creation that never arrived is repeated, and nothing is ordered beside it.
TEST_F(PurchaseTest, LostCreationIsRepeatedUntilItArrives) {
  Morning();
  StepResult result = Step(1);
  std::map<std::string, int> asked;
  absl::Time now = At(1);
  for (int i = 0; i < 100; ++i) {
    for (const auto& create : Of<model::CreateNodeRequest>(result)) {
      EXPECT_EQ(create.request->instance_type, "gpu.small");
      ++asked[create.request->meta.name];
    }
    AnswerThe<model::CreateNodeRequest>(result, absl::UnavailableError("lost"));
    if (result.wake_at > now) now = std::min(result.wake_at, now + absl::Minutes(1));
    result = StepAt(now);
  }
  ASSERT_GT(now, At(1) + 2 * options_.hook.launch_timeout);
  EXPECT_EQ(asked.size(), 2u);
  for (const auto& [name, times] : asked) {
    EXPECT_GT(times, 4) << name;
    EXPECT_LT(times, 10 + (now - At(1)) / absl::Minutes(1)) << name << ": the pauses grow";
  }
}

// The first attempt may have been carried out: a refusal of its repetition buys nothing again.
TEST_F(PurchaseTest, RefusalAfterAnUnknownCreationIsNotBelieved) {
  for (const absl::Status& refusal :
       {absl::PermissionDeniedError("403"), absl::InvalidArgumentError("422"),
        absl::AbortedError("409: the quota has changed"), absl::ResourceExhaustedError("shed")}) {
    SCOPED_TRACE(refusal.ToString());
    Restart();
    Morning();
    StepResult result = Step(1);
    const auto created = Of<model::CreateNodeRequest>(result);
    ASSERT_THAT(created, SizeIs(2));
    AnswerThe<model::CreateNodeRequest>(result, absl::DeadlineExceededError("no answer"));
    std::set<std::string> names;
    int repeated = 0;
    for (int at = 2; at < 90; ++at) {
      result = Step(at);
      for (const auto& create : Of<model::CreateNodeRequest>(result)) {
        names.insert(create.request->meta.name);
        ++repeated;
      }
      AnswerThe<model::CreateNodeRequest>(result, refusal);
    }
    EXPECT_EQ(names.size(), 2u) << "bought again";
    EXPECT_GT(repeated, 4);
    EXPECT_LT(repeated, 30) << "the pauses grow";
    // They were created.
    for (const auto& create : created) Put(Stored(create.request));
    EXPECT_THAT(Of<model::LaunchNode>(Step(91)), SizeIs(2));
  }
}

TEST_F(PurchaseTest, RefusedRequestsAreNotShownAndNotAskedForInALoop) {
  Morning();
  int asked = 0;
  absl::Time now = At(1);
  for (int i = 0; i < 100 && now < At(50); ++i) {
    const StepResult result = StepAt(now);
    asked += static_cast<int>(Of<model::CreateNodeRequest>(result).size());
    const View view = loop_->MakeView(now);
    EXPECT_EQ(view.gpus_held, 0);
    EXPECT_EQ(view.price_micro_usd_per_hour, 0);
    for (const NodeRow& node : view.nodes) EXPECT_FALSE(node.confirmed) << node.name;
    AnswerThe<model::CreateNodeRequest>(result, absl::PermissionDeniedError("no"));
    if (!Of<model::CreateNodeRequest>(result).empty()) {
      now += absl::Milliseconds(20);  // the answer comes
    } else {
      ASSERT_GT(result.wake_at, now);
      now = result.wake_at;
    }
  }
  EXPECT_GT(asked, 0);
  EXPECT_LE(asked, 4);
  EXPECT_TRUE(loop_->MakeView(now).nodes.empty());
}

TEST_F(PurchaseTest, ExpectedTimeIsNeverInThePast) {
  options_.hook.expected_boot = absl::Minutes(3);
  options_.hook.ready_timeout = absl::Hours(1);
  Restart();
  Morning();
  StepResult result = Step(1);
  for (const auto& create : Of<model::CreateNodeRequest>(result)) Put(Stored(create.request));
  AnswerAll(result);
  absl::Time now = At(2);
  for (int i = 0; i < 40 && now < At(600); ++i) {
    AnswerAll(StepAt(now));  // includes the launches
    result = StepAt(now);
    AnswerAll(result);
    for (const WaitingRow& row : loop_->MakeView(now).waiting) {
      if (row.verdict.code != verdict::Code::kNodesRequested) continue;
      EXPECT_GT(row.verdict.expected_at.value_or(absl::InfiniteFuture()), now) << row.message;
      const bool late = row.message.find("later than expected") != std::string::npos;
      EXPECT_EQ(late, now >= At(182)) << row.message << " at " << now;  // launched at 2
    }
    ASSERT_GT(result.wake_at, now);
    now = std::min(result.wake_at, now + absl::Minutes(5));
  }
}

TEST_F(PurchaseTest, CodesOfTheHookBringTheirOwnAdvice) {
  options_.hook.cluster_gpu_limit = 1;
  Restart();
  Morning();
  Put(MakeQueue("research", "", 4, 3));
  Put(PodBuilder("ns", "huge").Queue("research").Gpus(1).Cpu(1'000'000).Created(-1).Build());
  (void)Step(1);
  std::map<std::string, verdict::Code> codes;
  for (const WaitingRow& row : loop_->MakeView(At(1)).waiting) {
    codes[row.workload] = row.verdict.code;
    std::string advice;
    for (const auto& unblocker : row.verdict.unblockers) advice += unblocker.what + "; ";
    if (row.verdict.code == verdict::Code::kGpuCapReached) {
      EXPECT_NE(advice.find("raise the GPU cap"), std::string::npos) << advice;
    }
    if (row.verdict.code == verdict::Code::kNoInstanceTypeFits) {
      EXPECT_NE(advice.find("request less"), std::string::npos) << advice;
    }
    EXPECT_EQ(advice.find("asked for nodes"), std::string::npos) << advice;
  }
  EXPECT_EQ(codes.at("ns/huge"), verdict::Code::kNoInstanceTypeFits);
  EXPECT_EQ(codes.at("ns/p0"), verdict::Code::kNodesRequested);
  EXPECT_EQ(codes.at("ns/p1"), verdict::Code::kGpuCapReached);
}

// What its author can mend comes first: an idle node would do, and so would types on offer.
TEST_F(PurchaseTest, AMistypedSelectorIsToldFirst) {
  Morning();
  Put(MakeNode("idle", 8));
  model::Pod typo = PodBuilder("ns", "typo").Queue("research").Gpus(1).Created(-1).Build();
  typo.spec.node_selector.Set("acelerator", "a100");
  Put(typo);
  Put(PodBuilder("ns", "huge").Queue("research").Gpus(1).Cpu(1'000'000).Created(-1).Build());
  (void)Step(1);
  std::map<std::string, WaitingRow> rows;
  for (WaitingRow& row : loop_->MakeView(At(1)).waiting) rows[row.workload] = row;
  const WaitingRow& row = rows.at("ns/typo");
  EXPECT_EQ(row.verdict.code, verdict::Code::kNoInstanceTypeFits);
  EXPECT_THAT(row.message, StartsWith("0/1 nodes are available: 1 node(s) didn't match Pod's node "
                                      "affinity/selector. No instance type on offer can run "));
  EXPECT_EQ(row.verdict.unblockers.front().what, "change its node selector or affinity");
  EXPECT_THAT(row.message, Not(HasSubstr("request less")));
  EXPECT_THAT(verdict::Sentence(row.verdict), HasSubstr("with its node selector or affinity"));
  EXPECT_EQ(rows.at("ns/huge").verdict.unblockers.front().what, "request less in one pod");
}

// Provisioned for, or victims evicted for: never both.
TEST_F(PurchaseTest, NoPodIsEvictedForWhatWasBoughtFor) {
  SyncAll();
  Put(MakeQueue("low", "", 0, kUnlimited));
  Put(MakeQueue("high", "", 4, kUnlimited));
  Put(MakeNode("n", 1));
  Put(PodBuilder("ns", "victim").Queue("low").Gpus(1).On("n").Build());
  for (int i = 0; i < 3; ++i) {
    Put(PodBuilder("ns", absl::StrCat("p", i)).Queue("high").Gpus(1).Created(i).Build());
  }
  size_t evicted = 0, bought = 0;
  for (int at = 1; at < 4; ++at) {
    const StepResult result = Step(at);
    evicted += Of<model::EvictPod>(result).size();
    bought += Of<model::CreateNodeRequest>(result).size();
    for (const auto& create : Of<model::CreateNodeRequest>(result)) Put(Stored(create.request));
    AnswerAll(result);
  }
  EXPECT_EQ(evicted, 1u);
  EXPECT_EQ(evicted + bought, 3u) << "one place for each of three pods";
}

// A gang that loses its minimum goes whole, and leaves more capacity than its preemptor needs.
TEST_F(PurchaseTest, RoomThatVictimsLeaveIsPromisedBeforeAnythingIsBought) {
  SyncAll();
  Put(MakeQueue("low", "", 0, kUnlimited));
  Put(MakeQueue("high", "", 4, kUnlimited));
  Put(MakeNode("n", 2));
  Put(MakeGroup("ns", "gang", "low", 2));
  for (int i = 0; i < 2; ++i) {
    Put(PodBuilder("ns", absl::StrCat("v", i)).Group("gang").Gpus(1).On("n").Build());
    Put(PodBuilder("ns", absl::StrCat("p", i)).Queue("high").Gpus(1).Created(i).Build());
  }
  const StepResult result = Step(1);
  EXPECT_EQ(Of<model::EvictPod>(result).size(), 2u);
  EXPECT_TRUE(Of<model::CreateNodeRequest>(result).empty()) << "bought beside room that comes free";
  for (const WaitingRow& row : loop_->MakeView(At(1)).waiting) {
    if (row.queue == "high") {
      EXPECT_EQ(row.verdict.code, verdict::Code::kWaitingForVictims);
    }
  }
}

TEST_F(PurchaseTest, NodeWithoutItsRequestGetsItBackAndIsUsed) {
  Morning();
  StepResult result = Step(1);
  const auto created = Of<model::CreateNodeRequest>(result);
  ASSERT_EQ(created.size(), 2u);
  for (const auto& create : created) Put(Stored(create.request));
  AnswerAll(result);
  result = Step(2);
  AnswerAll(result);
  model::Node node = Of<model::LaunchNode>(result).at(0).node;
  node.meta.uid = "uid-node";
  node.ready = true;
  // A new process finds the node; its request was deleted by force.
  Restart();
  Put(node);
  SyncAll();
  absl::Time now = At(100);
  std::vector<model::CreateNodeRequest> adopted;
  for (int i = 0; i < 20 && adopted.empty(); ++i) {
    result = StepAt(now);
    adopted = Of<model::CreateNodeRequest>(result);
    AnswerAll(result);
    now = std::min(result.wake_at, now + absl::Minutes(10));
  }
  ASSERT_EQ(adopted.size(), 1u);
  EXPECT_EQ(adopted[0].request->meta.name, node.meta.name);
  EXPECT_EQ(adopted[0].request->instance_type, "gpu.small");
  EXPECT_EQ(adopted[0].request->price_micro_usd_per_hour, 1'000'000);
  Put(Stored(adopted[0].request));
  Put(MakeQueue("research", "", 4, 2));
  Put(PodBuilder("ns", "p").Queue("research").Gpus(1).Build());
  result = StepAt(now);
  ASSERT_EQ(Of<model::BindPod>(result).size(), 1u);
  EXPECT_EQ(Of<model::BindPod>(result)[0].node, node.meta.name);
  EXPECT_TRUE(Of<model::CreateNodeRequest>(result).empty());
}

TEST_F(PurchaseTest, HookIsAskedOnlyWhenItWouldSaySomethingNew) {
  options_.hook.cluster_gpu_limit = 1;
  Restart();
  Morning();
  Put(MakeQueue("other", "", 4, kUnlimited));
  Put(MakeNode("n", 0));
  StepResult result = Step(1);
  const auto created = Of<model::CreateNodeRequest>(result);
  ASSERT_EQ(created.size(), 1u);
  Put(Stored(created[0].request));
  for (int i = 0; i < 5; ++i) {
    AnswerAll(result);
    result = Step(2);
  }
  Put(PodBuilder("ns", "c").Queue("other").Build());
  (void)Step(3);
  const auto hook_steps = [&] { return loop_->stats().hook_steps; };
  const uint64_t before = hook_steps();
  // Pods come and run elsewhere: there are cycles, but no work for the hook.
  for (int i = 0; i < 10; ++i) {
    Put(PodBuilder("ns", absl::StrCat("c", i)).Queue("other").Build());
    EXPECT_EQ(Of<model::BindPod>(Step(3)).size(), 1u);
  }
  EXPECT_EQ(hook_steps(), before);
  // Its last answer is still shown.
  std::map<std::string, verdict::Code> codes;
  for (const WaitingRow& row : loop_->MakeView(At(3)).waiting)
    codes[row.workload] = row.verdict.code;
  EXPECT_EQ(codes.at("ns/p0"), verdict::Code::kNodesRequested);
  EXPECT_EQ(codes.at("ns/p1"), verdict::Code::kGpuCapReached);
  // The demand changes; the node is not needed any more.
  loop_->Apply(model::Delete{model::Kind::kPod, "ns", "p1", ""});
  (void)Step(4);
  EXPECT_EQ(hook_steps(), before + 1);
  loop_->Apply(model::Delete{model::Kind::kPod, "ns", "p0", ""});
  loop_->Apply(model::Delete{model::Kind::kPod, "ns", "p2", ""});
  (void)Step(5);
  EXPECT_GT(hook_steps(), before + 1);
  // Its own timers: only time passes.
  absl::Time now = At(5);
  bool cancelled = false;
  for (int i = 0; i < 20 && !cancelled; ++i) {
    result = StepAt(now);
    AnswerAll(result);
    cancelled = !Of<model::TerminateNode>(result).empty();
    now = std::min(result.wake_at, now + absl::Minutes(1));
  }
  EXPECT_TRUE(cancelled);
}

}  // namespace
}  // namespace fairlead::core::testing
