#include "scheduler/plugins/pod_topology_spread.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/container/flat_hash_set.h"
#include "base/status_macros.h"
#include "scheduler/model/api_names.h"
#include "scheduler/plugins/common.h"
#include "scheduler/plugins/spread_args.h"

namespace fairlead::plugins {
namespace {

using framework::Capacity;
using framework::Code;
using framework::NodeDomain;
using framework::TopologyKeys;

// Upstream counts the pods of the node itself, and not those of the label's value.
bool IsHostName(const SpreadTally& tally) {
  return tally.constraint().topology_key == model::kHostnameLabel;
}

}  // namespace

absl::StatusOr<std::unique_ptr<framework::Plugin>> PodTopologySpread::Make(
    absl::string_view args_json) {
  FAIRLEAD_RETURN_IF_ERROR(ReadSpreadDefaults(args_json).status());
  return std::make_unique<PodTopologySpread>();
}

bool PodTopologySpread::HasConstraint(const state::PodClass& pod_class, bool hard) {
  const auto& constraints = pod_class.spec->topology_spread;
  return std::any_of(constraints.begin(), constraints.end(),
                     [&](const auto& c) { return c.do_not_schedule == hard; });
}

const PodTopologySpread::Record& PodTopologySpread::RecordOf(
    const framework::Context& context) const {
  framework::DomainCounters* counters = nullptr;
  return records_.Get(context, counters,
                      [](framework::DomainCounters& from, const state::PodClass& pod_class) {
                        auto record = std::make_unique<Record>();
                        for (size_t i = 0; i < pod_class.spec->topology_spread.size(); ++i) {
                          record->push_back(std::make_unique<SpreadTally>(from, pod_class.spec, i));
                        }
                        return record;
                      });
}

PodTopologySpread::Refusal PodTopologySpread::Judge(const Record& record,
                                                    const framework::Context& context,
                                                    const state::NodeInfo& node,
                                                    const TopologyKeys* keys) {
  for (const auto& tally : record) {
    const model::TopologySpreadConstraint& c = tally->constraint();
    if (!c.do_not_schedule || !Has(keys, tally->key())) continue;
    const NodeDomain where = tally->key().DomainOf(node);
    if (!where.has_key) return Refusal::kKey;
    if (context.capacity == Capacity::kEmpty) continue;
    if (!tally->Admits(where.domain, context.capacity)) return Refusal::kSkew;
  }
  return Refusal::kNone;
}

bool PodTopologySpread::Filter(const framework::Context& context, const state::NodeInfo& node,
                               framework::Status* why) const {
  constexpr char kNoKey[] =
      "node(s) didn't match pod topology spread constraints (missing required label)";
  const bool has_keys = HasAllHardKeys(*context.pod_class.spec, node.object.meta.labels);
  if (!has_keys && why == nullptr) return false;
  if (has_keys && context.capacity == Capacity::kEmpty) return true;
  // Of several constraints the first that refuses is told.
  switch (Judge(RecordOf(context), context, node, nullptr)) {
    case Refusal::kNone:
      return true;
    case Refusal::kKey:
      return Refuse(why, Code::kUnschedulableAndUnresolvable, kNoKey);
    case Refusal::kSkew:
      return Refuse(why, Code::kUnschedulable,
                    "node(s) didn't match pod topology spread constraints");
  }
  return false;
}

void PodTopologySpread::AddDependence(const framework::Context& context,
                                      framework::DomainDependence& dependence) const {
  for (const auto& tally : RecordOf(context)) {
    // What the score reads of host names is among the marks.
    if (!tally->constraint().do_not_schedule && IsHostName(*tally)) continue;
    TopologyKeys& keys = tally->constraint().do_not_schedule ? dependence.filter : dependence.score;
    if (!Has(&keys, tally->key())) keys.push_back(&tally->key());
  }
}

bool PodTopologySpread::AdmitsDomains(const framework::Context& context,
                                      const state::NodeInfo& node, const TopologyKeys& keys) const {
  return Judge(RecordOf(context), context, node, &keys) == Refusal::kNone;
}

void PodTopologySpread::AddThresholds(const framework::Context& context, const TopologyKeys& keys,
                                      std::vector<int64_t>& thresholds) const {
  for (const auto& tally : RecordOf(context)) {
    if (!tally->constraint().do_not_schedule || !Has(&keys, tally->key())) continue;
    if (context.capacity == Capacity::kNow) tally->AddFloors(Capacity::kNow, thresholds);
    tally->AddFloors(Capacity::kFuture, thresholds);
  }
}

// ---- the score

namespace {

// Which nodes have no score: those that lack a key. Each constraint leaves the nodes without its
// own key out itself if the constraints are those of the system.
bool IsIgnored(const model::PodSpec& spec, const state::NodeInfo& node) {
  return !LooksAtAnyKey(spec) && !HasAllSoftKeys(spec, node.object.meta.labels);
}

// Domains that the kinds are in, without those that are ignored. Domains of a key that no two nodes
// share have no node in common, and a kind may have many. Of the system's constraints all nodes
// without the key are one domain more.
size_t CountDomains(const SpreadTally& tally, absl::Span<const framework::Kind> kinds,
                    const std::vector<bool>& ignored) {
  const bool one_each = IsHostName(tally) || tally.key().shared_domain_count() == 0;
  int64_t nodes = 0;
  bool unnamed = false;
  absl::flat_hash_set<framework::DomainId> domains;
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (ignored[i] || kinds[i].nodes == 0) continue;
    const NodeDomain where = tally.key().DomainOf(*kinds[i].node);
    if (!where.has_key && !IsHostName(tally)) {
      unnamed = true;
    } else if (one_each) {
      nodes += kinds[i].nodes;
    } else {
      domains.insert(where.domain);
    }
  }
  return static_cast<size_t>(nodes) + domains.size() + (unnamed ? 1 : 0);
}

int64_t CountPods(SpreadTally& tally, const framework::Context& context,
                  const state::NodeInfo& node) {
  if (IsHostName(tally)) return tally.On(node.id);
  return tally.PodsIn(tally.key().DomainOf(node).domain, context.capacity);
}

}  // namespace

