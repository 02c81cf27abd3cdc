#include "autoscale-hook/machines/node_lists.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/machines/step_context.h"

namespace fairlead::hook {
namespace {

void Tell(Machine& machine, const std::string& message) {
  AbsenceProof& proof = machine.absence;
  if (machine.desired.message != proof.told) proof.told_over = machine.desired.message;
  machine.desired.message = proof.told = ShortMessage(message);
}

}  // namespace

uint64_t NodeLists::Next(const std::vector<Machine*>& waiting, absl::Time now,
                         absl::Time& wake_at) {
  bool due = false;
  for (Machine* machine : waiting) {
    const AbsenceProof& proof = machine->absence;
    if (!proof.shown_node.empty()) {
      Tell(*machine, absl::StrCat("not ended yet: its node ", proof.shown_node,
                                  " exists, and the watch of nodes has not shown it"));
    } else if (!problem_.empty()) {
      Tell(*machine, absl::StrCat("not ended yet: the nodes could not be listed: ", problem_));
    }
    if (now < proof.next) {
      wake_at = std::min(wake_at, proof.next);
    } else {
      // Without an answer for too long, the list in flight is repeated.
      due = due || proof.list == 0 || attempts_.in_flight();
    }
  }
  if (!due) return 0;
  if (!attempts_.MayGo(now)) {
    wake_at = std::min(wake_at, attempts_.due());
    return 0;
  }
  attempts_.Sent(now, kListRules);
  wake_at = std::min(wake_at, attempts_.due());
  ++last_;
  for (Machine* machine : waiting) {
    AbsenceProof& proof = machine->absence;
    if (now >= proof.next && proof.list == 0) proof.list = last_;
  }
  return last_;
}

void NodeLists::Answered(uint64_t number, const absl::Status& status,
                         const std::vector<ListedNode>& unseen, MachineLedger& ledger,
                         absl::Time now) {
  if (number != last_ || !attempts_.in_flight()) return;  // another one followed it
  ledger.Changed();
  if (status.ok()) {
    attempts_.Settle(now + kListPause);
    problem_.clear();
  } else {
    attempts_.Answered(status, now, kListRules);
    problem_ = absl::StrCat(absl::StatusCodeToString(status.code()), ": ", status.message());
  }
  // By name of the request: providers know a machine without an id by that name alone.
  std::map<std::string, std::string> shown;
  for (const ListedNode& node : unseen) {
    if (!node.node_request.empty()) shown.emplace(node.node_request, node.name);
    const Machine* row = ledger.FindByNode(node.node_request, node.provider_id);
    if (row != nullptr) shown.emplace(row->name(), node.name);
  }
  for (const auto& [key, row] : ledger.rows()) {
    if (row.absence.list == 0) continue;
    AbsenceProof& proof = ledger.Edit(row).absence;
    proof.list = 0;
    if (!status.ok()) continue;
    const auto node = shown.find(row.name());
    if (node == shown.end()) {
      proof.valid_until = now + kProofLasts;
      proof.shown = 0;
      proof.shown_node.clear();
    } else {
      proof.next = now + kShownBackoff.Pause(++proof.shown);
      proof.shown_node = node->second;
    }
  }
}

void NodeLists::StopWaiting(Machine& machine) {
  AbsenceProof& proof = machine.absence;
  if (!proof.told.empty() && machine.desired.message == proof.told) {
    machine.desired.message = proof.told_over;
  }
  proof.told.clear();
  proof.shown = 0;
  proof.shown_node.clear();
}

}  // namespace fairlead::hook
