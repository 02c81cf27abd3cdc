#include "scheduler/plugins/pod_topology_spread.h"

#include <algorithm>

#include "base/status_macros.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/common.h"
#include "scheduler/plugins/scale.h"

namespace fairlead::plugins {
namespace {

using framework::Capacity;
using framework::Code;
using framework::NodeDomain;
using framework::TopologyKeys;

bool Has(const TopologyKeys* keys, const framework::TopologyKey& key) {
  return keys == nullptr || std::find(keys->begin(), keys->end(), &key) != keys->end();
}

}  // namespace

absl::StatusOr<std::unique_ptr<framework::Plugin>> PodTopologySpread::Make(
    absl::string_view args_json) {
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(kName, args_json, {}));
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

bool PodTopologySpread::ScoreVaries(const framework::Context& context,
                                    const TopologyKeys& keys) const {
  const Record& record = RecordOf(context);
  return std::any_of(record.begin(), record.end(), [&](const auto& tally) {
    return !tally->constraint().do_not_schedule && Has(&keys, tally->key());
  });
}

int64_t PodTopologySpread::Score(const framework::Context& context,
                                 const state::NodeInfo& node) const {
  int64_t sum = 0;
  int64_t constraints = 0;
  for (const auto& tally : RecordOf(context)) {
    if (tally->constraint().do_not_schedule) continue;
    ++constraints;
    const NodeDomain where = tally->key().DomainOf(node);
    if (!where.has_key) continue;
    const int64_t least = tally->Least(context.capacity);
    const int64_t most = tally->Most(context.capacity);
    const SpreadTally::View here = tally->In(where.domain, context.capacity);
    sum +=
        most == least ? 100 : 100 * (most - (here.is_domain ? here.pods : least)) / (most - least);
  }
  return constraints == 0 ? 0 : sum / constraints * kPreferenceStep;
}

}  // namespace fairlead::plugins
