// CapacityBuffers and ProvisioningRequests through the whole decision loop, with an API server and
// a cloud around it.
#include "core/capacity_objects.h"

#include <gmock/gmock.h>

#include "core/machines_testing.h"
#include "scheduler/model/provisioning_group.h"

namespace fairlead::core::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kCheck[] = "check-capacity.autoscaling.x-k8s.io";
constexpr char kAtomic[] = "best-effort-atomic-scale-up.autoscaling.x-k8s.io";

class CapacityObjectsTest : public MachinesTest {
 protected:
  void SetUp() override {
    MachinesTest::SetUp();
    BeginAnew();
  }
  // The cloud sells nodes with 4 GPUs.
  void BeginAnew() {
    Restart();
    Begin();
    model::NodePool pool;
    pool.meta.name = "p";
    pool.meta.uid = "pool";
    pool.instance_types = {"gpu.large"};
    pool.ready_condition = {"Ready", "True", "InForce", "nodes are provisioned from it", 0, {}};
    Put(pool);
  }
  void PutTemplate(const std::string& name, int64_t gpus = 1) {
    model::PodTemplate object;
    object.meta.ns = "ns";
    object.meta.name = name;
    object.meta.uid = "template-" + name;
    object.meta.generation = 4;
    object.pod = PodBuilder("ns", "").Gpus(gpus).Build();
    object.pod.meta.name.clear();
    templates_[name] = object;
    Put(object);
  }
  void PutBuffer(const std::string& name, std::optional<int64_t> replicas,
                 const model::ResourceList& limits = {}) {
    model::CapacityBuffer& buffer = buffers_[name];
    buffer.meta.ns = "ns";
    buffer.meta.name = name;
    buffer.meta.uid = "buffer-" + name;
    ++buffer.meta.generation;
    buffer.pod_template = "t";
    buffer.replicas = replicas;
    buffer.limits = limits;
    Put(buffer);
  }
  model::ProvisioningRequest Request(const std::string& name, const char* class_name,
                                     int64_t pods) {
    model::ProvisioningRequest request;
    request.meta.ns = "ns";
    request.meta.name = name;
    request.meta.uid = "request-" + name;
    request.meta.generation = 1;
    request.meta.creation = now_;
    request.class_name = class_name;
    request.pod_sets = {{"t", pods}};
    return request;
  }
  void PutRequest(const model::ProvisioningRequest& request) {
    provisioning_[request.meta.name] = request;
    Put(request);
  }
  // As an API server would, and with the time.
  void Note(const StepResult& result) override {
    for (const auto& write : Of<model::SetConditions>(result)) {
      ++writes_;
      if (refuse_pool_status_) continue;
      std::vector<model::Condition> conditions = write.conditions;
      for (model::Condition& each : conditions) {
        if (!each.since.has_value()) each.since = now_;
      }
      if (write.kind == model::Kind::kCapacityBuffer) {
        model::CapacityBuffer& buffer = buffers_.at(write.name);
        buffer.conditions = conditions;
        if (write.buffer.has_value()) {
          buffer.resolved_template = write.buffer->pod_template;
          buffer.resolved_generation = write.buffer->pod_template_generation;
          buffer.resolved_replicas = write.buffer->replicas;
        }
        shown_.push_back([this, buffer] { Put(buffer); });
      } else {
        model::ProvisioningRequest& request = provisioning_.at(write.name);
        request.conditions = conditions;
        shown_.push_back([this, request] { Put(request); });
      }
    }
  }
  // Play, with the watch of what was written behind each step.
  void Run(absl::Duration how_long) {
    for (const absl::Time end = now_ + how_long; now_ < end;) {
      Play(absl::Seconds(5));
      for (const auto& show : std::exchange(shown_, {})) show();
    }
  }
  static std::string Said(const std::vector<model::Condition>& conditions, const char* type) {
    for (const model::Condition& each : conditions) {
      if (each.type == type) return absl::StrCat(each.status, " ", each.reason, ": ", each.message);
    }
    return "";
  }
  std::string OfBuffer(const char* type) { return Said(buffers_.at("b").conditions, type); }
  std::string OfRequest(const char* type) { return Said(provisioning_.at("r").conditions, type); }

