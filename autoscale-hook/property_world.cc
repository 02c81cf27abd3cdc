// Users, the API server and the provider of the small world.
#include "autoscale-hook/property_world.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/machines/launch_set.h"
#include "autoscale-hook/provisioning/failure.h"

namespace fairlead::hook::testing {

void PropertyWorld::Run(int steps) {
  for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
    now_ += absl::Seconds(Pick(1, 30));
    Users();
    Tick();
    if (Chance(4)) Crash();
  }
}

void PropertyWorld::Lull(int steps) {
  for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
    now_ += absl::Seconds(Pick(1, 30));
    if (!jobs_.empty() && Chance(6)) EndOnePod();
    Tick();
    if (Chance(1)) Crash();
  }
}

void PropertyWorld::Calm() {
  faults_ = false;
  for (int i = 0; i < 200 && !::testing::Test::HasFailure(); ++i) {
    now_ += absl::Seconds(15);
    Tick();
  }
}

void PropertyWorld::ExpectAllRunning() {
  for (const auto& [name, job] : jobs_)
    EXPECT_EQ(job.Waiting(), 0) << name << " waits\n" << Describe();
}

std::string PropertyWorld::Describe() {
  std::string text;
  for (const auto& [name, request] : requests_) {
    auto node = nodes_.find(name);
    absl::StrAppend(&text, name, " ", request.instance_type, " phase ",
                    static_cast<int>(request.phase), " bound ", BoundOn(name),
                    node == nodes_.end() ? " no node" : " node",
                    node != nodes_.end() && node->second.ready ? " ready" : "",
                    node != nodes_.end() && node->second.tainted ? " tainted" : "",
                    machines_.contains(name) ? " machine" : "", "\n");
  }
  Look();
  Placed placed = Place();
  for (const DemandItem& item : placed.demand) {
    absl::StrAppend(&text, "demand ", item.workload, " ", item.classes[0].count, "\n");
  }
  for (const auto& [name, request] : unseen_) absl::StrAppend(&text, "unseen ", name, "\n");
  for (const auto& [name, pods] : placed.promised) absl::StrAppend(&text, "promised ", name, "\n");
  return text;
}

void PropertyWorld::ExpectNothingLeft() {
  EXPECT_TRUE(requests_.empty()) << requests_.size() << " requests, first in phase "
                                 << static_cast<int>(requests_.begin()->second.phase);
  EXPECT_TRUE(machines_.empty());
  EXPECT_EQ(nodes_.size(), 1u);
}

void PropertyWorld::ExpectQuiet() {
  Look();
  const StepOutput out = Step(false);
  EXPECT_TRUE(out.actions.empty()) << out.actions.size() << " actions in a world at rest";
}

void PropertyWorld::Users() {
  if (Chance(30))
    jobs_[absl::StrCat("team/j", 1000 + ++job_count_)].pods = Chance(30) ? Pick(2, 5) : 1;
  if (!jobs_.empty() && Chance(20)) {
    auto it = jobs_.begin();
    std::advance(it, Pick(0, static_cast<int64_t>(jobs_.size()) - 1));
    jobs_.erase(it);
  }
  if (!machines_.empty() && Chance(2)) KillMachine(machines_.begin()->first);  // a spot reclaim
}

void PropertyWorld::EndOnePod() {
  auto it = jobs_.begin();
  std::advance(it, Pick(0, static_cast<int64_t>(jobs_.size()) - 1));
  Job& job = it->second;
  if (job.Waiting() == 0) {
    const auto node = job.bound.begin();
    if (--node->second == 0) job.bound.erase(node);
  }
  if (--job.pods == 0) jobs_.erase(it);
}

void PropertyWorld::KillMachine(std::string name) {  // NOLINT: a copy, as the key dies
  machines_.erase(name);
  nodes_.erase(name);
  for (auto& [job_name, job] : jobs_) job.bound.erase(name);
}

