#include "demo/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace fairlead::demo {
namespace {

constexpr char kEnter[] = "\x1b[?1049h\x1b[?25l\x1b[2J";
constexpr char kLeave[] = "\x1b[?25h\x1b[?1049l";
constexpr int kCrashes[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};

std::atomic<bool> entered{false};
static_assert(std::atomic<bool>::is_always_lock_free, "used in signal handlers");

void Write(const char* text, size_t size) {
  while (size > 0) {
    const ssize_t written = write(STDOUT_FILENO, text, size);
    if (written <= 0) return;
    text += written;
    size -= static_cast<size_t>(written);
  }
}

// Restores the terminal, then runs the signal's former action.
void OnCrash(int number) {
  Screen::Restore();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

}  // namespace

bool Screen::Usable() {
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && term != nullptr && *term != '\0' &&
         std::string(term) != "dumb";
}

Screen::Screen() {
  for (const int number : kCrashes) std::signal(number, OnCrash);
  entered = true;
  Write(kEnter, sizeof(kEnter) - 1);
}

Screen::~Screen() {
  Restore();
  for (const int number : kCrashes) std::signal(number, SIG_DFL);
}

void Screen::Restore() {
  if (entered.exchange(false)) Write(kLeave, sizeof(kLeave) - 1);
}

ScreenSize Screen::Size() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {};
  }
  return {size.ws_col, size.ws_row};
}

void Screen::Show(const std::vector<std::string>& lines) {
  const ScreenSize size = Size();
  std::string out;
  if (size.columns != size_.columns || size.rows != size_.rows) {
    shown_.clear();
    out += "\x1b[2J";
    size_ = size;
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i < shown_.size() && shown_[i] == lines[i]) continue;
    absl::StrAppend(&out, "\x1b[", i + 1, ";1H", lines[i], "\x1b[K");
  }
  shown_ = lines;
  Write(out.data(), out.size());
}

}  // namespace fairlead::demo
