// A world without actors, for the tests of its parts. Thread-safety: none.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "sim/event_queue.h"
#include "sim/world/api_json.h"
#include "sim/world/api_server.h"

namespace fairlead::sim::world {

inline absl::Time TestStart() { return absl::FromUnixSeconds(1'800'000'000); }

struct TestWorld {
  TestWorld() : time(TestStart()), server(&time) {}

  void Run(absl::Duration by) { time.RunUntil(time.now() + by); }
  void Create(ResourceType type, Json object) {
    const absl::Status status = server.Create(type, std::move(object), "test");
    EXPECT_TRUE(status.ok()) << status;
  }
  // Of namespace "default", or cluster-wide.
  const Json* Find(ResourceType type, const std::string& name) const {
    return server.Find(type, RowOf(type).namespaced ? "default" : "", name);
  }
  // Null JSON if there is none.
  const Json& Get(ResourceType type, const std::string& name) const {
    static const Json kNull;
    const Json* const found = Find(type, name);
    return found == nullptr ? kNull : *found;
  }
  void Merge(ResourceType type, const std::string& name, const Json& patch) {
    const absl::Status status = server.Modify(
        type, RowOf(type).namespaced ? "default" : "", name,
        [&](Json& object) {
          object.merge_patch(patch);
          return absl::OkStatus();
        },
        "test");
    EXPECT_TRUE(status.ok()) << status;
  }

  EventQueue time;
  ApiServer server;
};

inline Json PodJson(const std::string& name) {
  return {{"metadata", {{"name", name}, {"namespace", "default"}}},
          {"spec",
           {{"schedulerName", "fairlead"},
            {"containers",
             Json::array({{{"name", "c"}, {"resources", {{"requests", {{"cpu", "1"}}}}}}})}}}};
}

inline Json NodeJson(const std::string& name) {
  const Json amounts = {{"cpu", "8"}, {"memory", "32Gi"}, {"pods", "110"}};
  return {{"metadata", {{"name", name}}},
          {"status",
           {{"capacity", amounts},
            {"allocatable", amounts},
            {"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})}}}};
}

}  // namespace fairlead::sim::world
