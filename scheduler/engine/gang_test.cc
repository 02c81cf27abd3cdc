#include "scheduler/engine/gang.h"

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/state/transaction.h"

namespace fairlead::engine {
namespace {

using model::testing::MakeGroup;
using model::testing::MakeNode;
using model::testing::PodBuilder;
using state::PodId;
using state::PodStatus;
using state::Workload;

// A cluster of one node with the group ns/g, written as text.
//   group: "member=2" or "sub=1" for the group itself, then its sub-groups, each "; name[<parent]
//          [member=N] [sub=N]"
//   pods:  "name:set:status", "-" for no set; statuses wait, gate, promise, bind, bound, run, go,
//          done, fail, bad (waits, but is refused)
class GangWorld {
 public:
  GangWorld(absl::string_view group, absl::string_view pods) : state_(Options()) {
    state_.UpsertNode(MakeNode("n", 8));
    group_ = ParseGroup(group);
    state_.UpsertPodGroup(group_);
    for (absl::string_view pod : absl::StrSplit(pods, ' ', absl::SkipEmpty())) AddPod(pod);
  }
  GangWorld(const model::PodGroup& group, const std::vector<std::string>& pods)
      : state_(Options()) {
    state_.UpsertNode(MakeNode("n", 8));
    group_ = group;
    state_.UpsertPodGroup(group_);
    for (const std::string& pod : pods) AddPod(pod);
  }

  const Workload& workload() const { return state_.workload(state_.FindGroup("ns", "g")); }
  state::ClusterState& state() { return state_; }
  const model::PodGroup& group() const { return group_; }
  std::string Names(const std::vector<PodId>& pods) const {
    return absl::StrJoin(pods, " ",
                         [this](std::string* out, PodId id) { out->append(state_.pod(id).name); });
  }
  std::string Step() {
    const TasksToAllocate step = NextStep(state_, workload());
    return absl::StrCat(Names(step.pods), step.extra ? " +" : "");
  }
  // "set(pods)needed[children]"
  std::string TreeOf(const StepNode& node) {
    std::string out = absl::StrCat(workload().sets[static_cast<size_t>(node.set)].name, "(",
                                   Names(node.pods), ")", node.needed);
    if (node.children.empty()) return out;
    absl::StrAppend(&out, "[");
    for (const StepNode& child : node.children) absl::StrAppend(&out, TreeOf(child));
    return absl::StrCat(out, "]");
  }
  std::string Units(bool core) {
    return absl::StrJoin(
        EvictionUnits(state_, workload(), core), " | ",
        [this](std::string* out, const std::vector<PodId>& unit) { out->append(Names(unit)); });
  }

 private:
  static state::StateOptions Options() {
    state::StateOptions options;
    options.scheduler_names = {"fairlead"};
    return options;
  }
  static void ReadMinimums(const std::vector<absl::string_view>& words,
                           std::optional<int32_t>& member, std::optional<int32_t>& sub) {
    for (absl::string_view word : words) {
      const std::pair<absl::string_view, absl::string_view> pair = absl::StrSplit(word, '=');
      int32_t number = 0;
      if (!absl::SimpleAtoi(pair.second, &number)) continue;
      (pair.first == "member" ? member : sub) = number;
    }
  }
  static model::PodGroup ParseGroup(absl::string_view text) {
    model::PodGroup group = MakeGroup("ns", "g", "q", 0);
    group.min_member.reset();
    const std::vector<absl::string_view> parts = absl::StrSplit(text, ';');
    for (size_t i = 0; i < parts.size(); ++i) {
      const std::vector<absl::string_view> words = absl::StrSplit(parts[i], ' ', absl::SkipEmpty());
      if (i == 0) {
        ReadMinimums(words, group.min_member, group.min_sub_group);
        continue;
      }
      model::SubGroup& sub = group.sub_groups.emplace_back();
      const std::vector<std::string> names = absl::StrSplit(words[0], '<');
      sub.name = names[0];
      if (names.size() > 1) sub.parent = names[1];
      ReadMinimums(words, sub.min_member, sub.min_sub_group);
    }
    return group;
  }
  void AddPod(absl::string_view text) {
    const std::vector<std::string> words = absl::StrSplit(text, ':');
    const std::string& status = words[2];
    PodBuilder pod("ns", words[0]);
    pod.Group("g");
    if (words[1] != "-") pod.Label(model::kSubGroupLabel, words[1]);
    if (status == "run") pod.On("n");
    if (status == "bound") pod.On("n", model::PodPhase::kPending);
    if (status == "done") pod.On("n", model::PodPhase::kSucceeded);
    if (status == "fail") pod.On("n", model::PodPhase::kFailed);
    if (status == "go") pod.On("n").Deleting();
    if (status == "gate") pod.Gate("wait");
    model::Pod object = pod;
    if (status == "bad") object.invalid = "bad";
    state_.UpsertPod(object);
    const PodId id = state_.FindPod("ns", words[0]);
    state::Transaction txn(state_);
    if (status == "promise") txn.Pipeline(id, state_.FindNode("n"));
    if (status == "bind") txn.Allocate(id, state_.FindNode("n"));
    (void)txn.Commit();
  }

