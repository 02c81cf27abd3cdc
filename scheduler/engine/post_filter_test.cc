// What PostFilter plugins propose: what is carried out, and what is not.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"
#include "scheduler/framework/scheduling_points.h"
#include "scheduler/model/testing/budget_builders.h"

namespace fairlead::engine {
namespace {

using framework::PostFilterPlugin;
using model::testing::At;
using model::testing::MakeBudget;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Job;
using testing::Member;
using testing::PreemptibleGroup;
using ::testing::UnorderedElementsAre;

// Node -> victims, by name.
using Proposals = std::vector<std::pair<std::string, std::vector<std::string>>>;

class Proposer final : public PostFilterPlugin {
 public:
  explicit Proposer(const Proposals* proposals, int* asked)
      : proposals_(proposals), asked_(asked) {}
  [[nodiscard]] absl::string_view Name() const override { return "Proposer"; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeObject;
  }
  [[nodiscard]] std::vector<Proposal> PostFilter(const framework::Context& context,
                                                 const state::PodRecord&) const override {
    ++*asked_;
    std::vector<Proposal> proposals;
    for (const auto& [node, victims] : *proposals_) {
      Proposal& proposal = proposals.emplace_back();
      proposal.node = context.state.FindNode(node);
      for (const std::string& victim : victims) {
        proposal.victims.push_back(context.state.FindPod("ns", victim));
      }
    }
    return proposals;
  }

 private:
  const Proposals* proposals_;
  int* asked_;
};

// Nodes n1 and n2 of two GPUs are full of pods of one, all of queue q and of one priority.
class PostFilterTest : public ::testing::Test {
 protected:
  void Begin(bool default_preemption = true, bool last = false, EngineOptions options = {}) {
    framework::Registry registry;
    ASSERT_TRUE(plugins::RegisterAll(registry).ok());
    ASSERT_TRUE(registry
                    .Register("Proposer",
                              [this](absl::string_view) {
                                return std::make_unique<Proposer>(&proposals_, &asked_);
                              })
                    .ok());
    framework::Profile profile = framework::DefaultProfile();
    framework::ProfilePlugin entry{"Proposer"};
    entry.post_filter_last = last;
    profile.plugins.push_back(entry);
    profile.default_preemption = default_preemption;
    auto framework = framework::Framework::Make(profile, registry);
    ASSERT_TRUE(framework.ok()) << framework.status();
    engine_ = std::make_unique<Engine>(options, &state_, &tree_, *std::move(framework));
    model::Queue queue = model::testing::MakeQueue("q", "", model::kUnlimited, model::kUnlimited);
    tree_.Upsert(queue);
    tree_.Upsert(model::testing::MakeQueue("other", "", model::kUnlimited, model::kUnlimited));
    engine_->OnQueuesChanged();
    for (const char* node : {"n1", "n2"}) state_.UpsertNode(model::testing::MakeNode(node, 2));
    for (const auto& [name, node] :
         {std::pair("a1", "n1"), {"b1", "n1"}, {"a2", "n2"}, {"b2", "n2"}}) {
      Put(Job(name, "q", 1).On(node));
    }
  }
  void Put(const model::testing::PodBuilder& pod) { state_.UpsertPod(pod.Build()); }
  std::vector<std::string> Evicted() {
    result_ = engine_->RunCycle(At(100), /*may_evict=*/true);
    EXPECT_EQ(engine_->CheckConsistency(), "");
    std::vector<std::string> names;
    for (const Eviction& eviction : result_.evictions)
      names.push_back(state_.pod(eviction.pod).name);
    return names;
  }

