// The command line of the commands for reports of faults: replay, journal redact, bundle.
// Needs CLI11; for cmd/main alone. Thread-safety: one thread, as the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "absl/status/status.h"
#include "cmd/fairlead/bundle/bundle_command.h"
#include "cmd/fairlead/journal/journal_command.h"
#include "cmd/fairlead/journal/replay_command.h"
#include "scheduler/framework/framework.h"

namespace fairlead::cmd {

struct ReportFlags {
  ReplayFlags replay;
  JournalRedactFlags redact;
  BundleFlags bundle;

  void SetPlugins(const framework::RegistryPtr& plugins) {
    replay.plugins = redact.plugins = bundle.common.plugins = plugins;
  }
};

// The parsed command sets `action`. Both references outlive the app.
void AddReportCommands(CLI::App& app, ReportFlags& flags, std::function<absl::Status()>& action);

}  // namespace fairlead::cmd
