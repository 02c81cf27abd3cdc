#include "core/config_provisioning.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "core/config_fields.h"
#include "core/config_shape.h"
#include "scheduler/model/qualified_name.h"

namespace fairlead::core {
namespace {

namespace dom = simdjson::dom;

// The definition of ProvisioningRequest has these bounds.
constexpr size_t kMostParameters = 100, kLongestParameter = 255, kLongestClass = 253;
// The name is a part of the names of objects, and the value of a label.
constexpr size_t kLongestGroupName = 40;

absl::Status ReadParameters(const dom::element& value, const std::string& path,
                            model::StringMap& out) {
  FAIRLEAD_RETURN_IF_ERROR(
      ReadMapping(value, path,
                  [&](const std::string& key, const dom::element& entry,
                      const std::string& at) -> absl::Status {
                    std::string_view text;
                    if (entry.get(text) != simdjson::SUCCESS) return Bad(at, "must be a string");
                    if (text.size() > kLongestParameter) {
                      return Bad(at, absl::StrCat("must not be longer than ", kLongestParameter));
                    }
                    if (out.Has(key)) return Bad(at, "is given twice");
                    out.Set(key, ToAbsl(text));
                    return absl::OkStatus();
                  }));
  if (out.size() > kMostParameters) {
    return Bad(path, absl::StrCat("must not have more than ", kMostParameters, " entries"));
  }
  return absl::OkStatus();
}

absl::Status ReadProvisioningGroup(const dom::element& value, const std::string& path,
                                   std::vector<model::ProvisioningGroup>& out) {
  model::ProvisioningGroup group;
  ShapeReader shape(&group);
  std::map<std::string, Handler> fields = shape.Fields();
  fields.insert({{"name", Text(&group.name)}, {"maxSize", Count(&group.max_size, 1)}});
  FAIRLEAD_RETURN_IF_ERROR(ReadObject(value, path, fields));
  if (!model::IsDnsLabel(group.name) || group.name.size() > kLongestGroupName) {
    return Bad(absl::StrCat(path, ".name"),
               absl::StrCat("must be set to at most ", kLongestGroupName,
                            " lower-case letters, digits and \"-\""));
  }
  if (group.max_size == 0) return Bad(absl::StrCat(path, ".maxSize"), "must be set");
  FAIRLEAD_RETURN_IF_ERROR(CheckSizes(path, 0, group.max_size));
  FAIRLEAD_RETURN_IF_ERROR(shape.Check(path));
  FAIRLEAD_RETURN_IF_ERROR(CheckOnce(path, group, out));
  out.push_back(std::move(group));
  return absl::OkStatus();
}

absl::Status CheckProvisioning(const std::string& path, const model::ProvisioningSettings& read) {
  const auto at = [&](const char* field) { return absl::StrCat(path, ".", field); };
  if (!read.ns.empty() && !model::IsDnsLabel(read.ns)) {
    return Bad(at("namespace"), absl::StrCat("\"", read.ns, "\" is no name of a namespace"));
  }
  if (read.class_name == model::kCheckCapacityClass) {
    return Bad(at("className"),
               absl::StrCat("\"", read.class_name, "\" only checks, and never adds a node; name a ",
                            "class that does, such as ", model::kAtomicScaleUpClass));
  }
  if (read.class_name.size() > kLongestClass) {
    return Bad(at("className"), absl::StrCat("must not be longer than ", kLongestClass));
  }
  if (read.arrival_timeout <= absl::ZeroDuration()) {
    return Bad(at("arrivalTimeout"), "must be more than zero");
  }
  return read.groups.empty() ? Bad(at("groups"), "must have at least one") : absl::OkStatus();
}

}  // namespace

absl::Status ReadProvisioningRequest(const dom::element& value, const std::string& path,
                                     model::ProvisioningSettings& out) {
  FAIRLEAD_RETURN_IF_ERROR(ReadObject(
      value, path,
      {{"namespace", Text(&out.ns)},
       {"className", Text(&out.class_name)},
       {"parameters", [&](const dom::element& v,
                          const std::string& at) { return ReadParameters(v, at, out.parameters); }},
       {"capacityWait", Span(&out.capacity_wait)},
       {"arrivalTimeout", Span(&out.arrival_timeout)},
       {"groups", [&](const dom::element& groups, const std::string& at) {
          return framework::ReadArray(groups, at,
                                      [&](const dom::element& group, const std::string& of) {
                                        return ReadProvisioningGroup(group, of, out.groups);
                                      });
        }}}));
  return CheckProvisioning(path, out);
}

}  // namespace fairlead::core
