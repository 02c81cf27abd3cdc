// Rows that take their place by age among rows that are in order already, leaf queue by leaf queue:
// what waits behind the first of an equivalence class comes to stand among the others of its leaf.
//
// Use: Expect() every row that has its place, then Advance() each of them in order. Advance() first
// gives the late rows of the leaf that come before it, then the row, and after the last of a leaf
// what is still late there. A row that is given may Add() others: of its own leaf and behind
// itself. Finish() gives the late rows of leaves that no row was expected of.
//
// `give` may take the bound as a second argument: the place of the next row of the leaf that is
// known, null if none is. What is behind the given row and before the bound comes before all else.
//
// Thread-safety: none. Complexity: O(log late) a row.
#pragma once

#include <cstddef>
#include <map>
#include <type_traits>
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
      GiveBefore(found->second, &key, give);
    }
    place();
    if (--to_come_[leaf] > 0) return;
    if (const auto found = late_.find(leaf); found != late_.end()) {
      GiveBefore(found->second, nullptr, give);
    }
  }

  // Leaf by leaf.
  template <typename Give>
  void Finish(const Give& give) {
    for (auto& [leaf, late] : late_) GiveBefore(late, nullptr, give);
  }

 private:
  using InOrder = std::map<QueueOrderKey, Row>;

  // Null: all of them.
  template <typename Give>
  static void GiveBefore(InOrder& late, const QueueOrderKey* key, const Give& give) {
    while (!late.empty() && (key == nullptr || late.begin()->first < *key)) {
      auto first = late.extract(late.begin());
      if constexpr (std::is_invocable_v<const Give&, Row, const QueueOrderKey*>) {
        const bool late_next = !late.empty() && (key == nullptr || late.begin()->first < *key);
        give(std::move(first.mapped()), late_next ? &late.begin()->first : key);
      } else {
        give(std::move(first.mapped()));
      }
    }
  }

  std::map<Leaf, size_t> to_come_;
  std::map<Leaf, InOrder> late_;  // references stay valid while rows of other leaves are added
};

}  // namespace fairlead::engine
