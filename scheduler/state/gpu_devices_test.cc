// Shared GPUs: what labels mean, where shares go, what nodes and queues are charged with, and what
// the API server's objects do to groups.
#include <map>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/state/gpu_testing.h"
#include "scheduler/state/state_testing.h"
#include "scheduler/state/transaction.h"

namespace fairlead::state {
namespace {

using model::testing::MakeNode;
using model::testing::PodBuilder;
using testing::GpuNode;
using Labels = std::initializer_list<const char*>;
using testing::OurPods;

TEST(GpuMemoryLabel, Table) {
  const std::map<std::string, int64_t> cases = {
      {"100", 100},
      {"81559", 81500},
      {"99", 0},
      {"0", 0},
      {"-5", 0},
      {"many", 0},
      {"", 0},
      {"1.5", 0},
      {"1048576", 1048500},
      {"1048577", 0},
      {"85899345920", 81900},  // 80 Gi in bytes
      {"99999999999999999999", 0},
  };
  for (const auto& [text, mib] : cases) {
    EXPECT_EQ(GpuMemoryOf(GpuNode("n", 1, text)), mib) << text;
  }
  EXPECT_EQ(GpuMemoryOf(MakeNode("n", 1)), 0);
}

TEST(GpuShareAmounts, Table) {
  struct Case {
    model::GpuShare share;
    int64_t memory;
    int64_t mib, milli;
  };
  const Case cases[] = {
      {{500, 0, 1}, 100, 50, 500},   {{333, 0, 1}, 81500, 27139, 333},  // 27139.5 rounded down
      {{1, 0, 1}, 100, 1, 1},                                           // never nothing
      {{500, 0, 3}, 0, 50, 1500},                                       // nominal 100 MiB
      {{0, 50, 1}, 100, 50, 500},    {{0, 50, 2}, 81500, 50, 20},       // 0.06% of a GPU is 1%
      {{0, 815, 1}, 81500, 815, 10},                                    // exactly 1%
      {{0, 816, 1}, 81500, 816, 20}, {{0, 150, 1}, 100, 150, 1500},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ShareMib(c.share, c.memory), c.mib);
    EXPECT_EQ(ShareMilli(c.share, c.memory), c.milli);
  }
}

TEST(MigNames, Table) {
  const std::map<std::string, int64_t> cases = {
      {"nvidia.com/mig-1g.10gb", 1},   {"nvidia.com/mig-7g.80gb", 7},    {"nvidia.com/gpu", 0},
      {"nvidia.com/mig-1g.5gb.me", 1}, {"nvidia.com/mig-1c.3g.20gb", 3}, {"nvidia.com/mig-", 0},
      {"nvidia.com/mig-g.10gb", 0},    {"nvidia.com/mig-10gb", 0},       {"nvidia.com/mig-2g", 0},
      {"amd.com/mig-1g.10gb", 0},
  };
  for (const auto& [name, slices] : cases) EXPECT_EQ(MigSlices(name), slices) << name;
  EXPECT_EQ(OtherGpusMilli({{"amd.com/gpu", 2000}, {"cpu", 5}, {"nvidia.com/mig-2g.20gb", 3}}),
            8000);
}

TEST(GpuGroupIds, AreLabelsAndDiffer) {
  const std::string uid = "5f0c1c9e-9d3e-4e9e-8f0a-1f2e3d4c5b6a";
  const std::string id = GpuGroupId(uid, "node-1", 0);
  EXPECT_LE(id.size(), 63u);
  EXPECT_NE(id, GpuGroupId(uid, "node-2", 0));
  EXPECT_NE(id, GpuGroupId(uid, "node-1", 1));
  EXPECT_NE(id, GpuGroupId("5f0c1c9e-9d3e-4e9e-8f0a-1f2e3d4c5b6b", "node-1", 0));
  EXPECT_EQ(id, GpuGroupId(uid, "node-1", 0));
  for (const std::string& odd :
       {std::string(), std::string(100, 'x'), std::string("a/b c"), std::string("-a")}) {
    const std::string made = GpuGroupId(odd, "n", 9999);
    EXPECT_LE(made.size(), 63u);
    EXPECT_EQ(made.find_first_not_of("0123456789abcdef-"), std::string::npos) << made;
  }
}

class GpuTest : public ::testing::Test {
 protected:
  GpuTest() : state_(OurPods()) {}
  void TearDown() override { EXPECT_EQ(state_.CheckConsistency(), ""); }

