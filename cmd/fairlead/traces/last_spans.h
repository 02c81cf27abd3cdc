// The last span about each of the subjects that spans were about lately: what a later span about
// the same subject links to.
//
// Ownership: by value. Thread-safety: one thread. Complexity: O(1); the least recently used subject
// is forgotten for a new one beyond `most`.
#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "tracing/span.h"

namespace fairlead::cmd {

class LastSpans {
 public:
  explicit LastSpans(size_t most) : most_(most) {}
  // The span before this one, if it is known.
  std::optional<tracing::Link> Exchange(const std::string& subject, const tracing::Link& span);
  [[nodiscard]] size_t size() const { return by_subject_.size(); }

 private:
  using Used = std::list<std::pair<std::string, tracing::Link>>;  // most recently used first
  const size_t most_;
  Used used_;
  absl::flat_hash_map<std::string, Used::iterator> by_subject_;
};

}  // namespace fairlead::cmd
