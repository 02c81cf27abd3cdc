// What the engine keeps from decision to decision (the order of nodes, counts of places, the index
// of victims) against a look at everything, after every step of random histories of a small
// cluster.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "scheduler/engine/diagnosis.h"
#include "scheduler/engine/node_fits.h"
#include "scheduler/engine/node_order.h"
#include "scheduler/engine/victim_index.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/model/testing/device_builders.h"
#include "scheduler/plugins/registry.h"
#include "scheduler/state/transaction.h"

namespace fairlead::engine {
namespace {

using framework::Capacity;
using model::testing::MakeGroup;
using model::testing::MakeNode;
using model::testing::MakeQueue;
using model::testing::PodBuilder;
using state::PodStatus;

std::unique_ptr<framework::Framework> DefaultFramework() {
  framework::Registry registry;
  EXPECT_TRUE(plugins::RegisterAll(registry).ok());
  return *framework::Framework::Make(framework::DefaultProfile(), registry);
}

// What the things that are kept need; they subscribe after the changes.
struct WatchedNodes {
  WatchedNodes() { state.Subscribe(&changes); }
  const std::unique_ptr<framework::Framework> framework = DefaultFramework();
  state::ClusterState state{{{model::kDefaultSchedulerName}}};
  NodeChanges changes{state};
};

class History {
 public:
  explicit History(uint64_t seed) : random_(seed) {
    framework_ = DefaultFramework();
    index_ = std::make_unique<VictimIndex>(state_, tree_);
    now_ = std::make_unique<NodeOrders>(state_, *framework_, changes_, Capacity::kNow);
    future_ = std::make_unique<NodeOrders>(state_, *framework_, changes_, Capacity::kFuture);
    fits_ = std::make_unique<NodeFits>(state_, *framework_, changes_);
    for (state::StateSubscriber* each : std::initializer_list<state::StateSubscriber*>{
             index_.get(), &changes_, now_.get(), future_.get(), fits_.get()}) {
      state_.Subscribe(each);
    }
    for (const char* queue : {"q0", "q1"}) tree_.Upsert(MakeQueue(queue, "", -1, -1));
  }

  void Step() {
    const std::string node = absl::StrCat("n", Below(6));
    switch (Below(8)) {
      case 0: {
        model::Node object = MakeNode(node, static_cast<int64_t>(Below(3)), 4);
        object.unschedulable = Below(4) == 0;
        if (Below(4) == 0) object.taints.push_back({"dedicated", "x"});
        state_.UpsertNode(object);
        break;
      }
      case 1:
        state_.RemoveNode(node, "");
        break;
      case 2:
        state_.RemovePod("ns", absl::StrCat("p", Below(20)), "");
        break;
      case 3:
        state_.UpsertPodGroup(MakeGroup("ns", absl::StrCat("g", Below(2)), Queue(),
                                        static_cast<int32_t>(1 + Below(3))));
        break;
      case 4:
        Try();
        break;
      default:
        state_.UpsertPod(Pod(node));
    }
  }

  void Check() {
    CheckVictims();
    for (const std::string& wrong :
         {now_->CheckConsistency(), future_->CheckConsistency(), fits_->CheckConsistency()}) {
      EXPECT_EQ(wrong, "");
    }
    state_.ForEachPod([this](const state::PodRecord& pod) {
      uint64_t work = 0;
      EXPECT_EQ(now_->BestFor(pod.pod_class, work)->node, Best(pod.pod_class, Capacity::kNow));
      EXPECT_EQ(future_->BestFor(pod.pod_class, work)->node,
                Best(pod.pod_class, Capacity::kFuture));
      for (const int64_t count : {int64_t{1}, int64_t{3}}) {
        const auto possible = [&](const NodeSet* within) {
          return fits_->Possible({{pod.pod_class, count}}, within, work);
        };
        EXPECT_EQ(possible(nullptr), Places(pod.pod_class, count, nullptr) >= count);
        const NodeSet some = EveryOtherNode();
        EXPECT_EQ(possible(&some), Places(pod.pod_class, count, &some) >= count);
      }
    });
  }

