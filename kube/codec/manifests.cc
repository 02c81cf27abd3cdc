// DecodeManifests: reads the input of `kubectl apply -f`, for the simulator, the tests and the
// command line.
//
// JSON is recognised by its first character and read by the JSON decoders (a list of 100,000 pods
// is too much for a YAML parser). If that fails the text is read as YAML, of which JSON is a
// subset, so that the error names its place.
#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "document/yaml.h"
#include "kube/codec/encode_parts.h"
#include "kube/codec/json_codec.h"

namespace fairlead::kube {
namespace {

constexpr int kMaxListDepth = 4;  // of kind List within kind List
constexpr char kSpaces[] = " \t\r\n";

struct Header {
  std::string api_version, kind, ns, name;
  std::vector<std::string> items;  // the JSON of each, of a List
  bool is_list = false;
};

absl::Status ReadHeader(absl::string_view document, Header& out) {
  return ReadJson(document, [&](JsonReader& reader, JsonValue root_value) {
    const FieldPath root;
    reader.Fields(root_value, root, [&](absl::string_view key, JsonValue v) {
      const FieldPath at = root.Field(key);
      if (key == "apiVersion") return reader.String(v, at, out.api_version);
      if (key == "kind") return reader.String(v, at, out.kind);
      if (key == "metadata") {
        return reader.Fields(v, at, [&](absl::string_view field, JsonValue item) {
          if (field == "name") reader.String(item, at.Field(field), out.name);
          if (field == "namespace") reader.String(item, at.Field(field), out.ns);
        });
      }
      if (key != "items") return;
      out.is_list = true;
      reader.Items(v, at, [&](size_t i, JsonValue item) {
        if (!reader.Is(item, JsonType::object, at.Item(i))) return;
        simdjson::ondemand::object object;
        std::string_view raw;
        if (reader.Check(item.get_object().get(object)) &&
            reader.Check(object.raw_json().get(raw))) {
          out.items.emplace_back(raw);
        }
      });
    });
    if (!reader.problems().empty()) reader.Fail(reader.problems().Text());
  });
}

// The default of kubectl without --namespace.
void DefaultNamespace(Object& object) {
  std::visit(
      [](auto& typed) {
        if (!typed.meta.ns.empty()) return;
        typed.meta.ns = "default";
        if constexpr (requires { typed.spec.ns; }) typed.spec.ns = typed.meta.ns;
      },
      object);
}

absl::Status AddDocument(absl::string_view document, int list_depth, Manifests& out);

absl::Status AddObject(model::Kind kind, const Header& header, absl::string_view document,
                       Manifests& out) {
  if (header.name.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(header.kind, ": metadata.name is missing"));
  }
  std::string problems;
  absl::StatusOr<Object> object = json::DecodeObject(kind, document, &problems);
  if (!object.ok()) return object.status();
  if (!problems.empty() && InvalidOf(*object) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(header.kind, " ", model::Key(header.ns, header.name), ": ", problems));
  }
  if (model::TraitsOf(kind).is_namespaced) DefaultNamespace(*object);
  out.objects.push_back(*std::move(object));
  return absl::OkStatus();
}

// One JSON object: of a kind of ours, a list of these kinds, or of another kind.
absl::Status AddDocument(absl::string_view document, int list_depth, Manifests& out) {
  Header header;
  FAIRLEAD_RETURN_IF_ERROR(ReadHeader(document, header));
  if (header.kind.empty() || header.api_version.empty()) {
    return absl::InvalidArgumentError("an object needs apiVersion and kind");
  }
  if (header.is_list && absl::EndsWith(header.kind, "List")) {
    if (list_depth >= kMaxListDepth) return absl::InvalidArgumentError("lists nested too deep");
    for (size_t i = 0; i < header.items.size(); ++i) {
      const absl::Status status = AddDocument(header.items[i], list_depth + 1, out);
      if (!status.ok()) {
        return absl::Status(status.code(), absl::StrCat("items[", i, "]: ", status.message()));
      }
    }
    return absl::OkStatus();
  }
  for (model::Kind kind : model::kAllKinds) {
    if (header.kind == model::KindName(kind) && header.api_version == ApiVersion(kind)) {
      return AddObject(kind, header, document, out);
    }
  }
  out.skipped.push_back(
      absl::StrCat(header.api_version, " ", header.kind, " ", model::Key(header.ns, header.name)));
  return absl::OkStatus();
}

// The end of the JSON object at the front of `text`: past its closing brace, or npos.
size_t EndOfObject(absl::string_view text) {
  size_t depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (--depth == 0) return i + 1;
    }
  }
  return absl::string_view::npos;
}

absl::string_view SkipSpaces(absl::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
  return text;
}

// Reads concatenated JSON objects. False if the text is something else; then `out` is unspecified.
bool AddJson(absl::string_view text, Manifests& out) {
  text = SkipSpaces(text);
  while (!text.empty()) {
    const size_t end = text[0] == '{' ? EndOfObject(text) : absl::string_view::npos;
    if (end == absl::string_view::npos || !AddDocument(text.substr(0, end), 0, out).ok()) {
      return false;
    }
    text = SkipSpaces(text.substr(end));
  }
  return true;
}

}  // namespace

absl::StatusOr<Manifests> DecodeManifests(absl::string_view yaml) {
  if (absl::StartsWith(SkipSpaces(yaml), "{")) {
    Manifests manifests;
    if (AddJson(yaml, manifests)) return manifests;
  }
  absl::StatusOr<std::vector<Json>> documents = LoadYaml(yaml);
  if (!documents.ok()) return documents.status();
  Manifests manifests;
  for (const Json& document : *documents) {
    if (document.is_null()) continue;
    const absl::Status status = AddDocument(document.Compact(), 0, manifests);
    if (!status.ok()) {
      const auto [line, column] = document.place();
      return absl::Status(status.code(),
                          absl::StrCat("line ", line, ", column ", column, ": ", status.message()));
    }
  }
  return manifests;
}

}  // namespace fairlead::kube
