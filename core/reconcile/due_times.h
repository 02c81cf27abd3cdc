// Keys by the times at which something is due for them. A key may be added several times.
//
// Thread-safety: none. Complexity: O(log times) per key; TakeFirst O(keys of that time).
// Determinism: in the order of the times, then of Add.
#pragma once

#include <cstddef>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace fairlead::core {

template <typename Key>
class DueTimes {
 public:
  void Add(absl::Time at, Key key) {
    times_[at].push_back(std::move(key));
    ++size_;
  }
  std::vector<Key> TakeDue(absl::Time now) {
    std::vector<Key> due;
    while (!times_.empty() && times_.begin()->first <= now) {
      std::vector<Key>& first = times_.begin()->second;
      due.insert(due.end(), std::make_move_iterator(first.begin()),
                 std::make_move_iterator(first.end()));
      times_.erase(times_.begin());
    }
    size_ -= due.size();
    return due;
  }
  // The key that is due first. There must be one.
  Key TakeFirst() {
    const auto first = times_.begin();
    Key key = std::move(first->second.front());
    first->second.erase(first->second.begin());
    if (first->second.empty()) times_.erase(first);
    --size_;
    return key;
  }
  // Infinite future if there is none.
  [[nodiscard]] absl::Time next() const {
    return times_.empty() ? absl::InfiniteFuture() : times_.begin()->first;
  }
  [[nodiscard]] size_t size() const { return size_; }

 private:
  std::map<absl::Time, std::vector<Key>> times_;
  size_t size_ = 0;
};

}  // namespace fairlead::core
