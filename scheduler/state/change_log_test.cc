// The change log leaves nothing out: what a subscriber derives from entries alone, whatever was
// done and undone, is what the tables say. Undo tells the entries backwards, each reversed.
#include "scheduler/state/change_log.h"

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "scheduler/model/testing/budget_builders.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/model/testing/device_builders.h"
#include "scheduler/state/state_testing.h"
#include "scheduler/state/transaction.h"

namespace fairlead::state {
namespace {

using Kind = StateChange::Kind;
using model::testing::MakeClaim;
using model::testing::MakeGroup;
using model::testing::MakeNode;
using model::testing::MakeSlice;
using model::testing::PodBuilder;
using testing::OurPods;

constexpr const char* kPriorityClasses[] = {"low", "high"};

// What the log is read for, each read from the row that an entry names and from no other.
struct Picture {
  struct OnNode {
    int64_t settled = 0, releasing = 0, promised = 0;  // pods
    model::Resources used;
    friend bool operator==(const OnNode&, const OnNode&) = default;
  };
  struct Object {
    std::string name;
    bool exists = false, usable = false;
    NodeKind kind = NodeKind::kReal;
    model::Resources allocatable;
    model::StringMap labels;
    friend bool operator==(const Object&, const Object&) = default;
  };
  std::map<PodId, std::pair<PodStatus, NodeId>> pods;  // on a node
  std::map<PodId, std::string> charged;                // queue
  std::map<NodeId, OnNode> usage;
  std::map<NodeId, Object> objects;
  std::map<NodeId, uint64_t> ranks;
  std::map<WorkloadId, PodIds> workloads;
  std::map<TopologyId, std::string> topologies;
  std::map<std::pair<ClaimId, NodeId>, std::vector<std::string>> devices;
  std::map<PriorityClassId, std::string> priority_classes;
  std::map<BudgetId, std::string> budgets;
};

Picture::OnNode UsageOf(const ClusterState& state, const NodeInfo& node) {
  Picture::OnNode usage;
  for (const PodId id : node.pods) {
    const PodStatus status = state.pod(id).status;
    ++(status == PodStatus::kPipelined   ? usage.promised
       : status == PodStatus::kReleasing ? usage.releasing
                                         : usage.settled);
  }
  usage.used = node.used.value();
  return usage;
}

Picture::Object ObjectOf(const NodeInfo& node) {
  return {node.name(), node.exists,      node.usable,
          node.kind,   node.allocatable, node.object.meta.labels};
}

std::vector<std::string> DevicesOn(const ClusterState& state, const ClaimRow& claim, NodeId node) {
  std::vector<std::string> devices;
  for (const std::string& device : claim.devices) {
    if (state.devices().inventory().IsOn(DeviceOfKey(device), state.node(node).name())) {
      devices.push_back(device);
    }
  }
  return devices;
}

std::string Text(const model::Topology& topology) {
  std::string text = absl::StrCat(topology.meta.name, topology.invalid);
  for (const auto& level : topology.levels) absl::StrAppend(&text, " ", level.node_label);
  return text;
}

std::string Text(const model::PriorityClass& priority_class) {
  return absl::StrCat(priority_class.meta.name, " ", priority_class.value, " ",
                      priority_class.global_default);
}

// With what is left of it while evictions are in flight.
std::string Text(const DisruptionBudgets& budgets, BudgetId id) {
  const model::PodDisruptionBudget& budget = budgets.Object(id);
  return absl::StrCat(budgets.Name(id), " ", budget.invalid, " ", budget.Allowed(), " ",
                      budget.current_healthy, " ", budgets.Left(id), " ", budgets.Version(id));
}

class Reader final : public StateSubscriber {
 public:
  explicit Reader(ClusterState& state) : state_(state) { state_.Subscribe(this); }
  ~Reader() override { state_.Unsubscribe(this); }