  state::ClusterState state_;
  model::PodGroup group_;
};

constexpr char kTwo[] = "member=3; a member=2; b member=1";

struct ReadyCase {
  const char* title;
  const char* group;
  const char* pods;
  Readiness ready;
  const char* step;
};

TEST(GangTest, ReadinessAndNextStep) {
  const ReadyCase cases[] = {
      // Nothing to start.
      {"no pods", "member=2", "", Readiness::kNothingWaits, ""},
      {"too few", "member=3", "p1:-:wait p2:-:wait", Readiness::kIncomplete, ""},
      {"gated", "member=2", "p1:-:wait p2:-:gate", Readiness::kGated, ""},
      {"gated, and yet too few", "member=3", "p1:-:wait p2:-:gate", Readiness::kIncomplete, ""},
      {"below its minimum, nothing waits", "member=2", "p1:-:run", Readiness::kNothingWaits, ""},
      {"extras are gated", "member=1", "p1:-:run p2:-:gate", Readiness::kGated, ""},
      {"all run", "member=1", "p1:-:run p2:-:run", Readiness::kNothingWaits, ""},
      {"one set lacks pods", kTwo, "p1:a:wait p2:a:wait p3:a:wait", Readiness::kIncomplete, ""},
      {"another set's pods do not help", kTwo, "p1:a:wait p2:b:wait p3:b:wait",
       Readiness::kIncomplete, ""},
      {"a gate in one set", kTwo, "p1:a:wait p2:a:wait p3:b:gate", Readiness::kGated, ""},
      {"a refused pod takes no part", "member=2", "p1:-:wait p2:-:bad", Readiness::kIncomplete, ""},
      {"nor does one of no set", "member=1; a member=1", "p1:x:wait", Readiness::kIncomplete, ""},
      {"terminating and finished pods are none", "member=2", "p1:-:go p2:-:fail p3:-:wait",
       Readiness::kIncomplete, ""},
      {"too few children for minSubGroup", "sub=2; a member=1; b member=1; c member=1",
       "p1:a:wait p2:a:wait", Readiness::kIncomplete, ""},
      {"own pods of a mixed set", "; m member=1; a<m member=1", "p1:a:wait", Readiness::kIncomplete,
       ""},
      // Without sub-groups.
      {"the minimum at once", "member=2", "p1:-:wait p2:-:wait p3:-:wait", Readiness::kReady,
       "p1 p2"},
      {"what is missing", "member=3", "p1:-:run p2:-:bind p3:-:wait p4:-:wait", Readiness::kReady,
       "p3"},
      {"a promise counts", "member=2", "p1:-:promise p2:-:wait p3:-:wait", Readiness::kReady, "p2"},
      {"one extra", "member=1", "p1:-:bound p2:-:wait p3:-:wait", Readiness::kReady, "p2 +"},
      {"all elastic", "member=0", "p1:-:wait p2:-:wait", Readiness::kReady, "p1 +"},
      {"a refused pod is passed over", "member=1", "p1:-:bad p2:-:wait", Readiness::kReady, "p2"},
      // Sub-groups, as in v0.13.
      {"all leaves", kTwo, "p1:a:wait p2:a:wait p3:a:wait p4:b:wait p5:b:wait", Readiness::kReady,
       "p1 p2 p4"},
      {"only the leaf that lacks", kTwo, "p1:a:run p2:a:run p3:a:wait p4:b:wait", Readiness::kReady,
       "p4"},
      {"the group's minimum asks for nothing more", "member=9; a member=1", "p1:a:wait",
       Readiness::kReady, "p1"},
      {"nested", "member=5; c member=1; ab; a<ab member=2; b<ab member=2",
       "p1:a:wait p2:a:wait p3:b:wait p4:b:wait p5:c:wait", Readiness::kReady, "p1 p2 p3 p4 p5"},
      // Order among children: below threshold, required, ratio, name.
      {"by name", "; b member=1; a member=1", "p1:b:wait p2:a:wait", Readiness::kReady, "p2 p1"},
      {"lower ratio first", "; a member=2; b member=4",
       "p1:a:run p2:a:wait p3:b:run p4:b:wait p5:b:wait p6:b:wait", Readiness::kReady,
       "p4 p5 p6 p2"},
      {"extra where the ratio is lower", "; a member=1; b member=2",
       "p1:a:run p2:a:run p3:b:run p4:b:run p5:a:wait p6:b:wait", Readiness::kReady, "p6 +"},
      {"extra where pods wait", "; a member=1; b member=2",
       "p1:a:run p2:a:run p3:b:run p4:b:run p5:a:wait", Readiness::kReady, "p5 +"},
      {"required before optional", "; a member=0; b member=1", "p1:a:wait p2:b:wait p3:b:wait",
       Readiness::kReady, "p2"},
      {"optional only for extras", "; a member=0; b member=1", "p1:a:wait p2:b:run p3:b:wait",
       Readiness::kReady, "p3 +"},
      {"own extras before those of children", "; a member=1", "p1:a:run p2:-:wait p3:a:wait",
       Readiness::kReady, "p2 +"},
      // minSubGroup.
      {"any of two: the first, not the cheaper", "sub=1; a member=3; b member=2",
       "p1:a:wait p2:a:wait p3:a:wait p4:b:wait p5:b:wait", Readiness::kReady, "p1 p2 p3"},
      {"the one that can", "sub=1; a member=1; b member=2", "p1:a:gate p2:b:wait p3:b:wait",
       Readiness::kReady, "p2 p3"},
      {"first by name among equals", "sub=1; b member=1; a member=1", "p1:b:wait p2:a:wait",
       Readiness::kReady, "p2"},
      {"what runs counts", "sub=2; a member=1; b member=1; c member=1",
       "p1:b:run p2:a:wait p3:c:wait", Readiness::kReady, "p2"},
      {"an optional child is a unit of its own minimum", "sub=1; a member=1; b member=2",
       "p1:a:run p2:b:wait p3:b:wait p4:b:wait", Readiness::kReady, "p2 p3 +"},
      {"and comes before extras of those that run", "sub=1; a member=1; b member=2",
       "p1:a:run p2:a:wait p3:b:wait p4:b:wait", Readiness::kReady, "p3 p4 +"},
      {"what it lacks, if some of it runs", "sub=1; a member=1; b member=3",
       "p1:a:run p2:b:run p3:b:wait p4:b:wait p5:b:wait", Readiness::kReady, "p3 p4 +"},
      {"and comes before what has nothing yet", "sub=1; a member=1; b member=2; c member=2",
       "p1:a:run p2:c:run p3:b:wait p4:b:wait p5:c:wait", Readiness::kReady, "p5 +"},
      {"also below the minimum", "sub=1; b member=2; c member=2",
       "p1:c:run p2:b:wait p3:b:wait p4:c:wait", Readiness::kReady, "p4"},
      {"if it can be completed", "sub=1; b member=2; c member=2", "p1:c:run p2:b:wait p3:b:wait",
       Readiness::kReady, "p2 p3"},
      {"with too few pods it is passed over", "sub=1; a member=1; b member=2",
       "p1:a:run p2:b:wait p3:a:wait", Readiness::kReady, "p3 +"},
      {"and is incomplete if nothing else waits", "sub=1; a member=1; b member=2",
       "p1:a:run p2:b:wait", Readiness::kIncomplete, ""},
      {"or gated", "sub=1; a member=1; b member=2", "p1:a:run p2:b:wait p3:b:gate",
       Readiness::kGated, ""},
      {"none needed", "sub=0; a member=2", "p1:a:wait p2:a:wait", Readiness::kReady, "p1 p2 +"},
      {"own pods and any child", "; m member=1 ; a<m member=1; b<m member=1",
       "p1:m:wait p2:a:wait p3:b:wait p4:m:wait", Readiness::kReady, "p1 p2 p3"},
  };
  for (const ReadyCase& c : cases) {
    SCOPED_TRACE(c.title);
    GangWorld world(c.group, c.pods);
    EXPECT_EQ(ReadinessOf(world.state(), world.workload()), c.ready);
    EXPECT_EQ(world.Step(), c.step);
  }
}

TEST(GangTest, TheTreeOfAStepSaysHowManyNeedRealRoom) {
  struct Case {
    const char* group;
    const char* pods;
    const char* tree;
  };
  const Case cases[] = {
      {"member=2", "p1:-:wait p2:-:wait p3:-:wait", "(p1 p2)2"},
      {"member=3", "p1:-:run p2:-:wait p3:-:wait", "(p2 p3)2"},
      {"member=1", "p1:-:run p2:-:wait", "(p2)0"},
      {kTwo, "p1:a:run p2:a:wait p3:b:wait", "()0[b(p3)1a(p2)1]"},
      {"; ab; a<ab member=1; b<ab member=1; c member=1", "p1:a:wait p2:b:wait p3:c:wait",
       "()0[ab()0[a(p1)1b(p2)1]c(p3)1]"},
      {"; a member=1; b member=1", "p1:a:run p2:b:run p3:b:wait", "()0[b(p3)0]"},
      // Promised members need real room before anything else of the gang may start.
      {"member=2", "p1:-:promise p2:-:promise p3:-:wait", "(p3)2"},
      {"member=2", "p1:-:run p2:-:promise p3:-:wait", "(p3)1"},
      {"; a member=1; b member=1", "p1:a:promise p2:b:run p3:b:wait", "()0[a()1b(p3)0]"},
      {"sub=1; a member=1; b member=1", "p1:a:promise p2:b:run p3:b:wait", "()0[b(p3)0]"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.group, " / ", c.pods));
    GangWorld world(c.group, c.pods);
    EXPECT_EQ(world.TreeOf(NextStep(world.state(), world.workload()).root), c.tree);
  }
}

TEST(GangTest, MinimumAndElasticState) {
  struct Case {
    const char* group;
    const char* pods;
    int64_t minimum;
    int state;
    bool optional_below = false;  // satisfied, and yet some set is below its own minimum
  };
  const Case cases[] = {
      {"", "", 1, 0},
      {"member=0", "", 0, 1},
      {"member=0", "p1:-:run", 0, 2},
      {"member=2", "p1:-:run p2:-:wait", 2, 0},
      {"member=2", "p1:-:run p2:-:promise", 2, 1},
      {"member=2", "p1:-:run p2:-:run p3:-:bind", 2, 2},
      {"member=2", "p1:-:run p2:-:go", 2, 0},
      {kTwo, "p1:a:run p2:a:run p3:a:run", 3, 0},
      {kTwo, "p1:a:run p2:a:run p3:b:run", 3, 1},
      {kTwo, "p1:a:run p2:a:run p3:b:run p4:b:run", 3, 2},
      {kTwo, "p1:a:run p2:a:run p3:x:run", 3, 0},
      {"sub=1; a member=1; b member=3", "p1:b:run p2:b:run", 1, 0},
      {"sub=1; a member=1; b member=3", "p1:b:run p2:b:run p3:b:run", 1, 0, true},
      {"sub=1; a member=1; b member=3", "p1:b:run p2:a:run", 1, 0, true},
      {"sub=1; a member=1; b member=2", "p1:b:run p2:a:run p3:b:run", 1, 1},
      {"sub=1; a member=1; b member=2", "p1:b:run p2:a:run p3:b:run p4:a:run", 1, 2},
      {"; m member=2; a<m member=3", "p1:m:run", 5, 0},
      {"; ab sub=1; a<ab member=4; b<ab member=2; c", "", 3, 0},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.group, " / ", c.pods));
    GangWorld world(c.group, c.pods);
    EXPECT_EQ(GangMinimum(world.workload()), c.minimum);
    EXPECT_EQ(ElasticStateOf(world.state(), world.workload()), c.state);
    EXPECT_EQ(IsSatisfied(world.workload()), c.state > 0 || c.optional_below);
  }
}

