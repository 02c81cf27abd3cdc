#include "admission/review.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/json_writer.h"
#include "base/utf8.h"

namespace fairlead::admission {
namespace {

constexpr char kApiVersion[] = "admission.k8s.io/v1";
constexpr char kReviewKind[] = "AdmissionReview";
constexpr size_t kMostWarnings = 16;
constexpr size_t kLongestWarning = 256;
constexpr size_t kLongestMessage = 4096;

Operation OperationOf(absl::string_view text) {
  if (text == "CREATE") return Operation::kCreate;
  if (text == "UPDATE") return Operation::kUpdate;
  if (text == "DELETE") return Operation::kDelete;
  return Operation::kOther;
}

std::vector<std::string> TextsOf(const Json* list) {
  std::vector<std::string> texts;
  if (list == nullptr) return texts;
  for (const Json& item : list->items()) texts.push_back(item.text());
  return texts;
}

Json Taken(Json& request, absl::string_view field) {
  Json* const value = request.Find(field);
  return value == nullptr ? Json() : std::move(*value);
}

absl::Status Bad(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(kReviewKind, ": ", field, ": ", what));
}

}  // namespace

UserInfo ReadUser(const Json& json) {
  UserInfo user;
  user.name = json.TextAt({"username"});
  user.uid = json.TextAt({"uid"});
  user.groups = TextsOf(json.Find("groups"));
  const Json* const extra = json.Find("extra");
  if (extra == nullptr) return user;
  for (const auto& [key, values] : extra->fields()) user.extra.emplace_back(key, TextsOf(&values));
  return user;
}

absl::StatusOr<Request> ReadReview(absl::string_view body) {
  absl::StatusOr<Json> review = Json::Parse(body);
  if (!review.ok()) return Bad("body", review.status().message());
  if (review->TextAt({"apiVersion"}) != kApiVersion || review->TextAt({"kind"}) != kReviewKind) {
    return Bad("apiVersion, kind", absl::StrCat("must be ", kApiVersion, ", ", kReviewKind));
  }
  Json* const asked = review->Find("request");
  if (asked == nullptr || !asked->is_object()) return Bad("request", "must be an object");
  Request request;
  request.uid = asked->TextAt({"uid"});
  if (request.uid.empty()) return Bad("request.uid", "must be set");
  request.group = asked->TextAt({"resource", "group"});
  request.version = asked->TextAt({"resource", "version"});
  request.resource = asked->TextAt({"resource", "resource"});
  request.kind = asked->TextAt({"kind", "kind"});
  request.sub_resource = asked->TextAt({"subResource"});
  request.ns = asked->TextAt({"namespace"});
  request.name = asked->TextAt({"name"});
  request.operation = OperationOf(asked->TextAt({"operation"}));
  if (const Json* const user = asked->Find("userInfo")) request.user = ReadUser(*user);
  request.object = Taken(*asked, "object");
  request.old_object = Taken(*asked, "oldObject");
  return request;
}

bool IsWrite(const Request& request) {
  const bool written =
      request.operation == Operation::kCreate || request.operation == Operation::kUpdate;
  return written && request.sub_resource.empty() && request.object.is_object() &&
         request.object.TextAt({"metadata", "deletionTimestamp"}).empty();
}

Response Refuse(int code, absl::string_view reason, std::string message) {
  Response response;
  response.allowed = false;
  response.code = code;
  response.reason = std::string(reason);
  response.message = std::move(message);
  return response;
}

std::string WriteReview(absl::string_view uid, const Response& response) {
  JsonWriter json;
  json.BeginObject().Field("apiVersion", kApiVersion).Field("kind", kReviewKind);
  json.Key("response").BeginObject().Field("uid", uid).Key("allowed").Bool(response.allowed);
  if (!response.allowed) {
    json.Key("status").BeginObject().Field("status", "Failure");
    json.Field("message", TruncateUtf8(response.message, kLongestMessage));
    json.FieldUnlessEmpty("reason", response.reason).Key("code").Int(response.code).EndObject();
  }
  if (!response.patch.is_null()) {
    json.Field("patchType", "JSONPatch");
    json.Field("patch", absl::Base64Escape(response.patch.Compact()));
  }
  if (!response.warnings.empty()) {
    json.Key("warnings").BeginArray();
    const size_t shown = std::min(response.warnings.size(), kMostWarnings);
    for (size_t i = 0; i < shown; ++i) {
      json.String(TruncateUtf8(response.warnings[i], kLongestWarning));
    }
    json.EndArray();
  }
  return json.EndObject().EndObject().Take();
}

}  // namespace fairlead::admission