  std::map<std::string, model::PodTemplate> templates_;
  std::map<std::string, model::CapacityBuffer> buffers_;
  std::map<std::string, model::ProvisioningRequest> provisioning_;
  std::vector<std::function<void()>> shown_;
  int writes_ = 0;
};

TEST_F(CapacityObjectsTest, ABufferIsBoughtKeptAndFilledAgain) {
  PutTemplate("t");
  PutBuffer("b", 3);
  Run(absl::Seconds(10));
  EXPECT_EQ(created_, 1);
  EXPECT_EQ(requests_.begin()->second.reason_workloads,
            std::vector<std::string>{"CapacityBuffer ns/b"});
  EXPECT_THAT(OfBuffer("ReadyForProvisioning"), HasSubstr("True Resolved"));
  EXPECT_EQ(OfBuffer("Provisioning"), "True NodesRequested: nodes are on their way");
  EXPECT_EQ(buffers_.at("b").resolved_replicas, 3);
  EXPECT_EQ(buffers_.at("b").resolved_generation, 4);
  // No pod is on it, and it stays.
  Run(absl::Minutes(30));
  EXPECT_EQ(created_, 1);
  EXPECT_EQ(terminated_, 0);
  EXPECT_EQ(OfBuffer("Provisioning"),
            "True CapacityProvisioned: there is room for all of its pods");
  // Two pods find room at once, and take one place of the buffer: it is bought again.
  for (int i = 0; i < 2; ++i) AddPod(GpuPod(absl::StrCat("p", i)));
  Run(absl::Seconds(10));
  EXPECT_EQ(bound_.size(), 2u);
  EXPECT_EQ(created_, 2);
  Run(absl::Minutes(5));
  EXPECT_EQ(created_, 2);
  const int writes = writes_;
  Run(absl::Minutes(5));
  EXPECT_EQ(writes_, writes);
  // The pods end: one node is enough. Then the buffer goes, and so does the node.
  for (int i = 0; i < 2; ++i) EndPod(absl::StrCat("p", i));
  Run(absl::Minutes(20));
  EXPECT_EQ(terminated_, 1);
  loop_->Apply(model::Delete{model::Kind::kCapacityBuffer, "ns", "b", "buffer-b"});
  Run(absl::Minutes(20));
  EXPECT_EQ(terminated_, 2);
  EXPECT_EQ(created_, 2);
}

TEST_F(CapacityObjectsTest, PodsThatWaitComeFirst) {
  PutTemplate("t");
  PutBuffer("b", 4);
  for (int i = 0; i < 4; ++i) AddPod(GpuPod(absl::StrCat("p", i)));
  Run(absl::Minutes(5));
  EXPECT_EQ(bound_.size(), 4u);
  EXPECT_EQ(created_, 2);
}

// Its pods could run in the buffer's room; then the buffer would have to be bought again.
TEST_F(CapacityObjectsTest, NoNodeIsEmptiedIntoTheRoomOfABuffer) {
  options_.hook.disruption.consolidation = model::ConsolidationPolicy::kWhenEmptyOrUnderutilized;
  options_.engine.reclaim = options_.engine.consolidation = false;  // nothing else evicts
  BeginAnew();
  model::Pod pod = GpuPod("p");
  model::OwnerReference owner;
  owner.kind = "ReplicaSet";
  owner.name = owner.uid = "owner";
  owner.controller = true;
  pod.meta.owners.push_back(owner);
  AddPod(pod);
  Run(absl::Minutes(5));
  ASSERT_EQ(bound_.count("p"), 1u);
  nodes_["static"] = MakeNode("static", 4);
  Put(nodes_["static"]);
  PutTemplate("t", 4);
  PutBuffer("b", 1);
  Run(absl::Hours(2));
  EXPECT_THAT(evicted_, IsEmpty());
  EXPECT_EQ(created_, 1);
  loop_->Apply(model::Delete{model::Kind::kCapacityBuffer, "ns", "b", "buffer-b"});
  Run(absl::Minutes(30));
  EXPECT_EQ(evicted_.size(), 1u) << "without it, it is";
}

