#include "core/reconcile/in_flight.h"

#include <utility>

namespace fairlead::core {
namespace {

std::optional<InFlight> WhatMatters(const model::Action& action) {
  if (const auto* evict = std::get_if<model::EvictPod>(&action.what)) {
    return InFlightEviction{evict->uid};
  }
  if (const auto* create = std::get_if<model::CreateNodeRequest>(&action.what)) {
    return InFlightRequest{create->request->meta.name};
  }
  if (const auto* update = std::get_if<model::UpdateNodeRequestStatus>(&action.what)) {
    return InFlightStatus{update->request};
  }
  if (const auto* launch = std::get_if<model::LaunchNode>(&action.what)) {
    return InFlightProvider{launch->request->meta.name, launch->request->meta.uid, "", true};
  }
  if (const auto* terminate = std::get_if<model::TerminateNode>(&action.what)) {
    return InFlightProvider{terminate->request_name, "", terminate->provider_id, false};
  }
  if (const auto* reserve = std::get_if<model::CreateGpuReservation>(&action.what)) {
    return InFlightReservation{reserve->node, reserve->group};
  }
  if (const auto* removal = std::get_if<model::DeletePod>(&action.what)) {
    return InFlightPodDeletion{removal->name};
  }
  if (const auto* apply = std::get_if<model::ApplyConfigMap>(&action.what)) {
    return InFlightConfigMap{apply->ns, apply->owner_pod, apply->owner_uid, apply->name};
  }
  if (const auto* reserve = std::get_if<model::ReserveClaim>(&action.what)) {
    return InFlightClaim{model::Key(reserve->ns, reserve->name), true};
  }
  if (const auto* deallocate = std::get_if<model::DeallocateClaim>(&action.what)) {
    return InFlightClaim{model::Key(deallocate->ns, deallocate->name), false};
  }
  if (const auto* extended = std::get_if<model::SetExtendedClaim>(&action.what)) {
    return InFlightExtendedClaim{model::Key(extended->ns, extended->name), extended->uid,
                                 extended->claim};
  }
  if (const auto* bind = std::get_if<model::BindVolume>(&action.what)) {
    return InFlightVolume{model::Key(bind->claim_ns, bind->claim_name)};
  }
  if (const auto* select = std::get_if<model::SelectVolumeNode>(&action.what)) {
    return InFlightVolume{model::Key(select->ns, select->name)};
  }
  if (const auto* ask = std::get_if<model::AskExtenders>(&action.what)) {
    return InFlightAsk{ask->number, !ask->victims.empty()};
  }
  if (const auto* annotations = std::get_if<model::SetPodGroupAnnotations>(&action.what)) {
    return InFlightAnnotations{annotations->uid};
  }
  if (const auto* condition = std::get_if<model::SetPodGroupScheduled>(&action.what)) {
    return InFlightGroupCondition{model::Key(condition->ns, condition->name), condition->uid};
  }
  if (const auto* write = std::get_if<model::SetConditions>(&action.what)) {
    return InFlightConditions{write->kind, model::Key(write->ns, write->name), write->uid};
  }
  if (const auto* write = std::get_if<model::SetKaiStatus>(&action.what)) {
    return InFlightKaiStatus{write->kind, model::Key(write->ns, write->name), write->uid};
  }
  if (const auto* read = std::get_if<model::ReadObject>(&action.what)) {
    return InFlightRead{*read};
  }
  if (const auto* group = std::get_if<model::WritePodGroup>(&action.what)) {
    return InFlightGroup{model::Key(group->group->meta)};
  }
  if (const auto* write = std::get_if<model::SetSuspended>(&action.what)) {
    return InFlightSuspension{write->number};
  }
  if (const auto* list = std::get_if<model::ListSuspended>(&action.what)) {
    return InFlightSuspendedList{list->group, list->kind};
  }
  if (const auto* pod = std::get_if<model::SetPodGroup>(&action.what)) {
    return InFlightGroupOfPod{model::Key(pod->ns, pod->name), pod->uid};
  }
  if (std::holds_alternative<model::StoreUsage>(action.what)) return InFlightUsage{};
  if (const auto* taint = std::get_if<model::SetNodeTaint>(&action.what)) {
    return InFlightTaint{taint->uid, taint->present};
  }
  if (const auto* end = std::get_if<model::DeleteNodeRequest>(&action.what)) {
    return InFlightRequestEnd{end->name, end->uid};
  }
  return std::nullopt;
}

}  // namespace

void InFlightActions::Sent(const model::Action& action) {
  std::optional<InFlight> sent = WhatMatters(action);
  if (!sent.has_value()) return;
  if (std::holds_alternative<InFlightProvider>(*sent)) {
    ++open_calls_;
    calls_.push_back(action.id);
    if (calls_.size() > kMostCalls) {
      open_calls_ -= in_flight_.erase(calls_.front());
      calls_.pop_front();
    }
  }
  in_flight_.emplace(action.id, *std::move(sent));
}

void InFlightActions::SetCall(uint64_t action_id, const InFlightProvider& call) {
  auto it = in_flight_.find(action_id);
  if (it != in_flight_.end()) it->second = call;
}

std::optional<InFlight> InFlightActions::Take(uint64_t action_id) {
  auto it = in_flight_.find(action_id);
  if (it == in_flight_.end()) return std::nullopt;
  InFlight found = std::move(it->second);
  if (std::holds_alternative<InFlightProvider>(found)) --open_calls_;
  in_flight_.erase(it);
  return found;
}

}  // namespace fairlead::core
