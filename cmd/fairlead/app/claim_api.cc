#include "cmd/fairlead/app/claim_api.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/json_writer.h"
#include "cmd/fairlead/cluster/api_client.h"
#include "kube/transport/url.h"
#include "scheduler/model/api_names.h"

namespace fairlead::cmd {
namespace {

constexpr char kPath[] = "/apis/karpenter.sh/v1/nodeclaims";

// `what`: the call, for the text; empty:
// the caller names it.
absl::Status StatusOf(const absl::StatusOr<kube::HttpResponse>& answer, const std::string& what,
                      absl::StatusCode conflict) {
  const absl::Status said = StatusOfCall(answer, conflict, absl::StatusCode::kAborted);
  if (said.ok()) return said;
  return {said.code(), absl::StrCat(what, what.empty() ? "" : ": ", said.message())};
}

// Of the events that the server lists; the last by time, which RFC 3339 orders as text.
std::string LastWarningOf(const Json& list) {
  const Json* const items = list.Find("items");
  std::string note, last;
  if (items == nullptr || items->type() != Json::Type::kArray) return note;
  for (const Json& event : items->items()) {
    if (event.TextAt({"type"}) != "Warning") continue;
    std::string at = event.TextAt({"lastTimestamp"});
    if (at.empty()) at = event.TextAt({"eventTime"});
    if (at < last) continue;
    last = std::move(at);
    note = event.TextAt({"message"});
  }
  return note;
}

}  // namespace

void KubeClaimApi::LastWarning(const std::string& name, const std::string& uid, TextDone done) {
  kube::HttpRequest request;
  request.path = "/api/v1/namespaces/default/events";
  kube::AddQuery(request.path, "fieldSelector",
                 absl::StrCat("involvedObject.kind=NodeClaim,involvedObject.name=", name,
                              uid.empty() ? "" : ",involvedObject.uid=", uid));
  kube::AddQuery(request.path, "limit", absl::StrCat(kPageSize));
  request.timeout = kEventTimeout;
  calls_.Send(std::move(request),
              [done = std::move(done)](const absl::StatusOr<kube::HttpResponse>& answer) {
                const absl::Status status =
                    StatusOf(answer, "list events", absl::StatusCode::kUnavailable);
                if (!status.ok()) return done(status);
                const absl::StatusOr<Json> list = Json::Parse(answer->body);
                if (!list.ok()) return done(list.status());
                done(LastWarningOf(*list));
              });
}

void KubeClaimApi::Write(kube::HttpRequest request, const std::string& what,
                         absl::StatusCode conflict, Done done) {
  const absl::Duration time_left = time_left_();
  if (time_left <= absl::ZeroDuration()) {
    return done(
        absl::UnavailableError(absl::StrCat(what, ": not sent: this process does not lead")));
  }
  request.content_type = kube::kJson;
  request.traffic = kube::TrafficClass::kWrite;
  request.timeout = std::min(request.timeout, time_left);
  calls_.Send(std::move(request), [what, conflict, done = std::move(done)](
                                      const absl::StatusOr<kube::HttpResponse>& answer) {
    done(StatusOf(answer, what, conflict));
  });
}

void KubeClaimApi::Create(const std::string& name, std::string body, Done done) {
  kube::HttpRequest request;
  request.method = "POST";
  request.path = kPath;
  request.body = std::move(body);
  Write(std::move(request), absl::StrCat("create NodeClaim ", name),
        absl::StatusCode::kAlreadyExists, std::move(done));
}

void KubeClaimApi::Delete(const std::string& name, const std::string& uid, Done done) {
  JsonWriter json;
  json.BeginObject().Field("kind", "DeleteOptions").Field("apiVersion", "v1");
  json.Key("preconditions").BeginObject().Field("uid", uid).EndObject().EndObject();
  kube::HttpRequest request;
  request.method = "DELETE";
  request.path = absl::StrCat(kPath, "/", kube::QueryEscape(name));
  request.body = json.Take();
  Write(std::move(request), absl::StrCat("delete NodeClaim ", name),
        absl::StatusCode::kFailedPrecondition, std::move(done));
}

void KubeClaimApi::List(const std::string& continuation, PageDone done) {
  kube::HttpRequest request;
  request.path = absl::StrCat(kPath, "?labelSelector=", kube::QueryEscape(model::kNodeRequestLabel),
                              "&limit=", kPageSize);
  if (!continuation.empty()) {
    absl::StrAppend(&request.path, "&continue=", kube::QueryEscape(continuation));
  }
  calls_.Send(std::move(request),
              [done = std::move(done)](const absl::StatusOr<kube::HttpResponse>& answer) {
                const absl::Status status = StatusOf(answer, "", absl::StatusCode::kUnavailable);
                if (absl::IsNotFound(status)) {
                  return done(absl::NotFoundError(
                      "the server has no nodeclaims of karpenter.sh/v1: is Karpenter installed?"));
                }
                if (!status.ok()) return done(status);
                done(hook::DecodeClaimPage(answer->body));
              });
}

}  // namespace fairlead::cmd
