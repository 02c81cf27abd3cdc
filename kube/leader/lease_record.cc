#include "kube/leader/lease_record.h"

#include <simdjson.h>

#include "absl/strings/str_cat.h"
#include "base/json_writer.h"
#include "base/strings.h"

namespace fairlead::kube {
namespace {

std::string Text(const simdjson::dom::element& from, const char* pointer) {
  std::string_view text;
  if (from.at_pointer(pointer).get(text) != simdjson::SUCCESS) return "";
  return std::string(text);
}

int64_t Number(const simdjson::dom::element& from, const char* pointer) {
  int64_t number = 0;
  if (from.at_pointer(pointer).get(number) != simdjson::SUCCESS) return 0;
  return number;
}

void WriteSpec(JsonWriter& json, const LeaseRecord& record) {
  json.Key("spec").BeginObject().Field("holderIdentity", record.holder);
  json.Key("leaseDurationSeconds").Int(record.duration_s);
  json.Key("leaseTransitions").Int(record.transitions);
  json.FieldUnlessEmpty("acquireTime", record.acquire_time);
  json.FieldUnlessEmpty("renewTime", record.renew_time);
  json.EndObject();
}

}  // namespace

absl::StatusOr<LeaseRecord> ParseLease(absl::string_view json) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (const auto error = parser.parse(json.data(), json.size()).get(root)) {
    return absl::InvalidArgumentError(
        absl::StrCat("Lease: not JSON: ", simdjson::error_message(error)));
  }
  if (Text(root, "/kind") != "Lease") {
    return absl::InvalidArgumentError(absl::StrCat("Lease: field kind is ", Text(root, "/kind")));
  }
  LeaseRecord record;
  record.resource_version = Text(root, "/metadata/resourceVersion");
  if (record.resource_version.empty()) {
    return absl::InvalidArgumentError("Lease: field metadata.resourceVersion is missing");
  }
  record.holder = Text(root, "/spec/holderIdentity");
  record.duration_s = Number(root, "/spec/leaseDurationSeconds");
  record.acquire_time = Text(root, "/spec/acquireTime");
  record.renew_time = Text(root, "/spec/renewTime");
  record.transitions = Number(root, "/spec/leaseTransitions");
  return record;
}

std::string EncodeNewLease(absl::string_view ns, absl::string_view name,
                           const LeaseRecord& record) {
  JsonWriter json;
  json.BeginObject().Field("apiVersion", "coordination.k8s.io/v1").Field("kind", "Lease");
  json.Key("metadata").BeginObject().Field("namespace", ns).Field("name", name).EndObject();
  WriteSpec(json, record);
  return json.EndObject().Take();
}

std::string EncodeLeasePatch(const LeaseRecord& record) {
  JsonWriter json;
  json.BeginObject().Key("metadata").BeginObject();
  json.Field("resourceVersion", record.resource_version).EndObject();
  WriteSpec(json, record);
  return json.EndObject().Take();
}

}  // namespace fairlead::kube
