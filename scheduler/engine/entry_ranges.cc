#include "scheduler/engine/entry_ranges.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace fairlead::engine {
namespace {

using Position = EquivalenceClass::Members::const_iterator;

// The `index`th of the range, or its end.
Position At(const MemberRange& range, int64_t index) {
  return index <= range.count / 2 ? std::next(range.next, index)
                                  : std::prev(range.end, range.count - index);
}

}  // namespace

void EntryRanges::Add(const MemberRange& rest, Waiting& entry) {
  std::vector<Range>& of_class = ranges_[rest.equivalence_class->id];
  entry.behind = rest.count;
  entry.equivalence_class = IdOf(rest.equivalence_class->id, of_class.size());
  of_class.push_back({*rest.next, std::nullopt});
  if (rest.end != rest.equivalence_class->members.end()) of_class.back().end = *rest.end;
}

const EntryRanges::Range* EntryRanges::Find(const Waiting& entry) const {
  if (entry.behind <= 0) return nullptr;
  const auto of_class = ranges_.find(entry.equivalence_class >> kRangeBits);
  const size_t index = entry.equivalence_class & ((uint64_t{1} << kRangeBits) - 1);
  if (of_class == ranges_.end() || index >= of_class->second.size()) return nullptr;
  return &of_class->second[index];
}

MemberRange EntryRanges::Slice(const EquivalenceClass& equivalence_class,
                               const QueueOrderKey& first,
                               const std::optional<QueueOrderKey>& end) {
  const EquivalenceClass::Members& members = equivalence_class.members;
  MemberRange range;
  range.next = members.lower_bound(first);
  range.end = end.has_value() ? members.lower_bound(*end) : members.end();
  range.equivalence_class = &equivalence_class;
  return range;
}

MemberRange EntryRanges::Behind(const Waiting& entry) const {
  const Range* range = Find(entry);
  if (range == nullptr) return {};
  const EquivalenceClass* equivalence_class =
      pending_.FindEquivalenceClass(entry.equivalence_class >> kRangeBits);
  if (equivalence_class == nullptr) return {};
  MemberRange rest = Slice(*equivalence_class, range->first, range->end);
  rest.count = entry.behind;
  return rest;
}

uint64_t EntryRanges::Of(state::WorkloadId workload) const {
  const QueueOrderKey* key = pending_.KeyOf(workload);
  if (key == nullptr) return 0;
  const uint64_t id = pending_.EquivalenceClassOf(workload)->id;
  const auto of_class = ranges_.find(id);
  if (of_class == ranges_.end()) return 0;
  for (size_t i = 0; i < of_class->second.size(); ++i) {
    if (of_class->second[i].Contains(*key)) return IdOf(id, i);
  }
  return 0;
}

Waiting EntryRanges::Divide(Waiting& entry, int64_t keep) {
  const MemberRange rest = Behind(entry);
  const Position cut = At(rest, keep - 1);
  std::vector<Range>& of_class = ranges_[rest.equivalence_class->id];
  Range& kept = of_class[entry.equivalence_class & ((uint64_t{1} << kRangeBits) - 1)];

  Waiting tail = entry;
  const state::Workload& workload = state_.workload(cut->workload);
  tail.workload = workload.id;
  tail.part = true;
  tail.pods.clear();
  for (const state::PodId pod : workload.pods) tail.pods.push_back({pod});
  tail.verdict.position += keep;
  tail.behind = entry.behind - keep;
  tail.equivalence_class = 0;
  const std::optional<QueueOrderKey> end = kept.end;
  kept.end = *cut;
  if (tail.behind > 0) {
    tail.equivalence_class = IdOf(rest.equivalence_class->id, of_class.size());
    of_class.push_back({*std::next(cut), end});
  }
  entry.behind = keep - 1;
  if (entry.behind == 0) entry.equivalence_class = 0;
  return tail;
}

