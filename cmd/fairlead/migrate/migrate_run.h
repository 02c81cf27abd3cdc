// The steps of migrate_plan.h on a real API server: reads, patches, and looks that each step has
// had its effect before the next one.
//
// Ownership: borrows all. Thread-safety: one thread. Errors: those of ApiClient;
// FailedPrecondition if somebody else has changed what a step is about, DeadlineExceeded if the
// effect of a step does not show. What was done before an error stays done, and the command may be
// given again.
#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cmd/fairlead/cluster/api_client.h"
#include "cmd/fairlead/migrate/kai_installation.h"
#include "cmd/fairlead/migrate/migrate_plan.h"

namespace fairlead::cmd {

struct MigrationPace {
  // How long pods may take to end.
  absl::Duration patience = absl::Minutes(2);
  // How long a changed ConfigMap may take to be in force: the kubelet's syncFrequency and the age
  // of its cache, a minute each by default, and Fairlead's own look at the file.
  absl::Duration settle = absl::Seconds(150);
  absl::Duration poll = absl::Milliseconds(500);
  std::function<void(absl::Duration)> sleep;
};

// Kinds that the server does not have count as empty.
absl::StatusOr<KaiObjects> ReadKaiObjects(ApiClient& api);

// The record's namespace and steps; none: there is no record.
struct FoundRecord {
  std::string ns;
  std::vector<MigrationStep> steps;
};
absl::StatusOr<std::optional<FoundRecord>> FindRecord(ApiClient& api);

// Writes the record, then does the steps. A line per step to `out`.
absl::Status Migrate(ApiClient& api, const std::string& ns,
                     const std::vector<MigrationStep>& recorded,
                     const std::vector<MigrationStep>& steps, const MigrationPace& pace,
                     std::ostream& out);

// Undoes the recorded steps and removes the record. A field that has another value by now is left
// as it is, and told; then the record stays and the result is FailedPrecondition.
absl::Status MigrateBack(ApiClient& api, const FoundRecord& record, const MigrationPace& pace,
                         std::ostream& out);

}  // namespace fairlead::cmd
