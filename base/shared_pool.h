// Equal values share their memory: a row that says the same as many others keeps eight bytes.
//
// Ownership: a value lives as long as it is held, or until the pool finds that nothing else holds
// it: at once if the last holder gives it back by Release(), else now and then. What tenants may
// make large is given back. Thread-safety: none; the values may be read on several threads.
// Complexity: O(1) amortised.
#pragma once

#include <algorithm>
#include <cstddef>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "base/shared.h"

namespace fairlead {

template <typename T>
class SharedPool {
 public:
  Shared<T> Intern(const T& value) {
    const auto found = values_.find(value);
    if (found != values_.end()) return *found;
    if (values_.size() >= trim_at_) {
      absl::erase_if(values_, [](const Shared<T>& each) { return each.IsAlone(); });
      trim_at_ = std::max(kTrimAt, 2 * values_.size());
    }
    return *values_.insert(Shared<T>(value)).first;
  }
  // Drops the value if nothing but the pool and this copy holds it.
  void Release(Shared<T> value) {
    if (value == nullptr || value.holders() != 2) return;
    const auto found = values_.find(value);
    if (found != values_.end() && found->IsSameAs(value)) values_.erase(found);
  }
  [[nodiscard]] size_t size() const { return values_.size(); }

 private:
  static constexpr size_t kTrimAt = 1024;
  struct Hash {
    using is_transparent = void;
    size_t operator()(const T& value) const { return absl::Hash<T>()(value); }
    size_t operator()(const Shared<T>& value) const { return (*this)(*value); }
  };
  struct Equal {
    using is_transparent = void;
    static const T* View(const T& value) { return &value; }
    static const T* View(const Shared<T>& value) { return &*value; }
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return *View(a) == *View(b);
    }
  };

  absl::flat_hash_set<Shared<T>, Hash, Equal> values_;
  size_t trim_at_ = kTrimAt;
};

}  // namespace fairlead
