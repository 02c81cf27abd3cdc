#include "scheduler/plugins/image_locality.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "base/status_macros.h"
#include "scheduler/plugins/args.h"

namespace fairlead::plugins {
namespace {

using framework::kMaxNodeScore;

constexpr int64_t kMib = int64_t{1} << 20;
constexpr int64_t kLeast = 23 * kMib;
constexpr int64_t kMostOfContainer = 1000 * kMib;
// Marks are not negative.
constexpr size_t kImagesPerMark = 63;

bool HasImage(const model::Node& node, const std::string& name) {
  const auto at = std::lower_bound(
      node.images.begin(), node.images.end(), name,
      [](const model::NodeImage& image, const std::string& wanted) { return image.name < wanted; });
  return at != node.images.end() && at->name == name;
}

int64_t GainOf(const ImageCensus::Image& image, int64_t nodes) {
  if (image.nodes == 0) return 0;
  const double spread = static_cast<double>(image.nodes) / static_cast<double>(nodes);
  return static_cast<int64_t>(static_cast<double>(image.size_bytes) * spread);
}

int64_t ScoreOf(int64_t gains, int64_t containers) {
  const int64_t most = kMostOfContainer * containers;
  if (gains < kLeast) {
    gains = kLeast;
  } else if (gains > most) {
    gains = most;
  }
  return kMaxNodeScore * (gains - kLeast) / (most - kLeast);
}

}  // namespace

absl::StatusOr<std::unique_ptr<framework::Plugin>> ImageLocality::Make(
    absl::string_view args_json) {
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(kName, args_json, {}));
  return std::make_unique<ImageLocality>();
}

const ImageCensus& ImageLocality::Census(const state::ClusterState& state) const {
  if (followed_.has_value() && &followed_->state() == &state) {
    followed_->Renew();
    return *followed_;
  }
  if (!snapshot_.has_value() || &snapshot_->state() != &state ||
      snapshot_version_ != state.version()) {
    snapshot_.emplace(state).Renew();
    snapshot_version_ = state.version();
  }
  return *snapshot_;
}

bool ImageLocality::ScoresVary(const framework::Context& context) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const ImageCensus& census = Census(context.state);
  const std::vector<std::string>& names = context.pod_class.spec->images->names;
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return census.Find(name).nodes > 0; });
}

void ImageLocality::AddMarks(const framework::Context& context, const state::NodeInfo& node,
                             const framework::TopologyKeys&, framework::Marks& marks) const {
  const std::vector<std::string>& names = context.pod_class.spec->images->names;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i % kImagesPerMark == 0) marks.push_back(0);
    if (HasImage(node.object, names[i])) marks.back() |= int64_t{1} << (i % kImagesPerMark);
  }
}

void ImageLocality::ScoreKinds(const framework::Context& context,
                               absl::Span<const framework::Kind> kinds,
                               absl::Span<int64_t> scores) const {
  const model::PodImages& images = *context.pod_class.spec->images;
  absl::InlinedVector<int64_t, 8> gains;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const ImageCensus& census = Census(context.state);
    for (const std::string& name : images.names) {
      gains.push_back(GainOf(census.Find(name), census.nodes()));
    }
  }
  for (size_t k = 0; k < kinds.size(); ++k) {
    int64_t sum = 0;
    for (size_t i = 0; i < gains.size(); ++i) {
      if (gains[i] > 0 && HasImage(kinds[k].node->object, images.names[i])) {
        sum = model::SaturatingAdd(sum, gains[i]);
      }
    }
    scores[k] = ScoreOf(sum, images.containers);
  }
}

state::StateSubscriber* ImageLocality::Follow(const state::ClusterState* state) {
  const std::lock_guard<std::mutex> lock(mutex_);
  snapshot_.reset();
  followed_.reset();
  return state == nullptr ? nullptr : &followed_.emplace(*state);
}

std::string ImageLocality::CheckConsistency() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return followed_.has_value() ? followed_->CheckConsistency() : "";
}

}  // namespace fairlead::plugins
