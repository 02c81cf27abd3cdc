#include "scheduler/engine/class_diagnosis.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/engine/hypothesis.h"

namespace fairlead::engine {

using framework::Capacity;
using framework::Status;

ClassDiagnosis::ClassDiagnosis(const state::ClusterState& state,
                               const framework::Framework& framework, state::PodClassId pod_class)
    : state_(state),
      framework_(framework),
      pod_class_(pod_class),
      plugins_(framework.PluginsOf(state.pod_class(pod_class))),
      filters_(framework.FiltersOf(state.pod_class(pod_class))),
      node_local_(framework.FiltersNodeLocal(state.pod_class(pod_class))) {}

bool ClassDiagnosis::Tally::Is(const Status& why) const {
  return plugin == why.plugin && reason == why.reason && detail == why.detail &&
         std::equal(missing.begin(), missing.end(), why.missing.begin(), why.missing.end(),
                    [](model::ResourceIndex a, const auto& b) { return a == b.resource; });
}

// Ordered nodes are told about by the requests, not counted among the nodes that refuse.
bool ClassDiagnosis::IsAsked(state::NodeId id) const {
  const state::NodeInfo& node = state_.node(id);
  return node.id == id && node.exists && node.kind != state::NodeKind::kVirtual &&
         node.TakesBindings();
}

framework::Context ClassDiagnosis::In(Capacity capacity) const {
  return {state_, state_.pod_class(pod_class_), pod_class_, capacity};
}

bool ClassDiagnosis::MayHold(const state::NodeInfo& node) const {
  return Feasibility::MayHold(framework_, plugins_, In(Capacity::kEmpty), node);
}

void ClassDiagnosis::AskAll() {
  answers_.clear();
  amounts_.clear();
  tallies_.clear();
  tally_of_.clear();
  last_tally_ = 0;
  asked_ = may_hold_ = fit_empty_ = 0;
  std::vector<std::pair<state::NodeId, bool>> nodes;
  nodes.reserve(state_.node_count());
  bool any = false;
  for (const auto& [name, id] : state_.nodes_by_name()) {
    if (!IsAsked(id)) continue;
    const bool may_hold = MayHold(state_.node(id));
    any |= may_hold;
    nodes.emplace_back(id, may_hold);
  }
  by_objects_ = !any;
  for (const auto& [id, may_hold] : nodes) Ask(state_.node(id), may_hold);
  dirty_ = true;
}

void ClassDiagnosis::Renew(state::NodeId id) {
  if (id < answers_.size()) Uncount(id);
  const bool asked = IsAsked(id);
  const bool may_hold = asked && MayHold(state_.node(id));
  const bool by_objects = may_hold_ == 0 && !may_hold;
  // What comes and goes again may leave many reasons behind that no node gives any more.
  const bool crowded = tallies_.size() > 64 + static_cast<size_t>(2 * asked_);
  if (by_objects != by_objects_ || crowded) {
    AskAll();
    return;
  }
  dirty_ = true;
  if (asked) Ask(state_.node(id), may_hold);
}

void ClassDiagnosis::Ask(const state::NodeInfo& node, bool may_hold) {
  if (node.id >= answers_.size()) {
    answers_.resize(node.id + 1);
    amounts_.resize(answers_.size() * width_);
  }
  // What may not hold it does not suit it when it is empty.
  const bool fits_empty = may_hold && filters_.Filter(In(Capacity::kEmpty), node, nullptr);
  answers_[node.id].bits =
      Answer::kAsked | (may_hold ? Answer::kMayHold : 0) | (fits_empty ? Answer::kFitsEmpty : 0);
  ++asked_;
  may_hold_ += may_hold ? 1 : 0;
  fit_empty_ += fits_empty ? 1 : 0;
  Status why;
  if (filters_.Filter(In(by_objects_ ? Capacity::kEmpty : Capacity::kNow), node, &why)) return;
  Count(node.id, why);
}

void ClassDiagnosis::Count(state::NodeId id, const Status& why) {
  if (why.missing.size() > width_) Widen(why.missing.size());
  const uint32_t number = TallyOf(why);
  answers_[id].bits |= number + 1;
  Tally& tally = tallies_[number];
  ++tally.nodes;
  for (size_t i = 0; i < why.missing.size(); ++i) {
    amounts_[id * width_ + i] = why.missing[i].amount;
    tally.smallest[i] = std::min(tally.smallest[i], why.missing[i].amount);
  }
}

void ClassDiagnosis::Uncount(state::NodeId id) {
  const Answer answer = std::exchange(answers_[id], {});
  if (!answer.Has(Answer::kAsked)) return;
  --asked_;
  may_hold_ -= answer.Has(Answer::kMayHold) ? 1 : 0;
  fit_empty_ -= answer.Has(Answer::kFitsEmpty) ? 1 : 0;
  if (answer.tally() == 0) return;
  Tally& tally = tallies_[answer.tally() - 1];
  --tally.nodes;
  for (size_t i = 0; i < tally.missing.size(); ++i) {
    tally.stale |= amounts_[id * width_ + i] <= tally.smallest[i];
  }
}

uint32_t ClassDiagnosis::TallyOf(const Status& why) {
  if (last_tally_ < tallies_.size() && tallies_[last_tally_].Is(why)) return last_tally_;
  std::string key = absl::StrCat(why.plugin, "\n", why.reason, "\n", why.detail);
  for (const Status::Missing& missing : why.missing) absl::StrAppend(&key, "\n", missing.resource);
  const auto [known, added] =
      tally_of_.try_emplace(std::move(key), static_cast<uint32_t>(tallies_.size()));
  if (added) {
    Tally tally;
    tally.plugin = why.plugin;
    tally.reason = why.reason;
    tally.detail = why.detail;
    for (const Status::Missing& missing : why.missing) tally.missing.push_back(missing.resource);
    tally.smallest.assign(tally.missing.size(), std::numeric_limits<int64_t>::max());
    tallies_.push_back(std::move(tally));
  }
  return last_tally_ = known->second;
}

void ClassDiagnosis::Widen(size_t resources) {
  std::vector<int64_t> wider(answers_.size() * resources);
  for (size_t id = 0; id < answers_.size(); ++id) {
    for (size_t i = 0; i < width_; ++i) wider[id * resources + i] = amounts_[id * width_ + i];
  }
  amounts_ = std::move(wider);
  width_ = resources;
}

void ClassDiagnosis::DropAnswers() {
  (void)diagnosis();
  answers_ = {};
  amounts_ = {};
  tallies_ = {};
  tally_of_ = {};
}

void ClassDiagnosis::FindSmallest() {
  bool any = false;
  for (Tally& tally : tallies_) {
    if (!tally.stale) continue;
    any |= tally.nodes > 0;
    tally.smallest.assign(tally.missing.size(), std::numeric_limits<int64_t>::max());
  }
  for (size_t id = 0; any && id < answers_.size(); ++id) {
    if (answers_[id].tally() == 0) continue;
    Tally& tally = tallies_[answers_[id].tally() - 1];
    for (size_t i = 0; tally.stale && i < tally.missing.size(); ++i) {
      tally.smallest[i] = std::min(tally.smallest[i], amounts_[id * width_ + i]);
    }
  }
  for (Tally& tally : tallies_) tally.stale = false;
}

void ClassDiagnosis::WriteDiagnosis() {
  // Nodes may lack different resources for what is told as one reason.
  struct Told {
    verdict::FailedPredicate predicate;
    std::map<std::string, int64_t> smallest;
  };
  std::map<std::pair<absl::string_view, std::string>, Told> by_text;
  for (const Tally& tally : tallies_) {
    if (tally.nodes == 0) continue;
    std::string reason =
        tally.detail.empty() ? tally.reason : absl::StrCat(tally.reason, " ", tally.detail);
    auto& [predicate, smallest] = by_text[{tally.plugin, reason}];
    const bool first = predicate.nodes == 0;
    predicate.plugin = std::string(tally.plugin);
    predicate.reason = std::move(reason);
    predicate.nodes += tally.nodes;
    if (first || tally.detail < predicate.detail) predicate.detail = tally.detail;
    for (size_t i = 0; i < tally.missing.size(); ++i) {
      const auto [it, added] =
          smallest.try_emplace(state_.resource_names().Name(tally.missing[i]), tally.smallest[i]);
      if (!added) it->second = std::min(it->second, tally.smallest[i]);
    }
  }
  diagnosis_ = {{}, asked_, fit_empty_, by_objects_};
  for (auto& [key, told] : by_text) {
    for (const auto& [resource, amount] : told.smallest) {
      told.predicate.missing.push_back({resource, amount});
    }
    diagnosis_.predicates.push_back(std::move(told.predicate));
  }
  std::stable_sort(diagnosis_.predicates.begin(), diagnosis_.predicates.end(),
                   [](const auto& a, const auto& b) { return a.nodes > b.nodes; });
}

const Diagnosis& ClassDiagnosis::diagnosis() {
  if (std::exchange(dirty_, false)) {
    FindSmallest();
    WriteDiagnosis();
  }
  return diagnosis_;
}

}  // namespace fairlead::engine
