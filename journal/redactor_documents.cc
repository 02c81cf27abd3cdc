// The part of Redactor that takes texts of known forms apart: configurations, objects of the API,
// metrics.
#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/cron.h"
#include "journal/redactor.h"
#include "scheduler/model/api_names.h"

namespace fairlead::journal {
namespace {

bool IsNumeral(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
}

bool IsMapField(absl::string_view key) {
  for (const absl::string_view field :
       {"labels", "annotations", "nodeSelector", "matchLabels", "parameters"}) {
    if (key == field) return true;
  }
  return false;
}
bool IsAmountsField(absl::string_view key) {
  for (const absl::string_view field :
       {"limits", "requests", "allocatable", "capacity", "overhead"}) {
    if (key == field) return true;
  }
  return false;
}
bool IsTimeField(absl::string_view key) {
  return absl::EndsWith(key, "Timestamp") || absl::EndsWith(key, "Time") ||
         absl::EndsWith(key, "At") || absl::EndsWith(key, "Since");
}
bool IsNumberField(absl::string_view key) {
  return key == "resourceVersion" || key == "transitionID";
}
bool IsVersionField(absl::string_view key) {
  return key == "gitVersion" || key == "kubeletVersion" || key == "containerRuntimeVersion";
}
// "v1.31.2" of "v1.31.2+vendor-7": what follows is the choice of its builder.
absl::string_view PlainVersion(absl::string_view version) {
  return version.substr(0, version.find_first_of("-+~"));
}
// A family of metrics that this program has (docs/metrics.md), or its client library.
bool IsOwnMetric(absl::string_view name) {
  return absl::StartsWith(name, "fairlead_") || absl::StartsWith(name, "kai_queue_") ||
         absl::StartsWith(name, "process_") || absl::StartsWith(name, "scheduler_");
}
// The end of a value of a label: the first quote that no backslash escapes.
size_t QuoteIn(absl::string_view text) {
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at;
    }
  }
  return text.size();
}

}  // namespace

Json Redactor::Configuration(const Json& json) {
  if (json.is_object()) {
    Json out = Json::Object();
    for (const auto& [key, value] : json.fields()) {
      const bool stays = KeptWords::IsConfigurationField(key);
      out.Append(stays ? key : Renamed(key), Configuration(value));
    }
    return out;
  }
  if (json.is_array()) {
    Json out = Json::Array();
    for (const Json& item : json.items()) out.Add(Configuration(item));
    return out;
  }
  if (json.type() != Json::Type::kString) return json;
  const std::string& text = json.text();
  const bool stays = KeptWords::IsAmount(text) || CronSchedule::Parse(text).ok();
  return stays ? json : Json::String(Renamed(text));
}

Json Redactor::Labels(const Json& json) {
  Json out = Json::Object();
  for (const auto& [key, value] : json.fields()) {
    std::string text = value.text();
    LabelValue(key, text);
    out.Append(Renamed(key), Json::String(text));
  }
  return out;
}

// A verdict keeps its code and its numbers.
Json Redactor::ApiLabels(const Json& json) {
  Json out = Labels(json);
  const Json* verdict = json.Find(model::kVerdictAnnotation);
  if (verdict == nullptr) return out;
  const absl::StatusOr<Json> read = Json::Parse(verdict->text());
  if (read.ok()) out.Set(model::kVerdictAnnotation, ApiObject(*read).Compact());
  return out;
}

Json Redactor::Amounts(const Json& json) {
  Json out = Json::Object();
  for (const auto& [key, value] : json.fields()) {
    const bool stays = value.type() != Json::Type::kString || KeptWords::IsAmount(value.text());
    out.Append(Renamed(key), stays ? value : Json::String(Renamed(value.text())));
  }
  return out;
}

Json Redactor::GroupingObject(const Json& json) {
  if (json.is_object()) {
    Json out = Json::Object();
    for (const auto& [key, value] : json.fields()) {
      if (!KeptWords::IsGroupingField(key)) continue;
      const bool is_map = key == "labels" || key == "annotations";
      const bool is_version = key == "resourceVersion" && IsNumeral(value.text());
      out.Append(key, is_map ? Labels(value) : is_version ? value : GroupingObject(value));
    }
    return out;
  }
  if (json.is_array()) {
    Json out = Json::Array();
    for (const Json& item : json.items()) out.Add(GroupingObject(item));
    return out;
  }
  return json.type() == Json::Type::kString ? Json::String(Renamed(json.text())) : json;
}

Json Redactor::ApiField(absl::string_view key, const Json& value) {
  if (!value.is_text()) return ApiObject(value);
  if (IsVersionField(key)) return Json::String(PlainVersion(value.text()));
  const bool stays = (IsNumberField(key) && IsNumeral(value.text())) ||
                     (IsTimeField(key) && KeptWords::IsAmount(value.text()));
  return stays ? value : ApiObject(value);
}

Json Redactor::ApiObject(const Json& json) {
  if (json.is_object()) {
    Json out = Json::Object();
    for (const auto& [key, value] : json.fields()) {
      if (value.is_object() && (IsMapField(key) || IsAmountsField(key))) {
        out.Append(KeptWords::IsApiField(key) ? key : Renamed(key),
                   IsMapField(key) ? ApiLabels(value) : Amounts(value));
      } else {
        out.Append(KeptWords::IsApiField(key) ? key : Renamed(key), ApiField(key, value));
      }
    }
    return out;
  }
  if (json.is_array()) {
    Json out = Json::Array();
    for (const Json& item : json.items()) out.Add(ApiObject(item));
    return out;
  }
  return json.type() == Json::Type::kString ? Json::String(Renamed(json.text())) : json;
}

std::string Redactor::Metrics(absl::string_view text) {
  std::string out;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    absl::string_view left = line;
    if (absl::ConsumePrefix(&left, "# HELP ") || absl::ConsumePrefix(&left, "# TYPE ")) {
      if (IsOwnMetric(left)) absl::StrAppend(&out, line, "\n");
      continue;
    }
    if (!IsOwnMetric(left)) continue;
    while (!left.empty()) {
      const size_t open = left.find("=\"");
      absl::StrAppend(&out, left.substr(0, open));
      if (open == absl::string_view::npos) break;
      left.remove_prefix(open + 2);
      const size_t close = QuoteIn(left);
      const absl::string_view value = left.substr(0, close);
      const bool stays = KeptWords::IsAmount(value) || value == "+Inf";
      absl::StrAppend(&out, "=\"", stays ? std::string(value) : Renamed(value), "\"");
      left.remove_prefix(std::min(close + 1, left.size()));
    }
    absl::StrAppend(&out, "\n");
  }
  return out;
}

}  // namespace fairlead::journal
