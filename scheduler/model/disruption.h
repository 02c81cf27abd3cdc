// When Fairlead may take nodes out of service on its own account: what a NodePool says
// (spec.disruption, in Karpenter's words), or the configuration for pools that say nothing.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/cron.h"

namespace fairlead::model {

enum class DisruptionReason : uint8_t {
  kEmpty,          // nothing needs the node
  kUnderutilized,  // its pods have room elsewhere
};

// At most so many nodes of the pool are out of service, or on their way out, at a time.
struct DisruptionBudget {
  int64_t nodes = 0;  // or percent of the pool's nodes, rounded up
  bool percent = false;
  // It holds for `duration` from each named minute on; absent: always.
  std::optional<CronSchedule> schedule;
  absl::Duration duration = absl::ZeroDuration();
  // The reasons for which it holds; neither: for both.
  bool for_empty = false, for_underutilized = false;
  [[nodiscard]] bool HoldsFor(DisruptionReason reason) const {
    if (for_empty == for_underutilized) return true;
    return reason == DisruptionReason::kEmpty ? for_empty : for_underutilized;
  }
  friend bool operator==(const DisruptionBudget&, const DisruptionBudget&) = default;
};

enum class ConsolidationPolicy : uint8_t { kWhenEmpty, kWhenEmptyOrUnderutilized };

inline constexpr char kConsolidationPolicies[] = "WhenEmpty or WhenEmptyOrUnderutilized";
inline std::optional<ConsolidationPolicy> ParseConsolidationPolicy(absl::string_view text) {
  if (text == "WhenEmpty") return ConsolidationPolicy::kWhenEmpty;
  if (text == "WhenEmptyOrUnderutilized") return ConsolidationPolicy::kWhenEmptyOrUnderutilized;
  return std::nullopt;
}

struct Disruption {
  std::optional<ConsolidationPolicy> consolidation;  // absent: as configured
  // How long a node is empty, or could be emptied, before it is; infinite: never; absent: as
  // configured.
  std::optional<absl::Duration> consolidate_after;
  std::vector<DisruptionBudget> budgets;  // each holds; empty: as configured
  friend bool operator==(const Disruption&, const Disruption&) = default;
};

}  // namespace fairlead::model
