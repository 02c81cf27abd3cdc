// A small HTTP/1.1 server for health, metrics, the dashboard, webhooks and the protocol of
// scheduler extenders: GET and HEAD, and POST where a handler takes a body; a handler per path.
//
// All resources are bounded. A connection beyond the limit takes the place of the one that has been
// idle for longest, so clients that hold connections open do not keep probes out. A request's
// header and body have size limits and a time limit; a body that no handler takes is refused. An
// answer that the client reads too slowly ends the connection. It speaks plain text, or TLS with
// the certificate of the options; clients are not authenticated.
//
// Handlers run on the server's one thread, one at a time; those of `slow_paths`, of `requests`, and
// all that take a body, run on others (`slow_threads`), so that they delay only each other.
// Answers: 404 for a path without handler, 405 for other methods, 400 for invalid HTTP, 413 and 431
// for too large requests; 304 without a body if the request's If-None-Match has the ETag of a 200.
//
// Ownership: owns its thread and sockets; objects that the handlers use must outlive the server.
// Thread-safety: every method from any thread but the handlers'. Two handlers may run at the same
// time if one is slow; with several `slow_threads`, one handler may run twice.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/tls_certificate.h"

namespace fairlead::server {

struct Response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  bool close = false;  // the connection after this answer, so that the client opens another one
  // Quoted, as in the header ETag. Empty: clients may not keep the answer.
  std::string etag = {};
  std::vector<std::pair<std::string, std::string>> headers = {};  // others; no line breaks in them
};
// What a handler is told that needs headers; a missing one is empty.
struct Request {
  std::string query;  // after the '?', as sent
  std::string host, authorization;
};
// `query` is the text after the '?', as sent.
using Handler = std::function<Response(absl::string_view query)>;
using RequestHandler = std::function<Response(const Request& request)>;
using BodyHandler = std::function<Response(absl::string_view body)>;

struct HttpServerOptions {
  size_t connections_max = 64;               // at least 1
  std::set<std::string> slow_paths;          // whose handlers may block
  std::map<std::string, BodyHandler> posts;  // by path: these take POST alone, and may block
  std::map<std::string, RequestHandler> requests = {};  // by path: GET and HEAD, and may block
  size_t header_bytes_max = 8 << 10;
  size_t body_bytes_max = size_t{64} << 20;
  absl::Duration read_timeout = absl::Seconds(10);       // for the next request on a connection
  absl::Duration write_timeout = absl::Seconds(10);      // for the client to read an answer
  int slow_threads = 1;                                  // at least 1
  std::shared_ptr<const TlsCertificate> tls = nullptr;   // null: no TLS
  absl::Duration handshake_timeout = absl::Seconds(10);  // of TLS
};

struct BindAddress {
  std::string host;  // empty: all addresses, of IPv6 and IPv4
  int port = 0;      // 0: any free one
};
// "127.0.0.1:8080", ":8080", "[::1]:8080". InvalidArgument if it is none of these.
absl::StatusOr<BindAddress> ParseBindAddress(absl::string_view text);
// True if only programs of this machine (in a cluster: of this pod) reach the address.
bool IsLoopback(const BindAddress& address);

class HttpServer {
 public:
  // Starts listening before it returns. Unavailable if the address cannot be bound.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const BindAddress& address,
                                                           std::map<std::string, Handler> handlers,
                                                           HttpServerOptions options = {});
  // Closes all connections and joins the thread.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] int port() const;

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace fairlead::server
