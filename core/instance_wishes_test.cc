// What pods say about their machines, through the whole decision loop: on nodes that there are, for
// nodes that are provisioned, and what becomes of a pod that says it wrong.
#include <map>
#include <string>

#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"
#include "kube/codec/codec.h"
#include "scheduler/model/api_names.h"

namespace fairlead::core::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kModels[] = R"(
types:
- name: p5.4xlarge
  cpu: 16
  memory: 64Gi
  gpu: {model: NVIDIA-H100-80GB-HBM3, count: 1, memory_mib: 81559}
  zones: [z1]
  price: {on_demand: 7.00}
- name: p4d.large
  cpu: 16
  memory: 64Gi
  gpu: {model: NVIDIA-A100-SXM4-40GB, count: 1, memory_mib: 40960}
  zones: [z1]
  price: {on_demand: 4.00}
- name: g6.xlarge
  cpu: 16
  memory: 64Gi
  gpu: {model: NVIDIA-L4, count: 1, memory_mib: 23034}
  zones: [z1]
  price: {on_demand: 1.00}
)";

class InstanceWishesLoopTest : public DecisionLoopTest {
 protected:
  InstanceWishesLoopTest() {
    auto models = hook::Catalog::Parse(kModels, "models.yaml");
    EXPECT_TRUE(models.ok()) << models.status();
    catalog_ = *std::move(models);
    Restart();
    SyncAll();
    Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  }
  // As a decoder makes it.
  static model::Pod Pod(const std::string& name, const std::string& annotations) {
    const auto read = kube::DecodeManifests(absl::StrCat(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: ", name, "\n  namespace: ns\n  uid: uid-",
        name, "\n  labels: {kai.scheduler/queue: q}\n  annotations: ", annotations,
        "\nspec:\n  schedulerName: fairlead\n  containers:\n  - name: c\n    image: i\n"
        "    resources: {requests: {cpu: '1'}, limits: {nvidia.com/gpu: '1'}}\n"));
    EXPECT_TRUE(read.ok()) << read.status();
    if (!read.ok() || read->objects.size() != 1) return {};
    return std::get<model::Pod>(read->objects[0]);
  }
  static std::vector<std::string> Ordered(const StepResult& result) {
    std::vector<std::string> types;
    for (const auto& create : Of<model::CreateNodeRequest>(result)) {
      types.push_back(create.request->instance_type);
    }
    return types;
  }
  // The message of the verdict that is written about the pod; "" if none is.
  static std::string Told(const StepResult& result, const std::string& pod) {
    for (const auto& write : Of<model::SetPodUnschedulable>(result)) {
      if (write.name == pod) return absl::StrCat(write.reason, ": ", write.verdict_json);
    }
    return "";
  }
  static model::Node Machine(const std::string& name, const std::string& type,
                             const std::string& product) {
    model::Node node = MakeNode(name, 1);
    node.meta.labels.Set(model::kInstanceTypeLabel, type);
    node.meta.labels.Set(model::kGpuProductLabel, product);
    return node;
  }
};

TEST_F(InstanceWishesLoopTest, ThePodGoesWhereItWishesAndTheHookBuysWhatItWishes) {
  Put(Machine("t4", "g4dn.xlarge", "Tesla-T4"));
  Put(Pod("p", "{node.elotl.co/instance-gpu-skus: 'H100,A100'}"));
  const StepResult result = Step(1);
  EXPECT_THAT(BoundIn(result), IsEmpty());
  EXPECT_THAT(Ordered(result), ElementsAre("p5.4xlarge"));
  EXPECT_THAT(Told(result, "p"), HasSubstr("NodesRequested"));
}

// Pods whose places depend on each other are planned apart from the others (plan_bonds.h).
TEST_F(InstanceWishesLoopTest, PodsThatSpreadGetTheirModelsInOrderToo) {
  const auto spread = [](const std::string& name, const std::string& annotations) {
    model::Pod pod = Pod(name, annotations);
    model::TopologySpreadConstraint constraint;
    constraint.topology_key = model::kHostnameLabel;
    constraint.selector.none = false;
    pod.spec.topology_spread = {constraint};
    pod.spec.labels_for_affinity = pod.meta.labels;
    return pod;
  };
  Put(spread("order", "{fairlead.dev/instance-gpu-skus: 'H100,A100,L4'}"));
  EXPECT_THAT(Ordered(Step(1)), ElementsAre("p5.4xlarge"));
  // Behind the first, for which a node is ordered.
  Put(spread("z-cheaper",
             "{fairlead.dev/instance-gpu-skus: 'H100,A100,L4', "
             "fairlead.dev/instance-max-cost: '5'}"));
  EXPECT_THAT(Ordered(Step(2)), ElementsAre("p4d.large"));
}

// A node that is there costs nothing more, whatever its place in the list.
TEST_F(InstanceWishesLoopTest, AFreeNodeOfALaterModelIsUsed) {
  Put(Machine("a100", "p4d.large", "NVIDIA-A100-SXM4-40GB"));
  Put(Pod("p", "{fairlead.dev/instance-gpu-skus: 'H100,A100'}"));
  const StepResult result = Step(1);
  EXPECT_THAT(BoundIn(result), ElementsAre("p"));
  EXPECT_THAT(Ordered(result), IsEmpty());
}