void PropertyWorld::Advance() {
  for (auto& [name, machine] : machines_) {
    if (!machine.registered && now_ >= machine.registers_at) {
      machine.registered = true;
      ApiNode node;
      node.uid = absl::StrCat("n", ++uids_);
      if (!Fault(5)) node.ready_at = now_ + absl::Seconds(Pick(0, 60));
      nodes_[name] = node;
    }
  }
  for (auto& [name, node] : nodes_) node.ready = node.ready || now_ >= node.ready_at;
  std::deque<std::pair<absl::Time, model::Action>> later;
  std::set<std::string> held;  // in order per request
  for (auto& [at, action] : std::exchange(flying_, {})) {
    const std::string name = Subject(action);
    if (at > now_ || held.contains(name)) {
      held.insert(name);
      later.emplace_back(at, std::move(action));
    } else {
      Deliver(action);
      CheckCaps();
    }
  }
  for (auto& entry : flying_) later.push_back(std::move(entry));
  flying_ = std::move(later);
}

std::string PropertyWorld::Subject(const model::Action& action) {
  if (const auto* a = std::get_if<model::CreateNodeRequest>(&action.what))
    return a->request->meta.name;
  if (const auto* a = std::get_if<model::UpdateNodeRequestStatus>(&action.what)) {
    return a->request->meta.name;
  }
  if (const auto* a = std::get_if<model::DeleteNodeRequest>(&action.what)) return a->name;
  if (const auto* a = std::get_if<model::LaunchNode>(&action.what)) return a->request->meta.name;
  if (const auto* a = std::get_if<model::TerminateNode>(&action.what)) return a->request_name;
  if (const auto* a = std::get_if<model::SetNodeTaint>(&action.what)) return a->node;
  return "";
}

void PropertyWorld::Deliver(const model::Action& action) {
  if (const auto* create = std::get_if<model::CreateNodeRequest>(&action.what)) {
    DeliverCreate(*create);
  } else if (const auto* update = std::get_if<model::UpdateNodeRequestStatus>(&action.what)) {
    DeliverStatus(*update);
  } else if (const auto* erase = std::get_if<model::DeleteNodeRequest>(&action.what)) {
    DeliverDelete(*erase);
  } else if (const auto* taint = std::get_if<model::SetNodeTaint>(&action.what)) {
    DeliverTaint(*taint);
  } else if (const auto* launch = std::get_if<model::LaunchNode>(&action.what)) {
    DeliverLaunch(*launch);
  } else if (const auto* terminate = std::get_if<model::TerminateNode>(&action.what)) {
    DeliverTerminate(*terminate);
  }
}

void PropertyWorld::DeliverCreate(const model::CreateNodeRequest& create) {
  const std::string& name = create.request->meta.name;
  if (requests_.contains(name))
    return hook_->OnCreateResult(name, absl::AlreadyExistsError(""), now_);
  if (Fault(5)) return hook_->OnCreateResult(name, absl::PermissionDeniedError(""), now_);
  if (Fault(3)) return hook_->OnCreateResult(name, absl::UnavailableError(""), now_);
  model::NodeRequest request = create.request;
  request.meta.uid = absl::StrCat("r", ++uids_);
  request.meta.creation = now_;
  requests_[name] = request;
  if (const auto set = LaunchSetOf(request)) written_[set->id].insert(name);
  hook_->OnCreateResult(name, Fault(5) ? absl::UnavailableError("") : absl::OkStatus(), now_);
}

void PropertyWorld::DeliverStatus(const model::UpdateNodeRequestStatus& update) {
  auto it = requests_.find(update.request->meta.name);
  const auto answer = [&](const absl::Status& status) {
    if (!Fault(10)) hook_->OnStatusResult(update.request, status, now_);
  };
  if (it == requests_.end() || it->second.meta.uid != update.request->meta.uid) {
    return answer(absl::FailedPreconditionError("another object"));
  }
  if (Fault(10)) return answer(absl::PermissionDeniedError("refused"));
  if (Fault(10)) return;
  it->second = update.request;
  answer(Fault(5) ? absl::UnavailableError("done all the same") : absl::OkStatus());
}

void PropertyWorld::DeliverDelete(const model::DeleteNodeRequest& erase) {
  auto it = requests_.find(erase.name);
  const auto answer = [&](const absl::Status& status) {
    if (!Fault(10)) hook_->OnDeleteResult(erase.name, erase.uid, status, now_);
  };
  if (it == requests_.end() || it->second.meta.uid != erase.uid) {
    return answer(absl::FailedPreconditionError("another object"));
  }
  if (Fault(10)) return answer(absl::PermissionDeniedError("refused"));
  EXPECT_FALSE(machines_.contains(erase.name)) << "forgot a machine that costs money";
  requests_.erase(it);
  answer(Fault(5) ? absl::UnavailableError("done all the same") : absl::OkStatus());
}

