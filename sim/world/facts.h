// What objects of the simulated API server say, as plain integers and names. Read from the JSON by
// code that shares nothing with the product's decoders, so that a mistake there is not repeated
// here.
//
// Units: milli-CPU, bytes, milli-GPU. Amounts beyond kHuge are cut to it, so that sums of a world
// cannot overflow. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "sim/world/device_facts.h"
#include "sim/world/json.h"
#include "sim/world/placement_facts.h"
#include "sim/world/volume_facts.h"

namespace fairlead::sim::world {

inline constexpr int64_t kHuge = int64_t{1} << 55;
inline constexpr int64_t kNoLimit = -1;

struct Amounts {
  int64_t cpu = 0, memory = 0, gpu = 0;
  Amounts& operator+=(const Amounts& other);
  Amounts& operator-=(const Amounts& other);
  friend bool operator==(const Amounts&, const Amounts&) = default;
  [[nodiscard]] bool FitsIn(const Amounts& other) const;
  [[nodiscard]] std::string Text() const;
};

// "1500m", "2", "4Gi", "64M", "9223372036854775807"; `milli`: in thousandths. Nonsense is 0.
int64_t ReadAmount(const Json& value, bool milli);
// Of a list of resources; null: nothing.
Amounts ReadAmounts(const Json* list);

// How names of resources begin that no node has (field `names` of MakePod).
inline constexpr char kUnknownResource[] = "example.com/unknown-";

// Pods of this scheduler are the program's to decide about (guest_scheduler.h).
inline constexpr char kGuestScheduler[] = "guest-scheduler";

// What has this label with a value is of another shard than the program's (plan_shards.h).
inline constexpr char kShardLabel[] = "kai.scheduler/node-pool";
inline constexpr char kOtherShard[] = "other";
bool IsOfOtherShard(const Json& object);

// How far a pod is: what a look at all pods asks of each.
struct PodLife {
  std::string node;
  bool terminal = false;     // phase Succeeded or Failed
  bool succeeded = false;    // phase Succeeded
  bool running = false;      // phase Running
  bool terminating = false;  // has a deletionTimestamp
  [[nodiscard]] bool active() const { return !terminal && !node.empty(); }
};

struct PodFacts : PodLife {
  std::string ns, name, uid;
  std::string group, sub_group, queue_label, scheduler, job;
  Amounts requests;
  bool ours = false;   // schedulerName is one of Fairlead's, and the shard is
  bool ready = false;  // condition Ready is True
  bool gated = false;
  bool stays = false;       // of a DaemonSet or a mirror pod: keeps no node
  bool impossible = false;  // no node of these worlds can ever take it
  // The same, and other pods or claims are the reason: a node more would not change it.
  bool hopeless = false;
  // Nothing but amounts, `claims`, `volumes`, and what `placement` knows, decides where it fits.
  // `plain`: amounts alone.
  bool ordinary = false, plain = false;
  std::string app;                             // label
  std::shared_ptr<const Placement> placement;  // null: every node
  bool shares_gpu = false;
  int64_t share = 0;                    // of a GPU, in thousandths
  std::vector<std::string> gpu_groups;  // GPUs that it shares
  std::vector<PodClaim> claims;         // spec.resourceClaims
  std::vector<PodVolume> volumes;       // spec.volumes that are claims
  std::vector<std::string> tolerates;   // keys of taints, whatever their values and effects
  std::string priority_class;
  int64_t priority = 0;  // spec.priority, from the class that it had when it was created
  int64_t task_priority = 0;
  bool has_task_priority = false;
  bool odd_amounts = false;  // that no node has
  std::string condition;     // reason of PodScheduled=False; empty: there is none
  std::string verdict;       // annotation fairlead.dev/verdict
  [[nodiscard]] bool guest() const { return scheduler == kGuestScheduler; }
  [[nodiscard]] bool waiting() const { return ours && node.empty() && !terminal && !terminating; }
  [[nodiscard]] std::string key() const { return ns + "/" + name; }
};

struct NodeFacts {
  std::string name, uid, request, provider_id;
  Labels labels;
  Amounts allocatable;
  int64_t pods = 0;
  bool ready = false, tainted = false, unschedulable = false;
  bool removing = false;  // has Fairlead's taint for removal
  // The taint that its NodePool gives it (pool_objects.h) keeps away the pods that do not tolerate
  // it.
  bool kept_for_pool = false;
  bool tainted_by_others = false;  // has any other taint that keeps pods away, or is of others
  bool of_other_shard = false;
};

struct QueueFacts {
  std::string name, parent;
  // kNoLimit or an amount in the units of Amounts. `odd`: numbers that contradict each other.
  int64_t gpu_quota = 0, gpu_limit = 0, cpu_quota = 0, cpu_limit = 0, memory_quota = 0,
          memory_limit = 0;
  bool odd = false;
  bool may_buy = false;  // rather than evict, above its quota
};

struct GroupFacts {
  std::string ns, name, queue, verdict_code;
  int64_t min_member = 0;
  std::string priority_class;  // empty: that of its pods counts
  bool odd = false;            // sub-groups, topology or numbers that the truth does not judge
  std::map<std::string, int64_t> parts;  // sub-groups and their minimums
};

PodLife ReadPodLife(const Json& pod);
PodFacts ReadPod(const Json& pod);
NodeFacts ReadNode(const Json& node);
QueueFacts ReadQueue(const Json& queue);
GroupFacts ReadGroup(const Json& group);

// The message of its condition DisruptionTarget, if that is one of a scheduler; else "".
std::string DisruptionOf(const Json& pod);

}  // namespace fairlead::sim::world
