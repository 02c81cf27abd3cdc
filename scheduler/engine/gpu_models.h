// GPUs by model (queues/gpu_model.h), as far as nodes and pods say which: what charges, requests
// and totals need to know. Thread-safety: pure functions. Complexity: one hash look-up where some
// queue names a resource beyond CPU, memory and GPU, else nothing.
#pragma once

#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "queues/tree.h"
#include "scheduler/model/pod.h"
#include "scheduler/state/records.h"

namespace fairlead::engine {

// The resources "gpu-model/..." that some queue names, ascending.
std::vector<model::ResourceIndex> GpuModels(const queues::QueueTree& tree);

// The model of the node's GPUs, if some queue names it.
std::optional<model::ResourceIndex> ModelOf(const queues::QueueTree& tree,
                                            const state::NodeInfo& node);

// The only product that the pod can run on: what its node selector names, or every term of its
// required node affinity. Empty if it may be any of several. Valid as long as the spec.
absl::string_view OnlyProduct(const model::PodSpec& spec);

}  // namespace fairlead::engine
