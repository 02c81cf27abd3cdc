// A world without actors, for the tests of its parts. Thread-safety: none.
#pragma once

#include <string>
#include <utility>
#include <vector>

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

  // As a client; the answer's body as JSON where it is JSON.
  struct Answer {
    int status = 0;
    Json body;
    kube::HttpResponse response;
    [[nodiscard]] std::string reason() const { return TextAt(body, {"reason"}); }
    [[nodiscard]] std::string message() const { return TextAt(body, {"message"}); }
  };
  Answer Call(const std::string& method, const std::string& path, const Json& body = nullptr,
              const std::string& content_type = kube::kJson) {
    kube::HttpRequest request;
    request.method = method;
    request.path = path;
    request.content_type = content_type;
    if (!body.is_null()) request.body = Dump(body);
    Answer answer;
    answer.response = server.Handle(request, "client");
    answer.status = answer.response.status;
    answer.body = Parse(answer.response.body);
    return answer;
  }

  EventQueue time;
  ApiServer server;
};

// What a watch has been sent, frame by frame.
struct WatchLog {
  int status = 0;
  std::string content_type;
  std::vector<std::string> frames;
  bool ended = false;

  ApiServer::WatchSink Sink() {
    return {.headers =
                [this](int code, const std::string& type) {
                  status = code;
                  content_type = type;
                },
            .data = [this](std::string data) { frames.push_back(std::move(data)); },
            .end = [this] { ended = true; }};
  }
  // "ADDED a", "BOOKMARK 7 end", "ERROR 410 Expired"; and forgets them.
  std::vector<std::string> Take() {
    std::vector<std::string> out;
    for (const std::string& frame : frames) {
      const Json event = Parse(frame);
      const std::string type = TextAt(event, {"type"});
      const Json object = event.value("object", Json());
      std::string what = TextAt(object, {"metadata", "name"});
      if (type == "BOOKMARK") {
        what = TextAt(object, {"metadata", "resourceVersion"});
        if (At(object, {"metadata", "annotations", "k8s.io/initial-events-end"}) != nullptr) {
          what += " end";
        }
      } else if (type == "ERROR") {
        what = absl::StrCat(IntAt(object, {"code"}), " ", TextAt(object, {"reason"}));
      }
      out.push_back(absl::StrCat(type, " ", what));
    }
    frames.clear();
    return out;
  }
};

inline kube::HttpRequest GetOf(const std::string& path, const std::string& accept = kube::kJson) {
  kube::HttpRequest request;
  request.path = path;
  request.accept = accept;
  return request;
}

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
