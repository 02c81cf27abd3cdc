// Demand for which no nodes can be provisioned holds no other demand below a limit: through the
// whole decision loop, with an API server and a cloud that are controlled by hand.
#include "core/unservable_demand.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/testing/affinity_builders.h"

namespace fairlead::core::testing {
namespace {

using ::testing::HasSubstr;
using verdict::Code;

TEST(UnservableKindsTest, BothAnswersDoNotTakeTurns) {
  UnservableDemand unservable;
  const std::vector<UnservableDemand::Answer> refused = {{7, false, true}}, served = {{7, true}};
  absl::Time now = At(0);
  EXPECT_FALSE(unservable.Update({{7, false, false}}, now)) << "nothing was decided";
  EXPECT_TRUE(unservable.Update(refused, now));
  EXPECT_TRUE(unservable.kinds().contains(7));
  int changes = 0;
  for (int second = 0; second < 1200; ++second, now += absl::Seconds(1)) {
    const bool charged = !unservable.kinds().contains(7);
    changes += static_cast<int>(unservable.Update(charged ? refused : served, now));
  }
  // After 0, 10, 20, 40, 80, 160 and 300 s, and so on: each time it is charged and refused again.
  EXPECT_LE(changes, 20);
  EXPECT_GE(changes, 16);
}

TEST(UnservableKindsTest, WhatIsServedForgetsItsPauses) {
  UnservableDemand unservable;
  absl::Time now = At(0);
  for (int round = 0; round < 10; ++round, now += absl::Seconds(1)) {
    EXPECT_TRUE(unservable.Update({{7, false, true}}, now)) << round;
    EXPECT_TRUE(unservable.Update({{7, true, false}}, now)) << round;
    EXPECT_TRUE(unservable.kinds().empty());
    // Nodes for some, and a cap holds the others.
    EXPECT_TRUE(unservable.Update({{7, true, true}}, now)) << round;
    EXPECT_TRUE(unservable.Update({{7, true, false}}, now)) << round;
    EXPECT_FALSE(unservable.Update({{7, true, false}}, now)) << round;
  }
}

TEST(UnservableKindsTest, WhatIsNotDemandedIsForgottenAndTheNumberIsBounded) {
  UnservableDemand unservable;
  std::vector<UnservableDemand::Answer> many;
  for (uint64_t kind = 1; kind <= UnservableDemand::kMaxKinds + 5; ++kind) {
    many.push_back({kind, false, true});
  }
  EXPECT_TRUE(unservable.Update(many, At(0)));
  EXPECT_EQ(unservable.kinds().size(), UnservableDemand::kMaxKinds);
  EXPECT_FALSE(unservable.kinds().contains(UnservableDemand::kMaxKinds + 1));
  EXPECT_FALSE(unservable.Update({many[0]}, At(500)));
  EXPECT_FALSE(unservable.Update({}, At(600)));
  EXPECT_EQ(unservable.kinds().size(), 1u);
  EXPECT_TRUE(unservable.kinds().contains(1));
}

// Lone pods, or gangs of two pods: then all amounts are doubled.
class UnservableDemandTest : public DecisionLoopTest, public ::testing::WithParamInterface<bool> {
 protected:
  [[nodiscard]] int Pods() const { return GetParam() ? 2 : 1; }

  void Begin(int64_t limit, const std::string& parent = "") {
    Restart();
    SyncAll();
    if (!parent.empty()) Put(MakeQueue(parent, "", kUnlimited, Pods() * limit));
    Put(MakeQueue("q", parent, kUnlimited, parent.empty() ? Pods() * limit : kUnlimited));
    Put(MakeQueue("other", "", kUnlimited, kUnlimited));
  }
  void Job(const std::string& name, int64_t gpus, int64_t created, const std::string& queue = "q",
           const std::string& needs_app = "") {
    if (GetParam()) {
      model::PodGroup group = MakeGroup("ns", name, queue, Pods());
      group.meta.creation = At(created);
      Put(group);
    }
    for (int i = 0; i < Pods(); ++i) {
      PodBuilder pod("ns", GetParam() ? absl::StrCat(name, "-", i) : name);
      pod.Queue(queue).Gpus(gpus).Created(created);
      if (GetParam()) pod.Group(name);
      model::Pod built = pod.Build();
      if (!needs_app.empty()) {
        built.spec.pod_affinity.push_back(
            model::testing::AppTerm(needs_app, "kubernetes.io/hostname"));
      }
      jobs_[name].push_back(built);
      Put(built);
    }
  }
  // Two GPUs each, and beside pods of an app that does not exist: of a single app, or one app per
  // job.
  void LostJobs(int count, bool one_app) {
    for (int i = 0; i < count; ++i) {
      Job(absl::StrCat("lost-", i), 2, i, "q", one_app ? "missing" : absl::StrCat("missing-", i));
    }
  }
  void Remove(const std::string& name) {
    for (const model::Pod& pod : jobs_[name]) {
      loop_->Apply(model::Delete{model::Kind::kPod, "ns", pod.meta.name, ""});
    }
    if (GetParam()) loop_->Apply(model::Delete{model::Kind::kPodGroup, "ns", name, ""});
  }

