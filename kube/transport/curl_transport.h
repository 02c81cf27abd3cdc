// HttpTransport over libcurl: HTTP/2 where the server speaks it (by ALPN, over TLS), HTTP/1.1 where
// not.
//
// One I/O thread runs everything: an epoll loop that drives one libcurl multi handle a
// TrafficClass, so that the classes share no connection, and the timers. Commands of other threads
// reach it through one locked inbox. A transfer costs what happens on its own connection, whatever
// the number of open ones.
//
// TLS: version 1.2 or higher, the server's certificate and name verified against the configured
// bundle (or the system's), unless the configuration says insecure-skip-tls-verify. Credentials
// come from the CredentialSource; an answer 401 makes it load anew and, if that gave others, the
// call is made once more within its time-out. The first 401 of a stream is not shown then. A
// request may reach the server twice: libcurl sends it again on a fresh connection if a reused one
// was closed before any byte of an answer. Writes therefore carry preconditions.
//
// Dead connections: a peer that went away without a word (a power cut, a NAT box that forgot, a
// proxy that hangs) leaves connections on which nothing ever comes. Over HTTP/2 one of them would
// be used for every later request of its class, so it is looked for: while a stream is open, a
// connection on which nothing has arrived for `ping_interval` is asked for `ping_path`; and if a
// request of the class times out, connections on which nothing has arrived since it was sent are
// cut. What was open on it ends
// with Unavailable, what comes later gets a new one. (client-go sends PING frames; libcurl 7.88
// does not tell whether they were answered.)
//
// Errors beyond those of http.h: ResourceExhausted for an answer above max_body_bytes,
// InvalidArgument for a request that no HTTP message can carry. They name method and path (without
// the query) and never a credential. An exception out of a callback ends the program.
//
// Thread-safety: all methods from any thread, callbacks included, except Shutdown, which no
// callback may call, and the destructor: no callback, and no other call under way. It cancels what
// is open, drops the timers and joins the I/O thread.
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
  // Connections a class may open. HTTP/2 fills one before it opens the next; what no connection has
  // room for waits. HTTP/1.1 needs one for each watch and each request in flight.
  int read_connections_max = 4;
  int watch_connections_max = 32;
  int write_connections_max = 2;
  int streams_per_connection_max = 100;                // the API server's own limit
  absl::Duration connect_timeout = absl::Seconds(10);  // TCP and TLS
  int64_t max_body_bytes = int64_t{512} << 20;         // of an answer to Send
  std::string user_agent = "fairlead";
  absl::Duration ping_interval = absl::Seconds(15);
  absl::Duration ping_timeout = absl::Seconds(10);
  std::string ping_path = "/version";  // any answer will do; the API server shows it to everybody
};

class CurlTransport final : public HttpTransport, public Timers {
 public:
  using Id = uint64_t;  // HttpTransport and Timers each have one; both are this

  // The clock must run in real time and outlives the transport. InvalidArgument for a server
  // address that libcurl does not take.
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

  // Every call open now, and every later one, ends with Cancelled; those open now have been told
  // when it returns. Timers go on. For the orderly end of a program: the destructor cancels too,
  // but then whoever is called back must still be there. Idempotent.
  void Shutdown();

 private:
  class Loop;
  explicit CurlTransport(std::unique_ptr<Loop> loop);
  const std::unique_ptr<Loop> loop_;
};

}  // namespace fairlead::kube
