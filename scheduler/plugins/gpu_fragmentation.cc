#include "scheduler/plugins/gpu_fragmentation.h"

#include <algorithm>

#include "base/status_macros.h"
#include "scheduler/plugins/common.h"
#include "scheduler/plugins/node_affinity.h"
#include "scheduler/plugins/scale.h"

namespace fairlead::plugins {
namespace {

// Weight of `unusable` against `unfilled`.
constexpr int64_t kUnusableFactor = 30;
// A step of the score: half a milli-GPU of `unusable`.
constexpr int64_t kStep = kUnusableFactor * kTypicalWeight / 2;
// Steps to each side of "spoils nothing" that are told apart, and idle milli-GPU below a step.
constexpr int64_t kMaxSteps = 20'000;
constexpr int64_t kIdleRange = 24'000;
static_assert((2 * kMaxSteps + 1) * kIdleRange <= kPlacementRange);

GpuCapacityOfNode CapacityOf(const state::NodeInfo& node) {
  GpuCapacityOfNode capacity;
  capacity.cpu = std::max<int64_t>(0, FreeAmount(node, framework::Capacity::kFuture, model::kCpu));
  capacity.memory =
      std::max<int64_t>(0, FreeAmount(node, framework::Capacity::kFuture, model::kMemory));
  const int64_t whole =
      std::max<int64_t>(0, FreeAmount(node, framework::Capacity::kFuture, model::kGpu)) / 1000;
  // No node has more devices; what it says of itself may be anything.
  constexpr int64_t kMostDevices = 1024;
  capacity.devices.assign(static_cast<size_t>(std::min(whole, kMostDevices)), 1000);
  const int64_t memory_mib = state::MemoryOrNominal(node.gpu_memory_mib);
  for (const state::GpuGroup& group : node.gpu_groups) {
    // A group that all its pods are leaving gives back its whole GPU: counted above.
    if (group.closed || (group.active == 0 && group.pipelined == 0)) continue;
    const int64_t free_mib =
        memory_mib - group.used_mib - group.pipelined_mib + group.releasing_mib;
    const int64_t milli =
        model::SaturatingMultiply(std::max<int64_t>(0, free_mib), 1000) / memory_mib;
    if (milli > 0) capacity.devices.push_back(milli);
  }
  return capacity;
}

// The room after a pod of the class took its part.
GpuCapacityOfNode After(GpuCapacityOfNode capacity, const state::PodClass& pod_class,
                        int64_t gpu_memory_mib) {
  capacity.cpu = std::max<int64_t>(0, capacity.cpu - pod_class.requests[model::kCpu]);
  capacity.memory = std::max<int64_t>(0, capacity.memory - pod_class.requests[model::kMemory]);
  const model::GpuShare& share = pod_class.spec->gpu_share;
  const int64_t milli =
      share.IsSet() ? state::ShareMilli(share, gpu_memory_mib) / std::max<int64_t>(1, share.devices)
                    : 1000;
  int64_t devices = share.IsSet() ? share.devices : pod_class.requests[model::kGpu] / 1000;
  // The fullest first that has room; each device once.
  std::sort(capacity.devices.begin(), capacity.devices.end());
  for (int64_t& device : capacity.devices) {
    if (devices == 0) break;
    if (device < milli) continue;
    device -= milli;
    --devices;
  }
  return capacity;
}

int64_t Unusable(const GpuCapacityOfNode& capacity, const TypicalPod& pod, int64_t idle) {
  if (pod.cpu > capacity.cpu || pod.memory > capacity.memory) return idle;
  int64_t fitting = 0;
  int64_t lost = 0;
  for (const int64_t device : capacity.devices) {
    if (device >= pod.milli) {
      ++fitting;
    } else {
      lost += device;
    }
  }
  return fitting < pod.devices ? idle : lost;
}

int64_t Unfilled(const GpuCapacityOfNode& capacity, const TypicalPod& pod, int64_t idle) {
  int64_t places = 0;
  for (const int64_t device : capacity.devices) places += device / pod.milli;
  places /= pod.devices;
  if (pod.cpu > 0) places = std::min(places, capacity.cpu / pod.cpu);
  if (pod.memory > 0) places = std::min(places, capacity.memory / pod.memory);
  return idle - places * pod.devices * pod.milli;
}

}  // namespace

int64_t GpuCapacityOfNode::Idle() const {
  int64_t idle = 0;
  for (const int64_t device : devices) idle += device;
  return idle;
}

int64_t FragmentationOf(const GpuCapacityOfNode& capacity, const std::vector<TypicalPod>& typical,
                        const std::vector<bool>& accepts) {
  const int64_t idle = capacity.Idle();
  if (idle == 0) return 0;
  int64_t sum = 0;
  for (size_t i = 0; i < typical.size(); ++i) {
    const int64_t lost = accepts[i] ? kUnusableFactor * Unusable(capacity, typical[i], idle) +
                                          Unfilled(capacity, typical[i], idle)
                                    : (kUnusableFactor + 1) * idle;
    sum = model::SaturatingAdd(sum, model::SaturatingMultiply(typical[i].weight, lost));
  }
  return sum;
}

absl::StatusOr<std::unique_ptr<framework::Plugin>> GpuFragmentation::Make(
    absl::string_view args_json) {
  FAIRLEAD_ASSIGN_OR_RETURN(std::vector<TypicalPod> typical, ReadTypicalPods(kName, args_json));
  return std::make_unique<GpuFragmentation>(std::move(typical));
}

GpuFragmentation::GpuFragmentation(std::vector<TypicalPod> typical)
    : given_(WeighBySize(Commonest(std::move(typical)))) {}

state::StateSubscriber* GpuFragmentation::Follow(const state::ClusterState* state) {
  const std::lock_guard<std::mutex> lock(mutex_);
  state_ = nullptr;
  census_.reset();
  if (state == nullptr || !given_.empty()) return nullptr;
  return &census_.emplace(*state);
}

std::string GpuFragmentation::CheckConsistency() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return census_.has_value() ? census_->CheckConsistency() : "";
}