  void Node(absl::string_view name, int64_t gpus, absl::string_view memory = "100") {
    state_.UpsertNode(GpuNode(name, gpus, memory));
  }
  // A running pod with a share in that group of node "n".
  void Runs(absl::string_view name, int64_t milli, absl::string_view group, bool ends = false) {
    PodBuilder pod("ns", name);
    pod.GpuFraction(milli).On("n").Label(model::kGpuGroupLabel, group);
    if (ends) pod.Deleting();
    state_.UpsertPod(pod);
  }
  PodId Waits(PodBuilder pod) {
    state_.UpsertPod(pod);
    return state_.FindPod(pod.Build().meta.ns, pod.Build().meta.name);
  }
  [[nodiscard]] const NodeInfo& N(absl::string_view name = "n") const {
    return state_.node(state_.FindNode(name));
  }
  // used/releasing/pipelined of whole GPUs.
  [[nodiscard]] std::string Whole(absl::string_view name = "n") const {
    const NodeInfo& n = N(name);
    return absl::StrCat(n.used[model::kGpu], "/", n.releasing[model::kGpu], "/",
                        n.pipelined[model::kGpu]);
  }
  // The pick as text, ids of the pod's own as "new"; "!" behind it if it has to wait; "-" if none.
  std::string Pick(PodId pod, GpuCapacity room, GpuOrder order = GpuOrder::kPack) {
    const PodRecord& record = state_.pod(pod);
    const PodClass& pod_class = state_.class_of(pod);
    const auto pick = PickGpus(N(), pod_class, record.uid, room, order);
    EXPECT_EQ(pick.has_value(), FitsGpus(N(), pod_class, room));
    if (!pick.has_value()) return "-";
    std::string text;
    for (const std::string& id : *pick) {
      const bool is_new = absl::StartsWith(id, record.uid);
      absl::StrAppend(&text, text.empty() ? "" : ",", is_new ? "new" : id);
    }
    EXPECT_EQ(MustWait(N(), pod_class, *pick) && room == GpuCapacity::kNow, false);
    return text + (MustWait(N(), pod_class, *pick) ? "!" : "");
  }

