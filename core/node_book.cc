#include "core/node_book.h"

#include <algorithm>

#include "scheduler/model/api_names.h"

namespace fairlead::core {
namespace {

bool IsOurTaint(const model::Taint& taint) { return taint.key == model::kRemovalTaint; }

// Devices and other extended resources must be there in full; CPU and memory may turn out smaller.
bool HasPromisedDevices(const model::Node& real, const model::Node& expected) {
  return std::all_of(expected.allocatable.begin(), expected.allocatable.end(), [&](const auto& row) {
    const bool device = row.first.find('/') != std::string::npos;
    return !device || model::Get(real.allocatable, row.first) >= row.second;
  });
}

}  // namespace

state::Change NodeBook::Show(const std::string& name) {
  const Bought& bought = bought_.at(name);
  model::Node shown = bought.raw;
  shown.taints.erase(std::remove_if(shown.taints.begin(), shown.taints.end(), IsOurTaint),
                     shown.taints.end());
  const std::string request(shown.meta.labels.Get(model::kNodeRequestLabel));
  const bool closed = closed_.contains(request);
  if (closed) shown.unschedulable = true;
  state::Change change = state_.UpsertNode(shown);
  const state::NodeId id = state_.FindNode(name);
  // A node that is being removed before it was ever usable shows as it is, so that nothing is promised
  // to it any more.
  if (id != state::kNoId && (bought.ready || closed) && !state_.node(id).usable) {
    change |= state_.SetNodeUsable(id, true);
  }
  return change;
}

state::Change NodeBook::Upsert(const model::Node& node) {
  const std::string request(node.meta.labels.Get(model::kNodeRequestLabel));
  if (request.empty()) return state_.UpsertNode(node);
  Bought& bought = bought_[node.meta.name];
  bought.raw = node;
  const bool tainted = std::any_of(node.taints.begin(), node.taints.end(), IsOurTaint);
  const bool starting =
      std::any_of(node.taints.begin(), node.taints.end(),
                  [](const model::Taint& taint) { return taint.key == model::kStartupTaint; });
  auto expected = expected_.find(request);
  // Without its request nobody knows what was promised: it waits for it.
  const bool ready = node.ready && !starting && node.invalid.empty() &&
                     expected != expected_.end() && HasPromisedDevices(node, expected->second);
  const bool news = tainted != bought.tainted || ready != bought.ready;
  bought.tainted = tainted;
  bought.ready = ready;
  state::Change change = Show(node.meta.name);
  change.capacity |= news;
  return change;
}

state::Change NodeBook::Remove(const std::string& name, const std::string& uid) {
  auto it = bought_.find(name);
  if (it != bought_.end() && (uid.empty() || it->second.raw.meta.uid == uid)) bought_.erase(it);
  return state_.RemoveNode(name, uid);
}

state::Change NodeBook::RequestChanged(const std::string& request_name,
                                       const model::NodeRequest* request,
                                       const std::vector<const model::NodePool*>& pools) {
  state::Change change;
  const std::string& node_name = request_name;  // a bought node bears the name of its request
  if (request == nullptr || !RequestBook::Promises(*request)) {
    change |= state_.RemoveOrderedNode(node_name);
    if (request == nullptr) {
      expected_.erase(request_name);
      closed_.erase(request_name);
      // Not ours any more: an ordinary node, if it is still there.
    } else if (closed_.emplace(request_name, node_name).second) {
      change.capacity = true;
    }
    if (bought_.contains(node_name)) change |= Show(node_name);
    return change;
  }
  closed_.erase(request_name);
  if (!expected_.contains(request_name)) {
    absl::StatusOr<model::Node> expected = hook_.ExpectedNode(*request, pools);
    if (!expected.ok()) return change;  // the type left the catalogue: the hook gives the node back
    expected->meta.labels.Set(model::kNodeRequestLabel, request_name);
    expected_.emplace(request_name, std::move(*expected));
  }
  change |= state_.UpsertOrderedNode(expected_.at(request_name), request_name);
  auto bought = bought_.find(node_name);
  if (bought != bought_.end()) change |= Upsert(model::Node(bought->second.raw));
  return change;
}

std::vector<hook::NodeUse> NodeBook::Uses(const RequestBook& requests,
                                          const std::set<state::NodeId>& promised) const {
  std::vector<hook::NodeUse> uses;
  for (const model::NodeRequest* request : requests.All()) {
    hook::NodeUse use;
    use.name = request->meta.name;
    use.node_request = request->meta.name;
    auto bought = bought_.find(use.name);
    if (bought != bought_.end()) {
      const model::Node& raw = bought->second.raw;
      use.uid = raw.meta.uid;
      use.registered = true;
      use.ready = bought->second.ready;
      use.removal_tainted = bought->second.tainted;
      use.provider_id = raw.provider_id;
      use.needed = raw.meta.annotations.Get(model::kDoNotRemoveAnnotation) == "true" ||
                   raw.meta.annotations.Get("cluster-autoscaler.kubernetes.io/scale-down-disabled") ==
                       "true";
    }
    const state::NodeId id = state_.FindNode(use.name);
    if (id != state::kNoId) {
      use.needed = use.needed || promised.contains(id);
      for (state::PodId pod_id : state_.node(id).pods) {
        const state::PodRecord& pod = state_.pod(pod_id);
        if (!pod.daemon) use.needed = true;
      }
    }
    uses.push_back(std::move(use));
  }
  return uses;
}

}  // namespace fairlead::core
