#include "tests/differential/random_terms.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fairlead::differential {
namespace {

const std::vector<std::string> kTopologyKeys = {"zone", "kubernetes.io/hostname", "rack"};
constexpr char kRequired[] = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr char kPreferred[] = "preferredDuringSchedulingIgnoredDuringExecution";

}  // namespace

// ---- nodes

Json RandomTerms::NodeRequirement() {
  switch (Between(0, 4)) {
    case 0:
      return {{"key", "zone"}, {"operator", "In"}, {"values", {Pick(kZones), Pick(kZones)}}};
    case 1:
      return {{"key", "disk"}, {"operator", "NotIn"}, {"values", {Pick({"ssd", "hdd", ""})}}};
    case 2:
      return {{"key", Pick({"rack", "disk"})}, {"operator", "Exists"}};
    case 3:
      return {{"key", Pick({"rack", "zone"})}, {"operator", "DoesNotExist"}};
    default:
      return {
          {"key", "cores"}, {"operator", Pick({"Gt", "Lt"})}, {"values", {Pick({"8", "16", "0"})}}};
  }
}

Json RandomTerms::NodeTerm() {
  Json term = Json::object();
  while (OneIn(2)) term["matchExpressions"].push_back(NodeRequirement());
  while (OneIn(4)) {
    term["matchFields"].push_back({{"key", "metadata.name"},
                                   {"operator", Pick({"In", "In", "NotIn"})},
                                   {"values", {absl::StrCat("node-", Between(0, 9))}}});
  }
  return term;
}

Json RandomTerms::RequiredNodes() {
  Json terms = Json::array({NodeTerm()});
  while (OneIn(2)) terms.push_back(NodeTerm());
  return {{kRequired, {{"nodeSelectorTerms", terms}}}};
}

Json RandomTerms::PreferredNodes() {
  Json terms = Json::array();
  do {
    terms.push_back({{"weight", Between(1, 100)}, {"preference", NodeTerm()}});
  } while (!OneIn(3));
  return {{kPreferred, terms}};
}

// ---- pods

Json RandomTerms::LabelSelector() {
  Json selector = Json::object();
  if (!OneIn(3)) selector["matchLabels"]["app"] = Pick(kApps);
  if (OneIn(3)) {
    selector["matchExpressions"].push_back(
        {{"key", "tier"}, {"operator", Pick({"In", "NotIn"})}, {"values", {Pick(kTiers)}}});
  } else if (OneIn(4)) {
    selector["matchExpressions"].push_back(
        {{"key", Pick({"tier", "app"})}, {"operator", Pick({"Exists", "DoesNotExist"})}});
  }
  return selector;
}

Json RandomTerms::PodTerm() {
  Json term = {{"topologyKey", Pick(kTopologyKeys)}};
  if (!OneIn(10)) term["labelSelector"] = LabelSelector();
  if (OneIn(3)) term["namespaces"] = {Pick(kNamespaces), Pick(kNamespaces)};
  if (OneIn(4)) term["namespaceSelector"] = NamespaceSelector();
  return term;
}

Json RandomTerms::NamespaceSelector() {
  switch (Between(0, 3)) {
    case 0:
      return Json::object();
    case 1:
      return {{"matchLabels", {{"team", Pick({"x", "y"})}}}};
    case 2:
      return {{"matchLabels", {{"kubernetes.io/metadata.name", Pick(kNamespaces)}}}};
    default:
      return {{"matchExpressions",
               {{{"key", "team"}, {"operator", Pick({"DoesNotExist", "Exists"})}}}}};
  }
}

Json RandomTerms::RequiredPods(bool anti) {
  Json terms = Json::array({PodTerm()});
  while (OneIn(anti ? 3 : 4)) terms.push_back(PodTerm());
  return {{kRequired, terms}};
}

Json RandomTerms::PreferredPods() {
  Json terms = Json::array();
  do {
    terms.push_back({{"weight", Between(1, 100)}, {"podAffinityTerm", PodTerm()}});
  } while (OneIn(2));
  return {{kPreferred, terms}};
}

// ---- spread

Json RandomTerms::SpreadConstraint(const std::string& when_unsatisfiable) {
  Json constraint = {{"maxSkew", Between(1, 4)},
                     {"topologyKey", Pick(kTopologyKeys)},
                     {"whenUnsatisfiable", when_unsatisfiable}};
  if (!OneIn(10)) constraint["labelSelector"] = LabelSelector();
  if (OneIn(4) && when_unsatisfiable == "DoNotSchedule") {
    constraint["minDomains"] = Between(1, 5);
  }
  if (OneIn(3)) constraint["nodeAffinityPolicy"] = Pick({"Honor", "Ignore"});
  if (OneIn(3)) constraint["nodeTaintsPolicy"] = Pick({"Honor", "Ignore"});
  return constraint;
}

Json RandomTerms::SpreadConstraints(int hard, int soft) {
  Json constraints = Json::array();
  std::set<std::pair<std::string, std::string>> seen;
  for (int i = 0; i < hard + soft; ++i) {
    const std::string when = i < hard ? "DoNotSchedule" : "ScheduleAnyway";
    Json constraint = SpreadConstraint(when);
    if (seen.emplace(constraint["topologyKey"], when).second) {
      constraints.push_back(std::move(constraint));
    }
  }
  return constraints;
}

Json RandomTerms::SpreadArgs() {
  if (OneIn(4)) return {{"defaultingType", "System"}};
  if (OneIn(4)) return Json::object();
  Json constraints =
      SpreadConstraints(static_cast<int>(Between(0, 2)), static_cast<int>(Between(0, 3)));
  for (Json& constraint : constraints) {
    // The selector is each pod's own; keys of labels have no effect.
    constraint.erase("labelSelector");
    if (OneIn(6)) constraint["matchLabelKeys"] = {"app"};
    if (OneIn(3)) constraint["topologyKey"] = "topology.kubernetes.io/zone";
  }
  // Two of one key and mode are refused.
  std::set<std::pair<std::string, std::string>> seen;
  Json different = Json::array();
  for (Json& constraint : constraints) {
    const auto both = std::pair<std::string, std::string>(constraint["topologyKey"],
                                                          constraint["whenUnsatisfiable"]);
    if (seen.insert(both).second) different.push_back(std::move(constraint));
  }
  return {{"defaultingType", "List"}, {"defaultConstraints", different}};
}

}  // namespace fairlead::differential
