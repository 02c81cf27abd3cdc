// ProvisioningGroups over a stand-in for cluster-autoscaler, call by call.
#include "autoscale-hook/providers/provisioningrequest/provisioning_groups.h"

#include <algorithm>

#include "autoscale-hook/catalog/catalog.h"
#include "autoscale-hook/providers/groups/cloud_groups_fixture_testing.h"
#include "autoscale-hook/providers/provisioningrequest/fake_autoscaler_testing.h"

namespace fairlead::hook {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kPool[] = "ProvisioningRequest/a";

class ProvisioningTest : public CloudGroupsFixture {
 protected:
  ProvisioningTest() : CloudGroupsFixture(kPool, absl::Milliseconds(50)), cluster_(&time_) {
    Script(cluster_.objects, time_);
    settings_.ns = FakeAutoscaler::kNamespace;
    for (const char* pool : {"a", "b"}) settings_.groups.push_back(cluster_.AddPool(pool));
    time_.Advance(absl::Minutes(1));
    Begin();
  }
  void Begin() {
    groups_ = std::make_unique<ProvisioningGroups>(settings_, nullptr, &cluster_.objects, &time_);
  }
  CloudGroups& groups() override { return *groups_; }

  static hook::Increase For(const std::string& token, int64_t machines) {
    hook::Increase increase{machines, token, {}};
    for (int64_t i = 0; i < machines; ++i) {
      const std::string name = absl::StrCat("fl-", token, "-", i);
      increase.requests.push_back({name, "u-" + name});
    }
    return increase;
  }
  absl::Status Buy(const std::string& token, int64_t machines = 1) {
    return Write(
        [&](auto done) { groups().IncreaseSize(kPool, For(token, machines), std::move(done)); });
  }
  static std::string PathOf(const std::string& token) {
    return absl::StrCat(FakeAutoscaler::RequestsPath(), "/fairlead-", token);
  }
  [[nodiscard]] bool IsThere(const std::string& token) const {
    return cluster_.objects.objects.contains(PathOf(token));
  }
  [[nodiscard]] std::string Places(const std::string& token) const {
    return cluster_.objects.TextOf(PathOf(token), {"metadata", "annotations", kPlacesAnnotation});
  }
  std::vector<CloudInstance> Listed() {
    EXPECT_EQ(Refresh(), absl::OkStatus());
    const auto listed = ListedInstances();
    EXPECT_TRUE(listed.ok()) << listed.status();
    return listed.ok() ? *listed : std::vector<CloudInstance>();
  }
  std::vector<std::string> Ids() {
    std::vector<std::string> ids;
    for (const CloudInstance& instance : Listed()) ids.push_back(instance.id);
    std::sort(ids.begin(), ids.end());
    return ids;
  }
  static std::string Place(const std::string& token, size_t place) {
    return PlaceId("fairlead-" + token, place);
  }
  absl::Status TakeBack(const std::string& token, size_t place) {
    return DeleteNode({Place(token, place), ""});
  }
  // Bought and come: the names of the nodes.
  std::vector<std::string> Running(const std::string& token, int64_t machines) {
    EXPECT_EQ(Buy(token, machines), absl::OkStatus());
    time_.Advance(absl::Minutes(1));
    EXPECT_THAT(Listed(), SizeIs(static_cast<size_t>(machines)));
    return cluster_.NodesOf("a");
  }

