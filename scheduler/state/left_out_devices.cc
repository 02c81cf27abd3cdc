#include "scheduler/state/left_out_devices.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fairlead::state {
namespace {

// The demands of a resource that devices may satisfy.
std::vector<std::string> DemandsIn(const DeviceAllocator& book, absl::string_view resource) {
  std::vector<std::string> demands;
  if (IsShape(resource)) {
    const ClaimShape* shape = book.FindShape(resource);
    if (shape == nullptr) return demands;
    for (const ShapeRequest& request : shape->requests) {
      for (const ShapeOption& option : request.options) demands.push_back(option.demand);
    }
  } else if (IsDemand(resource)) {
    demands.emplace_back(resource);
  } else if (const std::string* device_class = book.ClassOfResource(resource)) {
    model::DeviceRequest request;
    request.device_class = *device_class;
    demands.push_back(DemandName(request));
  }
  return demands;
}

// Every way to satisfy one of the requests is left out: by which devices.
std::string LeftOutOf(const DeviceAllocator& book, const ClaimShape& shape) {
  for (const ShapeRequest& request : shape.requests) {
    std::string devices;
    const bool all =
        std::all_of(request.options.begin(), request.options.end(), [&](const ShapeOption& option) {
          const std::string& of_option = book.LeftOut(option.demand);
          if (devices.empty()) devices = of_option;
          return !of_option.empty();
        });
    if (all && !devices.empty()) return devices;
  }
  return "";
}

}  // namespace

std::string LeftOutOn(const DeviceAllocator& book, absl::string_view node,
                      absl::string_view resource) {
  if (book.inventory().for_several() == 0) return "";
  std::set<std::string> drivers;
  for (const std::string& demand : DemandsIn(book, resource)) {
    const size_t index = book.IndexOf(demand);
    if (index == kMaxDemands) continue;
    for (const NodeDevice* device : book.inventory().DevicesOf(node)) {
      if (device->device.for_several && device->suits[index]) drivers.insert(device->driver);
    }
  }
  if (drivers.empty()) return "";
  return absl::StrCat("{devices of ", absl::StrJoin(drivers, ", "),
                      " are for several claims at once (allowMultipleAllocations), and Fairlead "
                      "gives them to none}");
}

std::string LeftOutEverywhere(const DeviceAllocator& book, const model::ResourceList& requests) {
  if (book.inventory().for_several() == 0) return "";
  for (const auto& [name, amount] : requests) {
    std::string devices;
    if (IsShape(name)) {
      if (const ClaimShape* shape = book.FindShape(name)) devices = LeftOutOf(book, *shape);
    } else if (IsDemand(name)) {
      devices = book.LeftOut(name);
    }
    if (devices.empty()) continue;
    return absl::StrCat(
        "all devices that suit its ResourceClaim are for several claims at once "
        "(allowMultipleAllocations), and Fairlead gives such devices to none: ",
        devices);
  }
  return "";
}

}  // namespace fairlead::state
