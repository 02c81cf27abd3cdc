#include "scheduler/plugins/inter_pod_affinity.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/common.h"

namespace fairlead::plugins {
namespace {

using framework::Capacity;
using framework::Code;
using framework::DomainCounter;
using framework::DomainCounters;
using framework::kNoDomain;
using framework::NodeDomain;
using framework::PodSet;
using framework::TopologyKey;
using framework::TopologyKeys;
using model::Selection;

void AddKey(const DomainCounter& counter, TopologyKeys& keys) {
  if (!Has(&keys, counter.key())) keys.push_back(&counter.key());
}

// Does a pod in `ns` with these labels match all required affinity terms of the spec?
bool MatchesAllAffinity(const model::PodSpec& spec, const std::string& ns,
                        const model::StringMap& labels) {
  return std::all_of(spec.pod_affinity.begin(), spec.pod_affinity.end(), [&](const auto& term) {
    return term.weight != 0 || model::Selects(term, spec.ns, ns, labels) == Selection::kYes;
  });
}

// What the counter says of the node's domain; zero without the key.
framework::PodTally Here(const DomainCounter& counter, const state::NodeInfo& node) {
  const framework::DomainId domain = counter.key().DomainOf(node).domain;
  return domain == kNoDomain ? framework::PodTally{} : counter.In(domain);
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

namespace {

bool AnyRequired(const std::vector<model::PodAffinityTerm>& terms,
                 bool (*holds)(const model::PodAffinityTerm&)) {
  return std::any_of(terms.begin(), terms.end(), [holds](const model::PodAffinityTerm& term) {
    return term.weight == 0 && holds(term);
  });
}

// No pod of any name and labels is selected, because no namespace is.
bool SelectsNoNamespace(const model::PodAffinityTerm& term) {
  return term.namespaces.empty() && model::ReadsNamespaceLabels(term) &&
         term.selected_namespaces.has_value() && term.selected_namespaces->IsEmpty();
}

bool CannotBeJudged(const model::PodSpec& spec) {
  return AnyRequired(spec.pod_affinity, model::NeedsNamespaceLabels) ||
         AnyRequired(spec.pod_anti_affinity, model::NeedsNamespaceLabels);
}

}  // namespace

std::string InterPodAffinity::RefusesEverywhere(const state::PodClass& pod_class) const {
  const model::PodSpec& spec = *pod_class.spec;
  if (CannotBeJudged(spec)) {
    const bool affinity = AnyRequired(spec.pod_affinity, model::NeedsNamespaceLabels);
    return absl::StrCat("spec.affinity.", affinity ? "podAffinity" : "podAntiAffinity",
                        ": Fairlead may not read namespaces, which namespaceSelector selects from");
  }
  if (!AnyRequired(spec.pod_affinity, SelectsNoNamespace)) return "";
  return "spec.affinity.podAffinity: no namespace has the labels that namespaceSelector asks for";
}

bool InterPodAffinity::Record::IsFirst(Capacity capacity) const {
  return matches_itself &&
         std::all_of(affinity.begin(), affinity.end(), [capacity](const DomainCounter* counter) {
           return counter->all().Attracting(capacity) == 0;
         });
}

// ---- what concerns a class

std::unique_ptr<InterPodAffinity::Record> InterPodAffinity::MakeRecord(
    DomainCounters& counters, const state::PodClass& pod_class) const {
  const model::PodSpec& spec = *pod_class.spec;
  auto record = std::make_unique<Record>();
  record->refused = CannotBeJudged(spec);
  record->matches_itself = MatchesAllAffinity(spec, spec.ns, spec.labels_for_affinity);
  const auto counter_of = [&](std::vector<framework::OwnedTerm> terms, const std::string& key) {
    record->sets.push_back(counters.Selected(std::move(terms)));
    return &counters.By(*record->sets.back(), key);
  };
  std::vector<framework::OwnedTerm> required;
  for (const model::PodAffinityTerm& term : spec.pod_affinity) {
    if (term.weight == 0) required.push_back({spec.ns, term});
  }
  for (const model::PodAffinityTerm& term : spec.pod_affinity) {
    if (term.weight == 0) {
      record->affinity.push_back(counter_of(required, term.topology_key));
    } else {
      record->own_preferences.push_back(
          {counter_of({{spec.ns, term}}, term.topology_key), term.weight});
    }
  }
  for (const model::PodAffinityTerm& term : spec.pod_anti_affinity) {
    const DomainCounter* counter = counter_of({{spec.ns, term}}, term.topology_key);
    if (term.weight == 0) {
      record->anti_affinity.push_back(counter);
    } else {
      record->own_preferences.push_back({counter, -int64_t{term.weight}});
    }
  }
  return record;
}

void InterPodAffinity::ReadOwners(DomainCounters& counters, const model::PodSpec& spec,
                                  Record& record) const {
  std::vector<const DomainCounter*> refusing;
  record.preferences = record.own_preferences;
  const bool ignored = ignore_existing_preferences_ && record.own_preferences.empty();
  counters.ForEachOwner(spec.ns, spec.labels_for_affinity,
                        [&](DomainCounters::TermKind kind, Selection selection, PodSet& set) {
                          const model::PodAffinityTerm& term = set.terms().front().term;
                          const bool anti = kind == DomainCounters::TermKind::kAntiAffinity;
                          if (anti && term.weight == 0) {
                            refusing.push_back(&counters.By(set, term.topology_key));
                            return;
                          }
                          const int64_t weight =
                              term.weight == 0 ? hard_weight_ : int64_t{term.weight};
                          if (weight == 0 || selection != Selection::kYes || ignored) return;
                          record.preferences.push_back(
                              {&counters.By(set, term.topology_key), anti ? -weight : weight});
                        });
  if (refusing != record.refusing) {
    record.refusing = std::move(refusing);
    ++record.refusing_version;
  }
  record.owners_version = counters.owners_version();
}

InterPodAffinity::Record& InterPodAffinity::RecordOf(const framework::Context& context) const {
  DomainCounters* counters = nullptr;
  Record& record = records_.Get(context, counters,
                                [this](DomainCounters& from, const state::PodClass& pod_class) {
                                  return MakeRecord(from, pod_class);
                                });
  if (record.owners_version != counters->owners_version()) {
    ReadOwners(*counters, *context.pod_class.spec, record);
  }
  return record;
}

// ---- the filter

InterPodAffinity::Refusal InterPodAffinity::Judge(const Record& record, Capacity capacity,
                                                  const state::NodeInfo& node,
                                                  const TopologyKeys* keys) {
  if (!record.affinity.empty()) {
    const bool first = record.IsFirst(capacity);
    for (const DomainCounter* counter : record.affinity) {
      if (!Has(keys, counter->key())) continue;
      const NodeDomain here = counter->key().DomainOf(node);
      if (!here.has_key) return Refusal::kAffinity;
      if (first) continue;
      if (here.domain == kNoDomain || counter->In(here.domain).Attracting(capacity) == 0) {
        return Refusal::kAffinity;
      }
    }
  }
  const auto in_the_way = [&](const DomainCounter* counter) {
    return Has(keys, counter->key()) && Here(*counter, node).InTheWay(capacity) > 0;
  };
  if (std::any_of(record.anti_affinity.begin(), record.anti_affinity.end(), in_the_way)) {
    return Refusal::kAntiAffinity;
  }
  if (std::any_of(record.refusing.begin(), record.refusing.end(), in_the_way)) {
    return Refusal::kExisting;
  }
  return Refusal::kNone;
}

// Whether the node has the keys of all required affinity terms.
bool InterPodAffinity::HasAffinityKeys(const model::PodSpec& spec, const state::NodeInfo& node) {
  return std::all_of(spec.pod_affinity.begin(), spec.pod_affinity.end(), [&](const auto& term) {
    return term.weight != 0 || node.object.meta.labels.Has(term.topology_key);
  });
}

bool InterPodAffinity::Filter(const framework::Context& context, const state::NodeInfo& node,
                              framework::Status* why) const {
  constexpr char kAffinity[] = "node(s) didn't match pod affinity rules";
  Refusal refusal = Refusal::kNone;
  if (context.capacity == Capacity::kEmpty) {
    // Nothing is counted for a class of which only this is asked.
    if (CannotBeJudged(*context.pod_class.spec)) {
      refusal = Refusal::kEverywhere;
    } else if (AnyRequired(context.pod_class.spec->pod_affinity, SelectsNoNamespace) ||
               !HasAffinityKeys(*context.pod_class.spec, node)) {
      refusal = Refusal::kAffinity;
    }
  } else {
    const Record& record = RecordOf(context);
    refusal =
        record.refused ? Refusal::kEverywhere : Judge(record, context.capacity, node, nullptr);
  }
  switch (refusal) {
    case Refusal::kNone:
      return true;
    case Refusal::kEverywhere:
      return Refuse(why, Code::kUnschedulableAndUnresolvable,
                    "node(s) cannot be judged: Fairlead may not read namespaces");
    case Refusal::kAffinity:
      // No eviction from this node can bring a pod to be near to.
      return Refuse(why, Code::kUnschedulableAndUnresolvable, kAffinity);
    case Refusal::kAntiAffinity:
      return Refuse(why, Code::kUnschedulable, "node(s) didn't match pod anti-affinity rules");
    case Refusal::kExisting:
      break;
  }
  return Refuse(why, Code::kUnschedulable,
                "node(s) didn't satisfy existing pods anti-affinity rules");
}

void InterPodAffinity::AddDependence(const framework::Context& context,
                                     framework::DomainDependence& dependence) const {
  const Record& record = RecordOf(context);
  for (const auto* counters : {&record.affinity, &record.anti_affinity, &record.refusing}) {
    for (const DomainCounter* counter : *counters) AddKey(*counter, dependence.filter);
  }
  for (const Preference& preference : record.preferences) {
    AddKey(*preference.counter, dependence.score);
  }
}

bool InterPodAffinity::AdmitsDomains(const framework::Context& context, const state::NodeInfo& node,
                                     const TopologyKeys& keys) const {
  const Record& record = RecordOf(context);
  return !record.refused && Judge(record, context.capacity, node, &keys) == Refusal::kNone;
}

void InterPodAffinity::AddThresholds(const framework::Context& context, const TopologyKeys& keys,
                                     std::vector<int64_t>& thresholds) const {
  const Record& record = RecordOf(context);
  thresholds.push_back(record.refusing_version);
  if (std::any_of(record.affinity.begin(), record.affinity.end(),
                  [&](const DomainCounter* counter) { return Has(&keys, counter->key()); })) {
    thresholds.push_back(record.IsFirst(Capacity::kNow) ? 1 : 0);
    thresholds.push_back(record.IsFirst(Capacity::kFuture) ? 1 : 0);
  }
}

// ---- the score

int64_t InterPodAffinity::SumOf(const Record& record, Capacity capacity,
                                const state::NodeInfo& node, const TopologyKeys* keys) {
  int64_t sum = 0;
  for (const Preference& preference : record.preferences) {
    if (!Has(keys, preference.counter->key())) continue;
    sum += preference.weight * Here(*preference.counter, node).Attracting(capacity);
  }
  return sum;
}

bool InterPodAffinity::ScoresVary(const framework::Context& context) const {
  if (context.capacity == Capacity::kEmpty) return false;  // nothing is there to be near to
  const Record& record = RecordOf(context);
  return std::any_of(
      record.preferences.begin(), record.preferences.end(),
      [](const Preference& preference) { return !preference.counter->domains().empty(); });
}

void InterPodAffinity::AddMarks(const framework::Context& context, const state::NodeInfo& node,
                                const TopologyKeys& by_node, framework::Marks& marks) const {
  marks.push_back(SumOf(RecordOf(context), context.capacity, node, &by_node));
}

void InterPodAffinity::ScoreKinds(const framework::Context& context,
                                  absl::Span<const framework::Kind> kinds,
                                  absl::Span<int64_t> scores) const {
  const Record& record = RecordOf(context);
  int64_t least = std::numeric_limits<int64_t>::max();
  int64_t most = std::numeric_limits<int64_t>::min();
  for (size_t i = 0; i < kinds.size(); ++i) {
    scores[i] = SumOf(record, context.capacity, *kinds[i].node, nullptr);
    if (kinds[i].nodes == 0) continue;
    least = std::min(least, scores[i]);
    most = std::max(most, scores[i]);
  }
  for (int64_t& score : scores) {
    // In floating point and rounded down, as upstream.
    const double share =
        most > least ? static_cast<double>(score - least) / static_cast<double>(most - least) : 0;
    score = static_cast<int64_t>(static_cast<double>(framework::kMaxNodeScore) * share);
  }
}

}  // namespace fairlead::plugins
