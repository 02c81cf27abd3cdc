// Quota and limit per variant of a resource. The one resource that has variants is nvidia.com/gpu:
// a queue that names the resource "gpu-model/<product>" under spec.resources.other bounds the GPUs
// of that product, where the product is the value of the node label nvidia.com/gpu.product. The
// unit is devices. The bound is in addition to nvidia.com/gpu: a GPU of that product counts against
// both.
//
// A pod's charge says only how much of the resource it takes. It gets the variant's part once the
// variant is known: the node's when the pod is placed; before that, the only one that its node
// selector allows. A pod that names none is checked at the node.
//
// A variant that no queue names has no resource and costs nothing. Naming the first one, or
// dropping the last, changes QueueTree::shape_version(): everything is then charged again.
// The engine, which charges, uses these functions alone, and knows neither resource nor label.
//
// Thread-safety: pure functions. Complexity: O(1) where no queue names a resource beyond those that
// all queues have, else one hash look-up; Variants() O(resources).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "queues/tree.h"
#include "scheduler/model/object_meta.h"
#include "scheduler/model/pod.h"
#include "scheduler/model/resources.h"

namespace fairlead::queues {

using Variant = std::optional<model::ResourceIndex>;  // none: not known, or no queue names it

// "gpu-model/<product>".
std::string GpuModelResource(absl::string_view product);

// The resource that bounds this product, if some queue names it. None for an empty product.
Variant FindGpuModel(const QueueTree& tree, absl::string_view product);

// False only if no queue names a variant.
bool MayNameVariants(const QueueTree& tree);
// Those that some queue names, ascending.
std::vector<model::ResourceIndex> Variants(const QueueTree& tree);
// What a node with these labels brings.
Variant VariantOfNode(const QueueTree& tree, const model::StringMap& node_labels);
// The only one that the pod can run on: what its node selector names, or every term of its required
// node affinity.
Variant OnlyVariantOf(const QueueTree& tree, const model::PodSpec& spec);
// The pod can run on one variant alone, whether a queue names that or not.
bool NamesVariant(const model::PodSpec& spec);

// How much of the amount is of one variant or another.
int64_t AmountWithVariants(const model::Resources& amount);
// As much of the variant, and nothing else.
model::Resources OfVariant(const Variant& variant, int64_t amount);
// Returns the charge with what has variants counted for this one as well.
model::Resources WithVariant(model::Resources charge, const Variant& variant);
// The same with this much of what has variants.
model::Resources WithVariant(model::Resources charge, const Variant& variant, int64_t amount);

// Why a workload is held if its pods name no variant: "no GPU model is requested, ..".
absl::string_view NoVariantNamed();

}  // namespace fairlead::queues
