// `fairlead explain --watch`: the same question again and again, and an answer whenever it changes.
//
// Thread-safety: none, one thread.
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cmd/fairlead/inspect/explain.h"

namespace fairlead::cmd {

// Each question lists the cluster.
inline constexpr absl::Duration kWatchInterval = absl::Seconds(10);

// When it ends by itself.
enum class WatchUntil : uint8_t { kNever, kPlaced, kRunning };
// "", "placed", "running".
absl::StatusOr<WatchUntil> ParseWatchUntil(absl::string_view text);

struct WatchedAnswer {
  std::string text;  // as printed
  // Equal for equal answers: ages that only grow are not in it.
  std::string key;
  bool placed = false;   // all of it has a node, or has ended
  bool running = false;  // all of it runs, or has ended
};
// Of an explanation, without its text.
WatchedAnswer StateOf(const Explanation& explanation);

// Asks until `until` is true or an error comes. A server that does not answer (Unavailable,
// DeadlineExceeded) is asked again, after a line on standard error; not if it is the first time.
absl::Status WatchAnswers(const std::function<absl::StatusOr<WatchedAnswer>()>& ask,
                          WatchUntil until, const std::function<void(absl::Duration)>& sleep,
                          std::ostream& out);

}  // namespace fairlead::cmd
