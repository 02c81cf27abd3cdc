#include "autoscale-hook/machines/surplus.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace fairlead::hook {
namespace {

// The ids of machines without a node, while another machine of the request has one.
std::set<std::string> WithoutNode(const MachineView& view) {
  if (!view.machine->Promises() || !view.registered()) return {};
  const auto any_node = [&view](const auto& is) {
    return std::any_of(view.nodes.begin(), view.nodes.end(), is) ||
           std::any_of(view.surplus.begin(), view.surplus.end(), is);
  };
  if (any_node([](const NodeUse* n) { return n->registered && n->provider_id.empty(); })) {
    return {};  // it may be any of them
  }
  std::set<std::string> ids;
  for (const std::string& id : view.machine->provider_ids) {
    if (!any_node([&id](const NodeUse* n) { return n->provider_id == id; })) ids.insert(id);
  }
  return ids;
}

// An attempt was made now.
bool Advance(const NodeUse& node, MachineView& view, StepContext& context) {
  Machine& machine = *view.machine;
  if (!node.removal_tainted) return context.TaintOne(machine, node, true);
  if (!node.pods_settled) return false;
  return context.TerminateOne(machine, node.provider_id, &node);
}

}  // namespace

void SetSurplusApart(MachineView& view) {
  if (view.nodes.size() < 2 || !view.machine->Promises()) return;
  const auto serves = [](const NodeUse* node) { return node->registered && node->needed; };
  if (std::none_of(view.nodes.begin(), view.nodes.end(), serves)) return;
  const auto surplus =
      std::stable_partition(view.nodes.begin(), view.nodes.end(), [](const NodeUse* node) {
        return !node->registered || node->needed || node->provider_id.empty();
      });
  view.surplus.assign(surplus, view.nodes.end());
  view.nodes.erase(surplus, view.nodes.end());
}

void RemoveSurplus(MachineView& view, StepContext& context, int64_t& left) {
  Machine& machine = *view.machine;
  std::map<std::string, absl::Time> since;
  // True if the machine is due, and this step may act.
  const auto is_due = [&](const std::string& id, absl::Duration wait) {
    const auto known = machine.surplus_since.find(id);
    const absl::Time from = known == machine.surplus_since.end() ? context.now : known->second;
    since.emplace(id, from);
    if (context.now < from + wait) {
      context.WakeAt(from + wait);
      return false;
    }
    if (left <= 0) context.WakeAt(context.now + absl::Seconds(1));
    return left > 0;
  };
  for (const NodeUse* node : view.surplus) {
    context.ledger.AddProviderId(machine, node->provider_id);
    if (is_due(node->provider_id, context.options.unneeded_after) &&
        Advance(*node, view, context)) {
      --left;
    }
  }
  for (const std::string& id : WithoutNode(view)) {
    const auto end = machine.ends.find(id);
    if (end != machine.ends.end() && end->second.confirmed) {
      context.ledger.RemoveProviderId(machine, id);
    } else if ((end != machine.ends.end() && end->second.attempts.started()) ||
               is_due(id, context.options.ready_timeout)) {
      if (context.TerminateOne(machine, id, nullptr)) --left;
    }
  }
  machine.surplus_since = std::move(since);
}

}  // namespace fairlead::hook
