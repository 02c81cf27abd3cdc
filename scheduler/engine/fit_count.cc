#include "scheduler/engine/fit_count.h"

#include <algorithm>
#include <optional>

#include "scheduler/model/api_names.h"

namespace fairlead::engine {
namespace {

// True if two pods of the class may not share a node.
bool KeepsApart(const model::PodSpec& spec) {
  if (!spec.host_ports.empty()) return true;
  return std::any_of(spec.pod_anti_affinity.begin(), spec.pod_anti_affinity.end(),
                     [&](const model::PodAffinityTerm& term) {
                       return term.weight == 0 && term.topology_key == model::kHostnameLabel &&
                              term.selector.Matches(spec.labels_for_affinity);
                     });
}

// The GPUs of one empty node, given out whole or by shares, the fullest that fits first.
class GpuPacking {
 public:
  GpuPacking(int64_t gpus, int64_t memory_mib)
      : memory_mib_(state::MemoryOrNominal(memory_mib)), free_gpus_(std::max<int64_t>(0, gpus)) {}

  void TakeWhole(int64_t gpus) { free_gpus_ = std::max<int64_t>(0, free_gpus_ - gpus); }
  [[nodiscard]] int64_t FreeGpus() const { return std::max<int64_t>(0, free_gpus_); }

  // One pod; false, and nothing taken, if its devices do not fit.
  bool TakeShare(const model::GpuShare& share) {
    const int64_t need = state::ShareMib(share, memory_mib_);
    std::sort(free_mib_.begin(), free_mib_.end());
    const auto first = std::lower_bound(free_mib_.begin(), free_mib_.end(), need);
    const int64_t join = std::min<int64_t>(share.devices, free_mib_.end() - first);
    const int64_t fresh = share.devices - join;
    if (need > memory_mib_ || fresh > FreeGpus()) return false;
    for (int64_t i = 0; i < join; ++i) first[i] -= need;
    free_mib_.insert(free_mib_.end(), static_cast<size_t>(fresh), memory_mib_ - need);
    free_gpus_ -= fresh;
    return true;
  }

 private:
  int64_t memory_mib_;
  int64_t free_gpus_;
  std::vector<int64_t> free_mib_;  // of those that are shared
};

}  // namespace

int64_t CountThatFit(
    state::ClusterState& state, const framework::Framework& framework, const model::Node& node,
    const std::vector<std::pair<std::shared_ptr<const model::PodSpec>, int64_t>>& already,
    const std::shared_ptr<const model::PodSpec>& spec, int64_t limit) {
  state::NodeInfo info;
  info.kind = state::NodeKind::kVirtual;
  info.object = node;
  info.allocatable = model::Resources::From(node.allocatable, state.resource_names());
  const std::optional<model::ResourceIndex> folded = state.resource_names().folded();
  if (folded.has_value()) info.allocatable.Set(*folded, 0);
  state::PodClass pod_class;
  pod_class.spec = spec;
  pod_class.requests = state::RequestsOf(*spec, state.resource_names());
  const framework::Context context{state, pod_class, state::kNoId, framework::Room::kEmpty};
  if (!framework.FilterNodeObject(context, info, nullptr)) return 0;

  model::Resources free = info.allocatable;
  for (const auto& [loaded, count] : already) {
    free -= state::RequestsOf(*loaded, state.resource_names()).Times(count);
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

  GpuPacking gpus(info.allocatable[model::kGpu] / 1000, state::GpuMemoryOf(node));
  for (const auto& [loaded, count] : already) {
    gpus.TakeWhole(model::SaturatingMultiply(
        std::max<int64_t>(0, model::Get(loaded->requests, model::kGpuName)) / 1000, count));
  }
  for (const auto& [loaded, count] : already) {
    for (int64_t i = 0; loaded->gpu_share.IsSet() && i < count; ++i) {
      gpus.TakeShare(loaded->gpu_share);
    }
  }
  if (const int64_t each = model::Get(spec->requests, model::kGpuName); each > 0) {
    fits = std::min(fits, gpus.FreeGpus() * 1000 / each);
  }
  if (spec->gpu_share.IsSet()) {
    int64_t placed = 0;
    while (placed < fits && gpus.TakeShare(spec->gpu_share)) ++placed;
    fits = placed;
  }
  return fits;
}

}  // namespace fairlead::engine
