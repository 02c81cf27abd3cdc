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
#include "cmd/fairlead/commands.h"
#include "cmd/fairlead/config_file.h"
#include "cmd/fairlead/connection.h"
#include "cmd/fairlead/show.h"
#include "cmd/fairlead/snapshot.h"
#include "cmd/fairlead/usage_database.h"

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
