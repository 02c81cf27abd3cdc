// Translates the API's nodes into the state's. Decisions see a node from a NodeRequest as announced
// until it is usable, without our own removal taint, and closed while it is being removed: alone,
// if its request has another node (autoscale-hook/machines/surplus.h), from the taint on; with pods
// on it, from the decision to empty it (autoscale-hook/machines/emptying.h).
//
// A node belongs to a request by its providerID if the provider has told it
// (NodeRequest.status.providerID), else by its label fairlead.dev/node-request; never by its name,
// which clouds choose freely. A request is named here, not identified: of several objects of one
// name the ledger says which one a node belongs to (hook::MachineLedger). Until it registers, an
// ordered node with the request's name represents it.
//
// Usable: Ready, no startup taint left, and every announced device is allocatable (a GPU node whose
// device plugin is still starting reports none), or published in ResourceSlices. A node that was
// usable once stays usable: a later catalogue may announce something else.
//
// Fence: our removal taint keeps our own pods away, and other schedulers' from the moment that it
// is written. The watch of pods shows pods that were bound before; it is not ordered with the watch
// of nodes. A node's pods are *settled* once the watch of pods has shown everything up to the first
// version of the node that is seen with the taint (all resourceVersions are one counter). A list of
// the node's pods at such a version does so too, if the watch has shown each pod in it. If versions
// cannot be compared, the pods settle kSettleTime after the taint was seen.
//
// Thread-safety: the owner's thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "autoscale-hook/hook.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

class ManagedNodes {
 public:
  static constexpr absl::Duration kSettleTime = absl::Seconds(10);

  ManagedNodes(state::ClusterState& state, const hook::Hook& hook) : state_(state), hook_(hook) {}

  // The valid pools, whose startup taints new nodes have for a while. Nodes are looked at again
  // with RequestChanged.
  void TakePools(const std::vector<const model::NodePool*>& pools);
  state::Change Upsert(const model::Node& node);
  state::Change Remove(const std::string& name, const std::string& uid);
  // ResourceSlices of the node have changed.
  state::Change DevicesChanged(const std::string& name);
  // The request is new, changed or gone: its node is added, closed, or forgotten.
  state::Change RequestChanged(const std::string& request_name,
                               const std::vector<const model::NodePool*>& pools);
  // The watch of pods has shown everything up to this version. True if that settles a node's pods.
  bool PodsSeen(absl::string_view version);
  // A consistent list of the node's pods (ended ones may be left out), at this version. True if
  // that settles them.
  bool PodsListed(const std::string& name, absl::string_view version,
                  const std::vector<model::Pod>& pods);

  // The listed nodes of requests that the watch has not shown as such. O(listed).
  [[nodiscard]] std::vector<hook::ListedNode> Unseen(
      const std::vector<hook::ListedNode>& listed) const;

  // Every node of a request, ordered ones too, and every registered one with a missing request.
  // `promised`: nodes to which pods are pipelined. Valid until the next call. O(nodes of requests)
  // integer comparisons; evaluates only what changed.
  const std::vector<hook::NodeUse>& Uses(const std::set<state::NodeId>& promised, absl::Time now);
  // Of each of the last Uses, by place: entries of any Uses that have one version are equal.
  [[nodiscard]] const std::vector<uint64_t>& use_versions() const { return use_versions_; }
  // Version of the last Uses; equal values mean equal answers.
  [[nodiscard]] uint64_t uses_version() const { return uses_version_; }
  // The nodes that wait for the watch of pods, or for a list.
  [[nodiscard]] const std::set<std::string>& AwaitedNodes() const { return unsettled_; }
  // When pods settle by time alone; infinite future if none do.
  [[nodiscard]] absl::Time settles_at() const { return settles_at_; }

 private:
  struct Managed {
    model::Node raw;  // as the API server has it
    std::string request;
    bool tainted = false, ready = false, usable_in_part = false;
    std::string taint_version;  // of the node when the taint was first seen
    bool pods_settled = false;
    absl::Time taint_seen = absl::InfiniteFuture();
    // What pods of DaemonSets and static pods request, at that version of the state's node.
    uint64_t daemons_version = 0;
    model::ResourceList daemon_requests;
    std::shared_ptr<const model::NodeDevices> devices;  // published; as NodeUse::devices
  };
  // The need found at a version of the state's node.
  struct CachedUse {
    state::NodeId node = state::kNoId;
    uint64_t version = 0;
    bool promised = false;
  };
  // Empty: it belongs to none. `label`: of the node, with the name of a request.
  [[nodiscard]] std::string RequestOf(const std::string& provider_id,
                                      absl::string_view label) const;
  void Unlink(const std::string& name);
  void NoteTaint(Managed& node);
  void NoteReadiness(Managed& node) const;
  bool NoteDevices(Managed& node);
  // True if the version is not before the taint.
  static bool IsBehindTaint(const Managed& node, absl::string_view version);
  state::Change Show(const std::string& name, const std::vector<const model::NodePool*>& pools);
  void SettleByTime(absl::Time now);
  [[nodiscard]] hook::NodeUse UseOf(const Managed& node) const;
  [[nodiscard]] CachedUse LookUp(const std::string& name,
                                 const std::set<state::NodeId>& promised) const;
  struct Need {
    bool needed = false, by_pods_alone = false;
  };
  [[nodiscard]] Need NeedOf(const std::string& name, const CachedUse& cached) const;
  const model::ResourceList& DaemonRequestsOn(const std::string& name, const CachedUse& cached);
  bool TellNeed(const CachedUse& cached, hook::NodeUse& use);
  void ListUses(const std::set<state::NodeId>& promised);
  void TakeUses(std::vector<hook::NodeUse> uses);

  state::ClusterState& state_;
  const hook::Hook& hook_;
  std::map<std::string, Managed> managed_;                           // by name of the node
  std::map<std::string, std::set<std::string>> by_request_;          // -> names of nodes
  std::map<std::string, std::string> by_provider_id_;                // of every node -> its name
  std::map<std::string, std::vector<model::Taint>> startup_taints_;  // by name of the pool
  std::vector<std::shared_ptr<const model::NodeDevices>> device_kinds_;  // all different
  std::set<std::string> unsettled_;  // tainted, and their pods are not settled
  std::string pods_version_;
  absl::Time settles_at_ = absl::InfiniteFuture();

  std::vector<hook::NodeUse> uses_;
  std::vector<CachedUse> cached_;       // one each
  std::vector<uint64_t> use_versions_;  // one each
  uint64_t last_use_version_ = 0;
  bool list_stale_ = true;  // a node or a request came, went or changed
  uint64_t uses_version_ = 0;
};

}  // namespace fairlead::core
