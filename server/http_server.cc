#include "server/http_server.h"

#include <pthread.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/version.hpp>
#include <chrono>
#include <csignal>
#include <list>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace fairlead::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Tcp = asio::ip::tcp;
using Answer = http::response<http::string_body>;

using PlainStream = beast::tcp_stream;
using TlsStream = asio::ssl::stream<beast::tcp_stream>;

// A connection, as the others see it.
class Connection {
 public:
  virtual ~Connection() = default;
  // Closes it now; what is under way on it ends with an error.
  virtual void Drop() = 0;
};

// State shared by all connections of a server.
struct Shared {
  std::map<std::string, Handler> handlers;
  HttpServerOptions options;
  // The I/O thread's: the session that has been idle for longest is the first. It outlives the
  // sessions, which the contexts own.
  std::list<Connection*> sessions = {};
  asio::io_context io{1};
  asio::io_context slow{};  // of several threads
};

Answer MakeAnswer(const Response& response, unsigned version, bool keep_alive) {
  Answer answer(static_cast<http::status>(response.status), version);
  answer.set(http::field::content_type, response.content_type);
  // A client that keeps the answer asks each time whether it is still the same.
  answer.set(http::field::cache_control, response.etag.empty() ? "no-store" : "no-cache");
  if (!response.etag.empty()) answer.set(http::field::etag, response.etag);
  for (const auto& [name, value] : response.headers) answer.set(name, value);
  answer.keep_alive(keep_alive);
  if (response.status == 304) return answer;  // without a length: that of the body is not told
  answer.body() = response.body;
  answer.prepare_payload();
  return answer;
}

// Whether If-None-Match names the ETag (RFC 9110, 13.1.2: compared weakly).
bool Names(absl::string_view if_none_match, absl::string_view etag) {
  for (absl::string_view one : absl::StrSplit(if_none_match, ',')) {
    one = absl::StripAsciiWhitespace(one);
    absl::ConsumePrefix(&one, "W/");
    if (one == etag || one == "*") return true;
  }
  return false;
}

Response Error(int status, std::string text) {
  Response response;
  response.status = status;
  response.body = absl::StrCat(text, "\n");
  return response;
}

