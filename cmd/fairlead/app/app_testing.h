// The whole Application before a scripted API server, for its tests. Header only; never part of the
// product. Thread-safety: one thread.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cmd/fairlead/app/app.h"
#include "document/json.h"
#include "kube/transport/fake_transport.h"

namespace fairlead::cmd::testing {

using kube::FakeTransport;
using Reply = FakeTransport::Reply;

inline constexpr char kLeases[] = "/apis/coordination.k8s.io/v1/namespaces/fairlead/leases";
inline constexpr char kLease[] = "/apis/coordination.k8s.io/v1/namespaces/fairlead/leases/fairlead";
inline constexpr char kRequests[] = "/apis/fairlead.dev/v1alpha1/noderequests";

inline constexpr char kQueues[] =
    R"({"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"default-queue","uid":"q"},)"
    R"("spec":{"resources":{"gpu":{"quota":-1,"limit":-1},"cpu":{"quota":-1,"limit":-1},)"
    R"("memory":{"quota":-1,"limit":-1}}}}]})";
inline constexpr char kNodes[] =
    R"({"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"n1","uid":"u-n1"},)"
    R"("status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"10"},)"
    R"("conditions":[{"type":"Ready","status":"True"}]}}]})";
inline std::string Pods(absl::string_view cpu) {
  return absl::StrCat(
      R"({"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"p","namespace":"ns",)",
      R"("uid":"u-p","creationTimestamp":"2026-03-02T00:00:00Z"},"spec":{"schedulerName":"fairlead",)",
      R"("containers":[{"name":"c","resources":{"requests":{"cpu":")", cpu,
      R"("}}}]},"status":{"phase":"Pending"}}]})");
}

class AppTest : public ::testing::Test {
 protected:
  AppTest() {
    // No WatchList, so that every kind is a LIST and then a watch that stays open.
    transport_.On("GET", "*",
                  Reply::Json(200, R"({"metadata":{"resourceVersion":"1"},"items":[]})"));
    transport_.On("GET", "/api/v1/nodes", Reply::Json(200, kNodes));
    transport_.On("GET", "/apis/scheduling.run.ai/v2/queues", Reply::Json(200, kQueues));
    transport_.On("GET", "/api/v1/pods", Reply::Json(200, Pods("1")));
    ServeWatches();
    transport_.On("GET", kLease, Reply::Json(404, R"({"kind":"Status","code":404})"));
    transport_.On("POST", "*", Reply::Json(201, "{}"));
    transport_.On("PATCH", "*", Reply::Json(200, "{}"));
    transport_.On("POST", kLeases, [](const kube::HttpRequest& request) {
      return Reply::Json(201, WithVersion(request.body));
    });
    transport_.On("PATCH", kLease, Reply::Json(200, LeaseOf("me", "2")));
    options_.core = core::KwokOptions();
    options_.identity = "me";
    options_.drain_timeout = absl::ZeroDuration();
    options_.release_timeout = absl::ZeroDuration();
    options_.kwok.boot_delay = absl::Seconds(5);
  }
  // The newest script answers: call it again after each script that names a collection.
  void ServeWatches() {
    transport_.When(
        [](const kube::HttpRequest& request) { return absl::StrContains(request.path, "watch="); },
        [](const kube::HttpRequest& request) {
          return absl::StrContains(request.path, "sendInitialEvents")
                     ? Reply::Json(400, R"({"kind":"Status","code":400})")
                     : Reply::Watch();
        });
  }
  static std::string WithVersion(const std::string& body) {
    Json lease = *Json::Parse(body);
    lease.Find("metadata")->Set("resourceVersion", "1");
    return lease.Compact();
  }
  static std::string LeaseOf(absl::string_view holder, absl::string_view version) {
    return absl::StrCat(
        R"({"kind":"Lease","metadata":{"name":"fairlead","resourceVersion":")", version,
        R"("},"spec":{"holderIdentity":")", holder,
        R"(","leaseDurationSeconds":15,"acquireTime":"2026-03-02T00:00:00.000000Z",)"
        R"("renewTime":"2026-03-02T00:00:0)",
        version, R"(.000000Z","leaseTransitions":0}})");
  }
  void HeldByAnother() { transport_.On("GET", kLease, Reply::Json(200, LeaseOf("other", "1"))); }

  void Begin() {
    app_ = std::make_unique<Application>(
        Application::Ports{&transport_, &transport_, &clock_, usage_database_, connect_extender_,
                           connect_plugins_},
        options_, &hook::Catalog::BuiltIn(), &logger_, observer_);
    ASSERT_TRUE(app_->Begin().ok());
  }
  // Runs everything that is due within `time`.
  bool Pass(absl::Duration time) {
    bool going = true;
    for (absl::Duration passed; passed <= time; passed += absl::Milliseconds(500)) {
      transport_.Pump();
      going = app_->Turn(absl::ZeroDuration()) && going;
      transport_.Pump();
      going = app_->Turn(absl::ZeroDuration()) && going;
      ShowStoredRequests();
      transport_.Advance(absl::Milliseconds(500));
    }
    return going;
  }
  // The API server's effect of storing a NodeRequest: the watch shows it, with a uid.
  void ShowStoredRequests() {
    const auto watch = transport_.FindOpen("GET", kRequests);
    if (!watch.has_value()) return;
    const auto stored = transport_.Sent("POST", kRequests);
    for (; shown_ < stored.size(); ++shown_) {
      Json object = *Json::Parse(stored[shown_]->request.body);
      object.Find("metadata")->Set("uid", absl::StrCat("u-stored-", shown_));
      object.Find("metadata")->Set("resourceVersion", absl::StrCat(100 + shown_));
      transport_.Data(*watch,
                      absl::StrCat(R"({"type":"ADDED","object":)", object.Compact(), "}\n"));
    }
  }
  size_t Bindings() const {
    return transport_.Sent("POST", "/api/v1/namespaces/ns/pods/p/binding").size();
  }
  size_t NodesCreated() const { return transport_.Sent("POST", "/api/v1/nodes").size(); }

  FakeClock clock_{absl::FromUnixSeconds(1'772'409'600)};
  FakeTransport transport_{clock_};
  kube::HttpTransport* usage_database_ = nullptr;
  decltype(Application::Ports::connect_extender) connect_extender_ = nullptr;
  decltype(Application::Ports::connect_plugins) connect_plugins_ = nullptr;
  std::string log_;
  Logger logger_{&clock_, LogLevel::kDebug,
                 [this](absl::string_view line) { absl::StrAppend(&log_, line); }};
  AppOptions options_;
  AppObserver* observer_ = nullptr;
  std::unique_ptr<Application> app_;
  size_t shown_ = 0;  // stored NodeRequests that the watch has shown
};

}  // namespace fairlead::cmd::testing
