// The port to a provider of nodes. The hook decides (model::LaunchNode, model::TerminateNode); a
// provider carries out and answers.
//
// Contract:
// - Calls are idempotent by request: a Launch for a request whose machine exists answers OK and
//   starts nothing. Clouds with idempotency tokens derive theirs from the request's uid: a name may
//   be used again after its machine is gone. There are never machines of two requests of one name,
//   so a name is enough for everything else (machines/machine_ledger.h).
// - Launch answers OK when the order was accepted, otherwise a status of
// autoscale-hook/provisioning/failure.h.
//   A machine that is lost later, before it registers, or that cannot be started after all, is
//   reported by a second, failed answer.
// - A provider that knows the future Node.spec.providerID reports it with the answer to Launch; its
//   nodes are then found whatever their names and labels are.
// - Terminate ends the machine with that id. It answers OK only when that machine does not exist
// and
//   cannot come into being any more.
// - A Terminate without an id is about whatever the request has. If all its nodes have the label
//   fairlead.dev/node-request from their registration on, the provider ends them. If not, a node
//   that the hook cannot know may run pods: then the provider ends nothing, and answers
//   FailedPrecondition with the machine's id. It answers OK if there is no machine.
// - Calls for one request are carried out in the order they were made.
// - Every call is answered once it is known, possibly before it returns. If an answer is lost, the
//   hook asks again.
//
// Thread-safety: one thread, the owner's; answers come on it too.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "scheduler/model/action.h"
#include "scheduler/model/node.h"

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

class Provider {
 public:
  using Answer = std::function<void(const ProviderAnswer&)>;
  virtual ~Provider() = default;
  // The name in NodeRequest.provider.
  [[nodiscard]] virtual absl::string_view name() const = 0;
  virtual void Launch(const model::LaunchNode& launch, Answer answer) = 0;
  virtual void Terminate(const model::TerminateNode& terminate, Answer answer) = 0;
};

}  // namespace fairlead::hook
