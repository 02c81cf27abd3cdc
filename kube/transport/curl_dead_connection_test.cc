// Connections that fall silent over HTTP/2, and which requests use it. The server is written by
// hand, because it has to fall silent at any point; it answers requests without reading their
// headers.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kube/transport/curl_test_fixture.h"

namespace fairlead::kube {
namespace {

// RFC 9113, section 4.1.
struct Frame {
  uint8_t type = 0, flags = 0;
  uint32_t stream = 0;
  std::string payload;
};
constexpr uint8_t kData = 0, kHeaders = 1, kSettings = 4, kPing = 6;
constexpr uint8_t kEndStream = 1, kAck = 1, kEndHeaders = 4;
constexpr char kStatus200[] = "\x88";  // HPACK, entry 8 of the static table

class Http2Server {
 public:
  explicit Http2Server(const TlsIdentity& identity) : context_(SSL_CTX_new(TLS_server_method())) {
    UseIdentity(identity);
    SSL_CTX_set_alpn_select_cb(context_, ChooseHttp2, this);
    listen_fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listen_fd_, generic, size), 0);
    EXPECT_EQ(listen(listen_fd_, 16), 0);
    EXPECT_EQ(getsockname(listen_fd_, generic, &size), 0);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { Accept(); });
  }
  ~Http2Server() {
    shutdown(listen_fd_, SHUT_RDWR);
    acceptor_.join();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (const int fd : open_) shutdown(fd, SHUT_RDWR);
    }
    for (std::thread& worker : workers_) worker.join();
    close(listen_fd_);
    SSL_CTX_free(context_);
  }
  [[nodiscard]] std::string url() const { return absl::StrCat("https://127.0.0.1:", port_); }

  std::atomic<bool> mute = false;  // reads, and writes nothing
  std::atomic<int> connections = 0;
  std::atomic<int> refused = 0;  // connections of clients that did not offer HTTP/2

 private:
  static int ChooseHttp2(SSL*, const unsigned char** out, unsigned char* length,
                         const unsigned char* offered, unsigned size, void* self) {
    static const unsigned char kName[] = {'h', '2'};
    unsigned char* chosen = nullptr;
    static const unsigned char kList[] = {2, 'h', '2'};
    if (SSL_select_next_proto(&chosen, length, kList, sizeof(kList), offered, size) !=
        OPENSSL_NPN_NEGOTIATED) {
      ++static_cast<Http2Server*>(self)->refused;
      return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    *out = kName;
    *length = sizeof(kName);
    return SSL_TLSEXT_ERR_OK;
  }
  void UseIdentity(const TlsIdentity& identity) {
    BIO* text = BIO_new_mem_buf(identity.certificate_pem.data(), -1);
    X509* certificate = PEM_read_bio_X509(text, nullptr, nullptr, nullptr);
    EXPECT_EQ(SSL_CTX_use_certificate(context_, certificate), 1);
    X509_free(certificate);
    BIO_free(text);
    text = BIO_new_mem_buf(identity.key_pem.data(), -1);
    EVP_PKEY* key = PEM_read_bio_PrivateKey(text, nullptr, nullptr, nullptr);
    EXPECT_EQ(SSL_CTX_use_PrivateKey(context_, key), 1);
    EVP_PKEY_free(key);
    BIO_free(text);
  }
  void Accept() {
    for (;;) {
      const int fd = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      const int number = connections++;
      const std::lock_guard<std::mutex> lock(mutex_);
      open_.push_back(fd);
      workers_.emplace_back([this, fd, number] {
        sigset_t pipe;
        sigemptyset(&pipe);
        sigaddset(&pipe, SIGPIPE);
        pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
        Serve(fd, number);
      });
    }
  }
  static bool ReadAll(SSL* tls, char* out, size_t size) {
    for (size_t got = 0; got < size;) {
      const int n = SSL_read(tls, out + got, static_cast<int>(size - got));
      if (n <= 0) return false;
      got += static_cast<size_t>(n);
    }
    return true;
  }
  static bool ReadFrame(SSL* tls, Frame& frame) {
    unsigned char head[9];
    if (!ReadAll(tls, reinterpret_cast<char*>(head), sizeof(head))) return false;
    frame.type = head[3];
    frame.flags = head[4];
    frame.stream = (uint32_t{head[5]} & 0x7f) << 24 | uint32_t{head[6]} << 16 |
                   uint32_t{head[7]} << 8 | head[8];
    frame.payload.resize(size_t{head[0]} << 16 | size_t{head[1]} << 8 | head[2]);
    return ReadAll(tls, frame.payload.data(), frame.payload.size());
  }
  void Write(SSL* tls, const Frame& frame) const {
    if (mute) return;
    const size_t size = frame.payload.size();
    const auto byte = [](size_t value) { return static_cast<char>(value & 0xff); };
    std::string bytes = {
        byte(size >> 16),         byte(size >> 8),         byte(size),
        byte(frame.type),         byte(frame.flags),       byte(frame.stream >> 24),
        byte(frame.stream >> 16), byte(frame.stream >> 8), byte(frame.stream)};
    bytes += frame.payload;
    SSL_write(tls, bytes.data(), static_cast<int>(bytes.size()));
  }
  // The answer to the first request of a connection stays open; the others are answered.
  void Serve(int fd, int number) {
    SSL* tls = SSL_new(context_);
    SSL_set_fd(tls, fd);
    char preface[24];
    if (SSL_accept(tls) == 1 && ReadAll(tls, preface, sizeof(preface))) {
      Write(tls, {kSettings, 0, 0, ""});
      int served = 0;
      for (Frame frame; ReadFrame(tls, frame);) {
        if (frame.type == kSettings && (frame.flags & kAck) == 0) {
          Write(tls, {kSettings, kAck, 0, ""});
        } else if (frame.type == kPing && (frame.flags & kAck) == 0) {
          Write(tls, {kPing, kAck, 0, frame.payload});
        } else if (frame.type == kHeaders) {
          const bool open = served++ == 0;
          Write(tls, {kHeaders, static_cast<uint8_t>(kEndHeaders | (open ? 0 : kEndStream)),
                      frame.stream, kStatus200});
          if (open) Write(tls, {kData, 0, frame.stream, absl::StrCat("connection ", number)});
        }
      }
    }
    SSL_free(tls);
    const std::lock_guard<std::mutex> lock(mutex_);
    close(fd);
    std::erase(open_, fd);
  }

  SSL_CTX* const context_;
  int listen_fd_ = -1, port_ = 0;
  std::mutex mutex_;
  std::vector<int> open_;
  std::vector<std::thread> workers_;  // owned by the accept thread until it has ended
  std::thread acceptor_;
};