 private:
  size_t Below(size_t bound) { return static_cast<size_t>(random_() % bound); }
  std::string Queue() { return Below(5) == 0 ? "missing" : absl::StrCat("q", Below(2)); }

  model::Pod Pod(const std::string& node) {
    PodBuilder pod("ns", absl::StrCat("p", Below(20)));
    pod.Queue(Queue()).Gpus(static_cast<int64_t>(Below(2))).Preemptible(Below(4) != 0);
    pod.Cpu(static_cast<int64_t>(500 * (1 + Below(2)))).Created(static_cast<int64_t>(Below(3)));
    if (Below(3) == 0) pod.Group(absl::StrCat("g", Below(2)));
    if (Below(2) == 0) {
      pod.On(node, Below(2) == 0 ? model::PodPhase::kRunning : model::PodPhase::kPending);
      if (Below(5) == 0) pod.Deleting();
    }
    return pod;
  }

  // A decision that is tried, and kept or taken back.
  void Try() {
    state::Transaction txn(state_);
    std::vector<state::PodId> pending, running;
    state_.ForEachPod([&](const state::PodRecord& pod) {
      if (pod.status == PodStatus::kPending && pod.workload != state::kNoId) {
        pending.push_back(pod.id);
      }
      if (pod.status == PodStatus::kRunning) running.push_back(pod.id);
    });
    if (!running.empty()) txn.Evict(running[Below(running.size())]);
    for (const state::PodId pod : pending) {
      const state::NodeId node = Best(state_.pod(pod).pod_class, Capacity::kNow);
      if (node != state::kNoId) txn.Allocate(pod, node);
    }
    if (Below(2) == 0) {
      txn.Commit();
    } else {
      txn.RollbackTo(0);
    }
  }

  state::NodeId Best(state::PodClassId id, Capacity capacity) const {
    const framework::Context context{state_, state_.pod_class(id), id, capacity};
    EXPECT_FALSE(framework_->ScoresVary(context));
    state::NodeId best = state::kNoId;
    std::tuple<bool, int64_t> best_rank;
    for (const auto& [name, node_id] : state_.nodes_by_name()) {
      const state::NodeInfo& node = state_.node(node_id);
      if (!node.exists || !framework_->Filter(context, node, nullptr)) continue;
      const bool here = node.kind == state::NodeKind::kReal && node.usable;
      const std::tuple<bool, int64_t> rank{here, framework_->Score(context, node)};
      if (best == state::kNoId || rank > best_rank) {
        best = node_id;
        best_rank = rank;
      }
    }
    return best;
  }

  NodeSet EveryOtherNode() const {
    std::vector<state::NodeId> nodes;
    bool taken = false;
    for (const auto& [name, node] : state_.nodes_by_name()) {
      taken = !taken;
      if (taken) nodes.push_back(node);
    }
    return NodeSet(std::move(nodes));
  }

  int64_t Places(state::PodClassId id, int64_t most, const NodeSet* within) const {
    const state::PodClass& wanted = state_.pod_class(id);
    const framework::Context context{state_, wanted, id, Capacity::kFuture};
    int64_t places = 0;
    for (const auto& [name, node_id] : state_.nodes_by_name()) {
      const state::NodeInfo& node = state_.node(node_id);
      if (!node.exists || !framework_->FilterNodeObject(context, node, nullptr)) continue;
      if (within != nullptr && !within->Contains(node_id)) continue;
      model::Resources capacity = node.Future();
      for (int64_t n = 0; n < most && wanted.requests.FitsIn(capacity); ++n, ++places) {
        capacity -= wanted.requests;
      }
    }
    return places;
  }

