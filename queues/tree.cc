#include "queues/tree.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "scheduler/model/api_names.h"

namespace fairlead::queues {
namespace {

using model::ResourceIndex;

bool SameDecisions(const model::Queue& a, const model::Queue& b) {
  const auto fields = [](const model::Queue& q) {
    return std::tie(q.meta.name, q.meta.uid, q.meta.creation, q.display_name, q.parent, q.priority,
                    q.gpu, q.cpu, q.memory, q.other, q.preempt_min_runtime, q.reclaim_min_runtime,
                    q.invalid);
  };
  return fields(a) == fields(b);
}

// Returns "" if the numbers can be used.
std::string CheckBounds(absl::string_view field, const model::QueueResource& resource) {
  if (resource.quota < model::kUnlimited) {
    return absl::StrCat("spec.resources.", field, ".quota is negative and not -1");
  }
  if (resource.limit < model::kUnlimited) {
    return absl::StrCat("spec.resources.", field, ".limit is negative and not -1");
  }
  if (resource.lending_limit < model::kUnlimited) {
    return absl::StrCat("spec.resources.", field, ".lendingLimit is negative and not -1");
  }
  return "";
}

Bounds ToBounds(const model::QueueResource& resource) {
  // A negative weight counts as none: KAI accepts it, and it occurs on generated top queues.
  Bounds bounds = {resource.quota, resource.limit,
                   std::max<int64_t>(0, resource.over_quota_weight_micro)};
  if (resource.lending_limit >= 0 && resource.quota > resource.lending_limit) {
    bounds.kept = resource.quota - resource.lending_limit;
    if (resource.limit >= 0) bounds.kept = std::min(bounds.kept, resource.limit);
  }
  return bounds;
}

}  // namespace

QueueTree::QueueTree(model::ResourceNames& names)
    : names_(names), resources_{model::kCpu, model::kMemory, model::kGpu} {}

QueueId QueueTree::IdOf(absl::string_view name) {
  const auto id = static_cast<QueueId>(rows_.size());
  const auto [it, inserted] = ids_.try_emplace(std::string(name), id);
  if (inserted) {
    Row& row = rows_.emplace_back();
    row.queue.meta.name = std::string(name);
    row.declared = declared_.contains(name);
    ++shape_version_;
  }
  return it->second;
}

void QueueTree::Tell(QueueId queue, uint64_t former_shape) {
  ++version_;
  for (QueueObserver* observer : observers_) {
    observer->OnQueueChange(queue, shape_version_ != former_shape);
  }
}

QueueId QueueTree::Upsert(const model::Queue& queue) {
  const uint64_t former_shape = shape_version_;
  const QueueId id = IdOf(queue.meta.name);
  Row& row = rows_[id];
  if (row.exists && SameDecisions(row.queue, queue)) {
    row.queue = queue;
    return id;
  }
  const std::vector<ResourceIndex> resources = resources_;
  // Also if neither of the two parents exists: ChargedTo() knows deleted ones.
  if (row.queue.parent != queue.parent) ++shape_version_;
  if (row.exists) {
    Undeclare(id);
    Detach(id);
    CountExtraResources(row.queue, -1);
    keepers_ -= row.keeps ? 1 : 0;
  }
  const bool made_again = !row.exists;
  row.exists = true;
  if (std::exchange(row.remembered, false)) --remembered_;
  row.queue = queue;
  ReadSpec(row);
  CountExtraResources(queue, 1);
  keepers_ += row.keeps ? 1 : 0;
  if (resources != resources_ || made_again) ++shape_version_;
  Declare(id);
  Attach(id);
  Relink(id);
  Tell(id, former_shape);
  return id;
}

void QueueTree::Remove(absl::string_view name) {
  const auto it = ids_.find(name);
  if (it == ids_.end() || !rows_[it->second].exists) return;
  const QueueId id = it->second;
  const uint64_t former_shape = shape_version_;
  Undeclare(id);
  SetParent(id, std::nullopt);
  Detach(id);
  CountExtraResources(rows_[id].queue, -1);
  ++shape_version_;
  keepers_ -= rows_[id].keeps ? 1 : 0;
  rows_[id].exists = false;
  Relink(id);
  Tell(id, former_shape);
}

bool QueueTree::Remember(absl::string_view name, absl::string_view parent) {
  if (name.empty() || name.size() > model::kLongestName || ids_.contains(name) ||
      remembered_ == kMostRemembered) {
    return false;
  }
  const uint64_t former_shape = shape_version_;
  const QueueId id = IdOf(name);
  rows_[id].queue.parent = std::string(parent);
  rows_[id].remembered = true;
  ++remembered_;
  Tell(id, former_shape);
  return true;
}

void QueueTree::ReadSpec(Row& row) {
  const model::Queue& queue = row.queue;
  row.bounds.assign(model::kGpu + 1, Bounds());
  row.bounds[model::kCpu] = ToBounds(queue.cpu);
  row.bounds[model::kMemory] = ToBounds(queue.memory);
  row.bounds[model::kGpu] = ToBounds(queue.gpu);
  row.invalid = queue.invalid;
  const auto complain = [&row](std::string what) {
    if (row.invalid.empty()) row.invalid = std::move(what);
  };
  complain(CheckBounds("cpu", queue.cpu));
  complain(CheckBounds("memory", queue.memory));
  complain(CheckBounds("gpu", queue.gpu));
  std::vector<ResourceIndex> seen = {model::kCpu, model::kMemory, model::kGpu};
  for (const auto& [name, bounds] : queue.other) {
    const ResourceIndex index = names_.InternForEver(name);
    if (std::find(seen.begin(), seen.end(), index) != seen.end()) {
      complain(absl::StrCat("spec.resources names '", name, "' twice"));
      continue;
    }
    seen.push_back(index);
    complain(CheckBounds(name, bounds));
    if (row.bounds.size() <= index) row.bounds.resize(index + 1);
    row.bounds[index] = ToBounds(bounds);
  }
  row.keeps = std::any_of(row.bounds.begin(), row.bounds.end(),
                          [](const Bounds& bounds) { return bounds.kept > 0; });
}

void QueueTree::CountExtraResources(const model::Queue& queue, int by) {
  for (const auto& [name, bounds] : queue.other) {
    const ResourceIndex index = names_.Intern(name);
    if (index <= model::kGpu) continue;
    int& uses = extra_uses_[index];
    uses += by;
    if (uses == 0) extra_uses_.erase(index);
  }
  resources_.resize(model::kGpu + 1);
  for (const auto& [index, uses] : extra_uses_) resources_.push_back(index);
}

std::optional<QueueId> QueueTree::Find(absl::string_view name) const {
  const std::optional<QueueId> id = FindEver(name);
  return id.has_value() && rows_[*id].exists ? id : std::nullopt;
}

std::optional<QueueId> QueueTree::FindEver(absl::string_view name) const {
  if (found_last_ < rows_.size() && rows_[found_last_].queue.meta.name == name) return found_last_;
  const auto it = ids_.find(name);
  if (it == ids_.end()) return std::nullopt;
  found_last_ = it->second;
  return it->second;
}

std::optional<QueueId> QueueTree::LastParent(QueueId id) const {
  const Row& row = rows_[id];
  if (row.parent.has_value() || row.queue.parent.empty()) return row.parent;
  const std::optional<QueueId> last = FindEver(row.queue.parent);
  // Two queues that exist and are not linked are members of a cycle.
  if (!last.has_value() || (row.exists && rows_[*last].exists)) return std::nullopt;
  return last;
}

// With deleted queues the links may be a cycle: none of its members is charged to another then.
std::optional<QueueId> QueueTree::ChargedTo(QueueId id) const {
  const std::optional<QueueId> last = LastParent(id);
  if (!last.has_value() || rows_[id].parent.has_value()) return last;
  std::optional<QueueId> above = last;
  for (size_t steps = 0; above.has_value() && steps < rows_.size(); ++steps) {
    if (*above == id) return std::nullopt;
    above = LastParent(*above);
  }
  return last;
}

void QueueTree::Declare(QueueId id) {
  const std::string& parent = rows_[id].queue.parent;
  if (parent.empty()) return;
  declared_[parent].push_back(id);
  if (const auto row = ids_.find(parent); row != ids_.end()) rows_[row->second].declared = true;
}

void QueueTree::Undeclare(QueueId id) {
  const std::string& parent = rows_[id].queue.parent;
  if (parent.empty()) return;
  const auto it = declared_.find(parent);
  FAIRLEAD_CHECK(it != declared_.end(), absl::StrCat("queue ", Name(id), " was not declared"));
  std::vector<QueueId>& ids = it->second;
  ids.erase(std::remove(ids.begin(), ids.end(), id), ids.end());
  if (!ids.empty()) return;
  declared_.erase(it);
  if (const auto row = ids_.find(parent); row != ids_.end()) rows_[row->second].declared = false;
}

std::vector<QueueId>& QueueTree::SiblingList(const Row& row) {
  return row.parent ? rows_[*row.parent].children : roots_;
}

void QueueTree::Attach(QueueId id) {
  std::vector<QueueId>& list = SiblingList(rows_[id]);
  const auto older = [this](QueueId a, QueueId b) {
    const model::ObjectMeta& x = rows_[a].queue.meta;
    const model::ObjectMeta& y = rows_[b].queue.meta;
    return std::tie(x.creation, x.name) < std::tie(y.creation, y.name);
  };
  list.insert(std::lower_bound(list.begin(), list.end(), id, older), id);
}

void QueueTree::Detach(QueueId id) {
  std::vector<QueueId>& list = SiblingList(rows_[id]);
  list.erase(std::remove(list.begin(), list.end(), id), list.end());
}

void QueueTree::SetParent(QueueId id, std::optional<QueueId> parent) {
  if (rows_[id].parent == parent) return;
  Detach(id);
  rows_[id].parent = parent;
  Attach(id);
  ++shape_version_;
}

std::optional<QueueId> QueueTree::DeclaredParent(QueueId id) const {
  const Row& row = rows_[id];
  if (!row.exists || row.queue.parent.empty()) return std::nullopt;
  return Find(row.queue.parent);
}

// Parents before their children; ends on cycles.
std::vector<QueueId> QueueTree::DeclaredSubtree(QueueId id) const {
  std::vector<QueueId> found = {id};
  for (size_t i = 0; i < found.size(); ++i) {
    const auto it = declared_.find(Name(found[i]));
    if (it == declared_.end()) continue;
    for (const QueueId child : it->second) {
      if (child != id) found.push_back(child);
    }
  }
  return found;
}

// The queues of the cycle, child before parent, from the smallest name on; empty if there is none.
std::vector<QueueId> QueueTree::CycleThrough(QueueId id) const {
  std::vector<QueueId> chain = {id};
  for (std::optional<QueueId> at = DeclaredParent(id); at && *at != id; at = DeclaredParent(*at)) {
    chain.push_back(*at);
    // A cycle further up that does not include this queue.
    if (chain.size() > rows_.size()) return {};
  }
  if (DeclaredParent(chain.back()) != id) return {};
  const auto by_name = [this](QueueId a, QueueId b) { return Name(a) < Name(b); };
  std::rotate(chain.begin(), std::min_element(chain.begin(), chain.end(), by_name), chain.end());
  return chain;
}

// Only the subtree can change: the links of a queue depend on the queues above it alone. A queue on
// a cycle with this queue is, by declaration, below it.
void QueueTree::Relink(QueueId id) {
  const std::vector<QueueId> subtree = DeclaredSubtree(id);
  const std::vector<QueueId> cycle = CycleThrough(id);
  std::string text;
  for (const QueueId member : cycle) absl::StrAppend(&text, Name(member), " -> ");
  if (!cycle.empty()) absl::StrAppend(&text, Name(cycle.front()));
  for (const QueueId member : cycle) {
    SetParent(member, std::nullopt);
    rows_[member].problem = absl::StrCat("parent cycle: ", text);
    rows_[member].faulty = member;
  }
  for (const QueueId below : subtree) {
    if (!rows_[below].exists) continue;
    if (std::find(cycle.begin(), cycle.end(), below) != cycle.end()) continue;
    SetParent(below, DeclaredParent(below));
    RenewProblem(below);
  }
  if (!rows_[id].exists) rows_[id].problem.reset();
}

void QueueTree::RenewProblem(QueueId id) {
  Row& row = rows_[id];
  row.faulty = id;
  if (!row.invalid.empty()) {
    row.problem = row.invalid;
  } else if (!row.queue.parent.empty() && !row.parent) {
    row.problem = absl::StrCat("parent queue '", row.queue.parent, "' does not exist");
  } else if (row.parent && rows_[*row.parent].problem) {
    row.faulty = rows_[*row.parent].faulty;
    row.problem = absl::StrCat("queue '", Name(row.faulty),
                               "' above it is unusable: ", *rows_[row.faulty].problem);
  } else {
    row.problem.reset();
  }
}

QueuePath QueueTree::Ancestors(QueueId id) const {
  QueuePath path;
  for (std::optional<QueueId> at = id; at; at = rows_[*at].parent) path.push_back(*at);
  return path;
}

std::optional<QueueId> QueueTree::LowestCommonAncestor(QueueId a, QueueId b) const {
  const QueuePath left = Ancestors(a);
  const QueuePath right = Ancestors(b);
  std::optional<QueueId> common;
  for (size_t i = 1; i <= std::min(left.size(), right.size()); ++i) {
    if (left[left.size() - i] != right[right.size() - i]) break;
    common = left[left.size() - i];
  }
  return common;
}

std::pair<QueueId, QueueId> QueueTree::Diverging(QueueId a, QueueId b) const {
  const QueuePath left = Ancestors(a);
  const QueuePath right = Ancestors(b);
  size_t same = 0;
  while (same < std::min(left.size(), right.size()) &&
         left[left.size() - 1 - same] == right[right.size() - 1 - same]) {
    ++same;
  }
  const auto below = [same](const QueuePath& path) {
    return same < path.size() ? path[path.size() - 1 - same] : path.front();
  };
  return {below(left), below(right)};
}

}  // namespace fairlead::queues
