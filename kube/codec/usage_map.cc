// The ConfigMap that keeps the usage of queues across restarts (core/usage_store.h).
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "kube/codec/encode_parts.h"
#include "kube/codec/json_reader.h"
#include "kube/transport/http.h"

namespace fairlead::kube {
namespace {

constexpr char kUsageKey[] = "usage";

}  // namespace

std::string UsageMapPath(absl::string_view ns, absl::string_view name) {
  return absl::StrCat("/api/v1/namespaces/", EscapeSegment(ns), "/configmaps/",
                      EscapeSegment(name));
}

EncodedWrite EncodeStoreUsage(const model::StoreUsage& action) {
  JsonWriter json;
  json.BeginObject().Field("apiVersion", "v1").Field("kind", "ConfigMap");
  json.Key("metadata").BeginObject().Field("name", action.name).Field("namespace", action.ns);
  json.EndObject().Key("data").BeginObject().Field(kUsageKey, action.text).EndObject();
  json.EndObject();
  return {"PATCH",
          absl::StrCat(UsageMapPath(action.ns, action.name), "?fieldManager=fairlead&force=true"),
          kApplyPatch, json.Take()};
}

absl::StatusOr<std::string> DecodeStoredUsage(absl::string_view body) {
  std::string text;
  const FieldPath root;
  FAIRLEAD_RETURN_IF_ERROR(ReadJson(body, [&](JsonReader& reader, JsonValue value) {
    reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
      if (key != "data") return;
      const FieldPath data = root.Field(key);
      reader.Fields(v, data, [&](absl::string_view name, JsonValue item) {
        if (name == kUsageKey) reader.String(item, data.Key(name), text);
      });
    });
  }));
  return text;
}

}  // namespace fairlead::kube
