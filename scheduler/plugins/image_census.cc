#include "scheduler/plugins/image_census.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace fairlead::plugins {
namespace {

bool Counts(const state::NodeInfo& node) {
  return node.exists && node.kind == state::NodeKind::kReal;
}

int64_t SizeOf(const model::NodeImage& image) {
  return std::clamp<int64_t>(image.size_bytes, 0, state::kMaxNodeAmount);
}

}  // namespace

ImageCensus::ImageCensus(const state::ClusterState& state) : state_(state) {
  for (const auto& [name, id] : state.nodes_by_name()) Mark(id);
}

void ImageCensus::Mark(state::NodeId id) {
  if (id >= is_changed_.size()) is_changed_.resize(id + 1, false);
  if (is_changed_[id]) return;
  is_changed_[id] = true;
  changed_.push_back(id);
}

void ImageCensus::OnChange(const state::StateChange& change) { Mark(change.to_node); }

void ImageCensus::TakeOff(Part& part) {
  if (part.counted) --nodes_;
  for (const auto& [row, size] : part.images) {
    const auto of_size = row->sizes.find(size);
    if (--of_size->second == 0) row->sizes.erase(of_size);
    if (--row->nodes == 0) rows_.erase(rows_.find(row->name));
  }
  part = Part{};
}

void ImageCensus::Count(const model::Node& node, Part& part) {
  part.counted = true;
  ++nodes_;
  part.images.reserve(node.images.size());
  for (const model::NodeImage& image : node.images) {
    auto found = rows_.find(image.name);
    if (found == rows_.end()) {
      auto row = std::make_unique<Row>();
      row->name = image.name;
      const absl::string_view name = row->name;
      found = rows_.emplace(name, std::move(row)).first;
    }
    Row& row = *found->second;
    ++row.nodes;
    ++row.sizes[SizeOf(image)];
    part.images.emplace_back(&row, SizeOf(image));
  }
}

void ImageCensus::Renew() {
  for (const state::NodeId id : changed_) {
    is_changed_[id] = false;
    if (id >= parts_.size()) parts_.resize(id + 1);
    TakeOff(parts_[id]);
    // A row may be another node's by now, or one that a Transaction added.
    const state::NodeInfo& node = state_.node(id);
    if (Counts(node)) Count(node.object, parts_[id]);
  }
  changed_.clear();
}

ImageCensus::Image ImageCensus::Find(absl::string_view name) const {
  const auto found = rows_.find(name);
  if (found == rows_.end()) return {};
  return {found->second->nodes, found->second->sizes.rbegin()->first};
}

std::string ImageCensus::CheckConsistency() {
  Renew();
  std::map<std::string, Image> now;
  int64_t nodes = 0;
  for (const auto& [name, id] : state_.nodes_by_name()) {
    const state::NodeInfo& node = state_.node(id);
    if (!Counts(node)) continue;
    ++nodes;
    for (const model::NodeImage& image : node.object.images) {
      Image& counted = now[image.name];
      ++counted.nodes;
      counted.size_bytes = std::max(counted.size_bytes, SizeOf(image));
    }
  }
  if (nodes != nodes_) return absl::StrCat("images: ", nodes_, " nodes, a recount makes ", nodes);
  if (now.size() != rows_.size()) {
    return absl::StrCat("images: ", rows_.size(), ", a recount makes ", now.size());
  }
  for (const auto& [name, image] : now) {
    if (Find(name) == image) continue;
    return absl::StrCat("image ", name, ": a recount makes ", image.nodes, " nodes and ",
                        image.size_bytes, " bytes");
  }
  return "";
}

}  // namespace fairlead::plugins
