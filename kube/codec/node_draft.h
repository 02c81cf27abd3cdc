// A node while it is being decoded, as PodDraft for pods. Thread-safety: a plain value. Ownership:
// the node belongs to the caller and is filled in place.
#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kube/codec/field_problems.h"
#include "scheduler/model/node.h"

namespace fairlead::kube {

// The names of one image; views into the message.
using ImageNames = absl::InlinedVector<absl::string_view, 4>;

struct NodeDraft {
  explicit NodeDraft(model::Node& target) : node(target) {}

  model::Node& node;
  model::ResourceList capacity;
  bool has_conditions = false;
  bool ready = false;
  Problems problems;

  void AddCondition(absl::string_view type, absl::string_view status);
  // An image with all its names.
  void AddImage(absl::Span<const absl::string_view> names, int64_t size_bytes);
};

// An absent (or empty) allocatable is the capacity, as the API server defaults it. A node without
// any condition counts as ready; one with conditions but without Ready does not.
void FinishNode(NodeDraft& draft);

}  // namespace fairlead::kube
