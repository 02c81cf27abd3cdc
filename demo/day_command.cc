#include "demo/day_command.h"

#include <csignal>

#include "cmd/fairlead/run/signals.h"
#include "demo/day.h"
#include "demo/screen.h"

namespace fairlead::demo {

absl::Status RunDayCommand(const DayFlags& flags) {
  DayStop stop;
  cmd::SignalWatcher signals(
      [&stop](int number) {
        if (number != SIGWINCH) stop.Request();
      },
      [] { Screen::Restore(); });
  DayOptions options;
  options.scenario_directory = flags.scenario;
  options.cluster = flags.cluster;
  options.crds = flags.crds;
  options.yes = flags.yes;
  options.plain = flags.plain;
  options.speed = flags.speed;
  options.log_file = flags.log_file;
  options.plugins = flags.plugins;
  return RunDay(options, stop);
}

}  // namespace fairlead::demo
