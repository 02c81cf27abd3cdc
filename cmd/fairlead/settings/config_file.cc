#include "cmd/fairlead/settings/config_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "document/yaml.h"

namespace fairlead::cmd {
namespace {

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

// A path that the configuration file names; empty stays empty.
std::string Beside(const std::string& configuration_path, const std::string& named) {
  if (named.empty() || named[0] == '/') return named;
  return absl::StrCat(FolderOf(configuration_path), named);
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
                                                       absl::string_view file_name,
                                                       const framework::RegistryPtr& plugins) {
  FAIRLEAD_ASSIGN_OR_RETURN(const std::vector<Json> documents,
                            LoadYaml(yaml, {.file_name = std::string(file_name)}));
  std::vector<std::string> texts;
  texts.reserve(documents.size());
  for (const Json& document : documents) texts.push_back(document.Compact());
  absl::StatusOr<core::Configuration> read = core::ReadConfiguration(texts, plugins);
  if (read.ok()) return read;
  std::string where(file_name);
  const auto field = core::FieldPlaceOf(read.status());
  if (field.has_value() && field->document < documents.size()) {
    const auto [line, column] = FindPlace(documents[field->document], field->path);
    if (line > 0) absl::StrAppend(&where, ":", line, ":", column);
  }
  return absl::Status(read.status().code(), absl::StrCat(where, ": ", read.status().message()));
}

absl::StatusOr<Settings> LoadSettings(const std::string& configuration_path,
                                      const std::string& catalog_path, const ReadFile& read,
                                      const framework::RegistryPtr& plugins) {
  Settings settings{{}, hook::Catalog::BuiltIn(), ""};
  settings.configuration.options.plugins = plugins;
  std::string catalog_file = catalog_path;
  if (!configuration_path.empty()) {
    FAIRLEAD_ASSIGN_OR_RETURN(const std::string text, read(configuration_path));
    FAIRLEAD_ASSIGN_OR_RETURN(settings.configuration,
                              ParseConfiguration(text, configuration_path, plugins));
    const std::string& named = settings.configuration.catalog_file;
    if (catalog_file.empty()) catalog_file = Beside(configuration_path, named);
    std::string& out_of_stock = settings.configuration.kwok_out_of_stock_file;
    out_of_stock = Beside(configuration_path, out_of_stock);
  }
  if (!catalog_file.empty()) {
    FAIRLEAD_ASSIGN_OR_RETURN(const std::string text, read(catalog_file));
    FAIRLEAD_ASSIGN_OR_RETURN(settings.catalog, hook::Catalog::Parse(text, catalog_file));
    settings.catalog_file = catalog_file;
  }
  return settings;
}

std::function<bool(absl::string_view)> OutOfStock(const std::string& path) {
  if (path.empty()) return nullptr;
  return [path](absl::string_view instance_type) {
    const absl::StatusOr<std::string> text = ReadTextFile(path);
    if (!text.ok()) return false;
    for (absl::string_view line : absl::StrSplit(*text, '\n')) {
      line = absl::StripAsciiWhitespace(line);
      if (!line.empty() && line == instance_type) return true;
    }
    return false;
  };
}

}  // namespace fairlead::cmd
