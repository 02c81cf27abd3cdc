#include "sim/executor.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"

namespace fairlead::sim {
namespace {

template <typename T>
constexpr bool IsProviderCall() {
  return std::is_same_v<T, model::LaunchNode> || std::is_same_v<T, model::TerminateNode>;
}

// Actions with equal text here keep their order.
std::string ObjectOf(const model::Action& action) {
  return std::visit(
      []<typename T>(const T& what) -> std::string {
        if constexpr (IsProviderCall<T>()) {
          if constexpr (std::is_same_v<T, model::LaunchNode>) {
            return absl::StrCat("machine ", what.request->meta.name);
          } else {
            return absl::StrCat("machine ", what.request_name);
          }
        } else if constexpr (std::is_same_v<T, model::CreateNodeRequest> ||
                             std::is_same_v<T, model::UpdateNodeRequestStatus>) {
          return absl::StrCat("request ", what.request->meta.name);
        } else if constexpr (std::is_same_v<T, model::DeleteNodeRequest>) {
          return absl::StrCat("request ", what.name);
        } else if constexpr (std::is_same_v<T, model::SetNodeTaint>) {
          return absl::StrCat("node ", what.node);
        } else if constexpr (std::is_same_v<T, model::StoreUsage>) {
          return "usage";
        } else if constexpr (std::is_same_v<T, model::EmitEvent>) {
          return "events";
        } else if constexpr (std::is_same_v<T, model::ReserveClaim> ||
                             std::is_same_v<T, model::DeallocateClaim>) {
          return absl::StrCat("claim ", model::Key(what.ns, what.name));
        } else if constexpr (std::is_same_v<T, model::CallPlugin>) {
          return absl::StrCat("plugin ", what.call->plugin);
        } else if constexpr (std::is_same_v<T, model::SetConditions>) {
          return absl::StrCat("conditions of ", model::KindTitle(what.kind), " ",
                              model::Key(what.ns, what.name));
        } else if constexpr (std::is_same_v<T, model::SetKaiStatus>) {
          return absl::StrCat("counts of ", model::KindTitle(what.kind), " ",
                              model::Key(what.ns, what.name));
        } else if constexpr (std::is_same_v<T, model::BindVolume>) {
          return absl::StrCat("volume ", what.volume);
        } else if constexpr (std::is_same_v<T, model::SelectVolumeNode>) {
          return absl::StrCat("volume claim ", model::Key(what.ns, what.name));
        } else if constexpr (std::is_same_v<T, model::ApplyConfigMap>) {
          return absl::StrCat("config map ", model::Key(what.ns, what.name));
        } else if constexpr (std::is_same_v<T, model::ReadObject>) {
          return absl::StrCat("object ", what.kind, " ", model::Key(what.ns, what.name));
        } else if constexpr (std::is_same_v<T, model::SetSuspended>) {
          return absl::StrCat("object ", what.object->kind, " ",
                              model::Key(what.object->ns, what.object->name));
        } else if constexpr (std::is_same_v<T, model::ListSuspended>) {
          return absl::StrCat("objects ", what.kind);
        } else if constexpr (std::is_same_v<T, model::WritePodGroup>) {
          return absl::StrCat("group ", model::Key(what.group->meta));
        } else if constexpr (std::is_same_v<T, model::SetPodGroupSchedulability> ||
                             std::is_same_v<T, model::SetPodGroupAnnotations> ||
                             std::is_same_v<T, model::SetPodGroupScheduled>) {
          return absl::StrCat("group ", model::Key(what.ns, what.name));
        } else {
          return absl::StrCat("pod ", model::Key(what.ns, what.name));
        }
      },
      action.what);
}

}  // namespace

Executor::Executor(EventQueue* queue, ApiServer* server, Cloud* cloud, Faults* faults, Watch* watch,
                   ExecutorOptions options)
    : queue_(queue),
      server_(server),
      cloud_(cloud),
      faults_(faults),
      watch_(watch),
      options_(options),
      writes_(server) {}

void Executor::Execute(std::vector<model::Action> actions) {
  for (model::Action& action : actions) Submit(std::move(action));
}

void Executor::SlowDown(absl::Duration extra, absl::Time until) {
  slow_extra_ = extra;
  slow_until_ = until;
}

void Executor::ListNodes(Listed listed) {
  absl::Duration latency = options_.write_latency;
  if (queue_->now() < slow_until_) latency += slow_extra_;
  queue_->At(queue_->now() + latency, [this, listed = std::move(listed)] {
    if (faults_->Hit(FaultPoint::kLostReply)) {
      return listed(absl::UnavailableError("the connection broke"));
    }
    std::vector<hook::ListedNode> nodes;
    for (const auto& [name, node] : server_->All<model::Node>()) {
      const std::string request(node.meta.labels.Get(model::kNodeRequestLabel));
      if (request.empty() && node.provider_id.empty()) continue;
      nodes.push_back({name, node.meta.uid, request, node.provider_id});
    }
    listed(std::move(nodes));
  });
}

void Executor::Submit(model::Action action) {
  const bool provider_call = std::holds_alternative<model::LaunchNode>(action.what) ||
                             std::holds_alternative<model::TerminateNode>(action.what);
  absl::Duration latency = provider_call ? options_.provider_latency : options_.write_latency;
  if (queue_->now() < slow_until_) latency += slow_extra_;
  if (faults_->Hit(FaultPoint::kSlowApi)) latency += absl::Seconds(faults_->random().Between(1, 8));
  if (const auto* bind = std::get_if<model::BindPod>(&action.what);
      bind != nullptr && faults_->Hit(FaultPoint::kNodeGoneBeforeBind)) {
    cloud_->Kill(bind->node).IgnoreError();  // it may be gone already
  }
  absl::Time& last = last_commit_[ObjectOf(action)];
  last = std::max(last, queue_->now() + latency);
  const uint64_t ticket = next_ticket_++;
  pending_.emplace(ticket, std::move(action));
  queue_->At(last, [this, ticket] { Run(ticket); });
}

void Executor::Run(uint64_t ticket) {
  auto it = pending_.find(ticket);
  if (it == pending_.end()) return;  // abandoned
  const model::Action action = std::move(it->second);
  pending_.erase(it);
  absl::Status answer;
  if (faults_->Hit(FaultPoint::kLostRequest)) {
    answer = absl::UnavailableError("the connection broke");
  } else if (std::holds_alternative<model::BindPod>(action.what) &&
             faults_->Hit(FaultPoint::kBindConflict)) {
    answer = absl::FailedPreconditionError("conflict");
  } else {
    answer = Commit(action);
    if (faults_->Hit(FaultPoint::kLostReply)) {
      answer = absl::UnavailableError("the connection broke after the request");
    }
  }
  watch_->Answer({action.id, std::move(answer)}, options_.answer_latency);
}

void Executor::Abandon() {
  std::map<uint64_t, model::Action> pending;
  pending.swap(pending_);
  for (const auto& [ticket, action] : pending) {
    if (!faults_->Hit(FaultPoint::kLostRequest))
      Commit(action).IgnoreError();  // the process is gone
  }
}

absl::Status Executor::Commit(const model::Action& action) {
  absl::Status status = std::visit(
      [this]<typename T>(const T& what) {
        if constexpr (std::is_same_v<T, model::LaunchNode>) {
          return cloud_->Launch(what);
        } else if constexpr (std::is_same_v<T, model::TerminateNode>) {
          return cloud_->Terminate(what);
        } else if constexpr (std::is_same_v<T, model::CallPlugin>) {
          return absl::OkStatus();  // it has none: every pod passes
        } else if constexpr (std::is_same_v<T, model::AskExtenders>) {
          return absl::UnimplementedError("the simulated cluster has no scheduler extenders");
        } else if constexpr (std::is_same_v<T, model::ReadObject> ||
                             std::is_same_v<T, model::SetSuspended> ||
                             std::is_same_v<T, model::ListSuspended>) {
          return absl::UnimplementedError("the simulated cluster has no owners of pods");
        } else {
          return writes_.Commit(what);
        }
      },
      action.what);
  if (observer_ != nullptr) observer_(action, status);
  return status;
}

}  // namespace fairlead::sim