  FakeAutoscaler cluster_;
  model::ProvisioningSettings settings_;
  std::unique_ptr<ProvisioningGroups> groups_;
};

// ---- purchases

TEST_F(ProvisioningTest, AnIncreaseIsOneRequestForAllOfIt) {
  ASSERT_EQ(Buy("1", 3), absl::OkStatus());
  EXPECT_THAT(cluster_.Requests(), ElementsAre(PathOf("1")));
  EXPECT_EQ(Places("1"), "...");
  const std::vector<CloudInstance> listed = Listed();
  ASSERT_THAT(listed, SizeIs(3));
  EXPECT_EQ(listed[2].id, Place("1", 2));
  EXPECT_TRUE(listed[2].placeholder && listed[2].ordered);
  EXPECT_EQ(*Target(), 3);
  EXPECT_EQ(*Target("ProvisioningRequest/b"), 0);
}

TEST_F(ProvisioningTest, WhatIsRepeatedIsNoSecondPurchase) {
  for (const std::string& call : {std::string("POST /api/v1/namespaces/fairlead/podtemplates"),
                                  absl::StrCat("POST ", FakeAutoscaler::RequestsPath())}) {
    NextCalls(call, LosesReply());
    EXPECT_TRUE(absl::IsUnavailable(Buy("1", 2)));
  }
  EXPECT_EQ(Buy("1", 2), absl::OkStatus());
  Begin();
  EXPECT_EQ(Buy("1", 2), absl::OkStatus()) << "of another process";
  EXPECT_THAT(cluster_.Requests(), SizeIs(1));
  EXPECT_EQ(Buy("2", 2), absl::OkStatus());
  EXPECT_THAT(cluster_.Requests(), SizeIs(2));
}

TEST_F(ProvisioningTest, AnObjectOfThatNameMayBeOfOthers) {
  ASSERT_EQ(Buy("1", 2), absl::OkStatus());
  const absl::Status other = Buy("1", 3);
  EXPECT_TRUE(absl::IsFailedPrecondition(other));
  EXPECT_EQ(other.message(),
            "group ProvisioningRequest/a: ProvisioningRequest fairlead/fairlead-1 is there, and is "
            "not of this order; delete it");
  cluster_.objects.Change(PathOf("1"), R"({"metadata":{"labels":{"fairlead.dev/made-by":null}}})");
  EXPECT_TRUE(absl::IsFailedPrecondition(Buy("1", 2)));
  cluster_.objects.Change(PathOf("1"), R"({"metadata":{"labels":{"fairlead.dev/made-by":
      "provisioning-request"},"deletionTimestamp":"2026-01-01T00:00:00Z"}})");
  EXPECT_TRUE(absl::IsUnavailable(Buy("1", 2))) << "it is being deleted";
  NextCalls("GET " + PathOf("1"), Fails(absl::NotFoundError("gone")));
  EXPECT_TRUE(absl::IsUnavailable(Buy("1", 2)));
}

TEST_F(ProvisioningTest, RefusalsKeepTheirCodes) {
  const std::string post = absl::StrCat("POST ", FakeAutoscaler::RequestsPath());
  for (const absl::Status& refusal :
       {absl::PermissionDeniedError("no"), absl::InvalidArgumentError("no"),
        absl::NotFoundError("no")}) {
    NextCalls(post, Fails(refusal));
    const absl::Status said = Buy("1");
    EXPECT_EQ(said.code(), refusal.code());
    EXPECT_THAT(said.message(), HasSubstr("create in /apis/autoscaling.x-k8s.io/v1/namespaces/"));
  }
  NextCalls(post, Fails(absl::ResourceExhaustedError("429")));
  EXPECT_TRUE(absl::IsUnavailable(Buy("1"))) << "throttled is not out of machines";
  const absl::Status many = Buy("1", kMostPlaces + 1);
  EXPECT_TRUE(absl::IsInvalidArgument(many));
  EXPECT_THAT(many.message(), HasSubstr("one ProvisioningRequest is made for 1 to 1000"));
  EXPECT_TRUE(absl::IsNotFound(Increase(1, "ProvisioningRequest/none")));
  EXPECT_THAT(cluster_.Requests(), IsEmpty());
  settings_.groups[0].instance_type = "unknown";
  Begin();
  EXPECT_THAT(Buy("1").message(), HasSubstr("the catalogue has no type \"unknown\"; add it"));
}

