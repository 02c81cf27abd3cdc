// GpuFragmentation: puts a pod where it spoils the least GPU capacity for the pods that usually
// come. After fragmentation gradient descent (FGD: "Beware of Fragmentation", USENIX ATC'23), with
// a second measure that looks further ahead. For a typical pod t and the free capacity of a node:
//   unusable(t)  idle milli-GPU that t cannot take: all if it does not fit there, else what is left
//                on devices with less than it needs (FGD's measure)
//   unfilled(t)  idle milli-GPU that stays if the node is filled with nothing but t, so that GPUs
//                that will want CPU show long before the last one
//   F(node)      sum over t of weight(t) x (30 x unusable(t) + unfilled(t)), the weight by count
//                and size (WeighBySize)
// Score: F before - F after, in steps of half a milli-GPU of `unusable`; among equals the node with
// the least idle GPU. "Idle" is what is free or being released, as for NodePlacement. Whole GPUs
// come from free ones, a share joins the fullest device that has capacity, as state::PickGpus does.
//
// Range 0..kPlacementRange: it takes the place of NodePlacement. The score of GpuSharing stands
// above it and should be off, or shares join shared GPUs whatever that spoils.
//
// Args: {"typicalPods": [..]}, see typical_pods.h. Without, they are learned from the pods that
// wait and run: a census of them follows the state's change log (pod_census.h), and is read again
// if it has changed. Then the score depends on the whole cluster, and every decision costs
// O(nodes). What is true of a node alone is kept until the node changes. It is made when a score is
// asked for, by a look at NodeInfo::version of the node at hand: that number changes with the row,
// in the statement that tells the log, also on a roll-back. So the look is as good as an entry, and
// no entry has to be kept for nodes that are not asked about.
//
// Thread-safety: const methods lock a cache; Follow() and what it returns belong to the state's
// thread. Complexity: O(typical pods x devices) a score. Errors: Make says what is wrong in args.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "scheduler/framework/framework.h"
#include "scheduler/plugins/pod_census.h"
#include "scheduler/plugins/typical_pods.h"

namespace fairlead::plugins {

// What is free on a node. Only devices with something left are listed.
struct GpuCapacityOfNode {
  int64_t cpu = 0, memory = 0;
  absl::InlinedVector<int64_t, 16> devices;  // milli-GPU of each
  [[nodiscard]] int64_t Idle() const;
};

class GpuFragmentation final : public framework::ScorePlugin, public framework::FollowingPlugin {
 public:
  static constexpr char kName[] = "GpuFragmentation";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);
  // Empty: learned.
  explicit GpuFragmentation(std::vector<TypicalPod> typical);

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return given_.empty() ? framework::Depends::kCluster : framework::Depends::kNodeUsage;
  }
  [[nodiscard]] int64_t Score(const framework::Context& context,
                              const state::NodeInfo& node) const override;
  [[nodiscard]] int64_t Step() const override { return 1; }
  state::StateSubscriber* Follow(const state::ClusterState* state) override;
  std::string CheckConsistency() override;

 private:
  // What the last look at a node found.
  struct NodeEntry {
    uint64_t version = 0;  // 0: never looked at
    GpuCapacityOfNode capacity;
    std::vector<bool> accepts;  // by typical pod: does the node match its placement?
    int64_t fragmentation = 0;
  };
  const NodeEntry& Entry(const framework::Context& context, const state::NodeInfo& node) const;
  const std::vector<TypicalPod>& Typical(const state::ClusterState& state) const;
  void Learn(std::vector<TypicalPod> typical) const;
  // Forgets what it knows of another state.
  void Ask(const state::ClusterState& state) const;

  const std::vector<TypicalPod> given_;
  mutable std::mutex mutex_;
  mutable std::optional<PodCensus> census_;             // of the state that it follows
  mutable const state::ClusterState* state_ = nullptr;  // that the rest is about
  mutable std::vector<TypicalPod> learned_;
  // Of the census, or of a state that it does not follow (a snapshot: the log has told nothing
  // since); 0: nothing learned.
  mutable uint64_t learned_version_ = 0;
  mutable std::vector<NodeEntry> nodes_;  // by NodeId
};

// F above, in units of a milli-GPU of `unfilled` times kTypicalWeight.
int64_t FragmentationOf(const GpuCapacityOfNode& capacity, const std::vector<TypicalPod>& typical,
                        const std::vector<bool>& accepts);

}  // namespace fairlead::plugins
