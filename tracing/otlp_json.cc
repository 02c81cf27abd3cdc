#include "tracing/otlp_json.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json_writer.h"

namespace fairlead::tracing {
namespace {

std::string Hex(uint64_t bits) { return absl::StrCat(absl::Hex(bits, absl::kZeroPad16)); }

std::string UnixNanos(absl::Time time) {
  return absl::StrCat(std::max<int64_t>(0, absl::ToUnixNanos(time)));
}

void AddAttribute(JsonWriter& json, const Attribute& attribute) {
  json.BeginObject().Field("key", attribute.key).Key("value").BeginObject();
  if (const auto* text = std::get_if<std::string>(&attribute.value)) {
    json.Field("stringValue", *text);
  } else if (const auto* number = std::get_if<int64_t>(&attribute.value)) {
    json.Field("intValue", absl::StrCat(*number));
  } else {
    json.Key("boolValue").Bool(std::get<bool>(attribute.value));
  }
  json.EndObject().EndObject();
}

std::string TraceText(const TraceId& trace) {
  return absl::StrCat(Hex(trace.high), Hex(trace.low));
}

// Protobuf's default values are left out.
void AddSpan(JsonWriter& json, const Span& span) {
  json.BeginObject();
  json.Field("traceId", TraceText(span.trace));
  json.Field("spanId", Hex(span.id));
  if (span.parent != 0) json.Field("parentSpanId", Hex(span.parent));
  json.Field("name", span.name).Key("kind").Int(static_cast<int64_t>(span.kind));
  json.Field("startTimeUnixNano", UnixNanos(span.start));
  json.Field("endTimeUnixNano", UnixNanos(std::max(span.start, span.end)));
  if (!span.attributes.empty()) {
    json.Key("attributes").BeginArray();
    for (const Attribute& attribute : span.attributes) AddAttribute(json, attribute);
    json.EndArray();
  }
  if (!span.links.empty()) {
    json.Key("links").BeginArray();
    for (const Link& link : span.links) {
      json.BeginObject().Field("traceId", TraceText(link.trace));
      json.Field("spanId", Hex(link.id)).EndObject();
    }
    json.EndArray();
  }
  if (span.status != StatusCode::kUnset) {
    json.Key("status").BeginObject();
    json.FieldUnlessEmpty("message", span.status_message);
    json.Key("code").Int(static_cast<int64_t>(span.status)).EndObject();
  }
  json.EndObject();
}

}  // namespace

std::string EncodeTraces(const Resource& resource, const std::vector<Span>& spans) {
  JsonWriter json;
  json.BeginObject().Key("resourceSpans").BeginArray().BeginObject();
  json.Key("resource").BeginObject().Key("attributes").BeginArray();
  for (const auto& [key, value] : {std::pair("service.name", &resource.service_name),
                                   {"service.version", &resource.service_version},
                                   {"service.instance.id", &resource.service_instance_id}}) {
    if (!value->empty()) AddAttribute(json, {key, *value});
  }
  json.EndArray().EndObject();
  json.Key("scopeSpans").BeginArray().BeginObject();
  json.Key("scope").BeginObject().Field("name", "fairlead").EndObject();
  json.Key("spans").BeginArray();
  for (const Span& span : spans) AddSpan(json, span);
  json.EndArray().EndObject().EndArray();
  return json.EndObject().EndArray().EndObject().Take();
}

}  // namespace fairlead::tracing
