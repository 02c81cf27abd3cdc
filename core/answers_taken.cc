// Handles the answers to actions of DecisionLoop.
#include <algorithm>
#include <utility>

#include "core/decision_loop_impl.h"
#include "scheduler/model/api_names.h"

namespace fairlead::core {

void DecisionLoop::Impl::TakeAnswer(const model::ActionResult& result, absl::Time now) {
  const absl::Status& status = result.status;
  if (bindings.Answered(result.action_id, status, now)) return;
  if (verdicts.Answered(result.action_id, status, now)) return;
  if (nominations.Answered(result.action_id, status, now)) return;
  if (PluginAnswered(result, now)) return;
  std::optional<InFlight> found = in_flight.Take(result.action_id);
  if (!found.has_value()) return;
  if (const auto* reserve = std::get_if<InFlightReservation>(&*found)) {
    shares.shares().Created(reserve->node, reserve->group, status, now);
  } else if (const auto* removal = std::get_if<InFlightPodDeletion>(&*found)) {
    shares.shares().Deleted(removal->name, status, now);
  } else if (const auto* config_map = std::get_if<InFlightConfigMap>(&*found)) {
    shares.shares().ConfigMapApplied(config_map->ns, config_map->pod, config_map->uid,
                                     config_map->name, status, now);
  } else if (const auto* claim = std::get_if<InFlightClaim>(&*found)) {
    claims.Answered(claim->key, claim->reserved, status, result.resource_version, now);
    wake_at = std::min(wake_at, claims.idle_wake_at());
  } else if (const auto* extended = std::get_if<InFlightExtendedClaim>(&*found)) {
    claims.ExtendedAnswered(*extended, status, now);
  } else if (const auto* volume = std::get_if<InFlightVolume>(&*found)) {
    volumes.Answered(volume->claim, status, now);
  } else if (const auto* ask = std::get_if<InFlightAsk>(&*found)) {
    if (ask->preempts) {
      preemption_asks.Answered(ask->number, result, now);
    } else {
      extenders.Answered(ask->number, result, now);
    }
  } else if (const auto* provider = std::get_if<InFlightProvider>(&*found)) {
    ProviderAnswered(*provider, result, now);
  } else if (const auto* update = std::get_if<InFlightStatus>(&*found)) {
    memo.valid = false;
    if (hook.OnStatusResult(update->request, status, now)) dirty = true;
  } else if (const auto* create = std::get_if<InFlightRequest>(&*found)) {
    CreationAnswered(create->name, status, now);
  } else if (const auto* evict = std::get_if<InFlightEviction>(&*found)) {
    EvictionAnswered(evict->uid, status, now);
  } else if (const auto* taint = std::get_if<InFlightTaint>(&*found)) {
    memo.valid = false;
    hook.OnTaintResult(taint->node_uid, taint->present, status, now);
    if (!status.ok()) dirty = true;  // the hook knows when it is due again
  } else if (const auto* end = std::get_if<InFlightRequestEnd>(&*found)) {
    memo.valid = false;
    hook.OnDeleteResult(end->name, end->uid, status, now);
    if (!status.ok()) dirty = true;
  } else if (std::holds_alternative<InFlightUsage>(*found)) {
    usage.Answered(status, now);
    wake_at = std::min(wake_at, usage.wake_at());
  } else if (const auto* group = std::get_if<InFlightAnnotations>(&*found)) {
    annotations.Answered(group->uid, status, now);
  } else if (const auto* conditions = std::get_if<InFlightConditions>(&*found)) {
    if (conditions->kind == model::Kind::kNodePool) {
      pools.Answered(conditions->object, conditions->uid, status, now);
    } else {
      capacity.Answered(conditions->kind, conditions->object, conditions->uid, status, now);
    }
  } else if (const auto* scheduled = std::get_if<InFlightGroupCondition>(&*found)) {
    native_groups.Answered(scheduled->group, scheduled->uid, status, now);
  } else if (const auto* counts = std::get_if<InFlightKaiStatus>(&*found)) {
    if (kai_statuses.has_value()) {
      kai_statuses->Answered(counts->kind, counts->object, counts->uid, status, now);
    }
  } else if (const auto* read = std::get_if<InFlightRead>(&*found)) {
    if (read->object.suspension != 0) {
      suspensions.ObjectRead(read->object, result, now);
    } else {
      grouper.ObjectRead(read->object, result, now);
    }
  } else if (const auto* suspension = std::get_if<InFlightSuspension>(&*found)) {
    suspensions.Written(suspension->number, status, now);
  } else if (const auto* list = std::get_if<InFlightSuspendedList>(&*found)) {
    suspensions.Listed(list->group, list->kind, result, now);
  } else if (const auto* owned = std::get_if<InFlightGroup>(&*found)) {
    grouper.GroupWritten(owned->key, status, now);
  } else if (const auto* grouped = std::get_if<InFlightGroupOfPod>(&*found)) {
    grouper.PodWritten(grouped->key, grouped->uid, status, now);
  }
}

void DecisionLoop::Impl::TakeNodeLists(absl::Time now) {
  for (const NodeListAnswer& answer : std::exchange(node_lists, {})) {
    if (answer.number == awaited_list) awaited_list = 0;
    std::vector<hook::ListedNode> unseen;
    if (answer.nodes.ok()) unseen = nodes.Unseen(*answer.nodes);
    hook.OnNodesListed(answer.number, answer.nodes.status(), unseen, now);
    memo.valid = false;
    dirty = true;
  }
}

void DecisionLoop::Impl::TakeReports(absl::Time now) {
  for (const hook::MachineReport& report : std::exchange(reports, {})) {
    hook.OnMachineReport(report, now);
    // A node that came before the report is found by its provider id.
    if (!report.machine_id.empty()) RequestChanged(report.request_name);
    memo.valid = false;
    dirty = true;
  }
}

// The provider's answer about a machine.
void DecisionLoop::Impl::ProviderAnswered(const InFlightProvider& provider,
                                          const model::ActionResult& result, absl::Time now) {
  hook.OnProviderResult(provider, result.status, now, result.machine_id);
  // A node that came before the answer is found by its provider id.
  if (!result.machine_id.empty()) RequestChanged(provider.request_name);
  memo.valid = false;
  dirty = true;
}

// Created: the watch will show it, and until then the node counts as ordered.
void DecisionLoop::Impl::CreationAnswered(const std::string& name, const absl::Status& status,
                                          absl::Time now) {
  memo.valid = false;
  hook.OnCreateResult(name, status, now);
  if (status.ok()) return;
  RequestChanged(name);
  dirty = true;  // the hook knows when it is due again
}

}  // namespace fairlead::core
