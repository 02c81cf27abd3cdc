// Where claims find devices, by Fairlead and by kube-scheduler's allocator.
//
// Errors: InvalidArgument for a world that Fairlead cannot read. Thread-safety: none, one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace fairlead::differential {

struct DeviceComparison {
  int64_t pairs = 0;  // of an ask and a node
  int64_t found = 0;  // of these, with devices for it in both answers
  // kube-scheduler gives the pod up, at an error of a selector or at a constraint that All breaks:
  // not compared. Fairlead goes on with other devices and options.
  int64_t given_up = 0;
  // Of those that were found, with alternatives (firstAvailable) of one claim: the same ones, and
  // better ones here. Others are differences.
  int64_t same_alternatives = 0, better_alternatives = 0;
  std::vector<std::string> differences;
};

// `world`: of random_devices.h. `theirs`: [{NODE: {"allocated", "error", "chosen"}}], by ask;
// "chosen": by claim, the alternatives of its requests that have some.
absl::StatusOr<DeviceComparison> CompareDevices(const nlohmann::json& world,
                                                const nlohmann::json& theirs);

}  // namespace fairlead::differential