  void OnChange(const StateChange& change) override {
    log_.push_back(change);
    switch (change.kind) {
      case Kind::kPodMoved:
        ASSERT_EQ(state_.pod(change.pod).status, change.to_status);
        ASSERT_EQ(state_.pod(change.pod).node, change.to_node);
        seen_.pods.erase(change.pod);
        if (change.to_node != kNoId) {
          seen_.pods[change.pod] = {change.to_status, change.to_node};
        }
        return;
      case Kind::kPodCharged:
        ASSERT_TRUE(
            seen_.charged.emplace(change.pod, state_.QueueOf(state_.pod(change.pod))).second);
        return;
      case Kind::kPodReleased:
        ASSERT_EQ(seen_.charged.erase(change.pod), 1u);
        return;
      case Kind::kNodeObject:
        ReadObject(change.to_node);
        [[fallthrough]];
      case Kind::kNodeUsage:
        ReadUsage(change.to_node);
        return;
      case Kind::kNodesRanked:
        for (auto& [node, rank] : seen_.ranks) rank = state_.node(node).name_rank;
        return;
      case Kind::kWorkload:
        seen_.workloads[change.workload] = state_.workload(change.workload).pods;
        return;
      case Kind::kWorkloadGone:
        seen_.workloads.erase(change.workload);
        return;
      case Kind::kTopology:
        seen_.topologies[change.row] = Text(state_.topology(change.row));
        return;
      case Kind::kTopologyGone:
        ASSERT_EQ(seen_.topologies.erase(change.row), 1u);
        return;
      case Kind::kPriorityClass:
        seen_.priority_classes[change.row] = Text(state_.priority_class(change.row));
        return;
      case Kind::kPriorityClassGone:
        ASSERT_EQ(Text(state_.priority_class(change.row)), seen_.priority_classes[change.row]);
        seen_.priority_classes.erase(change.row);
        return;
      case Kind::kBudget:
        seen_.budgets[change.row] = Text(state_.budgets(), change.row);
        return;
      case Kind::kBudgetGone:
        ASSERT_EQ(Text(state_.budgets(), change.row), seen_.budgets[change.row]);
        seen_.budgets.erase(change.row);
        return;
      case Kind::kClaimDevices: {
        const std::string& key = state_.devices().KeyOf(change.row);
        const ClaimRow& row = *state_.devices().Find(key);
        ASSERT_EQ(row.id, change.row);
        ReadDevices(row, change.to_node);
        return;
      }
      case Kind::kClassGone:
        specs_.erase(change.row);
        return;
      case Kind::kClassAnswers:
      case Kind::kPodLabelsGo:
      case Kind::kPodLabelsCome:
      case Kind::kQueue:
      case Kind::kClaim:
        return;
    }
  }

  // Against the tables.
  void Check() {
    Picture now;
    state_.ForEachPod([&](const PodRecord& pod) {
      if (pod.node != kNoId) now.pods[pod.id] = {pod.status, pod.node};
      if (pod.workload != kNoId && IsAllocated(pod.status)) {
        now.charged[pod.id] = state_.QueueOf(pod);
      }
      // What is remembered of a class id is about the class that has the id now.
      const PodClass& pod_class = state_.pod_class(pod.pod_class);
      const auto known = specs_.try_emplace(pod.pod_class, pod_class.spec).first;
      EXPECT_EQ(known->second, pod_class.spec) << "class " << pod.pod_class;
    });
    for (const auto& [name, id] : state_.nodes_by_name()) {
      const NodeInfo& node = state_.node(id);
      now.usage[id] = UsageOf(state_, node);
      if (node.exists) now.objects[id] = ObjectOf(node);
      now.ranks[id] = node.name_rank;
    }
    state_.ForEachWorkload([&](const Workload& w) { now.workloads[w.id] = w.pods; });
    for (const auto& [key, row] : state_.devices().claims()) {
      for (const auto& [name, node] : state_.nodes_by_name()) {
        std::vector<std::string> devices = DevicesOn(state_, row, node);
        if (!state_.node(node).exists || devices.empty()) continue;
        now.devices[{row.id, node}] = std::move(devices);
      }
    }
    for (const char* name : kPriorityClasses) {
      const PriorityClassId id = state_.FindPriorityClass(name);
      if (id != kNoId) now.priority_classes[id] = Text(state_.priority_class(id));
    }
    state_.budgets().ForEach([&](BudgetId id) { now.budgets[id] = Text(state_.budgets(), id); });
    EXPECT_EQ(seen_.priority_classes, now.priority_classes);
    EXPECT_EQ(now.priority_classes.size(), state_.priority_class_count());
    EXPECT_EQ(seen_.budgets, now.budgets);
    EXPECT_EQ(seen_.pods, now.pods);
    EXPECT_EQ(seen_.charged, now.charged);
    EXPECT_EQ(seen_.usage, now.usage);
    EXPECT_EQ(seen_.objects, now.objects);
    EXPECT_EQ(seen_.ranks, now.ranks);
    EXPECT_EQ(seen_.workloads, now.workloads);
    EXPECT_EQ(seen_.devices, now.devices);
    for (const auto& [id, text] : seen_.topologies) {
      EXPECT_EQ(text, Text(state_.topology(id)));
      EXPECT_EQ(state_.FindTopology(state_.topology(id).meta.name), &state_.topology(id));
    }
  }
  [[nodiscard]] size_t topologies() const { return seen_.topologies.size(); }
  [[nodiscard]] const std::vector<StateChange>& log() const { return log_; }

