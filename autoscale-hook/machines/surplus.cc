#include "autoscale-hook/machines/surplus.h"

#include <algorithm>
#include <map>
#include <string>

#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

// An attempt was made now.
bool Advance(const NodeUse& node, SurplusNode& row, const MachineView& view, StepContext& context) {
  WriteAttempts& attempts = node.removal_tainted ? row.end : row.taint;
  if (node.removal_tainted && !node.pods_settled) return false;
  if (!attempts.MayGo(context.now)) {
    context.WakeAt(attempts.due());
    return false;
  }
  if (node.removal_tainted) {
    row.taint.Settle();
    attempts.Sent(context.now, kTerminateRules);
    const model::NodeRequest& request = view.machine->desired;
    context.Do(
        model::TerminateNode{request.meta.name, request.provider, node.name, node.provider_id});
  } else {
    attempts.Sent(context.now, kWriteRules);
    context.Do(model::SetNodeTaint{
        node.name, node.uid, {model::kRemovalTaint, "", model::TaintEffect::kNoSchedule}, true});
  }
  context.WakeAt(attempts.due());
  return true;
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
  std::map<std::string, SurplusNode> rows;
  for (const NodeUse* node : view.surplus) {
    const auto known = view.machine->surplus.find(node->uid);
    SurplusNode row =
        known == view.machine->surplus.end() ? SurplusNode{context.now, {}, {}} : known->second;
    const absl::Time due = row.unneeded_since + context.options.unneeded_after;
    if (context.now < due) {
      context.WakeAt(due);
    } else if (left <= 0) {
      context.WakeAt(context.now + absl::Seconds(1));
    } else if (Advance(*node, row, view, context)) {
      --left;
    }
    rows.emplace(node->uid, row);
  }
  view.machine->surplus = std::move(rows);
}

}  // namespace fairlead::hook
