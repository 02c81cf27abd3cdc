// Nodes for gangs that a topology binds together, through the whole decision loop: provisioned in
// one domain, pipelined there, and planned again as a whole if one of them is unavailable.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"

namespace fairlead::core::testing {
namespace {

using ::testing::HasSubstr;
using verdict::Code;

constexpr char kRack[] = "example.com/rack";
constexpr char kTwoZones[] = R"(
defaults:
  zones: [z1, z2]
types:
- name: gpu.one
  cpu: 8
  memory: 32Gi
  gpu: {model: Test-GPU, count: 1}
  price: {on_demand: 1.00}
- name: gpu.four
  cpu: 32
  memory: 128Gi
  gpu: {model: Test-GPU, count: 4}
  price: {on_demand: 4.50}
)";

class TopologyPurchaseTest : public DecisionLoopTest {
 protected:
  TopologyPurchaseTest() {
    auto catalog = hook::Catalog::Parse(kTwoZones, "test.yaml");
    EXPECT_TRUE(catalog.ok()) << catalog.status();
    catalog_ = *std::move(catalog);
    Restart();
  }
  void Topology(const std::string& name, const std::vector<std::string>& labels) {
    model::Topology topology;
    topology.meta.name = name;
    for (const std::string& label : labels) topology.levels.push_back({label, ""});
    Put(topology);
  }
  // A gang of `pods` with its PodGroup, everything synced.
  void Gang(int32_t pods, const model::TopologyConstraint& constraint) {
    Topology("t", {model::kZoneLabel, model::kHostnameLabel});
    Topology("racks", {kRack, model::kHostnameLabel});
    Put(MakeQueue("q", "", 16, kUnlimited));
    model::PodGroup group = MakeGroup("ns", "g", "q", pods);
    group.topology = constraint;
    Put(group);
    for (int i = 0; i < pods; ++i) {
      Put(PodBuilder("ns", absl::StrCat("p", i)).Group("g").Queue("q").Gpus(1).Created(i).Build());
    }
    SyncAll();
  }
  static model::NodeRequest Stored(model::NodeRequest request) {
    request.meta.uid = "uid-" + request.meta.name;
    request.meta.creation = At(1);
    return request;
  }
  static std::set<std::string> Zones(const std::vector<model::CreateNodeRequest>& created) {
    std::set<std::string> zones;
    for (const auto& create : created) zones.insert(create.request->zone);
    return zones;
  }
  WaitingRow Row(int64_t at) {
    for (WaitingRow& row : loop_->MakeView(At(at)).waiting) {
      if (row.workload == "ns/g") return row;
    }
    ADD_FAILURE() << "it does not wait";
    return {};
  }
  // The API server shows the created objects; launches are answered as `answer` says.
  void Accept(const StepResult& result) {
    for (const auto& create : Of<model::CreateNodeRequest>(result)) Put(Stored(create.request));
    AnswerAll(result);
  }
};

TEST_F(TopologyPurchaseTest, OneZoneIsBoughtAndPromisedAndNothingIsBoughtTwice) {
  Gang(3, {"t", model::kZoneLabel, ""});
  StepResult result = Step(1);
  const auto created = Of<model::CreateNodeRequest>(result);
  ASSERT_EQ(created.size(), 3u);
  EXPECT_EQ(Zones(created), (std::set<std::string>{"z1"}));
  EXPECT_EQ(Row(1).verdict.code, Code::kNodesRequested);
  EXPECT_EQ(Row(1).verdict.node_requests.size(), 3u);
  Accept(result);
  std::vector<model::LaunchNode> launched;
  for (int at = 2; at < 8; ++at) {
    Put(MakeNode(absl::StrCat("elsewhere", at), 0));  // so that each step decides again
    result = Step(at);
    EXPECT_TRUE(Of<model::CreateNodeRequest>(result).empty()) << "bought twice";
    for (const auto& launch : Of<model::LaunchNode>(result)) launched.push_back(launch);
    AnswerAll(result);
  }
  ASSERT_EQ(launched.size(), 3u);
  // A new process with open orders provisions nothing either.
  Restart();
  for (const auto& create : created) Put(Stored(create.request));
  Gang(3, {"t", model::kZoneLabel, ""});
  EXPECT_TRUE(Of<model::CreateNodeRequest>(Step(9)).empty());
  EXPECT_EQ(Row(9).verdict.code, Code::kNodesRequested);
  // They boot one by one; the gang starts with the last.
  for (size_t i = 0; i < launched.size(); ++i) {
    model::Node node = launched[i].node;
    node.meta.uid = absl::StrCat("uid-node", i);
    node.ready = true;
    Put(node);
    result = Step(10 + static_cast<int64_t>(i));
    AnswerAll(result);
    EXPECT_EQ(Of<model::BindPod>(result).size(), i + 1 == launched.size() ? 3u : 0u);
    EXPECT_TRUE(Of<model::CreateNodeRequest>(result).empty());
  }
}

TEST_F(TopologyPurchaseTest, OneThatCannotBeHadSendsAllOfThemToAnotherZone) {
  Gang(3, {"t", model::kZoneLabel, ""});
  StepResult result = Step(1);
  const auto first = Of<model::CreateNodeRequest>(result);
  ASSERT_EQ(Zones(first), (std::set<std::string>{"z1"}));
  Accept(result);
  // Two are launched, one is refused.
  result = Step(2);
  ASSERT_EQ(Of<model::LaunchNode>(result).size(), 3u);
  bool refused = false;
  for (size_t i = 0; i < result.actions.size(); ++i) {
    const bool launch = std::holds_alternative<model::LaunchNode>(result.actions[i].what);
    Answer(result, i,
           launch && !std::exchange(refused, true) ? absl::ResourceExhaustedError("no capacity")
                                                   : absl::OkStatus());
  }
  std::map<std::string, model::NodeRequest> bought;
  std::set<std::string> terminated;
  absl::Time now = At(3);
  for (int i = 0; i < 40 && now < At(300); ++i) {
    result = StepAt(now);
    for (const auto& create : Of<model::CreateNodeRequest>(result)) {
      EXPECT_TRUE(bought.emplace(create.request->meta.name, create.request).second);
    }
    for (const auto& terminate : Of<model::TerminateNode>(result)) {
      terminated.insert(terminate.request_name);
    }
    Accept(result);
    now = std::max(now + absl::Seconds(1), std::min(result.wake_at, now + absl::Minutes(1)));
  }
  // The more expensive type has not been refused in z1, but z2 has the cheaper one for the whole.
  ASSERT_EQ(bought.size(), 3u) << "all of it anew, and once";
  for (const auto& [name, request] : bought) {
    EXPECT_EQ(request.zone, "z2");
    EXPECT_EQ(request.instance_type, "gpu.one");
    EXPECT_FALSE(terminated.contains(name));
  }
  // The two unneeded nodes in z1 are cancelled before they come.
  for (const auto& create : first) EXPECT_TRUE(terminated.contains(create.request->meta.name));
  EXPECT_EQ(Row(300).verdict.code, Code::kNodesRequested);
}

TEST_F(TopologyPurchaseTest, OneNodeForASetThatHasToShareAHost) {
  Gang(3, {"t", model::kHostnameLabel, ""});
  StepResult result = Step(1);
  const auto created = Of<model::CreateNodeRequest>(result);
  ASSERT_EQ(created.size(), 1u);
  EXPECT_EQ(created[0].request->instance_type, "gpu.four");
  Accept(result);
  Put(MakeNode("elsewhere", 0));
  EXPECT_TRUE(Of<model::CreateNodeRequest>(Step(2)).empty());
  EXPECT_EQ(Row(2).verdict.code, Code::kNodesRequested);
}

TEST_F(TopologyPurchaseTest, TooManyForOneHostIsSaidWithNumbers) {
  Gang(5, {"t", model::kHostnameLabel, ""});
  EXPECT_TRUE(Of<model::CreateNodeRequest>(Step(1)).empty());
  EXPECT_EQ(Row(1).verdict.code, Code::kNoInstanceTypeFits);
  EXPECT_THAT(Row(1).message,
              HasSubstr("5 pods have to share a node, the largest that may be bought holds 4"));
}

TEST_F(TopologyPurchaseTest, LevelThatIsUnknownUntilAPoolSaysIt) {
  Gang(2, {"racks", kRack, ""});
  EXPECT_TRUE(Of<model::CreateNodeRequest>(Step(1)).empty());
  EXPECT_EQ(Row(1).verdict.code, Code::kTopologyInfeasible);
  EXPECT_THAT(Row(1).message, HasSubstr("set example.com/rack in spec.labels of a NodePool"));
  EXPECT_TRUE(Of<model::CreateNodeRequest>(Step(2)).empty());
  model::NodePool pool;
  pool.meta.name = "rack-1";
  pool.labels.Set(kRack, "r1");
  Put(pool);
  StepResult result = Step(3);
  ASSERT_EQ(Of<model::CreateNodeRequest>(result).size(), 2u);
  EXPECT_EQ(Of<model::CreateNodeRequest>(result)[0].request->pool, "rack-1");
  EXPECT_EQ(Row(3).verdict.code, Code::kNodesRequested);
  Accept(result);
  Put(MakeNode("elsewhere", 0));
  EXPECT_TRUE(Of<model::CreateNodeRequest>(Step(4)).empty());
  // The pool goes: ordered nodes stay as they were ordered.
  loop_->Apply(model::Delete{model::Kind::kNodePool, "", "rack-1", ""});
  EXPECT_TRUE(Of<model::CreateNodeRequest>(Step(5)).empty());
  EXPECT_EQ(Row(5).verdict.code, Code::kNodesRequested);
}

TEST_F(TopologyPurchaseTest, RunningPodsKeepTheOthersInTheirZone) {
  model::Node node = MakeNode("old", 2);
  node.meta.labels.Set(model::kZoneLabel, "z2");
  Put(node);
  Gang(2, {"t", model::kZoneLabel, ""});
  StepResult result = Step(1);
  EXPECT_EQ(Of<model::BindPod>(result).size(), 2u);
  AnswerAll(result);
  for (int i = 2; i < 4; ++i) {
    Put(PodBuilder("ns", absl::StrCat("p", i)).Group("g").Queue("q").Gpus(1).Created(i).Build());
  }
  result = Step(2);
  const auto created = Of<model::CreateNodeRequest>(result);
  ASSERT_EQ(created.size(), 2u);
  EXPECT_EQ(Zones(created), (std::set<std::string>{"z2"}));
  EXPECT_EQ(Row(2).verdict.code, Code::kNodesRequested);
}

}  // namespace
}  // namespace fairlead::core::testing
