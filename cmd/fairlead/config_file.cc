#include "cmd/fairlead/config_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "cmd/fairlead/yaml_place.h"
#include "kube/codec/codec.h"

namespace fairlead::cmd {
namespace {

// "YAML: line 3, column 7: what" as "file:3:7: what".
absl::Status SyntaxError(const absl::Status& error, absl::string_view file_name) {
  absl::string_view message = error.message();
  absl::ConsumePrefix(&message, "YAML: ");
  int line = 0;
  int column = 0;
  int length = 0;
  const std::string text(message);
  if (std::sscanf(text.c_str(), "line %d, column %d: %n", &line, &column, &length) == 2 &&
      length > 0) {
    return absl::InvalidArgumentError(absl::StrCat(file_name, ":", line, ":", column, ": ",
                                                   text.substr(static_cast<size_t>(length))));
  }
  return absl::InvalidArgumentError(absl::StrCat(file_name, ": ", message));
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

}  // namespace

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", std::strerror(errno)));
  }
  if (S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a folder, not a file"));
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::InvalidArgumentError(absl::StrCat(path, ": ", std::strerror(errno)));
  return std::string(std::istreambuf_iterator<char>(in), {});
}

absl::StatusOr<core::Configuration> ParseConfiguration(absl::string_view yaml,
                                                       absl::string_view file_name) {
  absl::StatusOr<std::vector<std::string>> documents = kube::YamlToJson(yaml);
  if (!documents.ok()) return SyntaxError(documents.status(), file_name);
  absl::StatusOr<core::Configuration> read = core::ReadConfiguration(*documents);
  if (read.ok()) return read;
  std::string where(file_name);
  if (const auto field = core::FieldPlaceOf(read.status()); field.has_value()) {
    const auto place = FindYamlPlace(yaml, field->document, field->path);
    if (place.has_value()) absl::StrAppend(&where, ":", place->line, ":", place->column);
  }
  return absl::Status(read.status().code(), absl::StrCat(where, ": ", read.status().message()));
}

absl::StatusOr<Settings> LoadSettings(const std::string& configuration_path,
                                      const std::string& catalog_path) {
  Settings settings{{}, hook::Catalog::BuiltIn(), ""};
  std::string catalog_file = catalog_path;
  if (!configuration_path.empty()) {
    FAIRLEAD_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(configuration_path));
    FAIRLEAD_ASSIGN_OR_RETURN(settings.configuration, ParseConfiguration(text, configuration_path));
    const std::string& named = settings.configuration.catalog_file;
    if (catalog_file.empty() && !named.empty()) {
      catalog_file = named[0] == '/' ? named : absl::StrCat(FolderOf(configuration_path), named);
    }
  }
  if (!catalog_file.empty()) {
    FAIRLEAD_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(catalog_file));
    FAIRLEAD_ASSIGN_OR_RETURN(settings.catalog, hook::Catalog::Parse(text, catalog_file));
    settings.catalog_file = catalog_file;
  }
  return settings;
}

}  // namespace fairlead::cmd
