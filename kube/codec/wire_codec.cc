#include "kube/codec/wire_codec.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kube/codec/wire_reader.h"

namespace fairlead::kube::wire {
namespace {

constexpr absl::string_view kMagic("k8s\0", 4);

// runtime.Unknown, the envelope of a whole body.
struct Envelope {
  absl::string_view kind;
  absl::string_view raw;
};

bool ReadEnvelope(absl::string_view body, Envelope& out) {
  if (!HasMagic(body)) return false;
  WireReader r(body.substr(kMagic.size()));
  while (r.Next()) {
    if (r.field() == 1) {
      WireReader type(r.Bytes());
      while (type.Next()) {
        if (type.field() == 2) out.kind = type.Bytes();
      }
      r.Check(type.ok());
    } else if (r.field() == 2) {
      out.raw = r.Bytes();
    }
  }
  return r.ok();
}

absl::Status Malformed(model::Kind kind, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("malformed protobuf of ", model::KindName(kind), ": ", what));
}

// The raw message of an enveloped `wanted`.
absl::StatusOr<absl::string_view> Open(model::Kind kind, absl::string_view wanted,
                                       absl::string_view body) {
  Envelope envelope;
  if (!ReadEnvelope(body, envelope)) return Malformed(kind, "no valid envelope");
  if (envelope.kind != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a ", wanted, ", got a ", Quoted(envelope.kind)));
  }
  return envelope.raw;
}

bool ReadListMeta(absl::string_view bytes, ListPage& out) {
  WireReader r(bytes);
  while (r.Next()) {
    if (r.field() == 2) out.resource_version = r.String();
    if (r.field() == 3) out.continue_token = r.String();
  }
  return r.ok();
}

// By the sizes of the first ones. Counting them all would read the list twice from memory. At most
// as much memory as the list has is reserved, whatever its items are like.
size_t EstimateItems(absl::string_view list) {
  constexpr size_t kFirst = 16;
  size_t count = 0, bytes = 0;
  WireReader r(list);
  while (count < kFirst && r.Next()) {
    if (r.field() != 2) continue;
    bytes += r.Bytes().size();
    ++count;
  }
  if (count < kFirst) return count;
  const size_t expected = list.size() / std::max<size_t>(bytes / count, 1);
  return std::min(expected + expected / 32, list.size() / sizeof(Object) + kFirst);
}

bool ReadStatus(absl::string_view bytes, ApiStatus& out) {
  WireReader r(bytes);
  while (r.Next()) {
    switch (r.field()) {
      case 3:
        out.message = r.String();
        break;
      case 4:
        out.reason = r.String();
        break;
      case 5: {  // details{causes=4{message=2}, retryAfterSeconds=5}
        WireReader details(r.Bytes());
        while (details.Next()) {
          if (details.field() == 5) out.retry_after = absl::Seconds(details.Int32());
          if (details.field() != 4) continue;
          WireReader cause(details.Bytes());
          while (cause.Next()) {
            if (cause.field() != 2) continue;
            absl::StrAppend(&out.causes, out.causes.empty() ? "" : "; ", cause.Bytes());
          }
          details.Check(cause.ok());
        }
        r.Check(details.ok());
        break;
      }
      case 6:
        out.code = r.Int32();
        break;
      default:
        break;
    }
  }
  return r.ok();
}

// Reads a bookmark, which has only metadata.
bool ReadBookmark(absl::string_view object, WatchEvent& out) {
  WireReader r(object);
  while (r.Next()) {
    if (r.field() != 1) continue;
    WireReader meta(r.Bytes());
    while (meta.Next()) {
      if (meta.field() == 6) out.resource_version = meta.String();
      if (meta.field() == 12) {
        MapEntry entry;
        meta.Check(ReadMapEntry(meta.Bytes(), entry));
        if (entry.key == "k8s.io/initial-events-end") {
          out.initial_events_end = entry.value == "true";
        }
      }
    }
    r.Check(meta.ok());
  }
  return r.ok();
}

// WatchEvent{type=1, object=2{raw=1}}.
bool ReadFrame(absl::string_view frame, absl::string_view& type, absl::string_view& object) {
  WireReader r(frame);
  while (r.Next()) {
    if (r.field() == 1) type = r.Bytes();
    if (r.field() == 2) {
      WireReader extension(r.Bytes());
      while (extension.Next()) {
        if (extension.field() == 1) object = extension.Bytes();
      }
      r.Check(extension.ok());
    }
  }
  return r.ok();
}

}  // namespace

