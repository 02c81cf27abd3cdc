// Compares what a scheduler has done with what a step of a behaviour expects.
// Thread-safety: plain values, pure functions. Complexity: O(expectations + pods).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/behaviours/behaviour.h"

namespace fairlead::behaviours {

// Why a pod waits, as far as the scheduler says.
struct Wait {
  std::string code;  // of Fairlead's verdict; kube-scheduler has none
  // kube-scheduler's condition: SchedulingGated instead of Unschedulable.
  bool is_gated = false;
  std::string message;
  // Why nodes refuse it: Fairlead's failed predicates, or kube-scheduler's message.
  std::vector<std::string> reasons;
};

struct SeenPod {
  std::string node;          // empty: not bound
  std::optional<Wait> wait;  // absent: the scheduler has said nothing
};

// A cluster after a step.
struct Seen {
  std::map<std::string, SeenPod> pods;  // "namespace/name"
  std::map<std::string, std::map<std::string, std::string>> node_labels;
  std::set<std::string> evicted;  // in this step, by the scheduler
};

// Who has scheduled: kube-scheduler has no codes and messages of its own.
enum class Scheduler { kFairlead, kKubeScheduler };

// Each failure with its place, what was expected and the verdict of the pod: "FILE:LINE: pod
// default/web: expected node a; it waits: Gated: ...". Empty: as expected.
std::vector<std::string> Failures(const Behaviour& behaviour, const Step& step, const Seen& seen,
                                  Scheduler scheduler);

}  // namespace fairlead::behaviours
