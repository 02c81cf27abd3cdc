#include "sim/event_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fairlead::sim {
namespace {

using ::testing::ElementsAre;

TEST(EventQueue, RunsByTimeAndThenByTheOrderOfAsking) {
  EventQueue queue(absl::UnixEpoch());
  std::vector<std::string> ran;
  queue.After(absl::Seconds(2), [&] { ran.push_back("late"); });
  queue.After(absl::Seconds(1), [&] { ran.push_back("first"); });
  queue.After(absl::Seconds(1), [&] {
    ran.push_back("second");
    queue.After(absl::ZeroDuration(), [&] { ran.push_back("asked for meanwhile"); });
    queue.At(absl::InfinitePast(), [&] { ran.push_back("the past is now"); });
  });
  queue.RunUntil(absl::UnixEpoch() + absl::Seconds(1));
  EXPECT_THAT(ran, ElementsAre("first", "second", "asked for meanwhile", "the past is now"));
  EXPECT_EQ(queue.now(), absl::UnixEpoch() + absl::Seconds(1));
  EXPECT_EQ(queue.next(), absl::UnixEpoch() + absl::Seconds(2));
  queue.RunUntil(absl::UnixEpoch() + absl::Seconds(9));
  EXPECT_EQ(ran.back(), "late");
  EXPECT_EQ(queue.next(), absl::InfiniteFuture());
  queue.RunUntil(absl::UnixEpoch());
  EXPECT_EQ(queue.now(), absl::UnixEpoch() + absl::Seconds(9)) << "time never goes back";
}

}  // namespace
}  // namespace fairlead::sim
