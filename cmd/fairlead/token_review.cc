#include "cmd/fairlead/token_review.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cmd/fairlead/api_client.h"
#include "document/json.h"

namespace fairlead::cmd {
namespace {

constexpr char kTokens[] = "/apis/authentication.k8s.io/v1/tokenreviews";
constexpr char kAccess[] = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

absl::StatusOr<Json> Review(kube::HttpTransport& transport, const char* path, const char* version,
                            const char* kind, Json spec) {
  Json review = Json::Object();
  review.Set("apiVersion", version).Set("kind", kind).Set("spec", std::move(spec));
  kube::HttpRequest request;
  request.method = "POST";
  request.path = path;
  request.content_type = kube::kJson;
  request.body = review.Compact();
  request.timeout = kReviewTimeout;
  const absl::StatusOr<kube::HttpResponse> answer = transport.Call(std::move(request));
  const absl::Status status = StatusOfAnswer(answer);
  if (absl::IsPermissionDenied(status)) {
    return absl::FailedPreconditionError(
        absl::StrCat("Fairlead may not check tokens: its service account lacks the ClusterRole "
                     "system:auth-delegator (",
                     status.message(), ")"));
  }
  if (!status.ok()) {
    return absl::UnavailableError(
        absl::StrCat("the API server could not check the token; try again in some seconds (",
                     status.message(), ")"));
  }
  absl::StatusOr<Json> object = Json::Parse(answer->body);
  if (object.ok() && object->Find("status") != nullptr) return object;
  return absl::UnavailableError(
      absl::StrCat("the API server's answer to a ", kind, " could not be read"));
}

}  // namespace

absl::Status ReviewToken(kube::HttpTransport& transport, const std::string& token) {
  Json asked = Json::Object();
  asked.Set("token", token);
  FAIRLEAD_ASSIGN_OR_RETURN(
      const Json review,
      Review(transport, kTokens, "authentication.k8s.io/v1", "TokenReview", std::move(asked)));
  const Json* const user = review.At({"status", "user"});
  const std::string name = review.TextAt({"status", "user", "username"});
  if (review.TextAt({"status", "authenticated"}) != "true" || user == nullptr || name.empty()) {
    return absl::UnauthenticatedError(
        "the API server does not accept the token; it may have expired");
  }
  Json spec = Json::Object();
  spec.Set("user", name).SetUnlessEmpty("uid", user->TextAt({"uid"}));
  if (const Json* groups = user->Find("groups"); groups != nullptr) spec.Set("groups", *groups);
  if (const Json* extra = user->Find("extra"); extra != nullptr) spec.Set("extra", *extra);
  Json what = Json::Object();
  what.Set("group", "scheduling.run.ai").Set("resource", "queues").Set("verb", "list");
  spec.Set("resourceAttributes", std::move(what));
  FAIRLEAD_ASSIGN_OR_RETURN(const Json access, Review(transport, kAccess, "authorization.k8s.io/v1",
                                                      "SubjectAccessReview", std::move(spec)));
  if (access.TextAt({"status", "allowed"}) == "true") return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(name, " may not list queues.scheduling.run.ai, which the dashboard requires"));
}

}  // namespace fairlead::cmd
