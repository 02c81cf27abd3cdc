// What the labels of a node, and the name of its instance type, say about the machine: spot or not,
// the family of the type, the GPU. One answer for the plugins, the scale hook and its providers.
//
// Families. The clouds name their types differently, so the rule has four cases, in this order:
//   VM.GPU.A10.1                VM.GPU.A10     Oracle: all but the last part
//   Standard_NC24ads_A100_v4    NCads_A100_v4  Azure: without the tier and the number of CPUs,
//   which
//                                              is how Azure names the series
//   m5.large, u-6tb1.metal      m5, u-6tb1     AWS: what comes before the first '.'
//   a2-highgpu-1g               a2             Google and others: what comes before the first '-'
// A name that none of these cases fits is its own family.
//
// GPU models. A model as people write it ("A100", "L40S", "A100-80GB") suits a product
// ("NVIDIA-A100-SXM4-80GB") if all its words are words of the product, in that order, whatever the
// case. Words are separated by anything but letters, digits and '.'. So L4 does not suit
// NVIDIA-L40S, and A10 does not suit NVIDIA-A10G.
//
// Sources: the names of types and the node labels that AWS, Google, Azure, Oracle and Karpenter
// document; NVIDIA's GPU feature discovery for nvidia.com/gpu.product.
// Thread-safety: pure functions. Complexity: O(length of the texts). Errors: none; any text has an
// answer.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "scheduler/model/object_meta.h"

namespace fairlead::model {

// Some label says that the machine may be taken back by the cloud (spot, preemptible). A node that
// no label calls spot is on-demand.
bool IsSpotNode(const StringMap& labels);
// Some label says that the machine is of a reservation. Such a node is on-demand, too: the cloud
// does not take it back.
bool IsReservedNode(const StringMap& labels);

// As above; a text of the type's name, or with Azure's names another one. "" of "".
std::string InstanceFamily(absl::string_view type_name);

// The product of the node's GPUs, as the first label says that the node has of: NVIDIA's feature
// discovery, Google's gke-accelerator, Karpenter's instance-gpu-name. "" if it has none.
absl::string_view GpuProductOf(const StringMap& labels);

bool GpuModelSuits(absl::string_view model, absl::string_view product);

}  // namespace fairlead::model
