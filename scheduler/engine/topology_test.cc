#include "scheduler/engine/topology.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/state/transaction.h"

namespace fairlead::engine {
namespace {

using framework::Capacity;
using model::testing::MakeNode;
using model::testing::PodBuilder;

class TopologyTest : public ::testing::Test {
 protected:
  TopologyTest() : state_(Options()), index_(state_) { state_.Subscribe(&index_); }
  ~TopologyTest() override { EXPECT_EQ(index_.CheckConsistency(), ""); }
  // Whether `f` makes the tree of "t" go.
  template <typename F>
  bool Fells(F f) {
    Ask("rack", "", {});
    EXPECT_EQ(index_.tree_count(), 1u);
    f();
    EXPECT_EQ(index_.CheckConsistency(), "");
    return index_.tree_count() == 0;
  }
  static state::StateOptions Options() {
    state::StateOptions options;
    options.scheduler_names = {"fairlead"};
    return options;
  }

  // "k8s.io/zone k8s.io/rack:r": labels, some with an alias.
  void Topology(absl::string_view levels) {
    model::Topology topology;
    topology.meta.name = "t";
    for (absl::string_view level : absl::StrSplit(levels, ' ')) {
      std::vector<std::string> parts = absl::StrSplit(level, ':');
      parts.resize(2);
      topology.levels.push_back({parts[0], parts[1]});
    }
    labels_ = topology.levels;
    state_.UpsertTopology(topology);
  }
  // Values of the levels separated by '/', "-" for a label that is missing; `busy` GPUs in use.
  void Node(absl::string_view name, absl::string_view values, int64_t gpus, int64_t busy = 0) {
    model::Node node = MakeNode(name, gpus);
    size_t level = 0;
    for (absl::string_view value : absl::StrSplit(values, '/')) {
      const std::string& label = labels_[level++].node_label;
      if (value != "-") node.meta.labels.Set(label, value);
    }
    state_.UpsertNode(node);
    if (busy > 0) {
      state_.UpsertPod(PodBuilder("ns", absl::StrCat("busy-", name)).Gpus(busy).On(name));
    }
  }
  state::PodId Pod(const model::Pod& pod) {
    state_.UpsertPod(pod);
    return state_.FindPod(pod.meta.ns, pod.meta.name);
  }
  std::vector<state::PodId> Pods(int count, int64_t gpus) {
    std::vector<state::PodId> pods;
    for (int i = 0; i < count; ++i) {
      pods.push_back(Pod(PodBuilder("ns", absl::StrCat("p", pods_++)).Gpus(gpus)));
    }
    return pods;
  }
  NodeSetPtr Set(const std::vector<std::string>& names) {
    std::vector<state::NodeId> nodes;
    for (const std::string& name : names) nodes.push_back(state_.FindNode(name));
    return std::make_shared<const NodeSet>(nodes);
  }
  // Required and preferred level of the topology "t".
  TopologyAnswer Ask(absl::string_view required, absl::string_view preferred,
                     const std::vector<state::PodId>& pods,
                     const std::vector<state::PodId>& placed = {},
                     const NodeSetPtr& within = nullptr, Capacity capacity = Capacity::kFuture) {
    return index_.Candidates({"t", std::string(required), std::string(preferred)}, within, pods,
                             placed, capacity);
  }
  std::string NamesOf(const NodeSetPtr& set) const {
    if (set == nullptr) return "*";
    return absl::StrJoin(set->nodes(), ",", [&](std::string* out, state::NodeId id) {
      absl::StrAppend(out, state_.node(id).name());
    });
  }
  // "domain[nodes] domain[nodes]", in order.
  std::string Text(const TopologyAnswer& answer) const {
    EXPECT_EQ(answer.candidates.empty(), !answer.reason.empty());
    return absl::StrJoin(answer.candidates, " ", [&](std::string* out, const TopologyCandidate& c) {
      absl::StrAppend(out, c.domain, "[", NamesOf(c.nodes), "]");
      if (c.nodes == nullptr) return;
      for (state::NodeId id : c.nodes->nodes()) EXPECT_TRUE(c.nodes->Contains(id));
    });
  }
  std::map<std::string, int64_t> Scores(const TopologyCandidate& candidate) const {
    std::map<std::string, int64_t> scores;
    for (const auto& [node, score] : candidate.preferred_score) {
      scores[state_.node(node).name()] = score;
    }
    return scores;
  }

