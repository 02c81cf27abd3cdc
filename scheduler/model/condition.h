// An entry of status.conditions, as metav1.Condition. Thread-safety: plain values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace fairlead::model {

struct Condition {
  std::string type, status, reason,
      message;                      // status: True, False or Unknown; empty: there is none
  int64_t observed_generation = 0;  // 0: not known
  // lastTransitionTime; of one that is written: absent means from now on.
  std::optional<absl::Time> since;

  [[nodiscard]] bool IsTrue() const { return status == "True"; }
  // What people and programs act on; not for which generation, and since when.
  [[nodiscard]] bool SaysTheSame(const Condition& other) const {
    return type == other.type && status == other.status && reason == other.reason &&
           message == other.message;
  }
  friend bool operator==(const Condition&, const Condition&) = default;
};

// The one of that type; end() without one. O(conditions)
template <typename Conditions>
[[nodiscard]] auto FindCondition(Conditions& conditions, absl::string_view type) {
  return std::find_if(conditions.begin(), conditions.end(),
                      [type](const Condition& each) { return each.type == type; });
}
// The one of that type, made if there is none.
[[nodiscard]] inline Condition& ConditionOf(std::vector<Condition>& conditions,
                                            absl::string_view type) {
  auto place = FindCondition(conditions, type);
  if (place == conditions.end()) {
    place = conditions.emplace(place);
    place->type = std::string(type);
  }
  return *place;
}
[[nodiscard]] inline bool SayTheSame(const std::vector<Condition>& a,
                                     const std::vector<Condition>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Condition& x, const Condition& y) { return x.SaysTheSame(y); });
}

}  // namespace fairlead::model
