#include "cmd/fairlead/forecast/simulate_command.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "cmd/fairlead/cluster/version.h"
#include "cmd/fairlead/inspect/show.h"
#include "cmd/fairlead/journal/journal_file.h"
#include "cmd/fairlead/settings/config_file.h"
#include "journal/recorder.h"
#include "sim/simulate_command.h"

namespace fairlead::cmd {
namespace {

absl::Status WriteJournal(const std::string& path, const std::vector<std::string>& records) {
  FAIRLEAD_ASSIGN_OR_RETURN(const std::unique_ptr<JournalWriter> writer,
                            JournalWriter::Create(path));
  for (const std::string& record : records) FAIRLEAD_RETURN_IF_ERROR(writer->Add(record));
  return writer->Close();
}

}  // namespace

absl::Status RunSimulateCommand(const SimulateFlags& flags, std::ostream& out) {
  FAIRLEAD_RETURN_IF_ERROR(CheckTableOrJson(flags.output));
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
  std::vector<std::string> records;
  journal::Recorder recorder(
      kVersion, [&records](std::string record) { records.push_back(std::move(record)); });
  if (!flags.journal.empty()) {
    if (std::filesystem::exists(flags.journal)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--journal ", flags.journal, ": exists and is not overwritten; name another file"));
    }
    options.inputs = &recorder;
  }
  options.sleep = [](absl::Duration duration) { absl::SleepFor(duration); };
  FAIRLEAD_RETURN_IF_ERROR(sim::RunSimulate(options, out));
  return flags.journal.empty() ? absl::OkStatus() : WriteJournal(flags.journal, records);
}

}  // namespace fairlead::cmd
