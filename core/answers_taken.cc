// What becomes of the answers to what DecisionLoop asked for.
#include <algorithm>
#include <utility>

#include "core/decision_loop_impl.h"

namespace fairlead::core {
namespace {

// Nobody knows whether it was done.
bool OutcomeUnknown(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

// A refusal that an earlier write of ours, of unknown outcome, could be the reason of.
bool MayBeOurOwnDoing(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsAlreadyExists(status) ||
         absl::IsAborted(status);
}

}  // namespace

void DecisionLoop::Impl::TakeAnswer(const model::ActionResult& result, absl::Time now) {
  std::optional<Asked> found = asked.Take(result.action_id);
  auto accepted = accepted_launches.find(result.action_id);
  if (!found.has_value() && accepted != accepted_launches.end()) {
    found = AskedProvider{accepted->second, true};
  }
  if (!found.has_value()) return;
  const absl::Status& status = result.status;
  if (const auto* reserve = std::get_if<AskedReservation>(&*found)) {
    shares.Created(reserve->node, reserve->group, status, now);
  } else if (const auto* removal = std::get_if<AskedPodDeletion>(&*found)) {
    shares.Deleted(removal->name, status, now);
  } else if (const auto* config_map = std::get_if<AskedConfigMap>(&*found)) {
    shares.ConfigMapApplied(config_map->ns, config_map->pod, config_map->uid, status);
  } else if (const auto* claim = std::get_if<AskedClaim>(&*found)) {
    claims.Answered(claim->key, claim->reserved, status, result.resource_version, now);
  } else if (const auto* provider = std::get_if<AskedProvider>(&*found)) {
    ProviderAnswered(result.action_id, *provider, result, now);
  } else if (const auto* update = std::get_if<AskedStatus>(&*found)) {
    memo.valid = false;
    if (hook.OnStatusResult(update->request, status, now)) dirty = true;
  } else if (auto* create = std::get_if<AskedRequest>(&*found)) {
    CreationAnswered(std::move(*create), status, now);
  } else if (auto* evict = std::get_if<AskedEviction>(&*found)) {
    EvictionAnswered(std::move(*evict), status, now);
  } else if (status.ok()) {
    return;  // the watch shows its effect
  } else if (auto* bind = std::get_if<AskedBinding>(&*found)) {
    BindingAnswered(std::move(*bind), status, now);
  } else if (const auto* verdict = std::get_if<AskedVerdict>(&*found)) {
    // What is gone, or another object by now, is told anew anyway; what is not valid stays so.
    if (absl::IsNotFound(status) || absl::IsFailedPrecondition(status) ||
        absl::IsInvalidArgument(status)) {
      return;
    }
    verdicts.WriteFailed(verdict->ns, verdict->name, verdict->group, now);
    wake_at = std::min(wake_at, verdicts.wake_at());
  }
}

void DecisionLoop::Impl::BindingAnswered(AskedBinding binding, const absl::Status& status,
                                         absl::Time now) {
  const model::BindPod& bind = binding.bind;
  const state::PodId pod = state.FindPod(bind.ns, bind.name);
  if (pod == state::kNoId || state.pod(pod).uid != bind.uid ||
      state.pod(pod).status != state::PodStatus::kBinding) {
    return;
  }
  const bool in_doubt = binding.unknown > 0 && MayBeOurOwnDoing(status);
  if (OutcomeUnknown(status) || in_doubt) {
    asked.RetryLater(std::move(binding), now);
    return;
  }
  engine->OnBindFailed(pod, now);
  ForgetBinding(pod);
}

// The provider's word about a machine. A launch that is accepted may fail later.
void DecisionLoop::Impl::ProviderAnswered(uint64_t action_id, const AskedProvider& asked_provider,
                                          const model::ActionResult& result, absl::Time now) {
  const std::string& name = asked_provider.request_name;
  if (asked_provider.launch && result.status.ok() && hook.machines().Seen(name)) {
    accepted_launches[action_id] = name;
  } else {
    accepted_launches.erase(action_id);
  }
  hook.OnProviderResult(name, asked_provider.launch, result.status, now, result.machine_id);
  // A node that came before the answer is found by what it says.
  if (!result.machine_id.empty()) RequestChanged(name);
  memo.valid = false;
  dirty = true;
}

void DecisionLoop::Impl::CreationAnswered(AskedRequest creation, const absl::Status& status,
                                          absl::Time now) {
  const std::string name = creation.request.meta.name;
  hook.OnCreateResult(name, status, now);
  memo.valid = false;
  // Done, or there already: the watch will show it, and until then the node counts as ordered.
  if (status.ok() || absl::IsAlreadyExists(status) || hook.machines().Seen(name)) return;
  if (OutcomeUnknown(status)) {
    asked.RetryLater(std::move(creation), now);
    return;
  }
  RequestChanged(name);
  dirty = true;
}

// What nobody knows the outcome of and the watch has not decided meanwhile.
void DecisionLoop::Impl::AskAgain(absl::Time now, StepResult& result) {
  for (Answers::Retry& due : asked.TakeDue(now)) {
    if (auto* binding = std::get_if<AskedBinding>(&due)) {
      BindAgain(std::move(*binding), result);
    } else if (auto* eviction = std::get_if<AskedEviction>(&due)) {
      if (FindLeaving(eviction->evict) == state::kNoId) continue;
      evictions.Sent(eviction->evict.uid);
      Emit({0, std::move(eviction->evict)}, result, eviction->unknown);
    } else {
      auto& creation = std::get<AskedRequest>(due);
      const std::string& name = creation.request.meta.name;
      if (hook.machines().Find(name) == nullptr || hook.machines().Seen(name)) continue;
      Emit({0, model::CreateNodeRequest{std::move(creation.request)}}, result, creation.unknown);
    }
  }
}

void DecisionLoop::Impl::BindAgain(AskedBinding binding, StepResult& result) {
  const state::PodId pod = state.FindPod(binding.bind.ns, binding.bind.name);
  if (pod == state::kNoId || state.pod(pod).uid != binding.bind.uid ||
      state.pod(pod).status != state::PodStatus::kBinding) {
    return;
  }
  const state::NodeId node = state.pod(pod).node;
  if (node == state::kNoId || !state.node(node).exists) {
    // Nothing is to be bound to a node that is gone. If the pod was, the watch will show it, and
    // another binding is refused.
    ForgetBinding(pod);
    return;
  }
  Emit({0, std::move(binding.bind)}, result, binding.unknown);
}

}  // namespace fairlead::core
