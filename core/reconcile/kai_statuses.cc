#include "core/reconcile/kai_statuses.h"

#include <algorithm>
#include <utility>

namespace fairlead::core {

KaiStatuses::Status KaiStatuses::Normal(model::KaiCounts counts,
                                        std::vector<std::string> children) {
  for (model::ResourceList* list :
       {&counts.allocated, &counts.allocated_non_preemptible, &counts.requested}) {
    std::erase_if(*list, [](const auto& entry) { return entry.second == 0; });
    std::sort(list->begin(), list->end());
  }
  std::sort(children.begin(), children.end());
  return {std::move(counts), std::move(children)};
}

void KaiStatuses::Table::Enqueue(const std::string& key) {
  const auto found = rows.find(key);
  if (found == rows.end() || std::exchange(found->second.in_line, true)) return;
  line.push_back(key);
}

void KaiStatuses::Show(Table& table, const model::ObjectMeta& meta, const std::string& key,
                       Status status) {
  Row& row = table.rows[key];
  if (row.uid != meta.uid) {
    row.status.Restart();
    row.ns = meta.ns;
    row.name = meta.name;
    row.uid = meta.uid;
  }
  row.status.Show(std::move(status));
  table.Enqueue(key);
}

void KaiStatuses::Gone(Table& table, absl::string_view key, absl::string_view uid) {
  const auto found = table.rows.find(key);
  if (found == table.rows.end() || (!uid.empty() && found->second.uid != uid)) return;
  if (found->second.in_line) std::erase(table.line, found->first);
  table.rows.erase(found);
}

void KaiStatuses::Seen(const model::Queue& queue) {
  counter_.QueueSeen(queue.meta.name, queue.parent);
  Show(queues_, queue.meta, queue.meta.name,
       Normal(queue.status.value_or(model::KaiCounts()), queue.child_queues));
}

void KaiStatuses::Seen(const model::PodGroup& group) {
  Show(groups_, group.meta, model::Key(group.meta), Normal(group.resources_status, {}));
}

void KaiStatuses::QueueGone(absl::string_view name, absl::string_view uid) {
  Gone(queues_, name, uid);
  if (!queues_.rows.contains(name)) counter_.QueueGone(std::string(name));
}

void KaiStatuses::GroupGone(absl::string_view ns, absl::string_view name, absl::string_view uid) {
  Gone(groups_, model::Key(ns, name), uid);
}

KaiStatuses::Status KaiStatuses::Desired(model::Kind kind, const Row& row) const {
  if (kind == model::Kind::kQueue) {
    return {counter_.OfQueue(row.name), counter_.ChildrenOf(row.name)};
  }
  return {counter_.OfGroup(row.ns, row.name), {}};
}

void KaiStatuses::Answered(model::Kind kind, absl::string_view object, absl::string_view uid,
                           const absl::Status& status, absl::Time now) {
  Table& table = TableOf(kind);
  const auto found = table.rows.find(object);
  if (found == table.rows.end() || found->second.uid != uid) return;
  ConditionWrite<Status>& write = found->second.status;
  write.Answered(status, now, rules_);
  table.later.Add(status.ok() ? now : write.due(), found->first);
  wake_at_ = std::min(wake_at_, table.later.next());
}

std::optional<model::Action> KaiStatuses::Next(Table& table, absl::Time now) {
  while (!table.line.empty()) {
    const std::string key = std::move(table.line.front());
    table.line.pop_front();
    const auto found = table.rows.find(key);
    if (found == table.rows.end()) continue;
    Row& row = found->second;
    row.in_line = false;
    Status desired = Desired(table.kind, row);
    absl::Time due = absl::InfiniteFuture();
    if (!row.status.Take(desired, now, rules_, due)) {
      // While an attempt is in flight its answer brings the row back.
      if (due != absl::InfiniteFuture()) table.later.Add(due, key);
      continue;
    }
    return model::Action{
        0, model::SetKaiStatus{table.kind, row.ns, row.name, row.uid, std::move(desired.counts),
                               std::move(desired.children)}};
  }
  return std::nullopt;
}

void KaiStatuses::Step(absl::Time now, std::vector<model::Action>& actions) {
  if (counter_.Due() && now >= count_at_) {
    const KaiCounter::Changed changed = counter_.Count();
    for (const std::string& queue : changed.queues) queues_.Enqueue(queue);
    for (const std::string& group : changed.groups) groups_.Enqueue(group);
    count_at_ = now + kCountEvery;
  }
  for (Table* table : {&queues_, &groups_}) {
    for (const std::string& key : table->later.TakeDue(now)) table->Enqueue(key);
  }
  while (queued() > 0 && now >= write_at_) {
    groups_turn_ = !groups_turn_;
    std::optional<model::Action> write = Next(groups_turn_ ? groups_ : queues_, now);
    if (!write.has_value()) write = Next(groups_turn_ ? queues_ : groups_, now);
    if (!write.has_value()) break;
    actions.push_back(*std::move(write));
    write_at_ = now + kWriteEvery;
  }
  wake_at_ = std::min(queues_.later.next(), groups_.later.next());
  if (counter_.Due()) wake_at_ = std::min(wake_at_, count_at_);
  if (queued() > 0) wake_at_ = std::min(wake_at_, write_at_);
}

}  // namespace fairlead::core