TEST_F(CapacityObjectsTest, LimitsAndReplicasBoundTheNumber) {
  PutTemplate("t");
  PutBuffer("b", std::nullopt, {{"nvidia.com/gpu", 2500}});
  Run(absl::Seconds(10));
  EXPECT_EQ(buffers_.at("b").resolved_replicas, 2);
  PutBuffer("b", 1, {{"nvidia.com/gpu", 2500}});
  Run(absl::Seconds(10));
  EXPECT_EQ(buffers_.at("b").resolved_replicas, 1);
  PutBuffer("b", std::nullopt, {{"example.com/other", 5}});
  Run(absl::Seconds(10));
  EXPECT_THAT(OfBuffer("ReadyForProvisioning"),
              HasSubstr("False Refused: spec.limits: the template requests none"));
  EXPECT_EQ(OfBuffer("Provisioning"), "");
  PutBuffer("b", std::nullopt, {{"nvidia.com/gpu", int64_t{1} << 62}});
  Run(absl::Seconds(10));
  EXPECT_THAT(OfBuffer("ReadyForProvisioning"), HasSubstr("at most 10000 are kept room for"));
  EXPECT_EQ(created_, 1);
}

TEST_F(CapacityObjectsTest, WhatIsWrongIsSaidAndBuysNothing) {
  PutBuffer("b", 1);
  Run(absl::Seconds(10));
  EXPECT_EQ(OfBuffer("ReadyForProvisioning"),
            "False Refused: spec.podTemplateRef.name: there is no PodTemplate ns/t");
  PutTemplate("t");
  templates_["t"].pod.invalid = "template.spec: is wrong";
  Put(templates_["t"]);
  Run(absl::Seconds(10));
  EXPECT_THAT(OfBuffer("ReadyForProvisioning"), HasSubstr("PodTemplate ns/t: template.spec: is"));
  templates_["t"].pod.invalid.clear();
  templates_["t"].pod.spec.claim_templates.emplace_back("t");
  Put(templates_["t"]);
  Run(absl::Seconds(10));
  EXPECT_THAT(OfBuffer("ReadyForProvisioning"), HasSubstr("pods with claims"));
  buffers_["b"].invalid = "spec.replicas: is wrong";
  PutBuffer("b", 1);
  Run(absl::Seconds(10));
  EXPECT_EQ(OfBuffer("ReadyForProvisioning"), "False Refused: spec.replicas: is wrong");
  EXPECT_EQ(created_, 0);
}

TEST_F(CapacityObjectsTest, OtherStrategiesAndClassesAreLeftAlone) {
  PutTemplate("t");
  buffers_["b"].strategy = "buffer.gke.io/standby-capacity";
  PutBuffer("b", 1);
  PutRequest(Request("r", "queued-provisioning.gke.io", 1));
  Run(absl::Minutes(1));
  EXPECT_EQ(created_, 0);
  EXPECT_EQ(writes_, 0);
}

// What the provider provisioning-request has made is a question to another autoscaler: both marks
// say so, and one alone does not.
TEST_F(CapacityObjectsTest, RequestsOfOurOwnProviderAreLeftAlone) {
  PutTemplate("t");
  model::ProvisioningRequest request = Request("r", kAtomic, 1);
  request.meta.labels.Set(model::kMadeByLabel, model::kProvisioningRequestProvider);
  request.meta.owners.push_back({"fairlead.dev/v1alpha1", "NodeRequest", "fl-1", "u-1"});
  PutRequest(request);
  Run(absl::Minutes(1));
  EXPECT_EQ(created_, 0);
  EXPECT_EQ(writes_, 0);
  request = Request("label-alone", kAtomic, 1);
  request.meta.labels.Set(model::kMadeByLabel, model::kProvisioningRequestProvider);
  PutRequest(request);
  Run(absl::Minutes(1));
  EXPECT_EQ(created_, 1);
  EXPECT_GT(writes_, 0);
}

TEST_F(CapacityObjectsTest, ConditionsOfOthersStay) {
  PutTemplate("t");
  buffers_["b"].conditions = {{"LimitedByQuotas", "False", "Fine", "it is", 1, At(0)}};
  PutBuffer("b", 1);
  Run(absl::Minutes(3));
  EXPECT_EQ(OfBuffer("LimitedByQuotas"), "False Fine: it is");
  EXPECT_THAT(OfBuffer("Provisioning"), HasSubstr("True"));
}

