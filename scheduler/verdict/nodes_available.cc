#include "scheduler/verdict/nodes_available.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace fairlead::verdict {
namespace {

using Histogram = std::map<std::string, int64_t>;  // reason -> nodes

// "0/12 nodes are available: 4 reason, 8 other reason."
std::string TextOf(int64_t nodes, const Histogram& reasons) {
  std::vector<std::string> parts;
  parts.reserve(reasons.size());
  for (const auto& [reason, count] : reasons) {
    if (count > 0) parts.push_back(absl::StrCat(count, " ", reason));
  }
  std::sort(parts.begin(), parts.end());
  return absl::StrCat("0/", nodes, " nodes are available:", parts.empty() ? "" : " ",
                      absl::StrJoin(parts, ", "), parts.empty() ? "" : ".");
}

// The reason as upstream has it.
absl::string_view ReasonOf(const FailedPredicate& p) {
  absl::string_view reason = p.reason;
  if (!p.detail.empty() && absl::ConsumeSuffix(&reason, p.detail)) {
    reason = absl::StripTrailingAsciiWhitespace(reason);
  }
  return reason.empty() ? absl::string_view(p.plugin) : reason;
}

// One node may lack several resources; upstream counts each.
void CountNodes(const FailedPredicate& p, Histogram& reasons) {
  const absl::string_view reason = ReasonOf(p);
  if (p.plugin != "NodeResourcesFit") {
    reasons[std::string(reason)] += p.nodes;
    return;
  }
  for (const absl::string_view each : absl::StrSplit(reason, ", ")) {
    reasons[std::string(each)] += p.nodes;
  }
}

std::string PreemptionText(const Verdict& v, int64_t nodes) {
  const int64_t candidates = std::clamp<int64_t>(v.nodes_fit_empty, 0, nodes);
  return TextOf(nodes, {{"No preemption victims found for incoming pod", candidates},
                        {"Preemption is not helpful for scheduling", nodes - candidates}});
}

}  // namespace

bool RestsOnNodes(const Verdict& v) {
  if (CategoryOf(v.code) == Category::kPolicy || v.code == Code::kWaitingForVictims ||
      v.code == Code::kNodesRequested) {
    return false;
  }
  return v.nodes_asked.has_value() ||
         std::any_of(v.failed_predicates.begin(), v.failed_predicates.end(),
                     [](const FailedPredicate& p) { return p.nodes > 0; });
}

std::string NodesAvailable(const Verdict& v) {
  if (!RestsOnNodes(v)) return "";
  if (v.nodes_asked == 0) return "no nodes available to schedule pods.";
  int64_t refused = 0;
  Histogram reasons;
  for (const FailedPredicate& p : v.failed_predicates) {
    refused += p.nodes;
    CountNodes(p, reasons);
  }
  const int64_t nodes = std::max(refused, v.nodes_asked.value_or(0));
  reasons[v.min_member > 1 ? "node(s) had room for a part of the gang only"
                           : "node(s) had room that the workload may not use"] += nodes - refused;
  std::string text = TextOf(nodes, reasons);
  if (!v.may_preempt) {
    absl::StrAppend(&text, " preemption: not eligible due to preemptionPolicy=Never.");
  } else if (v.victims_sought) {
    absl::StrAppend(&text, " preemption: ", PreemptionText(v, nodes));
  }
  return text;
}

}  // namespace fairlead::verdict