  Proposals proposals_;
  int asked_ = 0;
  state::ClusterState state_{testing::OurPods()};
  queues::QueueTree tree_{state_.resource_names()};
  std::unique_ptr<Engine> engine_;
  CycleResult result_;
};

TEST_F(PostFilterTest, TheFirstProposalThatMakesRoomIsCarriedOut) {
  Begin();
  proposals_ = {{"n1", {"a1"}}, {"n2", {"a2", "b2"}}, {"n1", {"a1", "b1"}}};
  Put(Job("big", "q", 2, 50));
  EXPECT_THAT(Evicted(), UnorderedElementsAre("a2", "b2")) << "one GPU is not enough";
  EXPECT_THAT(
      result_.evictions[0].message,
      HasSubstr("Evicted (postFilter) for workload ns/big of queue q: Proposer proposed it"));
}

TEST_F(PostFilterTest, PodsThatFitAreNotAskedAbout) {
  Begin();
  state_.UpsertNode(model::testing::MakeNode("n3", 2));
  Put(Job("big", "q", 2, 50));
  EXPECT_THAT(Evicted(), IsEmpty());
  EXPECT_EQ(asked_, 0);
}

TEST_F(PostFilterTest, PodsThatMayNotGoStay) {
  Begin();
  Put(Job("big", "q", 1, 50));
  // Of another node; not there; the pod itself; twice.
  proposals_ = {{"n1", {"a2"}}, {"n1", {"gone"}}, {"none", {"a1"}}, {"n1", {"big"}}};
  EXPECT_THAT(Evicted(), IsEmpty());
  Put(Job("a1", "q", 1).Preemptible(false).On("n1"));
  proposals_ = {{"n1", {"a1"}}};
  EXPECT_THAT(Evicted(), IsEmpty()) << "it is not preemptible";
  state_.UpsertNode(model::testing::MakeNode("n1", 3));
  Put(Job("x", "other", 1).On("n1"));
  proposals_ = {{"n1", {"x"}}};
  EXPECT_THAT(Evicted(), IsEmpty()) << "another queue's";
  proposals_ = {{"n2", {"b2", "b2"}}};
  EXPECT_THAT(Evicted(), ElementsAre("b2"));
}

TEST_F(PostFilterTest, ABudgetIsRespectedAsLongAsThereIsAnotherChoice) {
  Begin();
  state_.UpsertDisruptionBudget(MakeBudget("all", "kept", 0));
  Put(Job("a1", "q", 1).Label("app", "kept").On("n1"));
  Put(Job("big", "q", 1, 50));
  proposals_ = {{"n1", {"a1"}}, {"n2", {"a2"}}};
  EXPECT_THAT(Evicted(), ElementsAre("a2"));
}

TEST_F(PostFilterTest, APodAtTheMinimumOfItsGangTakesTheGangAlong) {
  Begin();
  state_.UpsertPodGroup(PreemptibleGroup("g", "q", 2));
  for (const auto& [name, node] : {std::pair("g-0", "n1"), {"g-1", "n2"}}) {
    state_.UpsertNode(model::testing::MakeNode(node, 3));
    Put(Member(name, "g").Queue("q").On(node));
  }
  Put(Job("big", "q", 1, 50));
  proposals_ = {{"n1", {"g-0"}}};
  EXPECT_THAT(Evicted(), UnorderedElementsAre("g-0", "g-1"));
}

TEST_F(PostFilterTest, WithoutDefaultPreemptionNothingElseEvicts) {
  Begin(/*default_preemption=*/false);
  Put(Job("urgent", "q", 1, 50).Priority("urgent", 90));
  EXPECT_THAT(Evicted(), IsEmpty());
  proposals_ = {{"n1", {"b1"}}};
  EXPECT_THAT(Evicted(), ElementsAre("b1"));
}

TEST_F(PostFilterTest, BehindDefaultPreemptionItsTurnComesLast) {
  Begin(/*default_preemption=*/true, /*last=*/true);
  for (const char* name : {"a1", "b1", "a2", "b2"}) {
    Put(Job(name, "q", 1).Priority("low", 40).On(name[1] == '1' ? "n1" : "n2"));
  }
  Put(Job("urgent", "q", 1, 50).Priority("urgent", 90));
  proposals_ = {{"n1", {"a1"}}};
  ASSERT_THAT(Evicted(), ::testing::SizeIs(1));
  EXPECT_THAT(result_.evictions[0].message, HasSubstr("Evicted (preempt)"));
  EXPECT_EQ(asked_, 0);
}

}  // namespace
}  // namespace fairlead::engine
