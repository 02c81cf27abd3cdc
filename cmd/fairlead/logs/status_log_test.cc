#include "cmd/fairlead/logs/status_log.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::cmd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StatusLogTest : public ::testing::Test {
 protected:
  static kube::ReflectorStats Works(model::Kind kind = model::Kind::kPod) {
    kube::ReflectorStats stats;
    stats.kind = kind;
    stats.since_last_event = absl::Seconds(3);
    stats.down_for = absl::ZeroDuration();
    return stats;
  }
  static kube::ReflectorStats Down(absl::Duration down_for) {
    kube::ReflectorStats stats = Works();
    stats.down_for = stats.since_last_event = down_for;
    stats.last_error = "refused";
    return stats;
  }
  // What was logged since the last call.
  std::string Lines() { return std::exchange(text_, {}); }

  FakeClock clock_{absl::UnixEpoch()};
  std::string text_;
  Logger logger_{&clock_, LogLevel::kDebug,
                 [this](absl::string_view line) { absl::StrAppend(&text_, line); }};
  StatusLog log_{&logger_, /*stale_after=*/absl::Seconds(60)};
};

TEST_F(StatusLogTest, AWatchIsLoggedWhenItFailsIsStaleAndWorksAgain) {
  log_.LogWatches({Works(), Works(model::Kind::kNode)});
  EXPECT_THAT(Lines(), IsEmpty());
  log_.LogWatches({Down(absl::Seconds(10))});
  EXPECT_THAT(Lines(), IsEmpty()) << "it may be renewed";
  for (int seconds : {11, 30, 60}) {
    log_.LogWatches({Down(absl::Seconds(seconds))});
    const std::string lines = Lines();
    if (seconds > 11) {
      EXPECT_THAT(lines, IsEmpty()) << seconds;
      continue;
    }
    EXPECT_THAT(lines, AllOf(HasSubstr("level=warning msg=\"watch fails"), HasSubstr("kind=Pod"),
                             HasSubstr("last_word_ago=11s"), HasSubstr("problem=refused")));
  }
  log_.LogWatches({Down(absl::Seconds(61))});
  EXPECT_THAT(Lines(), HasSubstr("level=error msg=\"objects may be out of date"));
  log_.LogWatches({Works()});
  EXPECT_THAT(Lines(), HasSubstr("msg=\"watch works again\" kind=Pod"));
}

TEST_F(StatusLogTest, AKindIsLoggedWhenItIsMissingAndWhenItIsInstalled) {
  kube::ReflectorStats missing = Works(model::Kind::kQueue);
  missing.missing = true;
  log_.LogMissing({missing});
  EXPECT_THAT(Lines(), HasSubstr("kind is not installed"));
  log_.LogWatches({missing});
  EXPECT_THAT(Lines(), IsEmpty());
  log_.LogWatches({Works(model::Kind::kQueue)});
  EXPECT_THAT(Lines(), HasSubstr("msg=\"kind is installed\" kind=Queue"));
}

TEST_F(StatusLogTest, HistoryIsLoggedWhenItGoesAndWhenItComesBack) {
  log_.LogHistory("");
  EXPECT_THAT(Lines(), IsEmpty());
  log_.LogHistory("the report is 6m old");
  EXPECT_THAT(Lines(), AllOf(HasSubstr("without history"), HasSubstr("6m old")));
  log_.LogHistory("the report is 7m old");
  EXPECT_THAT(Lines(), IsEmpty());
  log_.LogHistory("");
  EXPECT_THAT(Lines(), HasSubstr("with history again"));
}

TEST_F(StatusLogTest, CountsAreLoggedWhenTheyGrow) {
  log_.LogShedEvents(0);
  log_.LogLease({});
  EXPECT_THAT(Lines(), IsEmpty());
  log_.LogShedEvents(5);
  EXPECT_THAT(Lines(), HasSubstr("count=5"));
  log_.LogShedEvents(7);
  EXPECT_THAT(Lines(), HasSubstr("count=2"));
  kube::LeaseStats lease;
  lease.errors = 1;
  lease.last_error = "forbidden";
  log_.LogLease(lease);
  EXPECT_THAT(Lines(), AllOf(HasSubstr("the lease could not be"), HasSubstr("forbidden")));
  log_.LogLease(lease);
  EXPECT_THAT(Lines(), IsEmpty());
}

TEST_F(StatusLogTest, ANewSourceAndExecutorStartAgain) {
  log_.LogWatches({Down(absl::Seconds(11))});
  log_.LogShedEvents(5);
  Lines();
  log_.Restart();
  log_.LogWatches({Works()});
  log_.LogShedEvents(0);
  EXPECT_THAT(Lines(), IsEmpty());
  log_.LogShedEvents(2);
  EXPECT_THAT(Lines(), HasSubstr("count=2"));
}

}  // namespace
}  // namespace fairlead::cmd
