// Keys by the times at which something is due for them. A key may be added several times.
//
// A d-ary heap: docs/performance.md has its figures beside those of a tree (heaps/timers).
// Thread-safety: none. Complexity: O(log keys) per key. Determinism: in the order of the times,
// then of Add.
#pragma once

#include <boost/heap/d_ary_heap.hpp>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace fairlead::core {

template <typename Key>
class DueTimes {
 public:
  void Add(absl::Time at, Key key) { heap_.push(Entry{at, ++added_, std::move(key)}); }
  std::vector<Key> TakeDue(absl::Time now) {
    std::vector<Key> due;
    while (next() <= now && !heap_.empty()) due.push_back(TakeFirst());
    return due;
  }
  // The key that is due first. There must be one.
  Key TakeFirst() {
    Key key = std::move(heap_.top().key);
    heap_.pop();
    return key;
  }
  // Infinite future if there is none.
  [[nodiscard]] absl::Time next() const {
    return heap_.empty() ? absl::InfiniteFuture() : heap_.top().at;
  }
  [[nodiscard]] size_t size() const { return heap_.size(); }

 private:
  struct Entry {
    absl::Time at;
    uint64_t turn;    // of Add
    mutable Key key;  // no part of the order: it is moved out of the top
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const {
      return std::tie(b.at, b.turn) < std::tie(a.at, a.turn);
    }
  };

  boost::heap::d_ary_heap<Entry, boost::heap::arity<4>, boost::heap::compare<Later>> heap_;
  uint64_t added_ = 0;
};

}  // namespace fairlead::core
