// Quota and limit per GPU model. A queue that names the resource "gpu-model/<product>" under
// spec.resources.other bounds the GPUs of that product, where the product is the value of the node
// label nvidia.com/gpu.product. The unit is devices. The bound is in addition to nvidia.com/gpu: a
// GPU of that product counts against both.
//
// A pod's charge says only "GPUs". It gets the model's part once the model is known: the node's
// product when the pod is placed; before that, the only product that its node selector allows. A
// pod that names no product is checked at the node.
//
// A model that no queue names has no resource and costs nothing. Naming the first one, or dropping
// the last, changes QueueTree::shape_version(): everything is then charged again. Thread-safety:
// pure functions. Complexity: one hash look-up.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "queues/tree.h"
#include "scheduler/model/resources.h"

namespace fairlead::queues {

// "gpu-model/<product>".
std::string GpuModelResource(absl::string_view product);

// The resource that bounds this product, if some queue names it. None for an empty product.
std::optional<model::ResourceIndex> FindGpuModel(const QueueTree& tree, absl::string_view product);

// Returns the charge with its GPUs counted for that product as well, if some queue names it.
model::Resources WithGpuModel(const QueueTree& tree, model::Resources charge,
                              absl::string_view product);

}  // namespace fairlead::queues
