// The configuration and the catalogue that a command runs with, and whether their files say
// something else by now. What cannot be read changes nothing: the caller goes on with what it has.
//
// Files are compared by content, so that an edit in place, a rename over the file and the symbolic
// links of a mounted ConfigMap are all seen. Thread-safety: none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cmd/fairlead/config_file.h"

namespace fairlead::cmd {

class SettingsWatch {
 public:
  // Paths as LoadSettings takes them.
  SettingsWatch(std::string configuration_path, std::string catalog_path)
      : configuration_path_(std::move(configuration_path)),
        catalog_path_(std::move(catalog_path)) {}

  // The first time.
  absl::StatusOr<Settings> Load();
  // What the files say, if that is another text than at the last Load or Poll.
  std::optional<absl::StatusOr<Settings>> Poll();

  // The fields in which `next` differs from what was loaded first, and that only a restart changes.
  [[nodiscard]] std::vector<std::string> UnchangeableChanges(const Settings& next) const;

 private:
  [[nodiscard]] std::string Contents() const;

  const std::string configuration_path_, catalog_path_;
  std::string catalog_file_;  // that was read last: named by the flag or by the configuration
  std::string contents_;
  core::Configuration first_;
};

}  // namespace fairlead::cmd
