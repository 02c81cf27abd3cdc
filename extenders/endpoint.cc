#include "extenders/endpoint.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "extenders/connection.h"
#include "extenders/wire.h"

namespace fairlead::extenders {
namespace {

// DefaultExtenderTimeout.
constexpr absl::Duration kDefaultTimeout = absl::Seconds(5);

absl::StatusOr<std::string> AnswerOf(absl::StatusOr<kube::HttpResponse> response) {
  if (absl::IsCancelled(response.status())) return response.status();
  if (!response.ok()) return absl::UnavailableError(response.status().message());
  if (response->status != 200) {
    return absl::UnavailableError(absl::StrCat("status ", response->status));
  }
  return std::move(response->body);
}

// True if the call has ended before anything was sent.
bool WasNotSent(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsUnauthenticated(status) ||
         absl::IsNotFound(status);  // a request that HTTP cannot express; a file of credentials
}

absl::Status BindingOf(const absl::StatusOr<kube::HttpResponse>& response) {
  if (!response.ok()) {
    const absl::Status& status = response.status();
    if (absl::IsDeadlineExceeded(status)) return status;
    return WasNotSent(status) ? absl::InvalidArgumentError(status.message())
                              : absl::UnavailableError(status.message());
  }
  if (response->status != 200) {
    const std::string message = absl::StrCat("status ", response->status);
    // A redirect is not followed, and a client's error is not carried out.
    return response->status >= 300 && response->status < 500 ? absl::InvalidArgumentError(message)
                                                             : absl::UnavailableError(message);
  }
  const absl::StatusOr<std::string> error = ReadBindingResult(response->body);
  if (!error.ok()) return absl::UnavailableError(error.status().message());
  return error->empty() ? absl::OkStatus() : absl::InvalidArgumentError(*error);
}

}  // namespace

Endpoint::Endpoint(model::ExtenderConfig config, kube::HttpTransport* transport)
    : config_(std::move(config)),
      path_(PathOf(config_.url_prefix)),
      asks_(std::make_shared<CallQueue>(transport, kube::TrafficClass::kRead,
                                        CallQueue::Limits{kCallsMax, kBodyBytesMax})),
      bindings_(std::make_shared<CallQueue>(transport, kube::TrafficClass::kWrite,
                                            CallQueue::Limits{kBindingsMax, kBodyBytesMax})) {}

CallQueue::Call Endpoint::CallOf(const std::string& verb) const {
  CallQueue::Call call;
  call.path = absl::StrCat(path_, "/", verb);
  call.timeout =
      config_.http_timeout > absl::ZeroDuration() ? config_.http_timeout : kDefaultTimeout;
  return call;
}

void Endpoint::Ask(const std::string& verb, size_t bytes, std::function<std::string()> body,
                   std::function<void(absl::StatusOr<std::string>)> done) const {
  CallQueue::Call call = CallOf(verb);
  call.bytes = bytes;
  call.body = std::move(body);
  call.done = [done = std::move(done)](absl::StatusOr<kube::HttpResponse> response) {
    done(AnswerOf(std::move(response)));
  };
  asks_->Post(std::move(call));
}

void Endpoint::Bind(std::string body, std::function<void(absl::Status)> done) const {
  CallQueue::Call call = CallOf(config_.bind_verb);
  call.bytes = body.size();
  call.body = [body = std::move(body)] { return body; };
  call.done = [done = std::move(done)](const absl::StatusOr<kube::HttpResponse>& response) {
    done(BindingOf(response));
  };
  bindings_->Post(std::move(call));
}

void Endpoint::Close() const {
  asks_->Close();
  bindings_->Close();
}

absl::Status Endpoint::Describe(absl::string_view verb, const absl::Status& status) const {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("extender ", config_.url_prefix, ": ", verb, ": ",
                                                  status.message()));
}

}  // namespace fairlead::extenders
