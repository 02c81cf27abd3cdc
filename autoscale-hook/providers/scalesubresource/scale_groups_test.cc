// What ScaleGroups reads and writes, and what it does when that fails.
#include "autoscale-hook/providers/scalesubresource/scale_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "autoscale-hook/providers/groups/cloud_groups_fixture_testing.h"
#include "autoscale-hook/providers/scalesubresource/fake_scale_testing.h"

namespace fairlead::hook {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

class ScaleGroupsTest : public CloudGroupsFixture {
 protected:
  static constexpr char kGroup[] = "Pool/default/workers";

  // A step is shorter than the reaction time of FakeScale, so a test can act before FakeScale does.
  ScaleGroupsTest() : CloudGroupsFixture(kGroup, absl::Milliseconds(100)) {
    Script(objects(), time_);
  }
  CloudGroups& groups() override { return *groups_; }
  FakeObjects& objects() { return cluster_.objects; }
  void Make(const std::vector<model::ScaleGroup>& configs) {
    configs_ = configs;
    groups_ = std::make_unique<ScaleGroups>(
        configs, [this](absl::string_view name) { return catalog_.Find(name); }, &objects(),
        &time_);
  }
  // A pool of that many nodes, and their names.
  std::vector<std::string> Running(int nodes, bool marks, int min_size = 0) {
    Make({cluster_.AddPool("workers", nodes, min_size, 10, marks)});
    time_.Advance(absl::Minutes(2));
    EXPECT_EQ(Refresh(), absl::OkStatus());
    objects().writes.clear();
    return cluster_.NodesOf("workers");
  }
  absl::Status Remove(const std::string& node) {
    return DeleteNode({FakeScale::IdOfNode(node), node});
  }
  std::vector<CloudInstance> Instances() {
    return ListedInstances().value_or(std::vector<CloudInstance>());
  }
  std::string AnnotationOf(const std::string& node, const char* key) {
    return objects().TextOf(FakeScale::NodePath(node), {"metadata", "annotations", key});
  }
  [[nodiscard]] int Replicas() const { return cluster_.Replicas("workers"); }
  void Stop() { cluster_.behaviours["workers"].acts = false; }

