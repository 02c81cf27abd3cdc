#include "sim/simulate_command.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "cmd/fairlead/commands.h"
#include "cmd/fairlead/config_file.h"

namespace fairlead::cmd {

absl::Status RunSimulateCommand(const SimulateFlags& flags, std::ostream& out) {
  if (flags.output != "table" && flags.output != "json") {
    return absl::InvalidArgumentError(
        absl::StrCat("--output ", flags.output, ": must be table or json"));
  }
  sim::SimulateOptions options;
  options.scenario_directory = flags.scenario;
  options.json = flags.output == "json";
  options.live = flags.live;
  options.check = flags.check;
  FAIRLEAD_ASSIGN_OR_RETURN(const Settings settings,
                            LoadSettings(flags.configuration, "", ReadTextFile, flags.plugins));
  // The simulated cloud is the provider.
  options.core = flags.configuration.empty() ? core::KwokOptions() : settings.configuration.options;
  options.core.extenders.clear();  // there are none in a simulated cluster
  if (flags.configuration.empty()) options.core.plugins = flags.plugins;
  options.sleep = [](absl::Duration duration) { absl::SleepFor(duration); };
  return sim::RunSimulate(options, out);
}

}  // namespace fairlead::cmd
