// Events (events.k8s.io/v1). Limits of the server: note 1024 bytes, reason, action and
// reportingInstance 128; an event about a cluster-scoped object lives in namespace "default".
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "kube/codec/encode_parts.h"
#include "kube/codec/format_time.h"
#include "kube/transport/http.h"

namespace fairlead::kube {
namespace {

constexpr size_t kMaxWordBytes = 128;
constexpr size_t kMaxNameBytes = 200;  // of 253; the rest is for the hash

// "{object}.{hash}": one observation has one name, so a retried POST is a 409 and not a second
// event. The object's name is for people; a cut name must still end in an alphanumeric.
std::string EventName(const model::EmitEvent& event, absl::Time first_time) {
  const std::string hash = StableHash()
                               .Add(event.uid)
                               .Add(event.reason)
                               .Add(event.note)
                               .Add(event.related->uid)
                               .Add(absl::ToUnixMicros(first_time))
                               .Hex();
  absl::string_view name = absl::string_view(event.name).substr(0, kMaxNameBytes);
  while (!name.empty() && (name.back() == '.' || name.back() == '-')) name.remove_suffix(1);
  return name.empty() ? hash : absl::StrCat(name, ".", hash);
}

absl::string_view NamespaceOf(const model::EmitEvent& event) {
  return event.ns.empty() ? absl::string_view("default") : absl::string_view(event.ns);
}

std::string EventsPath(const model::EmitEvent& event) {
  return absl::StrCat("/apis/events.k8s.io/v1/namespaces/", EscapeSegment(NamespaceOf(event)),
                      "/events");
}

const char* ActionName(const model::EmitEvent& event) {
  switch (event.action) {
    case model::EventAction::kOfKind:
      break;
    case model::EventAction::kScheduling:
      return "Scheduling";
    case model::EventAction::kBinding:
      return "Binding";
    case model::EventAction::kPreempting:
      return "Preempting";
    case model::EventAction::kEvicting:
      return "Evicting";
  }
  return model::TraitsOf(event.about).event_action;
}

void AddReference(JsonWriter& json, absl::string_view key, model::Kind kind, absl::string_view ns,
                  absl::string_view name, absl::string_view uid) {
  json.Key(key).BeginObject().Field("apiVersion", ApiVersion(kind));
  json.Field("kind", model::KindName(kind)).FieldUnlessEmpty("namespace", ns);
  json.Field("name", name).FieldUnlessEmpty("uid", uid).EndObject();
}

}  // namespace

EncodedWrite EncodeEvent(const model::EmitEvent& event, absl::string_view reporting_controller,
                         absl::string_view host, absl::Time first_time) {
  JsonWriter json;
  json.BeginObject().Field("apiVersion", "events.k8s.io/v1").Field("kind", "Event");
  json.Key("metadata").BeginObject().Field("name", EventName(event, first_time));
  json.Field("namespace", NamespaceOf(event)).EndObject();
  json.Field("eventTime", FormatMicros(first_time));
  const absl::string_view reporter =
      event.reporter.empty() ? reporting_controller : absl::string_view(event.reporter);
  json.Field("reportingController", TruncateUtf8(reporter, kMaxWordBytes));
  json.Field("reportingInstance", TruncateUtf8(host, kMaxWordBytes));
  json.Field("action", ActionName(event));
  json.Field("reason", TruncateUtf8(event.reason, kMaxWordBytes));
  AddReference(json, "regarding", event.about, event.ns, event.name, event.uid);
  if (const model::ObjectRef& related = *event.related; !related.name.empty()) {
    AddReference(json, "related", related.kind, related.ns, related.name, related.uid);
  }
  json.Field("note", TruncateUtf8(event.note, kMaxMessageBytes));
  json.Field("type", event.warning ? "Warning" : "Normal").EndObject();
  return {"POST", EventsPath(event), kJson, json.Take()};
}

EncodedWrite EncodeEventSeries(const model::EmitEvent& event, absl::Time first_time, int64_t count,
                               absl::Time last_time) {
  JsonWriter json;
  json.BeginObject().Key("series").BeginObject().Key("count").Int(count);
  json.Field("lastObservedTime", FormatMicros(last_time)).EndObject().EndObject();
  return {"PATCH",
          absl::StrCat(EventsPath(event), "/", EscapeSegment(EventName(event, first_time))),
          kMergePatch, json.Take()};
}

}  // namespace fairlead::kube
