// The configuration and the catalogue of a running command, and whether their files have changed. A
// file that cannot be read changes nothing: the caller keeps its settings.
//
// A file that changes while it is read is read again by the next Poll. A configuration that is
// empty while the process runs is refused: a file that is being written is empty for a moment, and
// would mean the defaults.
//
// Files are compared by content, so an edit in place, a rename over the file and the symbolic links
// of a mounted ConfigMap are all detected. Thread-safety: none.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cmd/fairlead/settings/config_file.h"

namespace fairlead::cmd {

using SettingsLoader = std::function<absl::StatusOr<Settings>(
    const std::string& configuration_path, const std::string& catalog_path, const ReadFile& read)>;
// LoadSettings with these plugins.
inline SettingsLoader LoadWith(framework::RegistryPtr plugins) {
  return [plugins = std::move(plugins)](const std::string& configuration_path,
                                        const std::string& catalog_path, const ReadFile& read) {
    return LoadSettings(configuration_path, catalog_path, read, plugins);
  };
}

class SettingsWatch {
 public:
  // Paths as for LoadSettings. `read` has the files; another one than the system's in simulations.
  SettingsWatch(std::string configuration_path, std::string catalog_path,
                ReadFile read = ReadTextFile, SettingsLoader load = LoadWith(plugins::BuiltIn()))
      : configuration_path_(std::move(configuration_path)),
        catalog_path_(std::move(catalog_path)),
        read_(std::move(read)),
        load_(std::move(load)) {}

  // The first time.
  absl::StatusOr<Settings> Load();
  // The settings in the files, if their text has changed since the last Load or Poll.
  std::optional<absl::StatusOr<Settings>> Poll();

  // The fields that differ between `next` and the first loaded settings and that only a restart
  // changes.
  [[nodiscard]] std::vector<std::string> UnchangeableChanges(const Settings& next) const;

 private:
  [[nodiscard]] std::string Contents() const;
  [[nodiscard]] bool IsEmpty() const;  // the configuration
  // `before`: the text of the files when the reading began.
  absl::StatusOr<Settings> Read(std::string& before);

  const std::string configuration_path_, catalog_path_;
  const ReadFile read_;
  const SettingsLoader load_;
  std::string catalog_file_;  // the file that was read last: named by the flag or by the
                              // configuration
  std::string contents_;
  core::Configuration first_;
};

}  // namespace fairlead::cmd
