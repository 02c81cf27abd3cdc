// What can be bought in the worlds of the simulation. Thread-safety: none beyond its first call.
#pragma once

#include <cstdint>

#include "autoscale-hook/catalog/catalog.h"

namespace fairlead::simtest {

inline constexpr int64_t kMicroPerUsd = 1'000'000;

// Version 1: gpu4 has six GPUs, as if a mistake in the table had been mended. Version 2: one type
// more, and reservations.
const hook::Catalog& WorldCatalog(int version = 0);
inline constexpr int kReserving = 2;  // the version with reservations
// The price of the cheapest machines of version 0 that have so many GPUs.
int64_t CheapestMicroUsdFor(int64_t gpus);

}  // namespace fairlead::simtest