class DeadConnectionTest : public CurlTransportTest {
 protected:
  void ConnectToServer() {
    ServerConfig config;
    config.url = http2_.url();
    config.ca_pem = authority_.certificate_pem();
    Connect(config);
  }

  TestAuthority authority_{"good"};
  Http2Server http2_{authority_.Issue("server", "IP:127.0.0.1")};
};

// An event costs the API server less over HTTP/1.1. And a dead connection would be used for every
// new watch, four minutes each time.
TEST_F(DeadConnectionTest, AWatchDoesNotOfferHttp2) {
  ConnectToServer();
  HttpRequest watch = Get("/api/v1/pods?watch=1");
  watch.traffic = TrafficClass::kWatch;
  const auto stream = std::make_shared<Collector>();
  transport_->Stream(watch, stream);
  EXPECT_TRUE(absl::IsUnavailable(stream->AwaitDone()));
  EXPECT_GT(http2_.refused, 0);
  const int refused = http2_.refused;
  const auto other = std::make_shared<Collector>();
  transport_->Stream(Get("/api/v1/pods"), other);
  other->AwaitAnyData();
  EXPECT_EQ(http2_.refused, refused);
}

// A write got no answer: the next one gets a connection of its own.
TEST_F(DeadConnectionTest, ATimeOutInSilenceCutsTheConnection) {
  ConnectToServer();
  HttpRequest write = With("POST", "x");
  write.timeout = absl::Minutes(1);
  // The server takes the first for a watch: it stays open. When it is heard of, the connection is
  // known to carry more requests.
  const auto opens = std::make_shared<Collector>();
  transport_->Stream(write, opens);
  opens->AwaitData("connection 0");
  // Without a body: the server answers before it has read one, which libcurl may wait for.
  HttpRequest answered = Get("/answered");
  answered.traffic = write.traffic;
  ASSERT_TRUE(transport_->Call(answered).ok());
  http2_.mute = true;
  write.timeout = absl::Milliseconds(100);
  EXPECT_TRUE(absl::IsDeadlineExceeded(transport_->Call(write).status()));
  http2_.mute = false;
  write.timeout = absl::Minutes(1);
  const auto next = std::make_shared<Collector>();
  transport_->Stream(write, next);
  next->AwaitData("connection 1");
}

}  // namespace
}  // namespace fairlead::kube
