// What every command that reads a cluster needs before it does: files, connection, database of
// usage. All errors in flags and files are found here, before the server is contacted.
//
// Ownership: Opened owns its parts. Thread-safety: none, one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cmd/fairlead/cluster/command_flags.h"
#include "cmd/fairlead/cluster/connection.h"
#include "cmd/fairlead/cluster/usage_database.h"
#include "cmd/fairlead/inspect/show.h"
#include "cmd/fairlead/inspect/snapshot.h"
#include "cmd/fairlead/settings/config_file.h"

namespace fairlead::cmd {

struct Opened {
  OutputFormat format = OutputFormat::kTable;
  std::unique_ptr<Connection> connection;
  std::optional<Settings> settings;
  std::unique_ptr<UsageDatabase> usage_database;  // null: usage is not reported
};

// `has_wide`: the command has a wide table. `program`: Connection::Open()'s.
absl::StatusOr<Opened> Open(const CommonFlags& flags, bool has_wide = false,
                            absl::string_view program = "fairlead");

// What --partition-label-value says goes before the configuration.
void ApplyShard(const CommonFlags& flags, core::Configuration& configuration);

// Null without a database. `opened` outlives it.
FetchUsage FetchUsageOf(Opened& opened);

// Notes on standard error about what the cluster lacks.
void TellNotes(const std::vector<std::string>& missing_kinds,
               const std::vector<std::string>& notes);

}  // namespace fairlead::cmd
