// Quantities of the API and their values in base units, computed by hand.
#pragma once

#include <cstdint>

namespace fairlead::kube::testing {

struct Amount {
  const char* resource;
  const char* text;
  int64_t base_units;
};

inline constexpr Amount kAmounts[] = {
    {"cpu", "1", 1000},
    {"cpu", "250m", 250},
    {"cpu", "0.1", 100},
    {"cpu", "100u", 1},  // rounds up
    {"cpu", "2e0", 2000},
    {"cpu", "0", 0},
    {"memory", "1Gi", 1073741824},
    {"memory", "64Mi", 67108864},
    {"memory", "128974848000m", 128974848},
    {"memory", "1.5Ki", 1536},
    {"memory", "1e9", 1000000000},
    {"memory", "123456789012", 123456789012},
    {"nvidia.com/gpu", "1", 1000},
    {"nvidia.com/gpu", "8", 8000},
    {"ephemeral-storage", "10G", 10000000000},
    {"hugepages-2Mi", "4Mi", 4194304},
    {"example.com/widget", "3", 3},
};

}  // namespace fairlead::kube::testing
