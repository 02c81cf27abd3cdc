#include "scheduler/state/device_shape.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace fairlead::state {
namespace {

constexpr char kGpuShape[] = "gpu";

bool Names(const model::DeviceConstraint& constraint, const model::DeviceRequest& request,
           size_t option) {
  return constraint.requests.empty() ||
         std::any_of(constraint.requests.begin(), constraint.requests.end(),
                     [&](const std::string& name) {
                       return name == request.name || name == RequestName(request, option);
                     });
}

std::string TolerationText(const model::DeviceToleration& toleration) {
  return absl::StrCat(toleration.key.empty() ? "any taint" : toleration.key,
                      toleration.exists ? "" : absl::StrCat("=", toleration.value),
                      toleration.effect.empty() ? "" : absl::StrCat(":", toleration.effect));
}

std::string OptionText(const ShapeOption& option) {
  return absl::StrCat(option.admin ? "admin access to " : "",
                      option.all ? "all" : absl::StrCat(option.count), " ",
                      absl::StripPrefix(option.demand, model::kDemandPrefix));
}

}  // namespace

bool IsGpuDeviceClass(absl::string_view name) { return model::IsGpuDriver(name); }

bool IsShape(absl::string_view resource_name) {
  return absl::StartsWith(resource_name, model::kShapePrefix);
}

bool IsDemand(absl::string_view resource_name) {
  return absl::StartsWith(resource_name, model::kDemandPrefix) || IsShape(resource_name);
}

bool IsGpuDemand(absl::string_view resource_name) {
  const bool shape = absl::ConsumePrefix(&resource_name, model::kShapePrefix);
  if (!shape && !absl::ConsumePrefix(&resource_name, model::kDemandPrefix)) return false;
  const absl::string_view first = resource_name.substr(0, resource_name.find(' '));
  return shape ? first == kGpuShape : IsGpuDeviceClass(first);
}

std::string RequestName(const model::DeviceRequest& request, size_t option) {
  return request.first_available.empty()
             ? request.name
             : absl::StrCat(request.name, "/", request.first_available[option].name);
}

size_t OptionCount(const model::DeviceRequest& request) {
  return std::max<size_t>(1, request.first_available.size());
}

const model::DeviceRequest& OptionOf(const model::DeviceRequest& request, size_t option) {
  return request.first_available.empty() ? request : request.first_available[option];
}

std::string DemandName(const model::DeviceRequest& request) {
  std::string name = absl::StrCat(model::kDemandPrefix, request.device_class);
  if (!request.selectors.empty()) {
    absl::StrAppend(&name, " where ", absl::StrJoin(request.selectors, " && "));
  }
  std::vector<std::string> tolerated;
  for (const model::DeviceToleration& each : request.tolerates) {
    tolerated.push_back(TolerationText(each));
  }
  if (!tolerated.empty()) {
    absl::StrAppend(&name, " tolerating ", absl::StrJoin(tolerated, ", "));
  }
  return name;
}

ClaimShape ShapeOf(const model::ResourceClaim& claim) {
  ClaimShape shape;
  int64_t gpus = 0;
  for (const model::DeviceRequest& request : claim.requests) {
    ShapeRequest& asked = shape.requests.emplace_back();
    asked.first_available = !request.first_available.empty();
    std::vector<ShapeOption>& options = asked.options;
    int64_t most = 0;
    for (size_t i = 0; i < OptionCount(request); ++i) {
      const model::DeviceRequest& option = OptionOf(request, i);
      // The API server requires at least one; more than any node has is as good as the bound.
      constexpr int64_t kMostDevices = int64_t{1} << 31;
      const int64_t count = std::clamp<int64_t>(option.count, 1, kMostDevices);
      options.push_back(
          {DemandName(option), option.all, option.all ? 1 : count, option.admin_access});
      if (option.admin_access) continue;
      if (IsGpuDemand(options.back().demand)) most = std::max(most, options.back().count);
    }
    if (options.size() > 1) gpus += most;
  }
  shape.weight = std::max<int64_t>(1, gpus);
  for (const model::DeviceConstraint& constraint : claim.constraints) {
    ShapeConstraint& added = shape.constraints.emplace_back();
    added.attribute = constraint.attribute;
    added.distinct = constraint.distinct;
    for (size_t r = 0; r < claim.requests.size(); ++r) {
      for (size_t i = 0; i < OptionCount(claim.requests[r]); ++i) {
        if (Names(constraint, claim.requests[r], i)) added.members.emplace_back(r, i);
      }
    }
  }
  return shape;
}

bool IsPlain(const ClaimShape& shape) {
  return shape.constraints.empty() &&
         std::all_of(shape.requests.begin(), shape.requests.end(), [](const ShapeRequest& request) {
           return !request.first_available && !request.options.front().all &&
                  !request.options.front().admin;
         });
}

bool IsOfAdmins(const ClaimShape& shape) {
  return std::all_of(shape.requests.begin(), shape.requests.end(), [](const auto& request) {
    return std::all_of(request.options.begin(), request.options.end(),
                       [](const ShapeOption& option) { return option.admin; });
  });
}

std::string ShapeName(const ClaimShape& shape) {
  // Only GPUs of firstAvailable are in the weight: those of other requests are demands themselves.
  const auto is_of_gpus = [](const ShapeOption& option) {
    return !option.admin && IsGpuDemand(option.demand);
  };
  const bool gpus =
      std::any_of(shape.requests.begin(), shape.requests.end(), [&](const ShapeRequest& request) {
        return request.options.size() > 1 &&
               std::any_of(request.options.begin(), request.options.end(), is_of_gpus);
      });
  std::vector<std::string> parts;
  for (const ShapeRequest& request : shape.requests) {
    const std::string text =
        absl::StrJoin(request.options, " | ", [](std::string* out, const ShapeOption& option) {
          absl::StrAppend(out, OptionText(option));
        });
    parts.push_back(request.first_available ? absl::StrCat("first of (", text, ")") : text);
  }
  std::string name = absl::StrCat(model::kShapePrefix, gpus ? kGpuShape : "device", " claim to ",
                                  absl::StrJoin(parts, ", "));
  for (const ShapeConstraint& constraint : shape.constraints) {
    absl::StrAppend(&name, constraint.distinct ? "; distinct " : "; same ", constraint.attribute,
                    " of ");
    absl::StrAppend(&name,
                    absl::StrJoin(constraint.members, ",", [](std::string* out, const auto& of) {
                      absl::StrAppend(out, of.first, ".", of.second);
                    }));
  }
  return name;
}

model::ResourceList ShapeDemands(const ClaimShape& shape) {
  model::ResourceList demands;
  for (const auto& [first_available, options] : shape.requests) {
    if (options.size() != 1 || options.front().admin) continue;
    model::Add(demands, options.front().demand, options.front().count);
  }
  return demands;
}

}  // namespace fairlead::state