 private:
  void ReadObject(NodeId id) {
    const NodeInfo& node = state_.node(id);
    seen_.objects.erase(id);
    if (node.id == id && node.exists) seen_.objects[id] = ObjectOf(node);
    // Its slices say which devices it has.
    std::erase_if(seen_.devices, [&](const auto& entry) { return entry.first.second == id; });
    for (const auto& [key, row] : state_.devices().claims()) ReadDevices(row, id);
  }
  void ReadDevices(const ClaimRow& row, NodeId id) {
    const NodeInfo& node = state_.node(id);
    std::vector<std::string> held;
    if (node.id == id && node.exists) held = DevicesOn(state_, row, id);
    if (held.empty()) {
      seen_.devices.erase({row.id, id});
    } else {
      seen_.devices[{row.id, id}] = std::move(held);
    }
  }
  void ReadUsage(NodeId id) {
    const NodeInfo& node = state_.node(id);
    seen_.usage.erase(id);
    seen_.ranks.erase(id);
    if (node.id != id) return;
    seen_.usage[id] = UsageOf(state_, node);
    seen_.ranks[id] = node.name_rank;
  }

  ClusterState& state_;
  Picture seen_;
  std::map<PodClassId, std::shared_ptr<const model::PodSpec>> specs_;
  std::vector<StateChange> log_;
};

class ChangeWorld {
 public:
  explicit ChangeWorld(uint64_t seed) : random_(seed), reader_(state_) {
    state_.UpsertDeviceObject(model::testing::MakeDeviceClass("gpu.nvidia.com"));
    for (int i = 0; i < 3; ++i) UpsertNode(i);
  }

  void Step() {
    switch (Below(15)) {
      case 0:
        return UpsertNode(Below(4));
      case 1:
        state_.RemoveNode(absl::StrCat("n", Below(4)), "");
        return;
      case 2:
        state_.RemovePod("ns", absl::StrCat("p", Below(kPods)), "");
        return;
      case 3:
        return ChangeGroup();
      case 4:
        return ChangeTopology();
      case 5:
        return ChangeClaim();
      case 6:
      case 7:
        return Try();
      case 8:
        return ChangePriorityClass();
      case 9:
        return ChangeBudget();
      case 10:
        return ChangeEviction();
      default:
        state_.UpsertPod(Pod());
    }
  }

  ClusterState& state() { return state_; }
  Reader& reader() { return reader_; }
  void Operation(Transaction& txn) {
    const PodId pod = state_.FindPod("ns", absl::StrCat("p", Below(kPods)));
    const NodeId node = state_.FindNode(absl::StrCat("n", Below(4)));
    if (pod == kNoId || node == kNoId || !state_.pod(pod).ours) return;
    switch (state_.pod(pod).status) {
      case PodStatus::kPending:
        return Below(2) == 0 ? txn.Allocate(pod, node) : txn.Pipeline(pod, node);
      case PodStatus::kReleasing:
        return txn.Pipeline(pod, node);
      case PodStatus::kPipelined:
      case PodStatus::kBinding:
      case PodStatus::kBound:
      case PodStatus::kRunning:
        return Below(4) == 0 ? txn.Remove(pod) : txn.Evict(pod);
      default:
        return;
    }
  }
  size_t Below(size_t bound) { return static_cast<size_t>(random_() % bound); }

 private:
  static constexpr size_t kPods = 12;