TEST_F(CapacityObjectsTest, AScalableNeedsAControllerThatResolvesIt) {
  PutTemplate("t");
  buffers_["b"].by_scalable = true;
  PutBuffer("b", std::nullopt);
  buffers_["b"].pod_template.clear();
  Put(buffers_["b"]);
  Run(absl::Seconds(10));
  EXPECT_THAT(OfBuffer("ReadyForProvisioning"),
              HasSubstr("False Refused: spec.scalableRef: no controller has written"));
  EXPECT_EQ(created_, 0);
  buffers_["b"].resolved_template = "t";
  buffers_["b"].resolved_replicas = 5;
  Put(buffers_["b"]);
  Run(absl::Minutes(3));
  EXPECT_EQ(created_, 2);
  EXPECT_EQ(buffers_["b"].resolved_replicas, 5);  // is not ours to write
}

TEST_F(CapacityObjectsTest, ACapIsSaid) {
  options_.hook.cluster_gpu_limit = 0;
  BeginAnew();
  PutTemplate("t");
  PutBuffer("b", 1);
  Run(absl::Minutes(1));
  EXPECT_EQ(created_, 0);
  EXPECT_THAT(OfBuffer("Provisioning"),
              AllOf(HasSubstr("False GpuCapReached"), HasSubstr("no room for all of its pods: ")));
}

TEST_F(CapacityObjectsTest, RefusedWritesAreRepeated) {
  PutTemplate("t");
  PutBuffer("b", 1);
  refuse_pool_status_ = true;
  Run(absl::Minutes(2));
  EXPECT_GT(writes_, 1);
  EXPECT_EQ(OfBuffer("Provisioning"), "");
  refuse_pool_status_ = false;
  Run(absl::Minutes(5));
  EXPECT_THAT(OfBuffer("Provisioning"), HasSubstr("True CapacityProvisioned"));
}

TEST_F(CapacityObjectsTest, ACheckOfCapacityBuysNothing) {
  PutTemplate("t");
  PutRequest(Request("r", kCheck, 2));
  Run(absl::Minutes(1));
  EXPECT_EQ(created_, 0);
  EXPECT_THAT(OfRequest("Accepted"), HasSubstr("True Accepted"));
  EXPECT_EQ(OfRequest("Provisioned"),
            "False CapacityIsNotFound: there is no room for all of its pods");
  // It is asked again when there are nodes.
  AddPod(GpuPod("p"));
  Run(absl::Minutes(3));
  EXPECT_EQ(created_, 1);
  EXPECT_THAT(OfRequest("Provisioned"), HasSubstr("True CapacityIsFound"));
  Run(absl::Minutes(15));
  EXPECT_THAT(OfRequest("BookingExpired"), HasSubstr("True CapacityReservationTimeExpired"));
}

TEST_F(CapacityObjectsTest, ACheckWithoutRetryFails) {
  PutTemplate("t");
  model::ProvisioningRequest request = Request("r", kCheck, 2);
  request.parameters.Set("noRetry", "true");
  PutRequest(request);
  Run(absl::Minutes(1));
  EXPECT_THAT(OfRequest("Failed"), HasSubstr("True CapacityIsNotFound"));
  AddPod(GpuPod("p"));
  Run(absl::Minutes(3));
  EXPECT_THAT(OfRequest("Provisioned"), HasSubstr("False"));
}

TEST_F(CapacityObjectsTest, AnAtomicRequestIsProvisionedWholeAndItsRoomIsBooked) {
  PutTemplate("t");
  PutRequest(Request("r", kAtomic, 6));
  Run(absl::Seconds(10));
  EXPECT_EQ(created_, 2);
  EXPECT_EQ(OfRequest("Provisioned"), "False CapacityIsNotFound: nodes are on their way");
  Run(absl::Minutes(3));
  EXPECT_THAT(OfRequest("Provisioned"), HasSubstr("True CapacityIsProvisioned"));
  Run(absl::Minutes(6));
  EXPECT_EQ(terminated_, 0);
  // Ten minutes after that, no pod has come.
  Run(absl::Minutes(15));
  EXPECT_THAT(OfRequest("BookingExpired"), HasSubstr("True CapacityReservationTimeExpired"));
  Run(absl::Minutes(10));
  EXPECT_EQ(terminated_, 2);
  EXPECT_EQ(created_, 2);
}

