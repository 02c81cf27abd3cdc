#include "cmd/fairlead/yaml_place.h"

#include <yaml-cpp/yaml.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace fairlead::cmd {
namespace {

std::optional<TextPlace> PlaceOf(const YAML::Node& node) {
  const YAML::Mark mark = node.Mark();
  if (mark.is_null()) return std::nullopt;
  return TextPlace{mark.line + 1, mark.column + 1};
}

// The longest key of the mapping that the path begins with, since keys may contain dots.
std::optional<YAML::const_iterator> Match(const YAML::Node& node, absl::string_view path) {
  std::optional<YAML::const_iterator> best;
  size_t length = 0;
  for (auto field = node.begin(); field != node.end(); ++field) {
    const std::string key = field->first.IsScalar() ? field->first.Scalar() : "";
    if (key.empty() || key.size() <= length || !absl::StartsWith(path, key)) continue;
    const absl::string_view rest = path.substr(key.size());
    if (!rest.empty() && rest[0] != '.' && rest[0] != '[') continue;
    best = field;
    length = key.size();
  }
  return best;
}

std::optional<TextPlace> Walk(const YAML::Node& root, absl::string_view path) {
  YAML::Node node;
  node.reset(root);
  std::optional<TextPlace> place = PlaceOf(root);
  while (!path.empty()) {
    if (node.IsSequence() && absl::ConsumePrefix(&path, "[")) {
      const size_t end = path.find(']');
      size_t index = 0;
      if (end == absl::string_view::npos || !absl::SimpleAtoi(path.substr(0, end), &index) ||
          index >= node.size()) {
        return place;
      }
      path.remove_prefix(end + 1);
      node.reset(node[index]);
      place = PlaceOf(node);
    } else if (node.IsMap()) {
      const auto field = Match(node, path);
      if (!field.has_value()) return place;
      path.remove_prefix((*field)->first.Scalar().size());
      place = PlaceOf((*field)->first);
      node.reset((*field)->second);
    } else {
      return place;
    }
    absl::ConsumePrefix(&path, ".");
  }
  return place;
}

}  // namespace

std::optional<TextPlace> FindYamlPlace(absl::string_view yaml, size_t document,
                                       absl::string_view path) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(yaml));
    if (document >= documents.size()) return std::nullopt;
    return Walk(documents[document], path);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace fairlead::cmd
