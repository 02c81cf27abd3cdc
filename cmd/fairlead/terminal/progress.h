// How far a long command is, as a bar on a terminal: one line of standard error, written over. A
// file or a pipe gets nothing.
//
// Thread-safety: none. Complexity: O(1); it is drawn five times a second at most.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace fairlead::cmd {

// "redacting [#########.....................] 30%". `done` and `total` in any unit; no total:
// empty.
std::string ProgressLine(absl::string_view what, int64_t done, int64_t total);

class Progress {
 public:
  // `clock` outlives it.
  explicit Progress(const Clock* clock);
  // For tests: whether there is a terminal.
  Progress(const Clock* clock, bool is_terminal) : clock_(clock), is_terminal_(is_terminal) {}
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Show(absl::string_view what, int64_t done, int64_t total);
  // Another line may be written from now on.
  void Clear();

 private:
  const Clock* clock_;
  const bool is_terminal_;
  absl::Duration next_ = -absl::InfiniteDuration();
  bool drawn_ = false;
};

}  // namespace fairlead::cmd
