#include "cmd/fairlead/terminal/progress.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"

namespace fairlead::cmd {
namespace {

constexpr int64_t kBarWidth = 30;
constexpr absl::Duration kPause = absl::Milliseconds(200);

}  // namespace

std::string ProgressLine(absl::string_view what, int64_t done, int64_t total) {
  if (total <= 0) return "";
  const double part = std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
  const auto full = static_cast<size_t>(part * static_cast<double>(kBarWidth));
  return absl::StrCat(what, " [", std::string(full, '#'),
                      std::string(static_cast<size_t>(kBarWidth) - full, '.'), "] ",
                      static_cast<int>(part * 100), "%");
}

Progress::Progress(const Clock* clock) : Progress(clock, isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { Clear(); }

void Progress::Show(absl::string_view what, int64_t done, int64_t total) {
  if (!is_terminal_ || clock_->Steady() < next_) return;
  next_ = clock_->Steady() + kPause;
  drawn_ = true;
  std::cerr << "\r\x1b[K" << ProgressLine(what, done, total) << std::flush;
}

void Progress::Clear() {
  if (drawn_) std::cerr << "\r\x1b[K" << std::flush;
  drawn_ = false;
}

}  // namespace fairlead::cmd