namespace {

// Reads the object as the alternative `kIndex`, if the server sends that as protobuf.
template <size_t kIndex>
bool ReadAs(absl::string_view bytes, Object& out, model::TextPool* keys) {
  using T = std::variant_alternative_t<kIndex, Object>;
  constexpr bool kHasReader = requires(T& object) { Read(bytes, object, keys); };
  static_assert(kHasReader == HasProtobuf(model::KindOf<T>()));
  if constexpr (kHasReader) {
    return Read(bytes, out.emplace<kIndex>(), keys);
  } else {
    return false;
  }
}

template <size_t... kIndex>
constexpr auto MakeReaders(std::index_sequence<kIndex...> /*indices*/) {
  return std::array{&ReadAs<kIndex>...};
}
constexpr auto kReaders = MakeReaders(std::make_index_sequence<std::variant_size_v<Object>>());

}  // namespace

bool ReadObject(model::Kind kind, absl::string_view bytes, Object& out, model::TextPool* keys) {
  return kReaders[static_cast<size_t>(kind)](bytes, out, keys);
}

bool HasMagic(absl::string_view body) { return absl::StartsWith(body, kMagic); }

absl::StatusOr<ListPage> DecodeList(model::Kind kind, absl::string_view body) {
  absl::StatusOr<absl::string_view> raw =
      Open(kind, absl::StrCat(model::KindName(kind), "List"), body);
  if (!raw.ok()) return raw.status();
  ListPage page;
  page.items.reserve(EstimateItems(*raw));
  model::TextPool keys;  // of labels: the same for most items of a list
  WireReader r(*raw);
  while (r.Next()) {
    if (r.field() == 1) r.Check(ReadListMeta(r.Bytes(), page));
    if (r.field() == 2) r.Check(ReadObject(kind, r.Bytes(), page.items.emplace_back(), &keys));
  }
  if (!r.ok()) return Malformed(kind, absl::StrCat("list item ", page.items.size()));
  return page;
}

absl::StatusOr<Object> DecodeObject(model::Kind kind, absl::string_view body) {
  absl::StatusOr<absl::string_view> raw = Open(kind, model::KindName(kind), body);
  if (!raw.ok()) return raw.status();
  Object object;
  if (!ReadObject(kind, *raw, object)) return Malformed(kind, "object");
  return object;
}

bool DecodeStatus(absl::string_view body, ApiStatus& out) {
  Envelope envelope;
  return ReadEnvelope(body, envelope) && envelope.kind == "Status" && ReadStatus(envelope.raw, out);
}

absl::Status DecodeWatchEvent(model::Kind kind, absl::string_view frame, WatchEvent& out) {
  absl::string_view type;
  absl::string_view body;
  if (!ReadFrame(frame, type, body)) return Malformed(kind, "watch frame");
  if (type == "ERROR") {
    out.type = WatchEventType::kError;
    if (!DecodeStatus(body, out.error)) return Malformed(kind, "Status of a watch error");
    return absl::OkStatus();
  }
  absl::StatusOr<absl::string_view> raw = Open(kind, model::KindName(kind), body);
  if (!raw.ok()) return raw.status();
  if (type == "BOOKMARK") {
    out.type = WatchEventType::kBookmark;
    if (!ReadBookmark(*raw, out)) return Malformed(kind, "bookmark");
    return absl::OkStatus();
  }
  if (type == "ADDED") {
    out.type = WatchEventType::kAdded;
  } else if (type == "MODIFIED") {
    out.type = WatchEventType::kModified;
  } else if (type == "DELETED") {
    out.type = WatchEventType::kDeleted;
  } else {
    return Malformed(kind, absl::StrCat("watch event of type ", Quoted(type)));
  }
  if (!ReadObject(kind, *raw, out.object.emplace())) return Malformed(kind, "watched object");
  out.resource_version = MetaOf(*out.object).resource_version;
  return absl::OkStatus();
}

}  // namespace fairlead::kube::wire