  void CheckVictims() {
    EXPECT_EQ(index_->CheckConsistency(), "");
    index_->CatchUp();
    EXPECT_EQ(index_->CheckConsistency(), "");
    std::map<queues::QueueId, std::vector<QueueOrderKey>> expected;
    state_.ForEachWorkload([&](const state::Workload& workload) {
      const std::optional<queues::QueueId> leaf = tree_.Find(workload.queue);
      const bool runs =
          std::any_of(workload.pods.begin(), workload.pods.end(), [&](state::PodId pod) {
            const PodStatus status = state_.pod(pod).status;
            return status == PodStatus::kBinding || status == PodStatus::kBound ||
                   status == PodStatus::kRunning;
          });
      if (leaf.has_value() && workload.preemptible && runs) {
        expected[*leaf].push_back(index_->KeyOf(workload));
      }
    });
    ASSERT_EQ(index_->leaves().size(), expected.size());
    for (auto& [leaf, keys] : expected) {
      std::sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return b < a; });
      const VictimIndex::Leaf& found = index_->leaves().at(leaf);
      EXPECT_EQ(std::vector<QueueOrderKey>(found.begin(), found.end()), keys);
    }
  }

  std::mt19937_64 random_;
  state::ClusterState state_{{{model::kDefaultSchedulerName}}};
  queues::QueueTree tree_{state_.resource_names()};
  std::unique_ptr<framework::Framework> framework_;
  std::unique_ptr<VictimIndex> index_;
  NodeChanges changes_{state_};
  std::unique_ptr<NodeOrders> now_, future_;
  std::unique_ptr<NodeFits> fits_;
};

TEST(IncrementalTest, AgreesWithALookAtEverything) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    History history(seed);
    for (int step = 0; step < 120; ++step) {
      history.Step();
      // Not after each step, so that several changes of one row come together.
      if (step % 3 == 0) history.Check();
      if (::testing::Test::HasFailure()) {
        std::cout << "seed " << seed << ", step " << step << "\n";
        return;
      }
    }
  }
}

// A claim that devices outside of the nodes hold says itself where it can be used; no node changes
// when it says another place.
TEST(IncrementalTest, AnOrderFollowsTheClaimsThatItsClassNames) {
  WatchedNodes cluster;
  state::ClusterState& state = cluster.state;
  NodeOrders order(state, *cluster.framework, cluster.changes, Capacity::kNow);
  state.Subscribe(&order);
  for (const char* rack : {"r0", "r1"}) {
    model::Node node = MakeNode(rack, 1);
    node.meta.labels.Set("rack", rack);
    state.UpsertNode(node);
  }
  state.UpsertDeviceObject(model::testing::MakeDeviceClass("nic"));
  const auto usable_in = [&](const std::string& rack) {
    model::ResourceClaim claim = model::testing::Allocated(model::testing::MakeClaim("c", 1, "nic"),
                                                           "fabric", {"7"}, "nic.io");
    claim.node_terms.emplace_back().match_expressions.push_back(
        {"rack", model::SelectorOperator::kIn, {rack}});
    state.UpsertDeviceObject(claim);
  };
  usable_in("r0");
  model::Pod pod = PodBuilder("ns", "p").Queue("q");
  pod.spec.resource_claims = {"c"};
  state.UpsertPod(pod);
  const state::PodClassId pod_class = state.pod(state.FindPod("ns", "p")).pod_class;
  uint64_t work = 0;
  EXPECT_EQ(order.BestFor(pod_class, work)->node, state.FindNode("r0"));
  usable_in("r1");
  ASSERT_EQ(state.pod(state.FindPod("ns", "p")).pod_class, pod_class);
  EXPECT_EQ(order.BestFor(pod_class, work)->node, state.FindNode("r1"));
  EXPECT_EQ(order.CheckConsistency(), "");
}

