#include "kube/transport/loopback_server.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "kube/credentials/quiet_thread.h"

namespace fairlead::kube {
namespace {

std::string Pem(const std::function<int(BIO*)>& write) {
  BIO* memory = BIO_new(BIO_s_mem());
  FAIRLEAD_CHECK(write(memory) == 1, "OpenSSL cannot write PEM");
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  std::string pem(data, static_cast<size_t>(size));
  BIO_free(memory);
  return pem;
}

std::string PemOf(X509* certificate) {
  return Pem([certificate](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}

X509* FromPem(const std::string& pem) {
  BIO* memory = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  X509* certificate = PEM_read_bio_X509(memory, nullptr, nullptr, nullptr);
  BIO_free(memory);
  FAIRLEAD_CHECK(certificate != nullptr, "no certificate in the PEM");
  return certificate;
}

void Extend(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  FAIRLEAD_CHECK(extension != nullptr, "OpenSSL refuses an extension");
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

X509* NewCertificate(const std::string& common_name, EVP_PKEY* key, X509* issuer, long serial) {
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 24L * 3600);
  X509_set_pubkey(certificate, key);
  X509_NAME* name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1,
                             0);
  X509_set_issuer_name(certificate,
                       X509_get_subject_name(issuer != nullptr ? issuer : certificate));
  return certificate;
}

SSL_CTX* NewContext(const TlsIdentity& identity) {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  X509* certificate = FromPem(identity.certificate_pem);
  FAIRLEAD_CHECK(SSL_CTX_use_certificate(context, certificate) == 1, "certificate refused");
  X509_free(certificate);
  BIO* memory = BIO_new_mem_buf(identity.key_pem.data(), static_cast<int>(identity.key_pem.size()));
  EVP_PKEY* key = PEM_read_bio_PrivateKey(memory, nullptr, nullptr, nullptr);
  BIO_free(memory);
  FAIRLEAD_CHECK(SSL_CTX_use_PrivateKey(context, key) == 1, "key refused");
  EVP_PKEY_free(key);
  if (!identity.client_ca_pem.empty()) {
    X509* authority = FromPem(identity.client_ca_pem);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority);
    X509_free(authority);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    const unsigned char id[] = "test";
    SSL_CTX_set_session_id_context(context, id, sizeof(id));
  }
  return context;
}

}  // namespace

struct TestAuthority::Keys {
  EVP_PKEY* key = nullptr;
  X509* certificate = nullptr;
  mutable long last_serial = 1;
};

TestAuthority::TestAuthority(const std::string& name) : keys_(std::make_unique<Keys>()) {
  keys_->key = EVP_EC_gen("P-256");
  keys_->certificate = NewCertificate(name, keys_->key, nullptr, 1);
  Extend(keys_->certificate, keys_->certificate, NID_basic_constraints, "critical,CA:TRUE");
  X509_sign(keys_->certificate, keys_->key, EVP_sha256());
}

TestAuthority::~TestAuthority() {
  X509_free(keys_->certificate);
  EVP_PKEY_free(keys_->key);
}

std::string TestAuthority::certificate_pem() const { return PemOf(keys_->certificate); }

TlsIdentity TestAuthority::Issue(const std::string& common_name,
                                 const std::string& alternative_names) const {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = NewCertificate(common_name, key, keys_->certificate, ++keys_->last_serial);
  if (!alternative_names.empty()) {
    Extend(certificate, keys_->certificate, NID_subject_alt_name, alternative_names);
  }
  X509_sign(certificate, keys_->key, EVP_sha256());
  TlsIdentity identity;
  identity.certificate_pem = PemOf(certificate);
  identity.key_pem = Pem([key](BIO* out) {
    return PEM_write_bio_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
  X509_free(certificate);
  EVP_PKEY_free(key);
  return identity;
}

// ---- connections -------------------------------------------------------------------------------

class LoopbackServer::Channel final : public LoopbackServer::Connection {
 public:
  Channel(int fd, SSL* tls) : fd_(fd), tls_(tls) {}
  ~Channel() override { SSL_free(tls_); }

  void Write(const std::string& bytes) override {
    size_t sent = 0;
    while (sent < bytes.size()) {
      const size_t left = bytes.size() - sent;
      const ssize_t n = tls_ != nullptr
                            ? SSL_write(tls_, bytes.data() + sent, static_cast<int>(left))
                            : send(fd_, bytes.data() + sent, left, MSG_NOSIGNAL);
      if (n <= 0)
        return;  // the client is gone; the client side of the test checks whether that is
                 // right
      sent += static_cast<size_t>(n);
    }
  }
  void WaitForClose() override {
    char buffer[256];
    while (Read(buffer, sizeof(buffer)) > 0) {
    }
    closed_ = true;
  }
  void Close() override { closed_ = true; }

  ssize_t Read(char* buffer, size_t size) {
    return tls_ != nullptr ? SSL_read(tls_, buffer, static_cast<int>(size))
                           : recv(fd_, buffer, size, 0);
  }
  [[nodiscard]] bool closed() const { return closed_; }

 private:
  const int fd_;
  SSL* const tls_;
  bool closed_ = false;
};

void LoopbackServer::Connection::Answer(int status, const std::string& body,
                                        const std::string& extra) {
  Write(absl::StrCat("HTTP/1.1 ", status, " Scripted\r\nContent-Type: application/json\r\n", extra,
                     "Content-Length: ", body.size(), "\r\n\r\n", body));
}

void LoopbackServer::Connection::Chunk(const std::string& bytes) {
  Write(absl::StrCat(absl::Hex(bytes.size()), "\r\n", bytes, "\r\n"));
}

LoopbackServer::LoopbackServer(Handler handler, std::optional<TlsIdentity> tls)
    : handler_(std::move(handler)) {
  if (tls.has_value()) tls_context_ = NewContext(*tls);
  listen_fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  FAIRLEAD_CHECK(bind(listen_fd_, generic, size) == 0 && listen(listen_fd_, 64) == 0 &&
                     getsockname(listen_fd_, generic, &size) == 0,
                 "the loopback interface gives no port");
  port_ = ntohs(address.sin_port);
  // A quiet thread: an answer to a TLS client that is gone must not end the test with SIGPIPE.
  acceptor_ = StartQuietThread([this] { AcceptLoop(); });
}

LoopbackServer::~LoopbackServer() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    for (const int fd : open_) shutdown(fd, SHUT_RDWR);
  }
  shutdown(listen_fd_, SHUT_RDWR);
  acceptor_.join();
  for (std::thread& worker : workers_) worker.join();
  close(listen_fd_);
  SSL_CTX_free(static_cast<SSL_CTX*>(tls_context_));
}

std::string LoopbackServer::url() const {
  return absl::StrCat(tls_context_ != nullptr ? "https" : "http", "://127.0.0.1:", port_);
}

std::vector<LoopbackServer::Request> LoopbackServer::requests() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return requests_;
}

