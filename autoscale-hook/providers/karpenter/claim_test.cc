#include "autoscale-hook/providers/karpenter/claim.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/catalog/catalog.h"
#include "autoscale-hook/providers/karpenter/claim_order.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

const model::NodeClassRef kConfiguredClass = {"karpenter.k8s.aws", "EC2NodeClass", "configured"};

model::LaunchNode GpuOrder() {
  InstanceType type;
  type.name = "p5.48xlarge";
  type.cpu_milli = 192'000;
  type.memory_bytes = int64_t{2} << 40;
  type.gpu_count = 8;
  type.gpu_model = "H100";
  model::Set(type.extra, "vpc.amazonaws.com/efa", 32);
  model::Set(type.extra, "ephemeral-storage", 1000);
  type.labels.Set("tier", "fast");
  model::NodePool pool;
  pool.meta.name = "h100";
  pool.labels.Set("team", "ml");
  pool.labels.Set("node-restriction.kubernetes.io/team", "ml");
  pool.labels.Set("node-role.kubernetes.io/gpu", "");
  pool.labels.Set("karpenter.sh/nodepool", "theirs");
  pool.labels.Set("karpenter.k8s.aws/instance-family", "p5");
  pool.taints = {{"gpu", "yes", model::TaintEffect::kNoSchedule}};
  pool.startup_taints = {{"cni", "", model::TaintEffect::kNoExecute}};
  model::LaunchNode launch;
  Offer offer;
  offer.type = &type;
  offer.pool = &pool;
  offer.zone = "us-east-1a";
  offer.spot = true;
  launch.node = TemplateNode(offer, "fl-1");
  launch.startup_taints = pool.startup_taints;
  launch.request.Own().meta.name = "fl-1";
  launch.request.Own().meta.uid = "u-1";
  launch.request.Own().pool = "h100";
  launch.request.Own().instance_type = type.name;
  launch.request.Own().zone = "us-east-1a";
  launch.request.Own().spot = true;
  return launch;
}

TEST(NodeClaim, OfAnOrder) {
  const absl::StatusOr<NewNodeClaim> claim = ClaimOfOrder(GpuOrder(), kConfiguredClass);
  ASSERT_TRUE(claim.ok()) << claim.status();
  EXPECT_EQ(Json::Parse(EncodeNodeClaim(*claim))->Yaml(), R"(apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata:
  name: fl-1
  labels:
    fairlead.dev/capacity-type: spot
    fairlead.dev/node-pool: h100
    fairlead.dev/node-request: fl-1
    node-restriction.kubernetes.io/team: ml
    team: ml
    tier: fast
  annotations:
    fairlead.dev/node-request-uid: u-1
spec:
  taints:
  - key: gpu
    value: "yes"
    effect: NoSchedule
  startupTaints:
  - key: cni
    effect: NoExecute
  requirements:
  - key: node.kubernetes.io/instance-type
    operator: In
    values:
    - p5.48xlarge
  - key: topology.kubernetes.io/zone
    operator: In
    values:
    - us-east-1a
  - key: karpenter.sh/capacity-type
    operator: In
    values:
    - spot
  - key: kubernetes.io/arch
    operator: In
    values:
    - amd64
  - key: kubernetes.io/os
    operator: In
    values:
    - linux
  resources:
    requests:
      nvidia.com/gpu: "8"
      vpc.amazonaws.com/efa: "32"
  nodeClassRef:
    group: karpenter.k8s.aws
    kind: EC2NodeClass
    name: configured
  expireAfter: Never
)");
}

