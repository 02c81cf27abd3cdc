#include "kube/write/write_answers.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace fairlead::kube {
namespace {

WriteOutcome OutcomeOf(const WriteAnswer& answer) {
  if (!answer.ok()) {
    return absl::IsDeadlineExceeded(answer.status()) ? WriteOutcome::kOverloaded
                                                     : WriteOutcome::kNeutral;
  }
  if (answer->status == 429) return WriteOutcome::kThrottled;
  if (answer->status == 503 || answer->status == 504) return WriteOutcome::kOverloaded;
  if (answer->status >= 500 || answer->status == 401) return WriteOutcome::kNeutral;
  return WriteOutcome::kOk;
}

// A refusal of the request itself: the same one would get the same answer again.
bool IsJudgement(int status) {
  return status == 400 || status == 413 || status == 415 || status == 422;
}

}  // namespace

Decision Done(absl::Status status) {
  Decision decision;
  decision.status = std::move(status);
  return decision;
}

Decision Continue() {
  Decision decision;
  decision.next = Decision::Next::kContinue;
  return decision;
}

Decision Retry(absl::Status status) {
  Decision decision;
  decision.next = Decision::Next::kRetry;
  decision.status = std::move(status);
  return decision;
}

HttpRequest ToRequest(EncodedWrite write) {
  HttpRequest request;
  request.method = std::move(write.method);
  request.path = std::move(write.path);
  request.content_type = std::move(write.content_type);
  request.body = std::move(write.body);
  request.traffic = TrafficClass::kWrite;
  return request;
}

HttpRequest GetRequest(std::string path) {
  HttpRequest request;
  request.path = std::move(path);
  request.accept = absl::StrCat(kProtobuf, ", ", kJson);
  request.traffic = TrafficClass::kRead;
  return request;
}

bool IsSuccess(const WriteAnswer& answer) {
  return answer.ok() && answer->status >= 200 && answer->status < 300;
}

bool HasCode(const WriteAnswer& answer, int code) { return answer.ok() && answer->status == code; }

bool IsUnknown(const WriteAnswer& answer) {
  return !answer.ok() || answer->status == 408 || answer->status >= 500;
}

std::string Describe(absl::string_view what, const WriteAnswer& answer) {
  if (!answer.ok()) return absl::StrCat(what, ": ", answer.status().ToString());
  const ApiStatus error = DecodeStatus(answer->content_type, answer->body);
  return absl::StrCat(what, ": ", answer->status, error.reason.empty() ? "" : " ", error.reason,
                      ": ", error.message);
}

Decision DecideGenerally(absl::string_view what, const WriteAnswer& answer) {
  Decision decision;
  if (IsSuccess(answer)) {
    decision.outcome = OutcomeOf(answer);
    return decision;
  }
  const std::string text = Describe(what, answer);
  if (IsUnknown(answer)) {
    decision = Retry(absl::UnavailableError(text));
  } else if (answer->status == 429 || answer->status == 401) {
    decision = Retry(absl::AbortedError(text));
  } else if (answer->status == 403) {
    decision = Done(absl::PermissionDeniedError(text));
  } else if (answer->status == 404) {
    decision = Done(absl::NotFoundError(text));
  } else if (answer->status == 409) {
    decision = Done(absl::FailedPreconditionError(text));
  } else if (IsJudgement(answer->status)) {
    decision = Done(absl::InvalidArgumentError(text));
  } else {
    decision = Done(absl::AbortedError(text));
  }
  if (answer.ok()) decision.retry_after = answer->retry_after;
  decision.outcome = OutcomeOf(answer);
  return decision;
}

Decision DecideCreation(absl::string_view what, const WriteAnswer& answer) {
  Decision decision = DecideGenerally(what, answer);
  if (!HasCode(answer, 409)) return decision;
  const std::string text(decision.status.message());
  if (DecodeStatus(answer->content_type, answer->body).reason != "AlreadyExists") {
    return Retry(absl::AbortedError(text));
  }
  decision.status = absl::AlreadyExistsError(text);
  return decision;
}

}  // namespace fairlead::kube
