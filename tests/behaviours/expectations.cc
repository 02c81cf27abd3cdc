#include "tests/behaviours/expectations.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "scheduler/verdict/verdict.h"

namespace fairlead::behaviours {
namespace {

std::string At(const Behaviour& behaviour, TextPlace place) {
  return absl::StrCat(behaviour.file, ":", place.line, ": ");
}

std::string WaitText(const Wait& wait) {
  const std::string code = wait.code.empty() ? "no verdict code" : wait.code;
  const std::string reasons =
      wait.reasons.empty() ? "" : absl::StrCat(" [", absl::StrJoin(wait.reasons, "; "), "]");
  return absl::StrCat("it waits: ", code, ": ", wait.message, reasons);
}

std::string StateOf(const Seen& seen, const std::string& pod) {
  const auto found = seen.pods.find(pod);
  if (found == seen.pods.end()) {
    return seen.evicted.contains(pod) ? "it was evicted" : "there is no such pod";
  }
  if (!found->second.node.empty()) return absl::StrCat("it is on node ", found->second.node);
  return found->second.wait.has_value() ? WaitText(*found->second.wait)
                                        : "it waits, and the scheduler has not said why";
}

bool IsMetByWait(const PodExpectation& expected, const Wait& wait, Scheduler scheduler) {
  const bool has_reason =
      expected.reason.empty() ||
      std::any_of(wait.reasons.begin(), wait.reasons.end(), [&](const std::string& reason) {
        return absl::StrContains(reason, expected.reason);
      });
  if (scheduler == Scheduler::kKubeScheduler) {
    const bool gated = expected.code == verdict::CodeName(verdict::Code::kGated);
    return has_reason && (expected.code.empty() || gated == wait.is_gated);
  }
  return has_reason && !wait.code.empty() &&
         (expected.code.empty() || expected.code == wait.code) &&
         absl::StrContains(wait.message, expected.message);
}

bool IsMet(const PodExpectation& expected, const Seen& seen, Scheduler scheduler) {
  const auto found = seen.pods.find(expected.pod);
  if (found == seen.pods.end()) return false;
  const SeenPod& pod = found->second;
  if (!expected.nodes.empty()) {
    return std::find(expected.nodes.begin(), expected.nodes.end(), pod.node) !=
           expected.nodes.end();
  }
  if (expected.is_ignored) return pod.node.empty() && !pod.wait.has_value();
  return pod.node.empty() && pod.wait.has_value() && IsMetByWait(expected, *pod.wait, scheduler);
}

std::string TextOf(const PodExpectation& expected) {
  if (!expected.nodes.empty()) {
    return absl::StrCat("node ", absl::StrJoin(expected.nodes, " or "));
  }
  if (expected.is_ignored) return "to be ignored";
  std::string text = absl::StrCat("waits", expected.code.empty() ? "" : ": ", expected.code);
  if (!expected.reason.empty()) absl::StrAppend(&text, ", reason with \"", expected.reason, "\"");
  if (!expected.message.empty()) {
    absl::StrAppend(&text, ", message with \"", expected.message, "\"");
  }
  return text;
}

std::vector<int64_t> CountsBy(const SpreadExpectation& expected, const Seen& seen) {
  std::map<std::string, int64_t> by_domain;
  for (const std::string& pod : expected.pods) {
    const auto found = seen.pods.find(pod);
    if (found == seen.pods.end() || found->second.node.empty()) continue;
    const auto labels = seen.node_labels.find(found->second.node);
    if (labels == seen.node_labels.end()) continue;
    const auto domain = labels->second.find(expected.label);
    if (domain != labels->second.end()) ++by_domain[domain->second];
  }
  std::vector<int64_t> counts;
  for (const auto& [domain, count] : by_domain) counts.push_back(count);
  std::sort(counts.begin(), counts.end());
  return counts;
}

std::string SpreadFailure(const SpreadExpectation& expected, const std::vector<int64_t>& counts,
                          const Seen& seen) {
  std::vector<std::string> states;
  for (const std::string& pod : expected.pods) {
    states.push_back(absl::StrCat("pod ", pod, ": ", StateOf(seen, pod)));
  }
  return absl::StrCat("spread by ", expected.label, ": expected [",
                      absl::StrJoin(expected.counts, ", "), "]; it is [",
                      absl::StrJoin(counts, ", "), "]; ", absl::StrJoin(states, "; "));
}

}  // namespace

std::vector<std::string> Failures(const Behaviour& behaviour, const Step& step, const Seen& seen,
                                  Scheduler scheduler) {
  std::vector<std::string> failures;
  for (const PodExpectation& expected : step.pods) {
    if (IsMet(expected, seen, scheduler)) continue;
    failures.push_back(absl::StrCat(At(behaviour, expected.place), "pod ", expected.pod,
                                    ": expected ", TextOf(expected), "; ",
                                    StateOf(seen, expected.pod)));
  }
  for (const SpreadExpectation& expected : step.spread) {
    const std::vector<int64_t> counts = CountsBy(expected, seen);
    if (counts == expected.counts) continue;
    failures.push_back(
        absl::StrCat(At(behaviour, expected.place), SpreadFailure(expected, counts, seen)));
  }
  if (!std::equal(seen.evicted.begin(), seen.evicted.end(), step.evicted.begin(),
                  step.evicted.end())) {
    failures.push_back(absl::StrCat(At(behaviour, step.evicted_place), "evicted: expected [",
                                    absl::StrJoin(step.evicted, ", "), "]; it is [",
                                    absl::StrJoin(seen.evicted, ", "), "]"));
  }
  return failures;
}

}  // namespace fairlead::behaviours