  ClusterState state_;
};

TEST_F(GpuTest, AGroupTakesOneGpuHoweverManyShareIt) {
  Node("n", 4);
  EXPECT_EQ(Whole(), "0/0/0");
  Runs("a", 500, "g");
  EXPECT_EQ(Whole(), "1000/0/0");
  Runs("b", 500, "g");
  EXPECT_EQ(Whole(), "1000/0/0");
  Runs("c", 100, "h");
  EXPECT_EQ(Whole(), "2000/0/0");
  Runs("b", 500, "g", true);
  EXPECT_EQ(Whole(), "2000/0/0");  // its GPU stays taken by the other
  Runs("a", 500, "g", true);
  EXPECT_EQ(Whole(), "2000/1000/0");
  state_.RemovePod("ns", "a", "");
  state_.RemovePod("ns", "b", "");
  EXPECT_EQ(Whole(), "1000/0/0");
  ASSERT_EQ(N().gpu_groups.size(), 1u);
  EXPECT_EQ(N().gpu_groups[0].id, "h");
  EXPECT_EQ(N().gpu_groups[0].used_mib, 10);
}

TEST_F(GpuTest, WhatIsPromisedOnAnEndingGpuIsNotGivenTwice) {
  Node("n", 1);
  Runs("ends", 500, "g", true);
  const PodId share = Waits(PodBuilder("ns", "share").GpuFraction(500));
  EXPECT_EQ(Pick(share, GpuCapacity::kNow), "-");
  EXPECT_EQ(Pick(share, GpuCapacity::kFuture), "g!");
  Transaction txn(state_);
  txn.Pipeline(share, N().id, {"g"});
  EXPECT_EQ(Whole(), "1000/1000/1000");
  const PodId other = Waits(PodBuilder("ns", "other").GpuFraction(600));
  const PodId small = Waits(PodBuilder("ns", "small").GpuFraction(400));
  EXPECT_EQ(Pick(other, GpuCapacity::kFuture), "-");
  EXPECT_EQ(Pick(small, GpuCapacity::kFuture), "g!");
  txn.RollbackTo(0);
  // The GPU promised as a whole is no longer there for shares.
  const PodId whole = Waits(PodBuilder("ns", "whole").Gpus(1));
  txn.Pipeline(whole, N().id);
  EXPECT_EQ(Whole(), "1000/1000/1000");
  EXPECT_EQ(Pick(share, GpuCapacity::kFuture), "-");
}

TEST_F(GpuTest, OrderOfGpus) {
  Node("n", 3);
  Runs("a", 500, "1");
  Runs("b", 700, "0");
  const PodId p200 = Waits(PodBuilder("ns", "p200").GpuFraction(200));
  const PodId p400 = Waits(PodBuilder("ns", "p400").GpuFraction(400));
  const PodId p600 = Waits(PodBuilder("ns", "p600").GpuFraction(600));
  const PodId two = Waits(PodBuilder("ns", "two").GpuFraction(200, 2));
  const PodId three = Waits(PodBuilder("ns", "three").GpuFraction(400, 3));
  EXPECT_EQ(Pick(p200, GpuCapacity::kNow), "0");
  EXPECT_EQ(Pick(p400, GpuCapacity::kNow), "1");
  EXPECT_EQ(Pick(p600, GpuCapacity::kNow), "new");
  EXPECT_EQ(Pick(two, GpuCapacity::kNow), "0,1");
  EXPECT_EQ(Pick(three, GpuCapacity::kNow), "-");
  EXPECT_EQ(Pick(p200, GpuCapacity::kNow, GpuOrder::kSpread), "new");
  EXPECT_EQ(Pick(two, GpuCapacity::kNow, GpuOrder::kSpread), "new,1");
  Waits(PodBuilder("ns", "w").Gpus(1).On("n"));
  EXPECT_EQ(Pick(p200, GpuCapacity::kNow, GpuOrder::kSpread), "1");
  EXPECT_EQ(Pick(p600, GpuCapacity::kNow), "-");
  EXPECT_EQ(Pick(p600, GpuCapacity::kFuture), "-");
}

// KAI allocateFractionalGpu[11]: a shared GPU that will have room comes before a free one.
TEST_F(GpuTest, PackingWaitsForASharedGpuRatherThanTakeAFreeOne) {
  Node("n", 2);
  Runs("stays", 500, "0");
  Runs("ends", 500, "0", true);
  const PodId pod = Waits(PodBuilder("ns", "p").GpuFraction(500));
  EXPECT_EQ(Pick(pod, GpuCapacity::kNow), "new");
  EXPECT_EQ(Pick(pod, GpuCapacity::kFuture), "0!");
  EXPECT_EQ(Pick(pod, GpuCapacity::kFuture, GpuOrder::kSpread), "new");
}

TEST_F(GpuTest, AWholeGpuThatEndsCanBeSharedLater) {
  Node("n", 1);
  state_.UpsertPod(PodBuilder("ns", "w").Gpus(1).On("n").Deleting());
  const PodId pod = Waits(PodBuilder("ns", "p").GpuFraction(500));
  EXPECT_EQ(Pick(pod, GpuCapacity::kNow), "-");
  EXPECT_EQ(Pick(pod, GpuCapacity::kFuture), "new!");
}

TEST_F(GpuTest, ANewGroupNeverMeetsOneOfTheSamePod) {
  Node("n", 2);
  const PodId a = Waits(PodBuilder("ns", "a").GpuFraction(600));
  const PodId b = Waits(PodBuilder("ns", "b").GpuFraction(300));
  Transaction txn(state_);
  const auto first =
      PickGpus(N(), state_.class_of(a), "uid-ns-a", GpuCapacity::kNow, GpuOrder::kPack);
  txn.Allocate(a, N().id, *first);
  txn.Allocate(b, N().id, *first);
  (void)txn.Commit();
  // The binding of `a` fails; `b` keeps the GPU and grows too large to share with.
  state_.ForgetBinding(a);
  Runs("c", 300, (*first)[0]);
  const auto second =
      PickGpus(N(), state_.class_of(a), "uid-ns-a", GpuCapacity::kNow, GpuOrder::kPack);
  ASSERT_TRUE(second.has_value());
  EXPECT_NE(*second, *first);
}

TEST_F(GpuTest, LabelsOfTheApiServerDecide) {
  Node("n", 4);
  // Without a label: a GPU of its own, not that of another.
  state_.UpsertPod(PodBuilder("ns", "a").GpuFraction(300).On("n"));
  state_.UpsertPod(PodBuilder("ns", "b").GpuFraction(300).On("n"));
  EXPECT_EQ(Whole(), "2000/0/0");
  // The binder moves them together.
  Runs("a", 300, "g");
  const Change change = state_.UpsertPod(
      PodBuilder("ns", "b").GpuFraction(300).On("n").Label(model::kGpuGroupLabel, "g"));
  EXPECT_TRUE(change.capacity);
  EXPECT_EQ(Whole(), "1000/0/0");
  // Seen without the label once more (an old event): stays.
  state_.UpsertPod(PodBuilder("ns", "b").GpuFraction(300).On("n"));
  EXPECT_EQ(state_.pod(state_.FindPod("ns", "b")).gpu_groups, GpuPick{"g"});
  // Several devices have a label each; one too few is made up, one too many is passed over.
  state_.UpsertPod(PodBuilder("ns", "m")
                       .GpuFraction(300, 2)
                       .On("n")
                       .Label("runai-gpu-group/g", "g")
                       .Label("runai-gpu-group/h", "h"));
  EXPECT_EQ(state_.pod(state_.FindPod("ns", "m")).gpu_groups, (GpuPick{"g", "h"}));
  state_.UpsertPod(
      PodBuilder("ns", "few").GpuFraction(100, 2).On("n").Label(model::kGpuGroupLabel, "g"));
  EXPECT_EQ(state_.pod(state_.FindPod("ns", "few")).gpu_groups.size(), 2u);
  state_.UpsertPod(PodBuilder("ns", "many")
                       .GpuFraction(100)
                       .On("n")
                       .Label("runai-gpu-group/g", "g")
                       .Label("runai-gpu-group/h", "h"));
  EXPECT_EQ(state_.pod(state_.FindPod("ns", "many")).gpu_groups, GpuPick{"g"});
  // A label on a pod that shares nothing means nothing; nor does one that only begins alike.
  state_.UpsertPod(PodBuilder("ns", "plain").On("n").Label(model::kGpuGroupLabel, "g"));
  EXPECT_TRUE(state_.pod(state_.FindPod("ns", "plain")).gpu_groups.empty());
  state_.UpsertPod(PodBuilder("ns", "odd").GpuFraction(100).On("n").Label("runai-gpu-groups", "g"));
  EXPECT_NE(state_.pod(state_.FindPod("ns", "odd")).gpu_groups, GpuPick{"g"});
}

// An owner may annotate a share when the pod runs. No GPU is reserved for it, and there may be
// none.
TEST_F(GpuTest, NoPodJoinsAGpuThatNoLabelNames) {
  Node("n", 2);
  state_.UpsertPod(PodBuilder("ns", "w").Gpus(2).On("n"));
  state_.UpsertPod(PodBuilder("ns", "a").On("n"));
  const PodId pod = Waits(PodBuilder("ns", "p").GpuFraction(500));
  EXPECT_EQ(Pick(pod, GpuCapacity::kNow), "-");
  state_.UpsertPod(PodBuilder("ns", "a").GpuFraction(500).On("n"));
  EXPECT_EQ(Pick(pod, GpuCapacity::kNow), "-");
  EXPECT_EQ(Pick(pod, GpuCapacity::kFuture), "-");
  const GpuPick made_up = state_.pod(state_.FindPod("ns", "a")).gpu_groups;
  // Nor if a second pod names what is made up for the first one.
  Runs("b", 300, made_up[0]);
  state_.CloseGpuGroup("n", made_up[0], false);
  EXPECT_EQ(Pick(pod, GpuCapacity::kNow), "-");
  EXPECT_EQ(state_.CheckConsistency(), "");
  state_.RemovePod("ns", "b", "");
  Runs("a", 500, "g");
  EXPECT_EQ(Pick(pod, GpuCapacity::kNow), "g");
}

TEST_F(GpuTest, ABindingKeepsItsGroupsUntilTheApiServerNamesThem) {
  Node("n", 2);
  const PodId a = Waits(PodBuilder("ns", "a").GpuFraction(300));
  {
    Transaction txn(state_);
    txn.Allocate(a, N().id, {"mine"});
    const auto operations = txn.Commit();
    ASSERT_EQ(operations.size(), 1u);
    EXPECT_EQ(operations[0].parts, GpuPick{"mine"});
  }
  state_.UpsertPod(PodBuilder("ns", "a").GpuFraction(300));
  state_.UpsertPod(PodBuilder("ns", "a").GpuFraction(300).On("n", model::PodPhase::kPending));
  EXPECT_EQ(state_.pod(a).gpu_groups, GpuPick{"mine"});
  state_.UpsertPod(
      PodBuilder("ns", "a").GpuFraction(300).On("n").Label(model::kGpuGroupLabel, "other"));
  EXPECT_EQ(state_.pod(a).gpu_groups, GpuPick{"other"});
  state_.AssumeEvicted(a);
  EXPECT_EQ(Whole(), "1000/1000/0");
  state_.ForgetEviction(a);
  EXPECT_EQ(Whole(), "1000/0/0");
  // Its annotation goes: it holds no share any more.
  state_.UpsertPod(PodBuilder("ns", "a").On("n").Label(model::kGpuGroupLabel, "other"));
  EXPECT_EQ(Whole(), "0/0/0");
  state_.UpsertPod(PodBuilder("ns", "a").GpuFraction(300, 2).On("n"));
  EXPECT_EQ(Whole(), "2000/0/0");
}

TEST_F(GpuTest, AReservationPodIsItsGroupsGpu) {
  Node("n", 2);
  const model::Resources all = state_.total_for_queues();
  PodBuilder reservation(model::kReservationNamespace, "r");
  reservation.Gpus(1).Cpu(0).Scheduler("other").On("n").Label(model::kGpuGroupLabel, "g");
  state_.UpsertPod(reservation);
  // Alone it is about to go: its GPU can be waited for.
  EXPECT_EQ(Whole(), "1000/1000/0");
  Runs("a", 300, "g");
  EXPECT_EQ(Whole(), "1000/0/0");
  EXPECT_EQ(N().used[model::kPods], 2);
  // It takes nothing from queues; a share of another scheduler's pod does.
  EXPECT_EQ(state_.total_for_queues(), all);
  state_.UpsertPod(PodBuilder("ns", "b").GpuFraction(300).Scheduler("other").On("n").Label(
      model::kGpuGroupLabel, "g"));
  EXPECT_EQ(state_.total_for_queues()[model::kGpu], 1700);
  EXPECT_EQ(Whole(), "1000/0/0");
  state_.RemovePod("ns", "a", "");
  state_.RemovePod("ns", "b", "");
  state_.RemovePod(model::kReservationNamespace, "r", "");
  EXPECT_EQ(Whole(), "0/0/0");
  EXPECT_EQ(state_.total_for_queues(), all);
  // A pod elsewhere with that label and a GPU is just a pod with a GPU.
  state_.UpsertPod(PodBuilder("ns", "x").Gpus(1).On("n").Label(model::kGpuGroupLabel, "g"));
  EXPECT_TRUE(N().gpu_groups.empty());
}

// What is held for no pod is there for the next one, unless it is promised away already.
TEST_F(GpuTest, AGpuThatOnlyAReservationHoldsIsSharedAtOnce) {
  Node("n", 1);
  PodBuilder reservation(model::kReservationNamespace, "r");
  reservation.Gpus(1).Cpu(0).Scheduler("other").On("n").Label(model::kGpuGroupLabel, "g");
  state_.UpsertPod(reservation);
  const PodId half = Waits(PodBuilder("ns", "half").GpuFraction(500));
  const PodId both = Waits(PodBuilder("ns", "both").GpuFraction(500, 2));
  EXPECT_EQ(Pick(half, GpuCapacity::kNow), "g");
  EXPECT_EQ(Pick(half, GpuCapacity::kFuture), "g");
  EXPECT_EQ(Pick(both, GpuCapacity::kFuture), "-") << "it is one GPU";
  EXPECT_EQ(SharePlaces(N(), state_.class_of(half), GpuCapacity::kNow), 2);

  const PodId whole = Waits(PodBuilder("ns", "whole").Gpus(1));
  {
    Transaction txn(state_);
    txn.Pipeline(whole, N().id);
    EXPECT_EQ(Pick(half, GpuCapacity::kNow), "-") << "promised to another";
    EXPECT_EQ(Pick(half, GpuCapacity::kFuture), "-");
  }
  state_.UpsertPod(reservation.Deleting());
  EXPECT_EQ(Pick(half, GpuCapacity::kNow), "-") << "it goes";
  EXPECT_EQ(Pick(half, GpuCapacity::kFuture), "g!");
  // It does not go: no other reservation pod can take its name, and its GPU is not to be had.
  EXPECT_TRUE(state_.MarkStuck(absl::InfiniteFuture()).capacity);
  EXPECT_EQ(Whole(), "1000/0/0");
  EXPECT_EQ(state_.CheckConsistency(), "");
  EXPECT_EQ(Pick(half, GpuCapacity::kNow), "-");
  EXPECT_EQ(Pick(half, GpuCapacity::kFuture), "-");
  EXPECT_EQ(SharePlaces(N(), state_.class_of(half), GpuCapacity::kNow), 0);
  Runs("sharer", 300, "g");
  EXPECT_EQ(Pick(half, GpuCapacity::kNow), "-") << "only what shares it knows the device";
  EXPECT_EQ(SharePlaces(N(), state_.class_of(half), GpuCapacity::kFuture), 0);
  EXPECT_EQ(state_.CheckConsistency(), "");
}

class GpuLedger final : public StateSubscriber {
 public:
  explicit GpuLedger(const ClusterState& state) : state_(state) {}
  void OnChange(const StateChange& change) override {
    using Kind = StateChange::Kind;
    if (change.kind == Kind::kPodCharged) {
      charged_[change.pod] = state_.GpuChargeOf(state_.pod(change.pod));
      sum_ += charged_[change.pod];
    }
    if (change.kind == Kind::kPodReleased) sum_ -= charged_[change.pod];
    if (change.kind == Kind::kWorkload) ++changed_[state_.workload(change.workload).name];
  }
  [[nodiscard]] int64_t sum() const { return sum_; }
  int changed(const std::string& name) { return changed_[name]; }