// One connection; alive while an operation on it is under way.
template <typename Stream>
class Session final : public Connection, public std::enable_shared_from_this<Session<Stream>> {
 public:
  // `arguments`: of the stream, after its socket.
  template <typename... Arguments>
  Session(Shared* shared, Tcp::socket socket, Arguments&... arguments)
      : stream_(beast::tcp_stream(std::move(socket)), arguments...),
        shared_(shared),
        place_(shared->sessions.insert(shared->sessions.end(), this)) {}
  ~Session() override { Leave(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void Drop() override {
    Leave();
    Lowest().close();
  }

  void Begin() {
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      ExpireAfter(shared_->options.handshake_timeout);
      stream_.async_handshake(asio::ssl::stream_base::server,
                              [self = this->shared_from_this()](beast::error_code error) {
                                if (!error) self->Read();
                              });
    } else {
      Read();
    }
  }

 private:
  beast::tcp_stream& Lowest() { return beast::get_lowest_layer(stream_); }
  void ExpireAfter(absl::Duration limit) {
    Lowest().expires_after(absl::ToChronoNanoseconds(limit));
  }

  void Read() {
    NoteActivity();
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(shared_->options.header_bytes_max));
    parser_->body_limit(shared_->options.body_bytes_max);
    ExpireAfter(shared_->options.read_timeout);
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = this->shared_from_this()](beast::error_code error, size_t) {
                              self->OnHeader(error);
                            });
  }

  void Leave() {
    if (std::exchange(counts_, false)) shared_->sessions.erase(place_);
  }
  void NoteActivity() {
    if (counts_) shared_->sessions.splice(shared_->sessions.end(), shared_->sessions, place_);
  }

  // True if the request could not be read: it was answered, or the connection ends.
  bool Failed(beast::error_code error) {
    if (!error) return false;
    if (error == http::error::end_of_stream || error == asio::ssl::error::stream_truncated) {
      Close();
    } else if (error == http::error::header_limit || error == http::error::buffer_overflow) {
      Write(MakeAnswer(Error(431, "the header is too large"), 11, false));
    } else if (error == http::error::body_limit) {
      Write(MakeAnswer(Error(413, "the body is too large"), 11, false));
    } else if (error.category() == http::make_error_code(http::error::bad_method).category()) {
      Write(MakeAnswer(Error(400, "not an HTTP request"), 11, false));
    }
    return true;  // else broken, or too slow: the socket is closed with the session
  }

  void OnHeader(beast::error_code error) {
    if (Failed(error)) return;
    const bool takes_body =
        parser_->get().method() == http::verb::post && shared_->options.posts.contains(Path());
    if (!takes_body) {
      const bool has_body = parser_->chunked() || parser_->content_length().value_or(0) > 0;
      if (has_body) return Write(MakeAnswer(Error(413, "a body is not expected"), 11, false));
    }
    http::async_read(stream_, buffer_, *parser_,
                     [self = this->shared_from_this()](beast::error_code failure, size_t) {
                       self->OnRead(failure);
                     });
  }

  void OnRead(beast::error_code error) {
    if (Failed(error)) return;
    const auto& request = parser_->get();
    const std::string path = Path();
    if (const auto post = shared_->options.posts.find(path); post != shared_->options.posts.end()) {
      if (request.method() != http::verb::post) return Respond(Error(405, "only POST"));
      return RespondSlowly([this, post] { return post->second(parser_->get().body()); });
    }
    if (request.method() != http::verb::get && request.method() != http::verb::head) {
      return Respond(Error(405, "only GET and HEAD"));
    }
    if (const auto asked = shared_->options.requests.find(path);
        asked != shared_->options.requests.end()) {
      return RespondSlowly([asked, about = About()] { return asked->second(about); });
    }
    const auto handler = shared_->handlers.find(path);
    if (handler == shared_->handlers.end()) return Respond(Error(404, "not found"));
    const std::string query = Query();
    if (!shared_->options.slow_paths.contains(path)) return Respond(handler->second(query));
    RespondSlowly([handler, query] { return handler->second(query); });
  }

  // Answers with what `make` gives on a slow thread. Nothing is read or written meanwhile.
  void RespondSlowly(std::function<Response()> make) {
    asio::post(shared_->slow, [self = this->shared_from_this(), make = std::move(make)]() mutable {
      Response response = make();
      // The session ends on the I/O thread, or with the server.
      asio::io_context& io = self->shared_->io;
      asio::post(io, [self = std::move(self), response = std::move(response)] {
        self->Respond(response);
      });
    });
  }

  [[nodiscard]] absl::string_view Target() const {
    const auto& request = parser_->get();
    return {request.target().data(), request.target().size()};
  }
  [[nodiscard]] std::string Path() const {
    return std::string(Target().substr(0, Target().find('?')));
  }
  [[nodiscard]] std::string Field(http::field name) const {
    const auto value = parser_->get()[name];
    return {value.data(), value.size()};
  }
  [[nodiscard]] Request About() const {
    return {Query(), Field(http::field::host), Field(http::field::authorization)};
  }
  [[nodiscard]] std::string Query() const {
    const size_t mark = Target().find('?');
    return mark == absl::string_view::npos ? "" : std::string(Target().substr(mark + 1));
  }

  // To the request that was read last.
  void Respond(const Response& response) {
    const auto& request = parser_->get();
    const bool keep_alive = request.keep_alive() && !response.close;
    if (response.status == 200 && !response.etag.empty() &&
        Names(Field(http::field::if_none_match), response.etag)) {
      Response same = response;
      same.status = 304;
      return Write(MakeAnswer(same, request.version(), keep_alive));
    }
    Answer answer = MakeAnswer(response, request.version(), keep_alive);
    if (request.method() == http::verb::head) answer.body().clear();  // Content-Length stays
    Write(std::move(answer));
  }

  void Write(Answer answer) {
    NoteActivity();
    answer_ = std::move(answer);
    ExpireAfter(shared_->options.write_timeout);
    http::async_write(stream_, answer_,
                      [self = this->shared_from_this()](beast::error_code error, size_t) {
                        if (error) return;
                        if (self->answer_.need_eof()) return self->Close();
                        self->Read();
                      });
  }

  void Close() {
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      ExpireAfter(shared_->options.write_timeout);
      // The socket is closed with the session.
      stream_.async_shutdown([self = this->shared_from_this()](beast::error_code /*ignored*/) {});
    } else {
      beast::error_code ignored;
      Lowest().socket().shutdown(Tcp::socket::shutdown_send, ignored);
    }
  }

  Stream stream_;
  Shared* const shared_;
  const std::list<Connection*>::iterator place_;
  bool counts_ = true;  // it has its place in the list
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  Answer answer_;
};

}  // namespace

absl::StatusOr<BindAddress> ParseBindAddress(absl::string_view text) {
  const absl::Status bad = absl::InvalidArgumentError(
      absl::StrCat("address \"", text, "\": must be HOST:PORT, :PORT or [IPv6]:PORT"));
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return bad;
  BindAddress address;
  if (!absl::SimpleAtoi(text.substr(colon + 1), &address.port) || address.port < 0 ||
      address.port > 65535) {
    return bad;
  }
  absl::string_view host = text.substr(0, colon);
  if (!host.empty() && host.front() == '[') {
    if (host.back() != ']' || host.size() < 3) return bad;
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != absl::string_view::npos) {
    return bad;
  }
  address.host = std::string(host);
  beast::error_code error;
  if (!host.empty() && (asio::ip::make_address(address.host, error), error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("address \"", text, "\": the host must be an IP address"));
  }
  return address;
}

