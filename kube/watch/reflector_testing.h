// A reflector and a scripted API server. Header only; never part of the product.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "kube/watch/reflector.h"
#include "kube/watch/runtime_test_util.h"

namespace fairlead::kube::testing {

class ReflectorTest : public ::testing::Test {
 protected:
  void Begin(model::Kind kind = model::Kind::kPod) {
    options_.kind = kind;
    options_.seed = 7;
    path_ = CollectionPath(kind);
    reflector_ = std::make_unique<Reflector>(api_, api_, clock_, queue_, features_, options_);
    reflector_->Start();
    api_.Pump();
  }

  // The one open request, which must be to the kind's collection.
  FakeTransport::Id Open() {
    api_.Pump();
    EXPECT_EQ(api_.open_count(), 1u);
    const std::optional<FakeTransport::Id> id = api_.FindOpen("GET", path_);
    EXPECT_TRUE(id.has_value());
    return id.value_or(0);
  }
  // Advances virtual time until the next request has been sent.
  FakeTransport::Id NextOpen() {
    for (int i = 0; i < 100 && api_.open_count() == 0; ++i) api_.Advance(api_.UntilNextTimer());
    return Open();
  }
  const std::string& LastPath() const { return api_.exchanges().back().request.path; }
  void Send(FakeTransport::Id id, const std::string& data) {
    api_.Data(id, data);
    api_.Pump();
  }
  void Accept(FakeTransport::Id id) {
    api_.Headers(id, 200);
    api_.Pump();
  }
  void End(FakeTransport::Id id, absl::Status status = absl::OkStatus()) {
    api_.End(id, std::move(status));
    api_.Pump();
  }
  void Refuse(FakeTransport::Id id, int code, absl::string_view reason, absl::string_view message,
              absl::Duration retry_after = absl::ZeroDuration()) {
    api_.Headers(id, code);
    api_.Data(id, StatusJson(code, reason, message));
    api_.End(id, absl::OkStatus(), retry_after);
    api_.Pump();
  }
  void Respond(FakeTransport::Id id, int code, std::string body) {
    api_.Respond(id, FakeTransport::Reply::Json(code, std::move(body)).response);
    api_.Pump();
  }
  // A watch with pods a, b and c at version 30.
  FakeTransport::Id Synced() {
    Begin();
    const FakeTransport::Id id = Open();
    Accept(id);
    Send(id, absl::StrCat(WatchLine("ADDED", PodJson("a", "ua", "10")),
                          WatchLine("ADDED", PodJson("b", "ub", "20")),
                          WatchLine("ADDED", PodJson("c", "uc", "30")),
                          BookmarkLine("30", /*initial_events_end=*/true)));
    EXPECT_THAT(Told(queue_),
                ::testing::ElementsAre("+ns/a ua@10", "+ns/b ub@20", "+ns/c uc@30", "synced"));
    return id;
  }

  FakeClock clock_{absl::UnixEpoch()};
  FakeTransport api_{clock_};
  EventQueue queue_;
  ServerFeatures features_;
  ReflectorOptions options_;
  std::string path_;
  std::unique_ptr<Reflector> reflector_;
};

}  // namespace fairlead::kube::testing
