// Waiting for a condition, never for a time.
// Thread-safety: as the condition.
#pragma once

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace fairlead::integration {

// How long anything may take on a busy machine before it counts as failed.
inline constexpr absl::Duration kPatience = absl::Seconds(30);
inline constexpr absl::Duration kPoll = absl::Milliseconds(20);

// Success as soon as the condition holds. `state` is asked for the message of a failure.
inline ::testing::AssertionResult Eventually(absl::string_view what,
                                             const std::function<bool()>& condition,
                                             const std::function<std::string()>& state = nullptr,
                                             absl::Duration patience = kPatience) {
  for (const absl::Time deadline = absl::Now() + patience; !condition(); absl::SleepFor(kPoll)) {
    if (absl::Now() < deadline) continue;
    return ::testing::AssertionFailure() << "not within " << absl::FormatDuration(patience) << ": "
                                         << what << (state ? "; now: " + state() : "");
  }
  return ::testing::AssertionSuccess();
}

}  // namespace fairlead::integration
