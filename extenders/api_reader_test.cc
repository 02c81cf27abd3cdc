#include "extenders/api_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "extenders/testing.h"

namespace fairlead::extenders {
namespace {

using testing::kNodesPath;
using testing::kPodPath;
using testing::NodeListText;
using testing::NodeText;
using testing::Reply;
using ::testing::SizeIs;

class ApiReaderTest : public ::testing::Test {
 protected:
  void ReadNodes() {
    reader_->ReadNodes(
        [this](absl::StatusOr<NodeTextsPtr> nodes) { lists_.push_back(std::move(nodes)); });
  }
  void ListIs(Reply reply) { api_.On("GET", kNodesPath, std::move(reply)); }

  FakeClock clock_{absl::UnixEpoch()};
  kube::FakeTransport api_{clock_};
  std::vector<absl::StatusOr<NodeTextsPtr>> lists_;
  std::shared_ptr<ApiReader> reader_ = std::make_shared<ApiReader>(&api_, &clock_);
};

TEST_F(ApiReaderTest, OneListServesWhatAsksWithinASecond) {
  ListIs(Reply::Json(200, NodeListText({"a", "b"})));
  ReadNodes();
  clock_.Advance(absl::Milliseconds(400));  // the list is on its way
  ReadNodes();
  api_.Pump();
  ASSERT_THAT(lists_, SizeIs(2));
  clock_.Advance(absl::Milliseconds(600));
  ReadNodes();
  ASSERT_THAT(lists_, SizeIs(3)) << "the list is there: nothing is waited for";
  EXPECT_EQ(*lists_[0], *lists_[2]);
  EXPECT_EQ((*lists_[0])->at("b"), NodeText("b"));
  EXPECT_THAT(api_.exchanges(), SizeIs(1));
  EXPECT_EQ(api_.exchanges().front().request.path, "/api/v1/nodes?resourceVersion=0");
}

TEST_F(ApiReaderTest, AnOlderListIsReadAgain) {
  ListIs(Reply::Json(200, NodeListText({"a"})));
  ReadNodes();
  api_.Pump();
  ListIs(Reply::Json(200, NodeListText({"b"})));
  clock_.Advance(absl::Milliseconds(1001));
  ReadNodes();
  api_.Pump();
  ASSERT_THAT(lists_, SizeIs(2));
  EXPECT_TRUE((*lists_[0])->contains("a")) << "a list in use stays";
  EXPECT_TRUE((*lists_[1])->contains("b"));
}

TEST_F(ApiReaderTest, AFailureIsToldToAllThatWaitAndNotKept) {
  ListIs(Reply::Json(503, ""));
  ReadNodes();
  ReadNodes();
  api_.Pump();
  ASSERT_THAT(lists_, SizeIs(2));
  EXPECT_TRUE(absl::IsUnavailable(lists_[0].status()));
  EXPECT_TRUE(absl::IsUnavailable(lists_[1].status()));
  ListIs(Reply::Json(200, "{\"items\":[{]"));
  ReadNodes();
  api_.Pump();
  EXPECT_TRUE(absl::IsUnavailable(lists_.back().status())) << lists_.back().status();
  ListIs(Reply::Json(200, NodeListText({"a"})));
  ReadNodes();
  api_.Pump();
  EXPECT_TRUE(lists_.back().ok()) << lists_.back().status();
}

TEST_F(ApiReaderTest, AClosedReaderAsksNothing) {
  ReadNodes();
  reader_->Close();
  ReadNodes();
  ASSERT_THAT(lists_, SizeIs(1));
  EXPECT_TRUE(absl::IsCancelled(lists_[0].status()));
  bool told = false;
  reader_->ReadPod("ns", "p", "u1", [&](const absl::StatusOr<std::string>& pod) {
    told = true;
    EXPECT_TRUE(absl::IsCancelled(pod.status()));
  });
  EXPECT_TRUE(told);
  EXPECT_THAT(api_.exchanges(), SizeIs(1));
}

TEST_F(ApiReaderTest, AnAnswerMayComeAfterTheOwnersEnd) {
  ListIs(Reply::Json(200, NodeListText({"a"})));
  ReadNodes();
  reader_->Close();
  reader_ = nullptr;
  api_.Pump();
  EXPECT_THAT(lists_, SizeIs(1));
}

TEST_F(ApiReaderTest, NamesAreEscapedInThePath) {
  reader_->ReadPod("n/s", "p?x", "u", [](const absl::StatusOr<std::string>& /*pod*/) {});
  EXPECT_EQ(api_.exchanges().front().request.path, "/api/v1/namespaces/n%2Fs/pods/p%3Fx");
}

}  // namespace
}  // namespace fairlead::extenders