// More of them than orders are kept: none of them is looked at again but for what has changed.
TEST(IncrementalTest, WhatSuitsNoNodeIsRememberedBeyondTheOrders) {
  WatchedNodes cluster;
  state::ClusterState& state = cluster.state;
  NodeOrders order(state, *cluster.framework, cluster.changes, Capacity::kNow);
  state.Subscribe(&order);
  for (int i = 0; i < 3; ++i) state.UpsertNode(MakeNode(absl::StrCat("n", i), 1, 4));
  constexpr int kPods = 3 * static_cast<int>(NodeOrders::kMaxClasses);
  std::vector<state::PodClassId> classes;
  for (int i = 0; i < kPods; ++i) {
    const std::string name = absl::StrCat("p", i);
    state.UpsertPod(PodBuilder("ns", name).Queue("q").Cpu(5000 + i));
    classes.push_back(state.pod(state.FindPod("ns", name)).pod_class);
  }
  const auto ask_all = [&](uint64_t& work) {
    int fit = 0;
    for (const state::PodClassId id : classes) {
      if (order.BestFor(id, work)->node != state::kNoId) ++fit;
    }
    return fit;
  };
  uint64_t work = 0;
  EXPECT_EQ(ask_all(work), 0);
  EXPECT_EQ(work, uint64_t{3} * kPods);
  work = 0;
  EXPECT_EQ(ask_all(work), 0);
  EXPECT_EQ(work, 0u);
  EXPECT_TRUE(order.NeverFits(classes.front()));
  // What is on a node is no matter.
  state.UpsertPod(
      PodBuilder("ns", "runs").Queue("q").Cpu(1000).On("n0", model::PodPhase::kRunning));
  EXPECT_EQ(ask_all(work), 0);
  EXPECT_EQ(work, 0u);
  // Its object is: one look for each, and an order for the one that it takes.
  state.UpsertNode(MakeNode("n1", 1, 5));
  EXPECT_FALSE(order.NeverFits(classes.back()));
  EXPECT_EQ(ask_all(work), 1);
  EXPECT_LE(work, uint64_t{kPods} + 2 * 3);
  state.UpsertNode(MakeNode("n3", 1, 100));
  EXPECT_EQ(ask_all(work), kPods);
  state.RemoveNode("n3", "");
  EXPECT_EQ(ask_all(work), 1);
  EXPECT_EQ(order.CheckConsistency(), "");
}

// A full cluster in which one pod after another ends, and pods of more sizes wait than there are
// orders: each is asked about on the nodes that have changed alone.
TEST(IncrementalTest, WhatNoNodeTakesIsAskedAboutOnNodesThatChanged) {
  WatchedNodes cluster;
  state::ClusterState& state = cluster.state;
  NodeOrders order(state, *cluster.framework, cluster.changes, Capacity::kNow);
  state.Subscribe(&order);
  constexpr int kNodes = 50, kSizes = 3 * static_cast<int>(NodeOrders::kMaxClasses);
  for (int i = 0; i < kNodes; ++i) {
    state.UpsertNode(MakeNode(absl::StrCat("n", i), 1, 8));
    state.UpsertPod(PodBuilder("ns", absl::StrCat("r", i))
                        .Queue("q")
                        .Cpu(8000)
                        .On(absl::StrCat("n", i), model::PodPhase::kRunning));
  }
  std::vector<state::PodClassId> classes;
  for (int i = 0; i < kSizes; ++i) {
    const std::string name = absl::StrCat("p", i);
    state.UpsertPod(PodBuilder("ns", name).Queue("q").Cpu(4000 + i));
    classes.push_back(state.pod(state.FindPod("ns", name)).pod_class);
  }
  const auto ask_all = [&](uint64_t& work) {
    work = 0;
    return std::count_if(classes.begin(), classes.end(), [&](state::PodClassId id) {
      return order.BestFor(id, work)->node != state::kNoId;
    });
  };
  uint64_t work = 0;
  EXPECT_EQ(ask_all(work), 0);
  EXPECT_EQ(work, uint64_t{kNodes} * kSizes);
  EXPECT_FALSE(order.NeverFits(classes.front()));
  for (int round = 0; round < 3; ++round) {
    // Another pod in the place of one that ended: nothing has become better.
    state.RemovePod("ns", absl::StrCat("r", round), "");
    state.UpsertPod(PodBuilder("ns", absl::StrCat("s", round))
                        .Queue("q")
                        .Cpu(4001)
                        .On(absl::StrCat("n", round), model::PodPhase::kRunning));
    EXPECT_EQ(ask_all(work), 0);
    EXPECT_EQ(work, uint64_t{kSizes}) << "one look for each";
    EXPECT_EQ(order.CheckConsistency(), "");
  }
  // A search for victims changes the same nodes over and over.
  for (int round = 0; round < 20; ++round) {
    for (const absl::string_view node : {"n3", "n4"}) {
      state::Transaction search(state);
      search.Evict(state.FindPod("ns", absl::StrCat("r", node.substr(1))));
    }
  }
  EXPECT_EQ(ask_all(work), 0);
  EXPECT_EQ(work, uint64_t{2} * kSizes) << "two looks for each";
  // Now some find a place, and what has one has an order again.
  state.RemovePod("ns", "r7", "");
  EXPECT_EQ(ask_all(work), kSizes);
  state.UpsertPod(PodBuilder("ns", "t").Queue("q").Cpu(3900).On("n7", model::PodPhase::kRunning));
  EXPECT_EQ(ask_all(work), 101) << "4,000 to 4,100";
  EXPECT_EQ(order.CheckConsistency(), "");
}

