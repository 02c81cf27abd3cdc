// Where one pod or pod group stands and why: `fairlead explain`.
//
// The JSON (docs/commands.md has it with examples):
//  {"kind":"Pod"|"PodGroup","namespace","name","state","queue","podGroup","node","podStatus",
//   "message","since","wouldRunOn",
//   "ahead":[names of the first workloads before it],
//   "verdict":{as annotation fairlead.dev/verdict, whole},
//   "queuePath":[{"name","resources":{name: {as QueuesJson}}}],
//   "nodeRequests":[{"name","instanceType","zone","phase","written"}],
//   "pods":[{"name","status","node"}],
//   "recorded":{"on","reason","message","hash","agrees"}}
//
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cmd/fairlead/inspect/snapshot.h"
#include "document/json.h"

namespace fairlead::cmd {

struct Subject {
  enum class Kind : uint8_t { kEither, kPod, kPodGroup, kQueue, kJob, kDeployment };
  Kind kind = Kind::kEither;
  std::string ns, name;
};
// "pod/NAME", "podgroup/NAME", "job/NAME", "deployment/NAME", "queue/NAME" (plurals and "po", "pg",
// "deploy" too) or "NAME", the name of a pod or pod group. A NAME with a namespace before it
// ("team/NAME") is not accepted.
absl::StatusOr<Subject> ParseSubject(absl::string_view text, absl::string_view ns);

struct Explanation {
  enum class State : uint8_t {
    kWaiting,    // it has a verdict
    kPlaceable,  // the next decision would place it
    kRunning,    // on a node, or on its way to one
    kFinished,
    kNotOurs,  // of another scheduler
    kUnknown,  // ours, and neither waiting nor placed (it ends, or its state is not known yet)
  };
  State state = State::kUnknown;
  bool is_group = false;
  std::string ns, name, queue, group;
  std::string node, pod_status;  // kRunning; kPlaceable: where it would go
  std::string scheduler_name, phase;
  absl::Time now;
  // Its `since` is the time that the API server recorded; infinite past if that is of another
  // verdict.
  std::optional<core::WaitingRow> waiting;
  // The workloads before it in its queue: at most kNamed of them, in order.
  static constexpr size_t kNamed = 3;
  std::vector<std::string> ahead;
  std::vector<core::QueueRow> queue_path;  // root first
  struct Request {
    std::string name, instance_type, zone, phase;
    bool written = true;  // false: the next decision would request it
  };
  std::vector<Request> requests;
  std::vector<core::RunningRow> pods;  // of a group
  struct Recorded {
    std::string on;  // "pod", "pod group"
    std::string reason, message, hash;
    std::optional<absl::Time> since;  // when it was last written with this content
    bool any = false, agrees = false;
  };
  Recorded recorded;
  // True if the cluster could not be listed: only the recorded verdict is available.
  bool recorded_only = false;
};

// The object as the API server has it; absent parts were not found.
struct Live {
  std::optional<Json> pod, group;
};

// The PodGroup that the pod names, of whichever API; empty if it names none.
std::string GroupOf(const Json& pod);

// NotFound if neither the server nor the view has it.
absl::StatusOr<Explanation> Explain(const Subject& subject, const Live& live,
                                    const Snapshot& snapshot,
                                    const std::vector<std::string>& scheduler_names);

// The scheduler names that make this object Fairlead's: a guest's pod is not if it names no queue.
std::vector<std::string> SchedulerNamesFor(const Live& live, const state::StateOptions& options);

// Without the cluster: the verdict that the scheduler recorded on the object. NotFound as above.
absl::StatusOr<Explanation> ExplainRecorded(const Subject& subject, const Live& live,
                                            const std::vector<std::string>& scheduler_names,
                                            absl::Time now);

// The queue with its ancestors and its children, for QueuesText and QueuesJson. NotFound if there
// is no queue of that name.
absl::StatusOr<core::View> QueueOnly(const std::string& name, const core::View& view);

std::string ExplainText(const Explanation& explanation);
Json ExplainJson(const Explanation& explanation);

}  // namespace fairlead::cmd
