#include "sim/world/api_list.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/json_writer.h"
#include "sim/world/api_json.h"
#include "sim/world/api_protobuf.h"

namespace fairlead::sim::world {
namespace {

// etcd is compacted every five minutes.
constexpr absl::Duration kSnapshotLife = absl::Minutes(5);
constexpr size_t kMaxSnapshots = 64;
constexpr char kExpired[] =
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first "
    "chunk was returned and now may show up in the list.";

struct Page {
  uint64_t version = 0;
  const ObjectPtr* begin = nullptr;
  const ObjectPtr* end = nullptr;
  std::string token;
  size_t remaining = 0;
};

kube::HttpResponse TextList(const ResourceRow& row, const Page& page) {
  kube::HttpResponse response;
  response.status = 200;
  response.content_type = kube::kJson;
  JsonWriter json;
  json.BeginObject().Field("kind", absl::StrCat(row.kind, "List"));
  json.Field("apiVersion", row.group_version).Key("metadata").BeginObject();
  json.Field("resourceVersion", absl::StrCat(page.version));
  if (!page.token.empty()) {
    json.Field("continue", page.token);
    json.Key("remainingItemCount").Int(static_cast<int64_t>(page.remaining));
  }
  json.EndObject().Key("items").BeginArray();
  for (const ObjectPtr* object = page.begin; object != page.end; ++object) {
    json.Raw((*object)->Text());
  }
  response.body = json.EndArray().EndObject().Take();
  return response;
}

kube::HttpResponse MessageList(const ResourceRow& row, const Page& page) {
  std::string meta;
  AppendBytesField(2, absl::StrCat(page.version), meta);
  if (!page.token.empty()) {
    AppendBytesField(3, page.token, meta);
    AppendVarintField(4, page.remaining, meta);
  }
  std::string list;
  AppendBytesField(1, meta, list);
  for (const ObjectPtr* object = page.begin; object != page.end; ++object) {
    AppendBytesField(2, (*object)->Message(), list);
  }
  kube::HttpResponse response;
  response.status = 200;
  response.content_type = kube::kProtobuf;
  response.body = Enveloped(row.group_version, absl::StrCat(row.kind, "List"), list);
  return response;
}

// "{snapshot}:{version}:{next}", in base64 as upstream's.
std::string TokenOf(uint64_t snapshot, uint64_t version, size_t next) {
  return absl::WebSafeBase64Escape(absl::StrCat(snapshot, ":", version, ":", next));
}

bool ReadToken(const std::string& token, uint64_t& snapshot, uint64_t& version, size_t& next) {
  std::string text;
  if (!absl::WebSafeBase64Unescape(token, &text)) return false;
  const size_t first = text.find(':');
  const size_t second = text.find(':', first == std::string::npos ? first : first + 1);
  if (second == std::string::npos) return false;
  uint64_t at = 0;
  const bool ok = absl::SimpleAtoi(text.substr(0, first), &snapshot) &&
                  absl::SimpleAtoi(text.substr(first + 1, second - first - 1), &version) &&
                  absl::SimpleAtoi(text.substr(second + 1), &at);
  next = at;
  return ok;
}

ApiError TooLargeVersion(uint64_t wanted, uint64_t current) {
  ApiError error = GenericError(504, "");
  error.message = absl::StrCat("Too large resource version: ", wanted, ", current: ", current);
  error.details = {{"retryAfterSeconds", 1},
                   {"causes", Json::array({{{"reason", "ResourceVersionTooLarge"},
                                            {"message", "Too large resource version"}}})}};
  return error;
}

}  // namespace

kube::HttpResponse ObjectResponse(int status, const ApiRequest& request, const ApiObject& object) {
  kube::HttpResponse response;
  response.status = status;
  response.content_type = request.protobuf ? kube::kProtobuf : kube::kJson;
  response.body = request.protobuf
                      ? Enveloped(request.row->group_version, request.row->kind, object.Message())
                      : object.Text();
  return response;
}

ApiError Lister::Collect(const ApiRequest& request, std::vector<ObjectPtr>& out) const {
  // "key=value".
  const std::vector<std::string> label =
      absl::StrSplit(request.Query("labelSelector"), '=', absl::SkipEmpty());
  if (!label.empty() && label.size() != 2) return NotImplementedError("labelSelector of lists");
  const std::string wanted = request.Query("resourceVersion");
  uint64_t version = 0;
  if (!wanted.empty() && !absl::SimpleAtoi(wanted, &version)) {
    return BadRequestError(absl::StrCat("resourceVersion: Invalid value: \"", wanted, "\""));
  }
  if (version > store_->version()) return TooLargeVersion(version, store_->version());
  FieldSelector selector;
  const ApiError error =
      FieldSelector::Parse(*request.row, request.Query("fieldSelector"), selector);
  if (!error.ok()) return error;
  const std::string prefix = request.ns.empty() ? "" : absl::StrCat(request.ns, "/");
  for (const auto& [key, object] : store_->All(request.row->type)) {
    if (!absl::StartsWith(key, prefix)) continue;
    if (!label.empty() && TextAt(object->json(), {"metadata", "labels", label[0]}) != label[1]) {
      continue;
    }
    if (selector.Matches(object->json())) out.push_back(object);
  }
  return {};
}

kube::HttpResponse Lister::List(const ApiRequest& request) {
  uint64_t limit = 0;
  (void)absl::SimpleAtoi(request.Query("limit"), &limit);
  const std::string token = request.Query("continue");
  uint64_t number = 0;
  uint64_t version = store_->version();
  size_t next = 0;
  std::vector<ObjectPtr> all;
  const std::vector<ObjectPtr>* objects = &all;
  if (!token.empty()) {
    if (!ReadToken(token, number, version, next)) {
      return ErrorResponse(BadRequestError("continue key is not valid"), request.protobuf);
    }
    const auto found = snapshots_.find(number);
    const bool valid = found != snapshots_.end() && next <= found->second.objects.size() &&
                       found->second.compactions == store_->compactions() &&
                       time_->now() - found->second.made < kSnapshotLife;
    if (!valid) {
      if (found != snapshots_.end()) snapshots_.erase(found);
      return ErrorResponse(ExpiredError(kExpired), request.protobuf);
    }
    objects = &found->second.objects;
  } else {
    ApiError error = Collect(request, all);
    if (!error.ok()) return ErrorResponse(error, request.protobuf);
  }
  const size_t size = objects->size();
  const size_t end = limit == 0 ? size : std::min<size_t>(size, next + limit);
  Page page;
  page.version = version;
  page.begin = objects->data() + next;
  page.end = objects->data() + end;
  page.remaining = size - end;
  if (end < size && token.empty()) number = ++last_snapshot_;
  if (end < size) page.token = TokenOf(number, version, end);
  kube::HttpResponse response =
      request.protobuf ? MessageList(*request.row, page) : TextList(*request.row, page);
  if (end < size && token.empty()) {
    snapshots_[number] = {std::move(all), store_->compactions(), time_->now()};
    if (snapshots_.size() > kMaxSnapshots) snapshots_.erase(snapshots_.begin());
  }
  return response;
}

}  // namespace fairlead::sim::world
