#include "scheduler/engine/diagnosis.h"

#include "scheduler/engine/node_order.h"

namespace fairlead::engine {

using Kind = state::StateChange::Kind;

state::ChangeKinds Diagnoser::Kinds() const {
  return {Kind::kClassGone, Kind::kClassAnswers, Kind::kClaim};
}

void Diagnoser::OnChange(const state::StateChange& change) {
  if (change.kind != Kind::kClaim) {
    cache_.erase(change.row);
    return;
  }
  const std::string& claim = state_.devices().KeyOf(change.row);
  absl::erase_if(
      cache_, [&](const auto& entry) { return NamesClaim(state_.pod_class(entry.first), claim); });
}

void Diagnoser::MakeRoom() {
  absl::erase_if(cache_, [](const auto& entry) { return !entry.second->diagnosis.by_objects; });
  if (cache_.size() > kMaxByObjects) cache_.clear();
  kept_ = cache_.size();
}

const Diagnosis& Diagnoser::For(state::PodClassId pod_class) {
  if (cache_.size() > kept_ + kMaxCached) MakeRoom();
  std::unique_ptr<Cached>& slot = cache_[pod_class];
  const bool current =
      slot != nullptr && (slot->seen == changes_.end() ||
                          (slot->diagnosis.by_objects && slot->seen >= changes_.object_end()));
  if (!current) {
    slot = std::make_unique<Cached>(Cached{changes_.end(), feasibility_.WhyNot(pod_class)});
  }
  return slot->diagnosis;
}

}  // namespace fairlead::engine