bool IsLoopback(const BindAddress& address) {
  beast::error_code error;
  const asio::ip::address host = asio::ip::make_address(address.host, error);
  return !error && host.is_loopback();
}

class HttpServer::Impl {
 public:
  Impl(std::map<std::string, Handler> handlers, HttpServerOptions options)
      : shared_{.handlers = std::move(handlers), .options = std::move(options)},
        acceptor_(shared_.io) {}
  ~Impl() {
    shared_.io.stop();
    shared_.slow.stop();
    for (std::thread& thread : threads_) thread.join();
  }

  absl::Status Listen(const BindAddress& address) {
    beast::error_code error;
    if (address.host.empty()) {
      error = ListenOn({asio::ip::address_v6::any(), PortOf(address)});
      // A machine without IPv6.
      if (error == asio::error::address_family_not_supported ||
          error == boost::system::errc::address_not_available) {
        error = ListenOn({asio::ip::address_v4::any(), PortOf(address)});
      }
    } else {
      const asio::ip::address host = asio::ip::make_address(address.host, error);
      if (!error) error = ListenOn({host, PortOf(address)});
    }
    if (error) {
      return absl::UnavailableError(absl::StrCat("cannot listen on ", address.host, ":",
                                                 address.port, ": ", error.message()));
    }
    port_ = acceptor_.local_endpoint().port();
    Accept();
    threads_.push_back(Run(shared_.io));
    for (int i = 0; i < std::max(1, shared_.options.slow_threads); ++i) {
      threads_.push_back(Run(shared_.slow));
    }
    return absl::OkStatus();
  }
  [[nodiscard]] int port() const { return port_; }

 private:
  using WorkGuard = asio::executor_work_guard<asio::io_context::executor_type>;

  static unsigned short PortOf(const BindAddress& address) {
    return static_cast<unsigned short>(address.port);
  }

  // On all addresses of IPv6: those of IPv4 too.
  beast::error_code ListenOn(const Tcp::endpoint& endpoint) {
    beast::error_code error;
    if (acceptor_.is_open()) acceptor_.close(error);
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error && endpoint.address() == asio::ip::address_v6::any()) {
      acceptor_.set_option(asio::ip::v6_only(false), error);
    }
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    return error;
  }

  static std::thread Run(asio::io_context& context) {
    return std::thread([&context, work = WorkGuard(context.get_executor())] {
      // A dedicated thread waits for signals.
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_BLOCK, &all, nullptr);
      context.run();
    });
  }

  void Accept() {
    acceptor_.async_accept([this](beast::error_code error, Tcp::socket socket) {
      // Without a descriptor, the socket closes here.
      if (!error) {
        if (shared_.sessions.size() >= shared_.options.connections_max) {
          shared_.sessions.front()->Drop();
        }
        Serve(std::move(socket));
      }
      if (error == asio::error::operation_aborted) return;
      if (!error) return Accept();
      // Out of descriptors: retrying at once would be a busy loop.
      pause_.expires_after(std::chrono::milliseconds(100));
      pause_.async_wait([this](beast::error_code aborted) {
        if (!aborted) Accept();
      });
    });
  }

  // Without a certificate yet, the socket closes here.
  void Serve(Tcp::socket socket) {
    if (shared_.options.tls == nullptr) {
      return std::make_shared<Session<PlainStream>>(&shared_, std::move(socket))->Begin();
    }
    const std::shared_ptr<SSL_CTX> native = shared_.options.tls->Context();
    if (native == nullptr) return;
    SSL_CTX_up_ref(native.get());
    asio::ssl::context context(native.get());  // the stream keeps what it needs of it
    std::make_shared<Session<TlsStream>>(&shared_, std::move(socket), context)->Begin();
  }

  Shared shared_;
  Tcp::acceptor acceptor_;
  asio::steady_timer pause_{shared_.io};
  int port_ = 0;
  std::vector<std::thread> threads_;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;
int HttpServer::port() const { return impl_->port(); }

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    const BindAddress& address, std::map<std::string, Handler> handlers,
    HttpServerOptions options) {
  auto impl = std::make_unique<Impl>(std::move(handlers), std::move(options));
  if (absl::Status listening = impl->Listen(address); !listening.ok()) return listening;
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

}  // namespace fairlead::server
