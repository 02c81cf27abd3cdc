// Why a workload waits: the contract between the scheduler, the users and the scale hook
// (docs/verdict.md). The engine makes a verdict. The hook adds what it provisioned or capped. Only
// text.h and json.h put it into words, and no code parses a message.
//
// The vocabulary is closed and versioned: renaming a code is a breaking change; kVocabularyVersion
// is written beside every verdict.
//
// Thread-safety: plain values, pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "scheduler/model/pod.h"
#include "scheduler/model/resources.h"

namespace fairlead::verdict {

inline constexpr int kVocabularyVersion = 1;

// In order of precedence: if several codes apply to a workload, it gets the first. What the user
// must fix comes first, then what policy forbids, then what capacity lacks. So a workload that
// policy holds never shows a capacity code, for which nodes may be provisioned.
enum class Code : uint8_t {
  kNone = 0,  // nothing keeps it waiting
  // impossible
  kInvalidRequest,
  kQueueNotFound,
  kQueueNotLeaf,
  kMissingObject,
  // policy
  kGated,
  kGangIncomplete,
  kSchedulingBackoff,
  kBindingRefused,
  kQueueLimitReached,
  kNonPreemptibleOverQuota,
  kOverFairShare,
  kPreemptionDelay,
  // impossible; found only when the engine tries to place it
  kNoInstanceTypeFits,
  kTopologyInfeasible,
  kConstraintsUnsatisfiable,
  // capacity
  kWaitingForVictims,
  kNodesRequested,
  // policy of the hook: capacity would help, a cap forbids it
  kGpuCapReached,
  kCostCapReached,
  // capacity
  kInsufficientCapacity,
};
inline constexpr int kCodeCount = static_cast<int>(Code::kInsufficientCapacity) + 1;

enum class Category : uint8_t { kCapacity, kPolicy, kImpossible };
enum class Scope : uint8_t { kPod, kGang, kQueue, kCluster };
enum class ResolvableBy : uint8_t { kNodeScaleUp, kQueueChange, kPreemption, kUserChange, kTime };

absl::string_view CodeName(Code code);  // "QueueLimitReached"
std::optional<Code> ParseCode(absl::string_view name);
Category CategoryOf(Code code);
absl::string_view CategoryName(Category category);  // "capacity", "policy", "impossible"
absl::string_view ScopeName(Scope scope);
absl::string_view ResolvableByName(ResolvableBy by);  // "NodeScaleUp"
ResolvableBy ResolvableByOf(Code code);

// What would let it run, best first.
struct Unblocker {
  ResolvableBy by = ResolvableBy::kTime;
  std::string what;  // for people: "raise the GPU limit of queue research to 10"
  friend bool operator==(const Unblocker&, const Unblocker&) = default;
};

// The queue that blocks the workload, the resource and the amounts, in base units of `resource`.
struct QueueBlock {
  std::string queue;
  std::string resource;
  int64_t limit = 0;  // the limit, or the quota for kNonPreemptibleOverQuota
  int64_t used = 0;   // what running pods use
  int64_t requested = 0;
  // The part of the rest of the limit that is pipelined to earlier workloads or requested as nodes.
  int64_t promised = 0;
  friend bool operator==(const QueueBlock&, const QueueBlock&) = default;
};

struct MissingAmount {
  std::string resource;
  int64_t smallest = 0;  // the least amount lacking on any of the counted nodes, in base units
  friend bool operator==(const MissingAmount&, const MissingAmount&) = default;
};

// One kind of refusal and how many nodes gave it.
struct FailedPredicate {
  std::string plugin;  // "NodeResourcesFit"
  std::string reason;  // "Insufficient nvidia.com/gpu"
  int64_t nodes = 0;
  std::vector<MissingAmount> missing;
  std::string detail = {};  // the end of `reason` that kube-scheduler does not tell: "{gpu: a100}"
  friend bool operator==(const FailedPredicate&, const FailedPredicate&) = default;
};

// Pods that are identical for placement, and how many of them lack a place. Pods of one class share
// one spec object, so equality compares the pointers.
struct DemandClass {
  std::shared_ptr<const model::PodSpec> spec;
  int64_t count = 0;
  int64_t min_count = 0;  // fewer pods than this are of no use
  friend bool operator==(const DemandClass&, const DemandClass&) = default;
};

struct Verdict {
  Code code = Code::kNone;
  Scope scope = Scope::kPod;
  std::string queue;     // the workload's own queue
  int64_t position = 0;  // 1 = next in its queue; 0 = unknown
  std::optional<QueueBlock> queue_block;
  std::vector<FailedPredicate> failed_predicates;  // most nodes first
  // How many nodes were asked for failed_predicates, with those that would take the pod alone;
  // none: no node was. And how many of them would take it if they were empty.
  std::optional<int64_t> nodes_asked;
  int64_t nodes_fit_empty = 0;
  // kGated: a plugin's answer is on its way, so that this is hardly worth telling.
  bool awaited = false;
  bool victims_sought = false;        // a search for pods to evict was finished, and found none
  bool may_preempt = true;            // false: its preemptionPolicy is Never
  std::vector<Unblocker> unblockers;  // best first
  std::vector<DemandClass> demand;
  // Other facts, e.g. why no reclaim helped. One clause each, no full stop.
  std::vector<std::string> details;
  // kNodesRequested: the requests that it will run on, and when they should be usable.
  std::vector<std::string> node_requests;
  std::optional<absl::Time> expected_at;
  // kMissingObject ("ConfigMap default/x"), kInvalidRequest (the field and its fault),
  // kSchedulingBackoff (the node pool), kBindingRefused ("pod default/x: why"), kQueueNotFound (the
  // problem of the queue; empty: there is no such queue), kNoInstanceTypeFits ("its node selector
  // or affinity", if types on offer could run it but for that).
  std::string subject;
  // Of a workload with scheduling gates that wants to know it (annotation fairlead.dev/estimate):
  // what would be provisioned for it now, and at what price. One clause; empty: not asked for.
  std::string estimate;
  // The end of its preemption delay, if pods could be evicted for it then. Set with
  // kPreemptionDelay and with capacity codes.
  std::optional<absl::Time> until;
  int64_t pods_waiting = 0;  // of the workload
  int64_t pods_running = 0;
  int64_t min_member = 0;  // of the gang; 0 or 1: no gang
  int64_t observed_generation = 0;
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

// A hash of everything except changing numbers: two verdicts with equal hashes need no new write.
// It excludes position, counts of pods and nodes, whether victims were sought, used and missing
// amounts, expected_at, amounts in the texts of details and unblockers (WithoutAmounts), the order
// of predicates, and all predicates if policy holds the workload. Amounts of the estimate count.
std::string Hash(const Verdict& verdict);

// True only if the hashes are equal; computes no hash. False proves nothing.
bool SameButForPassingNumbers(const Verdict& a, const Verdict& b);

// The text with every amount replaced by '#': a word that is a number, with a unit or not ("6",
// "$12.50", "64Gi", "1m30s", "6/4"). Digits of names stay: "train-7", "ns/7", "n1".
std::string WithoutAmounts(absl::string_view text);

// True of a state that needs no action: the workload is held before any attempt to place it (by
// scheduling gates, or because pods of its gang do not exist), or time alone ends its wait. Its
// event is no warning. A request beyond the whole of a queue's limit is no such state.
bool IsExpected(const Verdict& verdict);
// The subject of kGated for pods that a plugin holds back; its plugin, what it says ("plugin NAME:
// why"), and what helps, which is empty if only time does. Of gates the subject has the names, none
// of which has a space or is followed by a line: the plugin and the help are "" then.
std::string HeldByPlugin(absl::string_view plugin, absl::string_view why,
                         absl::string_view help = "");
absl::string_view PluginThatHolds(absl::string_view subject);
absl::string_view WhyHeld(absl::string_view subject);
absl::string_view HelpIfHeld(absl::string_view subject);

// The condition's reason. Capacity codes are "Unschedulable", the word on which every public
// autoscaler acts, only if the built-in hook is off. Policy and impossible codes never are.
absl::string_view ConditionReason(Code code, bool hook_on);

// True if the code is the outcome of an attempt to place a workload that could have run: KAI then
// writes its scheduling condition. False while part of the workload is pipelined, and if nothing
// could be tried.
bool IsFailedAttempt(Code code);

}  // namespace fairlead::verdict
