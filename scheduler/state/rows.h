// Rows of a table whose ids are used again, and the index that finds them by name.
// Thread-safety: none. Complexity: O(1).
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "scheduler/state/ids.h"

namespace fairlead::state {

// The id of a row that is free, otherwise of a new row at the end. A free row is as it was left.
template <typename Row>
[[nodiscard]] uint32_t TakeRow(std::deque<Row>& rows, std::vector<uint32_t>& free) {
  if (free.empty()) {
    rows.emplace_back();
    return static_cast<uint32_t>(rows.size() - 1);
  }
  const uint32_t id = free.back();
  free.pop_back();
  return id;
}

// Finds rows by `ns` and `name`, which are in the rows alone: an entry takes four bytes. A row must
// not change its names while it is in the index. Ownership: borrows the rows.
template <typename Row>
class RowsByName {
 public:
  explicit RowsByName(const std::deque<Row>& rows) : ids_(0, Hash{&rows}, Equal{&rows}) {}

  void Insert(uint32_t id) { ids_.insert(id); }
  void Erase(uint32_t id) { ids_.erase(id); }
  // kNoId if absent.
  [[nodiscard]] uint32_t Find(absl::string_view ns, absl::string_view name) const {
    const auto found = ids_.find(Name{ns, name});
    return found == ids_.end() ? kNoId : *found;
  }

 private:
  using Name = std::pair<absl::string_view, absl::string_view>;
  static Name View(const Name& name, const std::deque<Row>*) { return name; }
  static Name View(uint32_t id, const std::deque<Row>* rows) {
    return {(*rows)[id].ns, (*rows)[id].name};
  }
  struct Hash {
    using is_transparent = void;
    template <typename Key>
    size_t operator()(const Key& key) const {
      return absl::Hash<Name>()(View(key, rows));
    }
    const std::deque<Row>* rows;
  };
  struct Equal {
    using is_transparent = void;
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return View(a, rows) == View(b, rows);
    }
    const std::deque<Row>* rows;
  };

  absl::flat_hash_set<uint32_t, Hash, Equal> ids_;
};

}  // namespace fairlead::state
