#include "kube/codec/json_codec.h"

#include <array>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

namespace fairlead::kube::json {
namespace {

absl::Status Named(model::Kind kind, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(model::KindName(kind), ": ", status.message()));
}

void ReadCauses(JsonReader& reader, JsonValue value, const FieldPath& path, std::string& out) {
  reader.Items(value, path, [&](size_t i, JsonValue item) {
    reader.Fields(item, path.Item(i), [&](absl::string_view key, JsonValue v) {
      if (key == "message") {
        absl::StrAppend(&out, out.empty() ? "" : "; ", reader.Text(v, path.Item(i).Field(key)));
      }
    });
  });
}

void ReadStatus(JsonReader& reader, JsonValue value, ApiStatus& out, bool& is_status) {
  const FieldPath root;
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = root.Field(key);
    if (key == "kind") is_status = reader.Text(v, at) == "Status";
    if (key == "code") out.code = reader.Int32(v, at).value_or(0);
    if (key == "reason") reader.String(v, at, out.reason);
    if (key == "message") reader.String(v, at, out.message);
    if (key == "details") {
      reader.Fields(v, at, [&](absl::string_view field, JsonValue detail) {
        if (field == "retryAfterSeconds") {
          out.retry_after = absl::Seconds(reader.Int32(detail, at.Field(field)).value_or(0));
        }
        if (field == "causes") ReadCauses(reader, detail, at.Field(field), out.causes);
      });
    }
  });
}

void ReadBookmark(JsonReader& reader, JsonValue value, WatchEvent& out) {
  const FieldPath root;
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    if (key != "metadata") return;
    const FieldPath at = root.Field(key);
    reader.Fields(v, at, [&](absl::string_view field, JsonValue item) {
      if (field == "resourceVersion") reader.String(item, at.Field(field), out.resource_version);
      if (field == "annotations") {
        model::StringMap annotations;
        reader.Map(item, at.Field(field), annotations);
        out.initial_events_end = annotations.Get("k8s.io/initial-events-end") == "true";
      }
    });
  });
}

void ReadEventObject(JsonReader& reader, model::Kind kind, absl::string_view type, JsonValue value,
                     WatchEvent& out) {
  if (type == "ERROR") {
    bool is_status = false;
    out.type = WatchEventType::kError;
    ReadStatus(reader, value, out.error, is_status);
    if (reader.ok() && !is_status) reader.Fail("the object of a watch error is no Status");
    return;
  }
  if (type == "BOOKMARK") {
    out.type = WatchEventType::kBookmark;
    return ReadBookmark(reader, value, out);
  }
  if (type == "ADDED") {
    out.type = WatchEventType::kAdded;
  } else if (type == "MODIFIED") {
    out.type = WatchEventType::kModified;
  } else if (type == "DELETED") {
    out.type = WatchEventType::kDeleted;
  } else {
    return reader.Fail(absl::StrCat("watch event of type ", Quoted(type)));
  }
  ReadObject(reader, kind, value, out.object.emplace());
  out.resource_version = MetaOf(*out.object).resource_version;
}

template <size_t... kIndex>
constexpr auto MakeReaders(std::index_sequence<kIndex...> /*indices*/) {
  return std::array{+[](JsonReader& reader, JsonValue value, Object& out) {
    Read(reader, value, out.emplace<kIndex>());
  }...};
}
constexpr auto kReaders = MakeReaders(std::make_index_sequence<std::variant_size_v<Object>>());

}  // namespace

void ReadObject(JsonReader& reader, model::Kind kind, JsonValue value, Object& out) {
  if (!reader.Is(value, JsonType::object, FieldPath())) {
    return reader.Fail(absl::StrCat("a ", model::KindName(kind), " must be an object"));
  }
  kReaders[static_cast<size_t>(kind)](reader, value, out);
}

absl::StatusOr<ListPage> DecodeList(model::Kind kind, absl::string_view body) {
  ListPage page;
  bool has_items = false;
  const absl::Status status = ReadJson(body, [&](JsonReader& reader, JsonValue root_value) {
    const FieldPath root;
    reader.Fields(root_value, root, [&](absl::string_view key, JsonValue v) {
      const FieldPath at = root.Field(key);
      if (key == "kind" && reader.Text(v, at) == "Status") {
        reader.Fail("expected a list, got a Status");
      } else if (key == "metadata") {
        reader.Fields(v, at, [&](absl::string_view field, JsonValue item) {
          if (field == "resourceVersion") reader.String(item, at, page.resource_version);
          if (field == "continue") reader.String(item, at, page.continue_token);
        });
      } else if (key == "items") {
        has_items = true;
        reader.Items(v, at, [&](size_t, JsonValue item) {
          reader.problems().Clear();
          ReadObject(reader, kind, item, page.items.emplace_back());
        });
      }
    });
    // Go writes an empty list as null or []; a body with neither is no list.
    if (reader.ok() && !has_items && page.resource_version.empty()) reader.Fail("not a list");
  });
  if (!status.ok()) return Named(kind, status);
  return page;
}

absl::StatusOr<Object> DecodeObject(model::Kind kind, absl::string_view body, Problems& problems) {
  Object object;
  const absl::Status status = ReadJson(body, [&](JsonReader& reader, JsonValue root) {
    ReadObject(reader, kind, root, object);
    problems = std::move(reader.problems());
  });
  if (!status.ok()) return Named(kind, status);
  return object;
}

absl::StatusOr<Object> DecodeObject(model::Kind kind, absl::string_view body,
                                    std::string* problems) {
  Problems found;
  absl::StatusOr<Object> object = DecodeObject(kind, body, found);
  if (object.ok() && problems != nullptr) *problems = found.Text();
  return object;
}

bool DecodeStatus(absl::string_view body, ApiStatus& out) {
  bool is_status = false;
  ApiStatus status;
  const absl::Status read = ReadJson(body, [&](JsonReader& reader, JsonValue root) {
    ReadStatus(reader, root, status, is_status);
  });
  if (!read.ok() || !is_status) return false;
  out = std::move(status);
  return true;
}

absl::Status DecodeWatchEvent(model::Kind kind, absl::string_view line, WatchEvent& out) {
  std::string type;
  std::string deferred;  // the object, in the unusual case that its type comes later
  bool has_object = false;
  absl::Status status = ReadJson(line, [&](JsonReader& reader, JsonValue root_value) {
    const FieldPath root;
    reader.Fields(root_value, root, [&](absl::string_view key, JsonValue v) {
      if (key == "type") reader.String(v, root.Field(key), type);
      if (key != "object" || !reader.Is(v, JsonType::object, root)) return;
      has_object = true;
      if (!type.empty()) return ReadEventObject(reader, kind, type, v, out);
      simdjson::ondemand::object object;
      std::string_view raw;
      if (reader.Check(v.get_object().get(object)) && reader.Check(object.raw_json().get(raw))) {
        deferred = std::string(raw);
      }
    });
  });
  if (status.ok() && !deferred.empty()) {
    status = ReadJson(deferred, [&](JsonReader& reader, JsonValue root) {
      ReadEventObject(reader, kind, type, root, out);
    });
  }
  if (status.ok() && !has_object) status = absl::InvalidArgumentError("watch event without object");
  return status.ok() ? status : Named(kind, status);
}

}  // namespace fairlead::kube::json
