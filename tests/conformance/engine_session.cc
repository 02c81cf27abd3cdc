#include "tests/conformance/engine_session.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "queues/tree.h"
#include "scheduler/engine/engine.h"
#include "scheduler/framework/framework.h"
#include "scheduler/model/api_names.h"
#include "scheduler/plugins/numa.h"
#include "scheduler/plugins/registry.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/state/parts.h"
#include "scheduler/state/transaction.h"
#include "scheduler/verdict/verdict.h"

namespace fairlead::conformance {
namespace {

using state::PodStatus;

bool Has(const std::vector<std::string>& list, absl::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// KAI's plugin `numa` is on where a case has NUMA nodes.
bool HasNuma(const SessionInput& input) {
  return std::any_of(input.objects.begin(), input.objects.end(), [](const kube::Object& object) {
    return std::holds_alternative<model::NodeResourceTopology>(object);
  });
}

state::StateOptions MakeStateOptions(bool has_numa) {
  state::StateOptions options;
  options.align_to_numa_nodes = has_numa;
  options.scheduler_names = {model::kKaiSchedulerName};
  return options;
}

engine::EngineOptions MakeEngineOptions(const SessionInput& input) {
  engine::EngineOptions options;
  options.allocate = Has(input.actions, "allocate");
  options.consolidation = Has(input.actions, "consolidation");
  options.reclaim = Has(input.actions, "reclaim");
  options.preempt = Has(input.actions, "preempt");
  options.stale_gangs = Has(input.actions, "stalegangeviction");
  options.hook_on = false;
  options.max_consolidation_workloads = model::kUnlimited;
  options.staleness_grace = input.settings.staleness_grace_period;
  if (input.settings.plugins.has_value()) {
    options.spread_parts =
        std::any_of(input.settings.plugins->begin(), input.settings.plugins->end(),
                    [](const ConfiguredPlugin& plugin) { return plugin.name == "gpuspread"; });
  }
  return options;
}

// KAI's nodeplacement arguments are ours. A case that names its plugins without nodeplacement
// ignores how full a node is.
framework::Profile MakeProfile(const SchedulerSettings& settings, bool has_numa) {
  framework::Profile profile = framework::DefaultProfile();
  if (has_numa) profile.plugins.push_back({plugins::Numa::kName});
  if (!settings.plugins.has_value()) return profile;
  const bool joins_shared =
      std::any_of(settings.plugins->begin(), settings.plugins->end(),
                  [](const ConfiguredPlugin& plugin) { return plugin.name == "gpusharingorder"; });
  for (framework::ProfilePlugin& ours : profile.plugins) {
    if (ours.name == "GpuSharing") ours.score = joins_shared;
  }
  for (const ConfiguredPlugin& plugin : *settings.plugins) {
    if (plugin.name != "nodeplacement") continue;
    std::string args;
    for (const auto& [key, value] : plugin.arguments) {
      absl::StrAppend(&args, args.empty() ? "{" : ",", "\"", key, "\":\"", value, "\"");
    }
    for (framework::ProfilePlugin& ours : profile.plugins) {
      if (ours.name == "NodePlacement" && !args.empty()) ours.args_json = args + "}";
    }
  }
  return profile;
}

std::string KeyOf(const state::PodRecord& pod) { return model::Key(pod.ns, pod.name); }

class Session {
 public:
  explicit Session(const SessionInput& input)
      : input_(input), state_(MakeStateOptions(HasNuma(input))), tree_(state_.resource_names()) {}

  absl::Status Start();
  SessionResult Run();

 private:
  void Apply(const kube::Object& object);
  void Seed();
  void Report(const engine::CycleResult& cycle);
  void ReportState();
  void ReportZones(const engine::CycleResult& cycle);
  void ReportClaims();

  const SessionInput& input_;
  state::ClusterState state_;
  queues::QueueTree tree_;
  std::unique_ptr<engine::Engine> engine_;
  // The nodes of finished pods: their capacity is free again, so the state need not know them.
  std::map<std::string, std::string> ran_on_;
  SessionResult result_;
};

absl::Status Session::Start() {
  framework::Registry registry;
  FAIRLEAD_RETURN_IF_ERROR(plugins::RegisterAll(registry));
  FAIRLEAD_ASSIGN_OR_RETURN(
      std::unique_ptr<framework::Framework> framework,
      framework::Framework::Make(MakeProfile(input_.settings, HasNuma(input_)), registry));
  engine_ = std::make_unique<engine::Engine>(MakeEngineOptions(input_), &state_, &tree_,
                                             std::move(framework));
  for (const kube::Object& object : input_.objects) Apply(object);
  for (const std::string& other : input_.other_objects) {
    result_.notes.push_back(absl::StrCat("not decoded: ", absl::string_view(other).substr(0, 120)));
  }
  Seed();
  return absl::OkStatus();
}

void Session::Apply(const kube::Object& object) {
  const auto note = [&](absl::string_view invalid) {
    if (invalid.empty()) return;
    result_.notes.push_back(absl::StrCat(model::Key(kube::MetaOf(object)), ": ", invalid));
  };
  if (const auto* pod = std::get_if<model::Pod>(&object)) {
    note(pod->invalid);
    ran_on_[model::Key(pod->meta)] = pod->node_name;
    state_.UpsertPod(*pod);
  } else if (const auto* node = std::get_if<model::Node>(&object)) {
    note(node->invalid);
    state_.UpsertNode(*node);
  } else if (const auto* queue = std::get_if<model::Queue>(&object)) {
    note(queue->invalid);
    tree_.Upsert(*queue);
  } else if (const auto* group = std::get_if<model::PodGroup>(&object)) {
    note(group->invalid);
    state_.UpsertPodGroup(*group);
  } else if (const auto* priority_class = std::get_if<model::PriorityClass>(&object)) {
    state_.UpsertPriorityClass(*priority_class);
  } else if (const auto* topology = std::get_if<model::Topology>(&object)) {
    note(topology->invalid);
    state_.UpsertTopology(*topology);
  } else if (const auto* device_class = std::get_if<model::DeviceClass>(&object)) {
    state_.UpsertDeviceObject(*device_class);
  } else if (const auto* slice = std::get_if<model::ResourceSlice>(&object)) {
    state_.UpsertDeviceObject(*slice);
  } else if (const auto* claim = std::get_if<model::ResourceClaim>(&object)) {
    state_.UpsertDeviceObject(*claim);
  } else if (const auto* machine = std::get_if<model::NodeResourceTopology>(&object)) {
    note(machine->invalid);
    state_.UpsertNodeTopology(*machine);
  }
}

// No API object shows that a pod is pipelined.
void Session::Seed() {
  state::Transaction txn(state_);
  for (const auto& [name, start] : input_.start) {
    if (start.status != "Pipelined") continue;
    const state::NodeId node = state_.FindNode(start.node);
    state_.ForEachPod([&, &pod_name = name, wanted = &start](const state::PodRecord& pod) {
      if (pod.name != pod_name || pod.status != PodStatus::kPending) return;
      if (node == state::kNoId) {
        result_.notes.push_back(absl::StrCat("no node ", wanted->node));
      } else {
        txn.Pipeline(pod.id, node, state::Parts(wanted->gpu_groups));
      }
    });
  }
  txn.Commit();
}

SessionResult Session::Run() {
  if (input_.actions.empty()) {
    ReportState();
    if (HasNuma(input_)) ReportZones({});
  } else {
    engine::CycleResult cycle = engine_->RunCycle(input_.now);
    if (input_.settings.follow_up_cycle && !cycle.evictions.empty()) {
      engine::CycleResult next = engine_->RunCycle(input_.now, /*may_evict=*/false);
      cycle.bindings.insert(cycle.bindings.end(), next.bindings.begin(), next.bindings.end());
      cycle.waiting = std::move(next.waiting);
    }
    cycle.waiting = engine_->ExpandEquivalents(std::move(cycle.waiting));
    ReportState();
    Report(cycle);
    if (HasNuma(input_)) ReportZones(cycle);
  }
  const std::string inconsistent = engine_->CheckConsistency();
  if (!inconsistent.empty()) result_.notes.push_back(absl::StrCat("inconsistent: ", inconsistent));
  return std::move(result_);
}

// Statuses of the claims of every placed pod, as the binder and the claim controller would leave
// them.
void Session::ReportClaims() {
  std::map<std::string, model::ResourceClaim> claims;
  std::map<std::string, std::string> nodes;
  std::set<std::string> freed;
  state_.ForEachPod([&](const state::PodRecord& pod) {
    for (const model::ResourceClaim& claim : state_.ClaimsOf(pod.id)) {
      const std::string key = model::Key(claim.meta);
      const auto [it, added] = claims.try_emplace(key, claim);
      std::vector<std::string>& users = it->second.reserved_for;
      users.erase(std::remove(users.begin(), users.end(), pod.uid), users.end());
      if (state::HoldsNode(pod.status) && pod.status != PodStatus::kReleasing) {
        if (claim.allocated) {
          it->second.allocated = true;
          it->second.devices = claim.devices;
        }
        users.push_back(pod.uid);
        nodes[key] = state_.node(pod.node).name();
      } else if (pod.status == PodStatus::kReleasing) {
        freed.insert(key);
      }
    }
  });
  for (const auto& [key, claim] : claims) {
    if (nodes.contains(key)) {
      result_.claim_status[key] = kube::EncodeClaimStatus(claim, nodes.at(key));
    } else if (freed.contains(key) && claim.reserved_for.empty()) {
      result_.claim_status[key] = "{}";
    }
  }
}

void Session::ReportState() {
  ReportClaims();
  state_.ForEachPod([this](const state::PodRecord& pod) {
    PodOutcome& out = result_.pods[KeyOf(pod)];
    out.status = state::PodStatusName(pod.status);
    if (pod.node != state::kNoId) {
      out.node = state_.node(pod.node).name();
    } else if (state::IsFinished(pod.status)) {
      out.node = ran_on_[KeyOf(pod)];
    }
    out.gpu_groups = pod.gpu_groups;
    const model::Resources charge = state_.ChargeOf(pod);
    out.milli_gpus = charge[model::kGpu];
    out.milli_cpus = charge[model::kCpu];
    out.memory_bytes = charge[model::kMemory];
  });
  for (const auto& [name, id] : state_.nodes_by_name()) {
    const state::NodeInfo& node = state_.node(id);
    result_.nodes[name] = {node.Idle()[model::kGpu], node.releasing[model::kGpu], {}};
  }
}

// NUMA nodes as the cycle left them: it takes its promises back at its end, so they are given again
// in its order.
void Session::ReportZones(const engine::CycleResult& cycle) {
  state::Transaction txn(state_);
  const auto promise = [&](state::PodId pod, state::NodeId node) {
    if (node != state::kNoId && !state_.class_of(pod).SharesGpu()) txn.Pipeline(pod, node, {});
  };
  for (const engine::Eviction& eviction : cycle.evictions) promise(eviction.pod, eviction.moves_to);
  for (const engine::Waiting& waiting : cycle.waiting) {
    for (const engine::Waiting::PodPromise& pod : waiting.pods) promise(pod.pod, pod.node);
  }
  state_.ForEachPod([this](const state::PodRecord& pod) {
    PodOutcome& out = result_.pods[KeyOf(pod)];
    out.numa_zones = state_.ZonesOf(pod.id);
    for (const model::ZoneAmounts& zone : out.numa_zones) {
      const auto& zones = state_.node(pod.node).numa->zones;
      const auto found = std::find_if(zones.begin(), zones.end(),
                                      [&](const auto& known) { return known.name == zone.zone; });
      out.numa_positions.push_back(found - zones.begin());
    }
  });
  for (const auto& [name, id] : state_.nodes_by_name()) {
    const state::NodeInfo& node = state_.node(id);
    if (node.numa == nullptr) continue;
    for (const state::NumaNode::Zone& zone : node.numa->zones) {
      const model::Resources free =
          zone.allocatable - zone.used.value() + zone.releasing.value() - zone.pipelined.value();
      result_.nodes[name].numa_available.push_back(free.ToList(state_.resource_names()));
    }
  }
}

void Session::Report(const engine::CycleResult& cycle) {
  for (const engine::Binding& binding : cycle.bindings) {
    result_.events.push_back({SessionEvent::Op::kBind, KeyOf(state_.pod(binding.pod)),
                              state_.node(binding.node).name()});
  }
  // KAI evicts what it has just bound; here the binding is withdrawn before it is sent.
  for (const engine::Binding& taken_back : cycle.withdrawn) {
    const std::string pod = KeyOf(state_.pod(taken_back.pod));
    const std::string node = state_.node(taken_back.node).name();
    result_.events.push_back({SessionEvent::Op::kBind, pod, node});
    result_.events.push_back({SessionEvent::Op::kEvict, pod, node});
    result_.pods[pod].status = "Releasing";
    result_.pods[pod].node = node;
  }
  for (const engine::Eviction& eviction : cycle.evictions) {
    const state::PodRecord& pod = state_.pod(eviction.pod);
    result_.events.push_back({SessionEvent::Op::kEvict, KeyOf(pod),
                              pod.node == state::kNoId ? "" : state_.node(pod.node).name()});
    if (eviction.moves_to == state::kNoId) continue;
    PodOutcome& out = result_.pods[KeyOf(pod)];
    out.status = "Pipelined";
    out.node = state_.node(eviction.moves_to).name();
  }
  for (const engine::Waiting& waiting : cycle.waiting) {
    const state::Workload& workload = state_.workload(waiting.workload);
    result_.verdicts[model::Key(workload.ns, workload.name)] =
        std::string(verdict::CodeName(waiting.verdict.code));
    for (const engine::Waiting::PodPromise& promise : waiting.pods) {
      if (promise.node == state::kNoId) continue;
      const std::string pod = KeyOf(state_.pod(promise.pod));
      const std::string node = state_.node(promise.node).name();
      PodOutcome& out = result_.pods[pod];
      out.status = "Pipelined";
      out.node = node;
      result_.events.push_back({SessionEvent::Op::kPipeline, pod, node});
    }
  }
}

}  // namespace

absl::StatusOr<SessionResult> RunEngineSession(const SessionInput& input) {
  Session session(input);
  FAIRLEAD_RETURN_IF_ERROR(session.Start());
  return session.Run();
}

}  // namespace fairlead::conformance
