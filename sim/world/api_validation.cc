#include "sim/world/api_validation.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "sim/world/api_json.h"
#include "sim/world/api_schema.h"

namespace fairlead::sim::world {
namespace {

constexpr size_t kMaxNameBytes = 253, kMaxLabelBytes = 63;
constexpr size_t kMaxAnnotationsBytes = 256 * 1024;
constexpr size_t kMaxDataBytes = 1024 * 1024;
constexpr char kSubdomain[] =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', "
    "and must start and end with an alphanumeric character";
constexpr char kLabelValue[] =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character";
constexpr char kQualifiedName[] =
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with "
    "an alphanumeric character";

using Fields = std::vector<InvalidField>;

void Invalid(const std::string& field, const std::string& value, absl::string_view why,
             Fields& out) {
  out.push_back(
      {field, "FieldValueInvalid", absl::StrCat("Invalid value: ", Dump(Json(value)), ": ", why)});
}

bool IsSubdomain(absl::string_view name) {
  const auto plain = [](char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c); };
  if (name.empty() || name.size() > kMaxNameBytes || !plain(name.front()) || !plain(name.back())) {
    return false;
  }
  for (size_t i = 0; i < name.size(); ++i) {
    if (!plain(name[i]) && name[i] != '-' && name[i] != '.') return false;
    if (name[i] == '.' && (!plain(name[i - 1]) || !plain(name[i + 1]))) return false;
  }
  return true;
}

// A label's value, or the part of a key after its prefix.
bool IsLabelText(absl::string_view text) {
  if (text.size() > kMaxLabelBytes || text.empty()) return text.empty();
  if (!absl::ascii_isalnum(text.front()) || !absl::ascii_isalnum(text.back())) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  });
}

bool IsQualifiedName(absl::string_view key) {
  const size_t slash = key.find('/');
  if (slash == absl::string_view::npos) return !key.empty() && IsLabelText(key);
  const absl::string_view name = key.substr(slash + 1);
  return IsSubdomain(key.substr(0, slash)) && !name.empty() && IsLabelText(name);
}

void CheckLabels(const Json& labels, Fields& out) {
  for (auto it = labels.begin(); it != labels.end(); ++it) {
    if (!IsQualifiedName(it.key())) Invalid("metadata.labels", it.key(), kQualifiedName, out);
    const std::string value = it->is_string() ? it->get<std::string>() : Dump(*it);
    if (!it->is_string() || !IsLabelText(value)) {
      Invalid("metadata.labels", value, kLabelValue, out);
    }
  }
}

void CheckAnnotations(const Json& annotations, Fields& out) {
  size_t bytes = 0;
  for (auto it = annotations.begin(); it != annotations.end(); ++it) {
    if (!IsQualifiedName(absl::AsciiStrToLower(it.key()))) {
      Invalid("metadata.annotations", it.key(), kQualifiedName, out);
    }
    if (!it->is_string()) Invalid("metadata.annotations", Dump(*it), "must be a string", out);
    bytes += it.key().size() + (it->is_string() ? it->get_ref<const std::string&>().size() : 0);
  }
  if (bytes > kMaxAnnotationsBytes) {
    out.push_back(
        {"metadata.annotations", "FieldValueTooLong",
         absl::StrCat("Too long: may not be more than ", kMaxAnnotationsBytes, " bytes")});
  }
}

void CheckMetadata(const Json* old, const Json& object, Fields& out) {
  const auto changed = [&](const char* field) -> const Json* {
    const Json* const now = At(object, {"metadata", field});
    const Json* const before = old == nullptr ? nullptr : At(*old, {"metadata", field});
    const bool same = now == nullptr || (before != nullptr && *before == *now);
    return same || !now->is_object() ? nullptr : now;
  };
  if (const Json* const labels = changed("labels")) CheckLabels(*labels, out);
  if (const Json* const annotations = changed("annotations")) CheckAnnotations(*annotations, out);
  if (old != nullptr) return;
  const std::string name = TextAt(object, {"metadata", "name"});
  if (name.empty()) {
    out.push_back({"metadata.name", "FieldValueRequired",
                   "Required value: name or generateName is required"});
  } else if (!IsSubdomain(name)) {
    Invalid("metadata.name", name, kSubdomain, out);
  }
}

// Of what an event says, a write may change the series alone.
void CheckEventChange(const Json& old, const Json& event, Fields& out) {
  for (const char* field : {"regarding", "related", "reason", "note", "type", "action", "eventTime",
                            "reportingController", "reportingInstance"}) {
    const Json* const before = At(old, {field});
    const Json* const after = At(event, {field});
    const bool same = before == nullptr || after == nullptr ? before == after : *before == *after;
    if (!same) Invalid(field, after == nullptr ? "" : Dump(*after), "field is immutable", out);
  }
  const Json* const series = At(event, {"series"});
  if (series == nullptr || (At(old, {"series"}) != nullptr && *At(old, {"series"}) == *series)) {
    return;
  }
  const Json* const count = At(*series, {"count"});
  if (count == nullptr || !count->is_number_integer() || count->get<int64_t>() < 2) {
    Invalid("series.count", count == nullptr ? "" : Dump(*count), "should be at least 2", out);
  }
  if (TextAt(*series, {"lastObservedTime"}).empty()) {
    out.push_back({"series.lastObservedTime", "FieldValueRequired", "Required value"});
  }
}

