#include "sim/world/api_request.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "sim/world/api_json.h"
#include "sim/world/api_protobuf.h"

namespace fairlead::sim::world {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string Unescape(absl::string_view text, bool query) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && query) {
      out.push_back(' ');
      continue;
    }
    const int high = text[i] == '%' && i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
    const int low = high >= 0 ? HexDigit(text[i + 2]) : -1;
    if (low >= 0) {
      out.push_back(static_cast<char>(high * 16 + low));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

// The first media type of Accept that the server can answer in.
bool WantsProtobuf(absl::string_view accept) {
  for (absl::string_view type : absl::StrSplit(accept, ',')) {
    type = absl::StripAsciiWhitespace(type);
    type = absl::StripAsciiWhitespace(type.substr(0, type.find(';')));
    if (type == kube::kProtobuf) return true;
    if (type == kube::kJson || type == "*/*") return false;
  }
  return false;
}

void ReadQuery(absl::string_view text, ApiRequest& out) {
  for (const absl::string_view pair : absl::StrSplit(text, '&', absl::SkipEmpty())) {
    const size_t equals = pair.find('=');
    const absl::string_view value =
        equals == absl::string_view::npos ? absl::string_view() : pair.substr(equals + 1);
    out.query[Unescape(pair.substr(0, equals), true)] = Unescape(value, true);
  }
}

}  // namespace

std::string ApiRequest::Query(const std::string& key) const {
  const auto found = query.find(key);
  return found == query.end() ? std::string() : found->second;
}

bool ApiRequest::QueryIsTrue(const std::string& key) const {
  const std::string value = Query(key);
  return value == "1" || absl::EqualsIgnoreCase(value, "true");
}

std::optional<std::string> DiscoveredGroup(const kube::HttpRequest& request) {
  if (request.method != "GET") return std::nullopt;
  const std::vector<std::string> parts = absl::StrSplit(request.path, '/', absl::SkipEmpty());
  if (parts.size() == 2 && parts[0] == "api") return Unescape(parts[1], false);
  if (parts.size() != 3 || parts[0] != "apis") return std::nullopt;
  return absl::StrCat(Unescape(parts[1], false), "/", Unescape(parts[2], false));
}

std::optional<std::string> AskedGroup(const kube::HttpRequest& request) {
  if (request.method != "GET") return std::nullopt;
  const std::vector<std::string> parts = absl::StrSplit(request.path, '/', absl::SkipEmpty());
  if (parts.size() != 2 || parts[0] != "apis") return std::nullopt;
  return Unescape(parts[1], false);
}

std::optional<ApiRequest> ParseRequest(const kube::HttpRequest& request) {
  ApiRequest out;
  const absl::string_view whole = request.path;
  const size_t question = whole.find('?');
  if (question != absl::string_view::npos) ReadQuery(whole.substr(question + 1), out);
  std::vector<std::string> parts;
  for (const absl::string_view part :
       absl::StrSplit(whole.substr(0, question), '/', absl::SkipEmpty())) {
    parts.push_back(Unescape(part, false));
  }
  size_t next = 0;
  std::string group_version;
  if (parts.size() > 2 && parts[0] == "api") {
    group_version = parts[1];
    next = 2;
  } else if (parts.size() > 3 && parts[0] == "apis") {
    group_version = absl::StrCat(parts[1], "/", parts[2]);
    next = 3;
  } else {
    return std::nullopt;
  }
  // "namespaces/{ns}/{plural}"; but "namespaces/{name}" and "namespaces/{name}/status" are objects.
  if (parts[next] == "namespaces" && parts.size() > next + 2 && parts[next + 2] != "status") {
    out.ns = parts[next + 1];
    next += 2;
  }
  out.row = FindRow(group_version, parts[next]);
  if (out.row == nullptr || (!out.ns.empty() && !out.row->namespaced)) return std::nullopt;
  if (parts.size() > next + 1) out.name = parts[next + 1];
  if (parts.size() > next + 2) out.subresource = parts[next + 2];
  if (parts.size() > next + 3 || (out.row->namespaced && out.ns.empty() && !out.name.empty())) {
    return std::nullopt;
  }
  out.protobuf = out.row->protobuf && WantsProtobuf(request.accept);
  return out;
}

ApiError ReadBody(const kube::HttpRequest& request, const ApiRequest& target, Json& out) {
  if (absl::StartsWith(request.content_type, kube::kProtobuf)) {
    Envelope envelope;
    if (!OpenEnvelope(request.body, envelope)) {
      return BadRequestError("the object provided is unrecognized: no valid envelope");
    }
    if (envelope.kind == "Binding" && target.subresource == "binding") {
      out = DecodeMessage(BindingSchema(), envelope.message);
    } else if (target.row->protobuf && envelope.kind == target.row->kind) {
      out = DecodeMessage(SchemaOf(target.row->type), envelope.message);
    } else {
      return BadRequestError(
          absl::StrCat("the object provided is unrecognized: kind ", envelope.kind));
    }
    if (out.is_discarded()) return BadRequestError("unable to decode the body as protobuf");
    out["kind"] = envelope.kind;
    out["apiVersion"] = envelope.api_version;
    return {};
  }
  out = request.body.empty() ? Json::object() : Parse(request.body);
  if (out.is_discarded()) {
    return BadRequestError("the object provided is unrecognized (must be of type JSON)");
  }
  return {};
}

}  // namespace fairlead::sim::world