  state::ClusterState state_;
  TopologyIndex index_;
  std::vector<model::Topology::Level> labels_;
  int pods_ = 0;
};

using Scored = std::map<std::string, int64_t>;

// ---- how long a tree is kept

TEST_F(TopologyTest, ATreeIsKeptWhileItShowsTheNodesAndTheirLabels) {
  Topology("zone rack");
  Node("a", "z/r1", 8);
  const auto relabel = [&](absl::string_view zone, absl::string_view rack) {
    return Fells([&] { Node("a", absl::StrCat(zone, "/", rack), 8); });
  };
  EXPECT_TRUE(relabel("z", "r2"));
  EXPECT_TRUE(relabel("y", "r2"));
  EXPECT_TRUE(relabel("y", "-"));
  EXPECT_FALSE(relabel("z", "-")) << "outside before and after";
  EXPECT_TRUE(relabel("z", "r2"));
  EXPECT_TRUE(Fells([&] { Node("b", "z/r2", 8); }));
  EXPECT_FALSE(Fells([&] { Node("c", "z/-", 8); }));
  model::Node other = MakeNode("c", 4);
  other.meta.labels.Set("colour", "blue");
  EXPECT_FALSE(Fells([&] { state_.UpsertNode(other); }));
  EXPECT_FALSE(Fells([&] { Pod(PodBuilder("ns", "p").Gpus(1).On("a")); }));
  EXPECT_TRUE(Fells([&] { state_.RemoveNode("a", ""); })) << "a pod names it still";
  EXPECT_FALSE(Fells([&] { state_.RemovePod("ns", "p", ""); }));
  model::Node ordered = MakeNode("d", 8);
  ordered.meta.labels.Set("zone", "z");
  ordered.meta.labels.Set("rack", "r");
  EXPECT_TRUE(Fells([&] { state_.UpsertOrderedNode(ordered, "request"); }));
  EXPECT_FALSE(Fells([&] { state_.UpsertOrderedNode(ordered, "request"); }));
  EXPECT_FALSE(Fells([&] { state_.UpsertNode(ordered); })) << "it registers";
  EXPECT_FALSE(Fells([&] {
    state::Transaction txn(state_);
    txn.AddNode(ordered);
  }));
  EXPECT_TRUE(Fells([&] { Topology("zone:z rack"); }));
  EXPECT_FALSE(Fells([&] { Topology("zone:z rack"); }));
  EXPECT_TRUE(Fells([&] { state_.RemoveTopology("t"); }));
  Topology("zone rack");
}

// ---- what makes no sense
// -------------------------------------------------------------------------

TEST_F(TopologyTest, TopologyThatDoesNotExist) {
  const TopologyAnswer answer = Ask("rack", "", Pods(1, 1));
  EXPECT_EQ(Text(answer), "");
  EXPECT_TRUE(answer.invalid);
  EXPECT_EQ(answer.reason, "Requested topology t does not exist");
}

TEST_F(TopologyTest, TopologyThatIsInvalid) {
  model::Topology topology;
  topology.meta.name = "t";
  topology.invalid = "spec.levels: must have 1 to 16 levels";
  state_.UpsertTopology(topology);
  const TopologyAnswer answer = Ask("rack", "", Pods(1, 1));
  EXPECT_TRUE(answer.invalid);
  EXPECT_EQ(answer.reason,
            "Requested topology t is invalid: spec.levels: must have 1 to 16 levels");
}

TEST_F(TopologyTest, LevelThatTheTopologyLacks) {
  Topology("zone rack");
  Node("n", "a/r", 8);
  for (const auto& [required, preferred] : std::vector<std::pair<std::string, std::string>>{
           {"row", ""}, {"", "row"}, {"zone", "row"}}) {
    const TopologyAnswer answer = Ask(required, preferred, Pods(1, 1));
    EXPECT_EQ(Text(answer), "");
    EXPECT_TRUE(answer.invalid);
    EXPECT_EQ(answer.reason, "Topology t has no level row");
  }
}

TEST_F(TopologyTest, NothingAskedForConstrainsNothing) {
  Topology("zone");
  Node("in", "a", 8);
  Node("out", "-", 8);
  const auto pods = Pods(1, 1);
  EXPECT_EQ(Text(Ask("", "", pods)), "[*]");
  EXPECT_EQ(Text(Ask("", "", pods, {}, Set({"out"}))), "[out]");
  EXPECT_EQ(Text(index_.Candidates({"", "zone", ""}, nullptr, pods, {}, Capacity::kFuture)), "[*]");
}

TEST_F(TopologyTest, NodeThatLacksOneLabelIsOutside) {
  Topology("zone rack");
  Node("a", "a/r", 8);
  Node("b", "a/-", 8);
  Node("c", "-/r", 8);
  EXPECT_EQ(Text(Ask("zone", "", Pods(1, 1))), "zone=a[a]");
  EXPECT_EQ(Text(Ask("", "zone", Pods(1, 1))), "zone=a[a]");
  const TopologyAnswer answer = Ask("zone", "", Pods(1, 1), {}, Set({"b", "c"}));
  EXPECT_EQ(Text(answer), "");
  EXPECT_FALSE(answer.invalid) << "a labelled node would help";
  EXPECT_EQ(
      answer.reason,
      "topology t, required level zone: no node that may be used has the labels of all levels");
}

TEST_F(TopologyTest, SaysHowMuchTheBestDomainHolds) {
  Topology("k8s.io/rack k8s.io/spine");
  Node("n0", "r1/s1", 2, 1);
  Node("n1", "r1/s2", 2);
  Node("n2", "r2/s1", 2, 1);
  const TopologyAnswer answer = Ask("k8s.io/rack", "", Pods(4, 1));
  EXPECT_EQ(Text(answer), "");
  EXPECT_FALSE(answer.invalid);
  EXPECT_EQ(answer.best_domain, "rack=r1");
  EXPECT_EQ(answer.best_room, 3);
  EXPECT_EQ(
      answer.reason,
      "topology t, required level k8s.io/rack: no domain has room for 4 pods; rack=r1 has room "
      "for 3");
  const TopologyAnswer anywhere = Ask("", "k8s.io/rack", Pods(5, 1));
  EXPECT_EQ(anywhere.reason, "topology t: no domain has room for 5 pods; all have room for 4");
}

// ---- order of candidates: KAI's own tables
// -------------------------------------------------------

TEST_F(TopologyTest, RequiredLevelTakesADomainThatHoldsAll) {
  Topology("k8s.io/rack");
  Node("n0", "r1", 1, 1);
  Node("n1", "r1", 1);
  Node("n2", "r2", 1);
  Node("n3", "r2", 1);
  EXPECT_EQ(Text(Ask("k8s.io/rack", "", Pods(2, 1))), "rack=r2[n2,n3]");
}

TEST_F(TopologyTest, EqualDomainsByValue) {
  Topology("rack");
  Node("n0", "r2", 1);
  Node("n1", "r10", 1);
  Node("n2", "r2", 1);
  Node("n3", "r10", 1);
  EXPECT_EQ(Text(Ask("rack", "", Pods(2, 1))), "rack=r10[n1,n3] rack=r2[n0,n2]");
}

TEST_F(TopologyTest, FullestDomainFirst) {
  Topology("rack");
  Node("n0", "r1", 10);
  Node("n1", "r2", 10, 1);
  EXPECT_EQ(Text(Ask("rack", "", Pods(1, 1))), "rack=r2[n1] rack=r1[n0]");
}

TEST_F(TopologyTest, FullestOfTheOuterDomainsDecidesFirst) {
  Topology("zone spine rack");
  Node("n0", "z/s1/r1", 1);
  Node("n1", "z/s1/r2", 1);
  Node("n2", "z/s1/r3", 1);
  Node("n3", "z/s2/r4", 1);
  Node("n4", "z/s2/r4", 1);
  const TopologyAnswer answer = Ask("", "rack", Pods(1, 1));
  EXPECT_EQ(Text(answer),
            "zone=z/spine=s2/rack=r4[n3,n4] zone=z/spine=s1/rack=r1[n0] "
            "zone=z/spine=s1/rack=r2[n1] zone=z/spine=s1/rack=r3[n2] "
            "zone=z/spine=s1[n0,n1,n2] zone=z[n0,n1,n2,n3,n4]");
}

TEST_F(TopologyTest, PreferredLevelFirstThenOutwardsToTheRequired) {
  Topology("zone spine rack host");
  for (const char* zone : {"a", "b"}) {
    for (int i = 0; i < 8; ++i) {
      Node(absl::StrCat(zone, i), absl::StrCat(zone, "/s", i / 4, "/r", i / 2, "/h", i), 1);
    }
  }
  EXPECT_EQ(Text(Ask("zone", "rack", Pods(3, 1), {}, Set({"b0", "b1", "b2", "b3", "b4", "b5"}))),
            "zone=b/spine=s0[b0,b1,b2,b3] zone=b[b0,b1,b2,b3,b4,b5]");
  EXPECT_EQ(
      Text(Ask("zone", "spine", Pods(4, 1), {},
               Set({"a0", "a1", "a2", "a3", "b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7"}))),
      "zone=a/spine=s0[a0,a1,a2,a3] zone=b/spine=s0[b0,b1,b2,b3] "
      "zone=b/spine=s1[b4,b5,b6,b7] zone=b[b0,b1,b2,b3,b4,b5,b6,b7]")
      << "zone a has the same nodes as its only spine";
}

TEST_F(TopologyTest, LevelsEqualOrPreferredOutsideRequired) {
  Topology("zone rack");
  Node("n0", "a/r1", 2);
  Node("n1", "a/r2", 2);
  Node("n2", "b/r1", 2);
  for (const char* preferred : {"rack", "zone", ""}) {
    const TopologyAnswer answer = Ask("rack", preferred, Pods(2, 1));
    EXPECT_EQ(Text(answer), "zone=b/rack=r1[n2] zone=a/rack=r1[n0] zone=a/rack=r2[n1]")
        << preferred;
    for (const TopologyCandidate& candidate : answer.candidates) {
      EXPECT_EQ(candidate.preferred_score.size(), *preferred == '\0' ? 0u : 1u);
    }
  }
}

TEST_F(TopologyTest, LevelByAliasAndTheLabelWins) {
  Topology("cloud/zone:rack rack:r");
  Node("n0", "a/x", 2);
  Node("n1", "a/y", 2);
  EXPECT_EQ(Text(Ask("rack", "", Pods(1, 1))), "rack=a/r=x[n0] rack=a/r=y[n1]");
  EXPECT_EQ(Text(Ask("r", "", Pods(1, 1))), "rack=a/r=x[n0] rack=a/r=y[n1]");
  EXPECT_EQ(Text(Ask("cloud/zone", "", Pods(1, 1))), "rack=a[n0,n1]");
}

TEST_F(TopologyTest, WithinADomainTheOuterLevelIsThatDomain) {
  Topology("zone rack");
  Node("n0", "a/r1", 2);
  Node("n1", "a/r2", 2);
  Node("n2", "b/r1", 2);
  EXPECT_EQ(Text(Ask("zone", "", Pods(1, 1), {}, Set({"n1"}))), "zone=a[n1]");
  EXPECT_EQ(Text(Ask("", "zone", Pods(1, 1), {}, Set({"n0", "n1"}))), "zone=a[n0,n1]");
}

TEST_F(TopologyTest, CpuDecidesWhereItIsScarce) {
  Topology("rack");
  state_.UpsertNode([&] {
    model::Node node = MakeNode("n0", 2, /*cores=*/1);
    node.meta.labels.Set("rack", "r1");
    return node;
  }());
  Node("n1", "r2", 4);
  std::vector<state::PodId> pods;
  for (const char* name : {"x", "y"}) pods.push_back(Pod(PodBuilder("ns", name).Gpus(1).Cpu(800)));
  EXPECT_EQ(Text(Ask("rack", "", pods)), "rack=r2[n1]");
  pods.pop_back();
  EXPECT_EQ(Text(Ask("rack", "", pods)), "rack=r1[n0] rack=r2[n1]") << "0.8 of one core is fuller";
}

// ---- scores
// --------------------------------------------------------------------------------------

TEST_F(TopologyTest, LaterAndEmptierPreferredDomainsScoreMore) {
  Topology("rack spine");
  for (int i = 0; i < 8; ++i) {
    Node(absl::StrCat("n", i), absl::StrCat("r1/s", i / 2), 1);
  }
  TopologyAnswer answer = Ask("rack", "spine", Pods(3, 1));
  ASSERT_EQ(Text(answer), "rack=r1[n0,n1,n2,n3,n4,n5,n6,n7]");
  EXPECT_EQ(Scores(answer.candidates[0]), (Scored{{"n0", 2},
                                                  {"n1", 2},
                                                  {"n2", 5},
                                                  {"n3", 5},
                                                  {"n4", 7},
                                                  {"n5", 7},
                                                  {"n6", 10},
                                                  {"n7", 10}}));
  Pod(PodBuilder("ns", "busy").Gpus(1).On("n6"));
  answer = Ask("rack", "spine", Pods(3, 1));
  EXPECT_EQ(Scores(answer.candidates[0]), (Scored{{"n6", 2},
                                                  {"n7", 2},
                                                  {"n0", 5},
                                                  {"n1", 5},
                                                  {"n2", 7},
                                                  {"n3", 7},
                                                  {"n4", 10},
                                                  {"n5", 10}}));
  answer = Ask("rack", "spine", Pods(1, 1));
  EXPECT_EQ(answer.candidates[0].domain, "rack=r1/spine=s3");
  EXPECT_EQ(Scores(answer.candidates[0]), (Scored{{"n6", 10}, {"n7", 10}}));
}

// ---- room
// ----------------------------------------------------------------------------------------

TEST_F(TopologyTest, CountsPodsPerNodeNotSumsWherePodsAreAlike) {
  Topology("rack");
  Node("n0", "r1", 3);
  Node("n1", "r1", 3);
  Node("n2", "r2", 4);
  EXPECT_EQ(Text(Ask("rack", "", Pods(2, 2))), "rack=r2[n2] rack=r1[n0,n1]");
  EXPECT_EQ(Text(Ask("rack", "", Pods(3, 2))), "");
}

TEST_F(TopologyTest, ComparesSumsWherePodsDiffer) {
  Topology("rack");
  Node("n0", "r1", 2);
  Node("n1", "r1", 2);
  Node("n2", "r2", 2);
  std::vector<state::PodId> pods = Pods(1, 3);
  pods.push_back(Pods(1, 1)[0]);
  EXPECT_EQ(Text(Ask("rack", "", pods)), "rack=r1[n0,n1]")
      << "the sum is there; the placer will see";
  pods.push_back(Pods(1, 1)[0]);
  const TopologyAnswer answer = Ask("rack", "", pods);
  EXPECT_EQ(Text(answer), "");
  EXPECT_EQ(answer.best_room, -1);
  EXPECT_EQ(answer.reason, "topology t, required level rack: no domain has room for 3 pods");
}

TEST_F(TopologyTest, RoomNowInFutureAndEver) {
  Topology("rack");
  Node("n0", "r1", 2);
  Pod(PodBuilder("ns", "going").Gpus(1).On("n0").Deleting());
  Pod(PodBuilder("ns", "staying").Gpus(1).On("n0"));
  auto holds = [&](int pods, Capacity capacity) {
    return !Ask("rack", "", Pods(pods, 1), {}, nullptr, capacity).candidates.empty();
  };
  EXPECT_FALSE(holds(1, Capacity::kNow));
  EXPECT_TRUE(holds(1, Capacity::kFuture));
  EXPECT_FALSE(holds(2, Capacity::kFuture));
  EXPECT_TRUE(holds(2, Capacity::kEmpty));
  EXPECT_FALSE(holds(3, Capacity::kEmpty));
}

TEST_F(TopologyTest, OvercommittedNodeTakesNothingFromItsDomain) {
  Topology("rack");
  Node("n0", "r1", 1, 4);
  Node("n1", "r1", 2);
  std::vector<state::PodId> pods = Pods(1, 1);
  EXPECT_EQ(Text(Ask("rack", "", pods)), "rack=r1[n0,n1]");
  pods.push_back(Pod(PodBuilder("ns", "cpu").Gpus(1).Cpu(2000)));
  EXPECT_EQ(Text(Ask("rack", "", pods)), "rack=r1[n0,n1]") << "sums: -3 counts as nothing";
}

TEST_F(TopologyTest, SharesOfGpusAreNotComparedByGpu) {
  Topology("rack");
  Node("n0", "r1", 1, 1);
  Node("n1", "r2", 1);
  std::vector<state::PodId> pods;
  for (int i = 0; i < 2; ++i) {
    model::Pod pod = PodBuilder("ns", absl::StrCat("share", i));
    pod.spec.gpu_share.fraction_milli = 500;
    pods.push_back(Pod(pod));
  }
  EXPECT_EQ(Text(Ask("rack", "", pods)), "rack=r1[n0] rack=r2[n1]");
}

// ---- pods that run
// -------------------------------------------------------------------------------

TEST_F(TopologyTest, RunningPodsPinTheRequiredLevel) {
  Topology("zone rack");
  Node("n0", "a/r1", 8, 7);
  Node("n1", "b/r1", 8);
  Node("n2", "b/r2", 8, 4);
  const state::PodId runs = Pod(PodBuilder("ns", "runs").Gpus(1).On("n1"));
  EXPECT_EQ(Text(Ask("zone", "", Pods(1, 1), {runs})), "zone=b[n1,n2]");
  EXPECT_EQ(Text(Ask("zone", "rack", Pods(1, 1), {runs})),
            "zone=b/rack=r2[n2] zone=b/rack=r1[n1] zone=b[n1,n2]");
  EXPECT_EQ(Text(Ask("rack", "", Pods(1, 1), {runs})), "zone=b/rack=r1[n1]");
  EXPECT_EQ(Text(Ask("", "zone", Pods(1, 1), {runs})), "zone=a[n0] zone=b[n1,n2] [n0,n1,n2]");
  const TopologyAnswer answer = Ask("rack", "", Pods(1, 8), {runs});
  EXPECT_EQ(
      answer.reason,
      "topology t, required level rack: the domain of the pods that run has no room for 1 pod; "
      "zone=b/rack=r1 has room for 0");
}

TEST_F(TopologyTest, SeveralDomainsInUseAreCandidatesEachOfItsOwn) {
  Topology("rack");
  Node("n0", "r1", 8, 2);
  Node("n1", "r2", 8);
  Node("n2", "r3", 8);
  const std::vector<state::PodId> placed = {Pod(PodBuilder("ns", "x").Gpus(1).On("n0")),
                                            Pod(PodBuilder("ns", "y").Gpus(1).On("n2"))};
  EXPECT_EQ(Text(Ask("rack", "", Pods(1, 1), placed)), "rack=r1[n0] rack=r3[n2]");
  EXPECT_EQ(Text(Ask("rack", "", Pods(6, 1), placed)), "rack=r3[n2]");
}

TEST_F(TopologyTest, PodsThatRunOutsideTheTreeLeaveNothing) {
  Topology("rack");
  Node("n0", "-", 8);
  Node("n1", "r1", 8);
  const state::PodId outside = Pod(PodBuilder("ns", "x").Gpus(1).On("n0"));
  const TopologyAnswer answer = Ask("rack", "", Pods(1, 1), {outside});
  EXPECT_EQ(Text(answer), "");
  EXPECT_EQ(answer.reason,
            "topology t, required level rack: no node left in the domain of the pods that run");
  const state::PodId inside = Pod(PodBuilder("ns", "y").Gpus(1).On("n1"));
  EXPECT_EQ(Text(Ask("rack", "", Pods(1, 1), {outside, inside})), "rack=r1[n1]");
}

TEST_F(TopologyTest, RoomsByHowManyPodsTheyTake) {
  Topology("zone rack");
  Node("a1", "a/1", 3);
  Node("a2", "a/2", 1);
  Node("b1", "b/1", 5, 2);
  Node("b2", "b/1", 2);
  Node("c1", "c/1", 1);
  Node("d1", "-/1", 8);
  const auto rooms = [&](const std::string& level, const std::vector<state::PodId>& pods,
                         const std::vector<state::PodId>& placed = {}, size_t limit = 9,
                         const std::string& without = "") {
    std::vector<std::string> texts;
    for (const TopologyRoom& room : index_.Rooms(
             {"t", level, ""}, pods, placed, limit,
             [&](const auto& values) { return values.empty() || values.front() != without; })) {
      std::vector<std::string> names;
      for (const state::NodeId node : room.nodes->nodes()) {
        names.push_back(state_.node(node).name());
      }
      texts.push_back(
          absl::StrCat(absl::StrJoin(room.values, "/"), "=", absl::StrJoin(names, "+")));
    }
    return absl::StrJoin(texts, " ");
  };
  EXPECT_EQ(rooms("zone", Pods(9, 1)), "b=b1+b2 a=a1+a2 c=c1");
  EXPECT_EQ(rooms("rack", Pods(9, 1), {}, 2), "b/1=b1+b2 a/1=a1");
  EXPECT_EQ(rooms("zone", Pods(9, 2)), "b=b1+b2 a=a1+a2");
  EXPECT_EQ(rooms("rack", Pods(9, 1), {}, 2, "b"), "a/1=a1 c/1=c1") << "of equals as rule 3 has it";
  EXPECT_EQ(rooms("", Pods(9, 1)), "=a1+a2+b1+b2+c1");
  EXPECT_EQ(rooms("zone", Pods(9, 9)), "");
  std::vector<state::PodId> mixed = Pods(1, 1);
  mixed.push_back(Pods(1, 2).front());
  EXPECT_EQ(rooms("zone", mixed), "b=b1+b2 a=a1+a2 c=c1") << "the emptiest first";
  EXPECT_EQ(rooms("zone", Pods(9, 1), {Pod(PodBuilder("ns", "runs").On("c1"))}), "c=c1");
  const auto any = [](const std::vector<std::string>&) { return true; };
  EXPECT_TRUE(index_.Rooms({"no", "zone", ""}, Pods(1, 1), {}, 9, any).empty());
}

// ---- changes
// -------------------------------------------------------------------------------------

TEST_F(TopologyTest, FollowsLabelsNodesAndTheTopologyItself) {
  Topology("rack");
  Node("n0", "r1", 1);
  Node("n1", "r2", 1);
  const auto pods = Pods(1, 1);
  EXPECT_EQ(Text(Ask("rack", "", pods)), "rack=r1[n0] rack=r2[n1]");
  Node("n1", "r1", 1);
  EXPECT_EQ(Text(Ask("rack", "", pods)), "rack=r1[n0,n1]");
  state_.RemoveNode("n0", "");
  EXPECT_EQ(Text(Ask("rack", "", pods)), "rack=r1[n1]");
  Node("n2", "r3", 1);
  EXPECT_EQ(Text(Ask("rack", "", pods)), "rack=r1[n1] rack=r3[n2]");
  Topology("zone rack");
  EXPECT_EQ(Text(Ask("rack", "", pods)), "");
  state_.RemoveTopology("t");
  EXPECT_TRUE(Ask("rack", "", pods).invalid);
}

TEST_F(TopologyTest, NodeThatIsGoneButStillHasPodsIsNoCandidate) {
  Topology("rack");
  Node("n0", "r1", 2, 1);
  model::Node ordered = MakeNode("o", 2);
  ordered.meta.labels.Set("rack", "r1");
  state_.UpsertOrderedNode(ordered, "req");
  Pod(PodBuilder("ns", "early").Gpus(1).On("o"));
  EXPECT_EQ(Text(Ask("rack", "", Pods(1, 1))), "rack=r1[n0,o]");
  state_.RemoveNode("n0", "");
  state_.RemoveOrderedNode("o");
  ASSERT_NE(state_.FindNode("o"), state::kNoId);
  EXPECT_EQ(Text(Ask("rack", "", Pods(1, 1))), "");
  Node("n1", "r1", 2);
  EXPECT_EQ(Text(Ask("rack", "", Pods(1, 1))), "rack=r1[n1]");
}

TEST_F(TopologyTest, OrderedNodesCount) {
  Topology("rack");
  model::Node node = MakeNode("o", 2);
  node.meta.labels.Set("rack", "r1");
  state_.UpsertOrderedNode(node, "req");
  EXPECT_EQ(Text(Ask("rack", "", Pods(2, 1))), "rack=r1[o]");
}

// ---- small parts
// ---------------------------------------------------------------------------------

TEST_F(TopologyTest, DomainOfANode) {
  Topology("k8s.io/zone k8s.io/rack:r host");
  Node("n0", "a/x/h", 1);
  Node("n1", "a/-/h", 1);
  const model::Topology& topology = *state_.FindTopology("t");
  const model::Node& inside = state_.node(state_.FindNode("n0")).object;
  EXPECT_EQ(DomainOf(inside, topology, "k8s.io/zone"), "zone=a");
  EXPECT_EQ(DomainOf(inside, topology, "r"), "zone=a/r=x");
  EXPECT_EQ(DomainOf(inside, topology, "k8s.io/rack"), "zone=a/r=x");
  EXPECT_EQ(DomainOf(inside, topology, "host"), "zone=a/r=x/host=h");
  EXPECT_EQ(DomainOf(inside, topology, "row"), "");
  EXPECT_EQ(DomainOf(inside, topology, ""), "");
  EXPECT_EQ(DomainOf(state_.node(state_.FindNode("n1")).object, topology, "k8s.io/zone"), "");
}

TEST(NodeSetTest, ContainsItsNodesAndNoOther) {
  for (const std::vector<state::NodeId>& ids : std::vector<std::vector<state::NodeId>>{
           {}, {0}, {7, 5, 6}, {1'000'000}, {3, 4'000'000'000u, 1}, {40, 2, 70}}) {
    const NodeSet set(ids);
    EXPECT_EQ(set.nodes(), ids);
    for (state::NodeId id : ids) {
      EXPECT_TRUE(set.Contains(id));
      for (state::NodeId other : {id - 1, id + 1}) {
        EXPECT_EQ(set.Contains(other), std::find(ids.begin(), ids.end(), other) != ids.end());
      }
    }
    EXPECT_FALSE(set.Contains(state::kNoId));
    EXPECT_FALSE(set.Contains(999));
  }
}

}  // namespace
}  // namespace fairlead::engine
