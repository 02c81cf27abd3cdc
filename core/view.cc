#include "core/view.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "autoscale-hook/hook.h"
#include "core/view_maker.h"
#include "queues/contradictions.h"
#include "scheduler/model/api_names.h"
#include "scheduler/verdict/text.h"

namespace fairlead::core {
namespace {

std::string StatusOf(const state::NodeInfo& node, const hook::Machine* machine) {
  if (machine != nullptr && !machine->Promises()) return "Removing";
  if (node.kind == state::NodeKind::kOrdered) return "Ordered";
  if (!node.usable) return "Starting";
  if (!node.object.ready || !node.object.bad_conditions.empty()) return "NotReady";
  return node.object.unschedulable ? "Cordoned" : "Ready";
}

const hook::Machine* MachineOf(const state::NodeInfo& node, const hook::Hook& hook) {
  return node.node_request.empty() ? nullptr : hook.machines().Find(node.node_request);
}

int64_t AmountIn(const model::ResourceList& list, const std::string& resource) {
  const int64_t amount = model::Get(list, resource);
  return resource == model::kGpuName ? model::SaturatingAdd(amount, state::OtherGpusMilli(list))
                                     : amount;
}

int64_t GpuMilliOf(const model::PodSpec& spec) {
  return model::SaturatingAdd(model::Get(spec.requests, model::kGpuName),
                              spec.gpu_share.fraction_milli * spec.gpu_share.devices);
}

std::optional<QueueAmounts> RecordedOf(const model::Queue& queue, const std::string& resource) {
  if (!queue.status.has_value()) return std::nullopt;
  return QueueAmounts{AmountIn(queue.status->allocated, resource),
                      AmountIn(queue.status->allocated_non_preemptible, resource),
                      AmountIn(queue.status->requested, resource)};
}

}  // namespace

HistoryRow HistoryOf(const engine::Engine& engine) {
  const engine::HistoryState& state = engine.history();
  HistoryRow row;
  row.on = state.on;
  row.problem = std::string(state.known.message());
  if (state.as_of != absl::InfinitePast()) row.as_of = state.as_of;
  return row;
}

View ViewMaker::Make(absl::Time now) const {
  View view;
  view.at = now;
  view.history = HistoryOf(engine);
  view.queues = Queues();
  AddNodes(view);
  AddWaiting(view);
  state.ForEachPod([&](const state::PodRecord& pod) {
    if (!pod.ours || pod.node == state::kNoId) return;
    const state::Workload& workload = state.workload(pod.workload);
    const model::PodSpec& spec = *state.class_of(pod.id).spec;
    view.running.push_back({model::Key(pod.ns, pod.name), model::Key(workload.ns, workload.name),
                            state.QueueOf(pod), state.node(pod.node).name(),
                            state::PodStatusName(pod.status), GpuMilliOf(spec),
                            model::Get(spec.requests, model::kCpuName),
                            model::Get(spec.requests, model::kMemoryName)});
  });
  std::sort(view.running.begin(), view.running.end(),
            [](const RunningRow& a, const RunningRow& b) { return a.pod < b.pod; });
  return view;
}

void ViewMaker::AddUnschedulable(const engine::Waiting& entry, int64_t workloads,
                                 Totals& totals) const {
  std::set<std::string> plugins;
  for (const verdict::FailedPredicate& p : entry.verdict.failed_predicates) {
    plugins.insert(p.plugin);
  }
  if (entry.verdict.code == verdict::Code::kGated) {
    const absl::string_view plugin = verdict::PluginThatHolds(entry.verdict.subject);
    plugins.insert(plugin.empty() ? "SchedulingGates" : std::string(plugin));
  }
  if (plugins.empty() || entry.pods.empty()) return;
  const std::string name(state.SchedulerNameOf(state.pod(entry.pods.front().pod)));
  for (const std::string& plugin : plugins) {
    totals.unschedulable_pods[{plugin, name}] +=
        workloads * static_cast<int64_t>(entry.pods.size());
  }
}

Totals ViewMaker::Count() const {
  Totals totals;
  totals.history = HistoryOf(engine);
  totals.queues = Queues();
  for (const engine::Waiting& entry : waiting) {
    Totals::Waiting& of_code = totals.waiting[entry.verdict.code];
    const bool gone = verdicts.Since(entry.workload) == absl::InfinitePast();
    const int64_t workloads = (gone ? 0 : 1) + entry.behind;
    of_code.workloads += workloads;
    of_code.pods += workloads * static_cast<int64_t>(entry.pods.size());
    if (!gone) AddUnschedulable(entry, workloads, totals);
  }
  for (const auto& [name, id] : state.nodes_by_name()) {
    const state::NodeInfo& node = state.node(id);
    if (node.exists) ++totals.nodes[StatusOf(node, MachineOf(node, hook))];
  }
  ForEachHeld([&](const model::NodeRequest& request) {
    totals.price_micro_usd_per_hour += request.price_micro_usd_per_hour;
    totals.gpus_held += hook.GpusOf(request);
  });
  return totals;
}

std::vector<QueueRow> ViewMaker::Queues() const {
  std::vector<QueueRow> rows;
  std::map<queues::QueueId, engine::QueueNumbers> numbers;
  for (engine::QueueNumbers& row : engine.Numbers()) numbers[row.queue] = std::move(row);
  const std::function<void(queues::QueueId, int)> add = [&](queues::QueueId id, int depth) {
    const engine::QueueNumbers& found = numbers[id];
    QueueRow row;
    row.name = tree.Name(id);
    row.parent = tree.Spec(id).parent;
    row.depth = depth;
    row.leaf = tree.IsLeaf(id);
    row.priority = tree.Spec(id).priority;
    row.problem = tree.Exists(id)
                      ? tree.Problem(id).value_or(queues::ContradictionOf(tree.Spec(id)))
                      : "deleted; pods that were started under it still run";
    row.waiting_workloads = found.waiting_workloads;
    row.running_pods = found.running_pods;
    std::vector<model::ResourceIndex> order = {model::kGpu, model::kCpu, model::kMemory};
    for (model::ResourceIndex resource : tree.resources()) {
      if (std::find(order.begin(), order.end(), resource) == order.end()) order.push_back(resource);
    }
    for (model::ResourceIndex resource : order) {
      const queues::Bounds& bounds = tree.BoundsOf(id, resource);
      const std::string& name = tree.names().Name(resource);
      row.resources.push_back({name, bounds.quota, bounds.limit, found.fair_share[resource],
                               found.allocated[resource], found.requested[resource],
                               found.allocated_non_preemptible[resource],
                               RecordedOf(tree.Spec(id), name)});
    }
    rows.push_back(std::move(row));
    for (queues::QueueId child : tree.Children(id)) add(child, depth + 1);
  };
  for (queues::QueueId root : tree.Roots()) add(root, 0);
  for (const auto& [id, row] : numbers) {
    if (!tree.Exists(id)) add(id, 0);
  }
  return rows;
}

void ViewMaker::AddNodes(View& view) const {
  struct Promised {
    int64_t pods = 0, gpu_milli = 0;
  };
  std::map<state::NodeId, Promised> promised;
  for (const engine::Waiting& entry : waiting) {
    for (const engine::Waiting::PodPromise& pod : entry.pods) {
      if (pod.node == state::kNoId) continue;
      Promised& there = promised[pod.node];
      ++there.pods;
      // A pod that has gone since the last decision still counts, and requests nothing.
      if (state.pod(pod.pod).id == state::kNoId) continue;
      there.gpu_milli =
          model::SaturatingAdd(there.gpu_milli, GpuMilliOf(*state.class_of(pod.pod).spec));
    }
  }
  for (const auto& [name, id] : state.nodes_by_name()) {
    const state::NodeInfo& node = state.node(id);
    if (!node.exists) continue;
    const hook::Machine* machine = MachineOf(node, hook);
    NodeRow row;
    row.name = name;
    row.instance_type = std::string(node.object.meta.labels.Get(model::kInstanceTypeLabel));
    row.zone = std::string(node.object.meta.labels.Get(model::kZoneLabel));
    row.status = StatusOf(node, machine);
    row.node_request = node.node_request;
    row.allocatable = node.allocatable.ToList(state.resource_names());
    row.used = node.used.ToList(state.resource_names());
    row.pods = static_cast<int64_t>(node.pods.size());
    row.promised = promised[id].pods;
    row.promised_gpu_milli = promised[id].gpu_milli;
    if (machine != nullptr) {
      row.capacity_type = machine->desired.CapacityType();
      row.price_micro_usd_per_hour = machine->desired.price_micro_usd_per_hour;
      row.unneeded_since = machine->desired.unneeded_since;
      row.confirmed = machine->seen();
      row.pool = machine->desired.pool;
    }
    view.nodes.push_back(std::move(row));
  }
  ForEachHeld([&](const model::NodeRequest& request) {
    view.price_micro_usd_per_hour += request.price_micro_usd_per_hour;
    view.gpus_held += hook.GpusOf(request);
  });
}

void ViewMaker::ForEachHeld(absl::FunctionRef<void(const model::NodeRequest&)> use) const {
  using Phase = model::NodeRequestPhase;
  for (const auto& [key, machine] : hook.machines().rows()) {
    const model::NodeRequest& request = machine.desired;
    const bool held = (machine.seen() || machine.lost) && request.phase != Phase::kGone &&
                      request.phase != Phase::kFailed;
    if (held) use(request);
  }
}

void ViewMaker::AddWaiting(View& view) const {
  for (const engine::Waiting& entry : waiting) {
    const state::Workload& workload = state.workload(entry.workload);
    WaitingRow row;
    row.since = verdicts.Since(entry.workload);
    if (row.since == absl::InfinitePast()) continue;  // gone since the last decision
    row.workload = model::Key(workload.ns, workload.name);
    row.is_group = workload.is_group;
    row.queue = workload.queue;
    row.priority = workload.priority;
    row.verdict = entry.verdict;
    row.message = verdict::Message(entry.verdict);
    for (const engine::Waiting::PodPromise& promise : entry.pods) {
      const state::PodRecord& pod = state.pod(promise.pod);
      if (pod.id == state::kNoId || pod.workload != entry.workload) continue;
      row.pods.push_back(model::Key(pod.ns, pod.name));
    }
    view.waiting.push_back(std::move(row));
  }
}

}  // namespace fairlead::core
