#include "kube/codec/codec.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "kube/codec/json_codec.h"
#include "kube/codec/wire_codec.h"
#include "kube/transport/http.h"

namespace fairlead::kube {
namespace {

constexpr size_t kMaxFrameBytes = size_t{16} << 20;
constexpr size_t kLengthBytes = 4;
constexpr size_t kMaxBodyInMessage = 256;

bool IsProtobuf(absl::string_view content_type) {
  return absl::StartsWith(content_type, kProtobuf);
}

absl::Status TooLarge(model::Kind kind, size_t bytes) {
  return absl::InvalidArgumentError(absl::StrCat("watch of ", model::KindName(kind), ": frame of ",
                                                 bytes, " bytes or more, the limit is ",
                                                 kMaxFrameBytes));
}

size_t FrameLength(absl::string_view header) {
  size_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length = length << 8 | static_cast<unsigned char>(header[i]);
  }
  return length;
}

absl::Status AppendEvent(model::Kind kind, bool protobuf, absl::string_view frame,
                         std::vector<WatchEvent>& out) {
  WatchEvent event;
  FAIRLEAD_RETURN_IF_ERROR(protobuf ? wire::DecodeWatchEvent(kind, frame, event)
                                    : json::DecodeWatchEvent(kind, frame, event));
  out.push_back(std::move(event));
  return absl::OkStatus();
}

// Moves up to `count` bytes to the buffer; true if that many were available.
bool Take(size_t count, absl::string_view& bytes, std::string& buffer) {
  const size_t taken = std::min(count, bytes.size());
  buffer.append(bytes.data(), taken);
  bytes.remove_prefix(taken);
  return taken == count;
}

absl::Status FeedFrames(model::Kind kind, std::string& buffer, absl::string_view bytes,
                        std::vector<WatchEvent>& out) {
  while (!bytes.empty()) {
    const bool header_is_cut =
        buffer.size() < kLengthBytes && (!buffer.empty() || bytes.size() < kLengthBytes);
    if (header_is_cut && !Take(kLengthBytes - buffer.size(), bytes, buffer)) break;
    const size_t length = FrameLength(buffer.empty() ? bytes : absl::string_view(buffer));
    if (length > kMaxFrameBytes) return TooLarge(kind, length);
    const size_t whole = kLengthBytes + length;
    if (buffer.empty() && bytes.size() >= whole) {
      FAIRLEAD_RETURN_IF_ERROR(AppendEvent(kind, true, bytes.substr(kLengthBytes, length), out));
      bytes.remove_prefix(whole);
      continue;
    }
    if (!Take(whole - buffer.size(), bytes, buffer)) break;
    FAIRLEAD_RETURN_IF_ERROR(
        AppendEvent(kind, true, absl::string_view(buffer).substr(kLengthBytes), out));
    buffer.clear();
  }
  return absl::OkStatus();
}

absl::Status FeedLines(model::Kind kind, std::string& buffer, absl::string_view bytes,
                       std::vector<WatchEvent>& out) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const size_t line_bytes = buffer.size() + std::min(end, bytes.size());
    if (line_bytes > kMaxFrameBytes) return TooLarge(kind, line_bytes);
    if (end == absl::string_view::npos) {
      Take(bytes.size(), bytes, buffer);
      break;
    }
    absl::string_view line = bytes.substr(0, end);
    if (!buffer.empty()) {
      buffer.append(line.data(), line.size());
      line = buffer;
    }
    if (line.find_first_not_of(" \t\r") != absl::string_view::npos) {
      FAIRLEAD_RETURN_IF_ERROR(AppendEvent(kind, false, line, out));
    }
    buffer.clear();
    bytes.remove_prefix(end + 1);
  }
  return absl::OkStatus();
}

}  // namespace

const std::string* InvalidOf(const Object& object) {
  return std::visit(
      [](const auto& typed) -> const std::string* {
        if constexpr (requires { typed.invalid; }) {
          return &typed.invalid;
        } else {
          return nullptr;
        }
      },
      object);
}

absl::StatusOr<ListPage> DecodeList(model::Kind kind, absl::string_view content_type,
                                    absl::string_view body) {
  return IsProtobuf(content_type) ? wire::DecodeList(kind, body) : json::DecodeList(kind, body);
}

absl::StatusOr<Object> DecodeObject(model::Kind kind, absl::string_view content_type,
                                    absl::string_view body) {
  return IsProtobuf(content_type) ? wire::DecodeObject(kind, body) : json::DecodeObject(kind, body);
}

ApiStatus DecodeStatus(absl::string_view content_type, absl::string_view body) {
  ApiStatus status;
  // The body is recognised by its first bytes: the content type of an error can be wrong.
  const bool protobuf = IsProtobuf(content_type) || wire::HasMagic(body);
  if (protobuf ? wire::DecodeStatus(body, status) : json::DecodeStatus(body, status)) {
    return status;
  }
  ApiStatus unknown;
  unknown.message = TruncateUtf8(body.substr(0, kMaxBodyInMessage), kMaxBodyInMessage);
  return unknown;
}

WatchDecoder::WatchDecoder(model::Kind kind, absl::string_view content_type)
    : kind_(kind), protobuf_(IsProtobuf(content_type)) {}

// Copies only incomplete frames into the buffer and decodes complete frames in place. It reads no
// byte twice, so a large frame in small pieces costs linear time.
absl::Status WatchDecoder::Feed(absl::string_view bytes, std::vector<WatchEvent>& out) {
  return protobuf_ ? FeedFrames(kind_, buffer_, bytes, out) : FeedLines(kind_, buffer_, bytes, out);
}

std::string CollectionPath(model::Kind kind) {
  const model::KindTraits& traits = model::TraitsOf(kind);
  const bool has_group = absl::StrContains(traits.api_version, '/');
  return absl::StrCat(has_group ? "/apis/" : "/api/", traits.api_version, "/", traits.resource);
}

}  // namespace fairlead::kube
