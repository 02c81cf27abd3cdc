#include "cmd/fairlead/app/usage_reader.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cmd/fairlead/app/reader_testing.h"
#include "gmock/gmock.h"

namespace fairlead::cmd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kMap[] = "/api/v1/namespaces/ns/configmaps/u";

class UsageReaderTest : public testing::ReaderTest {
 protected:
  UsageReaderTest() {
    reader_.emplace(
        &transport_, tasks_, kMap,
        [this](const absl::StatusOr<std::string>& text) {
          found_.push_back(text.ok() ? *text : absl::StrCat("error: ", text.status().message()));
        },
        [this](const absl::Status& why) { failed_.emplace_back(why.message()); });
  }
  // True if decisions may be made once the answer to an attempt has come.
  bool Poll() {
    reader_->Poll(clock_.Now());
    Run();
    return reader_->Poll(clock_.Now());
  }

  std::optional<UsageReader> reader_;
  std::vector<std::string> found_, failed_;
};

// Between the end of the wait and the answer nothing is due.
TEST_F(UsageReaderTest, SilenceIsNotAskedForInCircles) {
  transport_.On("GET", kMap, Reply::Hold());
  EXPECT_FALSE(Poll());
  const absl::Time patience = reader_->wake_at();
  EXPECT_EQ(patience, clock_.Now() + absl::Seconds(5));
  EXPECT_TRUE(reader_->Poll(patience));
  EXPECT_GT(reader_->wake_at(), patience);
}

// Only "there is no such ConfigMap" is an answer: the text that is there would be overwritten.
TEST_F(UsageReaderTest, AFailureIsToldAndTheReadIsRepeated) {
  transport_.On("GET", kMap, Reply::Json(404, R"({"kind":"Status","code":404})"));
  transport_.On("GET", kMap, Reply::Json(410, R"({"kind":"Status","code":410,"message":"gone"})"),
                1);
  transport_.On("GET", kMap, Reply::Json(503, ""), 1);
  transport_.On("GET", kMap, Reply::Failure(absl::UnavailableError("no connection")), 1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Poll(), i > 0) << "decisions wait for the first answer for a limited time";
    EXPECT_THAT(found_, IsEmpty());
    transport_.Advance(absl::Seconds(10));
  }
  EXPECT_TRUE(Poll());
  EXPECT_THAT(failed_,
              ElementsAre(HasSubstr("no connection"), HasSubstr("503"), HasSubstr("gone")));
  for (const std::string& why : failed_) EXPECT_THAT(why, HasSubstr(kMap));
  EXPECT_THAT(found_, ElementsAre(""));
  EXPECT_EQ(reader_->wake_at(), absl::InfiniteFuture());
}

TEST_F(UsageReaderTest, AnAnswerThatIsNoConfigMapIsFinal) {
  transport_.On("GET", kMap, Reply::Json(200, "[]"));
  EXPECT_TRUE(Poll());
  EXPECT_THAT(found_, ElementsAre(HasSubstr("error: ")));
  transport_.Advance(absl::Minutes(1));
  EXPECT_TRUE(Poll());
  EXPECT_EQ(transport_.Sent("GET", kMap).size(), 1u);
}

TEST_F(UsageReaderTest, NoAnswerComesAfterItsEnd) {
  transport_.On("GET", kMap, Reply::Json(200, R"({"data":{"usage":"x"}})"));
  reader_->Poll(clock_.Now());
  transport_.Pump();  // the answer waits for the owner's thread
  reader_.reset();
  Run();
  EXPECT_THAT(found_, IsEmpty());
}

}  // namespace
}  // namespace fairlead::cmd
