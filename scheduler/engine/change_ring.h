// The last changes of something, by number, for what renews its knowledge only when it is asked: a
// change costs one entry here, and a reader the entries since its last look.
//
// Thread-safety: the owner's thread. Complexity: O(1). Memory: at most kLength entries.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace fairlead::engine {

template <typename T>
class ChangeRing {
 public:
  static constexpr uint64_t kLength = uint64_t{1} << 16;

  // Changes have the numbers start() .. end()-1, oldest first. A reader that has seen those below
  // `start()` at most has to look at everything; 0 is below it for ever.
  [[nodiscard]] uint64_t start() const { return start_; }
  [[nodiscard]] uint64_t end() const { return end_; }
  [[nodiscard]] const T& At(uint64_t number) const {
    return ring_[static_cast<size_t>(number % kLength)];
  }

  void Add(T change) {
    const auto at = static_cast<size_t>(end_ % kLength);
    if (at >= ring_.size()) {
      ring_.resize(std::min(kLength, std::max<uint64_t>(at + 1, 2 * ring_.size())));
    }
    ring_[at] = std::move(change);
    ++end_;
    if (end_ - start_ > kLength) ++start_;
  }
  // Every reader has to look at everything.
  void StartAnew() { start_ = ++end_; }

 private:
  std::vector<T> ring_;
  uint64_t start_ = 1, end_ = 1;
};

}  // namespace fairlead::engine
