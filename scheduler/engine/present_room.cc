#include "scheduler/engine/present_room.h"

#include <algorithm>
#include <utility>

#include "scheduler/model/pod_terms.h"

namespace fairlead::engine {

std::optional<std::vector<state::PodId>> PresentRoom::Promise(const Outcome& outcome) {
  if (outcome.bound_to_topology || !Begin(outcome)) return std::nullopt;
  const Hypothesis::Checkpoint before = present_->Mark();
  const uint64_t work = in_.placer.work();
  std::vector<state::PodId> others = in_.placer.PromiseSome(
      present_->transaction(), in_.state.workload(outcome.workload), outcome.step.pods);
  work_ += in_.placer.work() - work;
  if (others.empty() || others.size() == outcome.step.pods.size()) {
    // All: the next cycle decides again, and knows why this one has not placed it.
    present_->RollbackTo(before);
    return std::nullopt;
  }
  return others;
}

std::optional<Outcome::Room> PresentRoom::PromiseInDomain(const Outcome& outcome) {
  if (outcome.domains == nullptr || outcome.domains->rules().size() != 1) return std::nullopt;
  const verdict::DomainRule& rule = outcome.domains->rules().front();
  const bool of_all = outcome.domains->RuleOf(0) == 0;
  const bool of_one_node =
      std::any_of(rule.labels.begin(), rule.labels.begin() + rule.required, verdict::NamesOneNode);
  if (!of_all || of_one_node || !Begin(outcome)) return std::nullopt;
  const Hypothesis::Checkpoint before = present_->Mark();
  const uint64_t work = in_.placer.work();
  std::optional<Placer::PromisedInDomain> promised = in_.placer.PromiseSomeInDomain(
      present_->transaction(), in_.state.workload(outcome.workload), outcome.step,
      [&](const std::vector<std::string>& values) { return IsOnOffer(rule, values); });
  work_ += in_.placer.work() - work;
  if (!promised.has_value()) return std::nullopt;
  if (promised->others.empty()) {
    present_->RollbackTo(before);
    return std::nullopt;
  }
  return Outcome::Room{std::move(promised->values), std::move(promised->others)};
}

PresentRoom::Mark PresentRoom::mark() const {
  return present_.has_value() ? Mark(present_->Mark()) : std::nullopt;
}

void PresentRoom::RollbackTo(const Mark& mark) {
  if (mark.has_value()) {
    present_->RollbackTo(*mark);
  } else {
    present_.reset();
  }
}

bool PresentRoom::Begin(const Outcome& outcome) {
  const std::vector<state::PodId>& pods = outcome.step.pods;
  if (pods.size() < 2 || work_ >= kMaxWork) return false;
  if (!present_.has_value()) present_.emplace(in_.state, in_.framework, in_.placer.parts_order());
  return std::all_of(pods.begin(), pods.end(),
                     [this](state::PodId pod) { return StandsAlone(pod); });
}

bool PresentRoom::StandsAlone(state::PodId pod) {
  const state::PodRecord& record = in_.state.pod(pod);
  return ClassStandsAlone(record.pod_class) && !in_.state.SelectedByBond(record);
}

bool PresentRoom::ClassStandsAlone(state::PodClassId id) {
  const auto [known, added] = alone_.try_emplace(id, false);
  if (!added) return known->second;
  const model::PodSpec& spec = *in_.state.pod_class(id).spec;
  if (!spec.claims_to_join.empty() || model::HasBond(spec)) return false;
  const std::optional<std::vector<std::string>> domains = present_->DomainLabels(id);
  return known->second = domains.has_value() && domains->empty();
}

bool PresentRoom::IsOnOffer(const verdict::DomainRule& rule,
                            const std::vector<std::string>& values) const {
  const auto is_there = [&](const model::OfferedNode& offer) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (offer.node.meta.labels.Get(rule.labels[i]) != values[i]) return false;
    }
    return true;
  };
  return std::any_of(in_.offered_nodes.begin(), in_.offered_nodes.end(), is_there);
}

}  // namespace fairlead::engine
