#include "kube/codec/extended_claim.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "kube/codec/encode_parts.h"
#include "kube/codec/json_reader.h"
#include "kube/transport/http.h"
#include "scheduler/model/device_names.h"

namespace fairlead::kube {
namespace {

using Request = ExtendedRequests::Request;
using Mapping = ExtendedRequests::Mapping;

void ReadContainers(JsonReader& reader, JsonValue value, const FieldPath& path, bool init,
                    std::vector<PodContainer>& out) {
  reader.Items(value, path, [&](size_t i, JsonValue item) {
    const FieldPath at = path.Item(i);
    PodContainer& container = out.emplace_back();
    bool always = false;
    reader.Fields(item, at, [&](absl::string_view key, JsonValue v) {
      if (key == "name") reader.String(v, at.Field(key), container.name);
      if (key == "restartPolicy") always = reader.Text(v, at.Field(key)) == "Always";
      if (key == "resources") {
        const FieldPath resources = at.Field(key);
        reader.Fields(v, resources, [&](absl::string_view field, JsonValue amounts) {
          if (field != "requests") return;
          reader.Quantities(amounts, resources.Field(field), container.requests);
        });
      }
    });
    container.ends_first = init && !always;
  });
}

// What the container at that position asks for, besides what it may use of others' requests.
struct Asked {
  std::optional<Request> more;
  std::vector<Mapping> mappings;
};

Asked Ask(const std::vector<PodContainer>& containers, size_t at,
          const model::SetExtendedClaim::Resource& resource,
          const std::vector<std::optional<Request>>& usable) {
  Asked asked;
  const PodContainer& container = containers[at];
  const int64_t wanted =
      model::DevicesOfAmount(resource.name, model::Get(container.requests, resource.name));
  if (wanted <= 0) return asked;
  int64_t found = 0;
  for (const std::optional<Request>& other : usable) {
    if (!other.has_value()) continue;
    found += other->count;
    asked.mappings.push_back({container.name, resource.name, other->name});
    if (found >= wanted) return asked;
  }
  const auto before = std::count_if(container.requests.begin(), container.requests.end(),
                                    [&](const auto& entry) { return entry.first < resource.name; });
  const std::string name = absl::StrCat("container-", at, "-request-", before);
  asked.more = Request{name, resource.device_class, wanted - found};
  asked.mappings.push_back({container.name, resource.name, name});
  return asked;
}

void AskFor(const std::vector<PodContainer>& containers,
            const model::SetExtendedClaim::Resource& resource, ExtendedRequests& out) {
  std::vector<std::optional<Request>> lasting(containers.size());
  for (size_t i = 0; i < containers.size(); ++i) {
    if (containers[i].ends_first) continue;
    Asked asked = Ask(containers, i, resource, {});
    out.mappings.insert(out.mappings.end(), asked.mappings.begin(), asked.mappings.end());
    lasting[i] = std::move(asked.more);
  }
  std::optional<Request> most;
  std::set<std::string> names;
  std::vector<Mapping> mappings;
  for (size_t i = 0; i < containers.size(); ++i) {
    if (!containers[i].ends_first) continue;
    const std::vector<std::optional<Request>> later(lasting.begin() + static_cast<int64_t>(i),
                                                    lasting.end());
    Asked asked = Ask(containers, i, resource, later);
    mappings.insert(mappings.end(), asked.mappings.begin(), asked.mappings.end());
    if (!asked.more.has_value()) continue;
    names.insert(asked.more->name);
    if (!most.has_value() || most->count < asked.more->count) most = std::move(asked.more);
  }
  for (Mapping& mapping : mappings) {
    if (most.has_value() && names.contains(mapping.request)) mapping.request = most->name;
  }
  if (most.has_value()) out.requests.push_back(*std::move(most));
  for (std::optional<Request>& request : lasting) {
    if (request.has_value()) out.requests.push_back(*std::move(request));
  }
  out.mappings.insert(out.mappings.end(), mappings.begin(), mappings.end());
}

}  // namespace

absl::StatusOr<std::vector<PodContainer>> DecodeContainers(absl::string_view pod_json) {
  std::vector<PodContainer> init, main;
  std::string problems;
  FAIRLEAD_RETURN_IF_ERROR(ReadJson(pod_json, [&](JsonReader& reader, JsonValue root) {
    const FieldPath top;
    reader.Fields(root, top, [&](absl::string_view key, JsonValue v) {
      if (key != "spec") return;
      const FieldPath spec = top.Field(key);
      reader.Fields(v, spec, [&](absl::string_view field, JsonValue list) {
        const FieldPath at = spec.Field(field);
        if (field == "initContainers") ReadContainers(reader, list, at, /*init=*/true, init);
        if (field == "containers") ReadContainers(reader, list, at, /*init=*/false, main);
      });
    });
    problems = reader.problems().Text();
  }));
  if (!problems.empty()) return absl::InvalidArgumentError(problems);
  init.insert(init.end(), std::make_move_iterator(main.begin()),
              std::make_move_iterator(main.end()));
  return init;
}

ExtendedRequests MakeExtendedRequests(
    const std::vector<PodContainer>& containers,
    const std::vector<model::SetExtendedClaim::Resource>& resources) {
  ExtendedRequests out;
  for (const model::SetExtendedClaim::Resource& resource : resources) {
    AskFor(containers, resource, out);
  }
  std::sort(out.requests.begin(), out.requests.end(),
            [](const Request& a, const Request& b) { return a.name < b.name; });
  return out;
}

EncodedWrite EncodeExtendedClaim(const model::SetExtendedClaim& action,
                                 const std::vector<Request>& requests) {
  JsonWriter json;
  json.BeginObject();
  json.Field("apiVersion", ApiVersion(model::Kind::kResourceClaim)).Field("kind", "ResourceClaim");
  json.Key("metadata").BeginObject().Field("namespace", action.ns).Field("name", action.claim);
  json.Key("annotations").BeginObject();
  json.Field(model::kExtendedClaimAnnotation, "true").EndObject();
  json.Key("ownerReferences").BeginArray().BeginObject();
  json.Field("apiVersion", "v1").Field("kind", "Pod").Field("name", action.name);
  json.Field("uid", action.uid).Key("controller").Bool(true);
  json.EndObject().EndArray().EndObject();
  json.Key("spec").BeginObject().Key("devices").BeginObject().Key("requests").BeginArray();
  for (const Request& request : requests) {
    json.BeginObject().Field("name", request.name).Key("exactly").BeginObject();
    json.Field("deviceClassName", request.device_class).Field("allocationMode", "ExactCount");
    json.Key("count").Int(request.count).EndObject().EndObject();
  }
  json.EndArray().EndObject().EndObject().EndObject();
  std::string path = NamespacedPath(model::Kind::kResourceClaim, action.ns, "");
  if (path.back() == '/') path.pop_back();
  return {"POST", std::move(path), kJson, json.Take()};
}

EncodedWrite EncodeExtendedClaimStatus(const model::SetExtendedClaim& action,
                                       const std::vector<Mapping>& mappings) {
  JsonWriter json;
  json.BeginObject();
  WriteUid(json, action.uid);
  json.Key("status").BeginObject().Key("extendedResourceClaimStatus");
  if (action.claim.empty()) {
    json.Null();
  } else {
    json.BeginObject().Field("resourceClaimName", action.claim);
    json.Key("requestMappings").BeginArray();
    for (const Mapping& mapping : mappings) {
      json.BeginObject().Field("containerName", mapping.container);
      json.Field("resourceName", mapping.resource).Field("requestName", mapping.request);
      json.EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndObject().EndObject();
  return {"PATCH", PodPath(action.ns, action.name, "status"), kStrategicMergePatch, json.Take()};
}

}  // namespace fairlead::kube
