// Which images the nodes of a cluster have, counted by name: a count over the whole state that
// follows its change log instead of being made again for each decision.
//
// Nodes are those that exist and are real: what a Transaction adds does not count. An image's size
// is the largest that a node says (they say the same unless a tag was moved; upstream takes the
// size of the node that it saw first).
//
// A subscriber of the log: a node whose object is told is marked, and counted again when the census
// is asked. What was counted for a node is remembered, and exactly that is taken off.
//
// Units: bytes. Ownership: borrows the state, which has to outlive it; has a copy of each image's
// name. Thread-safety: the state's. Complexity: an entry O(1); Renew() O(images of the nodes that
// were told since); the first one O(images of all nodes).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "scheduler/state/change_log.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::plugins {

class ImageCensus final : public state::StateSubscriber {
 public:
  // To be subscribed by its owner, at once, or not at all.
  explicit ImageCensus(const state::ClusterState& state);
  ImageCensus(const ImageCensus&) = delete;
  ImageCensus& operator=(const ImageCensus&) = delete;
  [[nodiscard]] const state::ClusterState& state() const { return state_; }

  void OnChange(const state::StateChange& change) override;
  [[nodiscard]] state::ChangeKinds Kinds() const override {
    return {state::StateChange::Kind::kNodeObject};
  }

  // Brings the counts up to date.
  void Renew();

  // As of Renew(). Zeros for an image that no node has.
  struct Image {
    int64_t nodes = 0;
    int64_t size_bytes = 0;  // 0..state::kMaxNodeAmount
    friend bool operator==(const Image&, const Image&) = default;
  };
  [[nodiscard]] Image Find(absl::string_view name) const;
  [[nodiscard]] int64_t nodes() const { return nodes_; }

  // Renews; the first difference from a recount, or empty.
  [[nodiscard]] std::string CheckConsistency();

 private:
  struct Row {
    std::string name;
    std::map<int64_t, int64_t> sizes;  // size -> nodes that say so
    int64_t nodes = 0;
  };
  // What was counted for a node.
  struct Part {
    bool counted = false;
    std::vector<std::pair<Row*, int64_t>> images;  // with their sizes
  };

  void Mark(state::NodeId id);
  void TakeOff(Part& part);
  void Count(const model::Node& node, Part& part);

  const state::ClusterState& state_;
  absl::flat_hash_map<absl::string_view, std::unique_ptr<Row>> rows_;  // by Row::name
  std::vector<Part> parts_;                                            // by NodeId
  std::vector<state::NodeId> changed_;                                 // since Renew(), each once
  std::vector<bool> is_changed_;                                       // by NodeId
  int64_t nodes_ = 0;
};

}  // namespace fairlead::plugins
