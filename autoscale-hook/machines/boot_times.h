// How long machines take from their launch until their node is usable: by instance type and pool
// (whose image and startup taints decide), as the last kKept of them took. It is learned from
// NodeRequests, so a restart learns it again from those that are left.
//
// Thread-safety: none. Complexity: O(log types + kKept log kKept) per call.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>

#include "absl/time/time.h"

namespace fairlead::hook {

class BootTimes {
 public:
  static constexpr size_t kKept = 20;

  void Learn(const std::string& type, const std::string& pool, absl::Duration took);
  // Nine of ten took no longer. Of a type of which nothing is known: those of its pool; else
  // `otherwise`.
  [[nodiscard]] absl::Duration Expect(const std::string& type, const std::string& pool,
                                      absl::Duration otherwise) const;

 private:
  using Recent = std::deque<absl::Duration>;
  static void Add(Recent& recent, absl::Duration took);
  std::map<std::pair<std::string, std::string>, Recent> by_type_;  // (type, pool)
  std::map<std::string, Recent> by_pool_;
};

}  // namespace fairlead::hook
