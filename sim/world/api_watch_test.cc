// Watches: what is sent, from which version, in which encoding, and when they end.
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/codec/codec.h"
#include "sim/world/api_testing.h"

namespace fairlead::sim::world {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kWatch[] = "/api/v1/pods?watch=1";
constexpr char kRunning[] =
    "/api/v1/"
    "pods?watch=1&resourceVersion=1&fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase"
    "%21%3DFailed";

class ApiWatchTest : public ::testing::Test {
 protected:
  ApiServer::WatchId Open(const std::string& path, const std::string& accept = kube::kJson) {
    return world_.server.OpenWatch(GetOf(path, accept), log_.Sink());
  }
  void SetPhase(const std::string& pod, const std::string& phase) {
    world_.Merge(ResourceType::kPods, pod, {{"status", {{"phase", phase}}}});
  }

  TestWorld world_;
  WatchLog log_;
};

TEST_F(ApiWatchTest, WithoutAVersionEverythingIsAddedFirst) {
  world_.Create(ResourceType::kPods, PodJson("a"));
  Open(kWatch);
  EXPECT_EQ(log_.status, 200);
  EXPECT_EQ(log_.content_type, kube::kJson);
  EXPECT_THAT(log_.Take(), ElementsAre("ADDED a"));
  SetPhase("a", "Running");
  world_.Create(ResourceType::kNodes, NodeJson("n"));
  EXPECT_TRUE(world_.server.RemoveNow(ResourceType::kPods, "default", "a", "t").ok());
  EXPECT_THAT(log_.Take(), ElementsAre("MODIFIED a", "DELETED a"));
}

TEST_F(ApiWatchTest, FromAVersionWhatCameAfterItIsSent) {
  world_.Create(ResourceType::kPods, PodJson("a"));
  const uint64_t version = world_.server.version();
  SetPhase("a", "Running");
  world_.Create(ResourceType::kPods, PodJson("b"));
  Open(absl::StrCat(kWatch, "&resourceVersion=", version));
  EXPECT_THAT(log_.Take(), ElementsAre("MODIFIED a", "ADDED b"));
}

TEST_F(ApiWatchTest, ADeletionHasTheLastStateAndItsOwnVersion) {
  world_.Create(ResourceType::kPods, PodJson("a"));
  Open(absl::StrCat(kWatch, "&resourceVersion=", world_.server.version()));
  EXPECT_TRUE(world_.server.RemoveNow(ResourceType::kPods, "default", "a", "t").ok());
  ASSERT_EQ(log_.frames.size(), 1u);
  const Json event = Parse(log_.frames[0]);
  EXPECT_EQ(TextAt(event, {"object", "metadata", "resourceVersion"}),
            absl::StrCat(world_.server.version()));
  EXPECT_EQ(TextAt(event, {"object", "status", "phase"}), "Pending");
}

TEST_F(ApiWatchTest, WhatLeavesTheSelectorIsDeletedAndWhatComesBackIsAdded) {
  Open(kRunning);
  world_.Create(ResourceType::kPods, PodJson("a"));
  SetPhase("a", "Running");
  SetPhase("a", "Succeeded");
  EXPECT_EQ(TextAt(Parse(log_.frames.back()), {"object", "status", "phase"}), "Running")
      << "with the state that it had in the selector";
  EXPECT_EQ(TextAt(Parse(log_.frames.back()), {"object", "metadata", "resourceVersion"}),
            absl::StrCat(world_.server.version()));
  EXPECT_THAT(log_.Take(), ElementsAre("ADDED a", "MODIFIED a", "DELETED a"));
  world_.Merge(ResourceType::kPods, "a", {{"metadata", {{"labels", {{"x", "y"}}}}}});
  EXPECT_TRUE(world_.server.RemoveNow(ResourceType::kPods, "default", "a", "t").ok());
  EXPECT_THAT(log_.Take(), IsEmpty());
}

TEST_F(ApiWatchTest, InitialEventsEndWithABookmark) {
  world_.Create(ResourceType::kPods, PodJson("a"));
  Open(absl::StrCat(kWatch, "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&",
                    "allowWatchBookmarks=true"));
  EXPECT_THAT(log_.Take(), ElementsAre("ADDED a", "BOOKMARK 2 end"));
  world_.Create(ResourceType::kNodes, NodeJson("n"));
  world_.Run(absl::Minutes(2));
  EXPECT_THAT(log_.Take(), ElementsAre("BOOKMARK 3", "BOOKMARK 3"));
}

TEST_F(ApiWatchTest, WithoutTheMatchInitialEventsAreRefused) {
  Open(absl::StrCat(kWatch, "&sendInitialEvents=true"));
  EXPECT_EQ(log_.status, 422);
  EXPECT_THAT(log_.frames[0], HasSubstr("resourceVersionMatch"));
  EXPECT_TRUE(log_.ended);
}

TEST_F(ApiWatchTest, BookmarksAreForThoseThatAskedForThem) {
  Open(absl::StrCat(kWatch, "&resourceVersion=1"));
  world_.Run(absl::Minutes(5));
  EXPECT_THAT(log_.Take(), IsEmpty());
}

TEST_F(ApiWatchTest, AfterCompactionAnOlderVersionIsExpired) {
  world_.Create(ResourceType::kPods, PodJson("a"));
  world_.Create(ResourceType::kPods, PodJson("b"));
  world_.server.Compact();
  Open(absl::StrCat(kWatch, "&resourceVersion=", world_.server.version() - 1));
  EXPECT_EQ(log_.status, 200);
  EXPECT_TRUE(log_.ended);
  EXPECT_THAT(log_.Take(), ElementsAre("ERROR 410 Expired"));
  log_.ended = false;
  Open(absl::StrCat(kWatch, "&resourceVersion=", world_.server.version()));
  EXPECT_FALSE(log_.ended);
  EXPECT_THAT(log_.Take(), IsEmpty());
}

TEST_F(ApiWatchTest, HistoryIsBounded) {
  world_.Create(ResourceType::kPods, PodJson("a"));
  const uint64_t version = world_.server.version();
  for (int i = 0; i < 5000; ++i) {
    world_.Merge(ResourceType::kPods, "a", {{"metadata", {{"labels", {{"i", absl::StrCat(i)}}}}}});
  }
  Open(absl::StrCat(kWatch, "&resourceVersion=", version));
  EXPECT_THAT(log_.Take(), ElementsAre("ERROR 410 Expired"));
}

TEST_F(ApiWatchTest, AWatchEndsWhenItsTimeIsOverOrTheServerRestarts) {
  Open(absl::StrCat(kWatch, "&timeoutSeconds=10"));
  world_.Run(absl::Seconds(9));
  EXPECT_FALSE(log_.ended);
  world_.Run(absl::Seconds(1));
  EXPECT_TRUE(log_.ended);
  world_.Create(ResourceType::kPods, PodJson("a"));
  EXPECT_THAT(log_.Take(), IsEmpty());
  log_.ended = false;
  Open(kWatch);
  world_.server.EndAllWatches();
  EXPECT_TRUE(log_.ended);
}

TEST_F(ApiWatchTest, AClosedWatchIsSilent) {
  const ApiServer::WatchId id = Open(absl::StrCat(kWatch, "&timeoutSeconds=10"));
  world_.server.CloseWatch(id);
  world_.Create(ResourceType::kPods, PodJson("a"));
  world_.Run(absl::Minutes(1));
  EXPECT_THAT(log_.Take(), IsEmpty());
  EXPECT_FALSE(log_.ended);
}

TEST_F(ApiWatchTest, ANamespaceIsWatchedAlone) {
  Open("/api/v1/namespaces/default/pods?watch=1");
  Json other = PodJson("b");
  other["metadata"]["namespace"] = "default-2";
  world_.Create(ResourceType::kPods, other);
  world_.Create(ResourceType::kPods, PodJson("a"));
  EXPECT_THAT(log_.Take(), ElementsAre("ADDED a"));
}

// In the words of the product's decoder.
TEST_F(ApiWatchTest, InProtobufTheSameIsTold) {
  world_.Create(ResourceType::kPods, PodJson("a"));
  const uint64_t version = world_.server.version();
  const std::string accept = absl::StrCat(kube::kProtobuf, ", ", kube::kJson);
  Open(absl::StrCat(kWatch, "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&",
                    "allowWatchBookmarks=true"),
       accept);
  SetPhase("a", "Running");
  EXPECT_TRUE(world_.server.RemoveNow(ResourceType::kPods, "default", "a", "t").ok());
  kube::WatchDecoder decoder(model::Kind::kPod, log_.content_type);
  std::vector<kube::WatchEvent> events;
  for (const std::string& frame : log_.frames) ASSERT_TRUE(decoder.Feed(frame, events).ok());
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].type, kube::WatchEventType::kAdded);
  EXPECT_EQ(events[0].resource_version, absl::StrCat(version));
  EXPECT_TRUE(events[1].initial_events_end);
  EXPECT_EQ(events[1].resource_version, absl::StrCat(version));
  EXPECT_EQ(std::get<model::Pod>(*events[2].object).phase, model::PodPhase::kRunning);
  EXPECT_EQ(events[3].type, kube::WatchEventType::kDeleted);
  EXPECT_EQ(events[3].resource_version, absl::StrCat(world_.server.version()));

  world_.server.Compact();
  WatchLog expired;
  world_.server.OpenWatch(GetOf(absl::StrCat(kWatch, "&resourceVersion=1"), accept),
                          expired.Sink());
  kube::WatchDecoder again(model::Kind::kPod, expired.content_type);
  events.clear();
  ASSERT_TRUE(again.Feed(expired.frames.at(0), events).ok());
  EXPECT_EQ(events.at(0).error.code, 410);
  EXPECT_EQ(events.at(0).error.reason, "Expired");
}

}  // namespace
}  // namespace fairlead::sim::world
