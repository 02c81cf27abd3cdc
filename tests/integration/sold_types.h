// Instance types that Karpenter's kwok cloud provider and Fairlead's catalogue both have, in one
// zone, on demand.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

namespace fairlead::integration {

inline constexpr char kSoldZone[] = "zone-a";

struct SoldType {
  const char* name;
  int gpus, cpu, memory_gib;
  int milli_usd_per_hour;
};

// A file of instance types, as Karpenter's kwok cloud provider reads it.
std::string KarpenterTypes(const std::vector<SoldType>& types);
// A catalogue file; the system reserves 100m CPU and 10Mi, as on Karpenter's kwok nodes.
std::string CatalogueText(const std::vector<SoldType>& types);

}  // namespace fairlead::integration
