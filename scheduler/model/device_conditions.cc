#include "scheduler/model/device_conditions.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fairlead::model {
namespace {

bool IsOf(const DeviceReport& report, const AllocatedDevice& device) {
  return report.driver == device.driver && report.pool == device.pool &&
         report.device == device.device;
}

bool Has(const std::vector<std::string>& types, const std::string& type) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

// Null: nothing is reported.
const DeviceCondition* Find(const ResourceClaim& claim, const AllocatedDevice& device,
                            const std::string& type) {
  const auto report = std::find_if(claim.reports.begin(), claim.reports.end(),
                                   [&](const DeviceReport& each) { return IsOf(each, device); });
  if (report == claim.reports.end()) return nullptr;
  const auto condition =
      std::find_if(report->conditions.begin(), report->conditions.end(),
                   [&](const DeviceCondition& each) { return each.type == type; });
  return condition == report->conditions.end() ? nullptr : &*condition;
}

std::string NameOf(const AllocatedDevice& device) {
  return absl::StrCat("device ", device.driver, "/", device.pool, "/", device.device);
}

std::string FailureOf(const ResourceClaim& claim, const AllocatedDevice& device) {
  for (const std::string& type : device.binding_failure_conditions) {
    const DeviceCondition* condition = Find(claim, device, type);
    if (condition == nullptr || !condition->is_true) continue;
    return absl::StrCat(NameOf(device), " has the condition ", type,
                        condition->reason.empty() ? "" : absl::StrCat(" (", condition->reason, ")"),
                        condition->message.empty() ? "" : absl::StrCat(": ", condition->message));
  }
  return "";
}

std::string AwaitedOf(const ResourceClaim& claim, const AllocatedDevice& device) {
  std::vector<std::string> awaited;
  for (const std::string& type : device.binding_conditions) {
    const DeviceCondition* condition = Find(claim, device, type);
    if (condition == nullptr || !condition->is_true) awaited.push_back(type);
  }
  if (awaited.empty()) return "";
  return absl::StrCat(absl::StrJoin(awaited, ", "), " of ", NameOf(device));
}

}  // namespace

bool HasBindingConditions(const std::vector<AllocatedDevice>& devices) {
  return std::any_of(devices.begin(), devices.end(), [](const AllocatedDevice& device) {
    return !device.binding_conditions.empty();
  });
}

DeviceReadiness ReadinessOf(const ResourceClaim& claim) {
  DeviceReadiness readiness;
  for (const AllocatedDevice& device : claim.devices) {
    if (device.binding_conditions.empty()) continue;
    if (readiness.failure.empty()) readiness.failure = FailureOf(claim, device);
    if (readiness.awaited.empty()) readiness.awaited = AwaitedOf(claim, device);
  }
  return readiness;
}

void KeepBindingConditions(ResourceClaim& claim) {
  for (DeviceReport& report : claim.reports) {
    std::erase_if(report.conditions, [&](const DeviceCondition& condition) {
      return std::none_of(
          claim.devices.begin(), claim.devices.end(), [&](const AllocatedDevice& device) {
            return IsOf(report, device) && (Has(device.binding_conditions, condition.type) ||
                                            Has(device.binding_failure_conditions, condition.type));
          });
    });
  }
  std::erase_if(claim.reports,
                [](const DeviceReport& report) { return report.conditions.empty(); });
}

}  // namespace fairlead::model
