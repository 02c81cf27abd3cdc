// What is true in the world: the load of nodes, the use of queues, gangs, and what waits, counted
// from the API server's objects alone. Written independently of the product; simple where the
// product is clever. Kept up to date with every commit, as integers.
//
// A pod is charged to the queue of its PodGroup, without one to that of its label. A pod whose
// PodGroup has gone stays charged where it was. Of another shard (plan_shards.h) are no queues and
// groups here; its nodes are closed, its pods those of others.
//
// Ownership: borrows time and server. Thread-safety: none, one thread. Complexity: a commit
// O(log n); a question O(pods).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "sim/event_queue.h"
#include "sim/world/api_server.h"
#include "sim/world/facts.h"
#include "sim/world/truth_devices.h"
#include "sim/world/truth_pools.h"
#include "sim/world/truth_volumes.h"

namespace fairlead::sim::world {

struct PodRow {
  PodFacts facts;
  std::string bound_by;       // actor; empty: not bound
  std::string queue;          // where it is charged, or would be
  std::string started_under;  // its queue when it was bound
  // Its PodGroup forbade that others evict it (Truth::RunsForGood): when it was bound, and when
  // that PodGroup was deleted.
  bool started_for_good = false, left_for_good = false;
  bool regrouped = false;  // it has been in another group
  absl::Time created, bound_at = absl::InfiniteFuture();
  absl::Time moved_at = absl::InfinitePast();  // its queue or group changed
  absl::Time succeeded_at = absl::InfiniteFuture();
  absl::Time ended_at = absl::InfinitePast();  // it ended, or was told to
  int64_t started_share = 0;                   // of a GPU, in thousandths, when it was bound
  absl::Time share_changed_at = absl::InfinitePast();
  [[nodiscard]] bool BoundByFairlead() const;
};

struct NodeRow {
  NodeFacts facts;
  std::vector<std::pair<absl::Time, Amounts>> former;  // what it had until then, in order
  absl::Time labels_changed_at = absl::InfinitePast();
  // Tainted by others, cordoned or not ready. Fairlead takes its own taint off again.
  absl::Time closed_since = absl::InfiniteFuture();
  absl::Time removing_since = absl::InfiniteFuture();  // Fairlead's taint was written
  // The most that it has had since then, of each resource.
  [[nodiscard]] Amounts MostSince(absl::Time time) const;
};

struct QueueRow {
  QueueFacts facts;
  absl::Time changed_at;
};

struct ClassRow {
  int64_t value = 0;
  bool exists = false;
  absl::Time changed_at;
  // KAI's rule: the class decides, and from 100 on a workload is not preemptible.
  [[nodiscard]] bool IsPreemptible() const { return !exists || value < 100; }
};

struct GroupRow {
  GroupFacts facts;
  absl::Time changed_at;
  bool any_succeeded = false;
};

// Pods that start together or not at all: a PodGroup with its pods, or a pod alone.
struct Workload {
  std::string key;  // "ns/name"
  std::string queue;
  const GroupRow* group = nullptr;
  std::string part;  // a sub-group that is looked at alone: `group` is null then
  std::vector<const PodRow*> waiting;
  int64_t active = 0;   // bound, not terminating
  int64_t members = 0;  // not terminal, not terminating
  int64_t min_member = 1;
  bool preemptible = true;
  absl::Time class_changed_at = absl::InfinitePast();
  // What it takes to start or go on: the first `needed` of `waiting`.
  [[nodiscard]] int64_t needed() const;
};

class Truth {
 public:
  Truth(const EventQueue* time, ApiServer* server);

  [[nodiscard]] const std::map<std::string, PodRow>& pods() const { return pods_; }
  [[nodiscard]] const std::map<std::string, NodeRow>& nodes() const { return nodes_; }
  [[nodiscard]] const std::map<std::string, QueueRow>& queues() const { return queues_; }
  [[nodiscard]] const std::map<std::string, GroupRow>& groups() const { return groups_; }