TEST(GangTest, EvictionUnits) {
  struct Case {
    const char* group;
    const char* pods;
    const char* extras;
    const char* with_core;
  };
  const Case cases[] = {
      {"member=2", "", "", ""},
      // A promise can be taken; what is being bound or terminates cannot.
      {"member=2", "p1:-:wait p2:-:bind p3:-:promise p4:-:go", "", "p3"},
      {"member=2", "p1:-:run p2:-:run", "", "p2 p1"},
      {"member=2", "p1:-:run", "", "p1"},
      {"member=1", "p1:-:run p2:-:bound p3:-:run", "p3 | p2", "p3 | p2 | p1"},
      // A pod on its way counts, but cannot be taken.
      {"member=2", "p1:-:run p2:-:run p3:-:bind", "p2", "p2 | p1"},
      {"member=0", "p1:-:run p2:-:run", "p2 | p1", "p2 | p1"},
      // KAI: Preempt job with sub groups - partial and complete eviction.
      {"member=2; a member=1; b member=1", "p1:a:run p2:a:run p3:b:run p4:b:run", "p4 | p2",
       "p4 | p2 | p3 p1"},
      {"member=4; a member=2; b member=2", "p1:a:run p2:a:run p3:b:run p4:b:run", "",
       "p4 p3 p2 p1"},
      // Below its minimum a workload still gives up what a set has too much.
      {kTwo, "p1:a:run p2:a:run p3:a:run", "p3", "p3 | p2 p1"},
      {"; a member=1; b member=0", "p1:a:run p2:b:run p3:a:run", "p2 | p3", "p2 | p3 | p1"},
      // What serves nothing goes first, a child beyond minSubGroup last.
      {"sub=1; a member=1; b member=2", "p1:a:run p2:a:run p3:b:run", "p3 | p2", "p3 | p2 | p1"},
      {"sub=1; a member=1; b member=2", "p1:a:run p2:b:run p3:b:run", "p3 p2", "p3 p2 | p1"},
      {"; a member=1", "p1:a:run p2:x:run p3:-:run", "p2 | p3", "p2 | p3 | p1"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.group, " / ", c.pods));
    GangWorld world(c.group, c.pods);
    EXPECT_EQ(world.Units(false), c.extras);
    EXPECT_EQ(world.Units(true), c.with_core);
  }
}

