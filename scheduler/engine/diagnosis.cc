#include "scheduler/engine/diagnosis.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/engine/node_order.h"

namespace fairlead::engine {

using Kind = state::StateChange::Kind;

state::ChangeKinds Diagnoser::Kinds() const {
  return {Kind::kClassGone, Kind::kClassAnswers, Kind::kClaim};
}

void Diagnoser::OnChange(const state::StateChange& change) {
  if (change.kind != Kind::kClaim) {
    Drop(change.row);
    return;
  }
  const std::string& claim = state_.devices().KeyOf(change.row);
  std::vector<state::PodClassId> naming;
  for (const auto& [pod_class, cached] : cache_) {
    if (NamesClaim(state_.pod_class(pod_class), claim)) naming.push_back(pod_class);
  }
  for (const state::PodClassId pod_class : naming) Drop(pod_class);
}

void Diagnoser::Drop(state::PodClassId pod_class) {
  const auto found = cache_.find(pod_class);
  if (found == cache_.end()) return;
  bytes_ -= found->second->bytes;
  cache_.erase(found);
}

bool Diagnoser::IsCurrent(Cached& cached) const {
  return cached.seen == changes_.end() ||
         (cached.of_class.diagnosis().by_objects && cached.seen >= changes_.object_end());
}

void Diagnoser::Begin() {
  round_goes_on_ = std::exchange(left_behind_, false);
  if (!round_goes_on_) ++round_;
  lagging_ = false;
  asked_ = 0;
}

uint64_t Diagnoser::AsksFor(const Cached& cached) const {
  return AsksAll(cached) ? state_.node_count() : changes_.end() - cached.seen;
}

bool Diagnoser::AsksAll(const Cached& cached) const {
  return !cached.of_class.Renewable() || cached.seen < changes_.start() ||
         changes_.end() - cached.seen > state_.node_count();
}

void Diagnoser::CatchUp(Cached& cached) {
  cached.round = round_;
  if (AsksAll(cached)) {
    cached.of_class.AskAll();
  } else {
    changes_.ForEachNode(cached.seen, changes_.end(), [&](state::NodeId node) {
      cached.of_class.Renew(node);
      return true;
    });
  }
  cached.seen = changes_.end();
  bytes_ -= cached.bytes;
  if (bytes_ + cached.of_class.bytes() > kMaxAnswerBytes) cached.of_class.DropAnswers();
  cached.bytes = cached.of_class.bytes();
  bytes_ += cached.bytes;
}

const Diagnosis& Diagnoser::For(state::PodClassId pod_class) {
  if (cache_.size() >= kMaxClasses && !cache_.contains(pod_class)) {
    cache_.clear();
    bytes_ = 0;
  }
  std::unique_ptr<Cached>& slot = cache_[pod_class];
  if (slot == nullptr) {
    slot = std::make_unique<Cached>(Cached{ClassDiagnosis(state_, framework_, pod_class)});
  }
  if (IsCurrent(*slot)) return slot->of_class.diagnosis();
  const bool had_its_turn = round_goes_on_ && slot->round == round_;
  if (slot->round == 0) {
    CatchUp(*slot);
  } else if (had_its_turn || asked_ >= max_asks_again_) {
    lagging_ = true;
    left_behind_ |= !had_its_turn;
  } else {
    asked_ += AsksFor(*slot);
    CatchUp(*slot);
  }
  return slot->of_class.diagnosis();
}

std::string Diagnoser::CheckConsistency() const {
  for (const auto& [pod_class, cached] : cache_) {
    if (!IsCurrent(*cached)) continue;
    ClassDiagnosis anew(state_, framework_, pod_class);
    anew.AskAll();
    if (!(anew.diagnosis() == cached->of_class.diagnosis())) {
      return absl::StrCat("why no node takes class ", pod_class, ": is remembered otherwise");
    }
  }
  return "";
}

}  // namespace fairlead::engine
