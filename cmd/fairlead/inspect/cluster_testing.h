// A cluster that can be listed and nothing else, for tests of commands that read. It answers GET of
// collections from manifests and refuses every other method.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "document/yaml.h"
#include "kube/codec/codec.h"
#include "kube/transport/fake_transport.h"
#include "scheduler/model/kind.h"
#include "sim/present_testing.h"

namespace fairlead::cmd::testing {

class ReadOnlyCluster {
 public:
  // Each object is given a uid, a version and an age.
  explicit ReadOnlyCluster(const std::string& yaml)
      : clock_(sim::testing::PresentTime()), transport_(clock_) {
    using Reply = kube::FakeTransport::Reply;
    transport_.On("GET", "*", Reply::Json(200, R"({"metadata":{},"items":[]})"));
    const absl::StatusOr<std::vector<Json>> documents = LoadYaml(yaml);
    EXPECT_TRUE(documents.ok()) << documents.status();
    std::map<std::string, Json> items;  // by path
    int number = 100;
    for (Json document : documents.ok() ? *documents : std::vector<Json>()) {
      if (document.is_null()) continue;
      Json& metadata = *document.Find("metadata");
      metadata.Set("uid", absl::StrCat("uid-", ++number));
      metadata.Set("resourceVersion", absl::StrCat(number)).Set("generation", Json::Int(1));
      metadata.Set("creationTimestamp", "2026-03-01T22:00:00Z");
      for (const model::KindTraits& traits : model::kKindTraits) {
        if (document.TextAt({"kind"}) != traits.name ||
            document.TextAt({"apiVersion"}) != traits.api_version) {
          continue;
        }
        items.try_emplace(kube::CollectionPath(traits.kind), Json::Array())
            .first->second.Add(std::move(document));
        break;
      }
    }
    for (auto& [path, list] : items) {
      Json answer = Json::Object();
      answer.Set("metadata", Json::Object()).Set("items", std::move(list));
      transport_.On("GET", path, Reply::Json(200, answer.Compact()));
    }
    transport_.When([](const kube::HttpRequest& request) { return request.method != "GET"; },
                    [](const kube::HttpRequest& request) {
                      ADD_FAILURE() << request.method << " " << request.path;
                      return Reply::Json(405, R"({"kind":"Status","code":405})");
                    });
  }

  kube::FakeTransport& transport() { return transport_; }
  [[nodiscard]] absl::Time now() const { return clock_.Now(); }
  [[nodiscard]] size_t requests() const { return transport_.exchanges().size(); }

 private:
  FakeClock clock_;
  kube::FakeTransport transport_;
};

}  // namespace fairlead::cmd::testing
