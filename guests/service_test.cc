// The service through a real connection on loopback.
#include "guests/service.h"

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "fairlead/guests/v1/guests.grpc.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::guests {
namespace {

namespace proto = fairlead::guests::v1;
using core::GuestAnswer;
using ::testing::HasSubstr;

class GuestServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto started = Service::Start(
        "127.0.0.1:0",
        [this](const model::Pod& pod, const std::string& reserved_on, absl::Duration wait) {
          return Decide(pod, reserved_on, wait);
        },
        [this]() -> absl::StatusOr<std::vector<core::GuestGrant>> {
          const std::lock_guard<std::mutex> lock(mutex_);
          if (!leads_) return absl::UnavailableError("does not lead");
          return granted_;
        });
    ASSERT_TRUE(started.ok()) << started.status();
    service_ = *std::move(started);
    stub_ = proto::Guests::NewStub(grpc::CreateChannel(absl::StrCat("127.0.0.1:", service_->port()),
                                                       grpc::InsecureChannelCredentials()));
  }
  absl::StatusOr<GuestAnswer> Decide(const model::Pod& pod, const std::string& reserved_on,
                                     absl::Duration wait) {
    const std::lock_guard<std::mutex> lock(mutex_);
    asked_ = pod;
    reserved_on_ = reserved_on;
    wait_ = wait;
    if (!leads_) return absl::UnavailableError("does not lead");
    return answer_;
  }
  grpc::Status Ask(proto::DecideResponse& response, uint32_t wait_ms = 0) {
    grpc::ClientContext context;
    proto::DecideRequest request;
    proto::Pod& pod = *request.mutable_pod();
    pod.set_namespace_("ns");
    pod.set_name("p");
    pod.set_uid("u");
    pod.set_scheduler_name("team");
    (*pod.mutable_labels())["kai.scheduler/queue"] = "q";
    (*pod.mutable_annotations())["pod-group-name"] = "g";
    request.set_wait_ms(wait_ms);
    request.set_reserved_on("m");
    return stub_->Decide(&context, request, &response);
  }
  void Grant(const std::string& name) { service_->Publish({{"ns", name, "uid-" + name, "n"}}); }

  std::mutex mutex_;  // guards what follows; the service's threads use it
  GuestAnswer answer_;
  bool leads_ = true;
  std::vector<core::GuestGrant> granted_;
  model::Pod asked_;
  std::string reserved_on_;
  absl::Duration wait_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<proto::Guests::Stub> stub_;
};

TEST_F(GuestServiceTest, TellsWhatIsDecided) {
  using Kind = GuestAnswer::Kind;
  const std::pair<GuestAnswer, proto::DecideResponse::State> cases[] = {
      {{Kind::kNotOurs, "", ""}, proto::DecideResponse::NOT_OURS},
      {{Kind::kUndecided, "", ""}, proto::DecideResponse::UNDECIDED},
      {{Kind::kWaits, "", "QueueLimitReached: full"}, proto::DecideResponse::WAITS},
      {{Kind::kGranted, "n", ""}, proto::DecideResponse::GRANTED},
      {{Kind::kHeld, "n", ""}, proto::DecideResponse::HELD},
  };
  for (const auto& [answer, state] : cases) {
    answer_ = answer;
    proto::DecideResponse response;
    const grpc::Status status = Ask(response, 250);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.state(), state);
    EXPECT_EQ(response.node(), answer.node);
    EXPECT_EQ(response.reason(), answer.reason);
  }
  EXPECT_EQ(asked_.meta.ns, "ns");
  EXPECT_EQ(asked_.meta.uid, "u");
  EXPECT_EQ(asked_.scheduler_name, "team");
  EXPECT_EQ(asked_.meta.labels.Get("kai.scheduler/queue"), "q");
  EXPECT_EQ(asked_.meta.annotations.Get("pod-group-name"), "g");
  EXPECT_EQ(reserved_on_, "m");
  EXPECT_EQ(wait_, absl::Milliseconds(250));
  proto::DecideResponse response;
  ASSERT_TRUE(Ask(response, 3'600'000).ok());
  EXPECT_EQ(wait_, Service::kLongestWait);
}

TEST_F(GuestServiceTest, SaysWhyItCannotTell) {
  proto::DecideResponse response;
  leads_ = false;
  grpc::Status status = Ask(response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("does not lead"));
  grpc::ClientContext context;
  status = stub_->Decide(&context, {}, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  grpc::ClientContext watch;
  const auto reader = stub_->WatchGrants(&watch, {});
  proto::Grant grant;
  EXPECT_FALSE(reader->Read(&grant));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(GuestServiceTest, AWatchBeginsWithWhatIsGrantedAndGoesOn) {
  granted_ = {{"ns", "first", "uid-first", "m"}};
  grpc::ClientContext contexts[2];
  for (grpc::ClientContext& context : contexts) {
    const auto reader = stub_->WatchGrants(&context, {});
    proto::Grant grant;
    ASSERT_TRUE(reader->Read(&grant));
    EXPECT_EQ(grant.name(), "first");
    EXPECT_EQ(grant.node(), "m");
    for (const char* name : {"second", "third"}) {
      Grant(name);
      ASSERT_TRUE(reader->Read(&grant));
      EXPECT_EQ(grant.name(), name);
      EXPECT_EQ(grant.uid(), absl::StrCat("uid-", name));
    }
    service_->EndWatches();
    EXPECT_FALSE(reader->Read(&grant));
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  }
}

TEST_F(GuestServiceTest, EndsWithOpenWatches) {
  granted_ = {{"ns", "first", "uid-first", "m"}};
  grpc::ClientContext context;
  const auto reader = stub_->WatchGrants(&context, {});
  proto::Grant grant;
  ASSERT_TRUE(reader->Read(&grant));
  service_.reset();
  EXPECT_FALSE(reader->Read(&grant));
  EXPECT_FALSE(reader->Finish().ok());
}

TEST_F(GuestServiceTest, AnAddressThatIsTakenIsRefused) {
  const auto second =
      Service::Start(absl::StrCat("127.0.0.1:", service_->port()), nullptr, nullptr);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable) << second.status();
}

}  // namespace
}  // namespace fairlead::guests