void GpuFragmentation::Learn(std::vector<TypicalPod> typical) const {
  std::vector<TypicalPod> learned = WeighBySize(std::move(typical));
  const bool same = std::equal(learned.begin(), learned.end(), learned_.begin(), learned_.end(),
                               [](const TypicalPod& a, const TypicalPod& b) {
                                 return a.weight == b.weight && a.SameShape(b);
                               });
  if (same) return;
  nodes_.clear();
  learned_ = std::move(learned);
}

const std::vector<TypicalPod>& GpuFragmentation::Typical(const state::ClusterState& state) const {
  if (!given_.empty()) return given_;
  const bool follows = census_.has_value() && &census_->state() == &state;
  const uint64_t version = follows ? census_->Renew() : state.version();
  if (learned_version_ == version) return learned_;
  learned_version_ = version;
  Learn(LearnTypicalPods(state, follows ? census_->Counts() : CountPods(state)));
  return learned_;
}

const GpuFragmentation::NodeEntry& GpuFragmentation::Entry(const framework::Context& context,
                                                           const state::NodeInfo& node) const {
  const std::vector<TypicalPod>& typical = Typical(context.state);
  if (node.id >= nodes_.size()) nodes_.resize(node.id + 1);
  NodeEntry& entry = nodes_[node.id];
  if (entry.version == node.version) return entry;
  entry.version = node.version;
  entry.capacity = CapacityOf(node);
  entry.accepts.resize(typical.size());
  for (size_t i = 0; i < typical.size(); ++i) {
    entry.accepts[i] = MatchesNodeAffinity(typical[i].placement, node.object);
  }
  entry.fragmentation = FragmentationOf(entry.capacity, typical, entry.accepts);
  return entry;
}

void GpuFragmentation::Ask(const state::ClusterState& state) const {
  if (state_ == &state) return;
  state_ = &state;
  learned_version_ = 0;
  learned_.clear();
  nodes_.clear();
}

int64_t GpuFragmentation::Score(const framework::Context& context,
                                const state::NodeInfo& node) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  Ask(context.state);
  const NodeEntry& entry = Entry(context, node);
  const GpuCapacityOfNode after = After(entry.capacity, context.pod_class, node.gpu_memory_mib);
  const int64_t gain =
      entry.fragmentation - FragmentationOf(after, Typical(context.state), entry.accepts);
  // Rounded down also below zero.
  const int64_t floored = gain >= 0 ? gain / kStep : -((-gain + kStep - 1) / kStep);
  const int64_t steps = std::clamp(floored, -kMaxSteps, kMaxSteps) + kMaxSteps;
  const int64_t idle = std::min(entry.capacity.Idle(), kIdleRange - 1);
  return steps * kIdleRange + (kIdleRange - 1 - idle);
}

}  // namespace fairlead::plugins