void LoopbackServer::AcceptLoop() {
  for (;;) {
    const int fd = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) {
      close(fd);
      return;
    }
    open_.push_back(fd);
    const int number = accepted_++;
    workers_.push_back(StartQuietThread([this, fd, number] { Serve(fd, number); }));
  }
}

bool LoopbackServer::ReadRequest(Channel& channel, std::string& buffer, Request& request) const {
  const auto more = [&] {
    char piece[4096];
    const ssize_t n = channel.Read(piece, sizeof(piece));
    if (n > 0) buffer.append(piece, static_cast<size_t>(n));
    return n > 0;
  };
  size_t end = 0;
  while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
    if (!more()) return false;
  }
  size_t line_end = buffer.find("\r\n");
  const size_t space = buffer.find(' ');
  request.method = buffer.substr(0, space);
  request.target = buffer.substr(space + 1, buffer.find(' ', space + 1) - space - 1);
  while (line_end < end) {
    const size_t begin = line_end + 2;
    line_end = buffer.find("\r\n", begin);
    const std::string line = buffer.substr(begin, line_end - begin);
    const size_t colon = line.find(':');
    request.headers[absl::AsciiStrToLower(line.substr(0, colon))] =
        std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  buffer.erase(0, end + 4);
  size_t length = 0;
  const auto it = request.headers.find("content-length");
  if (it != request.headers.end() && !absl::SimpleAtoi(it->second, &length)) return false;
  while (buffer.size() < length) {
    if (!more()) return false;
  }
  request.body = buffer.substr(0, length);
  buffer.erase(0, length);
  return true;
}

void LoopbackServer::Serve(int fd, int number) {
  SSL* tls = nullptr;
  bool usable = true;
  if (tls_context_ != nullptr) {
    tls = SSL_new(static_cast<SSL_CTX*>(tls_context_));
    SSL_set_fd(tls, fd);
    usable = SSL_accept(tls) == 1;
  }
  Channel channel(fd, tls);
  std::string client_name;
  if (usable && tls != nullptr) {
    X509* peer = SSL_get1_peer_certificate(tls);
    if (peer != nullptr) {
      char name[256] = {};
      X509_NAME_get_text_by_NID(X509_get_subject_name(peer), NID_commonName, name, sizeof(name));
      client_name = name;
      X509_free(peer);
    }
  }
  std::string buffer;
  while (usable && !channel.closed()) {
    Request request;
    request.connection = number;
    request.client_name = client_name;
    if (!ReadRequest(channel, buffer, request)) break;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      requests_.push_back(request);
    }
    handler_(request, channel);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  open_.erase(std::find(open_.begin(), open_.end(), fd));
  close(fd);
}

}  // namespace fairlead::kube