// Each usable node's answer, counted in the plainest way.
Diagnosis CountAnswers(const state::ClusterState& state, const framework::Framework& framework,
                       state::PodClassId id) {
  const Feasibility feasibility(state, framework);
  const framework::ClassPlugins plugins = framework.PluginsOf(state.pod_class(id));
  std::vector<state::NodeId> nodes;
  Diagnosis all;
  all.by_objects = true;
  for (const auto& [name, node] : state.nodes_by_name()) {
    if (!state.node(node).exists || !state.node(node).TakesBindings()) continue;
    nodes.push_back(node);
    all.by_objects &= !Feasibility::MayHold(
        framework, plugins, {state, state.pod_class(id), id, Capacity::kEmpty}, state.node(node));
    all.nodes_fit_empty += feasibility.Fits(id, node, Capacity::kEmpty) ? 1 : 0;
  }
  all.nodes = static_cast<int64_t>(nodes.size());
  std::map<std::pair<std::string, std::string>, verdict::FailedPredicate> by_reason;
  for (const state::NodeId node : nodes) {
    framework::Status why;
    if (feasibility.Fits(id, node, all.by_objects ? Capacity::kEmpty : Capacity::kNow, &why)) {
      continue;
    }
    const std::string text = why.reason + (why.detail.empty() ? "" : " ") + why.detail;
    verdict::FailedPredicate& predicate = by_reason[{std::string(why.plugin), text}];
    predicate.plugin = std::string(why.plugin);
    predicate.reason = text;
    predicate.detail = why.detail;
    ++predicate.nodes;
    for (const auto& missing : why.missing) {
      const std::string& resource = state.resource_names().Name(missing.resource);
      const auto same = std::find_if(predicate.missing.begin(), predicate.missing.end(),
                                     [&](const auto& m) { return m.resource == resource; });
      if (same == predicate.missing.end()) {
        predicate.missing.push_back({resource, missing.amount});
      } else {
        same->smallest = std::min(same->smallest, missing.amount);
      }
    }
  }
  for (auto& [key, predicate] : by_reason) {
    std::sort(predicate.missing.begin(), predicate.missing.end(),
              [](const auto& a, const auto& b) { return a.resource < b.resource; });
    all.predicates.push_back(predicate);
  }
  std::stable_sort(all.predicates.begin(), all.predicates.end(),
                   [](const auto& a, const auto& b) { return a.nodes > b.nodes; });
  return all;
}

TEST(IncrementalTest, ADiagnosisFollowsTheNodesThatChange) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    WatchedNodes cluster;
    state::ClusterState& state = cluster.state;
    Diagnoser diagnoser(state, *cluster.framework, cluster.changes);
    state.Subscribe(&diagnoser);
    std::mt19937_64 random(seed);
    const auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
    std::vector<std::string> waiting;
    for (int i = 0; i < 6; ++i) {
      waiting.push_back(absl::StrCat("w", i));
      PodBuilder pod("ns", waiting.back());
      pod.Queue("q").Cpu(1000 + 1000 * below(9));
      if (below(2) == 0) pod.Gpus(1 + below(3));
      model::Pod made = pod;
      if (below(3) == 0) made.spec.node_selector.Set("disk", below(2) == 0 ? "ssd" : "hdd");
      state.UpsertPod(made);
    }
    for (int step = 0; step < 60; ++step) {
      const std::string node = absl::StrCat("n", below(5));
      if (const int64_t what = below(8); what < 2) {
        model::Node object = MakeNode(node, below(4), 2 + below(7));
        if (below(3) == 0) object.meta.labels.Set("disk", "ssd");
        if (below(5) == 0) object.unschedulable = true;
        state.UpsertNode(object);
      } else if (what == 2) {
        state.RemoveNode(node, "");
      } else if (what < 5) {
        state.RemovePod("ns", absl::StrCat("r", below(8)), "");
      } else {
        state.UpsertPod(PodBuilder("ns", absl::StrCat("r", below(8)))
                            .Queue("q")
                            .Cpu(500 + 500 * below(4))
                            .Gpus(below(2))
                            .On(node, model::PodPhase::kRunning));
      }
      // Some are asked about after every change, some after many.
      for (const std::string& name : waiting) {
        if (below(3) == 0) continue;
        const state::PodClassId id = state.pod(state.FindPod("ns", name)).pod_class;
        const Diagnosis expected = CountAnswers(state, *cluster.framework, id);
        ASSERT_TRUE(diagnoser.For(id) == expected) << name << " after step " << step;
      }
      ASSERT_EQ(diagnoser.CheckConsistency(), "");
    }
  }
}

