#include "core/config_groups.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "core/config_fields.h"
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

absl::Status ReadMap(const dom::element& value, const std::string& path, model::StringMap& out) {
  dom::object object;
  if (value.get(object) != simdjson::SUCCESS) return Bad(path, "must be a mapping");
  for (const auto& [name, entry] : object) {
    const std::string key(name);
    const std::string at = absl::StrCat(path, ".", key);
    std::string_view text;
    if (!model::IsQualifiedName(key)) return Bad(at, "is no key of a label");
    if (entry.get(text) != simdjson::SUCCESS) return Bad(at, "must be a string");
    if (!model::IsLabelValue(ToAbsl(text))) return Bad(at, "is no value of a label");
    if (out.Has(key)) return Bad(at, "is given twice");
    out.Set(key, ToAbsl(text));
  }
  return absl::OkStatus();
}

absl::Status ReadTaint(const dom::element& value, const std::string& path,
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

absl::Status ReadResources(const dom::element& value, const std::string& path,
                           model::ResourceList& out) {
  dom::object object;
  if (value.get(object) != simdjson::SUCCESS) return Bad(path, "must be a mapping");
  for (const auto& [name, entry] : object) {
    const std::string key(name);
    const std::string at = absl::StrCat(path, ".", key);
    if (!model::IsQualifiedName(key)) return Bad(at, "is no name of a resource");
    FAIRLEAD_RETURN_IF_ERROR(Amount(key, &out)(entry, at));
  }
  return absl::OkStatus();
}

absl::Status ReadTemplate(const dom::element& value, const std::string& path,
                          model::ScaleGroup& group) {
  FAIRLEAD_RETURN_IF_ERROR(ReadObject(
      value, path,
      {{"cpu", Amount(model::kCpuName, &group.allocatable)},
       {"memory", Amount(model::kMemoryName, &group.allocatable)},
       {"pods", Amount(model::kPodsName, &group.allocatable)},
       {"gpus", Amount(model::kGpuName, &group.allocatable)},
       {"resources",
        [&](const dom::element& v, const std::string& at) {
          return ReadResources(v, at, group.allocatable);
        }},
       {"labels",
        [&](const dom::element& v, const std::string& at) { return ReadMap(v, at, group.labels); }},
       {"taints", [&](const dom::element& v, const std::string& at) {
          return framework::ReadArray(v, at, [&](const dom::element& taint, const std::string& of) {
            return ReadTaint(taint, of, group.taints);
          });
        }}}));
  for (const auto& [field, resource] :
       {std::pair("cpu", model::kCpuName), {"memory", model::kMemoryName}}) {
    if (model::Get(group.allocatable, resource) <= 0) {
      return Bad(absl::StrCat(path, ".", field), "must be more than zero");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckKind(const std::string& path, const std::string& api_version,
                       const std::string& kind, const std::string& resource) {
  if (api_version.empty()) return Bad(absl::StrCat(path, ".apiVersion"), "must be set");
  if (kind.empty() == resource.empty()) {
    return Bad(absl::StrCat(path, ".kind"), "must be set, or resource in its place");
  }
  for (const auto& [field, text] :
       {std::pair("apiVersion", &api_version), {"kind", &kind}, {"resource", &resource}}) {
    const bool slashes = std::count(text->begin(), text->end(), '/') > (text == &api_version);
    if (slashes || absl::StrContains(*text, " ")) {
      return Bad(absl::StrCat(path, ".", field), absl::StrCat("\"", *text, "\" is no name"));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadMark(const dom::element& value, const std::string& path, model::ScaleMark& mark) {
  mark.value = "true";
  FAIRLEAD_RETURN_IF_ERROR(ReadObject(value, path,
                                      {{"key", Text(&mark.key)},
                                       {"value", Text(&mark.value)},
                                       {"apiVersion", Text(&mark.api_version)},
                                       {"kind", Text(&mark.kind)},
                                       {"resource", Text(&mark.resource)},
                                       {"namespace", Text(&mark.ns)},
                                       {"nameAnnotation", Text(&mark.name_annotation)}}));
  if (!model::IsQualifiedName(mark.key)) {
    return Bad(absl::StrCat(path, ".key"), "must be set to the key of an annotation");
  }
  if (mark.api_version.empty()) {
    for (const auto& [field, text] : {std::pair("kind", &mark.kind),
                                      {"resource", &mark.resource},
                                      {"namespace", &mark.ns},
                                      {"nameAnnotation", &mark.name_annotation}}) {
      if (!text->empty()) {
        return Bad(absl::StrCat(path, ".", field),
                   "without apiVersion the annotation is put on the Node");
      }
    }
    return absl::OkStatus();
  }
  return CheckKind(path, mark.api_version, mark.kind, mark.resource);
}

absl::Status CheckGroup(const std::string& path, const model::ScaleGroup& group,
                        bool has_template) {
  const auto at = [&](absl::string_view field) { return absl::StrCat(path, ".", field); };
  FAIRLEAD_RETURN_IF_ERROR(CheckKind(path, group.api_version, group.kind, group.resource));
  if (group.name.empty()) return Bad(at("name"), "must be set");
  if (group.max_size > kLargestGroup) {
    return Bad(at("maxSize"), absl::StrCat("must not be more than ", kLargestGroup));
  }
  if (group.max_size < group.min_size) {
    return Bad(at("maxSize"), "must be set, and not be less than minSize");
  }
  if (group.instance_type.empty() == !has_template) {
    return Bad(at("instanceType"), "must be set, or template in its place");
  }
  // Without one all nodes of the cluster would be the group's.
  if (group.node_selector.empty()) return Bad(at("nodeSelector"), "must have a label");
  return absl::OkStatus();
}

absl::Status ReadGroup(const dom::element& value, const std::string& path,
                       std::vector<model::ScaleGroup>& out) {
  model::ScaleGroup group;
  bool has_template = false;
  int64_t price = -1;
  FAIRLEAD_RETURN_IF_ERROR(ReadObject(
      value, path,
      {{"apiVersion", Text(&group.api_version)},
       {"kind", Text(&group.kind)},
       {"resource", Text(&group.resource)},
       {"namespace", Text(&group.ns)},
       {"name", Text(&group.name)},
       {"minSize", Count(&group.min_size, 0)},
       {"maxSize", Count(&group.max_size, 0)},
       {"instanceType", Text(&group.instance_type)},
       {"zone", Text(&group.zone)},
       {"priceUSDPerHour", Dollars(&price)},
       {"template",
        [&](const dom::element& v, const std::string& at) {
          has_template = true;
          return ReadTemplate(v, at, group);
        }},
       {"nodeSelector", [&](const dom::element& v,
                            const std::string& at) { return ReadMap(v, at, group.node_selector); }},
       {"deleteAnnotation", [&](const dom::element& v, const std::string& at) {
          return ReadMark(v, at, group.mark);
        }}}));
  if (price >= 0) group.price_micro_usd_per_hour = price;
  FAIRLEAD_RETURN_IF_ERROR(CheckGroup(path, group, has_template));
  if (!model::IsLabelValue(group.zone)) {
    return Bad(absl::StrCat(path, ".zone"), "is no value of a label");
  }
  for (const model::ScaleGroup& other : out) {
    if (other.Id() == group.Id()) {
      return Bad(absl::StrCat(path, ".name"), absl::StrCat(group.Id(), " is given twice"));
    }
    if (other.node_selector == group.node_selector) {
      return Bad(absl::StrCat(path, ".nodeSelector"),
                 absl::StrCat("is that of ", other.Id(), " too"));
    }
  }
  out.push_back(std::move(group));
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadClusterApi(const dom::element& value, const std::string& path,
                            ClusterApiSettings& out) {
  return ReadObject(value, path,
                    {{"kubeconfig", Text(&out.kubeconfig)},
                     {"namespace", Text(&out.ns)},
                     {"clusterName", Text(&out.cluster_name)}});
}

absl::Status ReadScaleSubresource(const dom::element& value, const std::string& path,
                                  std::vector<model::ScaleGroup>& out) {
  FAIRLEAD_RETURN_IF_ERROR(ReadObject(
      value, path, {{"groups", [&](const dom::element& groups, const std::string& at) {
                       return framework::ReadArray(
                           groups, at, [&](const dom::element& group, const std::string& of) {
                             return ReadGroup(group, of, out);
                           });
                     }}}));
  if (out.empty()) return Bad(absl::StrCat(path, ".groups"), "must have at least one");
  return absl::OkStatus();
}

}  // namespace fairlead::core
