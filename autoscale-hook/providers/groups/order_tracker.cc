#include "autoscale-hook/providers/groups/order_tracker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/machines/launch_set.h"
#include "autoscale-hook/provisioning/failure.h"

namespace fairlead::hook {

void OrderTracker::Launch(LaunchOrder order) {
  const model::NodeRequest& request = *order.launch.request;
  const auto [place, added] = orders_.try_emplace(request.meta.name);
  Order& kept = place->second;
  if (!added && kept.uid != request.meta.uid) {
    return outbox_->Answer(std::move(order.answer),
                           absl::UnavailableError(absl::StrCat("the former machine of NodeRequest ",
                                                               kept.name, " has not ended yet")));
  }
  kept.launches.push_back(std::move(order.answer));
  if (added) {
    kept.name = request.meta.name;
    kept.uid = request.meta.uid;
    kept.group = request.instance_type;
    if (const auto set = LaunchSetOf(request); set.has_value() && set->atomic) kept.whole = set->id;
    kept.number = ++last_number_;
    kept.launched_before = request.phase != model::NodeRequestPhase::kPending;
    if (!request.provider_id.empty()) {
      kept.has_place = true;
      claimed_.insert(request.provider_id);
      Assign(kept, request.provider_id, false);
    } else if (kept.launched_before) {
      Accept(kept);
    }
  }
  if ((kept.ending && !HasMachine(kept)) || ends_.contains(kept.instance)) {
    return AnswerLaunches(kept, absl::UnavailableError("the machine is being ended"));
  }
  if (kept.stage == Stage::kAccepted) AnswerLaunches(kept, absl::OkStatus());
  if (kept.stage == Stage::kAssigned) {
    AnswerLaunches(kept, {absl::OkStatus(), HasMachine(kept) ? kept.instance : std::string()});
  }
}

void OrderTracker::Terminate(const model::TerminateNode& terminate, ProviderDone answer) {
  if (!terminate.provider_id.empty()) {
    for (auto& [id, group] : groups_) {
      TakeBackGuess(group, terminate.provider_id, terminate.request_name);
    }
    claimed_.insert(terminate.provider_id);
    End& end = ends_[terminate.provider_id];
    end.request = terminate.request_name;
    end.node_name = terminate.node_name;
    end.answers.push_back(std::move(answer));
    const auto order = orders_.find(terminate.request_name);
    if (end.group.empty() && order != orders_.end() &&
        order->second.instance == terminate.provider_id) {
      end.group = order->second.group;
    }
    return;
  }
  const auto place = orders_.find(terminate.request_name);
  if (place == orders_.end()) return outbox_->Answer(std::move(answer), absl::OkStatus());
  Order& order = place->second;
  order.ends.push_back(std::move(answer));
  order.ending = true;
  if (HasMachine(order)) AnswerEndWithMachine(order);
}

void OrderTracker::ReportAll() {
  for (auto& [name, order] : orders_) {
    if (order.stage == Stage::kAccepted) Report(order, MachineState::kStarting);
    if (order.stage == Stage::kAssigned && order.told.has_value()) Report(order, *order.told);
  }
}

bool OrderTracker::open() const {
  if (!ends_.empty()) return true;
  return std::any_of(orders_.begin(), orders_.end(), [this](const auto& entry) {
    const Order& order = entry.second;
    return !HasMachine(order) || order.creating || order.told == MachineState::kEnding ||
           !order.told.has_value();
  });
}

bool OrderTracker::HasMachine(const Order& order) const {
  return order.stage == Stage::kAssigned && !order.placeholder;
}

// What was guessed (rule 2) gives way to what a request has recorded: the order waits again.
void OrderTracker::TakeBackGuess(Group& group, const std::string& instance,
                                 const std::string& request) {
  const auto holder = group.order_of.find(instance);
  if (holder == group.order_of.end() || holder->second == request) return;
  Order& other = orders_.at(holder->second);
  Unassign(other);
  outbox_->Problem(
      absl::StrCat("shared\n", instance),
      absl::InternalError(absl::StrCat("machine ", instance, " was taken for that of NodeRequest ",
                                       other.name, ", and is that of ", request)));
}

void OrderTracker::Assign(Order& order, const std::string& instance, bool placeholder) {
  Group& group = groups_[order.group];
  TakeBackGuess(group, instance, order.name);
  order.stage = Stage::kAssigned;
  order.instance = instance;
  order.placeholder = placeholder;
  order.missing = 0;
  group.order_of[instance] = order.name;
}

void OrderTracker::Unassign(Order& order) {
  groups_[order.group].order_of.erase(order.instance);
  order.instance.clear();
  order.placeholder = false;
  order.creating = order.ran = false;
  order.missing = 0;
  order.error = absl::OkStatus();
  order.told.reset();
  // An order that took an instance in the place of an increase has none to wait for.
  order.stage = order.has_place ? Stage::kAccepted : Stage::kNew;
}

void OrderTracker::Report(Order& order, MachineState state, const absl::Status& why) {
  order.told = state;
  outbox_->Report({outbox_->words().provider, order.name, order.uid,
                   HasMachine(order) ? order.instance : std::string(), state, why});
}

void OrderTracker::AnswerLaunches(Order& order, const ProviderAnswer& answer) {
  order.told_ok = order.told_ok || (answer.status.ok() && !order.launches.empty());
  for (ProviderDone& done : order.launches) outbox_->Answer(std::move(done), answer);
  order.launches.clear();
}

void OrderTracker::AnswerEnds(Order& order, const ProviderAnswer& answer) {
  for (ProviderDone& done : order.ends) outbox_->Answer(std::move(done), answer);
  order.ends.clear();
}

void OrderTracker::AnswerEndWithMachine(Order& order) {
  const absl::Status status = absl::FailedPreconditionError(
      absl::StrCat("machine ", order.instance, " may run pods: its node has no label of Fairlead"));
  AnswerEnds(order, {status, order.instance});
}

void OrderTracker::Accept(Order& order) {
  order.stage = Stage::kAccepted;
  order.has_place = true;
  AnswerLaunches(order, absl::OkStatus());
}

// No machine of it exists: nothing was written for it, or that was refused.
void OrderTracker::Refuse(const std::string& name, const absl::Status& status) {
  const auto order = orders_.find(name);
  if (order == orders_.end()) return;
  if (order->second.told_ok) {  // rule 2, taken back
    Report(order->second, MachineState::kGone,
           IsUnknownOutcome(status) ? absl::InternalError(status.message()) : status);
  }
  AnswerLaunches(order->second, status);
  Drop(name);
}

// It has no machine any more.
void OrderTracker::Drop(const std::string& name) {
  const auto place = orders_.find(name);
  if (place == orders_.end()) return;
  Order& order = place->second;
  AnswerLaunches(order, absl::CancelledError("the order was taken back"));
  AnswerEnds(order, absl::OkStatus());
  if (order.stage == Stage::kAssigned) groups_[order.group].order_of.erase(order.instance);
  orders_.erase(place);
}

// In the order in which they came.
std::vector<OrderTracker::Order*> OrderTracker::OrdersOf(const std::string& group, Stage stage) {
  std::vector<Order*> found;
  for (auto& [name, order] : orders_) {
    if (order.group == group && order.stage == stage) found.push_back(&order);
  }
  std::sort(found.begin(), found.end(),
            [](const Order* a, const Order* b) { return a->number < b->number; });
  return found;
}

}  // namespace fairlead::hook
