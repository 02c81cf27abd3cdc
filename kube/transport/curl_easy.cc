#include "kube/transport/curl_easy.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace fairlead::kube {
namespace {

// A peer that acknowledges nothing for this long is gone: NAT boxes and dead nodes close
// connections silently. Keepalive probes detect that on a quiet watch, too, after half a minute.
constexpr unsigned kTcpUserTimeout_ms = 25'000;
constexpr long kKeepaliveIdle_s = 10;
constexpr long kKeepaliveInterval_s = 5;
// Lists and watches come in large pieces, answers to writes in small ones.
constexpr long kReadBufferBytes = 128 * 1024;
constexpr long kWriteBufferBytes = 16 * 1024;

int OnSocket(void* /*context*/, curl_socket_t fd, curlsocktype /*purpose*/) noexcept {
  // Best effort: it only makes a failure known sooner.
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kTcpUserTimeout_ms, sizeof(kTcpUserTimeout_ms));
  return CURL_SOCKOPT_OK;
}

bool IsHeaderValue(absl::string_view value) {
  return std::all_of(value.begin(), value.end(),
                     [](char c) { return absl::ascii_isprint(static_cast<unsigned char>(c)); });
}

absl::Status Validate(const HttpRequest& request) {
  const bool method_ok = !request.method.empty() &&
                         std::all_of(request.method.begin(), request.method.end(), [](char c) {
                           return absl::ascii_isupper(static_cast<unsigned char>(c));
                         });
  if (!method_ok) return absl::InvalidArgumentError("the method is not upper-case letters");
  const bool path_ok = absl::StartsWith(request.path, "/") &&
                       std::all_of(request.path.begin(), request.path.end(), [](char c) {
                         return absl::ascii_isgraph(static_cast<unsigned char>(c)) && c != '#';
                       });
  if (!path_ok) return absl::InvalidArgumentError("the path is not absolute and escaped");
  if (!IsHeaderValue(request.content_type) || !IsHeaderValue(request.accept)) {
    return absl::InvalidArgumentError("a media type holds control characters");
  }
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Easy> Easy::Create(const CurlTarget& target, TrafficClass traffic) {
  CURL* handle = curl_easy_init();
  if (handle == nullptr) return nullptr;
  std::unique_ptr<Easy> easy(new Easy(handle, target));
  easy->SetConstants(traffic);
  return easy->failed_option_ == CURLE_OK ? std::move(easy) : nullptr;
}

Easy::~Easy() {
  curl_easy_cleanup(handle_);
  curl_slist_free_all(headers_);
  curl_slist_free_all(connect_to_);
}

template <typename Value>
void Easy::Set(CURLoption option, Value value) {
  const CURLcode code = curl_easy_setopt(handle_, option, value);
  if (code != CURLE_OK && failed_option_ == CURLE_OK) failed_option_ = code;
}

void Easy::SetBlob(CURLoption option, const std::string& pem) {
  if (pem.empty()) return Set(option, static_cast<curl_blob*>(nullptr));
  // No copy: the handle keeps the data alive.
  curl_blob blob = {const_cast<char*>(pem.data()), pem.size(), CURL_BLOB_NOCOPY};
  Set(option, &blob);
}

void Easy::SetConstants(TrafficClass traffic) {
  Set(CURLOPT_NOSIGNAL, 1L);
  Set(CURLOPT_PROTOCOLS_STR, "http,https");
  Set(CURLOPT_PROXY, "");  // not the environment's either
  // Without TLS there is no HTTP/2, but libcurl would let the first requests to a server wait until
  // one is answered, to see whether its connection multiplexes.
  const bool may_multiplex =
      traffic != TrafficClass::kWatch && !absl::StartsWithIgnoreCase(target_.url, "http://");
  Set(CURLOPT_HTTP_VERSION,
      static_cast<long>(may_multiplex ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
  // Waits for a connection that may turn out to multiplex, instead of opening one per request.
  Set(CURLOPT_PIPEWAIT, 1L);
  Set(CURLOPT_PATH_AS_IS, 1L);
  Set(CURLOPT_TCP_KEEPALIVE, 1L);
  Set(CURLOPT_TCP_KEEPIDLE, kKeepaliveIdle_s);
  Set(CURLOPT_TCP_KEEPINTVL, kKeepaliveInterval_s);
  Set(CURLOPT_SOCKOPTFUNCTION, OnSocket);
  Set(CURLOPT_CONNECTTIMEOUT_MS,
      static_cast<long>(absl::ToInt64Milliseconds(target_.connect_timeout)));
  Set(CURLOPT_BUFFERSIZE, traffic == TrafficClass::kWrite ? kWriteBufferBytes : kReadBufferBytes);
  Set(CURLOPT_USERAGENT, target_.user_agent.c_str());
  Set(CURLOPT_ERRORBUFFER, error_);
  Set(CURLOPT_HEADERFUNCTION, OnHeaderLine);
  Set(CURLOPT_HEADERDATA, static_cast<void*>(this));
  Set(CURLOPT_WRITEFUNCTION, OnBody);
  Set(CURLOPT_WRITEDATA, static_cast<void*>(this));
  Set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  Set(CURLOPT_SSL_VERIFYPEER, target_.insecure ? 0L : 1L);
  Set(CURLOPT_SSL_VERIFYHOST, target_.insecure ? 0L : 2L);
  Set(CURLOPT_SSLCERTTYPE, "PEM");
  Set(CURLOPT_SSLKEYTYPE, "PEM");
  if (!target_.ca_pem.empty()) SetBlob(CURLOPT_CAINFO_BLOB, target_.ca_pem);
  if (!target_.connect_to.empty()) {
    connect_to_ = curl_slist_append(nullptr, target_.connect_to.c_str());
    Set(CURLOPT_CONNECT_TO, connect_to_);
  }
}

// libcurl compares certificates and bundle with those of its connections. So a rotated identity
// gets new connections; the old ones become idle and are closed.
void Easy::SetIdentity(CredentialsPtr credentials) {
  if (credentials == credentials_) return;
  const std::string& ca = credentials->ca_pem.empty() ? target_.ca_pem : credentials->ca_pem;
  if (!ca.empty()) SetBlob(CURLOPT_CAINFO_BLOB, ca);
  SetBlob(CURLOPT_SSLCERT_BLOB, credentials->certificate_pem);
  SetBlob(CURLOPT_SSLKEY_BLOB, credentials->key_pem);
  credentials_ = std::move(credentials);
}

void Easy::SetMethod(const HttpRequest& request) {
  Set(CURLOPT_CUSTOMREQUEST, static_cast<char*>(nullptr));
  Set(CURLOPT_HTTPGET, 1L);  // also forgets the body of the former request
  if (!request.body.empty() || request.method == "POST") {
    Set(CURLOPT_POSTFIELDS, request.body.data());
    Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    if (request.method != "POST") Set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  } else if (request.method != "GET") {
    Set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
}

void Easy::SetHeaders(const HttpRequest& request) {
  curl_slist_free_all(headers_);
  headers_ = nullptr;
  const auto add = [this](const std::string& line) {
    curl_slist* longer = curl_slist_append(headers_, line.c_str());
    if (longer != nullptr) {
      headers_ = longer;
    } else {
      failed_option_ = CURLE_OUT_OF_MEMORY;
    }
  };
  add(absl::StrCat("Accept: ", request.accept));
  // Without a value the header is omitted; otherwise libcurl would send the type of a form.
  if (!request.body.empty() || request.method == "POST") {
    add(absl::StrCat("Content-Type: ", request.content_type));
    add("Expect:");
  }
  if (!credentials_->authorization.empty()) {
    add(absl::StrCat("Authorization: ", credentials_->authorization));
  }
  if (!target_.host.empty()) add(absl::StrCat("Host: ", target_.host));
  Set(CURLOPT_HTTPHEADER, headers_);
}

absl::Status Easy::Prepare(const HttpRequest& request, CredentialsPtr credentials,
                           absl::Duration timeout, AnswerSink* sink, void* tag) {
  FAIRLEAD_RETURN_IF_ERROR(Validate(request));
  failed_option_ = CURLE_OK;
  error_[0] = '\0';
  sink_ = sink;
  headers_complete_ = false;
  content_type_.clear();
  retry_after_.clear();
  SetIdentity(std::move(credentials));
  SetMethod(request);
  SetHeaders(request);
  url_ = absl::StrCat(target_.url, request.path);
  Set(CURLOPT_URL, url_.c_str());
  // Zero means no limit to libcurl.
  const int64_t timeout_ms =
      timeout == absl::InfiniteDuration()
          ? 0
          : std::clamp<int64_t>(absl::ToInt64Milliseconds(timeout), 1, 1'000'000'000);
  Set(CURLOPT_TIMEOUT_MS, static_cast<long>(timeout_ms));
  Set(CURLOPT_PRIVATE, tag);
  if (failed_option_ == CURLE_OK) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("libcurl: ", curl_easy_strerror(failed_option_)));
}

std::string Easy::ErrorText(CURLcode code) const {
  return error_[0] != '\0' ? error_ : curl_easy_strerror(code);
}

// One line of a header block, or of the trailers after the body. Informational answers (1xx) have
// their own blocks before the final one.
bool Easy::TakeHeader(absl::string_view line) {
  if (absl::StartsWith(line, "HTTP/")) {
    content_type_.clear();
    retry_after_.clear();
    return true;
  }
  if (headers_complete_) return true;
  line = absl::StripTrailingAsciiWhitespace(line);
  if (!line.empty()) {
    const size_t colon = line.find(':');
    if (colon == absl::string_view::npos) return true;
    const absl::string_view name = line.substr(0, colon);
    const absl::string_view value = absl::StripAsciiWhitespace(line.substr(colon + 1));
    if (absl::EqualsIgnoreCase(name, "content-type")) content_type_ = std::string(value);
    if (absl::EqualsIgnoreCase(name, "retry-after")) retry_after_ = std::string(value);
    return true;
  }
  long status = 0;
  curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &status);
  if (status < 200) return true;
  headers_complete_ = true;
  curl_off_t length = -1;
  curl_easy_getinfo(handle_, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  return sink_->OnAnswerHeaders(static_cast<int>(status), content_type_, retry_after_, length);
}

// A return value other than the given count makes libcurl abort the transfer. An exception is a bug
// of the callback; it must not unwind through C, and noexcept ends the program at that point.
size_t Easy::OnHeaderLine(char* data, size_t size, size_t count, void* self) noexcept {
  const size_t bytes = size * count;
  return static_cast<Easy*>(self)->TakeHeader({data, bytes}) ? bytes : 0;
}

size_t Easy::OnBody(char* data, size_t size, size_t count, void* self) noexcept {
  const size_t bytes = size * count;
  if (bytes == 0) return 0;
  return static_cast<Easy*>(self)->sink_->OnAnswerBody({data, bytes}) ? bytes : 0;
}

}  // namespace fairlead::kube