 private:
  const ClusterState& state_;
  std::map<PodId, int64_t> charged_;
  std::map<std::string, int> changed_;
  int64_t sum_ = 0;
};

TEST_F(GpuTest, NoPodIsGivenAShareOfAClosedGpu) {
  Node("n", 2);
  Runs("a", 500, "g");
  const PodId pod = Waits(PodBuilder("ns", "b").GpuFraction(500));
  const PodClass& b = state_.class_of(pod);
  const auto pick = [&] {
    return PickGpus(N(), b, state_.pod(pod).uid, GpuCapacity::kNow, GpuOrder::kPack);
  };
  ASSERT_EQ(pick(), GpuPick{"g"});
  EXPECT_EQ(SharePlaces(N(), b, GpuCapacity::kNow), 3);
  const uint64_t version = N().version;
  EXPECT_TRUE(state_.CloseGpuGroup("n", "g", true).capacity);
  EXPECT_GT(N().version, version);
  EXPECT_FALSE(state_.CloseGpuGroup("n", "g", true).Any());
  EXPECT_NE(pick(), GpuPick{"g"}) << "the free one";
  EXPECT_EQ(SharePlaces(N(), b, GpuCapacity::kNow), 2);
  EXPECT_FALSE(JoinsSharedGpu(N(), b));
  // Its row goes and comes.
  state_.UpsertPod(PodBuilder("ns", "whole").Gpus(1).On("n"));
  state_.RemovePod("ns", "a", "");
  Runs("a", 500, "g");
  EXPECT_FALSE(FitsGpus(N(), b, GpuCapacity::kNow));
  EXPECT_FALSE(FitsGpus(N(), b, GpuCapacity::kFuture));
  EXPECT_TRUE(FitsGpus(N(), b, GpuCapacity::kEmpty));
  // All that shares it goes: a free GPU is coming.
  Runs("a", 500, "g", /*ends=*/true);
  EXPECT_TRUE(FitsGpus(N(), b, GpuCapacity::kFuture));
  Runs("c", 500, "g");
  EXPECT_TRUE(state_.CloseGpuGroup("n", "g", false).capacity);
  EXPECT_EQ(SharePlaces(N(), b, GpuCapacity::kFuture), 1);
}

TEST_F(GpuTest, QueuesAreChargedWhatTheNodeMakesOfIt) {
  GpuLedger ledger(state_);
  state_.Subscribe(&ledger);
  const PodId pod = Waits(PodBuilder("ns", "p").GpuMemory(150, 2));
  const PodId fraction = Waits(PodBuilder("ns", "f").GpuFraction(250, 3));
  const auto charge = [&] { return state_.class_of(pod).charge[model::kGpu]; };
  EXPECT_EQ(state_.class_of(fraction).charge[model::kGpu], 750);
  EXPECT_EQ(charge(), 3000);  // no GPU is known: 100 MiB, as KAI
  Node("n", 2, "400");
  EXPECT_EQ(charge(), 760);  // 37.5% is 38% of each
  Node("small", 2, "200");
  EXPECT_EQ(charge(), 1500);
  EXPECT_EQ(state_.class_of(pod).least_gpu_charge, 760);
  const int changes = ledger.changed("p");
  const int of_fraction = ledger.changed("f");
  Node("large", 2, "1000");
  EXPECT_EQ(charge(), 1500);
  EXPECT_EQ(state_.class_of(pod).least_gpu_charge, 300);
  EXPECT_EQ(ledger.changed("p"), changes + 1);
  EXPECT_EQ(ledger.changed("f"), of_fraction);  // fractions are the same everywhere

  Transaction txn(state_);
  txn.Allocate(pod, N().id, {"g", "h"});
  (void)txn.Commit();
  EXPECT_EQ(ledger.sum(), 760);
  EXPECT_EQ(state_.GpuChargeOf(state_.pod(pod)), 760);
  EXPECT_EQ(state_.ChargeOf(state_.pod(pod))[model::kCpu], 1000);
  // The node says something else: everything measured by it is measured again.
  Node("n", 2, "300");
  EXPECT_EQ(ledger.sum(), 1000);
  EXPECT_EQ(N().gpu_groups[0].used_mib, 150);
  state_.RemoveNode("small", "");
  state_.RemoveNode("large", "");
  EXPECT_EQ(charge(), 1000);
  Node("n", 2, "");
  EXPECT_EQ(ledger.sum(), 2000);  // unknown: the whole of each
  EXPECT_EQ(charge(), 3000);
  state_.RemoveNode("n", "");
  EXPECT_EQ(ledger.sum(), 2000);
  EXPECT_EQ(state_.CheckConsistency(), "");
  state_.RemovePod("ns", "p", "");
  EXPECT_EQ(ledger.sum(), 0);
  state_.Unsubscribe(&ledger);
}

TEST_F(GpuTest, MigSlicesAndOtherVendorsCountAsGpusOfTheCluster) {
  model::Node node = MakeNode("m", 2);
  model::Set(node.allocatable, "nvidia.com/mig-1g.10gb", 4);
  model::Set(node.allocatable, "nvidia.com/mig-3g.40gb", 2);
  model::Set(node.allocatable, "amd.com/gpu", 1000);
  state_.UpsertNode(node);
  EXPECT_EQ(state_.total_for_queues()[model::kGpu], 2000 + 4000 + 6000 + 1000);
  PodBuilder mig("ns", "mig");
  model::Pod pod = mig;
  model::Set(pod.spec.requests, "nvidia.com/mig-3g.40gb", 2);
  state_.UpsertPod(pod);
  EXPECT_EQ(state_.class_of(state_.FindPod("ns", "mig")).charge[model::kGpu], 6000);
  // By annotation it takes the same room where it runs.
  model::Pod legacy = PodBuilder("ns", "legacy").On("m");
  legacy.spec.legacy_mig = {{"nvidia.com/mig-1g.10gb", 1}};
  state_.UpsertPod(legacy);
  const auto index = state_.resource_names().Find("nvidia.com/mig-1g.10gb");
  ASSERT_TRUE(index.has_value());
  EXPECT_EQ(N("m").used[*index], 1);
  EXPECT_EQ(state_.class_of(state_.FindPod("ns", "legacy")).charge[model::kGpu], 1000);
  node.unschedulable = true;
  state_.UpsertNode(node);
  EXPECT_TRUE(state_.total_for_queues().IsZero());
  state_.RemoveNode("m", "");
}

class DeviceEntries final : public StateSubscriber {
 public:
  explicit DeviceEntries(ClusterState& state) : state_(state) { state_.Subscribe(this); }
  ~DeviceEntries() override { state_.Unsubscribe(this); }
  void OnChange(const StateChange&) override { ++told; }
  [[nodiscard]] ChangeKinds Kinds() const override { return {StateChange::Kind::kNodeUsage}; }
  int told = 0;