void PodTopologySpread::AddMarks(const framework::Context& context, const state::NodeInfo& node,
                                 const TopologyKeys& by_node, framework::Marks& marks) const {
  marks.push_back(IsIgnored(*context.pod_class.spec, node) ? 0 : 1);
  for (const auto& tally : RecordOf(context)) {
    if (tally->constraint().do_not_schedule) continue;
    // Else the mark above says it.
    if (LooksAtAnyKey(*context.pod_class.spec)) {
      marks.push_back(tally->key().DomainOf(node).has_key ? 1 : 0);
    }
    if (!IsHostName(*tally) && !Has(&by_node, tally->key())) continue;
    marks.push_back(CountPods(*tally, context, node));
  }
}

void PodTopologySpread::ScoreKinds(const framework::Context& context,
                                   absl::Span<const framework::Kind> kinds,
                                   absl::Span<int64_t> scores) const {
  const Record& record = RecordOf(context);
  const bool any_key = LooksAtAnyKey(*context.pod_class.spec);
  std::vector<bool> ignored(kinds.size());
  for (size_t i = 0; i < kinds.size(); ++i) {
    ignored[i] = IsIgnored(*context.pod_class.spec, *kinds[i].node);
  }
  // In floating point, added up in the order of the constraints and rounded, as upstream.
  std::vector<double> sums(kinds.size(), 0);
  for (const auto& tally : record) {
    if (tally->constraint().do_not_schedule) continue;
    const double weight = std::log(static_cast<double>(CountDomains(*tally, kinds, ignored) + 2));
    for (size_t i = 0; i < kinds.size(); ++i) {
      if (ignored[i]) continue;
      if (any_key && !tally->key().DomainOf(*kinds[i].node).has_key) continue;
      const auto pods = static_cast<double>(CountPods(*tally, context, *kinds[i].node));
      sums[i] += pods * weight + static_cast<double>(tally->constraint().max_skew - 1);
    }
  }
  int64_t least = std::numeric_limits<int64_t>::max();
  int64_t most = 0;
  for (size_t i = 0; i < kinds.size(); ++i) {
    scores[i] = static_cast<int64_t>(std::round(sums[i]));
    if (ignored[i] || kinds[i].nodes == 0) continue;
    least = std::min(least, scores[i]);
    most = std::max(most, scores[i]);
  }
  for (size_t i = 0; i < kinds.size(); ++i) {
    scores[i] = ignored[i]  ? 0
                : most == 0 ? framework::kMaxNodeScore
                            : framework::kMaxNodeScore * (most + least - scores[i]) / most;
  }
}

}  // namespace fairlead::plugins
