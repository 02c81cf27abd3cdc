// HttpTransport over libcurl: HTTP/2 if the server offers it (by ALPN, over TLS), else HTTP/1.1.
// Streams of events (TrafficClass::kWatch) always use HTTP/1.1, each on a connection of its own: a
// kube-apiserver flushes every event, and over HTTP/2 an event costs it a third more (tests/bench:
// bind_rate).
//
// One I/O thread runs everything: the timers, and an epoll loop that drives one libcurl multi
// handle per TrafficClass, so that the classes share no connection. Commands of other threads reach
// it through one locked inbox. The cost of a transfer depends on its own connection alone, whatever
// the number of open ones.
//
// TLS: version 1.2 or higher, the server's certificate and name verified against the configured
// bundle (or the system's), unless the configuration says insecure-skip-tls-verify. Credentials
// come from the CredentialSource. An answer 401 makes it load again; if the credentials differ, the
// call is repeated once within its time-out. The first 401 of a stream is not shown then. A request
// may reach the server twice: libcurl sends it again on a fresh connection if a reused one was
// closed before any byte of an answer. Writes therefore have preconditions.
//
// Dead connections: a peer that vanished silently (a power cut, a NAT box that forgot, a proxy that
// hangs) leaves connections on which nothing ever arrives. TCP finds most of them after 25 s
// without an acknowledgement, with probes on quiet ones. Over HTTP/2 such a connection would serve
// every later request of its class: if a request times out, connections that have been silent since
// it was sent are closed. Open requests on such a connection end with Unavailable, later requests
// get a new connection. A stream that falls silent is for its reader to judge, who knows how often
// the server should speak: cancelling it closes its connection.
//
// Errors beyond those of http.h: ResourceExhausted for an answer above max_body_bytes,
// InvalidArgument for a request that no HTTP message can express. They name method and path
// (without the query) and never a credential. An exception out of a callback ends the program.
//
// Thread-safety: all methods from any thread, callbacks included, with two exceptions. No callback
// may call Shutdown. The destructor must not run in a callback or during another call. It cancels
// open calls, drops the timers and joins the I/O thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "kube/credentials/client_config.h"
#include "kube/credentials/credentials.h"
#include "kube/transport/http.h"

namespace fairlead::kube {

struct CurlTransportOptions {
  // The most connections that a class may open. HTTP/2 fills one before it opens the next; further
  // requests wait. HTTP/1.1 needs one for each request in flight, and each watch has one.
  int read_connections_max = 4;
  int watch_connections_max = 64;  // more than there are kinds, those of providers included
  int write_connections_max = 2;
  int streams_per_connection_max = 100;                // the API server's own limit
  absl::Duration connect_timeout = absl::Seconds(10);  // TCP and TLS
  int64_t max_body_bytes = int64_t{512} << 20;         // of an answer to Send
  std::string user_agent = "fairlead";
};

class CurlTransport final : public HttpTransport, public Timers {
 public:
  using Id = uint64_t;  // HttpTransport and Timers each have an Id; both are this

  // The clock must run in real time and outlive the transport. InvalidArgument for a server address
  // that libcurl does not accept.
  static absl::StatusOr<std::unique_ptr<CurlTransport>> Create(
      const ServerConfig& server, std::unique_ptr<CredentialSource> credentials, const Clock& clock,
      CurlTransportOptions options = {});
  ~CurlTransport() override;
  CurlTransport(const CurlTransport&) = delete;
  CurlTransport& operator=(const CurlTransport&) = delete;

  Id Send(HttpRequest request, Done done) override;
  Id Stream(HttpRequest request, std::shared_ptr<StreamObserver> observer) override;
  void Cancel(Id id) override;
  Id After(absl::Duration delay, std::function<void()> callback) override;
  void CancelTimer(Id id) override;

  // Ends every open call, and every later one, with Cancelled; the open calls have been told when
  // it returns. Timers continue. Use it for the orderly end of a program: the destructor cancels
  // too, but then the receivers of callbacks must still exist. Idempotent.
  void Shutdown();

 private:
  class Loop;
  explicit CurlTransport(std::unique_ptr<Loop> loop);
  const std::unique_ptr<Loop> loop_;
};

}  // namespace fairlead::kube