TEST(GangTest, AGroupThatIsDisruptedWholeIsOneUnit) {
  model::PodGroup group = MakeGroup("ns", "g", "q", 1);
  group.disrupted_whole = true;
  GangWorld world(group, {"p1:-:run", "p2:-:bound", "p3:-:run", "p4:-:bind"});
  EXPECT_EQ(world.Units(false), "");
  EXPECT_EQ(world.Units(true), "p3 p2 p1");
}

TEST(GangTest, BelowMinimum) {
  struct Case {
    const char* group;
    const char* pods;
    const char* below;  // names of sets; "-" for the group itself
  };
  const Case cases[] = {
      {"member=2", "p1:-:run p2:-:fail", "-"},
      {"member=2", "p1:-:run p2:-:wait", "-"},
      {"member=2", "p1:-:run p2:-:done", ""},
      {"member=2", "p1:-:wait p2:-:fail", ""},
      {"member=2", "p1:-:go p2:-:fail", ""},
      {"member=2", "p1:-:run p2:-:promise", ""},
      {"member=1", "p1:-:run p2:-:fail", ""},
      {"member=3; a member=2; b member=1", "p1:a:run p2:a:run p3:a:run p4:b:fail", "-"},
      {"member=3; a member=2; b member=1", "p1:a:run p2:a:run p3:a:fail p4:b:run", ""},
      // The group has its minimum without it.
      {"sub=1; a member=2; b member=1", "p1:a:run p2:b:run", "a"},
      {"sub=1; a member=2; b member=1", "p1:a:run p2:b:run p3:a:done", ""},
      {"sub=1; a member=2; b member=1", "p1:a:run p2:a:bind p3:b:run", ""},
      {"sub=1; a member=2; b member=2", "p1:a:run p2:b:run", "- a b"},
      // Of a set below, the sets that are complete are not named.
      {"sub=1; a; a1<a member=2; a2<a member=1; b member=1", "p1:a1:run p2:a1:run p3:b:run", "a"},
      {"sub=1; a; a1<a member=2; a2<a member=1; b member=1", "p1:a1:run p2:a2:run p3:b:run",
       "a a1"},
      // A tree that is none is the user's mistake, not a reason to evict.
      {"member=2; a<a member=2", "p1:a:run", ""},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.group, " / ", c.pods));
    GangWorld world(c.group, c.pods);
    std::vector<std::string> below;
    for (const int32_t set : BelowMinimum(world.workload())) {
      below.push_back(set == 0 ? "-" : world.workload().sets[static_cast<size_t>(set)].name);
    }
    EXPECT_EQ(absl::StrJoin(below, " "), c.below);
    EXPECT_EQ(WouldBeBelowMinimum(world.workload(), world.workload().active), !below.empty());
  }
}

