// The commands `catalog` and `catalog import`. Each prints its result to `out` and notes to
// standard error, and returns a Status with a message for users.
#pragma once

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "autoscale-hook/catalog/csv_import.h"
#include "cmd/fairlead/cluster/command_flags.h"

namespace fairlead::cmd {

// `fairlead catalog`: the instance types that can be bought. Contacts no cluster.
absl::Status RunCatalog(const CommonFlags& flags, std::ostream& out);

struct CatalogImportFlags {
  std::string file;
  hook::CsvImportOptions options;
};
// `fairlead catalog import`: prints a catalogue file. Contacts nothing.
absl::Status RunCatalogImport(const CatalogImportFlags& flags, std::ostream& out);

}  // namespace fairlead::cmd
