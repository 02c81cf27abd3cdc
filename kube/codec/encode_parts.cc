#include "kube/codec/encode_parts.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kube/codec/node_request_names.h"
#include "kube/transport/http.h"
#include "scheduler/model/taint_effect.h"

namespace fairlead::kube {
namespace {

std::string WithSubresource(std::string path, absl::string_view subresource) {
  if (!subresource.empty()) absl::StrAppend(&path, "/", subresource);
  return path;
}

}  // namespace

std::string EscapeSegment(absl::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain && !(c == '.' && text.size() <= 2)) {  // "." and ".." are no names
      out += c;
    } else {
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

std::string NamespacedPath(model::Kind kind, absl::string_view ns, absl::string_view name,
                           absl::string_view subresource) {
  const std::string collection = CollectionPath(kind);
  const size_t slash = collection.rfind('/');
  return WithSubresource(
      absl::StrCat(collection.substr(0, slash), "/namespaces/", EscapeSegment(ns),
                   collection.substr(slash), "/", EscapeSegment(name)),
      subresource);
}

std::string PodPath(absl::string_view ns, absl::string_view name, absl::string_view subresource) {
  return NamespacedPath(model::Kind::kPod, ns, name, subresource);
}

std::string ObjectPath(model::Kind kind, absl::string_view name, absl::string_view subresource) {
  return WithSubresource(absl::StrCat(CollectionPath(kind), "/", EscapeSegment(name)), subresource);
}

std::string PathOf(model::Kind kind, absl::string_view ns, absl::string_view name,
                   absl::string_view subresource) {
  return model::TraitsOf(kind).is_namespaced ? NamespacedPath(kind, ns, name, subresource)
                                             : ObjectPath(kind, name, subresource);
}

absl::string_view ApiVersion(model::Kind kind) { return model::TraitsOf(kind).api_version; }

void WriteUid(JsonWriter& json, absl::string_view uid) {
  if (uid.empty()) return;
  json.Key("metadata").BeginObject().Field("uid", uid).EndObject();
}

void WriteMap(JsonWriter& json, absl::string_view key, const model::StringMap& map) {
  if (map.empty()) return;
  json.Key(key).BeginObject();
  for (const auto& [name, value] : map) json.Field(name, value);
  json.EndObject();
}

void WriteStrings(JsonWriter& json, absl::string_view key, const std::vector<std::string>& values) {
  json.Key(key).BeginArray();
  for (const std::string& value : values) json.String(value);
  json.EndArray();
}

void WriteTaints(JsonWriter& json, absl::string_view key, const std::vector<model::Taint>& taints) {
  json.Key(key).BeginArray();
  for (const model::Taint& taint : taints) {
    json.BeginObject().Field("key", taint.key).FieldUnlessEmpty("value", taint.value);
    json.Field("effect", TaintEffectName(taint.effect)).EndObject();
  }
  json.EndArray();
}

EncodedWrite EncodeDelete(std::string path, absl::string_view uid) {
  JsonWriter json;
  json.BeginObject().Field("apiVersion", "v1").Field("kind", "DeleteOptions");
  if (!uid.empty()) {
    json.Key("preconditions").BeginObject().Field("uid", uid).EndObject();
  }
  json.EndObject();
  return {"DELETE", std::move(path), kJson, json.Take()};
}

}  // namespace fairlead::kube