TEST_F(ProvisioningTest, NothingIsWrittenAfterTheLongestOperation) {
  NextCalls("POST /api/v1/namespaces/fairlead/podtemplates",
            [this](const FakeObjects::Work& work, const FakeObjects::Reply& reply) {
              time_.After(absl::Seconds(95), [work, reply] { reply(work()); });
            });
  EXPECT_TRUE(absl::IsUnavailable(Buy("1")));
  EXPECT_THAT(cluster_.Requests(), IsEmpty());
}

// ---- what the conditions say

TEST_F(ProvisioningTest, ErrorsOfPlaces) {
  struct Case {
    const char *type, *status, *reason;
    FailureClass failure;
  };
  const Case cases[] = {
      {"Provisioned", "False", "CapacityIsNotFound", FailureClass::kStockout},
      {"Failed", "True", "Expired", FailureClass::kTimeout},
      {"Failed", "True", "GceQuotaExceeded", FailureClass::kQuota},
      {"CapacityRevoked", "True", "Preempted", FailureClass::kStockout},
  };
  cluster_.behaviours["a"].answers = false;
  int number = 0;
  for (const Case& each : cases) {
    const std::string token = absl::StrCat(++number);
    ASSERT_EQ(Buy(token, 2), absl::OkStatus());
    cluster_.Say(PathOf(token), each.type, each.status, each.reason, "why");
    const std::vector<CloudInstance> listed = Listed();
    ASSERT_THAT(listed, SizeIs(2));
    EXPECT_EQ(listed[0].failure, each.failure) << each.reason;
    EXPECT_EQ(listed[0].error_code, each.reason);
    EXPECT_EQ(listed[0].error_message, "why");
    EXPECT_EQ(TakeBack(token, 0), absl::OkStatus());
    EXPECT_EQ(TakeBack(token, 1), absl::OkStatus()) << "it went with the other one";
    EXPECT_FALSE(IsThere(token));
    EXPECT_THAT(Listed(), IsEmpty());
  }
}

// It says that nodes have room: then it makes none.
TEST_F(ProvisioningTest, FoundIsNotProvisioned) {
  cluster_.behaviours["a"].reason = "CapacityIsFound";
  ASSERT_EQ(Buy("1"), absl::OkStatus());
  cluster_.AddNode("a", "theirs");
  time_.Advance(absl::Seconds(2));
  const std::vector<CloudInstance> listed = Listed();
  ASSERT_THAT(listed, SizeIs(1));
  EXPECT_EQ(listed[0].failure, FailureClass::kOther);
  EXPECT_THAT(listed[0].error_message, HasSubstr("that nodes have room, and makes none"));
}

TEST_F(ProvisioningTest, WithoutCapacityItMayWait) {
  settings_.capacity_wait = absl::Minutes(10);
  Begin();
  cluster_.behaviours["a"].stock = 0;
  ASSERT_EQ(Buy("1"), absl::OkStatus());
  time_.Advance(absl::Seconds(2));
  EXPECT_EQ(Listed()[0].error_code, "");
  time_.Advance(absl::Minutes(9));
  EXPECT_EQ(Listed()[0].error_code, "");
  cluster_.Say(PathOf("1"), "Provisioned", "Unknown", "Trying");
  EXPECT_EQ(Listed()[0].error_code, "");
  cluster_.Say(PathOf("1"), "Provisioned", "False", "CapacityIsNotFound");
  EXPECT_EQ(Listed()[0].error_code, "");
  time_.Advance(absl::Minutes(9));
  EXPECT_EQ(Listed()[0].error_code, "") << "the time begins anew";
  time_.Advance(absl::Minutes(2));
  EXPECT_EQ(Listed()[0].error_code, "CapacityIsNotFound");
}

// ---- nodes

