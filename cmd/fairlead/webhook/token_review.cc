#include "cmd/fairlead/webhook/token_review.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "admission/access.h"
#include "base/status_macros.h"
#include "cmd/fairlead/cluster/api_client.h"
#include "document/json.h"

namespace fairlead::cmd {
namespace {

constexpr char kTokens[] = "/apis/authentication.k8s.io/v1/tokenreviews";

absl::StatusOr<Json> Review(kube::HttpTransport& transport, const char* path, const char* kind,
                            std::string review) {
  kube::HttpRequest request;
  request.method = "POST";
  request.path = path;
  request.content_type = kube::kJson;
  request.body = std::move(review);
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
  Json spec = Json::Object();
  spec.Set("token", token);
  Json asked = Json::Object();
  asked.Set("apiVersion", "authentication.k8s.io/v1").Set("kind", "TokenReview");
  asked.Set("spec", std::move(spec));
  FAIRLEAD_ASSIGN_OR_RETURN(const Json review,
                            Review(transport, kTokens, "TokenReview", asked.Compact()));
  const Json* const told = review.At({"status", "user"});
  const admission::UserInfo user =
      told == nullptr ? admission::UserInfo() : admission::ReadUser(*told);
  if (review.TextAt({"status", "authenticated"}) != "true" || user.name.empty()) {
    return absl::UnauthenticatedError(
        "the API server does not accept the token; it may have expired");
  }
  FAIRLEAD_ASSIGN_OR_RETURN(
      const Json access, Review(transport, admission::kAccessReviewPath, "SubjectAccessReview",
                                admission::EncodeAccessReview(user, {{"group", "scheduling.run.ai"},
                                                                     {"resource", "queues"},
                                                                     {"verb", "list"}})));
  if (access.TextAt({"status", "allowed"}) == "true") return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      user.name, " may not list queues.scheduling.run.ai, which the dashboard requires"));
}

}  // namespace fairlead::cmd