TEST(GangTest, WouldBeBelowMinimumWithoutSomePods) {
  const GangWorld world("member=3; a member=2; b member=1", "p1:a:run p2:a:run p3:a:run p4:b:run");
  const state::Workload& workload = world.workload();
  const auto without = [&](std::initializer_list<size_t> sets) {
    auto active = workload.active;
    for (const size_t set : sets) --active[set];
    return WouldBeBelowMinimum(workload, active);
  };
  size_t a = 0, b = 0;
  for (size_t set = 0; set < workload.sets.size(); ++set) {
    if (workload.sets[set].name == "a") a = set;
    if (workload.sets[set].name == "b") b = set;
  }
  EXPECT_FALSE(without({}));
  EXPECT_FALSE(without({a}));
  EXPECT_TRUE(without({a, a}));
  EXPECT_TRUE(without({b}));
}

// ---- the oracle: satisfaction by the words of gang.h, from the object and nothing else
// -------------

using ActiveCounts = std::map<std::string, int>;  // active pods by the name of their set

bool OracleSatisfied(const model::PodGroup& group, const std::string& name,
                     const ActiveCounts& active) {
  std::optional<int32_t> member = group.min_member, sub = group.min_sub_group;
  int children = 0, satisfied = 0;
  for (const model::SubGroup& s : group.sub_groups) {
    if (s.name == name) {
      member = s.min_member;
      sub = s.min_sub_group;
    }
    if (s.parent != name) continue;
    ++children;
    satisfied += OracleSatisfied(group, s.name, active) ? 1 : 0;
  }
  int wanted = member.value_or(children == 0 ? 1 : 0);
  if (children > 0 && (name.empty() || sub.has_value())) wanted = 0;
  auto have = active.find(name);
  return (have == active.end() ? 0 : have->second) >= wanted && satisfied >= sub.value_or(children);
}

