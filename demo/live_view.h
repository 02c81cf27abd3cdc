// The full screen of a run: time, queues with bars, nodes, waiting workloads with reasons, dollars
// per hour, the last events. It is drawn from core::View alone, so a simulation, a day and a live
// cluster look alike.
//
// Pure: text in, lines out; screen.h puts them on a terminal. It fits any size from 40x10 up and
// shows more on a larger screen; the rest is counted ("... and 12 more").
//
// Thread-safety: pure functions. Complexity: O(rows of the view).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/view.h"

namespace fairlead::demo {

struct LiveFrame {
  const core::View* view = nullptr;
  std::string title;                // "Monday at the institute"
  std::string note;                 // one line below the clock: the current activity
  std::vector<std::string> events;  // oldest first
  int64_t cost_micro_usd = -1;      // so far; negative: not shown
  int64_t reactive_cost_micro_usd = -1;
};

struct ScreenSize {
  int columns = 80, rows = 24;
};

// Exactly `rows` lines of at most `columns` columns. With `color`, ANSI SGR sequences on top.
std::vector<std::string> DrawLive(const LiveFrame& frame, ScreenSize size, bool color);

// A bar of `width` columns for `allocated` on a scale up to `full`. The part within the quota is
// solid, the part above it shaded; a quota above `allocated` is marked. All in base units.
std::string QueueBar(int64_t allocated, int64_t quota, int64_t full, int width);

}  // namespace fairlead::demo