  // Steps of five seconds; what is asked for is done at once, nodes come after `boot_`.
  void Play(int steps) {
    for (int i = 0; i < steps; ++i, now_ += absl::Seconds(5)) {
      for (auto it = booting_.begin(); it != booting_.end();) {
        if (it->second.first > now_) {
          ++it;
          continue;
        }
        Put(it->second.second);
        it = booting_.erase(it);
      }
      absl::Time at = now_;
      for (int again = 0; again < 20; ++again) {
        const StepResult result = StepAt(at);
        Carry(result);
        if (result.wake_at > at + absl::Seconds(1)) break;
        at = std::max(at, result.wake_at);
      }
    }
  }
  void Carry(const StepResult& result) {
    for (const Action& action : result.actions) {
      absl::Status answer;
      if (const auto* create = std::get_if<model::CreateNodeRequest>(&action.what)) {
        ++requests_;
        model::NodeRequest request = Stored(create->request);
        for (const std::string& workload : request.reason_workloads) served_.insert(workload);
        Put(request);
      } else if (const auto* update = std::get_if<model::UpdateNodeRequestStatus>(&action.what)) {
        Put(model::NodeRequest(update->request));
      } else if (const auto* launch = std::get_if<model::LaunchNode>(&action.what)) {
        const std::string& name = launch->request->meta.name;
        if (launch->request->instance_type == unavailable_) {
          answer = absl::ResourceExhaustedError("stock-out");
        } else {
          model::Node node = launch->node;
          node.meta.uid = absl::StrCat("uid-", name);
          node.meta.labels.Set(model::kNodeRequestLabel, name);
          node.taints.clear();
          node.ready = true;
          if (launch->request->instance_type == tainted_) {
            node.taints.push_back({"unknown", "", model::TaintEffect::kNoSchedule});
          }
          booting_[name] = {now_ + boot_, node};
        }
      } else if (const auto* gone = std::get_if<model::DeleteNodeRequest>(&action.what)) {
        loop_->Apply(model::Delete{model::Kind::kNodeRequest, "", gone->name, gone->uid});
      } else if (const auto* bind = std::get_if<model::BindPod>(&action.what)) {
        for (auto& [name, pods] : jobs_) {
          for (model::Pod& pod : pods) {
            if (pod.meta.name != bind->name) continue;
            pod.node_name = bind->node;
            pod.phase = model::PodPhase::kRunning;
            Put(pod);
          }
        }
      } else if (std::holds_alternative<model::SetPodUnschedulable>(action.what) ||
                 std::holds_alternative<model::SetPodGroupSchedulability>(action.what)) {
        ++verdict_writes_;
      }
      loop_->Apply(model::ActionResult{action.id, answer});
    }
  }
  static model::NodeRequest Stored(model::NodeRequest request) {
    request.meta.uid = absl::StrCat("uid-", request.meta.name);
    request.meta.creation = At(1);
    return request;
  }

  [[nodiscard]] bool WasServed(const std::string& name) const {
    return served_.contains(absl::StrCat("ns/", name));
  }
  [[nodiscard]] bool Runs(const std::string& name) const {
    const std::vector<model::Pod>& pods = jobs_.at(name);
    return std::all_of(pods.begin(), pods.end(),
                       [](const model::Pod& pod) { return !pod.node_name.empty(); });
  }
  WaitingRow RowOf(const std::string& name) {
    for (WaitingRow& row : loop_->MakeView(now_).waiting) {
      if (row.workload == absl::StrCat("ns/", name)) return row;
    }
    return {};
  }
  Code CodeOf(const std::string& name) { return RowOf(name).verdict.code; }
  // Once all is served that can be, nothing is written or requested any more. What was promised is
  // in use by then, which is told a minute later.
  void ExpectSettled() {
    Play(20);
    const int64_t writes = verdict_writes_, requests = requests_;
    Play(50);
    EXPECT_EQ(verdict_writes_, writes);
    EXPECT_EQ(requests_, requests);
  }

