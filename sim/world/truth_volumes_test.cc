#include "sim/world/truth_volumes.h"

#include <gtest/gtest.h>

#include "sim/world/api_json.h"
#include "sim/world/objects.h"
#include "sim/world/truth.h"
#include "sim/world/volume_objects.h"

namespace fairlead::sim::world {
namespace {

class TruthVolumesTest : public ::testing::Test {
 protected:
  TruthVolumesTest() {
    Operation queue;
    queue.With("name", "q").With("ns", "ns");
    Create(ResourceType::kQueues, MakeQueue(queue));
    for (const char* where : {"zone", "none"}) {
      Operation fields;
      fields.With("name", where).With("where", where);
      Create(ResourceType::kStorageClasses, MakeStorageClass(fields));
    }
  }
  void Create(ResourceType type, Json object) {
    ASSERT_TRUE(server_.Create(type, std::move(object), "test").ok());
  }
  void Node(const std::string& name, const char* zone) {
    Operation fields;
    fields.With("name", name).With("zone", zone);
    Create(ResourceType::kNodes, MakeNode(fields));
  }
  void LocalVolume(const std::string& name, const char* node, const char* phase = "Available") {
    Operation fields;
    fields.With("name", name).With("class", "none").With("node", node).With("gib", 1);
    Json volume = MakeLocalVolume(fields);
    volume["status"]["phase"] = phase;
    Create(ResourceType::kPersistentVolumes, std::move(volume));
  }
  // With its claims.
  void Pod(const std::string& name, const char* kind, const char* storage_class,
           const char* modes = "", const char* group = "") {
    Operation fields;
    fields.With("name", "j").With("ns", "ns").With("queue", "q").With("cpu", 100);
    fields.With("volume", kind).With("volume_class", storage_class);
    fields.With("volume_modes", modes).With("group", group);
    const Json pod = MakePod(fields, name);
    const Json specs =
        Json::parse(pod["metadata"]["annotations"][kVolumeClaims].get<std::string>());
    Create(ResourceType::kPods, pod);
    for (auto it = specs.begin(); it != specs.end(); ++it) {
      if (server_.Find(ResourceType::kPersistentVolumeClaims, "ns", it.key()) != nullptr) continue;
      Create(ResourceType::kPersistentVolumeClaims, MakeVolumeClaim("ns", it.key(), *it));
    }
  }
  void Change(ResourceType type, const std::string& ns, const std::string& name,
              const Json& patch) {
    const auto change = [&](Json& object) {
      object.merge_patch(patch);
      return absl::OkStatus();
    };
    ASSERT_TRUE(server_.Modify(type, ns, name, change, "test").ok());
  }
  void ChangeClaim(const std::string& name, const Json& patch) {
    Change(ResourceType::kPersistentVolumeClaims, "ns", name, patch);
  }
  void SelectNode(const std::string& claim, const char* node) {
    ChangeClaim(claim, {{"metadata", {{"annotations", {{kSelectedNode, node}}}}}});
  }
  void Bind(const std::string& claim, const std::string& volume) {
    Change(ResourceType::kPersistentVolumes, "", volume,
           {{"spec", {{"claimRef", {{"namespace", "ns"}, {"name", claim}}}}},
            {"status", {{"phase", "Bound"}}}});
    ChangeClaim(claim, {{"spec", {{"volumeName", volume}}},
                        {"metadata", {{"annotations", {{kBindCompleted, "yes"}}}}}});
  }
  void SetNode(const std::string& pod, const char* node) {
    Change(ResourceType::kPods, "ns", pod, {{"spec", {{"nodeName", node}}}});
  }
  Workload Waiting(const std::string& key) {
    for (const Workload& each : truth_.Waiting()) {
      if (each.key == "ns/" + key) return each;
    }
    ADD_FAILURE() << key << " does not wait";
    return {};
  }
  bool Fits(const std::string& key) {
    const Workload workload = Waiting(key);
    return truth_.Entitled(workload) && truth_.FitsNow(workload);
  }

