#include "sim/expectation.h"

#include <algorithm>

#include "base/status_macros.h"
#include "document/fields.h"
#include "sim/scenario.h"

namespace fairlead::sim {
namespace {

using Handler = FieldReader::Handler;

Handler Counts(const FieldReader& yaml, std::optional<std::map<std::string, int64_t>>* out) {
  return [&yaml, out](const Json& node, const std::string& field) {
    auto& counts = out->emplace();
    return yaml.AnyMap(node, field, [&](auto& key, auto& value, auto& at) {
      return yaml.Integer(&counts[key], 0)(value, at);
    });
  };
}

Handler Waits(const FieldReader& yaml, WaitCounts* out) {
  return [&yaml, out](const Json& node, const std::string& field) {
    return yaml.List(node, field, [&](auto& item, auto& at) -> absl::Status {
      std::string code, queue;
      int64_t pods = 0;
      FAIRLEAD_RETURN_IF_ERROR(yaml.Map(item, at,
                                        {{"code", yaml.Text(&code)},
                                         {"queue", yaml.Text(&queue)},
                                         {"pods", yaml.Integer(&pods, 1)}},
                                        {"code", "queue", "pods"}));
      (*out)[{code, queue}] = pods;
      return absl::OkStatus();
    });
  };
}

Handler Number(const FieldReader& yaml, std::optional<int64_t>* out) {
  return [&yaml, out](const Json& node, const std::string& field) {
    return yaml.Integer(&out->emplace(), 0)(node, field);
  };
}

absl::Status ReadCheck(const FieldReader& yaml, const Json& node, const std::string& field,
                       Expectation& out) {
  MomentCheck& check = out.checks.emplace_back();
  const Handler waiting = [&](auto& n, auto& at) {
    return Waits(yaml, &check.waiting.emplace())(n, at);
  };
  return yaml.Map(node, field,
                  {{"at", yaml.Duration(&check.at)},
                   {"nodes", Counts(yaml, &check.nodes)},
                   {"running", Counts(yaml, &check.running)},
                   {"waiting", waiting}},
                  {"at"});
}

}  // namespace

absl::StatusOr<Expectation> ReadExpectation(const std::string& path) {
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const FieldReader yaml(path);
  FAIRLEAD_ASSIGN_OR_RETURN(const Json root, yaml.Parse(text));
  Expectation out;
  const Handler checks = [&](auto& node, auto& field) {
    return yaml.List(node, field,
                     [&](auto& item, auto& at) { return ReadCheck(yaml, item, at, out); });
  };
  const Handler starts = [&](auto& node, auto& field) {
    return yaml.List(node, field, [&](auto& item, auto& at) {
      auto& [first, then] = out.starts.emplace_back();
      return yaml.Map(item, at, {{"first", yaml.Text(&first)}, {"then", yaml.Text(&then)}},
                      {"first", "then"});
    });
  };
  const Handler reactive = [&](auto& node, auto& field) {
    if (!node.is_text() || node.text() != "true") return yaml.Error(node, field, "must be true");
    out.reactive_costs_more = true;
    return absl::OkStatus();
  };
  FAIRLEAD_RETURN_IF_ERROR(
      yaml.Map(root, "",
               {{"checks", checks},
                {"starts", starts},
                {"waited", Waits(yaml, &out.waited)},
                {"bought", Counts(yaml, &out.bought)},
                {"evictions", Number(yaml, &out.evictions)},
                {"nodesAtEnd", Number(yaml, &out.nodes_at_end)},
                {"policyBlockedNodes", Number(yaml, &out.policy_blocked_nodes)},
                {"duplicateNodes", Number(yaml, &out.duplicate_nodes)},
                {"reactiveCostsMore", reactive}}));
  std::stable_sort(out.checks.begin(), out.checks.end(),
                   [](const MomentCheck& a, const MomentCheck& b) { return a.at < b.at; });
  return out;
}

}  // namespace fairlead::sim
