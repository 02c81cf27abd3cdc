// Objects of storage as clients list, watch and write them.
#include <gtest/gtest.h>

#include "sim/world/api_testing.h"

namespace fairlead::sim::world {
namespace {

constexpr char kNode[] = "volume.kubernetes.io/selected-node";
constexpr char kClaim[] = "/api/v1/namespaces/default/persistentvolumeclaims/c";

struct Case {
  ResourceType type;
  const char* path;
};
constexpr Case kCases[] = {
    {ResourceType::kPersistentVolumeClaims, "/api/v1/persistentvolumeclaims"},
    {ResourceType::kPersistentVolumes, "/api/v1/persistentvolumes"},
    {ResourceType::kStorageClasses, "/apis/storage.k8s.io/v1/storageclasses"},
    {ResourceType::kCsiNodes, "/apis/storage.k8s.io/v1/csinodes"},
    {ResourceType::kCsiDrivers, "/apis/storage.k8s.io/v1/csidrivers"},
    {ResourceType::kCsiStorageCapacities, "/apis/storage.k8s.io/v1/csistoragecapacities"},
    {ResourceType::kVolumeAttachments, "/apis/storage.k8s.io/v1/volumeattachments"}};

TEST(ApiVolumesTest, EveryKindIsListedAndWatched) {
  for (const Case& c : kCases) {
    TestWorld world;
    world.Create(c.type, {{"metadata", {{"name", "a"}}}});
    const TestWorld::Answer list = world.Call("GET", c.path);
    ASSERT_EQ(list.status, 200) << c.path;
    ASSERT_EQ(list.body["items"].size(), 1) << c.path;
    WatchLog log;
    world.server.OpenWatch(GetOf(absl::StrCat(c.path, "?watch=1&resourceVersion=",
                                              TextAt(list.body, {"metadata", "resourceVersion"}))),
                           log.Sink());
    world.Create(c.type, {{"metadata", {{"name", "b"}}}});
    world.Run(absl::Seconds(1));
    EXPECT_EQ(log.Take(), std::vector<std::string>{"ADDED b"}) << c.path;
  }
}

TEST(ApiVolumesTest, APatchOfAnotherVersionIsAConflict) {
  TestWorld world;
  world.Create(ResourceType::kPersistentVolumeClaims, {{"metadata", {{"name", "c"}}}});
  const std::string version = TextAt(world.Get(ResourceType::kPersistentVolumeClaims, "c"),
                                     {"metadata", "resourceVersion"});
  const Json patch = {
      {"metadata", {{"resourceVersion", version}, {"annotations", {{kNode, "n0"}}}}}};
  EXPECT_EQ(world.Call("PATCH", kClaim, patch, kube::kMergePatch).status, 200);
  EXPECT_EQ(TextAt(world.Get(ResourceType::kPersistentVolumeClaims, "c"),
                   {"metadata", "annotations", kNode}),
            "n0");
  EXPECT_EQ(world.Call("PATCH", kClaim, patch, kube::kMergePatch).status, 409);
}

TEST(ApiVolumesTest, TheStatusOfAClaimIsWrittenApart) {
  TestWorld world;
  world.Create(ResourceType::kPersistentVolumeClaims, {{"metadata", {{"name", "c"}}}});
  const Json patch = {{"status", {{"phase", "Bound"}}}};
  EXPECT_EQ(world.Call("PATCH", kClaim, patch, kube::kMergePatch).status, 200);
  EXPECT_EQ(TextAt(world.Get(ResourceType::kPersistentVolumeClaims, "c"), {"status", "phase"}), "");
  EXPECT_EQ(world.Call("PATCH", absl::StrCat(kClaim, "/status"), patch, kube::kMergePatch).status,
            200);
  EXPECT_EQ(TextAt(world.Get(ResourceType::kPersistentVolumeClaims, "c"), {"status", "phase"}),
            "Bound");
}

TEST(ApiVolumesTest, AWebhookRefusesPatchesOfClaimsByTheirNames) {
  TestWorld world;
  world.server.RefuseClaims("c");
  world.Create(ResourceType::kPersistentVolumeClaims, {{"metadata", {{"name", "c"}}}});
  const Json patch = {{"metadata", {{"annotations", {{kNode, "n0"}}}}}};
  EXPECT_EQ(world.Call("PATCH", kClaim, patch, kube::kMergePatch).status, 403);
  EXPECT_EQ(world.Call("GET", kClaim).status, 200);
}

}  // namespace
}  // namespace fairlead::sim::world
