// ImageLocality: prefers nodes that have the pod's images: those of its containers, init containers
// and volumes. Range 0..100. An image counts its size times the part of the nodes that have it, so
// that pods do not all go to the few nodes that had their image first.
//
//   gain(image) = int(size x (nodes that have it / nodes))
//   score       = 100 x (sum of the gains of the images on the node, from 23 MiB to most, less
//                 23 MiB) / (most - 23 MiB);  most: 1000 MiB for each container and init container
//
// Source: pkg/scheduler/framework/plugins/imagelocality/image_locality.go of Kubernetes 1.36.
// The score depends on all nodes that exist, on which an image census (image_census.h) follows the
// state's change log, so nodes are scored by kinds: by which of the class's images they have. The
// state has to keep images (StateOptions::keep_images).
//
// Args: none. Thread-safety: const methods lock a cache; Follow() and what it returns belong to the
// state's thread. Complexity: O(images of the class x log(images of the node)) a node or kind.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "scheduler/framework/framework.h"
#include "scheduler/plugins/image_census.h"

namespace fairlead::plugins {

class ImageLocality final : public framework::NormalizedScorePlugin,
                            public framework::FollowingPlugin {
 public:
  static constexpr char kName[] = "ImageLocality";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeObject;
  }
  [[nodiscard]] bool ScoreApplies(const state::PodClass& pod_class) const override {
    return !pod_class.spec->images->names.empty();
  }
  [[nodiscard]] bool ScoresVary(const framework::Context& context) const override;
  void AddMarks(const framework::Context& context, const state::NodeInfo& node,
                const framework::TopologyKeys& by_node, framework::Marks& marks) const override;
  void ScoreKinds(const framework::Context& context, absl::Span<const framework::Kind> kinds,
                  absl::Span<int64_t> scores) const override;
  state::StateSubscriber* Follow(const state::ClusterState* state) override;
  std::string CheckConsistency() override;

 private:
  // Of that state, up to date. Valid while the lock is held.
  const ImageCensus& Census(const state::ClusterState& state) const;

  mutable std::mutex mutex_;
  mutable std::optional<ImageCensus> followed_;
  mutable std::optional<ImageCensus> snapshot_;  // of a state that is not followed
  mutable uint64_t snapshot_version_ = 0;        // of the state that it was taken of
};

}  // namespace fairlead::plugins
