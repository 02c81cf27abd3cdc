// Which evictions go out when, and how the loop handles refusals.
#include "core/reconcile/evictions.h"

#include <map>
#include <random>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/configuration.h"
#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/model/testing/budget_builders.h"

namespace fairlead::core::testing {
namespace {

using model::testing::MakeBudget;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

Evictions::Victim Victim(absl::string_view name, uint64_t gang = 0, bool may_be_refused = false) {
  return {{"ns", std::string(name), absl::StrCat("uid-", name), "R", "m"},
          gang,
          may_be_refused,
          "ns/w",
          Evictions::Cause::kWaiting};
}

std::vector<std::string> Names(const std::vector<model::EvictPod>& evictions) {
  std::vector<std::string> names;
  for (const model::EvictPod& evict : evictions) names.push_back(evict.name);
  return names;
}

std::vector<std::string> Due(Evictions& evictions, absl::Time now) {
  return Names(evictions.TakeDue(now, [](const Evictions::Victim&) { return true; }));
}

void Accept(Evictions& evictions, const std::string& uid, absl::Time now) {
  evictions.Answered(uid, absl::OkStatus(), now);
}

Evictions::Answer Refuse(Evictions& evictions, const std::string& uid, absl::Time now) {
  return evictions.Answered(uid, absl::ResourceExhaustedError("429"), now);
}

// ---- the pace

TEST(EvictionPaceTest, NoMoreThanMaxInFlightAreUnansweredAndAnswersMakePlace) {
  Evictions evictions({.max_in_flight = 2});
  evictions.Add({Victim("a", 1), Victim("b", 2), Victim("c", 3)});
  EXPECT_THAT(Due(evictions, At(0)), ElementsAre("a", "b"));
  EXPECT_THAT(Due(evictions, At(9)), IsEmpty());
  EXPECT_EQ(evictions.wake_at(), absl::InfiniteFuture()) << "an answer wakes";
  Accept(evictions, "uid-a", At(1));
  EXPECT_THAT(Due(evictions, At(9)), ElementsAre("c"));
  EXPECT_EQ(evictions.queued(), 0u);
  EXPECT_EQ(evictions.in_flight(), 2u);
}

TEST(EvictionPaceTest, GangsGoTogetherInTheOrderOfTheDecisions) {
  Evictions evictions({.max_in_flight = 3});
  evictions.Add({Victim("a", 1), Victim("b", 1)});
  evictions.Add({Victim("c", 2), Victim("d", 2), Victim("e", 2), Victim("f", 3)});
  EXPECT_THAT(Due(evictions, At(0)), ElementsAre("a", "b", "c", "d", "e"))
      << "one place is free, and half a gang is worth nothing";
  Accept(evictions, "uid-a", At(1));
  Accept(evictions, "uid-b", At(1));
  EXPECT_THAT(Due(evictions, At(0)), IsEmpty()) << "it took more than there was";
  Accept(evictions, "uid-c", At(1));
  EXPECT_THAT(Due(evictions, At(0)), ElementsAre("f"));
}

TEST(EvictionPaceTest, ARateHoldsOnAverageAndSaysWhenToGoOn) {
  Evictions evictions({.max_in_flight = model::kUnlimited, .per_second = 10, .burst = 5});
  std::vector<Evictions::Victim> set;
  for (int i = 0; i < 100; ++i) set.push_back(Victim(absl::StrCat("p", i), i));
  evictions.Add(set);
  absl::Time now = At(0);
  EXPECT_EQ(Due(evictions, now).size(), 5u);
  size_t sent = 5;
  while (evictions.queued() > 0) {
    ASSERT_GT(evictions.wake_at(), now);
    ASSERT_LE(evictions.wake_at(), now + absl::Milliseconds(100));
    now = evictions.wake_at();
    sent += Due(evictions, now).size();
    EXPECT_LE(sent, 5 + absl::ToDoubleSeconds(now - At(0)) * 10 + 1e-6);
  }
  EXPECT_EQ(sent, 100u);
  EXPECT_EQ(now, At(0) + absl::Milliseconds(9500));
}

TEST(EvictionPaceTest, AThousandGoWithinASecondOfAnswersThatTakeTenMilliseconds) {
  Evictions evictions({});
  std::vector<Evictions::Victim> set;
  for (int i = 0; i < 1000; ++i) set.push_back(Victim(absl::StrCat("p", i), i));
  evictions.Add(set);
  absl::Time now = At(0);
  for (; evictions.queued() > 0; now += absl::Milliseconds(10)) {
    for (const std::string& name : Due(evictions, now)) {
      EXPECT_LE(evictions.in_flight(), 256u);
      Accept(evictions, absl::StrCat("uid-", name), now);
    }
  }
  EXPECT_LE(now, At(0) + absl::Milliseconds(100));
}

TEST(EvictionPaceTest, APodThatIsNoLongerWantedIsDroppedAndHoldsNoOtherUp) {
  Evictions evictions({.max_in_flight = 1});
  evictions.Add({Victim("a", 1, /*may_be_refused=*/true), Victim("b", 2)});
  const auto all_but_a = [](const Evictions::Victim& v) { return v.evict.name != "a"; };
  EXPECT_THAT(Names(evictions.TakeDue(At(0), all_but_a)), ElementsAre("b"));
  EXPECT_EQ(evictions.queued(), 0u);
}

// ---- victims that may be refused

TEST(EvictionSetTest, APodThatMayBeRefusedGoesFirstAndTheRestWaits) {
  Evictions evictions({});
  evictions.Add({Victim("a", 1), Victim("b", 2, true), Victim("c", 3)});
  evictions.Add({Victim("x", 4)});
  EXPECT_THAT(Due(evictions, At(0)), ElementsAre("b", "x")) << "other sets need not wait";
  EXPECT_THAT(Due(evictions, At(1)), IsEmpty());
  Accept(evictions, "uid-b", At(1));
  EXPECT_THAT(Due(evictions, At(1)), ElementsAre("a", "c"));
}

TEST(EvictionSetTest, ARefusalSparesTheRestOfItsSetAlone) {
  Evictions evictions({});
  evictions.Add({Victim("a", 1), Victim("b", 2, true), Victim("b2", 3, true), Victim("c", 4)});
  evictions.Add({Victim("x", 5), Victim("y", 6, true)});
  EXPECT_THAT(Due(evictions, At(0)), ElementsAre("b", "b2", "y"));
  EXPECT_THAT(Names(Refuse(evictions, "uid-b", At(0)).spared), ElementsAre("a", "c"));
  EXPECT_THAT(Names(Refuse(evictions, "uid-b2", At(0)).spared), IsEmpty());
  EXPECT_EQ(evictions.queued(), 1u);
  Accept(evictions, "uid-y", At(1));
  EXPECT_THAT(Due(evictions, At(0)), ElementsAre("x"));
}

TEST(EvictionSetTest, VictimsThatServeNothingAreDroppedAloneOnceTheirCycleIsOver) {
  Evictions evictions({});
  evictions.Add({Victim("a", 1), Victim("b", 2), Victim("c", 3, true)});
  const auto serves = [](const Evictions::Purpose&, const model::EvictPod& evict) {
    return evict.name == "a";
  };
  EXPECT_TRUE(evictions.Prune(serves).empty());
  evictions.Settle();
  const auto pruned = evictions.Prune(serves);
  ASSERT_EQ(pruned.size(), 1u);
  EXPECT_THAT(Names(pruned[0].victims), ElementsAre("c", "b"));
  EXPECT_EQ(pruned[0].purpose->for_workload, "ns/w");
  EXPECT_EQ(evictions.queued(), 1u);
  EXPECT_THAT(Due(evictions, At(0)), ElementsAre("a"));
}

TEST(EvictionSetTest, AnUnknownOutcomeLetsTheRestGo) {
  Evictions evictions({});
  evictions.Add({Victim("a", 1), Victim("b", 2, true)});
  EXPECT_THAT(Due(evictions, At(0)), ElementsAre("b"));
  evictions.Answered("uid-b", absl::UnavailableError("no connection"), At(0));
  EXPECT_THAT(Due(evictions, At(0)), ElementsAre("a"));
}

TEST(EvictionSetTest, DoubtsComeAgainWithGrowingPausesUntilAnAnswerDecides) {
  Evictions evictions({});
  evictions.Add({Victim("a", 1)});
  EXPECT_THAT(Due(evictions, At(0)), ElementsAre("a"));
  absl::Time now = At(0);
  for (const int64_t pause : {1, 2, 4}) {
    EXPECT_EQ(evictions.in_flight(), 1u);
    evictions.Answered("uid-a", absl::UnavailableError("no connection"), now);
    EXPECT_EQ(evictions.in_flight(), 0u);
    EXPECT_EQ(evictions.retries(), 1u);
    EXPECT_EQ(evictions.wake_at(), now + absl::Seconds(pause));
    EXPECT_TRUE(evictions.TakeDoubts(now).empty());
    now = evictions.wake_at();
    const std::vector<Evictions::Doubt> doubts = evictions.TakeDoubts(now);
    ASSERT_EQ(doubts.size(), 1u);
    EXPECT_EQ(doubts[0].purpose->for_workload, "ns/w");
    evictions.SentAgain("uid-a", now);
  }
  const Evictions::Answer answer = Refuse(evictions, "uid-a", now);
  EXPECT_EQ(answer.outcome, Outcome::kRefused) << "the pod is assumed to stay";
  EXPECT_EQ(answer.evict.name, "a");
  EXPECT_EQ(answer.until, now + absl::Seconds(8)) << "all attempts are one series";
  EXPECT_EQ(evictions.wake_at(), absl::InfiniteFuture());
}

// ---- back-off

TEST(EvictionBackoffTest, DoublesUpToItsMaximumAndStartsAnewAfterALongPeace) {
  Evictions evictions({});
  absl::Time now = At(0);
  const auto refused = [&](absl::string_view name) {
    evictions.Add({Victim(name, 1)});
    EXPECT_THAT(Due(evictions, now), ElementsAre(name));
    return Refuse(evictions, absl::StrCat("uid-", name), now).until;
  };
  std::vector<int64_t> pauses;
  for (int i = 0; i < 9; ++i) {
    const absl::Time until = refused("u");
    pauses.push_back(absl::ToInt64Seconds(until - now));
    now = until;
  }
  EXPECT_THAT(pauses, ElementsAre(1, 2, 4, 8, 16, 32, 60, 60, 60));
  EXPECT_EQ(refused("another"), now + absl::Seconds(1));
  now += absl::Minutes(2);
  EXPECT_EQ(refused("u"), now + absl::Seconds(1));
}

// Every victim goes once, is dropped or is spared, and no place leaks.
TEST(EvictionsProperty, EveryVictimIsAccountedFor) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    auto below = [&](uint32_t bound) { return random() % bound; };
    EvictionOptions options;
    options.max_in_flight = 1 + below(6);
    options.per_second = below(2) == 0 ? 0 : 1 + below(50);
    Evictions evictions(options);
    std::map<std::string, int> seen;
    std::vector<std::string> unanswered;
    int added = 0;
    absl::Time now = At(0);
    for (int round = 0; round < 60 || evictions.queued() + unanswered.size() > 0; ++round) {
      ASSERT_LT(round, 10'000);
      now += absl::Milliseconds(below(round < 60 ? 200 : 2000));
      if (round < 60 && below(2) == 0) {
        std::vector<Evictions::Victim> set;
        for (uint32_t i = 0; i < 1 + below(6); ++i) {
          set.push_back(Victim(absl::StrCat("p", added++), below(3), below(4) == 0));
        }
        evictions.Add(set);
      }
      for (const std::string& name : Due(evictions, now)) {
        ++seen[name];
        unanswered.push_back(name);
      }
      while (!unanswered.empty() && below(3) != 0) {
        const size_t at = below(static_cast<uint32_t>(unanswered.size()));
        const std::string uid = absl::StrCat("uid-", unanswered[at]);
        unanswered.erase(unanswered.begin() + static_cast<ptrdiff_t>(at));
        if (below(4) == 0) {
          for (const auto& spared : Refuse(evictions, uid, now).spared) ++seen[spared.name];
        } else {
          Accept(evictions, uid, now);
        }
      }
      ASSERT_EQ(evictions.in_flight(), unanswered.size());
    }
    EXPECT_EQ(evictions.queued(), 0u);
    EXPECT_EQ(seen.size(), static_cast<size_t>(added));
    for (const auto& [name, times] : seen) EXPECT_EQ(times, 1) << name;
  }
}

// ---- configuration

TEST(EvictionConfigurationTest, FieldsReachTheirOptionsAndNonsenseIsNamed) {
  const auto read = [](absl::string_view evictions) {
    return ReadConfiguration({absl::StrCat(
        R"({"apiVersion":"config.fairlead.dev/v1alpha1","kind":"FairleadConfiguration",)",
        R"("evictions":)", evictions, "}")});
  };
  const auto good = read(R"({"maxInFlight":-1,"perSecond":20,"burst":5})");
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ(good->options.evictions.max_in_flight, model::kUnlimited);
  EXPECT_EQ(good->options.evictions.per_second, 20);
  EXPECT_EQ(good->options.evictions.burst, 5);
  for (const char* field : {"maxInFlight", "perSecond", "burst"}) {
    const int64_t worst = absl::string_view(field) == "maxInFlight" ? 0 : -1;
    const auto bad = read(absl::StrCat(R"({")", field, R"(":)", worst, "}"));
    EXPECT_THAT(bad.status().ToString(), HasSubstr(absl::StrCat("evictions.", field)));
  }
}

// ---- in the loop

class EvictionLoopTest : public FullNodeTest {
 protected:
  std::vector<std::string> Asked(const StepResult& result) {
    return Names(Of<model::EvictPod>(result));
  }
  std::string VerdictOf(const StepResult& result) {
    const auto writes = Of<model::SetPodUnschedulable>(result);
    return writes.empty() ? "" : writes.back().reason + ": " + writes.back().verdict_json;
  }
};

TEST_F(EvictionLoopTest, ARefusedVictimIsNotAskedAgainAtOnce) {
  Start(1, 1);
  std::map<int64_t, int> asked;  // by minute
  absl::Time now = At(0);
  StepResult result = StepAt(now);
  while (now < At(600)) {
    asked[absl::ToInt64Minutes(now - At(0))] += static_cast<int>(Asked(result).size());
    AnswerThe<model::EvictPod>(result, absl::PermissionDeniedError("403"));
    ASSERT_GE(result.wake_at, now);
    // An answer is an event.
    const absl::Time next = Asked(result).empty() ? result.wake_at : now;
    now = std::min(std::max(next, now + absl::Milliseconds(1)), now + absl::Minutes(1));
    result = StepAt(now);
  }
  EXPECT_LE(asked[0], 7) << "1, 2, 4, 8, 16 and 32 seconds apart";
  EXPECT_GE(asked[0], 6);
  for (int minute = 2; minute < 10; ++minute) EXPECT_LE(asked[minute], 2) << minute;
  EXPECT_GE(asked[8] + asked[9], 1) << "never given up";
}

// The workload is started in the headroom that the victim leaves, on another node.
TEST_F(EvictionLoopTest, AnEvictionThatALimitNeedsGoesAlthoughTheWorkloadWasBound) {
  for (const int64_t per_second : {0, 1}) {
    SCOPED_TRACE(per_second == 0 ? "at once" : "at a pace");
    options_.hook.enabled = false;
    options_.evictions.per_second = per_second;
    Restart();
    SyncAll();
    Put(MakeQueue("q", "", kUnlimited, 2));
    Put(MakeNode("n", 2));
    Put(MakeNode("m", 2));
    for (int i = 0; i < 2; ++i) Put(Victim(i));
    for (int i = 0; i < 2; ++i) {
      Put(PodBuilder("ns", absl::StrCat("high", i))
              .Queue("q")
              .Gpus(1)
              .Priority("high", 60)
              .Created(100)
              .Build());
    }
    std::set<std::string> asked, bound;
    for (int64_t at = 1; at < 20; ++at) {
      const StepResult result = Step(at);
      for (const std::string& name : Asked(result)) asked.insert(name);
      for (const auto& bind : Of<model::BindPod>(result)) bound.insert(bind.name);
      AnswerAll(result);
    }
    EXPECT_THAT(bound, UnorderedElementsAre("high0", "high1"));
    EXPECT_THAT(asked, UnorderedElementsAre("v0", "v1"));
  }
}

// The workload waits for capacity that another pod leaves, and the victim for nothing.
TEST_F(EvictionLoopTest, AnEvictionThatALimitNeedsGoesAlthoughOtherCapacityIsAwaited) {
  options_.hook.enabled = false;
  Restart();
  SyncAll();
  Put(MakeQueue("q", "", kUnlimited, 1));
  Put(MakeQueue("other", "", kUnlimited, kUnlimited));
  Put(MakeNode("m", 1));
  Put(MakeNode("n", 1));
  Put(Victim(0));
  Put(PodBuilder("ns", "ends").Queue("other").Gpus(1).On("m").Deleting().Build());
  Put(PodBuilder("ns", "high")
          .Queue("q")
          .Gpus(1)
          .NodeSelector(model::kHostnameLabel, "m")
          .Priority("high", 60));
  const StepResult result = Step(1);
  EXPECT_THAT(Asked(result), ElementsAre("v0"));
  EXPECT_THAT(Of<model::BindPod>(result), IsEmpty());
}

TEST_F(EvictionLoopTest, ABudgetThatSaysNoIsAskedOnceAndTheVerdictStands) {
  Start(1, 1);
  Put(MakeBudget("b", "", 0));
  StepResult result = Step(1);
  ASSERT_THAT(Asked(result), ElementsAre("v0"));
  AnswerThe<model::EvictPod>(result, absl::ResourceExhaustedError("429: b says no"));
  result = Step(1);
  EXPECT_THAT(VerdictOf(result), HasSubstr("refused by PodDisruptionBudget ns/b"));
  EXPECT_THAT(VerdictOf(result), Not(HasSubstr("WaitingForVictims")));
  AnswerAll(result);
  int writes = 0;
  for (int64_t at = 2; at < 7200; at += 7) {
    result = Step(at);
    EXPECT_THAT(Asked(result), IsEmpty()) << at;
    writes += static_cast<int>(Of<model::SetPodUnschedulable>(result).size());
    AnswerAll(result);
  }
  EXPECT_EQ(writes, 0) << "nothing changed";
  model::PodDisruptionBudget budget = MakeBudget("b", "", 1);
  Put(budget);
  EXPECT_THAT(Asked(Step(7201)), ElementsAre("v0"));
}

TEST_F(EvictionLoopTest, TheRestOfASetIsSparedWhenOneIsRefused) {
  Start(3, 3);
  Put(MakeBudget("b", "app1", 0));
  StepResult result = Step(1);
  ASSERT_THAT(Asked(result), ElementsAre("v1")) << "the doubtful one first";
  AnswerThe<model::EvictPod>(result, absl::ResourceExhaustedError("429"));
  result = Step(1);
  EXPECT_THAT(Asked(result), IsEmpty());
  // All of them run on: a smaller workload may still take the place of one.
  Put(PodBuilder("ns", "small").Queue("q").Gpus(1).Priority("high", 60).Created(100).Build());
  EXPECT_THAT(Asked(Step(2)), ElementsAre("v2"));
}

TEST_F(EvictionLoopTest, TheRestFollowsWhenTheDoubtfulOneIsLetThrough) {
  Start(3, 3);
  Put(MakeBudget("b", "app1", 0));
  StepResult result = Step(1);
  ASSERT_THAT(Asked(result), ElementsAre("v1"));
  AnswerThe<model::EvictPod>(result, absl::OkStatus());
  result = Step(1);
  EXPECT_THAT(Asked(result), UnorderedElementsAre("v0", "v2"));
}

TEST_F(EvictionLoopTest, WhatIsLeavingAlreadyIsNotWasted) {
  Start(3, 2);
  StepResult result = Step(1);
  ASSERT_THAT(Asked(result), UnorderedElementsAre("v1", "v2"));
  for (size_t i = 0; i < result.actions.size(); ++i) {
    const auto* evict = std::get_if<model::EvictPod>(&result.actions[i].what);
    const bool refused = evict != nullptr && evict->name == "v2";
    Answer(result, i, refused ? absl::PermissionDeniedError("403") : absl::OkStatus());
  }
  EXPECT_THAT(Asked(Step(1)), ElementsAre("v0")) << "one more, not two";
}

TEST_F(EvictionLoopTest, NoPodIsEvictedForAWorkloadThatIsGone) {
  options_.evictions.max_in_flight = 1;
  Start(3, 3);
  StepResult result = Step(1);
  ASSERT_EQ(Asked(result).size(), 1u);
  loop_->Apply(model::Delete{model::Kind::kPod, "ns", "high", "uid-ns-high"});
  AnswerThe<model::EvictPod>(result, absl::OkStatus());
  for (int at = 2; at < 10; ++at) {
    result = Step(at);
    EXPECT_THAT(Asked(result), IsEmpty());
    AnswerAll(result);
  }
}

TEST_F(EvictionLoopTest, APodThatIsGoneNeedsNoAskingAndNoOtherTakesItsPlace) {
  Start(2, 1);
  StepResult result = Step(1);
  ASSERT_THAT(Asked(result), ElementsAre("v1"));
  AnswerThe<model::EvictPod>(result, absl::NotFoundError("404"));
  loop_->Apply(model::Delete{model::Kind::kPod, "ns", "v1", "uid-ns-v1"});
  EXPECT_THAT(Asked(Step(2)), IsEmpty());
}

// A proxy, or a server that starts, may answer 404 by mistake.
TEST_F(EvictionLoopTest, APodThatIsSaidToBeGoneAndRunsIsAskedAgain) {
  Start(2, 1);
  std::vector<std::string> asked;
  for (int at = 1; at < 10; ++at) {
    const StepResult result = Step(at);
    for (const std::string& name : Asked(result)) asked.push_back(name);
    if (asked.size() < 3) {
      AnswerThe<model::EvictPod>(result, absl::NotFoundError("404"));
    } else {
      AnswerAll(result);
    }
  }
  EXPECT_THAT(asked, ElementsAre("v1", "v1", "v1"));
}

TEST_F(EvictionLoopTest, TheEventComesWithTheEvictionAndNotWithARefusal) {
  options_.emit_events = true;
  for (const bool refused : {true, false}) {
    SCOPED_TRACE(refused);
    Start(1, 1);
    StepResult result = Step(1);
    const auto told = [](const StepResult& step) {
      std::string notes;
      for (const auto& event : Of<model::EmitEvent>(step)) {
        if (event.reason == "FailedScheduling") continue;  // of the workload
        absl::StrAppend(&notes, event.reason, " ", event.name, ": ", event.note);
      }
      return notes;
    };
    EXPECT_EQ(told(result), "");
    const auto evictions = Of<model::EvictPod>(result);
    ASSERT_EQ(evictions.size(), 1u);
    EXPECT_EQ(evictions[0].reason, "PreemptionByScheduler");
    AnswerThe<model::EvictPod>(result,
                               refused ? absl::PermissionDeniedError("403") : absl::OkStatus());
    const std::string note = told(Step(1));
    if (refused) {
      EXPECT_EQ(note, "");
    } else {
      EXPECT_EQ(note, absl::StrCat("Preempted v0: Preempted by pod uid-ns-high on node n. ",
                                   evictions[0].message));
      EXPECT_THAT(note, HasSubstr("(preempt) for workload ns/high of queue q"));
    }
  }
}

TEST_F(EvictionLoopTest, TheRateIsKeptByStepsThatTheLoopAsksFor) {
  options_.evictions.per_second = 2;
  options_.evictions.burst = 1;
  Start(4, 4);
  absl::Time now = At(1);
  std::vector<absl::Time> sent;
  while (sent.size() < 4 && now < At(60)) {
    const StepResult result = StepAt(now);
    for (size_t i = 0; i < Asked(result).size(); ++i) sent.push_back(now);
    AnswerAll(result);
    now = std::min(std::max(result.wake_at, now + absl::Milliseconds(1)), now + absl::Seconds(10));
  }
  ASSERT_EQ(sent.size(), 4u);
  for (size_t i = 1; i < 4; ++i) EXPECT_EQ(sent[i] - sent[i - 1], absl::Milliseconds(500));
}

// Victims are refused at random, by budgets that change at random. Every high-priority pod gets its
// capacity in the end, and no eviction is repeated within a second.
TEST_F(EvictionLoopTest, ARandomServerIsNeitherFloodedNorGivenUp) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    auto below = [&](uint32_t bound) { return static_cast<int>(random() % bound); };
    Start(4, 1 + below(4));
    std::map<std::string, absl::Time> last;
    absl::Time now = At(1);
    bool done = false;
    for (int round = 0; round < 600 && !done; ++round) {
      const StepResult result = StepAt(now);
      for (size_t i = 0; i < result.actions.size(); ++i) {
        const auto* evict = std::get_if<model::EvictPod>(&result.actions[i].what);
        if (evict == nullptr) {
          done = done || std::holds_alternative<model::BindPod>(result.actions[i].what);
          Answer(result, i, absl::OkStatus());
          continue;
        }
        const auto former = last.find(evict->name);
        if (former != last.end()) {
          EXPECT_GE(now - former->second, absl::Seconds(1));
        }
        last[evict->name] = now;
        if (below(3) == 0) {
          Answer(result, i, absl::OkStatus());
          loop_->Apply(model::Delete{model::Kind::kPod, evict->ns, evict->name, evict->uid});
        } else {
          Answer(result, i, absl::PermissionDeniedError("not now"));
        }
      }
      now = std::min(std::max(result.wake_at, now + absl::Milliseconds(below(400))),
                     now + absl::Seconds(5));
    }
    EXPECT_TRUE(done) << "the room was never made";
  }
}

