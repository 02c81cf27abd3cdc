// Hard topology spread beside pods that the engine has evicted and that run on: their evictions
// wait for the pace (evictions.perSecond), for an answer, or are refused in the end.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"
#include "scheduler/model/testing/affinity_builders.h"

namespace fairlead::engine {
namespace {

using model::testing::PodBuilder;
using testing::Cluster;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Job;
using testing::Member;
using testing::PreemptibleGroup;

constexpr char kZone[] = "topology.kubernetes.io/zone";

void ZonedNode(Cluster& c, absl::string_view name, int64_t gpus) {
  model::Node node = model::testing::MakeNode(name, gpus);
  node.meta.labels.Set(kZone, absl::StrCat("zone-", name.substr(0, 1)));
  c.state().UpsertNode(node);
}

model::Pod Spread(model::Pod pod) {
  pod.meta.labels.Set("app", "web");
  model::TopologySpreadConstraint constraint;
  constraint.topology_key = kZone;
  constraint.max_skew = 1;
  constraint.selector = model::testing::AppSelector("web");
  pod.spec.topology_spread = {constraint};
  pod.spec.labels_for_affinity = pod.meta.labels;
  return pod;
}

class SpreadTest : public ::testing::Test {
 protected:
  // Node a1 is full of `victims` pods of app web, which a pod of higher priority has evicted.
  void EvictOnA1(int64_t victims) {
    c_.Queue("q", 100);
    ZonedNode(c_, "a1", victims);
    for (int64_t i = 0; i < victims; ++i) c_.Pod(Victim(i));
    c_.Pod(Job("high", "q", victims, 9)
               .Priority("high", 60)
               .NodeSelector(model::kHostnameLabel, "a1"));
    c_.Run();
    ASSERT_EQ(c_.Evicted().size(), static_cast<size_t>(victims));
  }
  // Adds a pod that spreads, while the only pod on a1 is evicted. The pod has a place on a2, in the
  // victim's zone, and `gpus_on_b1` places in the other zone.
  void AddBesideAVictim(int64_t gpus_on_b1, const model::Pod& pod = Job("new", "q", 1, 10)) {
    EvictOnA1(1);
    ZonedNode(c_, "a2", 1);
    ZonedNode(c_, "b1", gpus_on_b1);
    c_.Pod(Spread(pod));
    c_.Run(101);
  }
  static PodBuilder Victim(int64_t number) {
    return Job(absl::StrCat("old-", number), "q", 1, number)
        .Label("app", "web")
        .Priority("low", 10)
        .On("a1");
  }

  Cluster c_;
};

TEST_F(SpreadTest, APodWaitsForAVictimInItsDomain) {
  AddBesideAVictim(0);
  EXPECT_THAT(c_.Bound(), IsEmpty()) << "zone-a has a pod more than zone-b";
  EXPECT_THAT(c_.Promised(), ElementsAre("high>a1", "new>a2"));

  c_.Pod(Victim(0).Deleting());
  c_.Run(102);
  EXPECT_THAT(c_.Bound(), ElementsAre("new>a2")) << "pods that terminate do not count";
}

TEST_F(SpreadTest, APodStartsBesideNoVictim) {
  AddBesideAVictim(1);
  EXPECT_THAT(c_.Bound(), ElementsAre("new>b1"));
}

TEST_F(SpreadTest, AVictimThatRunsOnHoldsThePodBack) {
  AddBesideAVictim(0, Job("new", "q", 1, 10).Priority("low", 10));
  c_.state().ForgetEviction(c_.state().FindPod("ns", "old-0"));
  c_.state().RemovePod("ns", "high", "");
  c_.Run(102);
  EXPECT_THAT(c_.Bound(), IsEmpty());
  EXPECT_THAT(c_.Promised(), IsEmpty());
  EXPECT_THAT(c_.Evicted(), IsEmpty());
}

// The victims leave a zone where a pod less is than there will be, not one more than there is.
TEST_F(SpreadTest, APodThatOnlyVictimsPermitDoesNotStart) {
  EvictOnA1(1);
  ZonedNode(c_, "b1", 2);
  c_.Pod(Job("other", "q", 1, 8).Label("app", "web").On("b1"));
  c_.Pod(Spread(Job("new", "q", 1, 10)));
  c_.Run(101);
  EXPECT_THAT(c_.Bound(), IsEmpty()) << "zone-a will have none";
}

TEST_F(SpreadTest, AGangWaitsAsAWhole) {
  EvictOnA1(2);
  ZonedNode(c_, "a2", 1);
  ZonedNode(c_, "b1", 1);
  c_.Group(PreemptibleGroup("gang", "q", 2, 10));
  for (int i = 0; i < 2; ++i) c_.Pod(Spread(Member(absl::StrCat("gang-", i), "gang")));
  c_.Run(101);
  EXPECT_THAT(c_.Bound(), IsEmpty());
  EXPECT_THAT(c_.Promised(), ElementsAre("gang-0>b1", "gang-1>a2", "high>a1"));

  c_.Pod(Victim(0).Deleting());
  c_.Run(102);
  EXPECT_THAT(c_.Bound(), ElementsAre("gang-0>b1", "gang-1>a2"));
}

// The other way round: what victims leave is found by a search.
TEST_F(SpreadTest, AVictimLeavesItsPlaceInTheSpreadToWhatItIsEvictedFor) {
  c_.Queue("q", 100);
  ZonedNode(c_, "a1", 1);
  ZonedNode(c_, "b1", 0);
  c_.Pod(Victim(0));
  c_.Pod(Spread(Job("new", "q", 1, 10).Priority("high", 60)));
  c_.Run();
  EXPECT_THAT(c_.Evicted(), ElementsAre("preempt:old-0"));
  EXPECT_THAT(c_.Promised(), ElementsAre("new>a1"));
}

}  // namespace
}  // namespace fairlead::engine