TEST_F(ProvisioningTest, ANodeThatComesIsHeldAndItsPlaceIsRecorded) {
  ASSERT_EQ(Buy("1", 2), absl::OkStatus());
  cluster_.behaviours["a"].fewer = 1;
  time_.Advance(absl::Minutes(1));
  const std::vector<CloudInstance> listed = Listed();
  ASSERT_THAT(listed, SizeIs(2));
  EXPECT_EQ(listed[0].id, Place("1", 1));
  EXPECT_EQ(listed[1].id, "cloud:///a-0001");
  EXPECT_EQ(listed[1].former_id, Place("1", 0));
  EXPECT_EQ(listed[1].state, InstanceState::kRunning);
  EXPECT_TRUE(listed[1].ordered && !listed[1].placeholder);
  EXPECT_EQ(Places("1"), "+.");
  const std::string node = FakeAutoscaler::NodePath("a-0001");
  EXPECT_EQ(cluster_.objects.TextOf(node, {"metadata", "annotations", kHoldAnnotation}), "true");
  EXPECT_EQ(cluster_.objects.TextOf(node, {"metadata", "annotations", kCameForAnnotation}),
            "fairlead-1/0");
  cluster_.objects.writes.clear();
  Begin();  // another process sees the same, and writes nothing
  EXPECT_THAT(Ids(), ElementsAre("cloud:///a-0001", Place("1", 1)));
  EXPECT_THAT(cluster_.objects.writes, IsEmpty());
}

TEST_F(ProvisioningTest, NodesOfOthersAreNeitherTakenNorListed) {
  cluster_.AddNode("a", "older");
  cluster_.behaviours["a"].node_after = absl::InfiniteDuration();
  ASSERT_EQ(Buy("1"), absl::OkStatus());
  cluster_.AddNode("a", "same-second");
  time_.Advance(absl::Seconds(10));
  cluster_.AddNode("b", "of-another-group");
  cluster_.AddNode("a", "without-id");
  cluster_.objects.Change(FakeAutoscaler::NodePath("without-id"),
                          R"({"spec":{"providerID":null}})");
  cluster_.AddNode("a", "leaves");
  cluster_.objects.Change(FakeAutoscaler::NodePath("leaves"),
                          R"({"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}})");
  EXPECT_THAT(Ids(), ElementsAre(Place("1", 0)));
  EXPECT_EQ(*Target(), 1);
  cluster_.AddNode("a", "fits");
  EXPECT_THAT(Ids(), ElementsAre("cloud:///fits"));
}

TEST_F(ProvisioningTest, TheOldestRequestIsFilledFirst) {
  cluster_.behaviours["a"].node_after = absl::InfiniteDuration();
  ASSERT_EQ(Buy("9", 1), absl::OkStatus());
  time_.Advance(absl::Seconds(5));
  ASSERT_EQ(Buy("1", 1), absl::OkStatus());
  time_.Advance(absl::Seconds(5));
  cluster_.AddNode("a", "n");
  Ids();
  EXPECT_EQ(Places("9"), "+");
  EXPECT_EQ(Places("1"), ".");
}

// No node is taken for a request before it is Provisioned: others' nodes look the same.
TEST_F(ProvisioningTest, OnlyAProvisionedRequestIsFilled) {
  cluster_.behaviours["a"].answers = false;
  ASSERT_EQ(Buy("1"), absl::OkStatus());
  time_.Advance(absl::Seconds(5));
  cluster_.AddNode("a", "n");
  EXPECT_THAT(Ids(), ElementsAre(Place("1", 0)));
}

TEST_F(ProvisioningTest, AConflictOnTheNodeOrTheRequestIsTriedAgain) {
  ASSERT_EQ(Buy("1"), absl::OkStatus());
  time_.Advance(absl::Minutes(1));
  NextCalls("PATCH /api/v1/nodes/", Fails(absl::AbortedError("conflict")));
  EXPECT_THAT(Ids(), ElementsAre(Place("1", 0)));
  NextCalls("PATCH " + PathOf("1"), Fails(absl::AbortedError("conflict")));
  EXPECT_THAT(Ids(), ElementsAre("cloud:///a-0001")) << "the node says it";
  EXPECT_EQ(Places("1"), ".");
  EXPECT_THAT(Ids(), ElementsAre("cloud:///a-0001"));
  EXPECT_EQ(Places("1"), "+");
}