// A node that becomes free takes one of two pods. Pods that are created in the victims' stead are
// promised what the remaining victims would leave, and come first in the order of queues; that does
// not keep the evictions.
TEST_F(EvictionLoopTest, RoomThatBecomesFreeSparesVictimsWhoseHeirsWaitForIt) {
  options_.evictions.per_second = 1;
  options_.evictions.burst = 1;
  options_.engine.consolidation = false;
  Restart();
  SyncAll();
  Put(MakeQueue("lo", "", 0, model::kUnlimited));
  Put(MakeQueue("hi", "", 24, model::kUnlimited));
  const auto job = [](absl::string_view name) {
    return PodBuilder("ns", name).Queue("lo").Gpus(1).Preemptible(true);
  };
  for (const char* node : {"n0", "n1"}) {
    Put(MakeNode(node, 8));
    for (int i = 0; i < 8; ++i) Put(job(absl::StrCat(node, "-", i)).On(node).Build());
  }
  Put(MakeGroup("ns", "gang", "hi", 2));
  for (const char* name : {"g0", "g1"}) Put(PodBuilder("ns", name).Group("gang").Gpus(8).Build());
  std::set<std::string> evicted;
  for (int at = 1; at < 40; ++at) {
    if (at == 3) Put(MakeNode("n2", 8));
    const StepResult result = Step(at);
    AnswerAll(result);
    for (const auto& evict : Of<model::EvictPod>(result)) {
      if (!evicted.insert(evict.name).second) continue;
      Put(job(absl::StrCat("again-", evict.name)).Created(at).Build());
    }
  }
  EXPECT_GE(evicted.size(), 8u);
  EXPECT_LE(evicted.size(), 10u);
}

}  // namespace
}  // namespace fairlead::core::testing
