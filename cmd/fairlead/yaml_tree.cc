#include "cmd/fairlead/yaml_tree.h"

#include <yaml-cpp/yaml.h>

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace fairlead::cmd {
namespace {

constexpr int kMaxDepth = 200;
constexpr int64_t kMaxValues = 1'000'000;

// "-12", "0.5": what JSON spells the same way.
bool IsNumber(absl::string_view text) {
  size_t at = !text.empty() && text[0] == '-' ? 1 : 0;
  const auto digits = [&] {
    const size_t begin = at;
    while (at < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[at]))) ++at;
    return at - begin;
  };
  const size_t begin = at;
  const size_t whole = digits();
  if (whole == 0 || (whole > 1 && text[begin] == '0')) return false;
  if (at == text.size()) return true;
  if (text[at++] != '.') return false;
  return digits() > 0 && at == text.size();
}

Json ScalarOf(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() != "?") return Json::String(text);  // quoted
  if (text == "true" || text == "false") return Json::Bool(text == "true");
  if (text == "null" || text == "~" || text.empty()) return {};
  return IsNumber(text) ? Json::Number(text) : Json::String(text);
}

struct TooLarge {
  YAML::Mark mark;
};

Json Convert(const YAML::Node& node, int depth, int64_t& budget) {
  if (depth > kMaxDepth || --budget < 0) throw TooLarge{node.Mark()};
  if (node.IsMap()) {
    Json json = Json::Object();
    for (const auto& field : node) {
      json.Set(field.first.Scalar(), Convert(field.second, depth + 1, budget));
    }
    return json;
  }
  if (node.IsSequence()) {
    Json json = Json::Array();
    for (const YAML::Node& item : node) json.Add(Convert(item, depth + 1, budget));
    return json;
  }
  return node.IsScalar() ? ScalarOf(node) : Json();
}

absl::Status Refused(const YAML::Mark& mark, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("line ", mark.line + 1, ", column ", mark.column + 1, ": ", what));
}

}  // namespace

absl::StatusOr<std::vector<Json>> ReadYamlTrees(absl::string_view yaml) {
  std::vector<Json> trees;
  int64_t budget = kMaxValues;
  try {
    for (const YAML::Node& document : YAML::LoadAll(std::string(yaml))) {
      if (document.IsNull()) continue;
      trees.push_back(Convert(document, 0, budget));
    }
  } catch (const TooLarge& large) {
    return Refused(large.mark, "too deep or too large");
  } catch (const YAML::Exception& error) {
    return Refused(error.mark, error.msg);
  }
  return trees;
}

}  // namespace fairlead::cmd
