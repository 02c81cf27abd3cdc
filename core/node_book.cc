#include "core/node_book.h"

#include <algorithm>

#include "scheduler/model/api_names.h"

namespace fairlead::core {
namespace {

bool IsOurTaint(const model::Taint& taint) { return taint.key == model::kRemovalTaint; }

// Devices and other extended resources must be there in full; CPU and memory may turn out smaller.
bool HasPromisedDevices(const model::Node& real, const model::Node& expected) {
  return std::all_of(expected.allocatable.begin(), expected.allocatable.end(),
                     [&](const auto& row) {
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
  // A node that is being removed before it was ever usable shows as it is, so that nothing is
  // promised to it any more.
  if (id != state::kNoId && (bought.ready || closed) && !state_.node(id).usable) {
    change |= state_.SetNodeUsable(id, true);
  }
  return change;
}

state::Change NodeBook::Upsert(const model::Node& node) {
  const std::string request(node.meta.labels.Get(model::kNodeRequestLabel));
  if (request.empty()) return state_.UpsertNode(node);
  list_stale_ = true;
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
  if (it != bought_.end() && (uid.empty() || it->second.raw.meta.uid == uid)) {
    bought_.erase(it);
    list_stale_ = true;
  }
  return state_.RemoveNode(name, uid);
}

state::Change NodeBook::RequestChanged(const std::string& request_name,
                                       const model::NodeRequest* request,
                                       const std::vector<const model::NodePool*>& pools) {
  list_stale_ = true;
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
  change |=
      state_.UpsertOrderedNode(expected_.at(request_name), request_name, request->reason_workloads);
  auto bought = bought_.find(node_name);
  if (bought != bought_.end()) change |= Upsert(model::Node(bought->second.raw));
  return change;
}

hook::NodeUse NodeBook::UseOf(const std::string& request_name) const {
  hook::NodeUse use;
  use.name = request_name;
  use.node_request = request_name;
  auto bought = bought_.find(use.name);
  if (bought == bought_.end()) return use;
  const model::Node& raw = bought->second.raw;
  const model::StringMap& labels = raw.meta.labels;
  use.uid = raw.meta.uid;
  use.registered = true;
  use.ready = bought->second.ready;
  use.removal_tainted = bought->second.tainted;
  use.provider_id = raw.provider_id;
  // A node that we launched has both of these labels.
  if (labels.Has(model::kCapacityTypeLabel)) {
    use.instance_type = std::string(labels.Get(model::kInstanceTypeLabel));
  }
  use.pool = std::string(labels.Get(model::kPoolLabel));
  use.zone = std::string(labels.Get(model::kZoneLabel));
  use.spot = labels.Get(model::kCapacityTypeLabel) == "spot";
  return use;
}

NodeBook::Looked NodeBook::LookAt(const std::string& name,
                                  const std::set<state::NodeId>& promised) const {
  Looked looked;
  looked.node = state_.FindNode(name);
  if (looked.node == state::kNoId) return looked;
  looked.version = state_.node(looked.node).version;
  looked.promised = promised.contains(looked.node);
  return looked;
}

bool NodeBook::IsNeeded(const std::string& name, const Looked& looked) const {
  if (looked.promised) return true;
  auto bought = bought_.find(name);
  if (bought != bought_.end()) {
    const model::StringMap& annotations = bought->second.raw.meta.annotations;
    if (annotations.Get(model::kDoNotRemoveAnnotation) == "true" ||
        annotations.Get("cluster-autoscaler.kubernetes.io/scale-down-disabled") == "true") {
      return true;
    }
  }
  if (looked.node == state::kNoId) return false;
  const std::vector<state::PodId>& pods = state_.node(looked.node).pods;
  return std::any_of(pods.begin(), pods.end(),
                     [&](state::PodId pod) { return !state_.pod(pod).daemon; });
}

void NodeBook::ListUses(const RequestBook& requests, const std::set<state::NodeId>& promised) {
  std::vector<hook::NodeUse> uses;
  for (const model::NodeRequest* request : requests.AllSeen()) {
    uses.push_back(UseOf(request->meta.name));
  }
  const size_t with_request = uses.size();
  for (const auto& [name, bought] : bought_) {
    const bool own = bought.raw.meta.labels.Get(model::kNodeRequestLabel) == name;
    if (own && requests.Find(name) == nullptr) uses.push_back(UseOf(name));
  }
  if (uses.size() > with_request) {
    std::sort(uses.begin(), uses.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
  }
  looked_.clear();
  looked_.reserve(uses.size());
  for (hook::NodeUse& use : uses) {
    looked_.push_back(LookAt(use.name, promised));
    use.needed = IsNeeded(use.name, looked_.back());
  }
  if (uses != uses_) {
    uses_ = std::move(uses);
    ++uses_version_;
  }
  list_stale_ = false;
}

const std::vector<hook::NodeUse>& NodeBook::Uses(const RequestBook& requests,
                                                 const std::set<state::NodeId>& promised) {
  if (list_stale_) {
    ListUses(requests, promised);
    return uses_;
  }
  bool changed = false;
  for (size_t i = 0; i < uses_.size(); ++i) {
    hook::NodeUse& use = uses_[i];
    Looked& looked = looked_[i];
    // Rows are dealt anew: the name tells whose it is.
    const bool same = looked.node != state::kNoId &&
                      state_.node(looked.node).version == looked.version &&
                      looked.promised == promised.contains(looked.node) &&
                      state_.node(looked.node).name() == use.name;
    if (same) continue;
    looked = LookAt(use.name, promised);
    const bool needed = IsNeeded(use.name, looked);
    changed = changed || needed != use.needed;
    use.needed = needed;
  }
  if (changed) ++uses_version_;
  return uses_;
}

}  // namespace fairlead::core
