#include "scheduler/plugins/inter_pod_affinity.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/scale.h"

namespace fairlead::plugins {
namespace {

using framework::Code;
using framework::Room;

enum class Match { kNo, kYes, kUnknown };

// Does the term of a pod in `owner_ns` select a pod in `ns` with these labels?
Match Selects(const model::PodAffinityTerm& term, const std::string& owner_ns,
              const std::string& ns, const model::StringMap& labels) {
  if (!term.selector.Matches(labels)) return Match::kNo;
  if (term.namespaces.empty() && !term.namespace_selector.has_value()) {
    return ns == owner_ns ? Match::kYes : Match::kNo;
  }
  if (std::find(term.namespaces.begin(), term.namespaces.end(), ns) != term.namespaces.end()) {
    return Match::kYes;
  }
  if (!term.namespace_selector.has_value() || term.namespace_selector->none) return Match::kNo;
  return term.namespace_selector->requirements.empty() ? Match::kYes : Match::kUnknown;
}

bool NeedsNamespaceLabels(const model::PodAffinityTerm& term) {
  return term.weight == 0 && term.namespace_selector.has_value() &&
         !term.namespace_selector->none && !term.namespace_selector->requirements.empty();
}

bool HasRequired(const std::vector<model::PodAffinityTerm>& terms) {
  return std::any_of(terms.begin(), terms.end(), [](const auto& t) { return t.weight == 0; });
}

// Does the pod match all required affinity terms of the spec?
bool MatchesAllAffinity(const model::PodSpec& spec, const std::string& ns,
                        const model::StringMap& labels) {
  return std::all_of(spec.pod_affinity.begin(), spec.pod_affinity.end(), [&](const auto& term) {
    return term.weight != 0 || Selects(term, spec.ns, ns, labels) == Match::kYes;
  });
}

template <typename Map>
void AddTo(Map& map, const std::string& key, const model::StringMap& domains, int64_t amount) {
  const std::string* value = domains.Find(key);
  if (value != nullptr) map[key][*value] += amount;
}

template <typename Map>
int64_t At(const Map& map, const std::string& key, const std::string& value) {
  auto by_value = map.find(key);
  if (by_value == map.end()) return 0;
  auto it = by_value->second.find(value);
  return it == by_value->second.end() ? 0 : it->second;
}

// The sum over all topology keys of what the node's domains have.
template <typename Map>
int64_t Sum(const Map& map, const model::StringMap& domains) {
  int64_t sum = 0;
  for (const auto& [key, by_value] : map) {
    const std::string* value = domains.Find(key);
    if (value == nullptr) continue;
    auto it = by_value.find(*value);
    if (it != by_value.end()) sum += it->second;
  }
  return sum;
}

}  // namespace

absl::StatusOr<std::unique_ptr<framework::Plugin>> InterPodAffinity::Make(
    absl::string_view args_json) {
  int64_t hard_weight = 1;
  bool ignore = false;
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(kName, args_json,
                                    {{"hardPodAffinityWeight", &hard_weight, 0, 100},
                                     {"ignorePreferredTermsOfExistingPods", &ignore}}));
  return std::make_unique<InterPodAffinity>(hard_weight, ignore);
}

std::string InterPodAffinity::RefusesEverywhere(const state::PodClass& pod_class) const {
  const auto needs = [](const std::vector<model::PodAffinityTerm>& terms) {
    return std::any_of(terms.begin(), terms.end(), NeedsNamespaceLabels);
  };
  const bool affinity = needs(pod_class.spec->pod_affinity);
  if (!affinity && !needs(pod_class.spec->pod_anti_affinity)) return "";
  return absl::StrCat("spec.affinity.", affinity ? "podAffinity" : "podAntiAffinity",
                      ": this version does not evaluate a namespaceSelector in required terms");
}

InterPodAffinity::Counts InterPodAffinity::Count(const framework::Context& context) const {
  Counts counts;
  for (const auto& [name, id] : context.state.nodes_by_name()) {
    const state::NodeInfo& node = context.state.node(id);
    if (!node.exists) continue;
    for (const state::PodId pod : node.pods)
      CountPod(context, node, context.state.pod(pod), counts);
  }
  counts.least = std::numeric_limits<int64_t>::max();
  counts.most = std::numeric_limits<int64_t>::min();
  for (const auto& [name, id] : context.state.nodes_by_name()) {
    const state::NodeInfo& node = context.state.node(id);
    if (!IsPlace(node, context.room)) continue;
    const int64_t sum = Sum(counts.preference, node.object.meta.labels);
    counts.least = std::min(counts.least, sum);
    counts.most = std::max(counts.most, sum);
  }
  return counts;
}

