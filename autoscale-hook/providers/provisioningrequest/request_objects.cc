#include "autoscale-hook/providers/provisioningrequest/request_objects.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/hash.h"
#include "base/json_writer.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/resources.h"
#include "scheduler/model/taint_effect.h"

namespace fairlead::hook {
namespace {

constexpr absl::string_view kBoughtPlacePrefix = "place.fairlead.dev://";
constexpr char kNotFoundReason[] = "CapacityIsNotFound";
constexpr char kFoundReason[] = "CapacityIsFound";
constexpr char kPauseImage[] = "registry.k8s.io/pause:3.10";

struct TrueOrFalse {
  bool is_true = false, is_false = false;
  std::string reason, message;
};

TrueOrFalse ConditionIn(const Json& object, absl::string_view type) {
  const Json* const list = object.At({"status", "conditions"});
  if (list == nullptr || !list->is_array()) return {};
  for (const Json& item : list->items()) {
    if (item.TextAt({"type"}) != type) continue;
    const std::string status = item.TextAt({"status"});
    return {status == "True", status == "False", item.TextAt({"reason"}), item.TextAt({"message"})};
  }
  return {};
}

// By reasons only: messages are for people. A reason that is not known is a shortage, because what
// the request asks for cannot be had.
FailureClass ClassOfReason(absl::string_view reason) {
  using Row = std::pair<absl::string_view, FailureClass>;
  static constexpr std::array<Row, 5> kReasons = {{
      {"Expired", FailureClass::kTimeout},
      {"FailedToCreatePods", FailureClass::kConfig},
      {"FailedToCheckCapacity", FailureClass::kOther},
      {"FailedToBookCapacity", FailureClass::kOther},
      {kFoundReason, FailureClass::kOther},
  }};
  for (const auto& [known, failure] : kReasons) {
    if (reason == known) return failure;
  }
  return absl::StrContains(absl::AsciiStrToLower(reason), "quota") ? FailureClass::kQuota
                                                                   : FailureClass::kStockout;
}

void TakeStage(RequestStage stage, const TrueOrFalse& condition, BoughtRequest& request) {
  request.stage = stage;
  request.reason = condition.reason;
  request.message = condition.message;
  request.failure = ClassOfReason(condition.reason);
}

void ReadStage(const Json& object, BoughtRequest& request) {
  for (const char* type : {"Failed", "CapacityRevoked"}) {
    const TrueOrFalse condition = ConditionIn(object, type);
    if (!condition.is_true) continue;
    TakeStage(RequestStage::kFailed, condition, request);
    if (request.reason.empty()) request.reason = type;
    return;
  }
  const TrueOrFalse provisioned = ConditionIn(object, "Provisioned");
  if (provisioned.is_true) {
    const bool found = provisioned.reason == kFoundReason;
    TakeStage(found ? RequestStage::kFound : RequestStage::kProvisioned, provisioned, request);
  } else if (provisioned.is_false && provisioned.reason == kNotFoundReason) {
    TakeStage(RequestStage::kNoCapacity, provisioned, request);
  }
}

absl::Status WrongRequest(const BoughtRequest& request, absl::string_view field,
                          absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("ProvisioningRequest ", request.name, ": ", field, ": ", what));
}

void WriteMadeBy(JsonWriter& json, const model::ProvisioningSettings& settings,
                 const model::ProvisioningGroup& group) {
  json.Field("namespace", settings.ns);
  json.Key("labels").BeginObject();
  json.Field(model::kMadeByLabel, model::kProvisioningRequestProvider);
  json.Field(kProvisioningGroupLabel, group.name).EndObject();
}

// Three fifths, rounded up: two do not share a machine, and DaemonSets find room beside one.
int64_t OverHalfOf(int64_t amount) { return amount - amount / 5 * 2; }

void WriteAmounts(JsonWriter& json, const model::Node& node, bool limits) {
  json.BeginObject();
  for (const char* name : {model::kCpuName, model::kMemoryName}) {
    if (!limits) {
      json.Field(name, model::FormatQuantity(name, OverHalfOf(model::Get(node.allocatable, name))));
    }
  }
  const int64_t gpus = model::Get(node.allocatable, model::kGpuName);
  if (gpus > 0) json.Field(model::kGpuName, model::FormatQuantity(model::kGpuName, gpus));
  json.EndObject();
}

void WritePodSpec(JsonWriter& json, const model::ProvisioningGroup& group,
                  const model::Node& node) {
  json.BeginObject().Key("nodeSelector").BeginObject();
  for (const auto& [key, value] : group.node_selector) json.Field(key, value);
  if (!group.zone.empty() && !group.node_selector.Has(model::kZoneLabel)) {
    json.Field(model::kZoneLabel, group.zone);
  }
  json.EndObject().Key("tolerations").BeginArray();
  for (const model::Taint& taint : node.taints) {
    json.BeginObject().Field("key", taint.key).Field("operator", "Equal");
    json.Field("value", taint.value).Field("effect", model::TaintEffectName(taint.effect));
    json.EndObject();
  }
  json.EndArray().Key("containers").BeginArray().BeginObject();
  json.Field("name", "machine").Field("image", kPauseImage);
  json.Key("resources").BeginObject().Key("requests");
  WriteAmounts(json, node, false);
  json.Key("limits");
  WriteAmounts(json, node, true);
  json.EndObject().EndObject().EndArray().EndObject();
}

}  // namespace

