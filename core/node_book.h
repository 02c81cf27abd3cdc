// Between the API's nodes and the state's: nodes that the hook bought are shown to decisions as
// they were promised until they are usable, without our own removal taint, and closed while they
// are being removed.
//
// Usable: Ready, no startup taint left, and every device that was promised is allocatable (a GPU
// node whose device plugin is still starting reports none).
//
// Thread-safety: the owner's thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "autoscale-hook/hook.h"
#include "core/request_book.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

class NodeBook {
 public:
  NodeBook(state::ClusterState& state, const hook::Hook& hook) : state_(state), hook_(hook) {}

  state::Change Upsert(const model::Node& node);
  state::Change Remove(const std::string& name, const std::string& uid);
  // The request is new, or its phase changed: its node is promised, closed, or forgotten.
  state::Change RequestChanged(const std::string& request_name, const model::NodeRequest* request,
                               const std::vector<const model::NodePool*>& pools);

  // Every node of a request that is seen, and every registered one whose request is gone, by name.
  // `promised`: nodes that waiting pods will go to. Valid until the next call. O(nodes of requests)
  // integer comparisons; only what changed is looked at.
  const std::vector<hook::NodeUse>& Uses(const RequestBook& requests,
                                         const std::set<state::NodeId>& promised);
  // Of the last Uses; equal values mean equal answers.
  [[nodiscard]] uint64_t uses_version() const { return uses_version_; }

 private:
  struct Bought {
    model::Node raw;  // as the API server has it
    bool tainted = false;
    bool ready = false;
  };
  state::Change Show(const std::string& name);
  // Whose need was found at which version of the state's node.
  struct Looked {
    state::NodeId node = state::kNoId;
    uint64_t version = 0;
    bool promised = false;
  };
  [[nodiscard]] hook::NodeUse UseOf(const std::string& request_name) const;
  [[nodiscard]] Looked LookAt(const std::string& name,
                              const std::set<state::NodeId>& promised) const;
  [[nodiscard]] bool IsNeeded(const std::string& name, const Looked& looked) const;
  void ListUses(const RequestBook& requests, const std::set<state::NodeId>& promised);

  state::ClusterState& state_;
  const hook::Hook& hook_;
  std::map<std::string, Bought> bought_;         // registered nodes with a request label
  std::map<std::string, std::string> closed_;    // request name -> node name, being removed
  std::map<std::string, model::Node> expected_;  // by request name

  std::vector<hook::NodeUse> uses_;  // by name, as last told
  std::vector<Looked> looked_;       // one each
  bool list_stale_ = true;           // a node or a request came, went or changed
  uint64_t uses_version_ = 0;
};

}  // namespace fairlead::core