  absl::Time now_ = At(100);
  absl::Duration boot_ = absl::Seconds(20);
  std::string unavailable_, tainted_;  // instance types
  std::map<std::string, std::vector<model::Pod>> jobs_;
  std::map<std::string, std::pair<absl::Time, model::Node>> booting_;
  std::set<std::string> served_;  // workloads that nodes were requested for
  int64_t requests_ = 0, verdict_writes_ = 0;
};

TEST_P(UnservableDemandTest, AffinityToPodsThatDoNotExist) {
  Begin(2);
  Job("lost", 2, 1, "q", "missing");
  Job("next", 2, 2);
  Play(1);
  EXPECT_TRUE(WasServed("next"));
  EXPECT_EQ(CodeOf("next"), Code::kNodesRequested);
  EXPECT_FALSE(WasServed("lost"));
  ExpectSettled();
}

// No node has so many GPUs. Its demand holds nothing below the limit, from the first moment on.
TEST_P(UnservableDemandTest, NothingIsChargedWhileDemandIsGathered) {
  options_.hook.gathering_quiet = absl::Seconds(2);
  options_.hook.gathering_max = absl::Seconds(4);
  Begin(100);
  Job("lost", 100, 1);
  Job("next", 2, 2);
  Carry(StepAt(now_));
  EXPECT_EQ(CodeOf("lost"), Code::kNoInstanceTypeFits);
  // A gang of which every pod is there is not gathered.
  EXPECT_EQ(CodeOf("next"), GetParam() ? Code::kNodesRequested : Code::kInsufficientCapacity);
  EXPECT_EQ(WasServed("next"), GetParam());
  Play(2);
  EXPECT_TRUE(WasServed("next"));
  ExpectSettled();
}

TEST_P(UnservableDemandTest, WhatHasAPartnerAgainIsServedInItsTurn) {
  Begin(4);
  Job("lost", 1, 1, "q", "missing");
  Job("late", 4, 2);
  Play(1);
  EXPECT_TRUE(WasServed("late"));
  EXPECT_EQ(CodeOf("lost"), Code::kQueueLimitReached);
  EXPECT_EQ(RowOf("lost").verdict.queue_block->used, 0);
  EXPECT_EQ(RowOf("lost").verdict.queue_block->promised, Pods() * 4000);
  Remove("late");
  Play(1);
  EXPECT_EQ(CodeOf("lost"), Code::kNoInstanceTypeFits);
  model::Pod partner = PodBuilder("ns", "partner").Queue("other").Gpus(1).Created(3).Build();
  partner.meta.labels.Set("app", "missing");
  Put(partner);
  jobs_["partner"].push_back(partner);
  Play(20);
  EXPECT_TRUE(Runs("lost"));
}

// A kind that was not demanded for a time is unknown, and not refused for ever.
TEST_P(UnservableDemandTest, WhatWasForgottenIsServed) {
  options_.hook.cluster_gpu_limit = 4;
  options_.hook.cancel_after = absl::Seconds(5);
  Begin(4);
  jobs_["first"].push_back(PodBuilder("ns", "first").Queue("other").Gpus(4).Build());
  Put(jobs_["first"].back());
  // As long as there is a pod like "large", both are of one kind.
  Put(MakeNode("own", 2));
  Put(PodBuilder("ns", "alike").Queue("other").Gpus(2).On("own").Build());
  Play(6);
  Job("large", 2, 1);
  Play(2);
  EXPECT_EQ(CodeOf("large"), Code::kGpuCapReached);
  Remove("large");
  // The hook has other questions meanwhile.
  for (absl::Time end = now_ + 2 * UnservableDemand::kForgotten; now_ < end;) {
    const std::string name = absl::StrCat("other-", absl::ToUnixSeconds(now_));
    Job(name, 1, 2, "other");
    Play(12);
    Remove(name);
  }
  const std::string node = jobs_["first"].front().node_name;
  loop_->Apply(model::Delete{model::Kind::kPod, "ns", "first", ""});
  loop_->Apply(model::Delete{model::Kind::kNode, "", node, ""});
  Play(60);
  Job("large-again", 2, 60);
  Play(20);
  EXPECT_TRUE(Runs("large-again"));
}

TEST_P(UnservableDemandTest, CapThatOtherNodesHaveUsedUp) {
  options_.hook.cluster_gpu_limit = 4 + Pods();
  Begin(3);
  jobs_["first"].push_back(PodBuilder("ns", "first").Queue("other").Gpus(4).Build());
  Put(jobs_["first"].back());
  Play(6);
  EXPECT_EQ(requests_, 1);
  Job("large", 2, 1);
  Job("small", 1, 2);
  Job("small-too", 1, 3);
  Play(1);
  EXPECT_TRUE(WasServed("small"));
  EXPECT_FALSE(WasServed("large"));
  EXPECT_EQ(CodeOf("large"), Code::kGpuCapReached);
  // It is within the limit, and no cap leaves anything for it.
  EXPECT_EQ(CodeOf("small-too"), Code::kGpuCapReached);
  ExpectSettled();
  EXPECT_EQ(CodeOf("large"), Code::kGpuCapReached);
}

TEST_P(UnservableDemandTest, WhatNoCapHoldsAnyMoreIsServedBeforeWhatCameAfterIt) {
  options_.hook.cluster_gpu_limit = 8;
  options_.hook.cancel_after = absl::Seconds(5);
  Begin(4);
  for (int i = 0; i < 2; ++i) {
    jobs_["first"].push_back(
        PodBuilder("ns", absl::StrCat("first", i)).Queue("other").Gpus(4).Build());
    Put(jobs_["first"].back());
  }
  Play(6);
  Job("a", 4, 1);
  Job("b", 4, 2);
  Play(2);
  EXPECT_EQ(CodeOf("a"), Code::kGpuCapReached);
  EXPECT_EQ(CodeOf("b"), Code::kGpuCapReached);
  if (GetParam()) loop_->Apply(model::Delete{model::Kind::kPod, "ns", "first0", ""});
  loop_->Apply(model::Delete{model::Kind::kPod, "ns", "first1", ""});
  Play(60);
  EXPECT_TRUE(Runs("a"));
  EXPECT_FALSE(Runs("b"));
  EXPECT_EQ(CodeOf("b"), Code::kQueueLimitReached);
}

TEST_P(UnservableDemandTest, BackoffAfterAFailedLaunch) {
  unavailable_ = "gpu.large";
  Begin(4);
  Job("large", 4, 1);
  Job("small", 1, 2);
  Play(3);
  EXPECT_TRUE(WasServed("large"));
  EXPECT_TRUE(WasServed("small"));
  EXPECT_EQ(CodeOf("small"), Code::kNodesRequested);
  ExpectSettled();
}

TEST_P(UnservableDemandTest, BackoffOfAQueueBesideIt) {
  unavailable_ = "gpu.large";
  Begin(4, "dept");
  Put(MakeQueue("r", "dept", kUnlimited, kUnlimited));
  Job("large", 4, 1);
  Job("small", 1, 2, "r");
  Play(3);
  EXPECT_TRUE(WasServed("small"));
  ExpectSettled();
}

TEST_P(UnservableDemandTest, PurchaseThatDidNotHelp) {
  tainted_ = "gpu.large";
  Begin(4);
  Job("large", 4, 1);
  Play(2);
  EXPECT_TRUE(WasServed("large"));
  Job("small", 1, 2);
  Play(20);
  EXPECT_TRUE(WasServed("small"));
  ExpectSettled();
}

// One after the other is found out within few steps.
TEST_P(UnservableDemandTest, ManyKindsThatCannotBeServed) {
  Begin(2);
  LostJobs(12, /*one_app=*/false);
  Job("next", 2, 100);
  Play(2);
  EXPECT_TRUE(WasServed("next"));
  ExpectSettled();
}

// What cannot be served is told so, and not that others of its kind use the limit up.
TEST_P(UnservableDemandTest, AllOfAKindAreToldTheSame) {
  Begin(2);
  LostJobs(5, /*one_app=*/true);
  Play(2);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(CodeOf(absl::StrCat("lost-", i)), Code::kNoInstanceTypeFits) << i;
  }
  ExpectSettled();
}

INSTANTIATE_TEST_SUITE_P(LonePodsAndGangs, UnservableDemandTest, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "Gangs" : "LonePods"; });

}  // namespace
}  // namespace fairlead::core::testing
