#include "scheduler/plugins/pod_topology_spread.h"

#include <algorithm>

#include "base/status_macros.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/node_affinity.h"
#include "scheduler/plugins/scale.h"
#include "scheduler/plugins/taint_toleration.h"

namespace fairlead::plugins {
namespace {

using framework::Code;
using framework::Room;

bool HasAllHardKeys(const model::PodSpec& spec, const model::StringMap& labels) {
  return std::all_of(spec.topology_spread.begin(), spec.topology_spread.end(), [&](const auto& c) {
    return !c.do_not_schedule || labels.Has(c.topology_key);
  });
}

int64_t MatchingPods(const framework::Context& context, const state::NodeInfo& node,
                     const model::TopologySpreadConstraint& constraint) {
  int64_t count = 0;
  for (const state::PodId id : node.pods) {
    const state::PodRecord& pod = context.state.pod(id);
    if (pod.terminating || !state::IsAllocated(pod.status)) continue;
    if (pod.ns == context.pod_class.spec->ns && pod.labels != nullptr &&
        constraint.selector.Matches(*pod.labels)) {
      ++count;
    }
  }
  return count;
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

PodTopologySpread::ByConstraint PodTopologySpread::Count(const framework::Context& context) {
  const model::PodSpec& spec = *context.pod_class.spec;
  ByConstraint counts(spec.topology_spread.size());
  for (const auto& [name, id] : context.state.nodes_by_name()) {
    const state::NodeInfo& node = context.state.node(id);
    if (!IsPlace(node, context.room)) continue;
    const bool affinity = MatchesNodeAffinity(spec, node.object);
    const bool tolerated = FindUntolerated(spec, node.object) == nullptr;
    const bool all_keys = HasAllHardKeys(spec, node.object.meta.labels);
    for (size_t i = 0; i < counts.size(); ++i) {
      const model::TopologySpreadConstraint& c = spec.topology_spread[i];
      const std::string* value = node.object.meta.labels.Find(c.topology_key);
      if (value == nullptr || (c.do_not_schedule && !all_keys)) continue;
      if ((c.honor_node_affinity && !affinity) || (c.honor_node_taints && !tolerated)) continue;
      counts[i].pods[*value] += MatchingPods(context, node, c);
    }
  }
  for (Domains& domains : counts) {
    if (domains.pods.empty()) continue;
    const auto [least, most] =
        std::minmax_element(domains.pods.begin(), domains.pods.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; });
    domains.least = least->second;
    domains.most = most->second;
  }
  return counts;
}

bool PodTopologySpread::Filter(const framework::Context& context, const state::NodeInfo& node,
                               framework::Status* why) const {
  const model::PodSpec& spec = *context.pod_class.spec;
  if (!HasAllHardKeys(spec, node.object.meta.labels)) {
    return Refuse(why, Code::kUnschedulableAndUnresolvable,
                  "node(s) didn't match pod topology spread constraints (missing required label)");
  }
  if (context.room == Room::kEmpty) return true;
  const auto counts = cache_.Get(context, [&] { return Count(context); });
  for (size_t i = 0; i < counts->size(); ++i) {
    const model::TopologySpreadConstraint& c = spec.topology_spread[i];
    if (!c.do_not_schedule) continue;
    const Domains& domains = (*counts)[i];
    auto here = domains.pods.find(*node.object.meta.labels.Find(c.topology_key));
    // A domain that only this node will open (it is being planned) is empty.
    const int64_t pods = here == domains.pods.end() ? 0 : here->second;
    const bool few = static_cast<int64_t>(domains.pods.size()) < c.min_domains;
    const int64_t least = few || here == domains.pods.end() ? 0 : domains.least;
    const int64_t self = c.selector.Matches(spec.labels_for_affinity) ? 1 : 0;
    if (pods + self - least > c.max_skew) {
      return Refuse(why, Code::kUnschedulable,
                    "node(s) didn't match pod topology spread constraints");
    }
  }
  return true;
}

int64_t PodTopologySpread::Score(const framework::Context& context,
                                 const state::NodeInfo& node) const {
  const model::PodSpec& spec = *context.pod_class.spec;
  const auto counts = cache_.Get(context, [&] { return Count(context); });
  int64_t sum = 0;
  int64_t constraints = 0;
  for (size_t i = 0; i < counts->size(); ++i) {
    const model::TopologySpreadConstraint& c = spec.topology_spread[i];
    if (c.do_not_schedule) continue;
    ++constraints;
    const std::string* value = node.object.meta.labels.Find(c.topology_key);
    if (value == nullptr) continue;
    const Domains& domains = (*counts)[i];
    auto here = domains.pods.find(*value);
    const int64_t pods = here == domains.pods.end() ? domains.least : here->second;
    sum += domains.most == domains.least
               ? 100
               : 100 * (domains.most - pods) / (domains.most - domains.least);
  }
  return constraints == 0 ? 0 : sum / constraints * kPreferenceStep;
}

}  // namespace fairlead::plugins