  const std::string pool_ = FakeScale::PoolPath("workers");
  const std::string patch_scale_ = absl::StrCat("PATCH ", pool_, "/scale");
  FakeScale cluster_{&time_};
  Catalog catalog_ = Catalog::FromTypes({});
  std::vector<model::ScaleGroup> configs_;
  std::unique_ptr<ScaleGroups> groups_;
};

// ---- reads

TEST_F(ScaleGroupsTest, NodesWithTheLabelsAreInstances) {
  const std::vector<std::string> nodes = Running(2, true);
  objects().Put("/api/v1/nodes/other",
                R"({"metadata":{"labels":{"pool":"x"}},"spec":{"providerID":"o"}})");
  objects().Put("/api/v1/nodes/young", R"({"metadata":{"labels":{"pool":"workers"}},"spec":{}})");
  ASSERT_EQ(Refresh(), absl::OkStatus());
  EXPECT_EQ(*Target(), 2);
  const std::string place = "node.fairlead.dev://";
  EXPECT_THAT(Instances(), UnorderedElementsAre(CloudInstance{.id = FakeScale::IdOfNode(nodes[0]),
                                                              .state = InstanceState::kRunning,
                                                              .former_id = place + nodes[0]},
                                                CloudInstance{.id = FakeScale::IdOfNode(nodes[1]),
                                                              .state = InstanceState::kRunning,
                                                              .former_id = place + nodes[1]},
                                                CloudInstance{.id = place + "young",
                                                              .state = InstanceState::kCreating,
                                                              .placeholder = true}));
}

TEST_F(ScaleGroupsTest, TheTemplate) {
  model::ScaleGroup config = cluster_.AddPool("workers");
  config.zone = "z1";
  config.labels.Set("l", "v");
  config.taints = {{"t", "", model::TaintEffect::kNoSchedule}};
  Make({config});
  auto node = Template();
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(node->allocatable, config.allocatable);
  EXPECT_EQ(
      node->meta.labels,
      (model::StringMap{{"pool", "workers"}, {"l", "v"}, {"topology.kubernetes.io/zone", "z1"}}));
  EXPECT_THAT(node->taints, SizeIs(1));
  config.allocatable.clear();
  config.instance_type = "big";
  Make({config});
  EXPECT_THAT(Template().status().message(), HasSubstr("the catalogue has no type \"big\""));
  InstanceType big;
  big.name = "big";
  big.cpu_milli = 8000;
  big.memory_bytes = int64_t{32} << 30;
  big.gpu_count = 2;
  big.gpu_model = "L4";
  catalog_ = Catalog::FromTypes({big});
  node = Template();
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(model::Get(node->allocatable, "cpu"), 8000);
  EXPECT_EQ(model::Get(node->allocatable, "nvidia.com/gpu"), 2000);
  EXPECT_EQ(node->meta.labels.Get("node.kubernetes.io/instance-type"), "big") << "for the price";
}

TEST_F(ScaleGroupsTest, ErrorsOfOneObjectConcernItsGroup) {
  model::ScaleGroup missing = cluster_.AddPool("workers");
  missing.name = "missing";
  model::ScaleGroup unknown = missing;
  unknown.kind = "Nothing";
  Make({cluster_.AddPool("workers", 1), missing, unknown});
  ASSERT_EQ(Refresh(), absl::OkStatus());
  EXPECT_EQ(*Target(), 1);
  for (const auto& [id, text] : {std::pair("Pool/default/missing", "not found"),
                                 {"Nothing/default/missing", "has no kind Nothing"}}) {
    absl::StatusOr<int64_t> size = 0;
    groups_->TargetSize(id, [&](auto told) { size = told; });
    EXPECT_TRUE(absl::IsNotFound(size.status())) << id;
    EXPECT_THAT(size.status().message(), HasSubstr(text));
  }
  objects().Change(pool_, R"({"spec":{"replicas":-3}})");
  ASSERT_EQ(Refresh(), absl::OkStatus());
  EXPECT_EQ(*Target(), -3) << "the reader of groups refuses it";
  NextCalls("LIST /api/v1/nodes", Fails(absl::ResourceExhaustedError("429")));
  EXPECT_TRUE(absl::IsResourceExhausted(Refresh())) << "a throttled round is repeated later";
}

TEST_F(ScaleGroupsTest, AResourceNeedsNoDiscovery) {
  model::ScaleGroup config = cluster_.AddPool("workers", 1);
  config.kind.clear();
  config.resource = "pools";
  objects().objects.erase(FakeScale::kRoot);
  Make({config});
  EXPECT_EQ(Refresh(), absl::OkStatus());
  EXPECT_EQ(config.Id(), "pools/default/workers");
}

// ---- sizes

TEST_F(ScaleGroupsTest, IncreasesWithAPrecondition) {
  Running(1, false);
  NextCalls(patch_scale_, After([this] { objects().Change(pool_, R"({"status":{"x":1}})"); }));
  EXPECT_EQ(Increase(2), absl::OkStatus());
  EXPECT_EQ(Replicas(), 3);
  EXPECT_THAT(objects().writes, ElementsAre(StartsWith(patch_scale_)));
  EXPECT_TRUE(absl::IsResourceExhausted(Increase(8)));
  EXPECT_TRUE(absl::IsResourceExhausted(Increase(int64_t{1} << 62)));
  NextCalls(patch_scale_, Fails(absl::ResourceExhaustedError("429")));
  EXPECT_TRUE(absl::IsUnavailable(Increase(1))) << "not a cloud without machines";
  EXPECT_EQ(Replicas(), 3);
}

TEST_F(ScaleGroupsTest, APlaceIsTakenBackOnlyTogetherWithAll) {
  Running(1, true);
  EXPECT_EQ(Increase(1), absl::OkStatus());
  EXPECT_TRUE(absl::IsFailedPrecondition(Decrease(1))) << "the controller would choose";
  EXPECT_EQ(Replicas(), 2);
  objects().Change(pool_, R"({"spec":{"replicas":0}})");
  time_.Advance(absl::Minutes(2));
  ASSERT_EQ(Refresh(), absl::OkStatus());
  EXPECT_EQ(Increase(2), absl::OkStatus());
  EXPECT_TRUE(absl::IsFailedPrecondition(Decrease(1)));
  EXPECT_EQ(Decrease(2), absl::OkStatus());
  EXPECT_EQ(Replicas(), 0);
  EXPECT_EQ(Increase(1), absl::OkStatus());
  cluster_.AddNode("workers", "late");  // since the last round
  EXPECT_THAT(Decrease(1).message(), HasSubstr("a node has registered"));
  EXPECT_EQ(Replicas(), 1);
}

// ---- removal without a mark

TEST_F(ScaleGroupsTest, WithoutAMarkNothingIsLoweredWhileANodeIsNeeded) {
  const std::vector<std::string> nodes = Running(3, false);
  for (const std::string& node : {nodes[0], nodes[1], nodes[1]}) {
    const absl::Status refused = Remove(node);
    EXPECT_TRUE(absl::IsFailedPrecondition(refused));
    EXPECT_THAT(refused.message(), HasSubstr("no deleteAnnotation is configured"));
  }
  EXPECT_THAT(objects().writes, IsEmpty());
  EXPECT_EQ(Remove(nodes[2]), absl::OkStatus()) << "all are to go";
  EXPECT_EQ(Replicas(), 0);
  EXPECT_EQ(Remove(nodes[0]), absl::OkStatus());
  time_.Advance(absl::Minutes(1));
  EXPECT_THAT(cluster_.NodesOf("workers"), IsEmpty());
}

TEST_F(ScaleGroupsTest, WithoutAMarkAPlaceThatIsOpenIsNeeded) {
  const std::vector<std::string> nodes = Running(2, false);
  EXPECT_FALSE(Remove(nodes[0]).ok());
  EXPECT_EQ(Increase(1), absl::OkStatus());
  EXPECT_FALSE(Remove(nodes[1]).ok()) << "a third is about to register";
  EXPECT_EQ(Replicas(), 3);
  time_.Advance(absl::Minutes(2));
  EXPECT_FALSE(Remove(nodes[1]).ok()) << "it has registered, and is needed";
  EXPECT_EQ(Remove(cluster_.NodesOf("workers")[2]), absl::OkStatus());
  EXPECT_EQ(Replicas(), 0);
}

TEST_F(ScaleGroupsTest, WithoutAMarkTheMinimumStays) {
  const std::vector<std::string> nodes = Running(2, false, 1);
  EXPECT_FALSE(Remove(nodes[0]).ok());
  EXPECT_THAT(Remove(nodes[1]).message(), HasSubstr("its minimum is 1"));
  EXPECT_EQ(Replicas(), 2);
}

// ---- removal with a mark

TEST_F(ScaleGroupsTest, RecordsMarksAndLowersInThisOrder) {
  const std::vector<std::string> nodes = Running(3, true);
  EXPECT_EQ(Remove(nodes[1]), absl::OkStatus());
  ASSERT_THAT(objects().writes, SizeIs(3));
  EXPECT_THAT(objects().writes[0], HasSubstr("fairlead.dev/removed-from"));
  EXPECT_THAT(objects().writes[0], HasSubstr("resourceVersion"));
  EXPECT_THAT(objects().writes[1], HasSubstr(R"("example.com/delete":"yes")"));
  EXPECT_THAT(objects().writes[2], StartsWith(patch_scale_));
  EXPECT_EQ(Remove(nodes[1]), absl::OkStatus()) << "asked for again";
  EXPECT_EQ(Replicas(), 2);
  time_.Advance(absl::Minutes(1));
  EXPECT_THAT(cluster_.NodesOf("workers"), ElementsAre(nodes[0], nodes[2]));
}

TEST_F(ScaleGroupsTest, TheMarkOfAnotherObject) {
  model::ScaleGroup config = cluster_.AddPool("workers", 2);
  config.mark = {"k", "v", "example.com/v1", "", "machines", "", "example.com/machine"};
  Make({config});
  time_.Advance(absl::Minutes(2));
  ASSERT_EQ(Refresh(), absl::OkStatus());
  const std::string node = cluster_.NodesOf("workers")[0];
  EXPECT_THAT(Remove(node).message(), HasSubstr("lacks annotation \"example.com/machine\""));
  objects().Change(FakeScale::NodePath(node),
                   R"({"metadata":{"annotations":{"example.com/machine":"ns/m-1"}}})");
  ASSERT_EQ(Refresh(), absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(Remove(node))) << "there is no such machine";
  EXPECT_EQ(Replicas(), 2);
  EXPECT_EQ(AnnotationOf(node, kRemovedFromAnnotation), "");
  const std::string machine = absl::StrCat(FakeScale::kRoot, "/namespaces/ns/machines/m-1");
  objects().Put(machine, "{}");
  EXPECT_EQ(Remove(node), absl::OkStatus());
  EXPECT_EQ(objects().TextOf(machine, {"metadata", "annotations", "k"}), "v");
  EXPECT_EQ(Replicas(), 1);
}

TEST_F(ScaleGroupsTest, AnUnconfirmedMarkLowersNothing) {
  const std::vector<std::string> nodes = Running(3, true);
  const std::string patch_node = "PATCH " + FakeScale::NodePath(nodes[1]);
  for (const int step : {0, 1}) {
    for (const absl::Status& error :
         {absl::PermissionDeniedError("403"), absl::UnavailableError("503"),
          absl::ResourceExhaustedError("429")}) {
      if (step == 1) NextCalls(patch_node, After([] {}));
      NextCalls(patch_node, Fails(error));
      EXPECT_FALSE(Remove(nodes[1]).ok());
      EXPECT_EQ(Replicas(), 3) << step << error;
    }
  }
  objects().on_answer = [](const std::string&, Json& answer) {
    if (Json* meta = answer.Find("metadata")) meta->Set("annotations", Json::Object());
  };
  EXPECT_TRUE(absl::IsInternal(Remove(nodes[1])));
  EXPECT_EQ(Replicas(), 3);
}

TEST_F(ScaleGroupsTest, ALoweringThatIsRefusedTakesTheMarkOff) {
  const std::vector<std::string> nodes = Running(3, true);
  NextCalls(patch_scale_, Fails(absl::PermissionDeniedError("403")));
  EXPECT_TRUE(absl::IsPermissionDenied(Remove(nodes[1])));
  EXPECT_EQ(AnnotationOf(nodes[1], FakeScale::kMark), "");
  EXPECT_EQ(AnnotationOf(nodes[1], kRemovedFromAnnotation), "");
  NextCalls(patch_scale_, After([this] { objects().Change(pool_, R"({"status":{"x":"y"}})"); }), 3);
  EXPECT_TRUE(absl::IsAborted(Remove(nodes[1])));
  EXPECT_EQ(AnnotationOf(nodes[1], FakeScale::kMark), "");
  EXPECT_EQ(Replicas(), 3);
  // A conflict, in which others have raised the size: nothing is left of the attempt.
  NextCalls(patch_scale_, After([this] { objects().Change(pool_, R"({"spec":{"replicas":5}})"); }));
  EXPECT_THAT(Remove(nodes[1]).message(), HasSubstr("has made 3 of 5 replicas"));
  EXPECT_EQ(AnnotationOf(nodes[1], FakeScale::kMark), "");
  EXPECT_EQ(AnnotationOf(nodes[1], kRemovedFromAnnotation), "");
  time_.Advance(absl::Seconds(1));
  ASSERT_EQ(Refresh(), absl::OkStatus());
  EXPECT_EQ(Remove(nodes[1]), absl::OkStatus());
  EXPECT_EQ(Replicas(), 4);
}

TEST_F(ScaleGroupsTest, ALoweringOfUnknownOutcomeIsDoneOnce) {
  for (const bool done : {false, true}) {
    for (const bool restart : {false, true}) {
      for (const bool raised : {false, true}) {
        SCOPED_TRACE(absl::StrCat(done, restart, raised));
        const std::vector<std::string> nodes = Running(3, true);
        NextCalls(patch_scale_,
                  done ? LosesReply() : Fails(absl::UnavailableError("connection reset")));
        EXPECT_TRUE(absl::IsUnavailable(Remove(nodes[1])));
        if (restart) Make(configs_);
        ASSERT_EQ(Refresh(), absl::OkStatus());
        time_.Advance(absl::Seconds(1));  // the controller has seen it
        // Another write of ours in between, which raises the generation too.
        if (raised) {
          EXPECT_EQ(Increase(2), absl::OkStatus());
          if (!done) {
            EXPECT_THAT(Remove(nodes[1]).message(), HasSubstr("has made 3 of 5 replicas"));
          }
          time_.Advance(absl::Seconds(1));
        }
        EXPECT_EQ(Remove(nodes[1]), absl::OkStatus());
        EXPECT_EQ(Remove(nodes[1]), absl::OkStatus());
        EXPECT_EQ(Replicas(), raised ? 4 : 2);
        time_.Advance(absl::Minutes(2));
        EXPECT_FALSE(cluster_.Has(FakeScale::IdOfNode(nodes[1])));
        EXPECT_TRUE(cluster_.Has(FakeScale::IdOfNode(nodes[0])));
        EXPECT_TRUE(cluster_.Has(FakeScale::IdOfNode(nodes[2])));
        objects().Change(pool_, R"({"spec":{"replicas":0}})");
        time_.Advance(absl::Minutes(2));
      }
    }
  }
}

TEST_F(ScaleGroupsTest, TheSizeIsNotRaisedBeforeTheControllerHasSeenItLowered) {
  const std::vector<std::string> nodes = Running(3, true);
  Stop();
  EXPECT_EQ(Remove(nodes[1]), absl::OkStatus());
  EXPECT_THAT(Increase(1).message(), HasSubstr("has not seen yet"));
  EXPECT_EQ(Replicas(), 2);
  cluster_.behaviours["workers"].acts = true;
  objects().Change(pool_, R"({"status":{"x":"y"}})");
  time_.Advance(absl::Seconds(1));
  EXPECT_EQ(Increase(1), absl::OkStatus());
  time_.Advance(absl::Minutes(2));
  EXPECT_FALSE(cluster_.Has(FakeScale::IdOfNode(nodes[1])));
}

// Others raise the size before the controller acts: the removal is not repeated, and says so.
TEST_F(ScaleGroupsTest, ARemovalThatOthersHaveUndoneIsTold) {
  const std::vector<std::string> nodes = Running(3, true);
  Stop();
  EXPECT_EQ(Remove(nodes[1]), absl::OkStatus());
  objects().Change(pool_, R"({"spec":{"replicas":3}})");
  ASSERT_EQ(Refresh(), absl::OkStatus());
  const absl::Status told = Remove(nodes[1]);
  EXPECT_TRUE(absl::IsFailedPrecondition(told));
  EXPECT_THAT(told.message(), HasSubstr("take annotation fairlead.dev/removed-from off node"));
  EXPECT_EQ(Replicas(), 3);
  objects().Change(FakeScale::NodePath(nodes[1]),
                   R"({"metadata":{"annotations":{"fairlead.dev/removed-from":null}}})");
  ASSERT_EQ(Refresh(), absl::OkStatus());
  EXPECT_EQ(Remove(nodes[1]), absl::OkStatus());
  EXPECT_EQ(Replicas(), 2);
}

TEST_F(ScaleGroupsTest, NeverBelowTheMinimum) {
  const std::vector<std::string> nodes = Running(2, true, 2);
  EXPECT_THAT(Remove(nodes[1]).message(), HasSubstr("is at its minimum of 2"));
  EXPECT_THAT(objects().writes, IsEmpty());
  EXPECT_TRUE(absl::IsFailedPrecondition(Remove("never")));
}

TEST_F(ScaleGroupsTest, HostileObjectsDoNotCrash) {
  const std::vector<std::string> nodes = Running(1, true);
  for (
      const char* text :
      {"{}", R"({"metadata":7})", R"({"metadata":{"labels":{"pool":"workers"}},"spec":7})",
       R"({"metadata":{"name":"x","labels":{"pool":"workers"},"annotations":[]},"spec":{"providerID":{}}})"}) {
    objects().objects["/api/v1/nodes/x"] = *Json::Parse(text);
    objects().objects[pool_] = *Json::Parse(text);
    (void)Refresh();
    (void)Instances();
    (void)Remove(nodes[0]);
    (void)Increase(1);
    (void)Decrease(1);
  }
}

}  // namespace
}  // namespace fairlead::hook
