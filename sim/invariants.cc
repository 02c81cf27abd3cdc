#include "sim/invariants.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/bill.h"
#include "scheduler/model/api_names.h"

namespace fairlead::sim {
namespace {

constexpr int64_t kMilliPerDevice = 1000;

bool IsDaemon(const model::Pod& pod) {
  return std::any_of(pod.meta.owners.begin(), pod.meta.owners.end(), [](const auto& owner) {
    return owner.controller && owner.kind == "DaemonSet";
  });
}

// What the pod uses of a node and of its queue. Omits GPU shares by memory: their size depends on
// the device.
model::ResourceList Charge(const model::Pod& pod) {
  model::ResourceList charge = pod.spec.requests;
  if (pod.spec.gpu_share.fraction_milli > 0) {
    model::Add(charge, model::kGpuName,
               pod.spec.gpu_share.fraction_milli * pod.spec.gpu_share.devices);
  }
  return charge;
}

struct Held {
  int64_t gpus = 0, micro_usd_per_hour = 0;
  std::map<std::string, int64_t> by_model;
};

}  // namespace

bool Invariants::IsOurs(const model::Pod& pod) const {
  return std::find(scheduler_names_.begin(), scheduler_names_.end(), pod.scheduler_name) !=
         scheduler_names_.end();
}

std::string Invariants::QueueOf(const model::Pod& pod) const {
  const absl::string_view group = pod.meta.annotations.Get(model::kPodGroupAnnotation);
  if (!group.empty()) {
    const auto* found = cluster_->server().Find<model::PodGroup>(model::Key(pod.meta.ns, group));
    if (found != nullptr && !found->queue.empty()) return found->queue;
  }
  return std::string(pod.meta.labels.Get(model::kQueueLabel));
}

std::string Invariants::NodeBooks() const {
  std::map<std::string, model::ResourceList> used;
  for (const auto& [key, pod] : cluster_->server().All<model::Pod>()) {
    if (pod.node_name.empty() || IsTerminal(pod)) continue;
    model::ResourceList charge = pod.spec.requests;  // the GPU of a shared pod is charged to its
                                                     // reservation pod
    model::Add(charge, model::kPodsName, 1);
    model::AddAll(used[pod.node_name], charge);
  }
  for (const auto& [name, amounts] : used) {
    const auto* node = cluster_->server().Find<model::Node>(name);
    if (node == nullptr || !node->ready) continue;  // its pods are being collected, or it starts
    for (const auto& [resource, amount] : amounts) {
      const int64_t has = model::Get(node->allocatable, resource);
      if (amount <= has) continue;
      return absl::StrCat("node ", name, " holds ", amount, " of ", resource, " and has ", has);
    }
  }
  return "";
}

// For every shared GPU: one device, and the shares do not exceed it.
std::string Invariants::ShareBooks() const {
  std::map<std::pair<std::string, std::string>, int64_t> milli;  // node, group
  std::map<std::pair<std::string, std::string>, std::string> devices;
  for (const auto& [key, pod] : cluster_->server().All<model::Pod>()) {
    if (pod.node_name.empty() || IsTerminal(pod) || !pod.spec.gpu_share.IsSet()) continue;
    if (!IsOurs(pod) || !pod.meta.annotations.Has(model::kLastStartAnnotation)) continue;
    int64_t groups = 0;
    for (const auto& [label, group] : pod.meta.labels) {
      if (!absl::StartsWith(label, model::kGpuGroupLabel)) continue;
      ++groups;
      int64_t& used = milli[{pod.node_name, group}];
      used += pod.spec.gpu_share.fraction_milli;
      if (used > kMilliPerDevice) {
        return absl::StrCat("GPU ", group, " of node ", pod.node_name, " is shared out to ", used);
      }
      if (pod.spec.gpu_share.devices != 1) continue;
      const absl::string_view device = pod.meta.annotations.Get(model::kVisibleDevicesAnnotation);
      std::string& first = devices[{pod.node_name, group}];
      if (first.empty()) first = std::string(device);
      if (device.empty() || first != device) {
        return absl::StrCat("pod ", key, " has device \"", device, "\" of GPU ", group, ": ",
                            first);
      }
    }
    if (groups != pod.spec.gpu_share.devices) {
      return absl::StrCat("pod ", key, " names ", groups, " GPUs");
    }
  }
  return "";
}

std::string Invariants::QueueBooks(const std::vector<const model::Pod*>& pods,
                                   const char* what) const {
  std::map<std::string, model::ResourceList> used;
  for (const model::Pod* pod : pods) {
    const model::ResourceList charge = Charge(*pod);
    std::set<std::string> seen;  // a cycle of parents ends the walk
    for (std::string queue = QueueOf(*pod); !queue.empty() && seen.insert(queue).second;) {
      const auto* found = cluster_->server().Find<model::Queue>(queue);
      if (found == nullptr) break;
      model::AddAll(used[queue], charge);
      queue = found->parent;
    }
  }
  for (const auto& [name, amounts] : used) {
    const model::Queue& queue = *cluster_->server().Find<model::Queue>(name);
    const std::pair<const char*, int64_t> limits[] = {{model::kGpuName, queue.gpu.limit},
                                                      {model::kCpuName, queue.cpu.limit},
                                                      {model::kMemoryName, queue.memory.limit}};
    for (const auto& [resource, limit] : limits) {
      const int64_t amount = model::Get(amounts, resource);
      if (limit == model::kUnlimited || amount <= limit) continue;
      return absl::StrCat(what, " queue ", name, ": ", amount, " of ", resource, ", limit ", limit);
    }
  }
  return "";
}

std::string Invariants::CapBooks() const {
  Held requests, machines;
  const auto add = [&](Held& held, const std::string& type_name, int64_t price) {
    const hook::InstanceType* type = catalog_->Find(type_name);
    if (type == nullptr) return;
    held.gpus += type->gpu_count;
    held.by_model[type->gpu_model] += type->gpu_count;
    held.micro_usd_per_hour += price;
  };
  std::map<std::string, int64_t> price_of;
  for (const auto& [name, request] : cluster_->server().All<model::NodeRequest>()) {
    price_of[name] = request.price_micro_usd_per_hour;
    if (request.phase == model::NodeRequestPhase::kFailed ||
        request.phase == model::NodeRequestPhase::kGone) {
      continue;
    }
    add(requests, request.instance_type, request.price_micro_usd_per_hour);
  }
  for (const auto& [name, machine] : cluster_->cloud().machines()) {
    add(machines, machine.instance_type, price_of[name]);
  }
  for (const auto& [what, held] :
       {std::make_pair("requests", &requests), std::make_pair("machines", &machines)}) {
    if (hook_.cluster_gpu_limit != model::kUnlimited && held->gpus > hook_.cluster_gpu_limit) {
      return absl::StrCat("I6: ", what, " hold ", held->gpus, " GPUs, the cap is ",
                          hook_.cluster_gpu_limit);
    }
    for (const auto& [gpu_model, limit] : hook_.gpu_limit_by_model) {
      auto found = held->by_model.find(gpu_model);
      if (found == held->by_model.end() || found->second <= limit) continue;
      return absl::StrCat("I6: ", what, " hold ", found->second, " ", gpu_model, ", the cap is ",
                          limit);
    }
    if (hook_.cost_limit_micro_usd_per_hour != model::kUnlimited &&
        held->micro_usd_per_hour > hook_.cost_limit_micro_usd_per_hour) {
      return absl::StrCat("I6: ", what, " cost ", held->micro_usd_per_hour,
                          " micro-dollars an hour, the cap is ",
                          hook_.cost_limit_micro_usd_per_hour);
    }
  }
  return "";
}

std::string Invariants::AllocationTracker() const {
  std::vector<const model::Pod*> running;
  for (const auto& [key, pod] : cluster_->server().All<model::Pod>()) {
    // A terminating pod no longer counts against its quota, but still uses its node.
    if (IsOurs(pod) && !pod.node_name.empty() && !IsTerminal(pod) && !pod.meta.deletion) {
      running.push_back(&pod);
    }
  }
  for (std::string problem :
       {NodeBooks(), ShareBooks(), QueueBooks(running, "over its limit:"), CapBooks()}) {
    if (!problem.empty()) return problem;
  }
  return "";
}

std::string Invariants::AfterStep(const core::View& view,
                                  const std::vector<model::Action>& actions) const {
  const bool requested = std::any_of(actions.begin(), actions.end(), [](const model::Action& a) {
    return std::holds_alternative<model::CreateNodeRequest>(a.what);
  });
  return requested ? Requested(view, actions) : "";
}

std::string Invariants::Requested(const core::View& view,
                                  const std::vector<model::Action>& actions) const {
  std::map<std::string, verdict::Code> code_of;  // by workload and by pod
  std::vector<const model::Pod*> charged;        // runs, or is pipelined to a node
  size_t waiting_for_nodes = 0;
  const auto charge = [&](const std::string& key) {
    const auto* pod = cluster_->server().Find<model::Pod>(key);
    if (pod != nullptr && !IsTerminal(*pod) && !pod->meta.deletion) charged.push_back(pod);
  };
  for (const core::WaitingRow& row : view.waiting) {
    code_of[row.workload] = row.verdict.code;
    for (const std::string& pod : row.pods) code_of[pod] = row.verdict.code;
    if (row.verdict.code != verdict::Code::kNodesRequested) continue;
    waiting_for_nodes += row.pods.size();
    for (const std::string& pod : row.pods) charge(pod);
  }
  for (const core::RunningRow& row : view.running) {
    if (row.status != "Releasing") charge(row.pod);
  }
  size_t requested = 0;
  for (const model::Action& action : actions) {
    const auto* create = std::get_if<model::CreateNodeRequest>(&action.what);
    // A request that is written again for an existing node provisions nothing.
    if (create == nullptr) continue;
    const auto& nodes = cluster_->server().All<model::Node>();
    const bool adopted = std::any_of(nodes.begin(), nodes.end(), [&](const auto& node) {
      return node.second.meta.labels.Get(model::kNodeRequestLabel) == create->request->meta.name;
    });
    if (adopted) continue;
    if (!create->request->replaces.empty()) {
      const std::string wrong = WhyNotReplaced(*create->request);
      if (!wrong.empty()) return wrong;
      continue;
    }
    ++requested;
    if (create->request->reason_workloads.empty()) {
      return absl::StrCat("node request ", create->request->meta.name, " names no workload");
    }
    for (const std::string& workload : create->request->reason_workloads) {
      auto code = code_of.find(workload);
      if (code == code_of.end()) {
        return absl::StrCat("I1: node requested for ", workload, ", which waits for nothing");
      }
      if (core::ForbidsNodes(code->second)) {
        return absl::StrCat("I1: node requested for ", workload, ", which is held by ",
                            std::string(verdict::CodeName(code->second)));
      }
    }
  }
  if (requested > waiting_for_nodes) {
    return absl::StrCat("I3: ", requested, " nodes requested in one step, and ", waiting_for_nodes,
                        " pods wait for nodes");
  }
  return QueueBooks(charged, "I2: running and promised in");
}

// It takes the place of machines that are there, for less.
std::string Invariants::WhyNotReplaced(const model::NodeRequest& request) const {
  const auto& requests = cluster_->server().All<model::NodeRequest>();
  int64_t old_price = 0;
  for (const model::ReplacedRequest& one : request.replaces) {
    const auto found = std::find_if(requests.begin(), requests.end(), [&](const auto& entry) {
      return entry.second.meta.uid == one.uid && entry.second.meta.name == one.name;
    });
    if (found == requests.end() || found->second.phase != model::NodeRequestPhase::kReady) {
      return absl::StrCat("node request ", request.meta.name, " replaces ", one.name,
                          ", which is not ready");
    }
    old_price += found->second.price_micro_usd_per_hour;
  }
  if (request.price_micro_usd_per_hour < old_price || !request.reservation.empty()) return "";
  return absl::StrCat("node request ", request.meta.name, " replaces cheaper machines");
}

std::string Invariants::BeforeTermination(const model::TerminateNode& action) const {
  for (const auto& [key, pod] : cluster_->server().All<model::Pod>()) {
    if (pod.node_name != action.node_name || action.node_name.empty()) continue;
    if (IsTerminal(pod) || IsDaemon(pod)) continue;
    return absl::StrCat("I7: node ", action.node_name, " is terminated under pod ", key);
  }
  return "";
}

std::string Invariants::Settled(const core::View& view) const {
  std::map<std::string, int> rows;
  for (const core::WaitingRow& row : view.waiting) {
    for (const std::string& pod : row.pods) ++rows[pod];
  }
  for (const auto& [key, pod] : cluster_->server().All<model::Pod>()) {
    const bool waits = IsOurs(pod) && pod.node_name.empty() && !IsTerminal(pod);
    const int count = rows.contains(key) ? rows[key] : 0;
    if (count != (waits ? 1 : 0)) {
      return absl::StrCat("pod ", key, waits ? " waits" : " does not wait", " and has ", count,
                          " verdicts");
    }
    if (!waits || pod.meta.annotations.Has(model::kVerdictAnnotation)) continue;
    const absl::string_view group = pod.meta.annotations.Get(model::kPodGroupAnnotation);
    const auto* found =
        group.empty() ? nullptr
                      : cluster_->server().Find<model::PodGroup>(model::Key(pod.meta.ns, group));
    if (found == nullptr || found->schedulability_hash.empty()) {
      return absl::StrCat("pod ", key, " waits without a verdict");
    }
  }
  return "";
}

}  // namespace fairlead::sim
