#include "cmd/fairlead/app/node_pods_reader.h"

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cmd/fairlead/app/reader_testing.h"
#include "gmock/gmock.h"

namespace fairlead::cmd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kPods[] = "/api/v1/pods";

class NodePodsReaderTest : public testing::ReaderTest {
 protected:
  void Begin() {
    reader_.emplace(
        &transport_, tasks_,
        [this](const std::string& node, const std::string& version,
               const std::vector<model::Pod>& pods) {
          std::string line = absl::StrCat(node, "@", version, ":");
          for (const model::Pod& pod : pods) absl::StrAppend(&line, " ", pod.meta.name);
          found_.push_back(line);
        },
        [this](const std::string& node, const absl::Status& why) {
          failed_.push_back(absl::StrCat(node, ": ", why.message()));
        });
  }
  // Polls every second and runs what that leads to.
  void Pass(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      reader_->Poll(nodes_, clock_.Now());
      Run();
      transport_.Advance(absl::Seconds(1));
    }
  }
  size_t Lists() const { return transport_.Sent("GET", kPods).size(); }

  std::optional<NodePodsReader> reader_;
  std::set<std::string> nodes_;
  std::vector<std::string> found_, failed_;
};

TEST_F(NodePodsReaderTest, FailuresAreToldAndTheListIsRepeated) {
  transport_.On("GET", kPods,
                Reply::Json(200, R"({"metadata":{"resourceVersion":"9"},"items":[]})"));
  transport_.On(
      "GET", kPods,
      Reply::Json(200, R"({"metadata":{"resourceVersion":"8","continue":"t"},"items":[]})"), 1);
  transport_.On("GET", kPods, Reply::Json(200, "not json"), 1);
  transport_.On("GET", kPods, Reply::Json(403, R"({"kind":"Status","code":403,"message":"no"})"),
                1);
  transport_.On("GET", kPods, Reply::Failure(absl::UnavailableError("no connection")), 1);
  Begin();
  nodes_ = {"n1"};
  Pass(25);
  EXPECT_EQ(failed_.size(), 4u);
  EXPECT_THAT(failed_.at(0), HasSubstr("n1: no connection"));
  EXPECT_THAT(failed_.at(1), HasSubstr("no"));
  EXPECT_THAT(failed_.at(3), HasSubstr("a part of the list"));
  EXPECT_THAT(found_, ElementsAre("n1@9:"));
}

TEST_F(NodePodsReaderTest, AServerThatDoesNotAnswerIsAskedOnceAtATime) {
  transport_.On("GET", kPods, Reply::Hold());
  Begin();
  for (int i = 0; i < 40; ++i) nodes_.insert(absl::StrCat("n", i));
  Pass(4);
  EXPECT_EQ(Lists(), static_cast<size_t>(NodePodsReader::kAtOnce));
  EXPECT_EQ(reader_->wake_at(), absl::InfiniteFuture());
  Pass(20);
  EXPECT_GE(failed_.size(), 40u) << "each ends with its time-out";
}

TEST_F(NodePodsReaderTest, AnAnswerAboutANodeThatWasForgottenMeanwhileIsDropped) {
  transport_.On("GET", kPods, Reply::Hold());
  Begin();
  nodes_ = {"n1"};
  Pass(2);
  ASSERT_EQ(Lists(), 1u);
  nodes_.clear();
  Pass(1);
  nodes_ = {"n1"};  // with a later taint
  Pass(1);
  kube::HttpResponse late;
  late.status = 200;
  late.content_type = kube::kJson;
  late.body = R"({"metadata":{"resourceVersion":"5"},"items":[]})";
  transport_.Respond(transport_.Sent("GET", kPods)[0]->id, late);
  Run();
  EXPECT_THAT(found_, IsEmpty());
}

TEST_F(NodePodsReaderTest, NothingIsAskedForAQuietSecondNorOfOtherNodes) {
  transport_.On("GET", kPods, [](const kube::HttpRequest& request) {
    const bool one = absl::StrContains(request.path, "spec.nodeName%3Dip-10-0-0-1%2C") ||
                     absl::StrContains(request.path, "spec.nodeName=ip-10-0-0-1,");
    return Reply::Json(
        200, absl::StrCat(R"({"metadata":{"resourceVersion":"7"},"items":[)",
                          one ? R"({"metadata":{"name":"p","namespace":"ns"}})" : "", "]}"));
  });
  Begin();
  Pass(10);
  EXPECT_EQ(Lists(), 0u);
  nodes_ = {"ip-10-0-0-1", "n2"};
  reader_->Poll(nodes_, clock_.Now());
  EXPECT_EQ(reader_->wake_at(), clock_.Now() + NodePodsReader::kDelay);
  transport_.Pump();
  EXPECT_EQ(Lists(), 0u) << "the watch may show it by itself";
  Pass(3);
  EXPECT_THAT(found_, ElementsAre("ip-10-0-0-1@7: p", "n2@7:"));
  EXPECT_THAT(transport_.Sent("GET", kPods)[0]->request.path, HasSubstr("status.phase"));
}

}  // namespace
}  // namespace fairlead::cmd
