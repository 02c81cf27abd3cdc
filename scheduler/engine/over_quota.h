// What a queue does for what it holds above its quota, where evictions and new nodes would both
// help (buying.h).
#pragma once

namespace fairlead::engine {

enum class OverQuota {
  kEvict,
  kBuyNodes,  // evicts only if no nodes can be had
  kWeigh,     // the same if the evictions would waste more money than the nodes
};

}  // namespace fairlead::engine
