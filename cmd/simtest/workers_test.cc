#include "cmd/simtest/workers.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace fairlead::simtest {
namespace {

// The invariant that seed 1 fails, and what is told of it.
Failure FailureOf(const std::function<sim::world::Plan(uint64_t)>& make, absl::Duration limit) {
  std::vector<Report> reports;
  RunSeeds(1, 1, 1, RunOptions{}, limit, make, [&](const Report& report) {
    reports.push_back(report);
    return true;
  });
  if (reports.size() != 1u || !reports[0].result.failure.has_value()) return {};
  return *reports[0].result.failure;
}

TEST(Workers, AWorldThatNeverEndsIsAHang) {
  const Failure failure = FailureOf(
      [](uint64_t seed) {
        volatile uint64_t turns = seed;
        while (turns != 0) turns = turns + 2;
        return sim::world::Plan{};
      },
      absl::Milliseconds(50));
  EXPECT_EQ(failure.invariant, "hang");
  EXPECT_EQ(failure.text, "no end after 50ms of CPU time");
}

TEST(Workers, AWorldThatWaitsForNothingIsAHang) {
  const Failure failure = FailureOf(
      [](uint64_t) {
        while (true) ::poll(nullptr, 0, -1);
        return sim::world::Plan{};
      },
      absl::Milliseconds(5));
  EXPECT_EQ(failure.invariant, "hang");
  EXPECT_EQ(failure.text, "it waits, and uses no CPU time");
}

TEST(Workers, AWorldThatTakesAllMemoryFails) {
  if (!kLimitsMemory) GTEST_SKIP() << "a sanitizer takes the address space";
  const Failure failure = FailureOf(
      [](uint64_t) {
        std::vector<std::string> all;
        while (all.size() < 64) all.emplace_back().reserve(size_t{1} << 30);
        return sim::world::Plan{};
      },
      absl::Minutes(1));
  EXPECT_EQ(failure.invariant, "process");
}

TEST(Workers, AWorldThatAbortsFailsAlone) {
  std::vector<std::string> failed;
  RunSeeds(
      1, 3, 1, RunOptions{}, absl::Minutes(1),
      [](uint64_t seed) {
        if (seed == 2) std::abort();
        return sim::world::Plan{};
      },
      [&](const Report& report) {
        failed.push_back(report.result.failure.has_value() ? report.result.failure->invariant : "");
        return true;
      });
  EXPECT_EQ(failed, (std::vector<std::string>{"", "process", ""}));
}

}  // namespace
}  // namespace fairlead::simtest