 private:
  ClusterState& state_;
};

TEST_F(GpuTest, ChangesOfGroupsTouchTheNode) {
  Node("n", 2);
  Runs("a", 300, "g");
  const PodId b = Waits(PodBuilder("ns", "b").GpuFraction(300));
  const uint64_t before = N().version;
  DeviceEntries entries(state_);
  Runs("a", 300, "h");
  EXPECT_GT(N().version, before);
  Transaction txn(state_);
  const uint64_t between = N().version;
  txn.Pipeline(b, N().id, {"h"});
  EXPECT_GT(N().version, between);
  EXPECT_GE(entries.told, 2);
}

TEST_F(GpuTest, UpperBoundOfPlacesHoldsAndIsExactForOneDevice) {
  Node("n", 3);
  Runs("a", 500, "g");
  Runs("b", 200, "h", true);
  const PodId p = Waits(PodBuilder("ns", "p").GpuFraction(300));
  const PodClass& pod_class = state_.class_of(p);
  EXPECT_EQ(SharePlaces(N(), pod_class, GpuCapacity::kNow), 1 + 3);
  EXPECT_EQ(SharePlaces(N(), pod_class, GpuCapacity::kFuture), 1 + 6);
  EXPECT_EQ(SharePlaces(N(), pod_class, GpuCapacity::kEmpty), 9);
  EXPECT_EQ(NewGroupsNeeded(N(), pod_class, GpuCapacity::kNow), 0);
  const PodId m = Waits(PodBuilder("ns", "m").GpuFraction(300, 2));
  EXPECT_EQ(NewGroupsNeeded(N(), state_.class_of(m), GpuCapacity::kNow), 1);
  EXPECT_EQ(NewGroupsNeeded(N(), state_.class_of(m), GpuCapacity::kFuture), 0);
}

TEST(GpuTransactionDeathTest, APickMustHaveOneGroupADevice) {
  ClusterState state(OurPods());
  state.UpsertNode(GpuNode("n", 2));
  state.UpsertPod(PodBuilder("ns", "p").GpuFraction(500, 2));
  state.UpsertPod(PodBuilder("ns", "w").Gpus(1));
  Transaction txn(state);
  const NodeId node = state.FindNode("n");
  EXPECT_DEATH(txn.Allocate(state.FindPod("ns", "p"), node, {"g"}), "pod p shares 2 GPUs, not 1");
  EXPECT_DEATH(txn.Pipeline(state.FindPod("ns", "w"), node, {"g"}), "pod w shares 0 GPUs, not 1");
}

// ---- pods that others keep away ---------------------------------------------------------------

model::PodAffinityTerm Against(absl::string_view key, absl::string_view value) {
  model::PodAffinityTerm term;
  term.selector.none = false;
  if (!key.empty()) {
    term.selector.requirements = {
        {std::string(key), model::SelectorOperator::kIn, {std::string(value)}}};
  }
  term.topology_key = model::kHostnameLabel;
  return term;
}

TEST_F(GpuTest, OnlyPodsThatATermSelectsCarryItsLabels) {
  const auto pod = [](absl::string_view name, absl::string_view app) {
    return PodBuilder("ns", name).Label("app", app).Label("unique", name);
  };
  Waits(pod("web1", "web"));
  Waits(pod("web2", "web"));
  Waits(pod("db", "db"));
  const auto spec = [&](absl::string_view name) -> const model::PodSpec& {
    return *state_.class_of(state_.FindPod("ns", name)).spec;
  };
  EXPECT_EQ(&spec("web1"), &spec("db"));  // one class
  model::Pod hater = PodBuilder("ns", "hater").Label("app", "hater");
  hater.spec.pod_anti_affinity = {Against("app", "web")};
  hater.spec.labels_for_affinity = hater.meta.labels;
  EXPECT_TRUE(state_.UpsertPod(hater).workloads);
  EXPECT_TRUE(spec("web1").selected_by_others);
  EXPECT_EQ(spec("web1").labels_for_affinity, (model::StringMap{{"app", "web"}}));
  EXPECT_EQ(&spec("web1"), &spec("web2"));  // labels that no term reads do not divide them
  EXPECT_FALSE(spec("db").selected_by_others);
  // Pods that come later; the same event again changes nothing.
  Waits(pod("web3", "web"));
  EXPECT_EQ(&spec("web1"), &spec("web3"));
  EXPECT_FALSE(state_.UpsertPod(pod("web3", "web")).capacity);
  // Other namespaces are not meant.
  model::Pod foreign = PodBuilder("other", "foreign");
  foreign.spec.pod_anti_affinity = {Against("app", "db")};
  state_.UpsertPod(foreign);
  EXPECT_FALSE(spec("db").selected_by_others);
  foreign.spec.pod_anti_affinity[0].namespaces = {"ns"};
  state_.UpsertPod(foreign);
  EXPECT_TRUE(spec("db").selected_by_others);
  // Preferences select pods, too, and so does affinity.
  Waits(pod("cache", "cache"));
  Waits(pod("proxy", "proxy"));
  EXPECT_FALSE(spec("cache").selected_by_others);
  model::Pod mild = PodBuilder("ns", "mild");
  mild.spec.pod_anti_affinity = {Against("app", "cache")};
  mild.spec.pod_anti_affinity[0].weight = 5;
  mild.spec.pod_affinity = {Against("app", "proxy")};
  state_.UpsertPod(mild);
  EXPECT_TRUE(spec("cache").selected_by_others);
  EXPECT_TRUE(spec("proxy").selected_by_others);
  state_.RemovePod("ns", "mild", "");
  // An empty selector means every pod, also pods without labels.
  Waits(PodBuilder("ns", "bare"));
  EXPECT_FALSE(spec("bare").selected_by_others);
  foreign.spec.pod_anti_affinity.push_back(Against("", ""));
  foreign.spec.pod_anti_affinity[1].namespaces = {"ns"};
  state_.UpsertPod(foreign);
  EXPECT_TRUE(spec("bare").selected_by_others);
  EXPECT_TRUE(spec("bare").labels_for_affinity.empty());
  // A running pod keeps its place through all this, and its groups.
  Node("n", 1);
  Runs("share", 300, "g");
  foreign.spec.pod_anti_affinity[0] = Against("runai-gpu-group", "g");
  foreign.spec.pod_anti_affinity[0].namespaces = {"ns"};
  state_.UpsertPod(foreign);
  EXPECT_EQ(spec("share").labels_for_affinity.Get("runai-gpu-group"), "g");
  EXPECT_EQ(Whole(), "1000/0/0");
  // The last term goes: newcomers are plain again.
  state_.RemovePod("other", "foreign", "");
  state_.RemovePod("ns", "hater", "");
  Waits(pod("web4", "web"));
  EXPECT_FALSE(spec("web4").selected_by_others);
}

}  // namespace
}  // namespace fairlead::state
