// what-if, drain-plan: reads the cluster once and shows what would become of it.
#include "cmd/fairlead/forecast/forecast_commands.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status_macros.h"
#include "cmd/fairlead/forecast/change.h"
#include "cmd/fairlead/forecast/drain_plan.h"
#include "cmd/fairlead/forecast/forecast_parts.h"
#include "cmd/fairlead/forecast/recorded_week.h"
#include "cmd/fairlead/forecast/week_what_if.h"
#include "cmd/fairlead/forecast/what_if.h"
#include "cmd/fairlead/inspect/open_cluster.h"
#include "cmd/fairlead/journal/journal_file.h"
#include "cmd/fairlead/terminal/progress.h"
#include "journal/player.h"

namespace fairlead::cmd {
namespace {

// The workload of all journals at the path, oldest first.
absl::StatusOr<RecordedWeek> ReadWeek(const std::string& path_of_all,
                                      const journal::ReadOptions& read, Progress& progress) {
  FAIRLEAD_ASSIGN_OR_RETURN(const std::vector<std::string> paths, JournalsAt(path_of_all));
  const int64_t total = BytesOf(paths);
  WeekReader week(read);
  FAIRLEAD_RETURN_IF_ERROR(
      ReadJournals(
          paths, [&](size_t, absl::string_view record) { return week.Take(record); },
          [&](int64_t bytes) { progress.Show("reading the journal", bytes, total); })
          .status());
  return week.Finish();
}

absl::Status RunWeek(const WhatIfFlags& flags, Change change, std::ostream& out) {
  FAIRLEAD_ASSIGN_OR_RETURN(const OutputFormat format,
                            ParseOutputFormat(flags.common.output, false));
  const RealClock clock;
  Progress progress(&clock);
  const journal::ReadOptions read = journal::Player::FromDocuments(flags.common.plugins);
  FAIRLEAD_ASSIGN_OR_RETURN(const RecordedWeek week, ReadWeek(flags.journal, read, progress));
  WeekQuestion question;
  question.week = &week;
  question.change = std::move(change);
  FAIRLEAD_ASSIGN_OR_RETURN(question.without_options, read(week.start));
  question.with_options = question.without_options;
  question.without_catalog = question.with_catalog = hook::Catalog::FromTypes(week.start.types);
  if (!flags.with_configuration.empty() || !flags.with_catalog.empty()) {
    FAIRLEAD_ASSIGN_OR_RETURN(
        Settings settings, LoadSettings(flags.with_configuration, flags.with_catalog, ReadTextFile,
                                        flags.common.plugins));
    if (!settings.catalog_file.empty()) question.with_catalog = std::move(settings.catalog);
    if (!flags.with_configuration.empty()) question.with_options = settings.configuration.options;
  }
  question.progress = [&progress](int64_t done, int64_t total) {
    progress.Show("playing", done, total);
  };
  FAIRLEAD_ASSIGN_OR_RETURN(const WeekAnswer answer, AskWeek(question));
  progress.Clear();
  out << (format == OutputFormat::kTable ? WeekText(answer) : Render(WeekJson(answer), format));
  return absl::OkStatus();
}

}  // namespace

absl::Status RunWhatIf(const WhatIfFlags& flags, std::ostream& out) {
  WhatIfQuestion question;
  FAIRLEAD_ASSIGN_OR_RETURN(question.bound, ParseBound(flags.bound));
  const bool other_settings = !flags.with_configuration.empty() || !flags.with_catalog.empty();
  if (flags.files.empty() && flags.removed.empty() && !other_settings) {
    return absl::InvalidArgumentError(
        "what-if: nothing is changed; give --filename, --delete, --with-config or --with-catalog");
  }
  FAIRLEAD_ASSIGN_OR_RETURN(question.change, ReadChange(flags.files, flags.removed));
  if (!flags.journal.empty()) return RunWeek(flags, std::move(question.change), out);
  std::optional<Settings> with_settings;
  if (other_settings) {
    const std::string& configuration =
        flags.with_configuration.empty() ? flags.common.configuration : flags.with_configuration;
    // --catalog holds for both, also against a catalogue that the other configuration names.
    const std::string& catalog =
        flags.with_catalog.empty() ? flags.common.catalog : flags.with_catalog;
    FAIRLEAD_ASSIGN_OR_RETURN(
        with_settings, LoadSettings(configuration, catalog, ReadTextFile, flags.common.plugins));
    ApplyShard(flags.common, with_settings->configuration);
    question.with_settings = &*with_settings;
  }
  FAIRLEAD_ASSIGN_OR_RETURN(Opened opened, Open(flags.common));
  question.settings = &*opened.settings;
  FAIRLEAD_ASSIGN_OR_RETURN(const WhatIf answer,
                            AskWhatIf(opened.connection->transport(), question,
                                      opened.connection->clock().Now(), FetchUsageOf(opened)));
  TellNotes(answer.missing_kinds, answer.notes);
  out << (opened.format == OutputFormat::kTable ? WhatIfText(answer)
                                                : Render(WhatIfJson(answer), opened.format));
  return absl::OkStatus();
}

absl::Status RunDrainPlan(const DrainPlanFlags& flags, std::ostream& out) {
  DrainQuestion question;
  FAIRLEAD_ASSIGN_OR_RETURN(question.bound, ParseBound(flags.bound));
  question.nodes = flags.nodes;
  FAIRLEAD_ASSIGN_OR_RETURN(Opened opened, Open(flags.common));
  question.settings = &*opened.settings;
  FAIRLEAD_ASSIGN_OR_RETURN(const DrainPlan plan,
                            AskDrainPlan(opened.connection->transport(), question,
                                         opened.connection->clock().Now(), FetchUsageOf(opened)));
  TellNotes(plan.what_if.missing_kinds, plan.what_if.notes);
  out << (opened.format == OutputFormat::kTable ? DrainPlanText(plan)
                                                : Render(DrainPlanJson(plan), opened.format));
  return absl::OkStatus();
}

}  // namespace fairlead::cmd
