// what-if, drain-plan: reads the cluster once and shows what would become of it.
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "cmd/fairlead/change.h"
#include "cmd/fairlead/commands.h"
#include "cmd/fairlead/drain_plan.h"
#include "cmd/fairlead/forecast_parts.h"
#include "cmd/fairlead/open_cluster.h"
#include "cmd/fairlead/what_if.h"

namespace fairlead::cmd {

absl::Status RunWhatIf(const WhatIfFlags& flags, std::ostream& out) {
  WhatIfQuestion question;
  FAIRLEAD_ASSIGN_OR_RETURN(question.bound, ParseBound(flags.bound));
  const bool other_settings = !flags.with_configuration.empty() || !flags.with_catalog.empty();
  if (flags.files.empty() && flags.removed.empty() && !other_settings) {
    return absl::InvalidArgumentError(
        "what-if: nothing is changed; give --filename, --delete, --with-config or --with-catalog");
  }
  FAIRLEAD_ASSIGN_OR_RETURN(question.change, ReadChange(flags.files, flags.removed));
  std::optional<Settings> with_settings;
  if (other_settings) {
    const std::string& configuration =
        flags.with_configuration.empty() ? flags.common.configuration : flags.with_configuration;
    // --catalog holds for both, also against a catalogue that the other configuration names.
    const std::string& catalog =
        flags.with_catalog.empty() ? flags.common.catalog : flags.with_catalog;
    FAIRLEAD_ASSIGN_OR_RETURN(
        with_settings, LoadSettings(configuration, catalog, ReadTextFile, flags.common.plugins));
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
