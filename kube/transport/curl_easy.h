// One libcurl easy handle: one request and its answer at a time. It is reused, because setting up a
// handle costs as much as a small request.
//
// The rest of the transport sees an answer through AnswerSink; C callbacks, header syntax and
// libcurl's options are hidden here. Thread-safety: none; handles belong to the transport's I/O
// thread. Ownership: an Easy owns its handle and header list; request, target and sink outlive the
// transfer.
#pragma once

#include <curl/curl.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "kube/credentials/credentials.h"
#include "kube/transport/http.h"

namespace fairlead::kube {

// Equal for all requests of a transport.
struct CurlTarget {
  std::string url;         // the name for request line and certificate, without a slash at the end
  std::string connect_to;  // CURLOPT_CONNECT_TO entry; empty: connect to the URL's host
  std::string host;        // Host header, if it is not the URL's host
  std::string ca_pem;
  bool insecure = false;
  std::string user_agent;
  absl::Duration connect_timeout;
};

// Receives the parts of an answer, in order. Called from within libcurl: no method may call into
// it.
class AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  // The final header block is complete. `content_length` is -1 if unknown. False aborts the
  // transfer.
  virtual bool OnAnswerHeaders(int status, absl::string_view content_type,
                               absl::string_view retry_after, int64_t content_length) = 0;
  virtual bool OnAnswerBody(absl::string_view bytes) = 0;
};

class Easy {
 public:
  // Null if libcurl has no memory. The target outlives it.
  static std::unique_ptr<Easy> Create(const CurlTarget& target, TrafficClass traffic);
  ~Easy();
  Easy(const Easy&) = delete;
  Easy& operator=(const Easy&) = delete;

  // Makes the handle ready for curl_multi_add_handle; CURLINFO_PRIVATE will be `tag`.
  // InvalidArgument if method, path or a header cannot be sent; Internal if libcurl refuses an
  // option.
  absl::Status Prepare(const HttpRequest& request, CredentialsPtr credentials,
                       absl::Duration timeout, AnswerSink* sink, void* tag);
  [[nodiscard]] CURL* handle() const { return handle_; }
  // The error in libcurl's words; valid until the next Prepare.
  [[nodiscard]] std::string ErrorText(CURLcode code) const;

 private:
  Easy(CURL* handle, const CurlTarget& target) : handle_(handle), target_(target) {}
  template <typename Value>
  void Set(CURLoption option, Value value);
  void SetBlob(CURLoption option, const std::string& pem);
  void SetConstants(TrafficClass traffic);
  void SetIdentity(CredentialsPtr credentials);
  void SetMethod(const HttpRequest& request);
  void SetHeaders(const HttpRequest& request);
  bool TakeHeader(absl::string_view line);

  static size_t OnHeaderLine(char* data, size_t size, size_t count, void* self) noexcept;
  static size_t OnBody(char* data, size_t size, size_t count, void* self) noexcept;

  CURL* const handle_;
  const CurlTarget& target_;
  CURLcode failed_option_ = CURLE_OK;  // the first, since Prepare began
  curl_slist* headers_ = nullptr;
  curl_slist* connect_to_ = nullptr;
  CredentialsPtr credentials_;  // the certificate blobs in the handle point into it
  std::string url_;
  char error_[CURL_ERROR_SIZE] = {};

  // The answer being received.
  AnswerSink* sink_ = nullptr;
  bool headers_complete_ = false;
  std::string content_type_;
  std::string retry_after_;
};

}  // namespace fairlead::kube
