#include "cmd/fairlead/inspect/explain_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <vector>

namespace fairlead::cmd {
namespace {

using ::testing::HasSubstr;

struct Watched {
  absl::Status status;
  std::string out;
  int sleeps = 0;
};

// The last answer repeats; after 20 an error ends it.
Watched WatchOf(std::vector<absl::StatusOr<WatchedAnswer>> answers, WatchUntil until) {
  Watched result;
  std::ostringstream out;
  size_t next = 0;
  result.status = WatchAnswers(
      [&]() -> absl::StatusOr<WatchedAnswer> {
        if (next > 20) return absl::NotFoundError("over");
        const size_t i = std::min(next++, answers.size() - 1);
        return answers[i];
      },
      until, [&](absl::Duration) { ++result.sleeps; }, out);
  result.out = out.str();
  return result;
}

TEST(ExplainWatchTest, AnAnswerIsShownWhenItChanges) {
  const Watched watched =
      WatchOf({WatchedAnswer{"A 1s\n", "a"}, WatchedAnswer{"A 2s\n", "a"},
               WatchedAnswer{"B\n", "b", true, false}, WatchedAnswer{"C\n", "c", true, true}},
              WatchUntil::kRunning);
  EXPECT_TRUE(watched.status.ok()) << watched.status;
  EXPECT_EQ(watched.out, "A 1s\n\nB\n\nC\n");
  EXPECT_EQ(watched.sleeps, 3);
}

TEST(ExplainWatchTest, PlacedEndsIt) {
  const Watched watched = WatchOf(
      {WatchedAnswer{"A\n", "a"}, WatchedAnswer{"B\n", "b", true, false}}, WatchUntil::kPlaced);
  EXPECT_TRUE(watched.status.ok());
  EXPECT_EQ(watched.sleeps, 1);
}

TEST(ExplainWatchTest, AServerThatIsAwayIsAskedAgainButNotAtFirst) {
  const absl::Status away = absl::UnavailableError("away");
  EXPECT_TRUE(absl::IsUnavailable(WatchOf({away}, WatchUntil::kNever).status));
  const Watched watched =
      WatchOf({WatchedAnswer{"A\n", "a"}, away, WatchedAnswer{"B\n", "b", true, true}},
              WatchUntil::kPlaced);
  EXPECT_TRUE(watched.status.ok()) << watched.status;
  EXPECT_EQ(watched.out, "A\n\nB\n");
}

TEST(ExplainWatchTest, AnObjectThatIsGoneEndsItWithAnError) {
  const Watched watched =
      WatchOf({WatchedAnswer{"A\n", "a"}, absl::NotFoundError("gone")}, WatchUntil::kRunning);
  EXPECT_TRUE(absl::IsNotFound(watched.status));
  EXPECT_TRUE(absl::IsNotFound(WatchOf({WatchedAnswer{"A\n", "a", true, true}},
                                       WatchUntil::kNever)
                                   .status));  // it never ends by itself
}

TEST(ExplainWatchTest, StatesOfPodsAndGroups) {
  Explanation e;
  e.state = Explanation::State::kWaiting;
  EXPECT_FALSE(StateOf(e).placed);
  e.state = Explanation::State::kRunning;
  e.pod_status = "Bound";
  EXPECT_TRUE(StateOf(e).placed);
  EXPECT_FALSE(StateOf(e).running);
  e.pod_status = "Running";
  EXPECT_TRUE(StateOf(e).running);
  e.is_group = true;
  e.pods = {{"a", "g", "q", "n", "Running"}, {"b", "g", "q", "n", "Bound"}};
  EXPECT_FALSE(StateOf(e).running);
  e.pods[1].status = "Running";
  EXPECT_TRUE(StateOf(e).running);
  e.state = Explanation::State::kFinished;
  EXPECT_TRUE(StateOf(e).placed && StateOf(e).running);
}

TEST(ExplainWatchTest, UntilHasTwoWords) {
  EXPECT_EQ(*ParseWatchUntil("placed"), WatchUntil::kPlaced);
  EXPECT_THAT(std::string(ParseWatchUntil("done").status().message()), HasSubstr("--until done"));
}

}  // namespace
}  // namespace fairlead::cmd
