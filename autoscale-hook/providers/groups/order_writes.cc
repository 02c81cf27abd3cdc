// What is written to the groups, and what the answers mean (order_tracker.h has the rules).
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/providers/groups/order_tracker.h"
#include "autoscale-hook/provisioning/failure.h"
#include "base/hash.h"

namespace fairlead::hook {
namespace {

using WriteKind = OrderTracker::Write::Kind;

bool LeavesDoubt(const absl::Status& status) {
  return IsUnknownOutcome(status) || absl::IsDeadlineExceeded(status);
}

// The server has decided not to do it. Errors without a code of their own (Go servers answer most
// errors as Unknown) may come after a part of the work.
bool IsCertainRefusal(const absl::Status& status) {
  const std::optional<FailureClass> failure = ClassifyFailure(status);
  return failure.has_value() && IsRefusal(*failure);
}

// AlreadyExists means success to the hook.
absl::Status OfWrite(const absl::Status& status) {
  const bool without_class = absl::IsAlreadyExists(status) || absl::IsUnknown(status);
  return without_class ? absl::InternalError(status.message()) : status;
}

}  // namespace

std::optional<OrderTracker::Write> OrderTracker::NextWrite(const std::string& group) {
  if (views_ == nullptr) return std::nullopt;
  const auto view = views_->find(group);
  if (view == views_->end() || !view->second.status.ok()) return std::nullopt;
  const Group& state = groups_[group];
  if (state.stopped || state.doubt.has_value()) return std::nullopt;
  // What needs the target size as it was read comes first: a deletion that failed may have changed
  // it.
  if (auto write = NextIncrease(group, view->second)) return write;
  if (auto write = NextDecrease(group, view->second)) return write;
  if (auto write = NextEnd(group, view->second)) return write;
  return NextDelete(group, view->second);
}

std::optional<OrderTracker::Write> OrderTracker::NextEnd(const std::string& id,
                                                         const GroupView& view) {
  Group& group = groups_[id];
  for (auto it = ends_.begin(); it != ends_.end();) {
    const std::string& instance = it->first;
    End& end = it->second;
    const auto listed = view.instances.find(instance);
    if (end.group != id || end.accepted || end.tried == round_ || listed == view.instances.end()) {
      ++it;
      continue;
    }
    if (listed->second.state == InstanceState::kDeleting || group.removed.contains(instance)) {
      end.accepted = true;
      ++it;
      continue;
    }
    if (group.target <= view.group.min_size) {
      AnswerEnd(end, absl::FailedPreconditionError(absl::StrCat(
                         "group ", id, " is at its minimum of ", view.group.min_size)));
      it = ends_.erase(it);
      continue;
    }
    end.tried = round_;
    Write write{WriteKind::kDelete, id, 0, {instance, end.node_name}, {}};
    const auto order = group.order_of.find(instance);
    if (order != group.order_of.end()) write.orders = {order->second};
    return write;
  }
  return std::nullopt;
}

// Machines that cannot be created, and places whose order is to end.
std::optional<OrderTracker::Write> OrderTracker::NextDelete(const std::string& id,
                                                            const GroupView& view) {
  for (Order* order : OrdersOf(id, Stage::kAssigned)) {
    const bool unwanted = !order->error.ok() || (order->placeholder && !order->ends.empty());
    if (!unwanted || order->tried == round_ || !view.instances.contains(order->instance)) continue;
    if (groups_[id].removed.contains(order->instance) || ends_.contains(order->instance)) continue;
    order->tried = round_;
    return Write{WriteKind::kDelete, id, 0, {order->instance, ""}, {order->name}};
  }
  return std::nullopt;
}

std::optional<OrderTracker::Write> OrderTracker::NextDecrease(const std::string& id,
                                                              const GroupView& view) {
  Group& group = groups_[id];
  // Those that are asked about now come first. Others were told to end before, and a group that
  // gives no single place back may give back all.
  std::vector<std::string> names, before;
  for (const Order* order : OrdersOf(id, Stage::kAccepted)) {
    if (order->ending) (order->ends.empty() ? before : names).push_back(order->name);
  }
  if (!names.empty()) names.insert(names.end(), before.begin(), before.end());
  const int64_t wanted = static_cast<int64_t>(names.size()) + group.lost;
  if (wanted == 0 || group.decreased == round_) return std::nullopt;
  const int64_t delta = std::min(wanted, SparePlaces(id, view));
  if (delta <= 0) {
    group.lost = 0;
    return std::nullopt;
  }
  group.decreased = round_;
  if (names.size() > static_cast<size_t>(delta)) names.resize(static_cast<size_t>(delta));
  return Write{WriteKind::kDecrease, id, delta, {}, std::move(names)};
}

// A set that is of no use in part is refused whole.
void OrderTracker::RefuseBeyond(const std::string& id, const GroupView& view,
                                std::vector<Order*>& orders) {
  int64_t room = std::max<int64_t>(0, view.group.max_size - groups_[id].target);
  const auto set_of = [](const Order* order) {
    return order->whole.empty() ? order->name : order->whole;
  };
  std::map<std::string, int64_t> sizes;
  for (const Order* order : orders) ++sizes[set_of(order)];
  std::map<std::string, bool> taken;  // by set
  std::vector<Order*> kept;
  for (Order* order : orders) {
    const int64_t size = sizes[set_of(order)];
    const auto [place, first] = taken.try_emplace(set_of(order), size <= room);
    if (first && place->second) room -= size;
    if (place->second) {
      kept.push_back(order);
      continue;
    }
    Refuse(std::string(order->name),
           absl::ResourceExhaustedError(
               size == 1
                   ? absl::StrCat("group ", id, " is at its maximum of ", view.group.max_size)
                   : absl::StrCat("group ", id, ": ", size, " machines are ordered together ",
                                  "and would take it over its maximum of ", view.group.max_size)));
  }
  orders = std::move(kept);
}

// Leaves the first one, and the others of its atomic set.
void OrderTracker::KeepOneSet(std::vector<Order*>& orders) {
  const std::string set = orders.front()->whole;
  if (set.empty()) {
    orders.resize(1);
  } else {
    std::erase_if(orders, [&](const Order* order) { return order->whole != set; });
  }
}

Increase OrderTracker::IncreaseOf(const Write& write) const {
  Increase increase;
  increase.delta = write.delta;
  for (const std::string& name : write.orders) {
    increase.requests.push_back({name, orders_.at(name).uid});
  }
  std::sort(increase.requests.begin(), increase.requests.end(),
            [](const Increase::For& a, const Increase::For& b) { return a.name < b.name; });
  StableHash hash;
  hash.Add(write.group);
  for (const Increase::For& request : increase.requests) hash.Add(request.name).Add(request.uid);
  increase.token = hash.Hex();
  return increase;
}

std::optional<OrderTracker::Write> OrderTracker::NextIncrease(const std::string& id,
                                                              const GroupView& view) {
  std::vector<Order*> due = OrdersOf(id, Stage::kNew);
  std::erase_if(due, [](const Order* order) { return !order->observed || order->ending; });
  RefuseBeyond(id, view, due);
  if (due.empty()) return std::nullopt;
  if (by_set_) KeepOneSet(due);
  Write write{WriteKind::kIncrease, id, static_cast<int64_t>(due.size()), {}, {}};
  for (Order* order : due) {
    order->stage = Stage::kSent;
    write.orders.push_back(order->name);
  }
  return write;
}

uint64_t OrderTracker::Written(const Write& write, const absl::Status& status) {
  // Of an end, other errors too: it may be asked for again before the next list.
  const bool is_end = write.kind == WriteKind::kDelete && ends_.contains(write.node.provider_id);
  if (LeavesDoubt(status) || (is_end && !status.ok() && !IsCertainRefusal(status))) {
    groups_[write.group].stopped = true;
  }
  switch (write.kind) {
    case WriteKind::kIncrease:
      return Increased(write, status);
    case WriteKind::kDecrease:
      Decreased(write, status);
      return 0;
    case WriteKind::kDelete:
      Deleted(write, status);
      return 0;
  }
  return 0;
}

void OrderTracker::Deleted(const Write& write, const absl::Status& status) {
  const std::string& instance = write.node.provider_id;
  Group& group = groups_[write.group];
  const auto end = ends_.find(instance);
  const auto order = write.orders.empty() ? orders_.end() : orders_.find(write.orders.front());
  const std::string problem = absl::StrCat("delete\n", instance);
  if (!status.ok()) {
    if (end != ends_.end()) {
      AnswerEnd(end->second, OfWrite(status));
      ends_.erase(end);
    } else if (order != orders_.end()) {
      AnswerEnds(order->second, OfWrite(status));
      outbox_->Problem(
          problem,
          absl::Status(status.code(), absl::StrCat("group ", write.group, ": instance ", instance,
                                                   " cannot be created, and its "
                                                   "deletion failed: ",
                                                   status.message())));
    }
    return;
  }
  outbox_->Solved(problem);
  group.removed.insert(instance);
  --group.target;
  if (end != ends_.end()) {
    end->second.accepted = true;
    end->second.lists_since = 0;
    if (order != orders_.end() && HasMachine(order->second)) {
      Report(order->second, MachineState::kEnding);
    }
  } else if (order != orders_.end()) {
    const std::string name = order->first;
    if (!order->second.error.ok()) Report(order->second, MachineState::kGone, order->second.error);
    Drop(name);
  }
}

void OrderTracker::Decreased(const Write& write, const absl::Status& status) {
  Group& group = groups_[write.group];
  if (status.ok()) {
    group.target -= write.delta;
    group.lost -= write.delta - static_cast<int64_t>(write.orders.size());
    for (const std::string& name : write.orders) Drop(name);
    return;
  }
  for (const std::string& name : write.orders) {
    const auto order = orders_.find(name);
    if (order != orders_.end()) AnswerEnds(order->second, OfWrite(status));
  }
  if (group.lost > 0) {
    outbox_->Problem(
        absl::StrCat("lost\n", write.group),
        absl::Status(status.code(),
                     absl::StrCat("group ", write.group, ": places of lost machines: ", group.lost,
                                  "; lower its target size: ", status.message())));
    group.lost = 0;
  }
}

uint64_t OrderTracker::Increased(const Write& write, const absl::Status& status) {
  Group& group = groups_[write.group];
  if (status.ok()) {
    group.target += write.delta;
    for (const std::string& name : write.orders) {
      if (const auto order = orders_.find(name); order != orders_.end()) Accept(order->second);
    }
    return 0;
  }
  if (IsCertainRefusal(status)) {
    for (const std::string& name : write.orders) Refuse(name, OfWrite(status));
    return 0;
  }
  group.doubt = Doubt{++last_doubt_, group.target,    write.delta,
                      write.orders,  OfWrite(status), !LeavesDoubt(status)};
  return last_doubt_;
}

void OrderTracker::DoubtIsOver(const std::string& group, uint64_t number) {
  const auto place = groups_.find(group);
  if (place == groups_.end() || !place->second.doubt.has_value()) return;
  if (place->second.doubt->number == number) place->second.doubt->one_read_decides = true;
}

}  // namespace fairlead::hook
