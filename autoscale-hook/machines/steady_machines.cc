#include "autoscale-hook/machines/steady_machines.h"

#include "autoscale-hook/machines/step_context.h"
#include "autoscale-hook/planner/caps.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

// Nothing is to be done about it, but for removing it one day.
bool IsSteadyNode(const NodeUse& node) {
  return node.registered && node.ready && !node.removal_tainted && !node.interrupted;
}

// Nothing is under way, with the API server or the provider, and nothing waits for a time.
bool IsIdle(const Machine& machine) {
  return !machine.written.has_value() && !machine.launch_answer.has_value() &&
         !machine.missing_since.has_value() && !machine.emptying.has_value() &&
         machine.replacing == Machine::Replacing::kNo && machine.taints.empty() &&
         machine.ends.empty() && machine.surplus_since.empty() && machine.absence.list == 0 &&
         machine.absence.told.empty() && !machine.reported_gone;
}

// All that is known of the request's machines is this node.
bool IsAlone(const Machine& machine, const NodeUse& node) {
  const std::set<std::string>& ids = machine.provider_ids;
  return machine.desired.node_name == node.name && ids.size() <= 1 &&
         (node.provider_id.empty() || ids.contains(node.provider_id));
}

}  // namespace

std::optional<SteadyKind> SteadyKindOf(const MachineView& view) {
  const model::NodeRequest& request = view.request();
  if (request.phase != model::NodeRequestPhase::kReady || view.nodes.size() != 1 ||
      !view.surplus.empty() || !IsSteadyNode(*view.node())) {
    return std::nullopt;
  }
  const Machine& machine = *view.machine;
  // What it counts against the caps must not depend on the catalogue.
  const std::optional<int64_t> gpus = OrderedGpus(request);
  if (!gpus.has_value() || !request.price_known || request.price_micro_usd_per_hour < 0) {
    return std::nullopt;
  }
  if (request.meta.deletion.has_value() ||
      request.unneeded_since.has_value() == view.node()->needed || !request.failure.empty() ||
      !IsIdle(machine) || !IsAlone(machine, *view.node()) || !machine.seen() ||
      !SameStatus(request, *machine.observed)) {
    return std::nullopt;
  }
  return SteadyKind{request.pool,
                    request.instance_type,
                    request.provider,
                    request.queue,
                    std::string(request.meta.labels.Get(kRequestGpuModelLabel)),
                    request.reservation,
                    request.price_micro_usd_per_hour,
                    *gpus,
                    GpusOnNode(view.node()->allocatable),
                    view.node()->needed && view.node()->needed_by_pods_alone,
                    view.node()->daemon_requests};
}

void SteadyMachines::ForEach(absl::FunctionRef<void(const SteadyKind&, const Machine&)> use) const {
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot].version != 0) use(rows_[slot].kind->first, *rows_[slot].machine);
  }
}

void SteadyMachines::BeginPass() {
  if (++pass_ == 0) pass_ = 1;  // 0 is that of slots that no pass had yet
  passed_ = shift_ = 0;
  removed_.clear();
  std::swap(order_, former_order_);
  order_.clear();
}

uint32_t SteadyMachines::Find(uint64_t node_version, uint32_t place) {
  const auto expected = static_cast<size_t>(place + shift_);
  if (expected < former_order_.size()) {
    const uint32_t slot = former_order_[expected];
    if (slot != kNoSlot && slots_[slot].version == node_version) return slot;
  }
  const auto found = by_version_.find(node_version);
  if (found == by_version_.end()) return kNoSlot;
  shift_ = int64_t{slots_[found->second].place} - place;  // nodes came or went before this one
  return found->second;
}

bool SteadyMachines::Pass(uint64_t node_version, uint32_t place) {
  const uint32_t slot = node_version == 0 ? kNoSlot : Find(node_version, place);
  // A version that two nodes have says nothing.
  const bool passes = slot != kNoSlot && slots_[slot].pass != pass_;
  order_.resize(place + 1, kNoSlot);
  if (!passes) return false;
  order_[place] = slot;
  slots_[slot].pass = pass_;
  slots_[slot].place = place;
  ++passed_;
  return true;
}

std::vector<Machine*> SteadyMachines::NotPassed() const {
  std::vector<Machine*> machines;
  if (passed_ == size()) return machines;
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    const bool passed = slots_[slot].pass == pass_;
    if (slots_[slot].version != 0 && !passed) machines.push_back(rows_[slot].machine);
  }
  return machines;
}

std::optional<uint32_t> SteadyMachines::PlaceOf(const Machine& machine) const {
  if (machine.steady_version != 0) {
    const Slot& slot = slots_[by_version_.at(machine.steady_version)];
    return slot.pass == pass_ ? std::optional(slot.place) : std::nullopt;
  }
  const auto removed = removed_.find(machine.number);
  return removed == removed_.end() ? std::nullopt : std::optional(removed->second);
}

std::vector<Machine*> SteadyMachines::Due(absl::Time until) const {
  std::vector<Machine*> machines;
  for (auto it = waiting_.begin(); it != waiting_.end() && it->first <= until; ++it) {
    machines.push_back(rows_[it->second].machine);
  }
  return machines;
}

bool SteadyMachines::Add(Machine& machine, const SteadyKind& kind, uint64_t node_version,
                         std::optional<absl::Time> due) {
  const auto [known, added] = by_version_.try_emplace(node_version, kNoSlot);
  if (!added) return false;
  uint32_t& slot = known->second;
  if (free_slots_.empty()) {
    slot = static_cast<uint32_t>(slots_.size());
    slots_.emplace_back();
    rows_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  slots_[slot] = {node_version, 0, 0};
  rows_[slot] = {&machine, kinds_.try_emplace(kind, 0).first, due};
  if (due.has_value()) waiting_.emplace(*due, slot);
  ++rows_[slot].kind->second;
  machine.steady_version = node_version;
  return true;
}

void SteadyMachines::Remove(Machine& machine) {
  const auto known = by_version_.find(machine.steady_version);
  machine.steady_version = 0;
  if (known == by_version_.end()) return;
  const uint32_t slot = known->second;
  if (slots_[slot].pass == pass_) removed_[machine.number] = slots_[slot].place;
  const Kinds::iterator kind = rows_[slot].kind;
  if (--kind->second == 0) kinds_.erase(kind);
  if (rows_[slot].due.has_value()) waiting_.erase({*rows_[slot].due, slot});
  slots_[slot] = {};
  rows_[slot] = {};
  free_slots_.push_back(slot);
  by_version_.erase(known);
}

}  // namespace fairlead::hook
