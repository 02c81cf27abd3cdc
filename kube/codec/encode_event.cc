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

// "{object}.{hash}": equal events get equal names, so a retried POST is a 409 and not a second
// event. The object's name is for people; a cut name must still end in an alphanumeric.
std::string EventName(const model::EmitEvent& event, absl::string_view note) {
  const std::string hash = StableHash().Add(event.uid).Add(event.reason).Add(note).Hex();
  absl::string_view name = absl::string_view(event.name).substr(0, kMaxNameBytes);
  while (!name.empty() && (name.back() == '.' || name.back() == '-')) name.remove_suffix(1);
  return name.empty() ? hash : absl::StrCat(name, ".", hash);
}

}  // namespace

EncodedWrite EncodeEvent(const model::EmitEvent& event, absl::string_view reporting_controller,
                         absl::string_view host, absl::Time request_time) {
  const absl::string_view ns = event.ns.empty() ? "default" : absl::string_view(event.ns);
  const std::string note = TruncateUtf8(event.note, kMaxMessageBytes);
  JsonWriter json;
  json.BeginObject().Field("apiVersion", "events.k8s.io/v1").Field("kind", "Event");
  json.Key("metadata").BeginObject();
  json.Field("name", EventName(event, note)).Field("namespace", ns).EndObject();
  json.Field("eventTime", FormatMicros(request_time));
  json.Field("reportingController", reporting_controller);
  json.Field("reportingInstance", TruncateUtf8(host, kMaxWordBytes));
  json.Field("action", model::TraitsOf(event.about).event_action);
  json.Field("reason", TruncateUtf8(event.reason, kMaxWordBytes));
  json.Key("regarding").BeginObject().Field("apiVersion", ApiVersion(event.about));
  json.Field("kind", model::KindName(event.about)).FieldUnlessEmpty("namespace", event.ns);
  json.Field("name", event.name).FieldUnlessEmpty("uid", event.uid).EndObject();
  json.Field("note", note).Field("type", event.warning ? "Warning" : "Normal").EndObject();
  return {"POST", absl::StrCat("/apis/events.k8s.io/v1/namespaces/", EscapeSegment(ns), "/events"),
          kJson, json.Take()};
}

}  // namespace fairlead::kube
