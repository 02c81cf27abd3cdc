// Rows that take their place by age among rows that are in order already, leaf queue by leaf queue:
// what waits behind the first of an equivalence class comes to stand among the others of its leaf.
//
// Use: Expect() every row that has its place, then Advance() each of them in order. Advance() first
// gives the late rows of the leaf that come before it, then the row, and after the last of a leaf
// what is still late there. A row that is given may Add() others: of its own leaf and behind
// itself. Finish() gives the late rows of leaves that no row was expected of.
//
// Thread-safety: none. Complexity: O(log late) a row.
#pragma once

#include <cstddef>
#include <map>
#include <utility>

#include "scheduler/engine/pending.h"

namespace fairlead::engine {

template <typename Leaf, typename Row>
class SortedMerge {
 public:
  void Expect(const Leaf& leaf) { ++to_come_[leaf]; }
  void Add(const Leaf& leaf, QueueOrderKey key, Row row) {
    InOrder& late = late_[leaf];
    late.emplace_hint(late.end(), std::move(key), std::move(row));  // O(1) if they come in order
  }

  // `key_of()` is the row's key, `place()` puts it in its place; `give(row)` takes a late one.
  template <typename KeyOf, typename Place, typename Give>
  void Advance(const Leaf& leaf, const KeyOf& key_of, const Place& place, const Give& give) {
    if (const auto found = late_.find(leaf); found != late_.end() && !found->second.empty()) {
      const QueueOrderKey key = key_of();
      GiveWhile(found->second, [&](const QueueOrderKey& late) { return late < key; }, give);
    }
    place();
    if (--to_come_[leaf] > 0) return;
    if (const auto found = late_.find(leaf); found != late_.end()) {
      GiveWhile(found->second, [](const QueueOrderKey&) { return true; }, give);
    }
  }

  // Leaf by leaf.
  template <typename Give>
  void Finish(const Give& give) {
    for (auto& [leaf, late] : late_) {
      GiveWhile(late, [](const QueueOrderKey&) { return true; }, give);
    }
  }

 private:
  using InOrder = std::map<QueueOrderKey, Row>;

  template <typename Condition, typename Give>
  static void GiveWhile(InOrder& late, const Condition& condition, const Give& give) {
    while (!late.empty() && condition(late.begin()->first)) {
      auto first = late.extract(late.begin());
      give(std::move(first.mapped()));
    }
  }

  std::map<Leaf, size_t> to_come_;
  std::map<Leaf, InOrder> late_;  // references stay valid while rows of other leaves are added
};

}  // namespace fairlead::engine
