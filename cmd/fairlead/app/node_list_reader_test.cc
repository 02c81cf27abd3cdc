#include "cmd/fairlead/app/node_list_reader.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "cmd/fairlead/app/reader_testing.h"
#include "gmock/gmock.h"

namespace fairlead::cmd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kNodes[] = "/api/v1/nodes";

class NodeListReaderTest : public testing::ReaderTest {
 protected:
  NodeListReaderTest() {
    reader_.emplace(
        &transport_, tasks_,
        [this](uint64_t number, absl::StatusOr<std::vector<hook::ListedNode>> nodes) {
          std::string line = absl::StrCat(number, ":");
          if (!nodes.ok()) absl::StrAppend(&line, " ", nodes.status().message());
          for (const hook::ListedNode& node : nodes.value_or(std::vector<hook::ListedNode>{})) {
            absl::StrAppend(&line, " ", node.name, "/", node.uid, "/", node.node_request, "/",
                            node.provider_id);
          }
          done_.push_back(line);
        });
  }
  static Reply Page(const std::string& items, const std::string& token = "") {
    return Reply::Json(200, absl::StrCat(R"({"kind":"NodeList","metadata":{"resourceVersion":"9",)",
                                         R"("continue":")", token, R"("},"items":[)", items, "]}"));
  }
  static std::string Node(const std::string& name, const std::string& request,
                          const std::string& provider_id) {
    return absl::StrCat(
        R"({"metadata":{"name":")", name, R"(","uid":"u-)", name, R"(","labels":{)",
        request.empty() ? "" : absl::StrCat(R"("fairlead.dev/node-request":")", request, R"(")"),
        R"(}},"spec":{"providerID":")", provider_id, R"("}})");
  }

  std::optional<NodeListReader> reader_;
  std::vector<std::string> done_;
};

TEST_F(NodeListReaderTest, EveryPageOfAQuorumReadCountsAndNodesOfNoMachineAreLeftOut) {
  transport_.On("GET", kNodes, Page(Node("c", "", "cloud://3")));
  transport_.On("GET", kNodes,
                Page(absl::StrCat(Node("a", "fl-1", ""), ",", Node("b", "", "")), "more"), 1);
  reader_->Poll(0);
  reader_->Poll(1);
  reader_->Poll(1);
  Run();
  EXPECT_THAT(done_, ElementsAre("1: a/u-a/fl-1/ c/u-c//cloud://3"));
  const auto sent = transport_.Sent("GET", kNodes);
  ASSERT_EQ(sent.size(), 2u);
  for (const auto* one : sent) EXPECT_THAT(one->request.path, Not(HasSubstr("resourceVersion")));
  EXPECT_THAT(sent[1]->request.path, HasSubstr("continue=more"));
}

TEST_F(NodeListReaderTest, AFailureIsToldOnceAndTheNextNumberBeginsAgain) {
  transport_.On("GET", kNodes, Page(Node("c", "fl-1", "")));
  transport_.On("GET", kNodes, Reply::Json(410, R"({"kind":"Status","code":410,"message":"old"})"),
                1);
  transport_.On("GET", kNodes, Page(Node("a", "fl-1", ""), "more"), 1);
  reader_->Poll(1);
  Run();
  reader_->Poll(1);
  Run();
  EXPECT_THAT(done_, ElementsAre(HasSubstr("1: ")));
  EXPECT_THAT(done_[0], HasSubstr("old"));
  reader_->Poll(2);
  Run();
  EXPECT_EQ(done_.back(), "2: c/u-c/fl-1/");
}

TEST_F(NodeListReaderTest, AnAnswerToAFormerListIsDropped) {
  transport_.On("GET", kNodes, Page(Node("c", "fl-1", "")));
  reader_->Poll(1);
  reader_->Poll(2);
  Run();
  EXPECT_THAT(done_, ElementsAre("2: c/u-c/fl-1/"));
}

TEST_F(NodeListReaderTest, NoAnswerComesAfterItsEnd) {
  transport_.On("GET", kNodes, Page(""));
  reader_->Poll(1);
  reader_.reset();
  Run();
  EXPECT_THAT(done_, IsEmpty());
}

}  // namespace
}  // namespace fairlead::cmd