  void UpsertNode(size_t number) {
    const std::string name = absl::StrCat("n", number);
    model::Node node = MakeNode(name, static_cast<int64_t>(Below(5)));
    if (Below(2) == 0) node.meta.labels.Set("rack", absl::StrCat("r", Below(2)));
    if (Below(4) == 0) {
      state_.UpsertOrderedNode(node, "request");
      return;
    }
    state_.UpsertNode(node);
    if (Below(2) == 0) {
      state_.UpsertDeviceObject(MakeSlice(name, static_cast<int64_t>(Below(4))));
    }
  }
  void ChangeGroup() {
    const std::string group = absl::StrCat("g", Below(2));
    if (Below(3) == 0) {
      state_.RemovePodGroup("ns", group, "");
    } else {
      state_.UpsertPodGroup(MakeGroup("ns", group, absl::StrCat("q", Below(2)), 1));
    }
  }
  void ChangeTopology() {
    model::Topology topology;
    topology.meta.name = absl::StrCat("t", Below(3));
    if (Below(3) == 0) {
      state_.RemoveTopology(topology.meta.name);
      return;
    }
    topology.levels = {{Below(2) == 0 ? "rack" : "zone", ""}};
    state_.UpsertTopology(topology);
  }
  void ChangePriorityClass() {
    const char* name = kPriorityClasses[Below(2)];
    if (Below(3) == 0) {
      state_.RemovePriorityClass(name);
      return;
    }
    model::PriorityClass priority_class;
    priority_class.meta.name = name;
    priority_class.value = static_cast<int32_t>(Below(3));
    priority_class.global_default = Below(2) == 0;
    state_.UpsertPriorityClass(priority_class);
  }
  void ChangeBudget() {
    const std::string name = absl::StrCat("b", Below(2));
    if (Below(3) == 0) {
      state_.RemoveDisruptionBudget("ns", name);
      return;
    }
    model::PodDisruptionBudget budget =
        model::testing::MakeBudget(name, "", static_cast<int64_t>(Below(3)));
    budget.meta.uid = absl::StrCat("uid-", Below(2));
    if (Below(3) == 0) budget.disrupted_pods = {absl::StrCat("p", Below(kPods))};
    state_.UpsertDisruptionBudget(budget);
  }
  // One is decided, or taken back.
  void ChangeEviction() {
    const PodId pod = state_.FindPod("ns", absl::StrCat("p", Below(kPods)));
    if (pod == kNoId || !state_.pod(pod).ours) return;
    if (Below(3) == 0) {
      state_.ForgetEviction(pod);
    } else {
      state_.ChargeBudgets(pod);
      state_.AssumeEvicted(pod);
    }
  }
  void ChangeClaim() {
    const std::string name = absl::StrCat("c", Below(3));
    if (Below(4) == 0) {
      state_.RemoveResourceClaim("ns", name);
      return;
    }
    model::ResourceClaim claim = MakeClaim(name, static_cast<int64_t>(1 + Below(2)));
    if (Below(2) == 0) {
      claim = model::testing::Allocated(claim, absl::StrCat("n", Below(3)), {"0", "1"});
    }
    state_.UpsertDeviceObject(claim);
  }
  model::Pod Pod() {
    PodBuilder builder("ns", absl::StrCat("p", Below(kPods)));
    builder.Queue(absl::StrCat("q", Below(2))).Gpus(static_cast<int64_t>(Below(3)));
    if (Below(3) == 0) builder.Group(absl::StrCat("g", Below(2)));
    if (Below(2) == 0) {
      builder.On(absl::StrCat("n", Below(5)));
      if (Below(4) == 0) builder.Deleting();
      if (Below(3) == 0) {
        builder.Annotation(model::kStartedUnderAnnotation, absl::StrCat("q", Below(3)));
        builder.Annotation(model::kStartedAsAnnotation,
                           Below(2) == 0 ? "preemptible" : "non-preemptible");
      }
    }
    model::Pod pod = builder;
    if (Below(3) == 0) pod.spec.resource_claims = {absl::StrCat("c", Below(3))};
    return pod;
  }
  // Decisions that are tried, and kept or taken back.
  void Try() {
    Transaction txn(state_);
    for (size_t i = Below(6); i > 0; --i) Operation(txn);
    const auto mark = txn.Mark();
    if (Below(2) == 0) {
      const NodeId node = txn.AddNode(MakeNode("virtual", 4));
      txn.Pipeline(txn.AddPod(txn.AddClass(PodBuilder("ns", "x").Gpus(3).Build().spec)), node);
    }
    for (size_t i = Below(6); i > 0; --i) Operation(txn);
    reader_.Check();
    txn.RollbackTo(mark);
    reader_.Check();
    for (const auto& operation : txn.OperationsSince(0)) {
      if (operation.kind == Transaction::OperationKind::kRemove) return;
      // A promise is taken back before anything else happens, and nothing that runs is left without
      // any node.
      const bool evicted = operation.kind == Transaction::OperationKind::kEvict;
      if (evicted && state_.pod(operation.pod).node == kNoId) return;
    }
    if (Below(2) == 0) txn.Commit();
  }