bool Counted(PodStatus status) {
  return status == PodStatus::kPipelined || status == PodStatus::kBinding ||
         status == PodStatus::kBound || status == PodStatus::kRunning;
}

// As many pods of each set as are active, with `more` and without `less`.
ActiveCounts ActiveIn(const GangWorld& world, const state::ClusterState& state,
                      const std::vector<PodId>& more, const std::set<PodId>& less = {}) {
  ActiveCounts counts;
  auto count = [&](PodId id) {
    const int32_t set = state.pod(id).set;
    if (set >= 0) ++counts[world.workload().sets[static_cast<size_t>(set)].name];
  };
  for (PodId id : world.workload().pods) {
    if (Counted(state.pod(id).status) && less.count(id) == 0) count(id);
  }
  for (PodId id : more) count(id);
  return counts;
}

// A set to which the step adds pods, and that is below its own minimum all the same; "" if none.
std::string LeftBelow(const GangWorld& world, const StepNode& node, const ActiveCounts& active) {
  const std::string& name = world.workload().sets[static_cast<size_t>(node.set)].name;
  if (!node.pods.empty() && !OracleSatisfied(world.group(), name, active)) return name;
  for (const StepNode& child : node.children) {
    const std::string left = LeftBelow(world, child, active);
    if (!left.empty()) return left;
  }
  return "";
}