TEST_F(ProvisioningTest, ARefusedWriteIsToldForTheGroupAlone) {
  ASSERT_EQ(Buy("1"), absl::OkStatus());
  time_.Advance(absl::Minutes(1));
  NextCalls("PATCH /api/v1/nodes/", Fails(absl::PermissionDeniedError("403")));
  EXPECT_EQ(Refresh(), absl::OkStatus());
  EXPECT_TRUE(absl::IsPermissionDenied(ListedInstances().status()));
  EXPECT_EQ(Target().status().message(), "patch /api/v1/nodes/a-0001: 403");
  EXPECT_TRUE(Target("ProvisioningRequest/b").ok());
  EXPECT_THAT(Ids(), ElementsAre("cloud:///a-0001"));
}

TEST_F(ProvisioningTest, AServerThatThrottlesFailsTheRound) {
  NextCalls("LIST", Fails(absl::ResourceExhaustedError("429")));
  EXPECT_TRUE(absl::IsResourceExhausted(Refresh()));
  NextCalls("LIST /api/v1/nodes", Fails(absl::UnavailableError("503")));
  EXPECT_TRUE(absl::IsUnavailable(Refresh()));
  NextCalls("LIST", Fails(absl::NotFoundError("no such kind")));
  EXPECT_EQ(Refresh(), absl::OkStatus());
  EXPECT_THAT(Target().status().message(),
              HasSubstr("list /apis/autoscaling.x-k8s.io/v1/namespaces/fairlead/"
                        "provisioningrequests: no such kind"));
}

TEST_F(ProvisioningTest, ARequestOfWrongShapeStopsItsGroupAlone) {
  ASSERT_EQ(Buy("1", 2), absl::OkStatus());
  cluster_.objects.Change(PathOf("1"),
                          R"({"metadata":{"annotations":{"fairlead.dev/places":"."}}})");
  EXPECT_EQ(Refresh(), absl::OkStatus());
  EXPECT_THAT(ListedInstances().status().message(),
              HasSubstr("ProvisioningRequest fairlead-1: metadata.annotations[fairlead.dev/places]"
                        ": has 1 places, and the count is 2"));
  EXPECT_TRUE(ListedInstances("ProvisioningRequest/b").ok());
  EXPECT_TRUE(absl::IsUnavailable(TakeBack("1", 0)));
  cluster_.objects.Change(PathOf("1"),
                          R"({"metadata":{"labels":{"fairlead.dev/provisioning-group":"c"}}})");
  EXPECT_THAT(Listed(), IsEmpty()) << "a group that is not configured any more";
}

// ---- ends of places

TEST_F(ProvisioningTest, ARequestThatIsNotProvisionedIsTakenBackWhole) {
  cluster_.behaviours["a"].answers = false;
  ASSERT_EQ(Buy("1", 2), absl::OkStatus());
  Ids();
  const absl::Status first = TakeBack("1", 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(first));
  EXPECT_EQ(first.message(),
            "group ProvisioningRequest/a: ProvisioningRequest fairlead-1 asks for 2 machines "
            "whole, so it is taken back only if none of them is wanted; to go: 1");
  Ids();
  NextCalls("DELETE", LosesReply());
  EXPECT_TRUE(absl::IsUnavailable(TakeBack("1", 0)));
  EXPECT_FALSE(IsThere("1"));
  EXPECT_EQ(TakeBack("1", 0), absl::OkStatus()) << "it is gone";
  EXPECT_THAT(Ids(), IsEmpty());
}

