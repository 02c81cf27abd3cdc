#include "dashboard/handlers.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "dashboard/assets.h"

namespace fairlead::dashboard {
namespace {

using server::Request;
using server::Response;

constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

Response Secured(Response response) {
  response.headers.insert(response.headers.end(), {{"Content-Security-Policy", kPolicy},
                                                   {"X-Content-Type-Options", "nosniff"},
                                                   {"X-Frame-Options", "DENY"},
                                                   {"Referrer-Policy", "no-referrer"},
                                                   {"Cross-Origin-Resource-Policy", "same-origin"},
                                                   {"Cross-Origin-Opener-Policy", "same-origin"}});
  return response;
}

const char* ContentType(absl::string_view name) {
  if (absl::EndsWith(name, ".html")) return "text/html; charset=utf-8";
  if (absl::EndsWith(name, ".css")) return "text/css; charset=utf-8";
  if (absl::EndsWith(name, ".js")) return "text/javascript; charset=utf-8";
  if (absl::EndsWith(name, ".svg")) return "image/svg+xml";
  return "application/octet-stream";
}

Response FileResponse(const Asset& asset) {
  Response response;
  response.content_type = ContentType(asset.name);
  response.body = std::string(asset.content);
  response.etag = absl::StrCat("\"", asset.sha256, "\"");
  return Secured(std::move(response));
}

Response Refusal(const absl::Status& why) {
  Response response;
  response.body = absl::StrCat(why.message(), "\n");
  switch (why.code()) {
    case absl::StatusCode::kUnauthenticated:
      response.status = 401;
      response.headers = {{"WWW-Authenticate", "Bearer realm=\"fairlead\""}};
      break;
    case absl::StatusCode::kPermissionDenied:
      response.status = 403;
      break;
    case absl::StatusCode::kResourceExhausted:
      response.status = 429;
      response.headers = {{"Retry-After", "60"}};
      break;
    default:
      response.status = 503;
      break;
  }
  return Secured(std::move(response));
}

// Of the header Host: "localhost", an address of the loopback device, with a port or without.
bool IsLocalHost(absl::string_view host) {
  const bool has_port = host.rfind(':') != absl::string_view::npos && !absl::EndsWith(host, "]");
  const std::string with_port = has_port ? std::string(host) : absl::StrCat(host, ":80");
  if (absl::EqualsIgnoreCase(with_port.substr(0, with_port.rfind(':')), "localhost")) return true;
  const absl::StatusOr<server::BindAddress> address = server::ParseBindAddress(with_port);
  return address.ok() && server::IsLoopback(*address);
}

Response Misdirected() {
  Response response;
  response.status = 421;
  response.body =
      "the data is served under localhost, 127.0.0.1 and [::1] only; open the page under one of "
      "these names\n";
  return Secured(std::move(response));
}

server::RequestHandler DataHandler(const HandlerOptions& options, CachedText* source) {
  return [options, source](const Request& request) {
    if (options.local_hosts_only && !IsLocalHost(request.host)) return Misdirected();
    if (options.access != nullptr) {
      const absl::Status may = options.access->Check(request.authorization);
      if (!may.ok()) return Refusal(may);
    }
    const absl::StatusOr<std::shared_ptr<const std::string>> text = source->Get();
    // Whatever its code: it is no matter of the user's rights.
    if (!text.ok()) return Refusal(absl::UnavailableError(text.status().message()));
    Response response;
    response.content_type = "application/json";
    response.body = **text;
    return Secured(std::move(response));
  };
}

}  // namespace

std::map<std::string, server::RequestHandler> Handlers(const HandlerOptions& options) {
  std::map<std::string, server::RequestHandler> handlers;
  for (size_t i = 0; i < kAssetCount; ++i) {
    const Asset& asset = kAssets[i];
    const auto handler = [&asset](const Request&) { return FileResponse(asset); };
    if (asset.name == "index.html") handlers["/"] = handler;
    handlers[absl::StrCat("/", asset.name)] = handler;
  }
  handlers["/data/snapshot"] = DataHandler(options, options.snapshot);
  handlers["/data/timeline"] = DataHandler(options, options.timeline);
  return handlers;
}

}  // namespace fairlead::dashboard