// Each set of the group is exactly at its minimum (1), some are above (2), some below (0).
int OracleElastic(const GangWorld& world, const ActiveCounts& active) {
  int state = 1;
  for (const state::GangSet& set : world.workload().sets) {
    const auto have = active.find(set.name);
    const int64_t count = have == active.end() ? 0 : have->second;
    if (count < set.min_member) return 0;
    if (count > set.min_member) state = 2;
  }
  return state;
}

// The size of the smallest set of waiting pods that satisfies the group; -1 if none does.
int OracleMissing(GangWorld& world) {
  std::vector<PodId> waiting;
  for (PodId id : world.workload().pods) {
    const state::PodRecord& pod = world.state().pod(id);
    if (pod.status == PodStatus::kPending && pod.details->invalid.empty()) waiting.push_back(id);
  }
  int best = -1;
  for (uint32_t subset = 0; subset < (1u << waiting.size()); ++subset) {
    std::vector<PodId> chosen;
    for (size_t i = 0; i < waiting.size(); ++i) {
      if ((subset >> i & 1u) != 0) chosen.push_back(waiting[i]);
    }
    const int size = static_cast<int>(chosen.size());
    if (best >= 0 && size >= best) continue;
    if (OracleSatisfied(world.group(), "", ActiveIn(world, world.state(), chosen))) best = size;
  }
  return best;
}

model::PodGroup RandomGroup(std::mt19937_64& random) {
  model::PodGroup group = MakeGroup("ns", "g", "q", static_cast<int32_t>(random() % 4));
  const size_t count = random() % 5;
  const std::vector<std::string> names = {"d", "b", "a", "c"};
  for (size_t i = 0; i < count; ++i) {
    model::SubGroup& sub = group.sub_groups.emplace_back();
    sub.name = names[i];
    if (i > 0 && random() % 2 == 0) sub.parent = names[random() % i];
    if (random() % 4 != 0) sub.min_member = static_cast<int32_t>(random() % 3);
  }
  auto maybe = [&](const std::string& name, std::optional<int32_t>& sub) {
    size_t children = 0;
    for (const model::SubGroup& s : group.sub_groups) children += s.parent == name ? 1 : 0;
    if (children > 0 && random() % 2 == 0) sub = static_cast<int32_t>(random() % (children + 1));
  };
  maybe("", group.min_sub_group);
  for (model::SubGroup& sub : group.sub_groups) maybe(sub.name, sub.min_sub_group);
  return group;
}

std::unique_ptr<GangWorld> RandomWorld(std::mt19937_64& random, uint64_t max_pods,
                                       const std::vector<std::string>& statuses) {
  const model::PodGroup group = RandomGroup(random);
  std::vector<std::string> pods;
  const uint64_t count = random() % (max_pods + 1);
  for (uint64_t i = 0; i < count; ++i) {
    std::string set = "-";
    const size_t at = random() % (group.sub_groups.size() + 1);
    if (at > 0) set = group.sub_groups[at - 1].name;
    if (random() % 16 == 0) set = "nowhere";
    pods.push_back(absl::StrCat("p", i, ":", set, ":", statuses[random() % statuses.size()]));
  }
  return std::make_unique<GangWorld>(group, pods);
}

