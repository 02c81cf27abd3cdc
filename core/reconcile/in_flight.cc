#include "core/reconcile/in_flight.h"

#include <iterator>
#include <utility>

namespace fairlead::core {
namespace {

std::optional<InFlight> WhatMatters(const model::Action& action, int unknown) {
  if (const auto* evict = std::get_if<model::EvictPod>(&action.what)) {
    return InFlightEviction{*evict, unknown};
  }
  if (const auto* verdict = std::get_if<model::SetPodUnschedulable>(&action.what)) {
    return InFlightVerdict{verdict->ns, verdict->name, false};
  }
  if (const auto* group = std::get_if<model::SetPodGroupSchedulability>(&action.what)) {
    return InFlightVerdict{group->ns, group->name, true};
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
  if (const auto* annotations = std::get_if<model::SetPodGroupAnnotations>(&action.what)) {
    return InFlightAnnotations{*annotations, unknown};
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

void InFlightActions::Sent(const model::Action& action, int unknown) {
  if (std::optional<InFlight> sent = WhatMatters(action, unknown)) {
    in_flight_.emplace(action.id, *std::move(sent));
  }
}

void InFlightActions::SetCall(uint64_t action_id, const InFlightProvider& call) {
  auto it = in_flight_.find(action_id);
  if (it != in_flight_.end()) it->second = call;
}

std::optional<InFlight> InFlightActions::Take(uint64_t action_id) {
  auto it = in_flight_.find(action_id);
  if (it == in_flight_.end()) return std::nullopt;
  InFlight found = std::move(it->second);
  in_flight_.erase(it);
  return found;
}

std::vector<InFlightActions::Retry> InFlightActions::TakeDue(absl::Time now) {
  std::vector<Retry> due;
  while (!retries_.empty() && retries_.begin()->first <= now) {
    auto& first = retries_.begin()->second;
    due.insert(due.end(), std::make_move_iterator(first.begin()),
               std::make_move_iterator(first.end()));
    retries_.erase(retries_.begin());
  }
  return due;
}

size_t InFlightActions::retries() const {
  size_t count = 0;
  for (const auto& [at, due] : retries_) count += due.size();
  return count;
}

absl::Time InFlightActions::next_retry() const {
  return retries_.empty() ? absl::InfiniteFuture() : retries_.begin()->first;
}

}  // namespace fairlead::core
