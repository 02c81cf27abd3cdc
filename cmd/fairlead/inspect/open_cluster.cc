#include "cmd/fairlead/inspect/open_cluster.h"

#include <iostream>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "core/config_shard.h"
#include "usage-prometheus/fetcher.h"

namespace fairlead::cmd {
namespace {

absl::StatusOr<model::UsageReport> FetchReport(UsageDatabase& database, absl::Time now) {
  FAIRLEAD_ASSIGN_OR_RETURN(prometheus::Usage usage,
                            prometheus::FetchNow(database.transport(), database.queries(), now));
  return std::move(usage.report);
}

}  // namespace

absl::StatusOr<Opened> Open(const CommonFlags& flags, bool has_wide, absl::string_view program) {
  Opened opened;
  FAIRLEAD_ASSIGN_OR_RETURN(opened.format, ParseOutputFormat(flags.output, has_wide));
  FAIRLEAD_ASSIGN_OR_RETURN(opened.settings, LoadSettings(flags.configuration, flags.catalog,
                                                          ReadTextFile, flags.plugins));
  ApplyShard(flags, opened.settings->configuration);
  FAIRLEAD_ASSIGN_OR_RETURN(opened.connection, Connection::Open(flags.cluster, program));
  FAIRLEAD_ASSIGN_OR_RETURN(
      opened.usage_database,
      UsageDatabase::Open(opened.settings->configuration, opened.connection->clock()));
  return opened;
}

void ApplyShard(const CommonFlags& flags, core::Configuration& configuration) {
  if (!flags.partition_label_value.has_value()) return;
  core::SetShard(core::Shard{*flags.partition_label_value}, configuration.leader_election.name,
                 configuration.options);
}

FetchUsage FetchUsageOf(Opened& opened) {
  UsageDatabase* database = opened.usage_database.get();
  if (database == nullptr) return nullptr;
  return [database](absl::Time now) { return FetchReport(*database, now); };
}

void TellNotes(const std::vector<std::string>& missing_kinds,
               const std::vector<std::string>& notes) {
  if (!missing_kinds.empty()) {
    std::cerr << "note: not installed in this cluster: " << absl::StrJoin(missing_kinds, ", ")
              << std::endl;
  }
  for (const std::string& note : notes) std::cerr << "note: " << note << std::endl;
}

}  // namespace fairlead::cmd
