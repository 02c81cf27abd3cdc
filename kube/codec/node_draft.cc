#include "kube/codec/node_draft.h"

#include <algorithm>
#include <utility>

namespace fairlead::kube {

void NodeDraft::AddCondition(absl::string_view type, absl::string_view status) {
  has_conditions = true;
  if (type == "Ready") ready = status == "True";
  if (status != "True") return;
  for (absl::string_view bad :
       {"MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"}) {
    if (type == bad) node.bad_conditions.emplace_back(type);
  }
}

void FinishNode(NodeDraft& draft) {
  model::Node& node = draft.node;
  if (node.allocatable.empty()) node.allocatable = std::move(draft.capacity);
  node.ready = !draft.has_conditions || draft.ready;
  std::sort(node.bad_conditions.begin(), node.bad_conditions.end());
  if (!draft.problems.empty()) node.invalid = draft.problems.Text();
}

}  // namespace fairlead::kube
