// A snapshot as the JSON that the page reads. It is the page's own, no interface.
//
// Bounded whatever the cluster has: at most kQueueRows, kWaitingRows, kNodeRows and kPurchaseRows
// rows, the first ones; "queuesMore", "waitingMore", .. count the rest. Totals, and those of pools,
// count all. Names are cut after kNameBytes, sentences after kTextBytes.
//
// Text is valid UTF-8 with JSON's escapes, and nothing more: the page sets it as text, never as
// HTML.
//
// Thread-safety: pure function. Complexity: O(lines).
#pragma once

#include <cstddef>
#include <string>

#include "dashboard/snapshot.h"

namespace fairlead::dashboard {

inline constexpr size_t kQueueRows = 500, kWaitingRows = 500, kNodeRows = 2000, kPurchaseRows = 300;
inline constexpr size_t kPoolRows = 100;
inline constexpr size_t kHelps = 4, kReasons = 3;  // per workload, and workloads per purchase
inline constexpr size_t kNameBytes = 320, kTextBytes = 1024;

std::string SnapshotJson(const Snapshot& snapshot);

}  // namespace fairlead::dashboard