void InterPodAffinity::CountPod(const framework::Context& context, const state::NodeInfo& node,
                                const state::PodRecord& pod, Counts& counts) const {
  if (!InTheWay(pod, context.room)) return;
  const model::PodSpec& spec = *context.pod_class.spec;
  const model::PodSpec& other = *context.state.pod_class(pod.pod_class).spec;
  const model::StringMap& domains = node.object.meta.labels;
  static const auto& no_labels = *new model::StringMap();
  const model::StringMap& labels = pod.labels == nullptr ? no_labels : *pod.labels;

  for (const model::PodAffinityTerm& term : spec.pod_anti_affinity) {
    if (term.weight == 0 && Selects(term, spec.ns, pod.ns, labels) == Match::kYes) {
      AddTo(counts.matching_anti, term.topology_key, domains, 1);
    }
  }
  for (const model::PodAffinityTerm& term : other.pod_anti_affinity) {
    if (term.weight == 0 &&
        Selects(term, pod.ns, spec.ns, spec.labels_for_affinity) != Match::kNo) {
      AddTo(counts.refusing, term.topology_key, domains, 1);
    }
  }
  const bool promised = pod.status == state::PodStatus::kPipelined;
  if (promised && context.room == Room::kNow) return;
  if (HasRequired(spec.pod_affinity) && MatchesAllAffinity(spec, pod.ns, labels)) {
    for (const model::PodAffinityTerm& term : spec.pod_affinity) {
      if (term.weight == 0) AddTo(counts.matching_affinity, term.topology_key, domains, 1);
    }
  }
  CountPreferences(spec, other, labels, domains, counts);
}

void InterPodAffinity::CountPreferences(const model::PodSpec& spec, const model::PodSpec& other,
                                        const model::StringMap& other_labels,
                                        const model::StringMap& domains, Counts& counts) const {
  const auto own = [&](const std::vector<model::PodAffinityTerm>& terms, int sign) {
    for (const model::PodAffinityTerm& term : terms) {
      if (term.weight != 0 && Selects(term, spec.ns, other.ns, other_labels) == Match::kYes) {
        AddTo(counts.preference, term.topology_key, domains, sign * int64_t{term.weight});
      }
    }
  };
  const auto theirs = [&](const std::vector<model::PodAffinityTerm>& terms, int sign,
                          int64_t required_weight) {
    for (const model::PodAffinityTerm& term : terms) {
      const int64_t weight = term.weight == 0               ? required_weight
                             : ignore_existing_preferences_ ? 0
                                                            : int64_t{term.weight};
      if (weight != 0 &&
          Selects(term, other.ns, spec.ns, spec.labels_for_affinity) == Match::kYes) {
        AddTo(counts.preference, term.topology_key, domains, sign * weight);
      }
    }
  };
  own(spec.pod_affinity, +1);
  own(spec.pod_anti_affinity, -1);
  theirs(other.pod_affinity, +1, hard_weight_);
  theirs(other.pod_anti_affinity, -1, 0);
}

bool InterPodAffinity::Filter(const framework::Context& context, const state::NodeInfo& node,
                              framework::Status* why) const {
  const model::PodSpec& spec = *context.pod_class.spec;
  const model::StringMap& domains = node.object.meta.labels;
  if (!RefusesEverywhere(context.pod_class).empty()) {
    return Refuse(why, Code::kUnschedulableAndUnresolvable,
                  "needs pod affinity by namespace labels, which this version does not evaluate");
  }
  constexpr char kAffinity[] = "node(s) didn't match pod affinity rules";
  for (const model::PodAffinityTerm& term : spec.pod_affinity) {
    if (term.weight == 0 && !domains.Has(term.topology_key)) {
      return Refuse(why, Code::kUnschedulableAndUnresolvable, kAffinity);
    }
  }
  if (context.room == Room::kEmpty) return true;

  const std::shared_ptr<const Counts> counts = cache_.Get(context, [&] { return Count(context); });
  const bool all_met = std::all_of(
      spec.pod_affinity.begin(), spec.pod_affinity.end(), [&](const model::PodAffinityTerm& term) {
        return term.weight != 0 || At(counts->matching_affinity, term.topology_key,
                                      *domains.Find(term.topology_key)) > 0;
      });
  if (!all_met) {
    const bool first = counts->matching_affinity.empty() &&
                       MatchesAllAffinity(spec, spec.ns, spec.labels_for_affinity);
    // No eviction from this node can bring a pod to be near to.
    if (!first) return Refuse(why, Code::kUnschedulableAndUnresolvable, kAffinity);
  }
  for (const model::PodAffinityTerm& term : spec.pod_anti_affinity) {
    const std::string* value = domains.Find(term.topology_key);
    if (term.weight == 0 && value != nullptr &&
        At(counts->matching_anti, term.topology_key, *value) > 0) {
      return Refuse(why, Code::kUnschedulable, "node(s) didn't match pod anti-affinity rules");
    }
  }
  if (Sum(counts->refusing, domains) > 0) {
    return Refuse(why, Code::kUnschedulable,
                  "node(s) didn't satisfy existing pods anti-affinity rules");
  }
  return true;
}

int64_t InterPodAffinity::Score(const framework::Context& context,
                                const state::NodeInfo& node) const {
  const std::shared_ptr<const Counts> counts = cache_.Get(context, [&] { return Count(context); });
  if (counts->most <= counts->least) return 0;
  const int64_t sum =
      std::clamp(Sum(counts->preference, node.object.meta.labels), counts->least, counts->most);
  return 100 * (sum - counts->least) / (counts->most - counts->least) * kPreferenceStep;
}

}  // namespace fairlead::plugins
