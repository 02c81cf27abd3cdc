#include "scheduler/model/node_devices.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "scheduler/model/device_names.h"

namespace fairlead::model {
namespace {

bool SameSlice(const ResourceSlice& a, const ResourceSlice& b) {
  return std::tie(a.driver, a.pool, a.slice_count, a.devices, a.counters_milli) ==
         std::tie(b.driver, b.pool, b.slice_count, b.devices, b.counters_milli);
}

bool IsOfOneDevice(absl::string_view attribute) {
  return attribute == "uuid" || absl::EndsWith(attribute, "/uuid") ||
         attribute == "resource.kubernetes.io/pciBusID";
}

}  // namespace

bool operator==(const NodeDevices& a, const NodeDevices& b) {
  return a.shared_pools == b.shared_pools &&
         std::equal(a.slices.begin(), a.slices.end(), b.slices.begin(), b.slices.end(), SameSlice);
}

void AddPool(const std::vector<const ResourceSlice*>& slices, NodeDevices& devices) {
  if (slices.empty()) return;
  std::set<absl::string_view> pools;
  for (const ResourceSlice& known : devices.slices) {
    if (known.driver == slices.front()->driver) pools.insert(known.pool);
  }
  const std::string pool = absl::StrCat(pools.size());
  for (const ResourceSlice* slice : slices) {
    ResourceSlice& added = devices.slices.emplace_back(*slice);
    added.meta = {};
    added.pool = pool;
    added.generation = 0;
    added.slice_count = static_cast<int64_t>(slices.size());
    added.nodes = {};
    for (Device& device : added.devices) {
      std::erase_if(device.attributes,
                    [](const auto& attribute) { return IsOfOneDevice(attribute.first); });
    }
  }
}

void AddDevices(const std::string& driver, const Device& device, int64_t count,
                NodeDevices& devices) {
  auto slice = std::find_if(devices.slices.begin(), devices.slices.end(),
                            [&](const auto& known) { return known.driver >= driver; });
  if (slice == devices.slices.end() || slice->driver != driver) {
    slice = devices.slices.emplace(slice);
    slice->driver = driver;
    slice->pool = "0";
  }
  for (int64_t i = 0; i < count; ++i) {
    Device& added = slice->devices.emplace_back(device);
    added.name = absl::StrCat(slice->devices.size() - 1);
  }
}

std::map<std::string, int64_t> CountByDriver(const NodeDevices& devices) {
  std::map<std::string, int64_t> counts;
  for (const ResourceSlice& slice : devices.slices) {
    if (slice.devices.empty()) continue;  // its counters are in one of their own
    counts[slice.driver] += static_cast<int64_t>(slice.devices.size());
  }
  return counts;
}

int64_t CountGpus(const NodeDevices& devices) {
  int64_t whole = 0;
  std::set<std::string> sets;
  for (const ResourceSlice& slice : devices.slices) {
    if (!IsGpuDriver(slice.driver)) continue;
    for (const Device& device : slice.devices) {
      if (!device.MayBeGiven()) continue;
      if (device.uses.empty()) ++whole;
      for (const CounterUse& use : device.uses) {
        sets.insert(absl::StrCat(slice.driver, "/", slice.pool, "/", use.set));
      }
    }
  }
  return whole + static_cast<int64_t>(sets.size());
}

std::string DescribeDevices(const NodeDevices& devices) {
  std::string text;
  for (const auto& [driver, count] : CountByDriver(devices)) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", count, " x ", driver);
  }
  return text.empty() ? "none" : text;
}

bool SameDevices(const std::shared_ptr<const NodeDevices>& a,
                 const std::shared_ptr<const NodeDevices>& b) {
  return a == b || (a != nullptr && b != nullptr && *a == *b);
}

}  // namespace fairlead::model
