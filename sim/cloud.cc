#include "sim/cloud.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"

namespace fairlead::sim {
namespace {

constexpr char kNotReadyTaint[] = "node.kubernetes.io/not-ready";

// Resources that a device plugin adds once it runs on the node.
bool FromDevicePlugin(absl::string_view resource) {
  return resource != model::kCpuName && resource != model::kMemoryName &&
         resource != model::kPodsName && resource != model::kEphemeralStorageName;
}

}  // namespace

Cloud::Cloud(EventQueue* queue, ApiServer* server, Faults* faults, CloudOptions options)
    : queue_(queue), server_(server), faults_(faults), options_(std::move(options)) {}

void Cloud::AddStockout(std::string instance_type, std::string zone, absl::Time until) {
  stockouts_.push_back({std::move(instance_type), std::move(zone), until});
}

void Cloud::DelayNextLaunches(int64_t count, int64_t factor) {
  late_launches_ = count;
  late_factor_ = factor;
}

bool Cloud::InStock(const std::string& type, const std::string& zone) const {
  return std::none_of(stockouts_.begin(), stockouts_.end(), [&](const Stockout& stockout) {
    return stockout.until > queue_->now() && stockout.instance_type == type &&
           (stockout.zone.empty() || stockout.zone == zone);
  });
}

absl::Status Cloud::Launch(const model::LaunchNode& launch) {
  const model::NodeRequest& request = launch.request;
  const std::string& name = request.meta.name;
  if (machines_.contains(name)) return absl::OkStatus();
  if (!InStock(request.instance_type, request.zone) || faults_->Hit(FaultPoint::kStockout)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no capacity for ", request.instance_type, " in zone ", request.zone));
  }
  ++launched_;
  Machine& machine = machines_[name];
  machine.instance_type = request.instance_type;
  machine.node_name =
      options_.own_node_names ? absl::StrCat("ip-10-0-0-", launched_) : launch.node->meta.name;
  if (lost_launches_ > 0) {
    --lost_launches_;
    machine.arrives = false;
  } else if (faults_->Hit(FaultPoint::kNeverArrives)) {
    machine.arrives = false;
  }
  absl::Duration boot = options_.boot_delay;
  auto by_type = options_.boot_delay_by_type.find(request.instance_type);
  if (by_type != options_.boot_delay_by_type.end()) boot = by_type->second;
  if (late_launches_ > 0) {
    --late_launches_;
    boot *= late_factor_;
  } else if (faults_->Hit(FaultPoint::kLateBoot)) {
    boot *= 10;
  }
  if (machine.arrives) {
    model::Node node = launch.node;
    node.meta.name = machine.node_name;
    node.meta.labels.Set(model::kHostnameLabel, machine.node_name);
    model::Set(node.allocatable, model::kMemoryName,
               model::Get(node.allocatable, model::kMemoryName) / 100 * options_.memory_percent);
    node.provider_id = absl::StrCat("sim://", request.zone, "/", name);
    queue_->After(boot, [this, name, node, pool = request.pool] { Register(name, node, pool); });
  }
  if (faults_->Hit(FaultPoint::kLaunchReplyLost)) {
    return absl::UnavailableError("no answer from the provider");
  }
  return absl::OkStatus();
}

void Cloud::Adopt(const std::string& request_name, const std::string& instance_type,
                  const std::string& node_name) {
  machines_[request_name] = {instance_type, node_name, /*arrives=*/true};
}

absl::Status Cloud::Terminate(const model::TerminateNode& terminate) {
  auto it = machines_.find(terminate.request_name);
  if (it == machines_.end()) return absl::OkStatus();  // already gone, or never was
  const std::string node_name = it->second.node_name;
  machines_.erase(it);
  queue_->After(options_.terminate_delay,
                [this, node_name] { server_->Remove<model::Node>(node_name); });
  return absl::OkStatus();
}

absl::Status Cloud::Kill(const std::string& node_name) {
  const model::Node* node = server_->Find<model::Node>(node_name);
  if (node == nullptr) return absl::NotFoundError(absl::StrCat("node ", node_name, " not found"));
  for (auto it = machines_.begin(); it != machines_.end(); ++it) {
    if (it->second.node_name != node_name) continue;
    machines_.erase(it);
    break;
  }
  server_->Remove<model::Node>(node_name);
  return absl::OkStatus();
}

void Cloud::Register(const std::string& request, model::Node node, const std::string& pool) {
  if (!machines_.contains(request)) return;  // terminated while it booted
  const model::Node promised = node;
  node.ready = false;
  node.taints.push_back({kNotReadyTaint, "", model::TaintEffect::kNoSchedule});
  for (auto& [resource, amount] : node.allocatable) {
    if (FromDevicePlugin(resource)) amount = 0;
  }
  if (!server_->Create(std::move(node)).ok()) return;  // another node has that name
  queue_->After(options_.ready_delay,
                [this, request, promised, pool] { BecomeReady(request, promised, pool); });
}

void Cloud::BecomeReady(const std::string& request, const model::Node& promised,
                        const std::string& pool) {
  if (!machines_.contains(request)) return;
  const model::NodePool* found = server_->Find<model::NodePool>(pool);
  const auto passes = [&](const model::Taint& taint) {
    if (taint.key == kNotReadyTaint || taint.key == model::kStartupTaint) return true;
    return found != nullptr && std::find(found->startup_taints.begin(), found->startup_taints.end(),
                                         taint) != found->startup_taints.end();
  };
  server_->Modify<model::Node>(promised.meta.name, [&](model::Node& node) {
    node.ready = true;
    node.allocatable = promised.allocatable;
    node.taints.erase(std::remove_if(node.taints.begin(), node.taints.end(), passes),
                      node.taints.end());
  });
}

}  // namespace fairlead::sim