TEST(NodeClaim, OfAReservedMachineSaysWhichReservation) {
  model::LaunchNode launch = GpuOrder();
  launch.request.Own().spot = false;
  launch.request.Own().reservation = "cr-1";
  launch.reservation_labels = {{"karpenter.k8s.aws/capacity-reservation-id", "cr-0abc"},
                               {"example.com/contract", "c7"}};
  for (const auto& [key, value] : launch.reservation_labels) {
    launch.node.Own().meta.labels.Set(key, value);
  }
  const absl::StatusOr<NewNodeClaim> claim = ClaimOfOrder(launch, kConfiguredClass);
  ASSERT_TRUE(claim.ok()) << claim.status();
  const auto required = [&](const std::string& key) {
    std::string values;
    for (const auto& requirement : claim->requirements) {
      if (requirement.key == key) absl::StrAppend(&values, requirement.value, ";");
    }
    return values;
  };
  EXPECT_EQ(required("karpenter.sh/capacity-type"), "reserved;");
  EXPECT_EQ(required("karpenter.k8s.aws/capacity-reservation-id"), "cr-0abc;");
  EXPECT_EQ(required("example.com/contract"), "") << "Karpenter does not know it";
  EXPECT_EQ(claim->labels.Get("example.com/contract"), "c7");
  EXPECT_FALSE(claim->labels.Has("karpenter.k8s.aws/capacity-reservation-id"));
}

TEST(NodeClaim, TheClassOfThePoolComesFirstAndIsWhole) {
  model::LaunchNode launch = GpuOrder();
  launch.node_class = {"g.example.com", "K", "of-pool"};
  EXPECT_EQ(ClaimOfOrder(launch, kConfiguredClass)->node_class, launch.node_class);
  launch.node_class.kind = "";
  EXPECT_EQ(ClaimOfOrder(launch, kConfiguredClass).status(),
            absl::InvalidArgumentError(
                "NodeClaim fl-1: spec.nodeClassRef: group, kind or name is missing; set "
                "spec.nodeClassRef of NodePool h100 or karpenter.nodeClassRef of the "
                "configuration"));
}

TEST(NodeClaim, AnOrderWithoutAUidIsRefused) {
  model::LaunchNode launch = GpuOrder();
  launch.request.Own().meta.uid = "";
  EXPECT_EQ(ClaimOfOrder(launch, kConfiguredClass).status(),
            absl::InvalidArgumentError("NodeRequest fl-1: metadata.uid: empty"));
}

constexpr char kItem[] =
    R"({"metadata":{"name":"fl-1","uid":"c1","labels":{"fairlead.dev/node-request":"fl-1"},)"
    R"("annotations":{"fairlead.dev/node-request-uid":"u-1"},)"
    R"("deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"anything":1},)"
    R"("status":{"providerID":"aws:///z/i-1","nodeName":"n1","conditions":[)"
    R"({"type":"Launched","status":"True","reason":"Launched","message":""},)"
    R"({"type":"Registered","status":"Unknown","reason":"NodeNotFound","message":"not yet"},)"
    R"({"type":"Drifted","status":"True"},7,null,{}]}})";

TEST(NodeClaim, IsRead) {
  const absl::StatusOr<NodeClaim> claim = DecodeNodeClaim(*Json::Parse(kItem));
  ASSERT_TRUE(claim.ok()) << claim.status();
  EXPECT_EQ(claim->name, "fl-1");
  EXPECT_EQ(claim->uid, "c1");
  EXPECT_EQ(claim->request, "fl-1");
  EXPECT_EQ(claim->request_uid, "u-1");
  EXPECT_TRUE(claim->deleting);
  EXPECT_EQ(claim->provider_id, "aws:///z/i-1");
  EXPECT_EQ(claim->node_name, "n1");
  EXPECT_TRUE(claim->launched.IsTrue());
  EXPECT_EQ(claim->registered, (ClaimCondition{"Unknown", "NodeNotFound", "not yet"}));
  EXPECT_EQ(claim->initialized, ClaimCondition());
}

TEST(NodeClaim, FaultsNameObjectAndField) {
  const auto fault = [](absl::string_view json) {
    return std::string(DecodeNodeClaim(*Json::Parse(json)).status().message());
  };
  EXPECT_EQ(fault("7"),
            "NodeClaim without a name: metadata.name: the field around it is not an "
            "object");
  EXPECT_EQ(fault("{}"), "NodeClaim without a name: metadata.name: missing");
  EXPECT_EQ(fault(R"({"metadata":{"name":"a"}})"), "NodeClaim a: metadata.uid: missing");
  EXPECT_EQ(fault(R"({"metadata":{"name":"a","uid":"u","labels":[]}})"),
            "NodeClaim a: metadata.labels[fairlead.dev/node-request]: the field around it is not "
            "an object");
  EXPECT_EQ(fault(R"({"metadata":{"name":"a","uid":"u"},"status":{"providerID":1}})"),
            "NodeClaim a: status.providerID: not a string");
  EXPECT_EQ(fault(R"({"metadata":{"name":"a","uid":"u"},"status":{"conditions":{}}})"),
            "NodeClaim a: status.conditions: not a list");
  EXPECT_EQ(fault(R"({"metadata":{"name":"a","uid":"u"},"status":{"providerID":")" +
                  std::string(5000, 'x') + R"("}})"),
            "NodeClaim a: status.providerID: longer than 2048 bytes");
}

