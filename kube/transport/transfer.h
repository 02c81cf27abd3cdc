// One call of the transport, over all its attempts: the request, the answer as it comes in, and the
// caller's callback or observer. It uses HTTP and our error codes, but no connections.
//
// Thread-safety: none; it belongs to the transport's I/O thread.
#pragma once

#include <curl/curl.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "kube/transport/curl_easy.h"
#include "kube/transport/http.h"

namespace fairlead::kube {

class Transfer final : public AnswerSink {
 public:
  // Exactly one of `done` and `observer`. `deadline` is on the scale of clock.Steady.
  Transfer(HttpRequest request, HttpTransport::Done done, std::shared_ptr<StreamObserver> observer,
           int64_t max_body_bytes, const Clock& clock);

  [[nodiscard]] const HttpRequest& request() const { return request_; }
  [[nodiscard]] absl::Duration deadline() const { return deadline_; }
  // True if the whole answer is a 401 that the caller has not seen: another attempt may follow.
  [[nodiscard]] bool rejected() const { return !retried_ && response_.status == 401; }
  // Drops the answer; a further 401 goes to the caller.
  void StartOver();

  bool OnAnswerHeaders(int status, absl::string_view content_type, absl::string_view retry_after,
                       int64_t content_length) override;
  bool OnAnswerBody(absl::string_view bytes) override;

  // The status that libcurl's result means to the caller.
  [[nodiscard]] absl::Status Outcome(CURLcode code, absl::string_view text) const;
  // Makes the last callback: with the answer that came if OK, else with method and path before the
  // message.
  void Finish(const absl::Status& status);

 private:
  [[nodiscard]] absl::Status Describe(const absl::Status& status) const;
  [[nodiscard]] absl::Duration ParseRetryAfter(absl::string_view value) const;

  const HttpRequest request_;
  const HttpTransport::Done done_;
  const std::shared_ptr<StreamObserver> observer_;
  const int64_t max_body_bytes_;
  const Clock& clock_;
  const absl::Duration deadline_;
  bool retried_ = false;
  HttpResponse response_;  // of a stream: without body, except a withheld 401
  absl::Status failure_;   // why we aborted
};

}  // namespace fairlead::kube
