// A terminal in full-screen mode: alternate screen, hidden cursor, and both undone at the end, also
// if the program crashes.
//
// Thread-safety: one instance per process; Show by one thread. Restore() is async-signal-safe.
#pragma once

#include <string>
#include <vector>

#include "demo/live_view.h"

namespace fairlead::demo {

class Screen {
 public:
  // True if standard output is a terminal with cursor control (TERM not "dumb").
  static bool Usable();

  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // The terminal's current size; 80x24 if unknown.
  static ScreenSize Size();
  // Draws the lines from the top; only lines that changed are sent.
  void Show(const std::vector<std::string>& lines);
  // Returns to the normal screen, for a crash or an exit without destructors. May be called twice.
  static void Restore();

 private:
  std::vector<std::string> shown_;
  ScreenSize size_;
};

}  // namespace fairlead::demo
