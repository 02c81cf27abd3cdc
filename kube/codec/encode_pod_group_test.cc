// What is written is what is read: a PodGroup, what of it follows its owner, the group of a pod.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/codec/codec.h"
#include "scheduler/model/api_names.h"

namespace fairlead::kube {
namespace {

model::PodGroup Example() {
  model::PodGroup group;
  group.meta.ns = "team";
  group.meta.name = "pg-j-u";
  group.meta.labels = {{model::kQueueLabel, "q"}};
  group.meta.annotations = {{model::kFollowsOwnerAnnotation, "true"}};
  group.meta.owners = {{"batch/v1", "Job", "j", "u", true}};
  group.queue = "q";
  group.priority_class_name = "train";
  group.preemptibility = model::Preemptibility::kNonPreemptible;
  group.min_sub_group = 1;
  group.sub_groups = {{"a", "", std::nullopt, 1, {}},
                      {"a-0", "a", 2, std::nullopt, {"t", "r", "p"}}};
  group.topology = {"t", "rack", ""};
  group.preemption_delay = absl::Minutes(5);
  group.staleness_grace_period = -absl::Seconds(1);
  return group;
}

TEST(EncodePodGroupTest, ACreatedGroupIsReadAsItWasMeant) {
  const model::PodGroup group = Example();
  const EncodedWrite write = EncodeCreatePodGroup(group);
  EXPECT_EQ(write.method, "POST");
  EXPECT_EQ(write.path, "/apis/scheduling.run.ai/v2alpha2/namespaces/team/podgroups");
  const auto object = DecodeObject(model::Kind::kPodGroup, "application/json", write.body);
  ASSERT_TRUE(object.ok()) << object.status();
  const auto& read = std::get<model::PodGroup>(*object);
  EXPECT_EQ(static_cast<const model::PodGroupSpec&>(read),
            static_cast<const model::PodGroupSpec&>(group));
  EXPECT_EQ(read.meta.name, group.meta.name);
  EXPECT_EQ(read.meta.ns, group.meta.ns);
  EXPECT_EQ(read.meta.labels, group.meta.labels);
  EXPECT_EQ(read.meta.annotations, group.meta.annotations);
  EXPECT_THAT(
      write.body,
      ::testing::HasSubstr(
          R"("ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"j","uid":"u","controller":true}])"));
}

TEST(EncodePodGroupTest, AnUpdateWritesWhatFollowsTheOwnerOfOneVersion) {
  model::PodGroup group = Example();
  group.meta.uid = "u-g";
  group.meta.resource_version = "17";
  const EncodedWrite write = EncodePodGroupUpdate(group);
  EXPECT_EQ(write.method, "PATCH");
  EXPECT_EQ(write.path, "/apis/scheduling.run.ai/v2alpha2/namespaces/team/podgroups/pg-j-u");
  EXPECT_EQ(write.body,
            R"({"metadata":{"uid":"u-g","resourceVersion":"17"},"spec":{"minMember":null,)"
            R"("minSubGroup":1,"priorityClassName":"train","preemptibility":"non-preemptible",)"
            R"("preemptionDelay":"5m","stalenessGracePeriod":"-1s","subGroups":[)"
            R"({"name":"a","minSubGroup":1},{"name":"a-0","parent":"a","minMember":2,)"
            R"("topologyConstraint":{"topology":"t","requiredTopologyLevel":"r",)"
            R"("preferredTopologyLevel":"p"}}]}})");
}

TEST(EncodePodGroupTest, AnUpdateLeavesOutWhatTheOwnerDoesNotSay) {
  model::PodGroup group;
  group.meta.ns = "team";
  group.meta.name = "pg";
  group.meta.uid = "u-g";
  group.min_member = 4;
  EXPECT_EQ(
      EncodePodGroupUpdate(group).body,
      R"({"metadata":{"uid":"u-g"},"spec":{"minMember":4,"minSubGroup":null,"subGroups":[]}})");
}

TEST(EncodePodGroupTest, AGroupOfAPod) {
  EXPECT_EQ(EncodePodGroupOf({"team", "p", "u", "pg-j-u", "a-0"}).body,
            R"({"metadata":{"uid":"u","annotations":{"pod-group-name":"pg-j-u"},)"
            R"("labels":{"kai.scheduler/subgroup-name":"a-0"}}})");
  const EncodedWrite write = EncodePodGroupOf({"team", "p", "u", "pg-j-u", ""});
  EXPECT_EQ(write.path, "/api/v1/namespaces/team/pods/p");
  EXPECT_EQ(write.body, R"({"metadata":{"uid":"u","annotations":{"pod-group-name":"pg-j-u"}}})");
}

}  // namespace
}  // namespace fairlead::kube