void PropertyWorld::DeliverTaint(const model::SetNodeTaint& taint) {
  auto it = nodes_.find(taint.node);
  const auto answer = [&](const absl::Status& status) {
    if (!Fault(10)) hook_->OnTaintResult(taint.uid, taint.present, status, now_);
  };
  if (it == nodes_.end() || it->second.uid != taint.uid) {
    return answer(absl::NotFoundError("no such node"));
  }
  if (Fault(10)) return answer(absl::PermissionDeniedError("refused"));
  it->second.tainted = taint.present;
  answer(Fault(5) ? absl::UnavailableError("done all the same") : absl::OkStatus());
}

void PropertyWorld::DeliverTerminate(const model::TerminateNode& terminate) {
  const std::string& name = terminate.request_name;
  if (Fault(5)) {
    return hook_->OnProviderResult(CallOf(name, false), absl::InternalError("x"), now_);
  }
  // No machine is ended because of a decision that a restart would lose.
  const Phase phase = requests_.contains(name) ? requests_.at(name).phase : Phase::kGone;
  EXPECT_TRUE(phase == Phase::kFailed || phase == Phase::kDraining || phase == Phase::kGone)
      << name << " is terminated in phase " << static_cast<int>(phase);
  // I7, checked again at the machine itself.
  for (const auto& [job_name, job] : jobs_) {
    EXPECT_FALSE(job.bound.contains(name)) << "killed a pod of " << job_name;
  }
  KillMachine(name);
  ++removed;
  if (!Fault(10)) hook_->OnProviderResult(CallOf(name, false), absl::OkStatus(), now_);
}

ProviderCall PropertyWorld::CallOf(const std::string& name, bool launch) const {
  const auto request = requests_.find(name);
  return {name, request == requests_.end() ? "" : request->second.meta.uid, "", launch};
}

// The list is as slow as writes are.
void PropertyWorld::DeliverList() {
  if (list_ == 0 || now_ < list_at_) return;
  const uint64_t number = std::exchange(list_, 0);
  if (Fault(5)) return;
  if (Fault(10)) {
    return hook_->OnNodesListed(number, absl::PermissionDeniedError("no"), {}, now_);
  }
  std::vector<ListedNode> unseen;
  for (const auto& [name, node] : nodes_) {
    const auto seen = seen_nodes_.find(name);
    if (seen != seen_nodes_.end() && seen->second.uid == node.uid) continue;
    unseen.push_back({name, node.uid, name, ""});
  }
  hook_->OnNodesListed(number, absl::OkStatus(), unseen, now_);
}

void PropertyWorld::DeliverLaunch(const model::LaunchNode& launch) {
  const std::string& name = launch.request->meta.name;
  if (const auto set = LaunchSetOf(launch.request); set.has_value() && set->atomic) {
    ++whole;
    EXPECT_EQ(static_cast<int64_t>(written_[set->id].size()), set->size)
        << "a machine of a gang is ordered before all of its requests were written";
  }
  const auto answer = [&](const absl::Status& status) {
    if (!Fault(8)) hook_->OnProviderResult(CallOf(name, true), status, now_);
  };
  if (!machines_.contains(name)) {
    if (Fault(15)) {
      ++refused;
      return answer(
          FailureStatus(Chance(80) ? FailureClass::kStockout : FailureClass::kQuota, "no"));
    }
    if (Fault(5)) return answer(absl::UnavailableError("not done"));
    machines_[name] = {GpusOf(launch.request), launch.request->price_micro_usd_per_hour,
                       now_ + absl::Seconds(Pick(10, faults_ ? 330 : 100)), false};
  }
  answer(Fault(8) ? absl::UnavailableError("done all the same") : absl::OkStatus());
}

void PropertyWorld::Crash() {
  ++crashes;
  hook_ = std::make_unique<Hook>(options_, &catalog_);
  for (auto& [at, action] : std::exchange(flying_, {})) {
    if (Chance(50)) Deliver(action);
  }
  hook_ = std::make_unique<Hook>(options_, &catalog_);
  list_ = 0;
  shown_.clear();
  withdrawn_.clear();
  unseen_.clear();
  Look();
}

}  // namespace fairlead::hook::testing
