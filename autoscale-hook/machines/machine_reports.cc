#include "autoscale-hook/machines/machine_reports.h"

#include <algorithm>

#include "absl/strings/strip.h"
#include "autoscale-hook/machines/step_context.h"
#include "autoscale-hook/provisioning/failure.h"

namespace fairlead::hook {
namespace {

using Phase = model::NodeRequestPhase;

// A report counts for every phase, so it must not be one of an unknown outcome.
absl::Status ReasonOf(const MachineReport& report) {
  if (report.why.ok()) {
    return absl::InternalError("the machine ended before its node registered");
  }
  if (ClassifyFailure(report.why).has_value()) return report.why;
  return absl::InternalError(report.why.message());
}

void TakeGone(const MachineReport& report, Machine& machine) {
  // Another machine of the request may live.
  std::set<std::string> others = machine.provider_ids;
  others.erase(report.machine_id);
  if (report.machine_id.empty() && !others.empty()) return;
  machine.ends[report.machine_id].confirmed = true;
  if (!others.empty()) return;
  machine.reported_gone = true;
  const Phase phase = machine.desired.phase;
  if (phase == Phase::kPending || phase == Phase::kLaunched) {
    machine.launch.Settle();
    machine.launch_answer = ReasonOf(report);
  }
}

void TakeThere(const MachineReport& report, Machine& machine, MachineLedger& ledger) {
  machine.IsThere(report.machine_id);
  if (machine.desired.provider_id.empty()) {
    ledger.SetProviderId(machine, report.machine_id);
  } else {
    ledger.AddProviderId(machine, report.machine_id);
  }
  const bool waits = machine.desired.phase == Phase::kPending && !machine.launch_answer.has_value();
  if (waits && report.state != MachineState::kEnding) machine.launch_answer = absl::OkStatus();
}

std::pair<std::string, std::string> KeyOf(const MachineReport& report) {
  return {report.provider, report.request_uid.empty() ? report.machine_id : report.request_uid};
}

}  // namespace

bool IsOurName(absl::string_view name, absl::string_view prefix) {
  if (!absl::ConsumePrefix(&name, prefix)) return false;
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  });
}

void MachineReports::Take(const MachineReport& report, MachineLedger& ledger, absl::Time now) {
  Machine* machine =
      ledger.FindReported(report.request_name, report.request_uid, report.machine_id);
  if (machine == nullptr) {
    // A name that we do not give is another program's machine.
    if (report.state == MachineState::kGone || !IsOurName(report.request_name, prefix_)) {
      unclaimed_.erase(KeyOf(report));
    } else {
      unclaimed_.try_emplace(KeyOf(report), Unclaimed{report, now}).first->second.last = report;
    }
    return;
  }
  unclaimed_.erase(KeyOf(report));
  if (report.state == MachineState::kGone) {
    TakeGone(report, *machine);
  } else {
    TakeThere(report, *machine, ledger);
  }
  ledger.Changed();
}

void MachineReports::SettleUnclaimed(const std::vector<const NodeUse*>& orphans,
                                     StepContext& context) {
  for (auto it = unclaimed_.begin(); it != unclaimed_.end();) {
    const MachineReport report = it->second.last;
    const absl::Time since = it->second.since;
    const bool has_row = context.ledger.FindReported(report.request_name, report.request_uid,
                                                     report.machine_id) != nullptr;
    const bool has_node = std::any_of(orphans.begin(), orphans.end(), [&](const NodeUse* node) {
      return node->node_request == report.request_name ||
             (!report.machine_id.empty() && node->provider_id == report.machine_id);
    });
    if (!has_row && (has_node || context.now < since + kUnclaimedGrace)) {
      if (!has_node) context.WakeAt(since + kUnclaimedGrace);
      ++it;
      continue;
    }
    it = unclaimed_.erase(it);
    if (has_row) {
      Take(report, context.ledger, context.now);
      continue;
    }
    model::NodeRequest request;
    request.meta.name = report.request_name;
    request.meta.uid = report.request_uid;
    request.provider = report.provider;
    request.provider_id = report.machine_id;
    request.price_known = false;
    request.phase = Phase::kLaunched;
    request.launched_at = since;
    context.ledger.AddLost(request, context.now);
    context.out.look_again.push_back(report.request_name);
  }
}

}  // namespace fairlead::hook
