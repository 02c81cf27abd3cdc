// fairlead migrate: from KAI's scheduler to Fairlead, and back.
#include "cmd/fairlead/migrate/migrate_command.h"

#include <iostream>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "cmd/fairlead/cluster/connection.h"
#include "cmd/fairlead/inspect/show.h"
#include "cmd/fairlead/migrate/migrate_check.h"
#include "cmd/fairlead/migrate/migrate_run.h"

namespace fairlead::cmd {
namespace {

// In audit logs it is told apart from the scheduler, which needs none of these rights.
constexpr char kMigrateProgram[] = "fairlead-migrate";

absl::StatusOr<MigrationPace> PaceOf(const MigrateFlags& flags) {
  MigrationPace pace;
  pace.sleep = [](absl::Duration time) { absl::SleepFor(time); };
  if (!absl::ParseDuration(flags.settle, &pace.settle) || pace.settle < absl::ZeroDuration() ||
      pace.settle > absl::Hours(1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--settle: \"", flags.settle, "\" is no duration from 0s to 1h"));
  }
  return pace;
}

// What --dry-run and --yes say together.
absl::Status CheckConsent(const MigrateFlags& flags, absl::string_view command) {
  if (flags.dry_run != flags.yes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(command, ": give one of --dry-run (shows the steps) and --yes (does them)"));
}

void ShowSteps(const std::vector<MigrationStep>& steps, std::ostream& out) {
  for (size_t i = 0; i < steps.size(); ++i) {
    out << i + 1 << ". " << StepText(steps[i]) << std::endl;
  }
  if (steps.empty()) out << "There is nothing to do." << std::endl;
}

absl::Status ToDoFirst(const std::vector<Finding>& findings) {
  const auto count =
      absl::c_count_if(findings, [](const Finding& f) { return f.matter == Matter::kDoFirst; });
  if (count == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("things to be done first: ", count));
}

}  // namespace

absl::Status RunMigrateCheck(const MigrateFlags& flags, std::ostream& out) {
  FAIRLEAD_ASSIGN_OR_RETURN(const OutputFormat format, ParseOutputFormat(flags.output));
  FAIRLEAD_ASSIGN_OR_RETURN(const auto connection,
                            Connection::Open(flags.cluster, kMigrateProgram));
  ApiClient api(&connection->transport());
  FAIRLEAD_ASSIGN_OR_RETURN(const KaiObjects objects, ReadKaiObjects(api));
  const std::vector<Finding> findings = ExamineKai(ReadKaiInstallation(objects), flags.controllers);
  out << (IsTable(format) ? FindingsText(findings) : Render(FindingsJson(findings), format));
  return ToDoFirst(findings);
}

absl::Status RunMigrate(const MigrateFlags& flags, std::ostream& out) {
  FAIRLEAD_RETURN_IF_ERROR(CheckConsent(flags, "migrate"));
  FAIRLEAD_ASSIGN_OR_RETURN(const MigrationPace pace, PaceOf(flags));
  FAIRLEAD_ASSIGN_OR_RETURN(const auto connection,
                            Connection::Open(flags.cluster, kMigrateProgram));
  ApiClient api(&connection->transport());
  FAIRLEAD_ASSIGN_OR_RETURN(const KaiObjects objects, ReadKaiObjects(api));
  const KaiInstallation kai = ReadKaiInstallation(objects);
  const std::vector<Finding> findings = ExamineKai(kai, flags.controllers);
  if (!IsReady(findings)) {
    out << FindingsText(findings);
    return ToDoFirst(findings);
  }
  FAIRLEAD_ASSIGN_OR_RETURN(const std::vector<MigrationStep> steps,
                            PlanMigration(kai, {.controllers = flags.controllers}));
  ShowSteps(steps, out);
  if (flags.dry_run || steps.empty()) return absl::OkStatus();
  FAIRLEAD_ASSIGN_OR_RETURN(std::optional<FoundRecord> record, FindRecord(api));
  if (!record.has_value()) record = FoundRecord{kai.fairlead.ns, {}};
  FAIRLEAD_RETURN_IF_ERROR(Migrate(api, record->ns, record->steps, steps, pace, out));
  out << "Fairlead serves " << kai.scheduler_name << " as soon as it has the changed file, within "
      << "two minutes; `fairlead migrate back --yes` undoes all of it." << std::endl;
  return absl::OkStatus();
}

absl::Status RunMigrateBack(const MigrateFlags& flags, std::ostream& out) {
  FAIRLEAD_RETURN_IF_ERROR(CheckConsent(flags, "migrate back"));
  FAIRLEAD_ASSIGN_OR_RETURN(const MigrationPace pace, PaceOf(flags));
  FAIRLEAD_ASSIGN_OR_RETURN(const auto connection,
                            Connection::Open(flags.cluster, kMigrateProgram));
  ApiClient api(&connection->transport());
  FAIRLEAD_ASSIGN_OR_RETURN(const std::optional<FoundRecord> record, FindRecord(api));
  const std::vector<MigrationStep> steps =
      record.has_value() ? UndoSteps(record->steps) : std::vector<MigrationStep>();
  ShowSteps(steps, out);
  if (flags.dry_run || steps.empty()) return absl::OkStatus();
  return MigrateBack(api, *record, pace, out);
}

}  // namespace fairlead::cmd
