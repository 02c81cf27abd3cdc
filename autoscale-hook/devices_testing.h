// Devices, and pods with claims, for the tests of this module. Header only; never part of the
// product.
#pragma once

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/hook_testing.h"
#include "scheduler/model/device_names.h"
#include "scheduler/model/testing/device_builders.h"

namespace fairlead::hook::testing {

using DevicesOfNode = std::shared_ptr<const model::NodeDevices>;

inline DevicesOfNode Devices(int64_t count, const std::string& driver = "gpu.nvidia.com") {
  auto devices = std::make_shared<model::NodeDevices>();
  const model::ResourceSlice slice = model::testing::MakeSlice("any", count, driver);
  model::AddPool({&slice}, *devices);
  return devices;
}

// What the claims of a pod make it request: devices of a driver.
inline std::string DevicesOf(const std::string& driver) {
  return absl::StrCat(model::kDemandPrefix, driver);
}

// One pod with a claim of its own.
inline std::shared_ptr<model::PodSpec> Claiming(int64_t cpu_milli, int64_t devices,
                                                const std::string& driver = "gpu.nvidia.com") {
  auto spec = std::make_shared<model::PodSpec>(*Spec(cpu_milli, 0, 0));
  model::Set(spec->requests, DevicesOf(driver), devices);
  spec->claim_templates = {"t"};
  return spec;
}
// The pod that brings the shared claim along, and one that joins it.
inline std::shared_ptr<model::PodSpec> Bringing(const std::string& claim, int64_t cpu_milli,
                                                int64_t devices) {
  auto spec = Claiming(cpu_milli, devices);
  spec->claim_templates.clear();
  spec->resource_claims = {claim};
  return spec;
}
inline std::shared_ptr<model::PodSpec> Joining(const std::string& claim, int64_t cpu_milli) {
  auto spec = std::make_shared<model::PodSpec>(*Spec(cpu_milli, 0, 0));
  spec->resource_claims = {claim};
  spec->claims_to_join = {absl::StrCat("team/", claim)};
  return spec;
}

}  // namespace fairlead::hook::testing
