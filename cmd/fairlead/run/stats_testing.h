// Statistics of an application that works, for tests. Header only; never part of the product.
#pragma once

#include "absl/time/time.h"
#include "cmd/fairlead/app/app_stats.h"

namespace fairlead::cmd::testing {

// The watches of all kinds are synced, and have been silent for so long.
inline AppStats StatsOfSyncedKinds(absl::Duration since_last_event) {
  AppStats stats;
  stats.stale_after = absl::Seconds(60);
  for (const model::Kind kind : model::kAllKinds) {
    kube::ReflectorStats one;
    one.kind = kind;
    one.synced = true;
    one.down_for = absl::ZeroDuration();
    one.since_last_event = since_last_event;
    stats.kinds.push_back(one);
  }
  return stats;
}

}  // namespace fairlead::cmd::testing
