// A node that the autoscaler could provision. Thread-safety: plain values.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "scheduler/model/node.h"

namespace fairlead::model {

struct OfferedNode {
  Node node;                       // empty
  int64_t micro_usd_per_hour = 0;  // the price, in millionths of a dollar
  // How long such a node is paid for and does no work: until it is usable, and while it is empty
  // before it is removed.
  absl::Duration unused = absl::ZeroDuration();
};

}  // namespace fairlead::model