// No more than so many nodes are asked again in a cycle. Those that are left behind come first in
// the next ones, also if others change again and again.
TEST(IncrementalTest, DiagnosesThatACycleCannotRenewAreRenewedInTheNextOnes) {
  WatchedNodes cluster;
  state::ClusterState& state = cluster.state;
  Diagnoser diagnoser(state, *cluster.framework, cluster.changes, /*max_asks_again=*/4);
  state.Subscribe(&diagnoser);
  std::vector<state::PodClassId> classes;
  for (int64_t i = 0; i < 5; ++i) {
    const std::string name = absl::StrCat("w", i);
    state.UpsertPod(PodBuilder("ns", name).Queue("q").Gpus(100).Cpu(100 + i));
    classes.push_back(state.pod(state.FindPod("ns", name)).pod_class);
  }
  int64_t gpus = 0;
  const auto change_nodes = [&] {
    ++gpus;
    for (const char* name : {"n0", "n1", "n2"}) state.UpsertNode(MakeNode(name, gpus, 4));
  };
  // Of each class "+" if its diagnosis is up to date.
  const auto cycle = [&] {
    change_nodes();
    diagnoser.Begin();
    std::string current;
    for (const state::PodClassId id : classes) {
      const bool is = diagnoser.For(id) == CountAnswers(state, *cluster.framework, id);
      current += is ? "+" : "-";
    }
    EXPECT_EQ(diagnoser.lagging(), absl::StrContains(current, "-"));
    EXPECT_EQ(diagnoser.CheckConsistency(), "");
    return current;
  };
  EXPECT_EQ(cycle(), "+++++") << "what is new is asked about";
  EXPECT_EQ(cycle(), "++---");
  EXPECT_EQ(cycle(), "--++-");
  EXPECT_EQ(cycle(), "----+");
  EXPECT_EQ(cycle(), "++---");
}

TEST(IncrementalTest, ADiagnosisThatOnlyObjectsChangeOutlastsTheOthers) {
  WatchedNodes cluster;
  state::ClusterState& state = cluster.state;
  Diagnoser diagnoser(state, *cluster.framework, cluster.changes);
  state.Subscribe(&diagnoser);
  state.UpsertNode(MakeNode("n", 1, 4));
  const auto class_of = [&](int64_t cpu_milli) {
    const std::string name = absl::StrCat("p", cpu_milli);
    state.UpsertPod(PodBuilder("ns", name).Queue("q").Cpu(cpu_milli));
    return state.pod(state.FindPod("ns", name)).pod_class;
  };
  const state::PodClassId first = class_of(5000);
  const Diagnosis* const known = &diagnoser.For(first);
  EXPECT_TRUE(known->by_objects);
  for (int i = 1; i < 3000; ++i) diagnoser.For(class_of(5000 + i));
  EXPECT_EQ(&diagnoser.For(first), known) << "it was found out about again";
  state.UpsertNode(MakeNode("n", 1, 6));
  EXPECT_FALSE(diagnoser.For(first).by_objects);
}

}  // namespace
}  // namespace fairlead::engine
