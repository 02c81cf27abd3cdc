#include "core/answers.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace fairlead::core {
namespace {

std::optional<Asked> WhatMatters(const model::Action& action, int unknown) {
  if (const auto* bind = std::get_if<model::BindPod>(&action.what)) {
    return AskedBinding{*bind, unknown};
  }
  if (const auto* evict = std::get_if<model::EvictPod>(&action.what)) {
    return AskedEviction{*evict, unknown};
  }
  if (const auto* verdict = std::get_if<model::SetPodUnschedulable>(&action.what)) {
    return AskedVerdict{verdict->ns, verdict->name, false};
  }
  if (const auto* group = std::get_if<model::SetPodGroupSchedulability>(&action.what)) {
    return AskedVerdict{group->ns, group->name, true};
  }
  if (const auto* create = std::get_if<model::CreateNodeRequest>(&action.what)) {
    return AskedRequest{create->request, unknown};
  }
  if (const auto* update = std::get_if<model::UpdateNodeRequestStatus>(&action.what)) {
    return AskedStatus{update->request};
  }
  if (const auto* launch = std::get_if<model::LaunchNode>(&action.what)) {
    return AskedProvider{launch->request.meta.name, true};
  }
  if (const auto* terminate = std::get_if<model::TerminateNode>(&action.what)) {
    return AskedProvider{terminate->request_name, false};
  }
  if (const auto* reserve = std::get_if<model::CreateGpuReservation>(&action.what)) {
    return AskedReservation{reserve->node, reserve->group};
  }
  if (const auto* removal = std::get_if<model::DeletePod>(&action.what)) {
    return AskedPodDeletion{removal->name};
  }
  if (const auto* apply = std::get_if<model::ApplyConfigMap>(&action.what)) {
    return AskedConfigMap{apply->ns, apply->owner_pod, apply->owner_uid};
  }
  if (const auto* reserve = std::get_if<model::ReserveClaim>(&action.what)) {
    return AskedClaim{model::Key(reserve->ns, reserve->name), true};
  }
  if (const auto* deallocate = std::get_if<model::DeallocateClaim>(&action.what)) {
    return AskedClaim{model::Key(deallocate->ns, deallocate->name), false};
  }
  return std::nullopt;
}

}  // namespace

void Answers::Sent(const model::Action& action, int unknown) {
  if (std::optional<Asked> asked = WhatMatters(action, unknown)) {
    in_flight_.emplace(action.id, *std::move(asked));
  }
}

std::optional<Asked> Answers::Take(uint64_t action_id) {
  auto it = in_flight_.find(action_id);
  if (it == in_flight_.end()) return std::nullopt;
  Asked asked = std::move(it->second);
  in_flight_.erase(it);
  return asked;
}

absl::Time Answers::RetryAt(int unknown, absl::Time now) const {
  absl::Duration pause = retry_initial_;
  for (int i = 1; i < unknown && pause < retry_max_; ++i) pause *= 2;
  return now + std::min(pause, retry_max_);
}

std::vector<Answers::Retry> Answers::TakeDue(absl::Time now) {
  std::vector<Retry> due;
  while (!retries_.empty() && retries_.begin()->first <= now) {
    auto& first = retries_.begin()->second;
    due.insert(due.end(), std::make_move_iterator(first.begin()),
               std::make_move_iterator(first.end()));
    retries_.erase(retries_.begin());
  }
  return due;
}

absl::Time Answers::next_retry() const {
  return retries_.empty() ? absl::InfiniteFuture() : retries_.begin()->first;
}

}  // namespace fairlead::core