  EventQueue time_{absl::FromUnixSeconds(1'772'409'600)};
  ApiServer server_{&time_};
  Truth truth_{&time_, &server_};
};

TEST_F(TruthVolumesTest, WhatIsProvisionedFitsWhereItsNodeIs) {
  Node("n0", "zone-a");
  Node("n1", "zone-b");
  Pod("p", "own", "zone");
  EXPECT_TRUE(Fits("p"));
  SelectNode("data-p", "n1");
  EXPECT_TRUE(Fits("p"));
  ASSERT_TRUE(server_.RemoveNow(ResourceType::kNodes, "", "n1", "test").ok());
  EXPECT_FALSE(Fits("p"));
}

TEST_F(TruthVolumesTest, AVolumeByHandDecidesTheNode) {
  Node("n0", "zone-a");
  Node("n1", "zone-a");
  Pod("p", "own", "none");
  EXPECT_FALSE(Fits("p"));
  LocalVolume("released", "n0", "Released");
  EXPECT_FALSE(Fits("p"));
  LocalVolume("v", "n0");
  EXPECT_TRUE(Fits("p"));
  Bind("data-p", "v");
  EXPECT_TRUE(Fits("p"));
  ASSERT_TRUE(server_.RemoveNow(ResourceType::kNodes, "", "n0", "test").ok());
  EXPECT_FALSE(Fits("p"));
}

TEST_F(TruthVolumesTest, EachPodOfAGangNeedsAVolumeOfItsOwn) {
  Operation group;
  group.With("name", "g").With("ns", "ns").With("queue", "q").With("min", 2);
  Create(ResourceType::kPodGroups, MakeGroup(group));
  Node("n0", "zone-a");
  LocalVolume("v", "n0");
  Pod("p", "own", "none", "", "g");
  Pod("q", "own", "none", "", "g");
  EXPECT_FALSE(Fits("g"));
  LocalVolume("w", "n0");
  EXPECT_TRUE(Fits("g"));
  // Which of them takes the place is not judged.
  Bind("data-p", "v");
  EXPECT_FALSE(truth_.Entitled(Waiting("g")));
}

TEST_F(TruthVolumesTest, AnUnboundClaimKeepsItsPodsTogether) {
  Operation group;
  group.With("name", "g").With("ns", "ns").With("queue", "q").With("min", 2);
  Create(ResourceType::kPodGroups, MakeGroup(group));
  for (const char* node : {"n0", "n1"}) {
    Operation fields;
    fields.With("name", node).With("cpu", 150);
    Create(ResourceType::kNodes, MakeNode(fields));
  }
  Pod("p", "shared", "zone", "", "g");
  Pod("q", "shared", "zone", "", "g");
  EXPECT_TRUE(truth_.Entitled(Waiting("g")));
  EXPECT_FALSE(truth_.FitsNow(Waiting("g")));
  Node("n2", "zone-a");
  EXPECT_TRUE(truth_.FitsNow(Waiting("g")));
}

TEST_F(TruthVolumesTest, AClaimForOnePodIsFreeWhenNoOtherHasANode) {
  Node("n0", "zone-a");
  Pod("p", "shared", "zone", "ReadWriteOncePod");
  Pod("q", "shared", "zone", "ReadWriteOncePod");
  EXPECT_TRUE(Fits("q"));
  SetNode("p", "n0");
  EXPECT_FALSE(Fits("q"));
  EXPECT_EQ(truth_.VolumeUser(truth_.pods().at("ns/q"), "shared-j"), "ns/p");
  Change(ResourceType::kPods, "ns", "p", {{"status", {{"phase", "Succeeded"}}}});
  EXPECT_TRUE(Fits("q"));
}

TEST_F(TruthVolumesTest, ANodeHasALimitOfVolumes) {
  Node("n0", "zone-a");
  Pod("p", "shared", "zone");
  Pod("q", "shared", "zone");
  Pod("r", "own", "zone");
  Create(ResourceType::kCsiNodes, MakeCsiNode("n0", 1));
  EXPECT_TRUE(Fits("r"));
  SetNode("p", "n0");
  EXPECT_EQ(truth_.AttachedTo("n0"), std::set<std::string>{"ns/shared-j"});
  EXPECT_FALSE(Fits("r"));
  EXPECT_TRUE(Fits("q"));  // what is attached already counts once
}

TEST_F(TruthVolumesTest, WhatIsMissingOrOnItsWayOutIsNotJudged) {
  Node("n0", "zone-a");
  Pod("p", "own", "zone");
  ASSERT_TRUE(server_.Remove(ResourceType::kPersistentVolumeClaims, "ns", "data-p", "test").ok());
  EXPECT_FALSE(truth_.Entitled(Waiting("p")));
  ASSERT_TRUE(
      server_.RemoveNow(ResourceType::kPersistentVolumeClaims, "ns", "data-p", "test").ok());
  EXPECT_FALSE(truth_.Entitled(Waiting("p")));
}

TEST_F(TruthVolumesTest, RemembersWhatWasBound) {
  LocalVolume("v", "n0");
  Pod("p", "own", "none");
  EXPECT_FALSE(truth_.volumes().WasBoundSince("ns", "data-p", absl::InfinitePast()));
  Bind("data-p", "v");
  const absl::Time then = time_.now();
  time_.RunUntil(then + absl::Seconds(5));
  EXPECT_TRUE(truth_.volumes().WasBoundSince("ns", "data-p", time_.now()));
  ASSERT_TRUE(
      server_.RemoveNow(ResourceType::kPersistentVolumeClaims, "ns", "data-p", "test").ok());
  EXPECT_TRUE(truth_.volumes().WasBoundSince("ns", "data-p", time_.now()));
  EXPECT_FALSE(truth_.volumes().WasBoundSince("ns", "data-p", time_.now() + absl::Nanoseconds(1)));
}

TEST_F(TruthVolumesTest, KnowsWhatIsOnItsWay) {
  Pod("p", "own", "zone");
  const absl::Time later = time_.now() + absl::Seconds(1);
  time_.RunUntil(later + absl::Seconds(1));
  EXPECT_FALSE(truth_.AwaitsVolumes(Waiting("p"), later));
  SelectNode("data-p", "n0");
  time_.RunUntil(later + absl::Minutes(1));
  EXPECT_TRUE(truth_.AwaitsVolumes(Waiting("p"), time_.now()));
}

}  // namespace
}  // namespace fairlead::sim::world
