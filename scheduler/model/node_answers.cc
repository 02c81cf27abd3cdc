#include "scheduler/model/node_answers.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace fairlead::model {
namespace {

constexpr size_t kMostReasons = 3;

}  // namespace

std::string RefusalsOf(const NodeAnswers& answers) {
  std::map<std::string, int64_t> nodes;
  for (const NodeAnswer& answer : answers.list()) {
    if (!answer.admitted) ++nodes[answer.reason];
  }
  std::vector<std::pair<std::string, int64_t>> reasons(nodes.begin(), nodes.end());
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (size_t i = 0; i < std::min(reasons.size(), kMostReasons); ++i) {
    const auto& [reason, count] = reasons[i];
    absl::StrAppend(&text, text.empty() ? "" : "; ", count,
                    count == 1 ? " node: " : " nodes: ", reason);
  }
  if (reasons.size() > kMostReasons) absl::StrAppend(&text, "; and other reasons");
  return text;
}

}  // namespace fairlead::model