TEST(NodeClaimList, IsReadInPages) {
  const absl::StatusOr<ClaimPage> page =
      DecodeClaimPage(absl::StrCat(R"({"metadata":{"continue":"next"},"items":[)", kItem,
                                   R"(,{"metadata":{"name":"b"}},{"metadata":{}},null]})"));
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->next, "next");
  ASSERT_EQ(page->claims.size(), 2u);
  EXPECT_TRUE(page->claims[0].readable);
  EXPECT_EQ(page->claims[1].name, "b");
  EXPECT_FALSE(page->claims[1].readable);
  EXPECT_EQ(page->faults.size(), 3u);
  EXPECT_TRUE(DecodeClaimPage(R"({"items":null})")->claims.empty());
}

TEST(NodeClaimList, WhatIsNoListIsAnError) {
  for (const std::string text :
       {"", "{", "7", "[]", "{}", R"({"items":{}})", R"({"items":[],"metadata":{"continue":1}})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeClaimPage(text).status())) << text;
  }
  std::string many = R"({"items":[0)";
  for (size_t i = 0; i < kMostClaimsOfPage; ++i) many += ",0";
  EXPECT_EQ(DecodeClaimPage(many + "]}").status(),
            absl::InvalidArgumentError("NodeClaimList: items: more than 10000"));
}

// Every prefix, and every byte replaced: an error or a page, and names that can be compared.
TEST(NodeClaimList, MutatedTextIsReadOrRefused) {
  const std::string text = absl::StrCat(R"({"metadata":{"continue":""},"items":[)", kItem, "]}");
  for (size_t i = 0; i < text.size(); ++i) {
    EXPECT_FALSE(DecodeClaimPage(text.substr(0, i)).ok());
    for (const char c : {'"', '{', '}', '[', ',', '0', '\\', '\0', '\xff'}) {
      std::string mutated = text;
      mutated[i] = c;
      const absl::StatusOr<ClaimPage> page = DecodeClaimPage(mutated);
      if (!page.ok()) continue;
      for (const NodeClaim& claim : page->claims) EXPECT_FALSE(claim.name.empty());
    }
  }
}

TEST(NodeClaimFailure, IsMappedFromTheLastCondition) {
  const auto code = [](const std::string& reason, const std::string& message = "") {
    NodeClaim claim;
    claim.name = "fl-1";
    claim.launched = {"Unknown", reason, message};
    return WhyNeverRegistered(claim).code();
  };
  const auto warned = [](const std::string& warning) {
    NodeClaim claim;
    claim.name = "fl-1";
    return WhyNeverRegistered(claim, warning);
  };
  EXPECT_EQ(warned("NodeClaim fl-1 event: insufficient capacity, all types were unavailable"),
            absl::ResourceExhaustedError(
                "Karpenter deleted NodeClaim fl-1: NodeClaim fl-1 event: insufficient capacity, "
                "all types were unavailable"));
  EXPECT_EQ(
      warned(R"(insufficient capacity, resolving node class from nodeclaim, "x" not found)").code(),
      absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(warned("UnauthorizedOperation").code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(warned("who knows").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code(""), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code("AwaitingReconciliation", "object is awaiting reconciliation"),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code("InsufficientCapacityError"), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code("ICE"), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code("NodeClassNotReady"), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code("NodeClassNotFound"), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code("LaunchFailed", "UnauthorizedOperation: you are not authorized"),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(code("AccessDenied"), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(code("LaunchFailed", "VcpuLimitExceeded"), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(code("LaunchFailed", "RequestLimitExceeded"), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(code("LaunchFailed", "timeout"), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace fairlead::hook