void CheckEvent(const Json* old, const Json& event, Fields& out) {
  if (old != nullptr) CheckEventChange(*old, event, out);
  const auto limit = [&](const char* field, size_t bytes) {
    if (TextAt(event, {field}).size() <= bytes) return;
    out.push_back(
        {field, "FieldValueInvalid", absl::StrCat("can have at most ", bytes, " characters")});
  };
  limit("note", 1024);
  limit("reason", 128);
  limit("action", 128);
  limit("reportingInstance", 128);
  for (const char* field : {"reportingController", "reportingInstance", "action", "reason"}) {
    if (TextAt(event, {field}).empty()) {
      out.push_back({field, "FieldValueRequired", "Required value"});
    }
  }
  const std::string ns = TextAt(event, {"regarding", "namespace"});
  if ((ns.empty() ? "default" : ns) != TextAt(event, {"metadata", "namespace"})) {
    Invalid("involvedObject.namespace", ns, "does not match event.namespace", out);
  }
}

void CheckLease(const Json& lease, Fields& out) {
  const Json* const seconds = At(lease, {"spec", "leaseDurationSeconds"});
  if (seconds != nullptr && seconds->is_number_integer() && seconds->get<int64_t>() <= 0) {
    Invalid("spec.leaseDurationSeconds", Dump(*seconds), "must be greater than 0", out);
  }
}

void CheckConfigMap(const Json& map, Fields& out) {
  const Json* const data = At(map, {"data"});
  if (data == nullptr || !data->is_object()) return;
  size_t bytes = 0;
  for (auto it = data->begin(); it != data->end(); ++it) {
    const std::string& key = it.key();
    const bool valid = !key.empty() && key.size() <= kMaxNameBytes && key != "." && key != ".." &&
                       std::all_of(key.begin(), key.end(), [](char c) {
                         return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
                       });
    if (!valid) {
      Invalid(absl::StrCat("data[", key, "]"), key,
              "a valid config key must consist of "
              "alphanumeric characters, '-', '_' or '.'",
              out);
    }
    bytes += key.size() + (it->is_string() ? it->get_ref<const std::string&>().size() : 0);
  }
  if (bytes > kMaxDataBytes) {
    out.push_back({"", "FieldValueTooLong",
                   absl::StrCat("Too long: may not be more than ", kMaxDataBytes, " bytes")});
  }
}

bool Has(const Json* list, const Json& item) {
  return list != nullptr && list->is_array() &&
         std::find(list->begin(), list->end(), item) != list->end();
}

// What the status of a claim may become.
void CheckClaimStatus(const Json& old, const Json& claim, Fields& out) {
  const Json* const reserved = At(claim, {"status", "reservedFor"});
  const Json* const allocation = At(claim, {"status", "allocation"});
  const Json* const before = At(old, {"status", "allocation"});
  constexpr char kField[] = "status.reservedFor";
  if (reserved != nullptr && reserved->is_array() && !reserved->empty()) {
    if (reserved->size() > 256) {
      out.push_back(
          {kField, "FieldValueTooMany",
           absl::StrCat("Too many: ", reserved->size(), ": must have at most 256 items")});
    }
    const bool deleting = At(claim, {"metadata", "deletionTimestamp"}) != nullptr;
    const Json* const former = At(old, {"status", "reservedFor"});
    if (allocation == nullptr) {
      out.push_back({kField, "FieldValueForbidden",
                     "Forbidden: may not be specified when `allocated` is not set"});
    } else if (deleting && !std::all_of(reserved->begin(), reserved->end(),
                                        [&](const Json& entry) { return Has(former, entry); })) {
      out.push_back({kField, "FieldValueForbidden",
                     "Forbidden: new entries may not be added while `deallocationRequested` or "
                     "`deletionTimestamp` are set"});
    }
  }
  if (before != nullptr && allocation != nullptr && *before != *allocation) {
    out.push_back({"status.allocation", "FieldValueInvalid",
                   absl::StrCat("Invalid value: ", Dump(*allocation), ": field is immutable")});
  }
}

}  // namespace

ApiError CheckFields(const ResourceRow& row, const Json* old, const Json& object) {
  Fields wrong;
  CheckMetadata(old, object, wrong);
  if (row.type == ResourceType::kEvents) CheckEvent(old, object, wrong);
  if (row.type == ResourceType::kLeases) CheckLease(object, wrong);
  if (row.type == ResourceType::kConfigMaps) CheckConfigMap(object, wrong);
  if (row.type == ResourceType::kResourceClaims && old != nullptr) {
    CheckClaimStatus(*old, object, wrong);
  }
  CheckSchema(row, old, object, wrong);
  if (wrong.empty()) return {};
  return InvalidError(row, TextAt(object, {"metadata", "name"}), wrong);
}

}  // namespace fairlead::sim::world
