// A gang starts in a domain that has idle capacity, rather than to wait for a node on order in
// another one that comes first by the order of domains.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"

namespace fairlead::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TopologyStartTest : public ::testing::Test {
 protected:
  TopologyStartTest() {
    cluster_.Queue("q", 100);
    model::Topology topology;
    topology.meta.name = "t";
    topology.levels = {{model::kZoneLabel, "zone"}, {model::kHostnameLabel, "host"}};
    cluster_.state().UpsertTopology(topology);
  }
  static model::Node MakeNode(const std::string& name, const char* zone, int64_t gpus) {
    model::Node node = model::testing::MakeNode(name, gpus);
    node.meta.labels.Set(model::kHostnameLabel, name);
    node.meta.labels.Set(model::kZoneLabel, zone);
    return node;
  }
  void Present(const std::string& name, const char* zone, int64_t gpus) {
    cluster_.state().UpsertNode(MakeNode(name, zone, gpus));
  }
  void Order(const std::string& name, const char* zone, int64_t gpus,
             const std::vector<std::string>& ordered_for) {
    cluster_.state().UpsertOrderedNode(MakeNode(name, zone, gpus), name, ordered_for);
  }
  // A gang of two pods, which needs `min_member` of them to start.
  void Gang(int32_t min_member, const model::TopologyConstraint& constraint) {
    model::PodGroup group = model::testing::MakeGroup("ns", "g", "q", min_member);
    group.topology = constraint;
    cluster_.Group(group);
    for (int i = 0; i < 2; ++i) cluster_.Pod(testing::Member(absl::StrCat("g-", i), "g"));
  }

  testing::Cluster cluster_;
};

// Zone a is the fullest: what comes there is as much as one pod needs.
TEST_F(TopologyStartTest, NodeOnOrderForAnotherIsNotWaitedFor) {
  Present("n1", "b", 2);
  Order("o1", "a", 1, {"ns/other"});
  Gang(1, {"t", "zone", ""});
  cluster_.Run();
  EXPECT_THAT(cluster_.Bound(), ElementsAre("g-0>n1", "g-1>n1"));
  EXPECT_THAT(cluster_.Promised(), IsEmpty());
}

TEST_F(TopologyStartTest, NorIsOneInThePreferredDomain) {
  Present("n1", "b", 1);
  Present("n2", "b", 1);
  Order("o1", "b", 2, {"ns/other"});
  Gang(2, {"t", "zone", "host"});
  cluster_.Run();
  EXPECT_THAT(cluster_.Bound(), ElementsAre("g-0>n2", "g-1>n1"));
}

TEST_F(TopologyStartTest, ItIsIfNoDomainHasRoom) {
  Present("n1", "b", 1);
  Order("o1", "a", 2, {"ns/other"});
  Gang(2, {"t", "zone", ""});
  cluster_.Run();
  EXPECT_THAT(cluster_.Bound(), IsEmpty());
  EXPECT_THAT(cluster_.Promised(), ElementsAre("g-0>o1", "g-1>o1"));
}

}  // namespace
}  // namespace fairlead::engine
