#include "kube/transport/curl_transport.h"

#include <curl/curl.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "kube/transport/curl_loop.h"

namespace fairlead::kube {
namespace {

// Runs once per process, before the first handle; libcurl guards it against other threads itself.
absl::Status InitialiseLibcurl() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_ALL);
  if (code == CURLE_OK) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("libcurl: ", curl_easy_strerror(code)));
}

bool IsHostName(absl::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-';
  });
}

// A part of a URL with its default, empty if there is none.
std::string UrlPart(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) return "";
  std::string result = text;
  curl_free(text);
  return result;
}

absl::StatusOr<CurlTarget> MakeTarget(const ServerConfig& server,
                                      const CurlTransportOptions& options) {
  CurlTarget target;
  target.url = server.url;
  while (absl::EndsWith(target.url, "/")) target.url.pop_back();
  target.insecure = server.insecure_skip_tls_verify;
  target.user_agent = options.user_agent;
  target.connect_timeout = options.connect_timeout;
  target.ca_pem = server.ca_pem;
  if (target.ca_pem.empty() && !server.ca_file.empty()) {
    FAIRLEAD_ASSIGN_OR_RETURN(target.ca_pem,
                              ReadSmallFile(server.ca_file, "certificate authority"));
  }

  const std::unique_ptr<CURLU, void (*)(CURLU*)> url(curl_url(), curl_url_cleanup);
  if (curl_url_set(url.get(), CURLUPART_URL, target.url.c_str(), 0) != CURLUE_OK) {
    return absl::InvalidArgumentError("the server's address is no URL");
  }
  const std::string scheme = UrlPart(url.get(), CURLUPART_SCHEME);
  if (scheme != "https" && scheme != "http") {
    return absl::InvalidArgumentError("the server's address is neither https:// nor http://");
  }
  if (!UrlPart(url.get(), CURLUPART_USER).empty()) {
    return absl::InvalidArgumentError("the server's address must not hold a user or password");
  }
  if (server.tls_server_name.empty() || scheme != "https") return target;

  // libcurl takes the name for the certificate and the server name indication from the URL. So the
  // URL gets the name, and the address is passed separately.
  const std::string& name = server.tls_server_name;
  if (!IsHostName(name)) {
    return absl::InvalidArgumentError(absl::StrCat("tls-server-name: \"", name, "\" is no name"));
  }
  const std::string host = UrlPart(url.get(), CURLUPART_HOST);
  const std::string port = UrlPart(url.get(), CURLUPART_PORT);
  const std::string path = UrlPart(url.get(), CURLUPART_PATH);
  target.url = absl::StrCat("https://", name, ":", port, path == "/" ? "" : path);
  target.connect_to = absl::StrCat(name, ":", port, ":", host, ":", port);
  target.host = absl::StrCat(host, ":", port);
  return target;
}

}  // namespace

// A derived class of CurlLoop, so that our users do not see libcurl.
class CurlTransport::Loop final : public CurlLoop {
 public:
  using CurlLoop::CurlLoop;
};

absl::StatusOr<std::unique_ptr<CurlTransport>> CurlTransport::Create(
    const ServerConfig& server, std::unique_ptr<CredentialSource> credentials, const Clock& clock,
    CurlTransportOptions options) {
  FAIRLEAD_RETURN_IF_ERROR(InitialiseLibcurl());
  FAIRLEAD_ASSIGN_OR_RETURN(CurlTarget target, MakeTarget(server, options));
  return std::unique_ptr<CurlTransport>(new CurlTransport(
      std::make_unique<Loop>(std::move(target), std::move(credentials), clock, options)));
}

CurlTransport::CurlTransport(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}

CurlTransport::~CurlTransport() = default;

CurlTransport::Id CurlTransport::Send(HttpRequest request, Done done) {
  return loop_->Start(std::move(request), std::move(done), nullptr);
}

CurlTransport::Id CurlTransport::Stream(HttpRequest request,
                                        std::shared_ptr<StreamObserver> observer) {
  return loop_->Start(std::move(request), nullptr, std::move(observer));
}

void CurlTransport::Cancel(Id id) { loop_->Cancel(id); }

CurlTransport::Id CurlTransport::After(absl::Duration delay, std::function<void()> callback) {
  return loop_->After(delay, std::move(callback));
}

void CurlTransport::CancelTimer(Id id) { loop_->CancelTimer(id); }

void CurlTransport::Shutdown() { loop_->Close(); }

}  // namespace fairlead::kube
