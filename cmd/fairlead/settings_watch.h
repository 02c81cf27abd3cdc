// The configuration and the catalogue of a running command, and whether their files have changed. A
// file that cannot be read changes nothing: the caller keeps its settings.
//
// Files are compared by content, so an edit in place, a rename over the file and the symbolic links
// of a mounted ConfigMap are all detected. Thread-safety: none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cmd/fairlead/config_file.h"

namespace fairlead::cmd {

class SettingsWatch {
 public:
  // Paths as for LoadSettings.
  SettingsWatch(std::string configuration_path, std::string catalog_path)
      : configuration_path_(std::move(configuration_path)),
        catalog_path_(std::move(catalog_path)) {}

  // The first time.
  absl::StatusOr<Settings> Load();
  // The settings in the files, if their text has changed since the last Load or Poll.
  std::optional<absl::StatusOr<Settings>> Poll();

  // The fields that differ between `next` and the first loaded settings and that only a restart
  // changes.
  [[nodiscard]] std::vector<std::string> UnchangeableChanges(const Settings& next) const;

 private:
  [[nodiscard]] std::string Contents() const;

  const std::string configuration_path_, catalog_path_;
  std::string catalog_file_;  // the file that was read last: named by the flag or by the
                              // configuration
  std::string contents_;
  core::Configuration first_;
};

}  // namespace fairlead::cmd
