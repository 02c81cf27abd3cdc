// A text that is asked for at most once per interval, however many ask. If the source fails, the
// last text is given for a while: the page says how old it is.
//
// Thread-safety: any thread; the source is called by one at a time, and may block: the others wait.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace fairlead::dashboard {

struct SourceText {
  std::string text;
  absl::Duration cost;  // of the thread that the source must not burden
};

class CachedText {
 public:
  // At most this part of the thread's time is taken: the interval grows with the cost.
  static constexpr int kCostShare = 50;
  static constexpr absl::Duration kStale = absl::Minutes(1);  // the oldest text that is given

  using Source = std::function<absl::StatusOr<SourceText>()>;
  // `clock` outlives it.
  CachedText(Source source, absl::Duration interval, const Clock* clock)
      : source_(std::move(source)), interval_(interval), clock_(clock) {}

  // The source's error if there is no text, or none that is young enough.
  absl::StatusOr<std::shared_ptr<const std::string>> Get();

 private:
  const Source source_;
  const absl::Duration interval_;
  const Clock* const clock_;
  std::mutex mutex_;
  std::shared_ptr<const std::string> text_;
  absl::Status failure_;                                    // of the last time
  absl::Duration taken_at_ = -absl::InfiniteDuration();     // steady: of text_
  absl::Duration next_ask_at_ = -absl::InfiniteDuration();  // steady
};

}  // namespace fairlead::dashboard
