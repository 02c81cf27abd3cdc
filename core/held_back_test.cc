// PreEnqueue: pods that a plugin holds back wait without being considered, until an event lets them
// in. The plugin here lets a pod in if its queue's name is on a node's label.
#include "core/held_back.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"
#include "scheduler/framework/enqueue_points.h"

namespace fairlead::core::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kTicket[] = "ticket";

// Pods with the label need a node with the same value.
class Tickets final : public framework::PreEnqueuePlugin {
 public:
  explicit Tickets(int* asked) : asked_(asked) {}
  [[nodiscard]] absl::string_view Name() const override { return "Tickets"; }
  [[nodiscard]] std::vector<std::string> PodLabels() const override { return {kTicket}; }
  [[nodiscard]] std::vector<model::Kind> EventsToRegister() const override {
    return {model::Kind::kNode};
  }
  [[nodiscard]] std::string PreEnqueue(const state::ClusterState& state,
                                       const state::PodRecord& pod) const override {
    ++*asked_;
    const auto& labels = state.pod_class(pod.pod_class).spec->labels_for_plugins;
    const absl::string_view ticket = labels.Get(kTicket);
    if (ticket.empty()) return "";
    const state::NodeId node = state.FindNode("board");
    const bool there = node != state::kNoId && state.node(node).exists &&
                       state.node(node).object.meta.labels.Get(kTicket) == ticket;
    return there ? "" : absl::StrCat("ticket ", ticket, " is not called");
  }

 private:
  int* const asked_;
};

class HeldBackTest : public DecisionLoopTest {
 protected:
  HeldBackTest() {
    options_.plugins = *plugins::WithBuiltIn(
        {{"Tickets", [this](absl::string_view) { return std::make_unique<Tickets>(&asked_); }}});
    options_.profiles[0].plugins.push_back({"Tickets"});
  }
  void Begin() {
    Restart();
    SyncAll();
    Put(MakeQueue("q", "", kUnlimited, kUnlimited));
    Put(MakeNode("n", 0, 8, 64));
  }
  static model::Pod Pod(const std::string& name, const std::string& ticket) {
    PodBuilder pod("ns", name);
    pod.Queue("q").Cpu(1000);
    if (!ticket.empty()) pod.Label(kTicket, ticket);
    return pod;
  }
  // The node that no pod fits on.
  void Call(const std::string& ticket) {
    model::Node board = MakeNode("board", 0, 0, 0);
    board.meta.labels.Set(kTicket, ticket);
    Put(board);
  }
  std::string ToldOf(const std::string& name) {
    for (const auto& entry : loop_->MakeView(At(0)).waiting) {
      if (entry.workload == absl::StrCat("ns/", name)) return entry.message;
    }
    return "";
  }
  int asked_ = 0;
};

TEST_F(HeldBackTest, NothingIsDecidedForThem) {
  Begin();
  Put(Pod("a", "7"));
  Put(Pod("b", ""));
  const StepResult step = Step(1);
  EXPECT_THAT(BoundIn(step), ElementsAre("b"));
  EXPECT_THAT(Of<model::CreateNodeRequest>(step), IsEmpty()) << "the hook is on";
  const auto told = Of<model::SetPodUnschedulable>(step);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].reason, "Gated");
  EXPECT_THAT(told[0].message, HasSubstr("Held back by plugin Tickets: ticket 7 is not called"));
}

TEST_F(HeldBackTest, ARegisteredEventLetsThemIn) {
  Begin();
  for (const char* name : {"a", "b"}) Put(Pod(name, "7"));
  Put(Pod("c", "8"));
  EXPECT_THAT(BoundIn(Step(1)), IsEmpty());
  const int before = asked_;
  Put(MakeQueue("another", "", 1, 1));
  EXPECT_EQ(asked_, before) << "that kind is not registered";
  Call("7");
  EXPECT_THAT(BoundIn(Step(2)), ElementsAre("a", "b"));
  Call("8");
  EXPECT_THAT(BoundIn(Step(3)), ElementsAre("c"));
  // A pod that comes when it may is not held at all.
  Put(Pod("d", "8"));
  EXPECT_THAT(BoundIn(Step(4)), ElementsAre("d"));
  // What waits for capacity is not held back by an event.
  loop_->Apply(model::Delete{model::Kind::kNode, "", "board", ""});
  EXPECT_THAT(EvictedIn(Step(5)), IsEmpty());
}

TEST_F(HeldBackTest, AChangeOfThePodIsAskedAbout) {
  Begin();
  Put(Pod("a", "7"));
  EXPECT_THAT(BoundIn(Step(1)), IsEmpty());
  Put(Pod("a", "9"));
  Step(2);
  EXPECT_THAT(ToldOf("a"), HasSubstr("ticket 9"));
  Put(Pod("a", ""));
  EXPECT_THAT(BoundIn(Step(3)), ElementsAre("a"));
}

TEST_F(HeldBackTest, AGangWaitsForAllThatItNeeds) {
  Begin();
  Put(MakeGroup("ns", "g", "q", 2));
  Put(PodBuilder("ns", "a").Queue("q").Cpu(1000).Label(kTicket, "7").Group("g").Build());
  Put(PodBuilder("ns", "b").Queue("q").Cpu(1000).Group("g").Build());
  EXPECT_THAT(BoundIn(Step(1)), IsEmpty());
  EXPECT_THAT(ToldOf("g"), HasSubstr("plugin Tickets: ticket 7 is not called"));
  Call("7");
  EXPECT_THAT(BoundIn(Step(2)), ElementsAre("a", "b"));
}

TEST_F(HeldBackTest, PodsThatAreGoneAreForgotten) {
  Begin();
  Put(Pod("a", "7"));
  Step(1);
  loop_->Apply(model::Delete{model::Kind::kPod, "ns", "a", ""});
  const int before = asked_;
  Call("7");
  EXPECT_EQ(asked_, before);
  EXPECT_THAT(BoundIn(Step(2)), IsEmpty());
  // Another pod of its name is asked about by itself.
  model::Pod another = Pod("a", "8");
  another.meta.uid = "another";
  Put(another);
  EXPECT_THAT(BoundIn(Step(3)), IsEmpty());
  Call("8");
  EXPECT_THAT(BoundIn(Step(4)), ElementsAre("a"));
}

TEST_F(HeldBackTest, GatesAreNamed) {
  Begin();
  Put(PodBuilder("ns", "p").Queue("q").Cpu(1000).Gate("example.com/one").Gate("two").Build());
  Step(1);
  EXPECT_THAT(ToldOf("p"), HasSubstr("held by scheduling gates (example.com/one, two)"));
}

}  // namespace
}  // namespace fairlead::core::testing
