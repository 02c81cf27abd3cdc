// Rows of a table whose ids are used again.
// Thread-safety: none. Complexity: O(1).
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

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

}  // namespace fairlead::state
