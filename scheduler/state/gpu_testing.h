// A node with GPUs, for tests of how they are shared. Header only; never part of the product.
#pragma once

#include "absl/strings/string_view.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/testing/builders.h"

namespace fairlead::state::testing {

// `memory` is the label's text, MiB of each GPU; empty: no label.
inline model::Node GpuNode(absl::string_view name, int64_t gpus, absl::string_view memory = "100") {
  model::Node node = model::testing::MakeNode(name, gpus);
  if (!memory.empty()) node.meta.labels.Set(model::kGpuMemoryLabel, memory);
  return node;
}

}  // namespace fairlead::state::testing
