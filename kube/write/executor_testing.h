// Shared by the tests of the executor: actions, answers of the API server, and an executor with a
// scripted one. Header only; never part of the product.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kube/watch/runtime_test_util.h"
#include "kube/write/executor.h"

namespace fairlead::kube {

using Reply = FakeTransport::Reply;

inline constexpr char kPodPath[] = "/api/v1/namespaces/ns/pods/p";
inline constexpr char kBindPath[] = "/api/v1/namespaces/ns/pods/p/binding";
inline constexpr char kStatusPath[] = "/api/v1/namespaces/ns/pods/p/status";
inline constexpr char kEvictPath[] = "/api/v1/namespaces/ns/pods/p/eviction";
inline constexpr char kNodePath[] = "/api/v1/nodes/n1";

inline const Reply kOk = Reply::Json(200, "{}");
inline const Reply kCreated = Reply::Json(201, "{}");
inline Reply Lost() { return Reply::Failure(absl::UnavailableError("connection reset")); }

inline model::BindPod Bind(const std::string& name = "p") {
  return model::BindPod{"ns", name, "u1", "n1", {}};
}
inline model::SetPodUnschedulable Unschedulable(const std::string& name = "p",
                                                const std::string& message = "m") {
  model::SetPodUnschedulable action;
  action.ns = "ns";
  action.name = name;
  action.uid = "u1";
  action.reason = "QueueLimitReached";
  action.message = message;
  return action;
}
inline model::EvictPod Evict() {
  return model::EvictPod{"ns", "p", "u1", "Preempted", "by a better one"};
}
inline model::ApplyConfigMap ConfigMap() { return {"ns", "m", {}, "p", "u1"}; }
inline model::EmitEvent Event(const std::string& name = "p") {
  model::EmitEvent event;
  event.ns = "ns";
  event.name = name;
  event.uid = "u1";
  event.reason = "Scheduled";
  event.note = "on n1";
  return event;
}
inline model::SetNodeTaint Taint(bool present) {
  model::SetNodeTaint action;
  action.node = "n1";
  action.uid = "nu";
  action.taint = {"fairlead.dev/to-be-removed", "v", model::TaintEffect::kNoSchedule};
  action.present = present;
  return action;
}
inline std::string NodeJson(const std::string& version, const std::string& taints,
                            const std::string& uid = "nu") {
  return absl::StrCat(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","uid":")", uid,
                      R"(","resourceVersion":")", version, R"("},"spec":{"taints":[)", taints,
                      R"(]},"status":{}})");
}

class ExecutorTest : public ::testing::Test {
 protected:
  void Create(Executor::Gate gate = nullptr, Executor::Provider provider = nullptr) {
    executor_ = std::make_unique<Executor>(api_, api_, clock_, queue_, options_,
                                           std::move(provider), std::move(gate));
  }
  uint64_t Submit(decltype(model::Action::what) what) {
    if (executor_ == nullptr) Create();
    model::Action action;
    action.id = ++last_id_;
    action.what = std::move(what);
    executor_->Submit(std::move(action));
    return last_id_;
  }
  // Runs everything, timers included, until nothing is left.
  void Settle() {
    api_.Pump();
    for (int i = 0; i < 1000 && !executor_->Idle(); ++i) {
      if (api_.UntilNextTimer() == absl::InfiniteDuration()) break;
      api_.Advance(api_.UntilNextTimer());
    }
  }
  // The answer; there must be exactly one.
  absl::Status Answer() {
    Settle();
    const auto events = DrainNow(queue_);
    EXPECT_EQ(events.size(), 1u);
    if (events.size() != 1) return absl::InternalError("no single answer");
    return std::get<model::ActionResult>(events[0]).status;
  }
  // "POST .../binding" of all requests so far, without the common beginning.
  std::vector<std::string> Requests() const {
    std::vector<std::string> lines;
    for (const auto& exchange : api_.exchanges()) {
      absl::string_view path = exchange.request.path;
      path.remove_prefix(std::min(path.size(), path.rfind('/') + 1));
      lines.push_back(absl::StrCat(exchange.request.method, " ", path));
    }
    return lines;
  }
  void PodIs(const std::string& uid, const std::string& node) {
    api_.On("GET", kPodPath, Reply::Json(200, PodJson("p", uid, "9", node)));
  }

  FakeClock clock_{absl::UnixEpoch() + absl::Hours(1)};
  FakeTransport api_{clock_};
  EventQueue queue_;
  ExecutorOptions options_;
  std::unique_ptr<Executor> executor_;
  uint64_t last_id_ = 0;
};

}  // namespace fairlead::kube