  // Of the pods that are bound to the node and have not ended, those that `counts` takes.
  struct Load {
    Amounts amounts;
    int64_t pods = 0;
  };
  [[nodiscard]] Load LoadOf(const std::string& node,
                            const std::function<bool(const PodRow&)>& counts) const;
  // The queue and those above it; empty if one is missing, or is its own ancestor.
  [[nodiscard]] std::vector<std::string> Chain(const std::string& queue) const;
  [[nodiscard]] bool IsLeaf(const std::string& queue) const;
  // Of our bound pods at or below the queue; those that are terminating only if asked for.
  [[nodiscard]] Amounts UseOf(const std::string& queue, bool terminating_too = true) const;
  // The first limit on the chain that `more` would exceed, in words with numbers; "" if none.
  [[nodiscard]] std::string OverLimit(const std::string& queue, const Amounts& more,
                                      bool terminating_too = true) const;
  // The same for quotas: what binds non-preemptible work.
  [[nodiscard]] std::string OverQuota(const std::string& queue, const Amounts& more) const;
  // The same with what waits for room besides: it is served first, or beside it. Room for a
  // workload whose pods are told that they wait for capacity counts against its queues as if it
  // ran.
  [[nodiscard]] std::string OverLimitBeside(const Workload& workload) const;
  // The latest time at which anything changed that decides about the queue's limits.
  [[nodiscard]] absl::Time PolicyChangedAt(const std::string& queue) const;

  // What waits, by key.
  [[nodiscard]] std::vector<Workload> Waiting() const;
  // Its sub-groups of which nothing runs and enough waits, each as a workload of its own: of a
  // group of which one sub-group has to run, each may start alone.
  [[nodiscard]] std::vector<Workload> IdleParts(const Workload& workload) const;
  // Amounts alone decide about it, and no policy holds it: its queue and all above exist, nothing
  // is over a limit with it (nor a quota, unless it is preemptible), and its gang is complete.
  [[nodiscard]] bool Entitled(const Workload& workload) const;
  // All that it needs fits at once into the idle room of ready nodes without taints.
  [[nodiscard]] bool FitsNow(const Workload& workload) const;
  // A lone pod of class "high" would have room on one node if lone pods of class "train" of its
  // queue left, none of which any budget protects: by KAI's priorities and by kube-scheduler's,
  // since the configuration says which of them count.
  [[nodiscard]] bool CouldPreempt(const Workload& workload) const;
  // The pod was bound under a PodGroup whose class forbids that others evict it, and nothing has
  // changed that since, but perhaps that the PodGroup was deleted. Of classes that the world began
  // with.
  [[nodiscard]] bool RunsForGood(const PodRow& row) const;
  // It asks for whole GPUs and stays within the quotas of its queue, and on one node it would have
  // room if preemptible pods left, of queues beside its own that hold their quota of GPUs without
  // any preemptible pod; nothing else waits in its queue that exceeds the quota; and nothing is on
  // its way that could give it room: no pod leaves, no node is coming (truth_reclaim.cc).
  [[nodiscard]] bool CouldReclaim(const Workload& workload) const;
  // The code that a verdict about this pod must have; "" where the truth does not know.
  [[nodiscard]] std::string PolicyCode(const Workload& workload) const;

  // ---- where pods may run beside amounts (truth_placement.cc)
  // Value of the label; "" where the node, or the label, is not there.
  [[nodiscard]] std::string DomainOf(const std::string& node, const std::string& key) const;
  // Why anti-affinity keeps the pod from the node, its own or that of a pod there that Fairlead
  // bound, or another scheduler before `known`; "" if it does not. Pods that leave do not count.
  [[nodiscard]] std::string ApartFrom(const PodRow& pod, const std::string& node,
                                      absl::Time known) const;
  // A pod that the term names is in the node's domain, or was since then.
  [[nodiscard]] bool IsNear(const PodRow& pod, const PodTerm& term, const std::string& node,
                            absl::Time since) const;
  // Pods that the rule counts in the pod's own domain; and at least so many were in any domain
  // since then.
  [[nodiscard]] int64_t CountBeside(const PodRow& pod, const SpreadRule& rule) const;
  [[nodiscard]] int64_t LeastCount(const PodRow& pod, const SpreadRule& rule,
                                   absl::Time since) const;
  // All but amounts. False for pods with topology spread: not judged.
  [[nodiscard]] bool MayRunOn(const PodRow& pod, const NodeRow& node) const;
  // A node came, went or got other labels.
  [[nodiscard]] absl::Time nodes_changed_at() const { return nodes_changed_at_; }
  // The GPU that the pod shares with others holds more than one GPU's worth, in words; "" if not.
  [[nodiscard]] std::string OverShared(const PodRow& pod) const;

  // ---- devices by claims (truth_devices.cc)
  [[nodiscard]] const TruthDevices& devices() const { return devices_; }
  // Its pods that have claims have one each, which there is; these ask for the same.
  [[nodiscard]] bool KnowsClaims(const Workload& workload) const;

