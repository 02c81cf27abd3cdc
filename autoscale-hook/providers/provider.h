// The port to a provider of nodes. The hook decides (model::LaunchNode, model::TerminateNode); a
// provider carries out and answers.
//
// Contract:
// - Calls are idempotent by request name: a Launch for a name whose machine exists answers OK and
//   starts nothing. Clouds with idempotency tokens derive theirs from the request's uid: a name may
//   be used again after its machine is gone.
// - Launch answers OK when the order was accepted, otherwise a status of
// autoscale-hook/provisioning/failure.h.
//   A machine that is lost later, before it registers, or that cannot be started after all, is
//   reported by a second, failed answer.
// - A provider that knows the future Node.spec.providerID reports it with the answer to Launch; its
//   nodes are then found whatever their names and labels are.
// - Terminate answers OK only when no machine of that name exists or can come into being any more.
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

// A status, and for a Launch the machine's id if it is known.
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