TEST(GangProperty, AStepSatisfiesAndNoPodOfItIsNeedless) {
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    const std::unique_ptr<GangWorld> world(
        RandomWorld(random, 9, {"wait", "wait", "wait", "run", "bind", "go", "gate", "bad"}));
    ASSERT_EQ(world->workload().details->invalid, "");
    const int missing = OracleMissing(*world);
    ASSERT_EQ(IsSatisfied(world->workload()),
              OracleSatisfied(world->group(), "", ActiveIn(*world, world->state(), {})));
    const Readiness ready = ReadinessOf(world->state(), world->workload());
    const TasksToAllocate step = NextStep(world->state(), world->workload());
    ASSERT_EQ(ready == Readiness::kReady, !step.pods.empty());
    if (missing < 0) {
      ASSERT_NE(ready, Readiness::kReady);
      continue;
    }
    if (missing > 0) {
      ASSERT_EQ(ready, Readiness::kReady);
      ASSERT_FALSE(step.extra);
      ASSERT_GE(static_cast<int>(step.pods.size()), missing);
      for (const PodId without : step.pods) {
        std::vector<PodId> fewer;
        for (const PodId id : step.pods) {
          if (id != without) fewer.push_back(id);
        }
        ASSERT_FALSE(OracleSatisfied(world->group(), "", ActiveIn(*world, world->state(), fewer)));
      }
    } else if (ready == Readiness::kReady) {
      ASSERT_TRUE(step.extra);
    }
    ASSERT_EQ(LeftBelow(*world, step.root, ActiveIn(*world, world->state(), step.pods)), "");
    state::Transaction txn(world->state());
    for (PodId id : step.pods) {
      ASSERT_TRUE(world->state().pod(id).details->invalid.empty());
      txn.Allocate(id, world->state().FindNode("n"));  // fails unless the pod waits
    }
    ASSERT_TRUE(IsSatisfied(world->workload()));
    ASSERT_TRUE(OracleSatisfied(world->group(), "", ActiveIn(*world, world->state(), {})));
  }
}

TEST(GangProperty, GangMinimumIsTheSmallestStepFromNothing) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    const model::PodGroup group = RandomGroup(random);
    std::vector<std::string> pods;  // two of each set satisfy every minimum of RandomGroup
    const int each = group.sub_groups.empty() ? 3 : 2;
    for (int i = 0; i < each; ++i) {
      pods.push_back(absl::StrCat("p", i, ":-:wait"));
      for (const model::SubGroup& sub : group.sub_groups) {
        pods.push_back(absl::StrCat(sub.name, i, ":", sub.name, ":wait"));
      }
    }
    GangWorld world(group, pods);
    ASSERT_EQ(GangMinimum(world.workload()), OracleMissing(world));
  }
}

TEST(GangProperty, EvictionKeepsASatisfiedGroupSatisfiedUpToTheCore) {
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    const std::unique_ptr<GangWorld> world(RandomWorld(
        random, 12, {"run", "run", "run", "run", "bound", "bind", "wait", "promise", "go"}));
    const bool satisfied = IsSatisfied(world->workload());
    const auto extras = EvictionUnits(world->state(), world->workload(), false);
    const auto all = EvictionUnits(world->state(), world->workload(), true);
    std::set<PodId> gone;
    for (const auto& unit : extras) {
      ASSERT_FALSE(unit.empty());
      for (const PodId id : unit) ASSERT_TRUE(gone.insert(id).second);
      ASSERT_EQ(OracleSatisfied(world->group(), "", ActiveIn(*world, world->state(), {}, gone)),
                satisfied);
    }
    // No single pod that is left could go without breaking it.
    std::set<PodId> left;
    for (PodId id : world->workload().pods) {
      const PodStatus status = world->state().pod(id).status;
      if (status != PodStatus::kBound && status != PodStatus::kRunning &&
          status != PodStatus::kPipelined) {
        continue;
      }
      if (gone.count(id) == 0) left.insert(id);
    }
    for (PodId id : left) {
      std::set<PodId> without = gone;
      without.insert(id);
      if (!satisfied) break;
      ASSERT_FALSE(
          OracleSatisfied(world->group(), "", ActiveIn(*world, world->state(), {}, without)));
    }
    // With the core everything that can be taken is, each pod once, and the core is one unit.
    ASSERT_EQ(all.size(), extras.size() + (left.empty() ? 0 : 1));
    ASSERT_TRUE(std::equal(extras.begin(), extras.end(), all.begin()));
    if (!left.empty()) {
      ASSERT_EQ(std::set<PodId>(all.back().begin(), all.back().end()), left);
    }
    ASSERT_EQ(ElasticStateOf(world->state(), world->workload()),
              OracleElastic(*world, ActiveIn(*world, world->state(), {})));
  }
}

}  // namespace
}  // namespace fairlead::engine