absl::StatusOr<BoughtRequest> DecodeBoughtRequest(const Json& object) {
  BoughtRequest request;
  request.name = object.TextAt({"metadata", "name"});
  if (request.name.empty()) return WrongRequest(request, "metadata.name", "missing");
  request.uid = object.TextAt({"metadata", "uid"});
  request.resource_version = object.TextAt({"metadata", "resourceVersion"});
  if (request.uid.empty() || request.resource_version.empty()) {
    return WrongRequest(request, "metadata", "uid or resourceVersion is missing");
  }
  request.group = object.TextAt({"metadata", "labels", kProvisioningGroupLabel});
  request.deleting = object.At({"metadata", "deletionTimestamp"}) != nullptr;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, object.TextAt({"metadata", "creationTimestamp"}),
                       &request.creation, &error)) {
    return WrongRequest(request, "metadata.creationTimestamp", error);
  }
  request.recorded_places = object.TextAt({"metadata", "annotations", kPlacesAnnotation});
  request.places = request.recorded_places;
  if (request.places.find_first_not_of(".+-") != std::string::npos) {
    return WrongRequest(request, absl::StrCat("metadata.annotations[", kPlacesAnnotation, "]"),
                        "has other characters than \".+-\"");
  }
  int64_t count = 0;
  const Json* const sets = object.At({"spec", "podSets"});
  const bool has_sets = sets != nullptr && sets->is_array() && sets->items().size() == 1;
  if (!has_sets || !absl::SimpleAtoi(sets->items()[0].TextAt({"count"}), &count)) {
    return WrongRequest(request, "spec.podSets", "is not one with a count");
  }
  if (count != static_cast<int64_t>(request.places.size())) {
    return WrongRequest(
        request, absl::StrCat("metadata.annotations[", kPlacesAnnotation, "]"),
        absl::StrCat("has ", request.places.size(), " places, and the count is ", count));
  }
  request.ordered_by =
      absl::StrSplit(object.TextAt({"metadata", "annotations", kOrderedByAnnotation}), ',');
  request.ordered_by.resize(request.places.size());
  ReadStage(object, request);
  return request;
}

std::string PlaceName(absl::string_view request, size_t place) {
  return absl::StrCat(request, "/", place);
}

std::string PlaceId(absl::string_view request, size_t place) {
  return absl::StrCat(kBoughtPlacePrefix, PlaceName(request, place));
}

std::optional<std::pair<std::string, size_t>> ParsePlaceName(absl::string_view text) {
  const size_t slash = text.rfind('/');
  size_t place = 0;
  if (slash == absl::string_view::npos || slash == 0) return std::nullopt;
  if (!absl::SimpleAtoi(text.substr(slash + 1), &place)) return std::nullopt;
  return std::pair(std::string(text.substr(0, slash)), place);
}

std::optional<std::pair<std::string, size_t>> ParsePlaceId(absl::string_view id) {
  if (!absl::StartsWith(id, kBoughtPlacePrefix)) return std::nullopt;
  return ParsePlaceName(id.substr(kBoughtPlacePrefix.size()));
}

MachinePod MakeMachinePod(const model::ProvisioningSettings& settings,
                          const model::ProvisioningGroup& group, const model::Node& node) {
  JsonWriter spec;
  WritePodSpec(spec, group, node);
  const std::string text = spec.Take();
  MachinePod pod;
  pod.name = absl::StrCat("fairlead-", group.name, "-", StableHash().Add(text).Hex());
  JsonWriter json;
  json.BeginObject().Field("apiVersion", "v1").Field("kind", "PodTemplate");
  json.Key("metadata").BeginObject().Field("name", pod.name);
  WriteMadeBy(json, settings, group);
  json.EndObject().Key("template").BeginObject().Key("metadata").BeginObject().EndObject();
  json.Key("spec").Raw(text).EndObject().EndObject();
  pod.body = json.Take();
  return pod;
}

std::string RequestName(absl::string_view token) { return absl::StrCat("fairlead-", token); }

std::string MakeRequestBody(const model::ProvisioningSettings& settings,
                            const model::ProvisioningGroup& group, const std::string& pod_template,
                            const Increase& increase) {
  JsonWriter json;
  json.BeginObject().Field("apiVersion", "autoscaling.x-k8s.io/v1");
  json.Field("kind", "ProvisioningRequest");
  json.Key("metadata").BeginObject().Field("name", RequestName(increase.token));
  WriteMadeBy(json, settings, group);
  json.Key("annotations").BeginObject();
  json.Field(kPlacesAnnotation, std::string(static_cast<size_t>(increase.delta), '.'));
  json.Field(kOrderedByAnnotation,
             absl::StrJoin(increase.requests, ",", [](std::string* out, const Increase::For& of) {
               absl::StrAppend(out, of.name);
             }));
  json.EndObject().Key("ownerReferences").BeginArray();
  for (const Increase::For& request : increase.requests) {
    json.BeginObject().Field("apiVersion", "fairlead.dev/v1alpha1").Field("kind", "NodeRequest");
    json.Field("name", request.name).Field("uid", request.uid).EndObject();
  }
  json.EndArray().EndObject().Key("spec").BeginObject();
  json.Field("provisioningClassName", settings.class_name);
  json.Key("podSets").BeginArray().BeginObject().Key("count").Int(increase.delta);
  json.Key("podTemplateRef").BeginObject().Field("name", pod_template).EndObject();
  json.EndObject().EndArray();
  if (!settings.parameters.empty()) {
    json.Key("parameters").BeginObject();
    for (const auto& [key, value] : settings.parameters) json.Field(key, value);
    json.EndObject();
  }
  return json.EndObject().EndObject().Take();
}

}  // namespace fairlead::hook
