#include "scheduler/engine/diagnosis.h"

namespace fairlead::engine {

const Diagnosis& Diagnoser::For(state::PodClassId pod_class) {
  constexpr size_t kMaxCached = 1024;
  if (cache_.size() > kMaxCached) cache_.clear();
  std::unique_ptr<Cached>& slot = cache_[pod_class];
  const std::shared_ptr<const model::PodSpec>& spec = state_.pod_class(pod_class).spec;
  const uint64_t version = state_.node_log_end();
  if (slot == nullptr || slot->version != version || slot->spec != spec) {
    slot = std::make_unique<Cached>(Cached{version, spec, feasibility_.WhyNot(pod_class)});
  }
  return slot->diagnosis;
}

}  // namespace fairlead::engine
