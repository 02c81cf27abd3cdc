#include "extenders/call_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "kube/transport/fake_transport.h"

namespace fairlead::extenders {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CallQueueTest : public ::testing::Test {
 protected:
  void Open(int calls_max, size_t bytes_max) {
    queue_ = std::make_shared<CallQueue>(&transport_, kube::TrafficClass::kRead,
                                         CallQueue::Limits{calls_max, bytes_max});
  }
  void Post(const std::string& name, size_t bytes = 1) {
    CallQueue::Call call;
    call.path = absl::StrCat("/", name);
    call.timeout = absl::Seconds(1);
    call.bytes = bytes;
    call.body = [this, name] {
      written_.push_back(name);
      return name;
    };
    call.done = [this, name](const absl::StatusOr<kube::HttpResponse>& answer) {
      ended_.push_back(absl::StrCat(name, answer.ok() ? "" : " failed"));
    };
    queue_->Post(std::move(call));
  }
  void AnswerTo(const std::string& name) {
    transport_.Respond(*transport_.FindOpen("POST", absl::StrCat("/", name)),
                       kube::FakeTransport::Reply::Json(200, "").response);
    transport_.Pump();
  }

  FakeClock clock_{absl::UnixEpoch()};
  kube::FakeTransport transport_{clock_};
  std::vector<std::string> written_, ended_;
  std::shared_ptr<CallQueue> queue_;
};

TEST_F(CallQueueTest, CallsWaitWithoutTheirBodiesInOrder) {
  Open(2, 100);
  for (const char* name : {"a", "b", "c", "d"}) Post(name);
  EXPECT_THAT(written_, ElementsAre("a", "b"));
  EXPECT_EQ(transport_.open_count(), 2u);
  AnswerTo("b");
  EXPECT_THAT(ended_, ElementsAre("b"));
  EXPECT_THAT(written_, ElementsAre("a", "b", "c"));
  AnswerTo("a");
  AnswerTo("c");
  AnswerTo("d");
  EXPECT_THAT(ended_, ElementsAre("b", "a", "c", "d"));
}

TEST_F(CallQueueTest, BodiesAreBoundedTogetherButOneAlwaysGoes) {
  Open(10, 100);
  Post("large", 1000);
  Post("a", 60);
  Post("b", 40);
  Post("c", 1);
  EXPECT_THAT(written_, ElementsAre("large"));
  AnswerTo("large");
  EXPECT_THAT(written_, ElementsAre("large", "a", "b"));
  AnswerTo("b");
  EXPECT_THAT(written_, ElementsAre("large", "a", "b", "c"));
}

TEST_F(CallQueueTest, ATimeOutMakesRoom) {
  Open(1, 100);
  Post("a");
  Post("b");
  transport_.Pump();
  transport_.Advance(absl::Seconds(1));
  EXPECT_THAT(ended_, ElementsAre("a failed"));
  EXPECT_THAT(written_, ElementsAre("a", "b")) << "its own time-out begins now";
  AnswerTo("b");
  EXPECT_THAT(ended_, ElementsAre("a failed", "b"));
}

TEST_F(CallQueueTest, CloseEndsWhatWaitsAndWhatComes) {
  Open(1, 100);
  Post("a");
  Post("b");
  queue_->Close();
  EXPECT_THAT(ended_, ElementsAre("b failed"));
  Post("c");
  EXPECT_THAT(ended_, ElementsAre("b failed", "c failed"));
  AnswerTo("a");
  EXPECT_THAT(ended_, ElementsAre("b failed", "c failed", "a"));
  EXPECT_THAT(written_, ElementsAre("a"));
}

TEST_F(CallQueueTest, ABodyThatWasWrittenDuringCloseIsNotSent) {
  Open(1, 100);
  CallQueue::Call call;
  call.timeout = absl::Seconds(1);
  call.body = [this] {
    queue_->Close();
    return std::string("x");
  };
  call.done = [this](const absl::StatusOr<kube::HttpResponse>& answer) {
    ended_.push_back(answer.status().ToString());
  };
  queue_->Post(std::move(call));
  EXPECT_EQ(ended_.size(), 1u);
  EXPECT_THAT(transport_.exchanges(), IsEmpty());
}

TEST_F(CallQueueTest, AnAnswerMayComeAfterTheOwnersEnd) {
  Open(1, 100);
  Post("a");
  queue_->Close();
  queue_ = nullptr;
  AnswerTo("a");
  EXPECT_THAT(ended_, ElementsAre("a"));
}

}  // namespace
}  // namespace fairlead::extenders
