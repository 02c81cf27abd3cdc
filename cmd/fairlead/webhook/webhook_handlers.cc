#include "cmd/fairlead/webhook/webhook_handlers.h"

#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "admission/defaults.h"
#include "admission/validate.h"
#include "cmd/fairlead/cluster/api_client.h"

namespace fairlead::cmd {
namespace {

constexpr char kNotRead[] = "queues and namespaces have not been read yet";

server::Response HttpError(int status, absl::string_view text) {
  server::Response response;
  response.status = status;
  response.body = absl::StrCat(text, "\n");
  return response;
}

server::Response Reviewed(const admission::Request& request, const admission::Response& response) {
  server::Response out;
  out.content_type = kube::kJson;
  out.body = admission::WriteReview(request.uid, response);
  return out;
}

absl::StatusOr<admission::AccessAnswer> AnswerOf(const absl::StatusOr<kube::HttpResponse>& answer) {
  absl::Status said = StatusOfAnswer(answer);
  if (!said.ok()) return said;
  return admission::ReadAccessReview(answer->body);
}

}  // namespace

server::Response WebhookHandlers::Validate(absl::string_view body) {
  const absl::StatusOr<admission::Request> request = admission::ReadReview(body);
  const std::shared_ptr<const admission::Cluster> cluster = ports_.cache->Get();
  if (!request.ok() || cluster == nullptr) {
    ++failed_;
    return request.ok() ? HttpError(503, kNotRead) : HttpError(400, request.status().message());
  }
  admission::Response response = admission::Validate(*request, *cluster, policy_);
  if (!response.allowed) {
    ++invalid_;
    LogRefusal(*request, response);
    return Reviewed(*request, response);
  }
  for (const std::string& queue : admission::QueuesToAuthorize(*request, *cluster, policy_)) {
    if (!response.allowed) break;
    admission::Response may = Authorize(*request, queue);
    may.warnings.insert(may.warnings.end(), std::make_move_iterator(response.warnings.begin()),
                        std::make_move_iterator(response.warnings.end()));
    response = std::move(may);
  }
  if (response.allowed) ++admitted_;
  if (!response.allowed) LogRefusal(*request, response);
  return Reviewed(*request, response);
}

server::Response WebhookHandlers::Default(absl::string_view body) {
  const absl::StatusOr<admission::Request> request = admission::ReadReview(body);
  const std::shared_ptr<const admission::Cluster> cluster = ports_.cache->Get();
  if (!request.ok() || cluster == nullptr) {
    ++failed_;
    return request.ok() ? HttpError(503, kNotRead) : HttpError(400, request.status().message());
  }
  const admission::Response response = admission::Default(*request, *cluster, policy_);
  if (!response.patch.is_null()) ++defaulted_;
  return Reviewed(*request, response);
}

admission::Response WebhookHandlers::Authorize(const admission::Request& request,
                                               const std::string& queue) {
  if (!admission::IsFromLabel(request, queue)) {
    ++forbidden_;
    return admission::NotFromLabel(request, queue);
  }
  kube::HttpRequest question;
  question.method = "POST";
  question.path = admission::kAccessReviewPath;
  question.content_type = kube::kJson;
  question.body = admission::EncodeAccessReview(request.user, request.ns, queue);
  question.timeout = kAccessWait;
  const std::string asked = question.body;
  if (Remembers(asked)) return {};
  const absl::StatusOr<kube::HttpResponse> answer = ports_.transport->Call(std::move(question));
  const absl::StatusOr<admission::AccessAnswer> access = AnswerOf(answer);
  if (!access.ok()) {
    ++unauthorized_;
    return admission::NotAuthorized(request, queue, access.status().message(), policy_);
  }
  if (access->allowed) {
    Remember(asked);
    return {};
  }
  ++forbidden_;
  return admission::Forbidden(request, queue, access->reason);
}

bool WebhookHandlers::Remembers(const std::string& question) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = allowed_.find(question);
  if (found == allowed_.end()) return false;
  if (ports_.clock->Steady() < found->second) return true;
  allowed_.erase(found);
  return false;
}

void WebhookHandlers::Remember(const std::string& question) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (allowed_.size() >= kMostRemembered) allowed_.clear();
  allowed_[question] = ports_.clock->Steady() + kAllowedLasts;
}

void WebhookHandlers::LogRefusal(const admission::Request& request,
                                 const admission::Response& response) {
  ports_.logger->Info("refused", {{"kind", request.kind},
                                  {"namespace", request.ns},
                                  {"name", request.name},
                                  {"user", request.user.name},
                                  {"why", response.message}});
}

WebhookStats WebhookHandlers::GetStats() const {
  return {admitted_, defaulted_, invalid_, forbidden_, unauthorized_, failed_};
}

}  // namespace fairlead::cmd