TEST_F(InstanceWishesLoopTest, AfterAStockOutTheNextModelIsBought) {
  Put(Pod("p", "{fairlead.dev/instance-gpu-skus: 'H100,L4'}"));
  StepResult result = Step(1);
  ASSERT_THAT(Ordered(result), ElementsAre("p5.4xlarge"));
  AnswerAll(result);
  model::NodeRequest request = *Of<model::CreateNodeRequest>(result)[0].request;
  request.meta.uid = "uid-request";
  request.meta.creation = At(1);
  Put(request);
  result = Step(2);
  ASSERT_THAT(Of<model::LaunchNode>(result), SizeIs(1));
  AnswerThe<model::LaunchNode>(result, absl::ResourceExhaustedError("no H100 left"));
  for (int at = 3; at < 10 && Of<model::CreateNodeRequest>(result).empty(); ++at) {
    result = Step(at);
    AnswerAll(result);
    for (const auto& update : Of<model::UpdateNodeRequestStatus>(result)) Put(*update.request);
  }
  EXPECT_THAT(Ordered(result), ElementsAre("g6.xlarge"));
  EXPECT_THAT(Told(result, "p"), HasSubstr("GPU model L4 is provisioned instead of H100 (in "
                                           "backoff after Stockout of p5.4xlarge)"));
}

TEST_F(InstanceWishesLoopTest, AMaximumCostBelowEveryPriceBuysNothingAndSaysSo) {
  Put(Pod("p", "{node.elotl.co/instance-max-cost: '0.50'}"));
  const StepResult result = Step(1);
  EXPECT_THAT(Ordered(result), IsEmpty());
  EXPECT_THAT(Told(result, "p"), HasSubstr("NoInstanceTypeFits"));
  EXPECT_THAT(Told(result, "p"), HasSubstr("g6.xlarge) costs $1.00 an hour"));
}

// Nothing is bought for the pod or placed, it says which field is wrong, and other pods get theirs.
TEST_F(InstanceWishesLoopTest, AWrongAnnotationIsAnInvalidRequestAndHarmsNothingElse) {
  Put(MakeNode("free", 1));
  Put(Pod("wrong", "{node.elotl.co/instance-type-regexp: 'p5('}"));
  Put(Pod("both", "{fairlead.dev/instance-max-gpus: '1', node.elotl.co/instance-max-gpus: '2'}"));
  Put(Pod("price", "{fairlead.dev/instance-max-cost: 'cheap'}"));
  Put(Pod("good", "{}"));
  Put(Pod("better", "{fairlead.dev/instance-family-inclusions: g6}"));
  const StepResult result = Step(1);
  EXPECT_THAT(BoundIn(result), ElementsAre("good"));
  EXPECT_THAT(Ordered(result), ElementsAre("g6.xlarge"));
  EXPECT_THAT(Told(result, "wrong"),
              HasSubstr("metadata.annotations[node.elotl.co/instance-type-regexp]"));
  EXPECT_THAT(Told(result, "wrong"), HasSubstr("InvalidRequest"));
  EXPECT_THAT(Told(result, "both"),
              HasSubstr("metadata.annotations[fairlead.dev/instance-max-gpus]: contradicts "
                        "node.elotl.co/instance-max-gpus"));
  EXPECT_THAT(Told(result, "price"), HasSubstr("must be dollars per hour"));
}

// The annotation of a pod that runs goes wrong: it runs on, and its node stays.
TEST_F(InstanceWishesLoopTest, APodThatRunsIsNotTouchedByAWrongAnnotation) {
  Put(Machine("l4", "g6.xlarge", "NVIDIA-L4"));
  model::Pod pod = Pod("p", "{fairlead.dev/instance-gpu-skus: L4}");
  pod.node_name = "l4";
  pod.phase = model::PodPhase::kRunning;
  Put(pod);
  Step(1);
  model::Pod wrong = Pod("p", "{fairlead.dev/instance-gpu-skus: ''}");
  EXPECT_NE(wrong.invalid, "");
  wrong.node_name = "l4";
  wrong.phase = model::PodPhase::kRunning;
  Put(wrong);
  for (int at = 2; at < 1000; at += 100) {
    const StepResult result = Step(at);
    EXPECT_THAT(result.actions, IsEmpty());
  }
}

TEST_F(InstanceWishesLoopTest, ACorrectedAnnotationIsServed) {
  Put(Pod("p", "{fairlead.dev/instance-gpu-skus: 'L4,,'}"));
  EXPECT_THAT(Ordered(Step(1)), IsEmpty());
  Put(Pod("p", "{fairlead.dev/instance-gpu-skus: 'L4'}"));
  EXPECT_THAT(Ordered(Step(2)), ElementsAre("g6.xlarge"));
}

}  // namespace
}  // namespace fairlead::core::testing
