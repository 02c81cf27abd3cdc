#include "kube/codec/node_draft.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace fairlead::kube {
namespace {

// Of entries with one name the first stays.
void SortImages(std::vector<model::NodeImage>& images) {
  using Image = model::NodeImage;
  std::stable_sort(images.begin(), images.end(),
                   [](const Image& a, const Image& b) { return a.name < b.name; });
  images.erase(std::unique(images.begin(), images.end(),
                           [](const Image& a, const Image& b) { return a.name == b.name; }),
               images.end());
}

}  // namespace

void NodeDraft::AddImage(absl::Span<const absl::string_view> names, int64_t size_bytes) {
  for (const absl::string_view name : names) {
    if (!name.empty()) node.images.push_back({std::string(name), size_bytes});
  }
}

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
  SortImages(node.images);
  if (!draft.problems.empty()) node.invalid = draft.problems.Text();
}

}  // namespace fairlead::kube