  std::mt19937_64 random_;
  ClusterState state_{OurPods()};
  Reader reader_;
};

TEST(ChangeLogProperty, WhatIsDerivedFromItEqualsTheTables) {
  size_t topologies = 0;
  std::map<Kind, int> told;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    ChangeWorld world(seed);
    for (int step = 0; step < 80; ++step) {
      SCOPED_TRACE(absl::StrCat("step ", step));
      world.Step();
      world.reader().Check();
      ASSERT_EQ(world.state().CheckConsistency(), "");
      if (::testing::Test::HasFailure()) return;
    }
    topologies += world.reader().topologies();
    for (const StateChange& change : world.reader().log()) ++told[change.kind];
  }
  EXPECT_GT(topologies, 0u);
  for (const Kind kind :
       {Kind::kPriorityClass, Kind::kPriorityClassGone, Kind::kBudget, Kind::kBudgetGone}) {
    EXPECT_GT(told[kind], 0) << static_cast<int>(kind);
  }
}

StateChange Reversed(StateChange change) {
  switch (change.kind) {
    case Kind::kPodMoved:
      std::swap(change.from_status, change.to_status);
      std::swap(change.from_node, change.to_node);
      break;
    case Kind::kPodCharged:
      change.kind = Kind::kPodReleased;
      break;
    case Kind::kPodReleased:
      change.kind = Kind::kPodCharged;
      break;
    default:
      break;
  }
  return change;
}

// Entries of pods, "moved" or "charged".
std::vector<std::string> Texts(const std::vector<StateChange>& log, bool moved) {
  std::vector<std::string> texts;
  for (const StateChange& change : log) {
    const bool of_charge = change.kind == Kind::kPodCharged || change.kind == Kind::kPodReleased;
    if (moved ? change.kind != Kind::kPodMoved : !of_charge) continue;
    texts.push_back(absl::StrCat(static_cast<int>(change.kind), " pod ", change.pod, " ",
                                 PodStatusName(change.from_status), "@", change.from_node, " -> ",
                                 PodStatusName(change.to_status), "@", change.to_node));
  }
  return texts;
}

TEST(ChangeLogProperty, UndoTellsTheEntriesBackwards) {
  size_t entries = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    ChangeWorld world(seed);
    for (int step = 0; step < 40; ++step) world.Step();
    const auto tail = [&](size_t from) {
      const std::vector<StateChange>& log = world.reader().log();
      return std::vector<StateChange>(log.begin() + static_cast<ptrdiff_t>(from), log.end());
    };
    const size_t start = world.reader().log().size();
    Transaction txn(world.state());
    for (int i = 0; i < 12; ++i) world.Operation(txn);
    std::vector<StateChange> done = tail(start);
    txn.RollbackTo(0);
    const std::vector<StateChange> undone = tail(start + done.size());
    std::reverse(done.begin(), done.end());
    for (StateChange& change : done) change = Reversed(change);
    EXPECT_EQ(Texts(undone, true), Texts(done, true));
    EXPECT_EQ(Texts(undone, false), Texts(done, false));
    entries += Texts(done, true).size();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(entries, 200u);
}

TEST(ChangeLogTest, ASubscriberIsToldTheKindsThatItNames) {
  class Counter final : public StateSubscriber {
   public:
    explicit Counter(ChangeKinds kinds) : kinds_(kinds) {}
    void OnChange(const StateChange& change) override {
      EXPECT_TRUE(kinds_.Has(change.kind));
      ++told;
    }
    [[nodiscard]] ChangeKinds Kinds() const override { return kinds_; }
    int told = 0;

   private:
    const ChangeKinds kinds_;
  };
  ClusterState state(OurPods());
  Counter objects({Kind::kNodeObject}), topologies({Kind::kTopology, Kind::kTopologyGone});
  state.Subscribe(&objects);
  state.Subscribe(&topologies);
  state.UpsertNode(MakeNode("a", 1));
  state.UpsertPod(PodBuilder("ns", "p").Gpus(1).On("a"));
  EXPECT_EQ(objects.told, 1);
  EXPECT_EQ(topologies.told, 0);
  model::Topology topology;
  topology.meta.name = "t";
  state.UpsertTopology(topology);
  state.RemoveTopology("t");
  EXPECT_EQ(topologies.told, 2);
  state.Unsubscribe(&objects);
  state.Unsubscribe(&topologies);
  state.UpsertNode(MakeNode("b", 1));
  EXPECT_EQ(objects.told, 1);
}

// Each name comes before all others: the gap between ranks is used up after 63 of them.
TEST(ChangeLogTest, NewRanksAreTold) {
  ClusterState state(OurPods());
  Reader reader(state);
  size_t ranked = 0;
  for (size_t length = 90; length > 0; --length) {
    state.UpsertNode(MakeNode(std::string(length, 'a'), 1));
    reader.Check();
  }
  for (const StateChange& change : reader.log())
    ranked += change.kind == Kind::kNodesRanked ? 1 : 0;
  EXPECT_GE(ranked, 1u);
}

}  // namespace
}  // namespace fairlead::state
