// What nodes for a workload would cost if it were alone: the offers as they are now, and no caps.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fairlead::hook {

struct Estimate {
  struct Nodes {
    std::string type;
    bool spot = false;
    int64_t count = 0;
    std::string reservation = {};  // empty: none
    friend bool operator==(const Nodes&, const Nodes&) = default;
  };
  // By type, on-demand before reserved before spot; empty: nothing can be provisioned.
  std::vector<Nodes> nodes;
  int64_t price_micro_usd_per_hour = 0;
  int64_t pods = 0;                  // for how many of its pods they are
  std::vector<std::string> details;  // why there are none, or others than those that are preferred
  friend bool operator==(const Estimate&, const Estimate&) = default;
};

// "2 x p5.48xlarge and 1 x g6.xlarge (spot), $110.33 an hour"; "1 x p5.48xlarge (reserved, cr-1),
// $0.00 an hour". There have to be nodes.
std::string NodesAndPrice(const Estimate& estimate);

}  // namespace fairlead::hook
