// A decision loop with an API server and a cloud around it. Header only; never part of the product.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/decision_loop_testing.h"
#include "scheduler/model/api_names.h"

namespace fairlead::core::testing {

// An API server and a cloud that are controlled by hand, without any of the product's code.
class MachinesTest : public PurchaseTest {
 protected:
  void Begin() {
    SyncAll();
    Put(MakeQueue("research", "", 400, 400));
  }
  model::Pod GpuPod(const std::string& name, int64_t memory = 0) {
    model::Pod pod = PodBuilder("ns", name).Queue("research").Gpus(1).Created(0).Build();
    if (memory > 0) model::Set(pod.spec.requests, "memory", memory);
    return pod;
  }
  // Runs `what` every `step` and carries out the loop's actions.
  void Play(absl::Duration how_long, absl::Duration step = absl::Seconds(5)) {
    const absl::Time end = now_ + how_long;
    for (; now_ < end; now_ += step) {
      for (auto it = booting_.begin(); it != booting_.end();) {
        if (it->second.first > now_) {
          ++it;
          continue;
        }
        nodes_[it->second.second.meta.name] = it->second.second;
        if (!node_watch_dead_) Put(it->second.second);
        it = booting_.erase(it);
      }
      const StepResult result = StepAt(now_);
      Note(result);
      Carry(result);
    }
  }
  virtual void Note(const StepResult& /*result*/) {}  // of Play
  void ListNodes() override {
    if (!ListIsDue()) return;
    if (refuse_lists_) return loop_->NodesListed(last_list_, absl::PermissionDeniedError("no"));
    std::vector<hook::ListedNode> nodes;
    for (const auto& [name, node] : nodes_) {
      nodes.push_back({name, node.meta.uid,
                       std::string(node.meta.labels.Get(model::kNodeRequestLabel)),
                       node.provider_id});
    }
    loop_->NodesListed(last_list_, std::move(nodes));
  }
  void Carry(const StepResult& result) {
    for (size_t i = 0; i < result.actions.size(); ++i) {
      absl::Status answer;
      std::string machine_id;
      const auto& what = result.actions[i].what;
      if (const auto* create = std::get_if<model::CreateNodeRequest>(&what)) {
        model::NodeRequest request = create->request;
        request.meta.uid = absl::StrCat("uid-", ++created_);
        request.meta.creation = now_;
        requests_[request.meta.name] = request;
        Put(request);
      } else if (const auto* update = std::get_if<model::UpdateNodeRequestStatus>(&what)) {
        answer = refuse_status_ ? absl::PermissionDeniedError("no") : absl::OkStatus();
        if (answer.ok()) {
          requests_[update->request->meta.name] = update->request;
          Put(update->request);
        }
      } else if (const auto* end = std::get_if<model::DeleteNodeRequest>(&what)) {
        requests_.erase(end->name);
        loop_->Apply(model::Delete{model::Kind::kNodeRequest, "", end->name, end->uid});
      } else if (const auto* launch = std::get_if<model::LaunchNode>(&what)) {
        Launch(*launch, machine_id);
      } else if (const auto* terminate = std::get_if<model::TerminateNode>(&what)) {
        answer = Terminate(*terminate, machine_id);
      } else if (const auto* taint = std::get_if<model::SetNodeTaint>(&what)) {
        model::Node& node = nodes_.at(taint->node);
        std::erase_if(node.taints,
                      [&](const model::Taint& old) { return old.key == taint->taint.key; });
        if (taint->present) node.taints.push_back(taint->taint);
        node.meta.resource_version = taint->present ? taint_version_ : "1";
        Put(node);
      } else if (const auto* bind = std::get_if<model::BindPod>(&what)) {
        bound_[bind->name] = bind->node;
        model::Pod& pod = pods_.at(bind->name);
        pod.node_name = bind->node;
        pod.phase = model::PodPhase::kRunning;
        pod.start_time = now_;
        Put(pod);
      } else if (const auto* evict = std::get_if<model::EvictPod>(&what)) {
        answer = Evict(*evict);
      } else if (std::holds_alternative<model::SetConditions>(what)) {
        if (refuse_pool_status_) answer = absl::PermissionDeniedError("no");
      }
      if (lose_launch_answers_ && std::holds_alternative<model::LaunchNode>(what)) continue;
      loop_->Apply(model::ActionResult{result.actions[i].id, answer, "", machine_id});
    }
  }
  void Launch(const model::LaunchNode& launch, std::string& machine_id) {
    const std::string& request = launch.request->meta.name;
    if (booting_.contains(request) || machines_.contains(request)) return;
    model::Node node = launch.node;
    node.meta.uid = absl::StrCat("node-", ++launched_);
    node.meta.name = own_names_ ? absl::StrCat("ip-10-0-0-", launched_) : request;
    node.provider_id = absl::StrCat("cloud:///", node.meta.name);
    machine_id = node.provider_id;
    if (!labels_) node.meta.labels.Erase(model::kNodeRequestLabel);
    node.ready = true;
    node.devices = nullptr;  // drivers publish them
    if (!plugin_) model::Set(node.allocatable, model::kGpuName, 0);
    node.taints = arrives_with_;
    if (memory_ > 0) model::Set(node.allocatable, "memory", memory_);
    machines_[request] = node.meta.name;
    booting_[request] = {now_ + absl::Seconds(60), node};
  }
  absl::Status Terminate(const model::TerminateNode& terminate, std::string& machine_id) {
    auto machine = machines_.find(terminate.request_name);
    if (machine == machines_.end()) return absl::OkStatus();
    const std::string name = machine->second;
    // Nodes without our label: the id is told first (providers/provider.h).
    if (!labels_ && terminate.provider_id.empty()) {
      machine_id = absl::StrCat("cloud:///", name);
      return absl::FailedPreconditionError("has nodes without a label");
    }
    ++terminated_;
    booting_.erase(terminate.request_name);
    for (const auto& [pod, node] : bound_) EXPECT_NE(node, name) << "terminated under " << pod;
    machines_.erase(machine);
    if (nodes_.erase(name) > 0) loop_->Apply(model::Delete{model::Kind::kNode, "", name, ""});
    return absl::OkStatus();
  }
  // Its controller, if it has one, makes another in its place, with one letter more in its name.
  absl::Status Evict(const model::EvictPod& evict) {
    ++eviction_attempts_;
    if (refuse_evictions_) return absl::ResourceExhaustedError("a budget");
    evicted_.push_back(evict);
    model::Pod pod = pods_.at(evict.name);
    EXPECT_EQ(pod.meta.uid, evict.uid);
    EndPod(evict.name);
    if (pod.meta.owners.empty()) return absl::OkStatus();
    pod.meta.name += "i";
    pod.meta.uid += "i";
    pod.meta.creation = now_;
    pod.node_name.clear();
    pod.phase = model::PodPhase::kPending;
    pod.start_time = absl::InfiniteFuture();
    AddPod(pod);
    return absl::OkStatus();
  }
  void AddPod(const model::Pod& pod) {
    pods_[pod.meta.name] = pod;
    Put(pod);
  }
  void EndPod(const std::string& name) {
    pods_.erase(name);
    bound_.erase(name);
    loop_->Apply(model::Delete{model::Kind::kPod, "ns", name, ""});
  }

  absl::Time now_ = At(1);
  bool own_names_ = false, labels_ = true, refuse_status_ = false, lose_launch_answers_ = false;
  bool node_watch_dead_ = false, refuse_lists_ = false;
  bool plugin_ = true;  // nodes have a device plugin
  int64_t memory_ = 0;
  std::vector<model::Taint> arrives_with_;  // a node
  std::string taint_version_;
  int created_ = 0, launched_ = 0, terminated_ = 0;
  bool refuse_evictions_ = false, refuse_pool_status_ = false;
  int eviction_attempts_ = 0;
  std::vector<model::EvictPod> evicted_;
  std::map<std::string, model::NodeRequest> requests_;
  std::map<std::string, std::pair<absl::Time, model::Node>> booting_;
  std::map<std::string, std::string> machines_;  // request -> node
  std::map<std::string, model::Node> nodes_;
  std::map<std::string, model::Pod> pods_;
  std::map<std::string, std::string> bound_;
};

}  // namespace fairlead::core::testing
