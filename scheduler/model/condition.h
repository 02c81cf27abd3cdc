// An entry of status.conditions, as metav1.Condition. Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

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

}  // namespace fairlead::model