  // ---- volumes (truth_volumes.cc)
  [[nodiscard]] const TruthVolumes& volumes() const { return volumes_; }
  // Where the claims of its pods lead is known, and the same for all of them.
  [[nodiscard]] bool KnowsVolumes(const Workload& workload) const;
  // Another pod of the namespace that is bound and names the claim; "" if there is none.
  [[nodiscard]] std::string VolumeUser(const PodRow& pod, const std::string& claim) const;
  // Keys of claims of pods that are bound to the node, whose volumes count against its limit.
  [[nodiscard]] std::set<std::string> AttachedTo(const std::string& node) const;
  // A pod of it may have been placed, and its volumes are awaited, or were since then.
  [[nodiscard]] bool AwaitsVolumes(const Workload& workload, absl::Time since) const;

  // ---- pools of nodes (truth_pools.h)
  [[nodiscard]] const TruthPools& pools() const { return pools_of_nodes_; }

  // Numbers since the beginning.
  [[nodiscard]] int64_t pods_created() const { return pods_created_; }
  [[nodiscard]] int64_t pods_ended() const { return pods_ended_; }

 private:
  void OnPod(const ApiServer::Commit& commit);
  void OnNode(const ApiServer::Commit& commit);
  void OnQueue(const ApiServer::Commit& commit);
  void OnGroup(const ApiServer::Commit& commit);
  void OnClass(const ApiServer::Commit& commit);
  void NoteDeparture(const PodFacts& facts);
  // Null if the pod has not one claim alone, which there is and which is its own.
  [[nodiscard]] const ClaimFacts* OnlyClaimOf(const PodFacts& pod) const;
  // What its one claim asks for, also if the scheduler is still to make it. Nothing: not known.
  [[nodiscard]] std::optional<DeviceAsk> OnlyAskOf(const PodFacts& pod) const;
  // For how many of the workload's pods the node has the devices.
  [[nodiscard]] int64_t DevicePlaces(const Workload& workload, const std::string& node) const;
  // For how many of the workload's pods the node has the volumes, or may get them.
  [[nodiscard]] int64_t VolumePlaces(const Workload& workload, const std::string& node) const;
  // Until a claim is bound, all pods that name it go to one node.
  [[nodiscard]] bool SharesUnboundVolume(const Workload& workload) const;
  [[nodiscard]] ClassRow ClassOf(const std::string& name) const;
  // Whether reclaim may take the pod, whatever its queue holds, and has been able to for a while.
  [[nodiscard]] bool MayBeReclaimed(const PodRow& row) const;
  // What the queue holds of GPUs that MayBeReclaimed() does not free.
  [[nodiscard]] int64_t KeptGpus(const std::string& queue) const;
  // Something that waits there asks for more than the queue's quota leaves.
  [[nodiscard]] bool IsHeldUp(const std::string& queue) const;
  [[nodiscard]] bool IsRoomComing() const;
  [[nodiscard]] int64_t CountIn(const std::string& ns, const std::string& app,
                                const std::string& key, const std::string& domain,
                                const std::function<bool(const PodRow&)>& counts) const;
  [[nodiscard]] std::string QueueOf(const PodRow& row) const;
  // Its PodGroup exists, and names a class that forbids it.
  [[nodiscard]] bool GroupForbidsEvictions(const std::string& group) const;
  // Our bound pods at or below the queue, also those that are terminating.
  void ForEachActiveBelow(const std::string& queue,
                          const std::function<void(const PodFacts&)>& visit) const;
  // All that waits for capacity at or below the queue, but the workload of that key.
  [[nodiscard]] Amounts AwaitedBy(const std::string& queue, const std::string& but) const;
  // What pods that share GPUs hold at or below the queue, at most; in thousandths of a GPU.
  [[nodiscard]] int64_t SharedBy(const std::string& queue) const;

  const EventQueue* time_;
  const ApiServer* server_;
  const absl::Time began_;
  TruthDevices devices_;
  TruthVolumes volumes_;
  TruthPools pools_of_nodes_;
  std::map<std::string, PodRow> pods_;  // by "ns/name"
  std::map<std::string, NodeRow> nodes_;
  std::map<std::string, QueueRow> queues_;
  std::map<std::string, absl::Time> gone_queues_;
  std::map<std::string, GroupRow> groups_;  // by "ns/name"
  std::map<std::string, ClassRow> classes_;
  absl::Time nodes_changed_at_ = absl::InfinitePast();
  std::set<std::string> node_names_;  // of all that ever were
  struct Departed {
    std::string ns, app, node;
    absl::Time at;
  };
  std::deque<Departed> departed_;  // pods that are gone, of the last minute
  int64_t pods_created_ = 0, pods_ended_ = 0;
};

}  // namespace fairlead::sim::world
