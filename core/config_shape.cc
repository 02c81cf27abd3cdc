#include "core/config_shape.h"

#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/qualified_name.h"
#include "scheduler/model/quantity.h"
#include "scheduler/model/taint_effect.h"

namespace fairlead::core {
namespace {

namespace dom = simdjson::dom;

constexpr int64_t kLargestGroup = 100'000;
// More of one machine is a slip of the pen, and sums of many must not overflow.
constexpr int64_t kMostOfMachine = int64_t{1} << 50;

absl::Status ReadLabels(const dom::element& value, const std::string& path, model::StringMap& out) {
  return ReadMapping(value, path,
                     [&](const std::string& key, const dom::element& entry,
                         const std::string& at) -> absl::Status {
                       std::string_view text;
                       if (!model::IsQualifiedName(key)) return Bad(at, "is no key of a label");
                       if (entry.get(text) != simdjson::SUCCESS) return Bad(at, "must be a string");
                       if (!model::IsLabelValue(ToAbsl(text)))
                         return Bad(at, "is no value of a label");
                       if (out.Has(key)) return Bad(at, "is given twice");
                       out.Set(key, ToAbsl(text));
                       return absl::OkStatus();
                     });
}

absl::Status ReadShapeTaint(const dom::element& value, const std::string& path,
                            std::vector<model::Taint>& out) {
  model::Taint taint;
  std::string effect = "NoSchedule";
  FAIRLEAD_RETURN_IF_ERROR(ReadObject(
      value, path,
      {{"key", Text(&taint.key)}, {"value", Text(&taint.value)}, {"effect", Text(&effect)}}));
  if (!model::IsQualifiedName(taint.key)) {
    return Bad(absl::StrCat(path, ".key"), "must be set to the key of a label");
  }
  if (!model::IsLabelValue(taint.value)) {
    return Bad(absl::StrCat(path, ".value"), "is no value of a label");
  }
  const std::optional<model::TaintEffect> known = model::ParseTaintEffect(effect);
  if (!known.has_value()) {
    return Bad(absl::StrCat(path, ".effect"), absl::StrCat("must be ", model::kTaintEffects));
  }
  taint.effect = *known;
  out.push_back(std::move(taint));
  return absl::OkStatus();
}

// A quantity as text or as a number.
Handler Amount(std::string resource, model::ResourceList* out) {
  return [resource = std::move(resource), out](const dom::element& value,
                                               const std::string& path) -> absl::Status {
    std::string_view text;
    int64_t number = 0;
    std::string spelt;
    if (value.get(text) == simdjson::SUCCESS) {
      spelt = std::string(text);
    } else if (value.get(number) == simdjson::SUCCESS) {
      spelt = absl::StrCat(number);
    } else {
      return Bad(path, "must be a quantity such as \"64Gi\"");
    }
    const absl::StatusOr<int64_t> amount = model::ParseResourceQuantity(resource, spelt);
    if (!amount.ok()) return Bad(path, amount.status().message());
    if (*amount < 0 || *amount > kMostOfMachine) {
      return Bad(path, "must be an amount that one machine can have");
    }
    model::Set(*out, resource, *amount);
    return absl::OkStatus();
  };
}

absl::Status ReadShapeAmounts(const dom::element& value, const std::string& path,
                              model::ResourceList& out) {
  return ReadMapping(value, path,
                     [&](const std::string& key, const dom::element& entry, const std::string& at) {
                       return model::IsQualifiedName(key) ? Amount(key, &out)(entry, at)
                                                          : Bad(at, "is no name of a resource");
                     });
}

absl::Status ReadShapeTemplate(const dom::element& value, const std::string& path,
                               model::MachineShape& shape) {
  FAIRLEAD_RETURN_IF_ERROR(ReadObject(
      value, path,
      {{"cpu", Amount(model::kCpuName, &shape.allocatable)},
       {"memory", Amount(model::kMemoryName, &shape.allocatable)},
       {"pods", Amount(model::kPodsName, &shape.allocatable)},
       {"gpus", Amount(model::kGpuName, &shape.allocatable)},
       {"resources",
        [&](const dom::element& v, const std::string& at) {
          return ReadShapeAmounts(v, at, shape.allocatable);
        }},
       {"labels", [&](const dom::element& v,
                      const std::string& at) { return ReadLabels(v, at, shape.labels); }},
       {"taints", [&](const dom::element& v, const std::string& at) {
          return framework::ReadArray(v, at, [&](const dom::element& taint, const std::string& of) {
            return ReadShapeTaint(taint, of, shape.taints);
          });
        }}}));
  for (const auto& [field, resource] :
       {std::pair("cpu", model::kCpuName), {"memory", model::kMemoryName}}) {
    if (model::Get(shape.allocatable, resource) <= 0) {
      return Bad(absl::StrCat(path, ".", field), "must be more than zero");
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::map<std::string, Handler> ShapeReader::Fields() {
  return {{"instanceType", Text(&shape_->instance_type)},
          {"zone", Text(&shape_->zone)},
          {"priceUSDPerHour",
           [this](const dom::element& value, const std::string& path) -> absl::Status {
             int64_t price = 0;
             FAIRLEAD_RETURN_IF_ERROR(Dollars(&price)(value, path));
             shape_->price_micro_usd_per_hour = price;
             return absl::OkStatus();
           }},
          {"template",
           [this](const dom::element& value, const std::string& path) {
             has_template_ = true;
             return ReadShapeTemplate(value, path, *shape_);
           }},
          {"nodeSelector", [this](const dom::element& value, const std::string& path) {
             return ReadLabels(value, path, shape_->node_selector);
           }}};
}

absl::Status ShapeReader::Check(const std::string& path) const {
  if (shape_->instance_type.empty() == !has_template_) {
    return Bad(absl::StrCat(path, ".instanceType"), "must be set, or template in its place");
  }
  // Without one all nodes of the cluster would be the group's.
  if (shape_->node_selector.empty()) {
    return Bad(absl::StrCat(path, ".nodeSelector"), "must have a label");
  }
  if (!model::IsLabelValue(shape_->zone)) {
    return Bad(absl::StrCat(path, ".zone"), "is no value of a label");
  }
  return absl::OkStatus();
}

absl::Status CheckSizes(const std::string& path, int64_t min_size, int64_t max_size) {
  const std::string at = absl::StrCat(path, ".maxSize");
  if (max_size > kLargestGroup) {
    return Bad(at, absl::StrCat("must not be more than ", kLargestGroup));
  }
  return max_size < min_size ? Bad(at, "must be set, and not be less than minSize")
                             : absl::OkStatus();
}

}  // namespace fairlead::core
