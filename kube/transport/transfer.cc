#include "kube/transport/transfer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace fairlead::kube {
namespace {

// A larger value is not meant for this client.
constexpr absl::Duration kRetryAfterMax = absl::Hours(1);
// The most of the body of a 401 that is withheld from a stream.
constexpr size_t kWithheldBytesMax = size_t{64} << 10;
// The most that is allocated because of the server's announcement alone.
constexpr int64_t kReserveBytesMax = int64_t{64} << 20;
// libcurl counts whole milliseconds, and starts later than we do.
constexpr absl::Duration kDeadlineSlack = absl::Milliseconds(10);

}  // namespace

Transfer::Transfer(HttpRequest request, HttpTransport::Done done,
                   std::shared_ptr<StreamObserver> observer, int64_t max_body_bytes,
                   const Clock& clock)
    : request_(std::move(request)),
      done_(std::move(done)),
      observer_(std::move(observer)),
      max_body_bytes_(max_body_bytes),
      clock_(clock),
      deadline_(clock.Steady() + request_.timeout) {}

void Transfer::StartOver() {
  retried_ = true;
  response_ = HttpResponse();
  failure_ = absl::OkStatus();
}

// Seconds, or a date: RFC 9110 section 10.2.3.
absl::Duration Transfer::ParseRetryAfter(absl::string_view value) const {
  int64_t seconds = 0;
  absl::Time date;
  absl::Duration wait = absl::ZeroDuration();
  if (absl::SimpleAtoi(value, &seconds)) {
    wait = absl::Seconds(seconds);
  } else if (absl::ParseTime("%a, %d %b %E4Y %H:%M:%S GMT", value, &date, nullptr)) {
    wait = date - clock_.Now();
  }
  return std::clamp(wait, absl::ZeroDuration(), kRetryAfterMax);
}

bool Transfer::OnAnswerHeaders(int status, absl::string_view content_type,
                               absl::string_view retry_after, int64_t content_length) {
  response_.status = status;
  response_.content_type = std::string(content_type);
  if (!retry_after.empty()) response_.retry_after = ParseRetryAfter(retry_after);
  if (observer_ != nullptr) {
    if (!rejected()) observer_->OnHeaders(status, content_type);
    return true;
  }
  if (content_length > max_body_bytes_) {
    failure_ = absl::ResourceExhaustedError(
        absl::StrCat("the answer is larger than ", max_body_bytes_, " bytes"));
    return false;
  }
  if (content_length > 0) {
    response_.body.reserve(static_cast<size_t>(std::min(content_length, kReserveBytesMax)));
  }
  return true;
}

bool Transfer::OnAnswerBody(absl::string_view bytes) {
  if (observer_ != nullptr && !rejected()) {
    observer_->OnData(bytes);
    return true;
  }
  if (observer_ != nullptr) {
    const size_t room = kWithheldBytesMax - std::min(kWithheldBytesMax, response_.body.size());
    bytes = bytes.substr(0, room);
  } else if (static_cast<int64_t>(response_.body.size() + bytes.size()) > max_body_bytes_) {
    failure_ = absl::ResourceExhaustedError(
        absl::StrCat("the answer is larger than ", max_body_bytes_, " bytes"));
    return false;
  }
  response_.body.append(bytes.data(), bytes.size());
  return true;
}

absl::Status Transfer::Outcome(CURLcode code, absl::string_view text) const {
  if (!failure_.ok()) return failure_;
  if (code == CURLE_OK && response_.status != 0) return absl::OkStatus();
  if (code == CURLE_OK) return absl::UnavailableError("the server closed without an answer");
  if (code == CURLE_OPERATION_TIMEDOUT && clock_.Steady() >= deadline_ - kDeadlineSlack) {
    return absl::DeadlineExceededError(
        absl::StrCat("no answer within ", absl::FormatDuration(request_.timeout)));
  }
  if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL) {
    return absl::InvalidArgumentError(text);
  }
  return absl::UnavailableError(text);
}

absl::Status Transfer::Describe(const absl::Status& status) const {
  // Only the path: the query may have selectors and continue tokens as long as a page.
  const absl::string_view path = request_.path;
  return absl::Status(
      status.code(),
      absl::StrCat(request_.method, " ", path.substr(0, path.find('?')), ": ", status.message()));
}

void Transfer::Finish(const absl::Status& status) {
  if (observer_ == nullptr) {
    if (status.ok()) return done_(std::move(response_));
    return done_(Describe(status));
  }
  if (status.ok() && rejected()) {
    observer_->OnHeaders(response_.status, response_.content_type);
    if (!response_.body.empty()) observer_->OnData(response_.body);
  }
  observer_->OnDone(status.ok() ? status : Describe(status), response_.retry_after);
}

}  // namespace fairlead::kube
