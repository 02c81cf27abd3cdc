#include "scheduler/engine/fit_count.h"

#include <algorithm>

#include "scheduler/model/api_names.h"

namespace fairlead::engine {
namespace {

model::Resources RequestsOf(const model::PodSpec& spec, model::ResourceNames& names) {
  model::Resources requests = model::Resources::From(spec.requests, names);
  requests.Set(model::kPods, 1);
  return requests;
}

// True if two pods of the class may not share a node.
bool KeepsApart(const model::PodSpec& spec) {
  if (!spec.host_ports.empty()) return true;
  return std::any_of(spec.pod_anti_affinity.begin(), spec.pod_anti_affinity.end(),
                     [&](const model::PodAffinityTerm& term) {
                       return term.weight == 0 && term.topology_key == model::kHostnameLabel &&
                              term.selector.Matches(spec.labels_for_affinity);
                     });
}

}  // namespace

int64_t CountThatFit(
    state::ClusterState& state, const framework::Framework& framework, const model::Node& node,
    const std::vector<std::pair<std::shared_ptr<const model::PodSpec>, int64_t>>& already,
    const std::shared_ptr<const model::PodSpec>& spec, int64_t limit) {
  state::NodeInfo info;
  info.kind = state::NodeKind::kVirtual;
  info.object = node;
  info.allocatable = model::Resources::From(node.allocatable, state.resource_names());
  state::PodClass pod_class;
  pod_class.spec = spec;
  pod_class.requests = RequestsOf(*spec, state.resource_names());
  const framework::Context context{state, pod_class, state::kNoId, framework::Room::kEmpty};
  if (!framework.FilterNodeObject(context, info, nullptr)) return 0;

  model::Resources free = info.allocatable;
  for (const auto& [loaded, count] : already) {
    free -= RequestsOf(*loaded, state.resource_names()).Times(count);
    if (*loaded == *spec && count > 0 && KeepsApart(*spec)) return 0;
  }
  int64_t fits = limit;
  for (size_t i = 0; i < pod_class.requests.size(); ++i) {
    const auto resource = static_cast<model::ResourceIndex>(i);
    const int64_t each = pod_class.requests[resource];
    if (each <= 0) continue;
    fits = std::min(fits, std::max<int64_t>(0, free[resource]) / each);
  }
  if (fits > 1 && KeepsApart(*spec)) fits = 1;
  return fits;
}

}  // namespace fairlead::engine
