#include "kube/leader/lease_record.h"

#include <simdjson.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/strings.h"

namespace fairlead::kube {
namespace {

std::string Quote(absl::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      absl::StrAppend(&out, "\\", absl::string_view(&c, 1));
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppend(&out, absl::StrFormat("\\u%04x", static_cast<int>(c)));
    } else {
      out.push_back(c);
    }
  }
  return out + "\"";
}

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

std::string Spec(const LeaseRecord& record) {
  std::string spec = absl::StrCat("{\"holderIdentity\":", Quote(record.holder),
                                  ",\"leaseDurationSeconds\":", record.duration_s,
                                  ",\"leaseTransitions\":", record.transitions);
  if (!record.acquire_time.empty()) {
    absl::StrAppend(&spec, ",\"acquireTime\":", Quote(record.acquire_time));
  }
  if (!record.renew_time.empty()) {
    absl::StrAppend(&spec, ",\"renewTime\":", Quote(record.renew_time));
  }
  return spec + "}";
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

std::string FormatMicroTime(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time, absl::UTCTimeZone());
}

std::string EncodeNewLease(absl::string_view ns, absl::string_view name,
                           const LeaseRecord& record) {
  return absl::StrCat("{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",",
                      "\"metadata\":{\"namespace\":", Quote(ns), ",\"name\":", Quote(name),
                      "},\"spec\":", Spec(record), "}");
}

std::string EncodeLeasePatch(const LeaseRecord& record) {
  return absl::StrCat("{\"metadata\":{\"resourceVersion\":", Quote(record.resource_version),
                      "},\"spec\":", Spec(record), "}");
}

}  // namespace fairlead::kube
