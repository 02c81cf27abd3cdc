// The port to a provider of nodes. The hook decides (model::LaunchNode, model::TerminateNode); a
// provider carries out, answers each call once, and reports what happens to its machines.
// contract_testing.h has the tests that every provider passes.
//
// Contract:
// - Launch takes all machines that are due at once, so that a provider that sells by number makes
//   one call. Each order is answered on its own.
// - Orders of one set (LaunchSetOf(launch.request), machines/launch_set.h) come in one call, all of
//   them, but for members that nothing needs any more. An order that is repeated may come without
//   the others of its set. Of an atomic set a part is of no use. A provider that can buy such a set
//   in one operation does so, and answers and reports all of its orders alike. Another one buys
//   what can be had, and refuses the rest: the hook gives the part back with Terminate
//   (machines/launch_sets.h).
// - Calls are idempotent by request: an order for a request whose machine exists answers OK and
//   starts nothing. Clouds with idempotency tokens derive theirs from the request's uid: a name may
//   be used again after its machine is gone. There are never machines of two requests of one name,
//   so a name is enough for everything else (machines/machine_ledger.h).
// - An order is answered OK when it was accepted, otherwise with a status of
//   provisioning/failure.h. A machine that cannot be started after all, or that is lost before its
//   node registers, is reported as gone (machines/machine_report.h), with the reason.
// - A provider that knows the future Node.spec.providerID tells it with the answer, or reports it
//   when it does: its nodes are then found whatever their names and labels are.
// - Terminate ends the machine with that id. It answers OK only when that machine does not exist
//   and cannot come into being any more.
// - A Terminate without an id is about whatever the request has. If all its nodes have the label
//   fairlead.dev/node-request from their registration on, the provider ends them. If not, a node
//   that the hook cannot know may run pods: then the provider ends nothing, and answers
//   FailedPrecondition with the machine's id. It answers OK if there is no machine.
// - Calls for one request are carried out in the order they were made.
// - Every call is answered once, as soon as its outcome is known, possibly before it returns. If an
//   answer is lost, the hook asks again.
// - Machines that were ordered by Fairlead are reported, whichever process ordered them. Others are
//   never reported, and never ended.
// - A provider that knows itself what it sells tells it as a catalogue, which replaces the
//   configured one for its NodePools. It may tell another at any time.
//
// Thread-safety: one thread, the owner's; answers and reports come on it too.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "autoscale-hook/catalog/catalog.h"
#include "autoscale-hook/machines/machine_report.h"
#include "scheduler/model/action.h"

namespace fairlead::hook {

// A status, and the machine's id if the answer tells it.
struct ProviderAnswer {
  ProviderAnswer(absl::Status s) : status(std::move(s)) {}  // NOLINT: mostly that is all
  ProviderAnswer(absl::Status s, std::string id)
      : status(std::move(s)), machine_id(std::move(id)) {}
  operator const absl::Status&() const { return status; }  // NOLINT: the same
  absl::Status status;
  std::string machine_id;
};
using ProviderDone = std::function<void(const ProviderAnswer&)>;

struct LaunchOrder {
  model::LaunchNode launch;
  ProviderDone answer;
};

// Who hears what a provider says unasked.
class ProviderListener {
 public:
  virtual ~ProviderListener() = default;
  virtual void OnMachine(const MachineReport& report) = 0;
  // What it sells from now on.
  virtual void OnOffers(absl::string_view provider, std::shared_ptr<const Catalog> offers) = 0;
  // A problem that no call is about, for the log.
  virtual void OnProblem(absl::string_view provider, const absl::Status& problem) = 0;
};

class Provider {
 public:
  using Answer = ProviderDone;
  virtual ~Provider() = default;
  // The name in NodeRequest.provider.
  [[nodiscard]] virtual absl::string_view name() const = 0;
  // This process leads from now on: it begins to watch its machines, and reports those that are
  // there, and what it sells. Called once, before any other call. `listener` outlives the provider.
  virtual void Start(ProviderListener* listener) = 0;
  // Reports everything that it knows once more: the listener's memory is gone.
  virtual void ReportAll() = 0;
  virtual void Launch(std::vector<LaunchOrder> orders) = 0;
  virtual void Terminate(const model::TerminateNode& terminate, Answer answer) = 0;
};

}  // namespace fairlead::hook