std::vector<Waiting> EntryRanges::Parts(Waiting entry, const std::vector<int64_t>& sizes) {
  std::vector<Waiting> parts;
  int64_t keep = 1 + entry.behind;
  // From the end: what is set apart is mostly young.
  for (size_t i = sizes.size(); i > 1; --i) {
    keep -= sizes[i - 1];
    parts.push_back(Divide(entry, keep));
  }
  parts.push_back(std::move(entry));
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<Waiting> EntryRanges::SetApart(Waiting entry,
                                           const std::vector<state::WorkloadId>& workloads) {
  const MemberRange rest = Behind(entry);
  std::vector<Waiting> whole;
  if (rest.empty()) {
    whole.push_back(std::move(entry));
    return whole;
  }
  bool own = false;
  std::vector<Position> apart;
  for (const state::WorkloadId id : workloads) {
    if (id == entry.workload) {
      own = true;
    } else if (Of(id) == entry.equivalence_class) {
      apart.push_back(pending_.PositionOf(id));
    }
  }
  std::sort(apart.begin(), apart.end(), [](const auto& a, const auto& b) { return *a < *b; });
  // Of what is set apart and what comes between and behind; what stays before it is the rest.
  std::vector<int64_t> sizes;
  Position done = rest.next;
  for (size_t i = 0; i < apart.size();) {
    if (!sizes.empty()) sizes.push_back(std::distance(done, apart[i]));
    int64_t run = 0;
    for (done = apart[i]; i < apart.size() && apart[i] == done; ++done, ++i) ++run;
    sizes.push_back(run);
  }
  if (!apart.empty()) sizes.push_back(std::distance(done, rest.end));
  sizes.insert(sizes.begin(), rest.count - std::accumulate(sizes.begin(), sizes.end(), int64_t{0}));
  // The entry's own workload is before all of them.
  if (!own) {
    ++sizes.front();
  } else if (sizes.front() == 0 && sizes.size() > 1) {
    ++sizes[1];
  } else {
    sizes.insert(sizes.begin(), 1);
  }
  std::erase(sizes, 0);
  return Parts(std::move(entry), sizes);
}

void EntryRanges::MarkMoves() {
  for (const auto& [id, now] : ranges_) {
    const auto before = told_.find(id);
    if (before == told_.end()) continue;
    const EquivalenceClass* equivalence_class = pending_.FindEquivalenceClass(id);
    if (equivalence_class == nullptr) continue;
    for (size_t i = 0; i < now.size() && i < before->second.size(); ++i) {
      const Range& was = before->second[i];
      if (now[i].first < was.first) {
        const bool apart = now[i].end.has_value() && *now[i].end < was.first;
        pending_.MarkChanged(
            Slice(*equivalence_class, now[i].first, apart ? *now[i].end : was.first));
      }
      if (was.end.has_value() && (!now[i].end.has_value() || *was.end < *now[i].end)) {
        const QueueOrderKey& from = now[i].first < *was.end ? *was.end : now[i].first;
        pending_.MarkChanged(Slice(*equivalence_class, from, now[i].end));
      }
    }
  }
  told_ = ranges_;
}

FormerEntries::FormerEntries(const EntryRanges& ranges, const std::vector<Waiting>& waiting) {
  for (size_t i = 0; i < waiting.size(); ++i) {
    own_.emplace(waiting[i].workload, static_cast<int64_t>(i));
    own_in_order_.push_back(waiting[i].workload);
    const EntryRanges::Range* range = ranges.Find(waiting[i]);
    if (range == nullptr) continue;
    behind_[waiting[i].equivalence_class >> EntryRanges::kRangeBits].emplace_back(
        *range, static_cast<int64_t>(i));
  }
}

int64_t FormerEntries::Find(const PendingIndex& pending, state::WorkloadId workload) const {
  if (const auto own = own_.find(workload); own != own_.end()) return own->second;
  const QueueOrderKey* key = pending.KeyOf(workload);
  if (key == nullptr) return -1;
  const auto of_class = behind_.find(pending.EquivalenceClassOf(workload)->id);
  if (of_class == behind_.end()) return -1;
  for (const auto& [range, index] : of_class->second) {
    if (range.Contains(*key)) return index;
  }
  return -1;
}

std::vector<int64_t> EntryRanges::MatchFormer(const FormerEntries& former,
                                              std::vector<Waiting>& waiting) {
  // What had an entry of its own, and waits behind another one now.
  absl::flat_hash_map<uint64_t, std::vector<Position>> cuts;
  for (const state::WorkloadId id : former.own_in_order_) {
    const uint64_t behind = Of(id);
    if (behind != 0) cuts[behind].push_back(pending_.PositionOf(id));
  }
  std::vector<Waiting> all;
  std::vector<int64_t> matches;
  for (Waiting& entry : waiting) {
    const MemberRange rest = Behind(entry);
    if (rest.empty()) {
      matches.push_back(former.Find(pending_, entry.workload));
      all.push_back(std::move(entry));
      continue;
    }
    // Between two cuts one former entry stood for all.
    const EquivalenceClass::Members& members = rest.equivalence_class->members;
    std::vector<Position> of_entry = {rest.next};
    const auto cut = [&](Position at) {
      if (at == members.end() || *at < *rest.next) return;
      if (rest.end == members.end() || *at < *rest.end) of_entry.push_back(at);
    };
    for (const Position own : cuts[entry.equivalence_class]) {
      cut(own);
      cut(std::next(own));
    }
    const auto ranges = former.behind_.find(rest.equivalence_class->id);
    if (ranges != former.behind_.end()) {
      for (const auto& [range, index] : ranges->second) {
        cut(members.lower_bound(range.first));
        if (range.end.has_value()) cut(members.lower_bound(*range.end));
      }
    }
    std::sort(of_entry.begin(), of_entry.end(),
              [](const auto& a, const auto& b) { return *a < *b; });
    of_entry.erase(std::unique(of_entry.begin(), of_entry.end()), of_entry.end());
    std::vector<int64_t> sizes = {1}, of_parts = {former.Find(pending_, entry.workload)};
    int64_t counted = 0;
    for (size_t i = 0; i < of_entry.size(); ++i) {
      const bool last = i + 1 == of_entry.size();
      const int64_t size =
          last ? rest.count - counted : std::distance(of_entry[i], of_entry[i + 1]);
      counted += size;
      const int64_t index = former.Find(pending_, of_entry[i]->workload);
      if (index == of_parts.back()) {
        sizes.back() += size;
      } else {
        sizes.push_back(size);
        of_parts.push_back(index);
      }
    }
    for (Waiting& part : Parts(std::move(entry), sizes)) all.push_back(std::move(part));
    matches.insert(matches.end(), of_parts.begin(), of_parts.end());
  }
  waiting = std::move(all);
  return matches;
}

}  // namespace fairlead::engine
