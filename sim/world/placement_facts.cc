#include "sim/world/placement_facts.h"

#include <algorithm>

#include "sim/world/api_json.h"

namespace fairlead::sim::world {
namespace {

// The value of "app" in matchLabels, if the selector has nothing else.
std::string AppOf(const Json* selector, bool& unknown) {
  const Json* const labels = At(selector, "matchLabels");
  if (labels == nullptr || labels->size() != 1 || selector->size() != 1) unknown = true;
  std::string app = Text(At(labels, "app"));
  if (app.empty()) unknown = true;
  return app;
}

void ReadPodTerms(const Json* affinity, const char* kind, std::vector<PodTerm>& out,
                  bool& unknown) {
  const Json* const each = At(affinity, kind);
  if (HasItems(At(each, "preferredDuringSchedulingIgnoredDuringExecution"))) unknown = true;
  const Json* const terms = At(each, "requiredDuringSchedulingIgnoredDuringExecution");
  if (terms == nullptr) return;
  for (const Json& term : *terms) {
    if (term.size() != 2) unknown = true;
    out.push_back({AppOf(At(&term, "labelSelector"), unknown), Text(At(&term, "topologyKey"))});
  }
}

bool Holds(const NodeExpression& expression, const Labels& node) {
  const auto found = node.find(expression.key);
  const bool has = found != node.end();
  if (expression.op == "Exists") return has;
  if (expression.op == "DoesNotExist") return !has;
  const bool listed = has && std::find(expression.values.begin(), expression.values.end(),
                                       found->second) != expression.values.end();
  return expression.op == "In" ? listed : !listed;
}

}  // namespace

std::vector<std::vector<NodeExpression>> ReadNodeSelector(const Json* selector, bool& unknown) {
  std::vector<std::vector<NodeExpression>> out;
  const Json* const terms = At(selector, "nodeSelectorTerms");
  if (terms == nullptr) return out;
  for (const Json& term : *terms) {
    std::vector<NodeExpression>& all = out.emplace_back();
    if (HasItems(At(&term, "matchFields"))) unknown = true;
    const Json* const expressions = At(&term, "matchExpressions");
    if (expressions == nullptr) continue;
    for (const Json& expression : *expressions) {
      NodeExpression one{Text(At(&expression, "key")), Text(At(&expression, "operator")), {}};
      if (const Json* const values = At(&expression, "values")) {
        for (const Json& value : *values) one.values.push_back(Text(&value));
      }
      all.push_back(std::move(one));
    }
  }
  return out;
}

bool AnyTermMatches(const std::vector<std::vector<NodeExpression>>& terms, const Labels& node) {
  return std::any_of(terms.begin(), terms.end(), [&](const std::vector<NodeExpression>& term) {
    return !term.empty() &&
           std::all_of(term.begin(), term.end(),
                       [&](const NodeExpression& expression) { return Holds(expression, node); });
  });
}

std::shared_ptr<const Placement> ReadPlacement(const Json& pod) {
  const Json* const spec = At(&pod, "spec");
  const Json* const selector = At(spec, "nodeSelector");
  const Json* const affinity = At(spec, "affinity");
  const Json* const spread = At(spec, "topologySpreadConstraints");
  if (!HasItems(selector) && !HasItems(affinity) && !HasItems(spread)) return nullptr;
  auto out = std::make_shared<Placement>();
  if (selector != nullptr) {
    for (auto it = selector->begin(); it != selector->end(); ++it) {
      out->selector[it.key()] = Text(&*it);
    }
    out->text += selector->dump();
  }
  if (affinity != nullptr) {
    out->node_terms = ReadNodeSelector(
        At(At(affinity, "nodeAffinity"), "requiredDuringSchedulingIgnoredDuringExecution"),
        out->unknown);
    ReadPodTerms(affinity, "podAffinity", out->near, out->unknown);
    ReadPodTerms(affinity, "podAntiAffinity", out->apart, out->unknown);
    out->text += affinity->dump();
  }
  if (spread != nullptr) {
    for (const Json& rule : *spread) {
      if (Text(At(&rule, "whenUnsatisfiable")) != "DoNotSchedule" || rule.size() != 4) {
        out->unknown = true;
      }
      out->spread.push_back({AppOf(At(&rule, "labelSelector"), out->unknown),
                             Text(At(&rule, "topologyKey")), rule.value("maxSkew", int64_t{1})});
    }
    out->text += spread->dump();
  }
  return out;
}

bool NodeMatches(const Placement& placement, const Labels& node) {
  for (const auto& [key, value] : placement.selector) {
    const auto found = node.find(key);
    if (found == node.end() || found->second != value) return false;
  }
  return placement.node_terms.empty() || AnyTermMatches(placement.node_terms, node);
}

}  // namespace fairlead::sim::world
