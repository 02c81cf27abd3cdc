// Puts a verdict into words. Conditions, events, the command line and the dashboard all show the
// text of this one place. Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "scheduler/verdict/verdict.h"

namespace fairlead::verdict {

// Some sentences with the numbers, at most 1024 bytes of UTF-8:
//  "Queue research has reached its limit of 8 GPUs: 8 in use, 1 requested. Position 1 in the
//  queue."
// If the verdict rests on what nodes said, kube-scheduler's text comes first (nodes_available.h):
//  "0/12 nodes are available: 12 Insufficient nvidia.com/gpu. Smallest shortage on a node: 2 GPUs."
std::string Message(const Verdict& verdict);

// The note of an event: the message, after the code if neither kube-scheduler's text nor the
// event's reason says why the workload waits: "QueueLimitReached: Queue research ...".
std::string EventNote(const Verdict& verdict);

// One sentence without changing numbers. It is written once per code, to the condition of groups
// and their pods. "Queue research cannot give 1 GPU within its limit of 8 GPUs."
std::string Sentence(const Verdict& verdict);

// The message of a lone pod's condition: kube-scheduler's text, as of now, if the verdict rests on
// what nodes said; else the sentence. It has passing numbers, so it is no reason for a write: it
// goes with the verdict of the pod.
std::string ConditionMessage(const Verdict& verdict);

// What helps with any verdict of this code; Message uses it if the verdict has no unblockers.
std::vector<Unblocker> DefaultUnblockers(const Verdict& verdict);

// The detail of a workload that waits for capacity and may not evict pods before `until`.
std::string DelayClause(absl::Time until);

// "nvidia.com/gpu" -> "GPUs", "cpu" -> "CPU cores", "memory" -> "memory", "deviceclass:x" ->
// "devices of class x"; any other name is unchanged.
std::string ResourceNoun(absl::string_view resource);

}  // namespace fairlead::verdict
