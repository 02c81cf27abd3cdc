#include "core/config_groups.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/config_fields.h"
#include "core/config_shape.h"
#include "scheduler/model/qualified_name.h"

namespace fairlead::core {
namespace {

namespace dom = simdjson::dom;

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
                        const ShapeReader& shape) {
  const auto at = [&](absl::string_view field) { return absl::StrCat(path, ".", field); };
  FAIRLEAD_RETURN_IF_ERROR(CheckKind(path, group.api_version, group.kind, group.resource));
  if (group.name.empty()) return Bad(at("name"), "must be set");
  FAIRLEAD_RETURN_IF_ERROR(CheckSizes(path, group.min_size, group.max_size));
  return shape.Check(path);
}

absl::Status ReadGroup(const dom::element& value, const std::string& path,
                       std::vector<model::ScaleGroup>& out) {
  model::ScaleGroup group;
  ShapeReader shape(&group);
  std::map<std::string, Handler> fields = shape.Fields();
  fields.insert({{"apiVersion", Text(&group.api_version)},
                 {"kind", Text(&group.kind)},
                 {"resource", Text(&group.resource)},
                 {"namespace", Text(&group.ns)},
                 {"name", Text(&group.name)},
                 {"minSize", Count(&group.min_size, 0)},
                 {"maxSize", Count(&group.max_size, 0)},
                 {"deleteAnnotation", [&](const dom::element& v, const std::string& at) {
                    return ReadMark(v, at, group.mark);
                  }}});
  FAIRLEAD_RETURN_IF_ERROR(ReadObject(value, path, fields));
  FAIRLEAD_RETURN_IF_ERROR(CheckGroup(path, group, shape));
  FAIRLEAD_RETURN_IF_ERROR(CheckOnce(path, group, out));
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
