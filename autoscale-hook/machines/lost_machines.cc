#include "autoscale-hook/machines/lost_machines.h"

namespace fairlead::hook {
namespace {

void Tell(const Machine& machine, StepContext& context) {
  context.Do(model::EmitEvent{model::Kind::kNodeRequest, "", machine.name(), machine.uid(), true,
                              "NodeRequestDeletedByForce",
                              "The object is gone and its machine may exist: it counts against the "
                              "caps until the provider has confirmed its end"});
}

}  // namespace

bool TakeOverLost(MachineView& view, MachineLedger& ledger) {
  Machine& lost = *view.machine;
  if (lost.taken_over) {
    ledger.DropLost(std::string(lost.key));
    return true;
  }
  const Machine* current = ledger.Find(lost.name());
  if (!view.registered() || current == nullptr || !current->seen()) return false;
  ledger.HandOver(lost, ledger.Edit(*current));
  return true;
}

bool AdvanceLost(MachineView& view, StepContext& context) {
  Machine& machine = *view.machine;
  if (view.registered()) {
    machine.missing_since.reset();
    if (!machine.desired.registered_at.has_value()) machine.desired.registered_at = context.now;
    return false;
  }
  if (view.Ended()) return true;
  if (machine.desired.registered_at.has_value()) {
    if (!machine.missing_since.has_value()) machine.missing_since = context.now;
    const absl::Time due = *machine.missing_since + kMissingGrace;
    if (context.now < due) {
      context.WakeAt(due);
      return false;
    }
  }
  if (!machine.loss_told) Tell(machine, context);
  machine.loss_told = true;
  context.Terminate(view);
  return false;
}

}  // namespace fairlead::hook
