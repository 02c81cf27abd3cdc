// run, simulate, day: from flags to the parts that do the work.
#include <unistd.h>

#include <csignal>
#include <memory>
#include <mutex>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "cmd/fairlead/app.h"
#include "cmd/fairlead/commands.h"
#include "cmd/fairlead/config_file.h"
#include "cmd/fairlead/day.h"
#include "cmd/fairlead/screen.h"
#include "cmd/fairlead/signals.h"
#include "cmd/fairlead/usage_database.h"
#include "cmd/fairlead/version.h"
#include "sim/simulate_command.h"

namespace fairlead::cmd {
namespace {

// Different in every process, as the lease wants it.
std::string MakeIdentity() {
  char host[256] = "";
  if (gethostname(host, sizeof(host) - 1) != 0) host[0] = '\0';
  std::random_device device;
  return absl::StrCat(host[0] == '\0' ? "fairlead" : host, "_",
                      absl::StrFormat("%08x%08x", device(), device()));
}

}  // namespace

absl::Status RunScheduler(const RunFlags& flags) {
  FAIRLEAD_ASSIGN_OR_RETURN(const LogLevel level, ParseLogLevel(flags.log_level));
  FAIRLEAD_ASSIGN_OR_RETURN(Settings settings,
                            LoadSettings(flags.common.configuration, flags.common.catalog));
  core::Configuration& configuration = settings.configuration;
  if (!flags.scheduler_names.empty()) {
    configuration.options.state.scheduler_names = flags.scheduler_names;
  }
  if (flags.leader_elect_given) configuration.leader_election.enabled = flags.leader_elect;

  // Before the first thread, so that all of them leave the signals to the watcher.
  std::mutex mutex;
  bool asked = false;
  Application* running = nullptr;
  SignalWatcher signals(
      [&](int number) {
        if (number == SIGWINCH) return;
        const std::lock_guard<std::mutex> lock(mutex);
        asked = true;
        if (running != nullptr) running->Stop();
      },
      nullptr);

  FAIRLEAD_ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection,
                            Connection::Open(flags.common.cluster));
  FAIRLEAD_ASSIGN_OR_RETURN(const std::unique_ptr<UsageDatabase> usage_database,
                            UsageDatabase::Open(configuration, connection->clock()));
  Logger logger(&connection->clock(), level, Logger::StandardError());
  for (const std::string& warning : configuration.warnings) logger.Warning(warning);
  AppOptions options;
  options.core = configuration.options;
  options.leader_election = configuration.leader_election;
  options.identity = flags.identity.empty() ? MakeIdentity() : flags.identity;
  options.kwok.boot_delay = configuration.kwok_boot_delay;
  if (usage_database != nullptr) options.usage_queries = usage_database->queries();
  options.usage_wait_timeout = configuration.usage_database.wait_timeout;
  logger.Info("starting",
              {{"version", kVersion},
               {"cluster", connection->Describe()},
               {"identity", options.identity},
               {"scheduler_names", absl::StrJoin(options.core.state.scheduler_names, ",")},
               {"hook", options.core.hook.enabled ? options.core.hook.provider : "off"},
               {"leader_election", options.leader_election.enabled ? "on" : "off"}});
  Application application({&connection->transport(), &connection->transport(), &connection->clock(),
                           usage_database == nullptr ? nullptr : &usage_database->transport()},
                          options, &settings.catalog, &logger);
  {
    const std::lock_guard<std::mutex> lock(mutex);
    running = &application;
    if (asked) application.Stop();
  }
  const absl::Status ran = application.Run();
  const std::lock_guard<std::mutex> lock(mutex);
  running = nullptr;
  return ran;
}

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
  FAIRLEAD_ASSIGN_OR_RETURN(const Settings settings, LoadSettings(flags.configuration, ""));
  options.core = settings.configuration.options;
  options.sleep = [](absl::Duration duration) { absl::SleepFor(duration); };
  return sim::RunSimulate(options, out);
}

absl::Status RunDayCommand(const DayFlags& flags) {
  DayStop stop;
  SignalWatcher signals(
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
  return RunDay(options, stop);
}

}  // namespace fairlead::cmd
