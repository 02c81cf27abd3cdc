#include "cmd/fairlead/app/object_api.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/json_writer.h"
#include "cmd/fairlead/cluster/api_client.h"
#include "kube/transport/url.h"

namespace fairlead::cmd {
namespace {

// 410: a list's continuation has expired.
absl::StatusOr<Json> BodyOf(const absl::StatusOr<kube::HttpResponse>& answer,
                            absl::StatusCode conflict = absl::StatusCode::kAborted) {
  const absl::Status status = StatusOfCall(answer, conflict, absl::StatusCode::kUnavailable);
  if (!status.ok()) return status;
  absl::StatusOr<Json> body = Json::Parse(answer->body);
  if (body.ok() && !body->is_object()) {
    return absl::InvalidArgumentError("the answer is not a JSON object");
  }
  return body;
}

}  // namespace

void KubeObjectApi::Get(const std::string& path, JsonDone done) {
  kube::HttpRequest request;
  request.path = path;
  request.timeout = kTimeout;
  calls_.Send(std::move(request),
              [done = std::move(done)](const absl::StatusOr<kube::HttpResponse>& answer) {
                done(BodyOf(answer));
              });
}

void KubeObjectApi::List(const std::string& path, const std::string& label_selector,
                         JsonDone done) {
  std::string first_page = absl::StrCat(path, "?limit=", kPageSize);
  if (!label_selector.empty()) kube::AddQuery(first_page, "labelSelector", label_selector);
  ListPage(first_page, "", std::make_shared<Json>(Json::Array()), std::move(done));
}

void KubeObjectApi::ListPage(const std::string& first_page, const std::string& continuation,
                             const std::shared_ptr<Json>& items, JsonDone done) {
  kube::HttpRequest request;
  request.path = first_page;
  if (!continuation.empty()) kube::AddQuery(request.path, "continue", continuation);
  request.timeout = kTimeout;
  calls_.Send(std::move(request), [this, first_page, items, done = std::move(done)](
                                      const absl::StatusOr<kube::HttpResponse>& answer) {
    absl::StatusOr<Json> page = BodyOf(answer);
    if (!page.ok()) return done(page.status());
    Json* const listed = page->Find("items");
    if (listed == nullptr || (!listed->is_array() && !listed->is_null())) {
      return done(absl::InvalidArgumentError("items: missing, or not a list"));
    }
    // Items of a list do not tell their kind.
    const std::string version = page->TextAt({"apiVersion"});
    for (Json& item : listed->items()) {
      if (item.is_object() && item.Find("apiVersion") == nullptr) item.Set("apiVersion", version);
      items->Add(std::move(item));
    }
    if (items->items().size() > kMostItems) {
      return done(absl::InvalidArgumentError(absl::StrCat("items: more than ", kMostItems)));
    }
    const std::string next = page->TextAt({"metadata", "continue"});
    if (next.empty()) return done(std::move(*items));
    ListPage(first_page, next, items, done);
  });
}

void KubeObjectApi::Write(kube::HttpRequest request, absl::StatusCode conflict, JsonDone done) {
  const absl::Duration time_left = time_left_();
  if (time_left <= absl::ZeroDuration()) {
    return done(absl::UnavailableError("not sent: this process does not lead"));
  }
  request.traffic = kube::TrafficClass::kWrite;
  request.timeout = std::min(kTimeout, time_left);
  calls_.Send(std::move(request),
              [conflict, done = std::move(done)](const absl::StatusOr<kube::HttpResponse>& answer) {
                done(BodyOf(answer, conflict));
              });
}

void KubeObjectApi::Patch(const std::string& path, std::string body, JsonDone done) {
  kube::HttpRequest request;
  request.method = "PATCH";
  request.path = path;
  request.content_type = kube::kMergePatch;
  request.body = std::move(body);
  Write(std::move(request), absl::StatusCode::kAborted, std::move(done));
}

void KubeObjectApi::Create(const std::string& path, std::string body, JsonDone done) {
  kube::HttpRequest request;
  request.method = "POST";
  request.path = path;
  request.content_type = kube::kJson;
  request.body = std::move(body);
  Write(std::move(request), absl::StatusCode::kAlreadyExists, std::move(done));
}

void KubeObjectApi::Delete(const std::string& path, const std::string& uid,
                           const std::string& resource_version, Done done) {
  JsonWriter json;
  json.BeginObject().Field("kind", "DeleteOptions").Field("apiVersion", "v1");
  json.Key("preconditions").BeginObject().Field("uid", uid);
  json.FieldUnlessEmpty("resourceVersion", resource_version).EndObject().EndObject();
  kube::HttpRequest request;
  request.method = "DELETE";
  request.path = path;
  request.content_type = kube::kJson;
  request.body = json.Take();
  Write(std::move(request), absl::StatusCode::kAborted,
        [done = std::move(done)](const absl::StatusOr<Json>& answer) { done(answer.status()); });
}

}  // namespace fairlead::cmd
