// What the parts of one Step share: the requests as this process knows them, what it remembers of
// each, and where their actions go.
//
// Two truths are kept apart: what the API server has (StepInput) and what we have asked it to
// write. A status write that is not visible yet counts as done for our decisions and is repeated
// every kWriteRetry until it is visible, so a lost write delays nothing and a slow one causes no
// second decision. A restart forgets what was not written; every step of a request's life can be
// redone.
//
// Thread-safety: none; lives for one Step (RequestMemory: from Step to Step).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "autoscale-hook/backoff.h"
#include "autoscale-hook/hook.h"

namespace fairlead::hook {

inline constexpr absl::Duration kWriteRetry = absl::Seconds(10);
// How long an unanswered or refused call to a provider waits for the next.
inline constexpr absl::Duration kProviderRetry = absl::Seconds(30);
// A registered node that disappears may come back (a kubelet that registers anew).
inline constexpr absl::Duration kMissingGrace = absl::Minutes(1);

struct RequestMemory {
  std::string uid;
  absl::Time first_seen;
  // A status that was asked to be written and is not visible yet.
  std::optional<model::NodeRequest> unconfirmed;
  absl::Time written_at;
  // Provider calls: when the last one was made, and its answer.
  std::optional<absl::Time> launch_sent, terminate_sent, taint_sent, delete_sent;
  bool taint_wanted = false;
  std::optional<absl::Status> launch_answer;
  std::optional<absl::Time> launch_retry_at, terminate_retry_at;
  bool terminated = false;  // the provider confirmed that there is no machine
  std::optional<absl::Time> missing_since;
  bool failure_counted = false;
};

struct RequestView {
  model::NodeRequest request;     // with our unconfirmed writes
  bool failed_is_stored = false;  // phase Failed is on the API server
  const NodeUse* node = nullptr;  // null: the engine knows none
  RequestMemory* memory = nullptr;
  bool dirty = false;  // the status is to be written

  [[nodiscard]] bool registered() const { return node != nullptr && node->registered; }
  [[nodiscard]] bool ready() const { return registered() && node->ready; }
  [[nodiscard]] bool tainted() const { return registered() && node->removal_tainted; }
  [[nodiscard]] bool known_unneeded() const { return node != nullptr && !node->needed; }
};

struct StepContext {
  const HookOptions& options;
  const Hook& hook;
  absl::Time now;  // whole seconds: what objects carry and read back
  const std::vector<const model::NodePool*>& pools;
  BackOff& backoff;
  std::vector<RequestView> views;  // by name
  StepOutput& out;
  std::vector<model::Action> actions;  // behind the status updates

  template <typename T>
  void Do(T what) {
    actions.push_back(model::Action{0, std::move(what)});
  }
  void WakeAt(absl::Time at) {
    if (at < out.wake_at) out.wake_at = at;
  }
  // Asks the provider to make sure that there is no machine, unless it was asked lately.
  void Terminate(RequestView& view);
  // Sets or removes our taint, unless that was asked lately. True if it was asked now.
  bool Taint(RequestView& view, bool present);
  // Out of the plan: pods are no longer promised to it.
  void Withdraw(const RequestView& view) { out.withdrawn.push_back(view.request.meta.name); }
};

// Status fields equal, times to the second.
bool SameStatus(const model::NodeRequest& a, const model::NodeRequest& b);
LaunchKey KeyOf(const model::NodeRequest& request);

}  // namespace fairlead::hook
