// What lists of instances mean for the orders (order_tracker.h has the rules).
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/providers/groups/order_tracker.h"
#include "autoscale-hook/provisioning/failure.h"

namespace fairlead::hook {
namespace {

// Lists in a row without an instance, after which it is gone: if it was to end, and if it was not.
constexpr int kListsUntilGone = 2;
constexpr int kListsUntilLost = 3;
// Lists that still have an instance after its deletion was accepted; then it is asked for again.
// Servers lower the target size with every deletion, so that is not done lightly.
constexpr uint64_t kListsUntilAgain = 300;
// Ids that were there once are kept this far beyond those that are there: an id that a list leaves
// out once is not new in the next one.
constexpr size_t kFormerIds = 100'000;

// A failed read has changed nothing: unless the server refuses for good, it is tried again.
absl::Status OfRead(const absl::Status& status) {
  if (ClassifyFailure(status) == FailureClass::kAuth || absl::IsNotFound(status) ||
      absl::IsUnimplemented(status)) {
    return status;
  }
  return absl::UnavailableError(status.message());
}

absl::Status ErrorOf(const std::string& group, const CloudInstance& instance) {
  if (instance.error_code.empty()) return absl::OkStatus();
  if (instance.state != InstanceState::kCreating && !instance.placeholder) {
    return absl::OkStatus();
  }
  const std::string text =
      absl::StrCat("group ", group, ": ", instance.error_code, ": ", instance.error_message);
  if (instance.failure.has_value()) return FailureStatus(*instance.failure, text);
  return instance.error_class == kOutOfResources ? absl::ResourceExhaustedError(text)
                                                 : absl::InternalError(text);
}

}  // namespace

void OrderTracker::Observe(const GroupViews& views) {
  views_ = &views;
  ++round_;
  std::set<std::string> without_view;
  for (const auto& [name, order] : orders_) {
    if (!views.contains(order.group)) without_view.insert(order.group);
  }
  for (const auto& [id, view] : views) {
    if (view.status.ok()) {
      ObserveGroup(id, view);
    } else {
      NotRead(id, view.status);
    }
  }
  for (const std::string& id : without_view) {
    NotRead(id, absl::NotFoundError(absl::StrCat("group ", id, ": ", outbox_->words().source,
                                                 " has no such group")));
  }
  ObserveEnds(views);
}

void OrderTracker::ObserveGroup(const std::string& id, const GroupView& view) {
  Group& group = groups_[id];
  group.target = view.target;
  group.stopped = false;
  std::erase_if(group.removed,
                [&](const std::string& gone) { return !view.instances.contains(gone); });
  SettleDoubt(group);
  if (!group.seen) {
    for (const auto& [instance, unused] : view.instances) group.first.insert(instance);
    group.known = group.first;
    group.seen = true;
  }
  FollowRenamed(id, view);
  FollowInstances(id, view);
  AssignNew(id, view);
  SettleEndsOfOrders(id, view);
  if (group.doubt.has_value()) return;  // new ids may be those of its orders
  for (const auto& [instance, unused] : view.instances) group.known.insert(instance);
  if (group.known.size() > view.instances.size() + kFormerIds) {
    std::erase_if(group.known,
                  [&](const std::string& former) { return !view.instances.contains(former); });
  }
}

void OrderTracker::SettleDoubt(Group& group) {
  if (!group.doubt.has_value()) return;
  const int64_t done =
      std::clamp<int64_t>(group.target - group.doubt->before, 0, group.doubt->delta);
  if (done < group.doubt->delta && !group.doubt->one_read_decides) return;
  const Doubt doubt = *std::exchange(group.doubt, std::nullopt);
  std::vector<std::string> names = doubt.orders;
  std::erase_if(names, [this](const std::string& name) { return !orders_.contains(name); });
  std::stable_partition(names.begin(), names.end(),
                        [this](const std::string& name) { return !orders_.at(name).ending; });
  for (size_t i = 0; i < names.size(); ++i) {
    if (i < static_cast<size_t>(done)) {
      Accept(orders_.at(names[i]));
    } else {
      Refuse(names[i], doubt.status);
    }
  }
}

// Placeholders whose machines have ids now, and are therefore not new.
void OrderTracker::FollowRenamed(const std::string& id, const GroupView& view) {
  Group& group = groups_[id];
  for (const auto& [name, instance] : view.instances) {
    const std::string& former = instance.former_id;
    if (former.empty() || former == name || view.instances.contains(former)) continue;
    if (group.known.contains(former)) group.known.insert(name);
    if (group.first.contains(former)) group.first.insert(name);
    const auto holder = group.order_of.find(former);
    if (holder == group.order_of.end() || group.order_of.contains(name) || ends_.contains(name)) {
      continue;
    }
    Order& order = orders_.at(holder->second);
    group.order_of.erase(holder);
    Assign(order, name, instance.placeholder);
    order.told.reset();  // the id is told
  }
}

void OrderTracker::FollowInstances(const std::string& id, const GroupView& view) {
  const std::map<std::string, std::string> order_of = groups_[id].order_of;
  for (const auto& [instance, name] : order_of) {
    const auto listed = view.instances.find(instance);
    if (listed != view.instances.end()) {
      FollowInstance(orders_.at(name), listed->second);
    } else {
      Miss(name, view);
    }
  }
}

void OrderTracker::FollowInstance(Order& order, const CloudInstance& instance) {
  const bool placeholder = instance.placeholder;
  order.placeholder = placeholder;
  const bool ends = groups_[order.group].removed.contains(instance.id);
  order.missing = 0;
  order.creating = placeholder || instance.state == InstanceState::kCreating;
  order.error = ErrorOf(order.group, instance);
  order.ran = order.ran || (instance.state == InstanceState::kRunning && !placeholder);
  MachineState state = MachineState::kStarting;
  if (ends || instance.state == InstanceState::kDeleting) {
    state = MachineState::kEnding;
  } else if (instance.state == InstanceState::kRunning && !placeholder) {
    state = MachineState::kRunning;
  } else if (order.told == MachineState::kRunning) {
    return;  // a server without states says nothing by that
  }
  if (order.told != state) Report(order, state);
}

// The instance of the order is not in the list.
void OrderTracker::Miss(const std::string& name, const GroupView& view) {
  Order& order = orders_.at(name);
  if (ends_.contains(order.instance)) return;  // ObserveEnd counts
  if (!order.error.ok()) {
    Report(order, MachineState::kGone, order.error);
    return Drop(name);
  }
  if (order.placeholder) return Unassign(order);
  if (++order.missing < kListsUntilLost) return;
  Group& group = groups_[order.group];
  const auto waiting = static_cast<int64_t>(OrdersOf(order.group, Stage::kAccepted).size());
  const bool told_to_end = order.told == MachineState::kEnding;
  if (!told_to_end && OpenPlaces(order.group, view) > waiting + group.lost) ++group.lost;
  const absl::string_view what = told_to_end ? " was deleted before it ran" : " is no longer there";
  Report(order, MachineState::kGone,
         told_to_end && order.ran
             ? absl::OkStatus()
             : absl::InternalError(
                   absl::StrCat("group ", order.group, ": instance ", order.instance, what)));
  Drop(name);
}

void OrderTracker::AssignNew(const std::string& id, const GroupView& view) {
  Group& group = groups_[id];
  std::vector<Order*> waiting = OrdersOf(id, Stage::kAccepted);
  std::stable_partition(waiting.begin(), waiting.end(),
                        [](const Order* order) { return !order->ending; });
  std::vector<Order*> in_doubt;
  for (Order* order : OrdersOf(id, Stage::kNew)) {
    if (!order->observed && !order->ending) in_doubt.push_back(order);
    order->observed = true;
  }
  for (const auto& [name, instance] : view.instances) {
    if (waiting.empty() && in_doubt.empty()) return;
    if (group.order_of.contains(name) || group.removed.contains(name) || ends_.contains(name) ||
        instance.state == InstanceState::kDeleting) {
      continue;
    }
    const bool is_new = !group.known.contains(name);
    const bool creating = (instance.state == InstanceState::kCreating || instance.placeholder) &&
                          instance.error_code.empty() && !claimed_.contains(name);
    const bool ordered = instance.ordered && !claimed_.contains(name);
    auto taker = std::find_if(waiting.begin(), waiting.end(), [&](const Order* order) {
      return is_new || ordered || (order->launched_before && creating);
    });
    std::vector<Order*>* from = &waiting;
    if (taker == waiting.end()) {
      if (!(creating || ordered) || !group.first.contains(name) || in_doubt.empty()) continue;
      from = &in_doubt;
      taker = in_doubt.begin();
    }
    Order& order = **taker;
    from->erase(taker);
    Assign(order, name, instance.placeholder);
    AnswerLaunches(order, {absl::OkStatus(), HasMachine(order) ? name : std::string()});
    FollowInstance(order, instance);
  }
}

// A Terminate without an id.
void OrderTracker::SettleEndsOfOrders(const std::string& id, const GroupView& view) {
  for (Order* order : OrdersOf(id, Stage::kNew)) {
    if (order->ending) Drop(std::string(order->name));
  }
  for (Order* order : OrdersOf(id, Stage::kAssigned)) {
    if (HasMachine(*order) && !order->ends.empty()) AnswerEndWithMachine(*order);
  }
  const bool has_place = SparePlaces(id, view) > 0;
  for (Order* order : OrdersOf(id, Stage::kAccepted)) {
    if (has_place || !order->ending) {
      order->without_place = 0;
    } else if (++order->without_place >= kListsUntilGone) {
      Drop(std::string(order->name));  // others have lowered the target size
    }
  }
}

// Its sizes and instances are unknown in this round.
void OrderTracker::NotRead(const std::string& id, const absl::Status& status) {
  const absl::Status answer = OfRead(status);
  for (Order* order : OrdersOf(id, Stage::kNew)) {
    if (!order->told_ok || absl::IsNotFound(status)) {
      Refuse(std::string(order->name), answer);
    } else {
      AnswerEnds(*order, answer);  // rule 2, taken back: it waits
    }
  }
  for (Order* order : OrdersOf(id, Stage::kSent)) {
    AnswerLaunches(*order, absl::UnavailableError(absl::StrCat(
                               "the outcome of the increase is unknown: ", status.message())));
    AnswerEnds(*order, answer);
  }
  for (Order* order : OrdersOf(id, Stage::kAccepted)) AnswerEnds(*order, answer);
  for (Order* order : OrdersOf(id, Stage::kAssigned)) AnswerEnds(*order, answer);
}

void OrderTracker::ReadFailed(const absl::Status& status) {
  views_ = nullptr;
  std::set<std::string> groups;
  for (const auto& [name, order] : orders_) groups.insert(order.group);
  for (const std::string& group : groups) NotRead(group, status);
  for (auto it = ends_.begin(); it != ends_.end();) {
    AnswerEnd(it->second, OfRead(status));
    it = it->second.accepted ? std::next(it) : ends_.erase(it);
  }
}

void OrderTracker::AnswerEnd(End& end, const absl::Status& status) {
  for (ProviderDone& done : end.answers) outbox_->Answer(std::move(done), status);
  end.answers.clear();
}

void OrderTracker::ObserveEnds(const GroupViews& views) {
  for (auto it = ends_.begin(); it != ends_.end();) {
    it = ObserveEnd(it->first, it->second, views) ? ends_.erase(it) : std::next(it);
  }
}

// True if it is over.
bool OrderTracker::ObserveEnd(const std::string& id, End& end, const GroupViews& views) {
  const auto unread = [&](const absl::Status& status) {
    AnswerEnd(end, OfRead(status));
    return !end.accepted;
  };
  for (const auto& [group, view] : views) {
    if (!view.instances.contains(id)) continue;
    end.group = group;
    if (!view.status.ok()) return unread(view.status);
    end.missing = 0;
    if (end.accepted && ++end.lists_since >= kListsUntilAgain) {
      end.accepted = false;
      groups_[group].removed.erase(id);
    }
    return false;
  }
  if (end.group.empty()) {
    if (views.empty()) {
      return unread(
          absl::UnavailableError(absl::StrCat(outbox_->words().source, " has no groups")));
    }
    for (const auto& [group, view] : views) {
      if (!view.status.ok()) return unread(view.status);
    }
  } else {
    const auto view = views.find(end.group);
    if (view == views.end()) {
      AnswerEnd(end, absl::FailedPreconditionError(absl::StrCat("group ", end.group, " of machine ",
                                                                id, " is no longer served; ",
                                                                outbox_->words().restore)));
      return true;
    }
    if (!view->second.status.ok()) return unread(view->second.status);
  }
  if (++end.missing < kListsUntilGone) return false;
  AnswerEnd(end, absl::OkStatus());
  const auto group = groups_.find(end.group);
  if (group == groups_.end()) return true;
  const auto name = group->second.order_of.find(id);
  if (name == group->second.order_of.end()) return true;
  const std::string order = name->second;
  Report(orders_.at(order), MachineState::kGone);
  Drop(order);
  return true;
}

// Open places that no wanted order waits for. A decrease whose answer was lost has taken its place
// back already: the next one must not take that of another order.
int64_t OrderTracker::SparePlaces(const std::string& id, const GroupView& view) {
  int64_t places = OpenPlaces(id, view);
  for (const Order* order : OrdersOf(id, Stage::kAccepted)) {
    if (!order->ending) --places;
  }
  return places;
}

int64_t OrderTracker::OpenPlaces(const std::string& id, const GroupView& view) const {
  const Group& group = groups_.at(id);
  int64_t places = group.target;
  for (const auto& [name, instance] : view.instances) {
    if (instance.state != InstanceState::kDeleting && !group.removed.contains(name)) --places;
  }
  return places;
}

}  // namespace fairlead::hook