TEST_F(CapacityObjectsTest, PodsThatConsumeARequestEndItsBooking) {
  PutTemplate("t");
  PutRequest(Request("r", kAtomic, 2));
  Run(absl::Minutes(2));
  for (int i = 0; i < 2; ++i) {
    model::Pod pod = GpuPod(absl::StrCat("p", i));
    pod.meta.annotations.Set("autoscaling.x-k8s.io/consume-provisioning-request", "r");
    AddPod(pod);
  }
  Run(absl::Minutes(1));
  EXPECT_EQ(bound_.size(), 2u);
  EXPECT_THAT(OfRequest("BookingExpired"), HasSubstr("True CapacityBookingConsumed"));
  EXPECT_EQ(created_, 1);
}

TEST_F(CapacityObjectsTest, AnAtomicRequestThatCannotBeMetBuysNoPartOfItAndExpires) {
  options_.hook.cluster_gpu_limit = 8;
  BeginAnew();
  PutTemplate("t");
  model::ProvisioningRequest request = Request("r", kAtomic, 12);
  request.parameters.Set("ValidUntilSeconds", "300");
  PutRequest(request);
  Run(absl::Minutes(2));
  EXPECT_EQ(created_, 0);
  EXPECT_THAT(OfRequest("Provisioned"), HasSubstr("False CapacityIsNotFound: there is no room"));
  EXPECT_EQ(OfRequest("Failed"), "");
  Run(absl::Minutes(5));
  EXPECT_THAT(OfRequest("Failed"), HasSubstr("True Expired"));
}

// It came first, and some of its pods would find room.
TEST_F(CapacityObjectsTest, ARequestThatCannotBeMetKeepsNoRoomFromOthers) {
  options_.hook.cluster_gpu_limit = 4;
  BeginAnew();
  PutTemplate("t");
  PutRequest(Request("much", kAtomic, 5));
  Run(absl::Seconds(10));
  PutRequest(Request("r", kAtomic, 3));
  Run(absl::Minutes(3));
  EXPECT_THAT(OfRequest("Provisioned"), HasSubstr("True CapacityIsProvisioned"));
  EXPECT_THAT(Said(provisioning_.at("much").conditions, "Provisioned"), HasSubstr("False"));
  EXPECT_EQ(created_, 1);
}

TEST_F(CapacityObjectsTest, ABookingGoesOnAfterARestart) {
  PutTemplate("t");
  PutRequest(Request("r", kAtomic, 2));
  Run(absl::Minutes(3));
  ASSERT_THAT(OfRequest("Provisioned"), HasSubstr("True"));
  BeginAnew();
  for (const auto& [name, node] : nodes_) Put(node);
  for (const auto& [name, request] : requests_) Put(request);
  for (const auto& [name, object] : templates_) Put(object);
  for (const auto& [name, request] : provisioning_) Put(request);
  Run(absl::Minutes(5));
  EXPECT_EQ(terminated_, 0);
  EXPECT_EQ(OfRequest("BookingExpired"), "");
  Run(absl::Minutes(5));
  EXPECT_THAT(OfRequest("BookingExpired"), HasSubstr("True CapacityReservationTimeExpired"));
}

TEST_F(CapacityObjectsTest, ARequestWaitsForItsTemplate) {
  PutRequest(Request("r", kAtomic, 1));
  Run(absl::Seconds(10));
  EXPECT_THAT(OfRequest("Provisioned"),
              HasSubstr("False FailedToCheckCapacity: spec.podSets[0].podTemplateRef.name: there"));
  PutTemplate("t");
  Run(absl::Minutes(3));
  EXPECT_THAT(OfRequest("Provisioned"), HasSubstr("True CapacityIsProvisioned"));
}

}  // namespace
}  // namespace fairlead::core::testing