// The autoscaler was faster than the deletion: the machine comes.
TEST_F(ProvisioningTest, WhatHasBecomeProvisionedMeanwhileIsNotTakenBack) {
  ASSERT_EQ(Buy("1"), absl::OkStatus());
  Ids();
  NextCalls("DELETE", After([this] { time_.Advance(absl::Seconds(3)); }));
  EXPECT_TRUE(absl::IsAborted(TakeBack("1", 0)));
  EXPECT_TRUE(IsThere("1"));
  Ids();
  const absl::Status refused = TakeBack("1", 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_EQ(refused.message(),
            "group ProvisioningRequest/a: ProvisioningRequest fairlead-1 is Provisioned, so the "
            "machine is on its way; it is given back when its node has come, or if none comes "
            "within 20m");
}

TEST_F(ProvisioningTest, ANodeThatNeverComesIsGivenUpAfterTheTimeOut) {
  cluster_.behaviours["a"].fewer = 1;
  ASSERT_EQ(Buy("1", 2), absl::OkStatus());
  time_.Advance(absl::Minutes(1));
  EXPECT_THAT(Ids(), ElementsAre("cloud:///a-0001", Place("1", 1)));
  time_.Advance(absl::Minutes(20));
  const std::vector<CloudInstance> listed = Listed();
  EXPECT_EQ(listed[0].failure, FailureClass::kTimeout);
  EXPECT_EQ(listed[0].error_message, "no node has come within 20m of the condition Provisioned");
  EXPECT_EQ(TakeBack("1", 1), absl::OkStatus());
  EXPECT_EQ(Places("1"), "+-");
  EXPECT_EQ(TakeBack("1", 1), absl::OkStatus());
  cluster_.AddNode("a", "late");  // of no order any more: the autoscaler removes it
  EXPECT_THAT(Ids(), ElementsAre("cloud:///a-0001"));
  EXPECT_TRUE(absl::IsUnavailable(TakeBack("1", 0))) << "a node has come for it";
}

TEST_F(ProvisioningTest, PlacesAreNotTakenBackByNumber) {
  ASSERT_EQ(Buy("1"), absl::OkStatus());
  Ids();
  EXPECT_TRUE(absl::IsFailedPrecondition(Decrease(1)));
  EXPECT_TRUE(IsThere("1"));
}

// ---- ends of machines

TEST_F(ProvisioningTest, AMachineIsReleasedAndTheAutoscalerRemovesIt) {
  const std::vector<std::string> nodes = Running("1", 2);
  const CloudNode first = {FakeAutoscaler::IdOfNode(nodes[0]), nodes[0]};
  cluster_.behaviours["a"].removes_after = absl::Minutes(10);
  NextCalls("PATCH", LosesReply());
  EXPECT_TRUE(absl::IsUnavailable(DeleteNode(first)));
  EXPECT_EQ(DeleteNode(first), absl::OkStatus());
  const std::vector<CloudInstance> listed = Listed();
  EXPECT_EQ(listed[0].state, InstanceState::kDeleting);
  EXPECT_EQ(listed[1].state, InstanceState::kRunning);
  EXPECT_EQ(*Target(), 1);
  EXPECT_TRUE(IsThere("1")) << "the other one has its booking";
  time_.Advance(absl::Minutes(11));
  EXPECT_THAT(Ids(), ElementsAre(FakeAutoscaler::IdOfNode(nodes[1])));
  EXPECT_EQ(Places("1"), "++") << "no other node comes for its place";
  NextCalls("DELETE", Fails(absl::UnavailableError("503")));
  EXPECT_EQ(DeleteNode({FakeAutoscaler::IdOfNode(nodes[1]), nodes[1]}), absl::OkStatus());
  Ids();
  EXPECT_TRUE(IsThere("1"));
  Ids();
  EXPECT_FALSE(IsThere("1")) << "its booking ends with the last machine";
  time_.Advance(absl::Minutes(11));
  EXPECT_THAT(Ids(), IsEmpty());
}

TEST_F(ProvisioningTest, AMachineThatIsLostLeavesNoPlace) {
  const std::vector<std::string> nodes = Running("1", 1);
  NextCalls("PATCH", After([&] { cluster_.objects.Erase(FakeAutoscaler::NodePath(nodes[0])); }));
  EXPECT_EQ(DeleteNode({FakeAutoscaler::IdOfNode(nodes[0]), nodes[0]}), absl::OkStatus());
  EXPECT_THAT(Ids(), IsEmpty());
  EXPECT_FALSE(IsThere("1"));
  EXPECT_TRUE(absl::IsUnavailable(DeleteNode({"cloud:///none", "none"})));
}

// Cluster-autoscaler deletes old requests; the node still says whose it is.
TEST_F(ProvisioningTest, AMachineOutlivesItsRequest) {
  const std::vector<std::string> nodes = Running("1", 1);
  cluster_.objects.Erase(PathOf("1"));
  ASSERT_EQ(Buy("2"), absl::OkStatus());
  time_.Advance(absl::Minutes(1));
  EXPECT_THAT(Ids(), ElementsAre("cloud:///a-0001", "cloud:///a-0002"));
  EXPECT_EQ(DeleteNode({"cloud:///a-0001", "a-0001"}), absl::OkStatus());
  time_.Advance(absl::Minutes(1));
  EXPECT_THAT(Ids(), ElementsAre("cloud:///a-0002"));
}

// A process has ended before it knew the machine, and another one has ended its NodeRequest.
TEST_F(ProvisioningTest, AMachineWithoutANodeRequestIsReleased) {
  cluster_.behaviours["a"].removes_after = absl::Minutes(10);
  const std::vector<std::string> nodes = Running("1", 3);
  EXPECT_EQ(cluster_.objects.TextOf(FakeAutoscaler::NodePath(nodes[1]),
                                    {"metadata", "annotations", kOrderedByAnnotation}),
            "fl-1-1");
  const auto kept = [&](size_t node) {
    return !cluster_.objects
                .TextOf(FakeAutoscaler::NodePath(nodes[node]),
                        {"metadata", "annotations", kHoldAnnotation})
                .empty();
  };
  for (int round = 0; round < 4; ++round) Ids();
  EXPECT_TRUE(kept(0) && kept(1) && kept(2));
  cluster_.objects.Erase(FakeAutoscaler::NodeRequestPath("fl-1-1"));
  NextCalls("GET " + FakeAutoscaler::NodeRequestPath(""), Fails(absl::UnavailableError("503")), 3);
  for (int round = 0; round < 3; ++round) Ids();
  EXPECT_TRUE(kept(1)) << "nothing is known";
  for (int round = 0; round < 3; ++round) Ids();
  EXPECT_TRUE(kept(0) && !kept(1) && kept(2));
  EXPECT_EQ(*Target(), 2);
}

TEST_F(ProvisioningTest, AnswersAfterTheEndAreDropped) {
  bool answered = false;
  groups_->Refresh([&](const absl::Status&) { answered = true; });
  groups_->IncreaseSize(kPool, For("1", 1), [&](const absl::Status&) { answered = true; });
  groups_.reset();
  time_.Advance(absl::Minutes(5));
  EXPECT_FALSE(answered);
}

TEST_F(ProvisioningTest, ItsTemplateAndPrice) {
  const auto node = Template();
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(node->meta.labels.Get("pool"), "a");
  std::vector<CloudGroup> listed;
  groups_->Groups([&](auto list) { listed = *list; });
  ASSERT_THAT(listed, SizeIs(2));
  EXPECT_EQ(listed[0].id, kPool);
  EXPECT_EQ(listed[0].max_size, 10);
  groups_->NodePrice({"", node->meta.name}, [](auto price) { EXPECT_EQ(*price, 2.0); });
  EXPECT_TRUE(absl::IsNotFound(Template("ProvisioningRequest/none").status()));
  EXPECT_TRUE(absl::IsNotFound(Target("ProvisioningRequest/none").status()));
  EXPECT_TRUE(absl::IsNotFound(ListedInstances("ProvisioningRequest/none").status()));
}

}  // namespace
}  // namespace fairlead::hook
