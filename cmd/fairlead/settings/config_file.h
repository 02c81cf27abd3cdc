// The files that a command gets: configuration and catalogue, with every error as
// "file:line:column: field: what is wrong". Thread-safety: pure functions of the files.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autoscale-hook/catalog/catalog.h"
#include "core/configuration.h"
#include "scheduler/plugins/registry.h"

namespace fairlead::cmd {

// Reads a whole file. InvalidArgument with its path and the system's reason, because the path is an
// argument.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

// The YAML text of a configuration file. `file_name` is for messages. Profiles may name `plugins`.
absl::StatusOr<core::Configuration> ParseConfiguration(
    absl::string_view yaml, absl::string_view file_name,
    const framework::RegistryPtr& plugins = plugins::BuiltIn());

struct Settings {
  core::Configuration configuration;
  hook::Catalog catalog;
  std::string catalog_file;  // the file of the catalogue; empty: the built-in one
};
using ReadFile = std::function<absl::StatusOr<std::string>(const std::string& path)>;
// Empty paths: the built-in ones. A catalogue and a kwok.outOfStockFile named in the configuration
// are relative to that file.
// `read` has the files; another one than the system's in simulations. The options have `plugins`
// with and without a file.
absl::StatusOr<Settings> LoadSettings(const std::string& configuration_path,
                                      const std::string& catalog_path,
                                      const ReadFile& read = ReadTextFile,
                                      const framework::RegistryPtr& plugins = plugins::BuiltIn());

// Whether the file at `path` lists an instance type, one per line; each call reads the file, and an
// unreadable file lists none. Null for an empty path.
std::function<bool(absl::string_view instance_type)> OutOfStock(const std::string& path);

}  // namespace fairlead::cmd
