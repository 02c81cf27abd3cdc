// Shared by the parts of one Step: the machines with their nodes as seen now, and the output for
// their actions.
//
// Thread-safety: none; lives for one Step.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "autoscale-hook/hook.h"
#include "autoscale-hook/machines/machine_ledger.h"
#include "autoscale-hook/machines/nodes_by_row.h"
#include "autoscale-hook/provisioning/launch_backoff.h"

namespace fairlead::hook {

// The longest pause before a missing request object is written again.
inline constexpr absl::Duration kAdoptionPauseMax = absl::Minutes(30);
// A registered node that disappears may come back (a kubelet that registers again).
inline constexpr absl::Duration kMissingGrace = absl::Minutes(1);

// A row of the ledger with its nodes. Usually there is one; a provider that launched twice makes
// two, which are removed together unless only one of them is used (surplus.h).
struct MachineView {
  Machine* machine = nullptr;
  NodeList nodes;    // empty: the engine has none
  NodeList surplus;  // not in `nodes`
  // Nothing needs it, and it is not due to be removed before that (removal.h).
  std::optional<absl::Time> removable_at = {};

  [[nodiscard]] model::NodeRequest& request() const { return machine->desired; }
  // The node that represents the request: a ready one first, then by name.
  [[nodiscard]] const NodeUse* node() const { return nodes.empty() ? nullptr : nodes.front(); }
  [[nodiscard]] bool registered() const { return node() != nullptr && node()->registered; }
  [[nodiscard]] bool ready() const { return registered() && node()->ready; }
  // True if our taint is seen on one of them.
  [[nodiscard]] bool tainted() const {
    return std::any_of(nodes.begin(), nodes.end(),
                       [](const NodeUse* use) { return use->registered && use->removal_tainted; });
  }
  // Our taint is seen on all of them, and so is every pod that was bound before it.
  [[nodiscard]] bool fenced() const {
    return registered() && std::all_of(nodes.begin(), nodes.end(), [](const NodeUse* use) {
             return !use->registered || (use->removal_tainted && use->pods_settled);
           });
  }
  // What has to be ended to end the request: machines by provider id, each with its registered node
  // or null. An empty id stands for whatever the provider has under the request.
  [[nodiscard]] std::map<std::string, const NodeUse*> ToEnd() const;
  // The provider has confirmed the end of all of these.
  [[nodiscard]] bool Ended() const;
  // The machines that may cost money: at least one.
  [[nodiscard]] int64_t CountMachines() const;
  [[nodiscard]] bool known_unneeded() const {
    return machine->replacing != Machine::Replacing::kAwaitsPods && !nodes.empty() &&
           std::none_of(nodes.begin(), nodes.end(), [](const NodeUse* use) { return use->needed; });
  }
};

struct StepContext {
  const HookOptions& options;
  const Hook& hook;
  absl::Time now;  // whole seconds: the resolution of timestamps in objects
  const std::vector<const model::NodePool*>& pools;
  const std::vector<QueueCap>& queue_caps;
  LaunchBackoff& backoff;
  MachineLedger& ledger;
  const NodesByRow& nodes;
  // Requests whose object is seen, by name, but for those that were steady when the step began.
  std::vector<MachineView> views;
  std::vector<MachineView> lost;  // machines without their object, by key
  StepOutput& out;
  std::vector<model::Action> actions;  // behind the status updates
  std::vector<Machine*> unproved;      // to be ended, and wait for a list of nodes (node_lists.h)
  // Requests whose nodes prove that a purchase did not help (provisioning_guard.h).
  const std::set<std::string>& witnesses;

  template <typename T>
  void Do(T what) {
    actions.push_back(model::Action{0, std::move(what)});
  }
  void WakeAt(absl::Time at) {
    if (at < out.wake_at) out.wake_at = at;
  }
  // The view of a request whose object is seen. One that was steady is a part of `views` from now
  // on, whose members may move. O(views).
  MachineView& ViewOf(const Machine& machine);
  // Asks the provider to make sure that there is no machine, as far as attempts are due. The phase
  // that says so must be Written().
  void Terminate(MachineView& view);
  // The same for one machine of the request. True if an attempt was made now. `node`: its
  // registered one, behind its fence. Without it, the attempt waits for the proof that no node of
  // the machine exists (node_lists.h).
  bool TerminateOne(Machine& machine, const std::string& provider_id, const NodeUse* node);
  // Sets our taint on all nodes or removes it, if an attempt is due. True if one was made now.
  bool Taint(MachineView& view, bool present);
  bool TaintOne(Machine& machine, const NodeUse& node, bool present);
  // Writes it onto the request of a witness, before its machine ends.
  void NoteWitness(const MachineView& view) const;
  // Removes our finalizer and deletes the object, if an attempt is due.
  void Delete(MachineView& view);
  // The status write that is due, if any.
  void WriteStatus(MachineView& view);
  // Removes it from the plan: no more pods are pipelined to its node.
  void Withdraw(const MachineView& view) { out.withdrawn.push_back(view.machine->name()); }
};

LaunchKey KeyOf(const model::NodeRequest& request);
// For status.message: cut to the API's limit, at a character.
std::string ShortMessage(absl::string_view text);

}  // namespace fairlead::hook
