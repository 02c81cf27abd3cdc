#include "server/tls_certificate.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/openssl_pem.h"

namespace fairlead::server {
namespace {

// Of TLS 1.2; those of TLS 1.3 are all of this kind.
constexpr char kCiphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20";

std::shared_ptr<SSL_CTX> NewContext() {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (context == nullptr) return context;
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_cipher_list(context.get(), kCiphers);
  return context;
}

}  // namespace

absl::Status TlsCertificate::Set(absl::string_view chain_pem, absl::string_view key_pem) {
  if (chain_pem.size() > kMostPemBytes || key_pem.size() > kMostPemBytes) {
    return absl::InvalidArgumentError("the certificate or its key is larger than 1 MiB");
  }
  const std::vector<OpenSslPtr<X509>> chain = CertificatesOf(chain_pem);
  if (chain.empty()) return absl::InvalidArgumentError("the certificate is no PEM certificate");
  const OpenSslPtr<EVP_PKEY> key = KeyOf(key_pem);
  if (key == nullptr) return absl::InvalidArgumentError("the key is no PEM key without a password");
  std::shared_ptr<SSL_CTX> context = NewContext();
  bool fine = context != nullptr && SSL_CTX_use_certificate(context.get(), chain[0].get()) == 1;
  for (size_t i = 1; fine && i < chain.size(); ++i) {
    fine = SSL_CTX_add1_chain_cert(context.get(), chain[i].get()) == 1;
  }
  const bool matches = fine && SSL_CTX_use_PrivateKey(context.get(), key.get()) == 1 &&
                       SSL_CTX_check_private_key(context.get()) == 1;
  ERR_clear_error();
  if (!fine) return absl::InvalidArgumentError("the certificate cannot be used");
  if (!matches) return absl::InvalidArgumentError("the key is not that of the certificate");
  const std::lock_guard<std::mutex> lock(mutex_);
  context_ = std::move(context);
  return absl::OkStatus();
}

std::shared_ptr<ssl_ctx_st> TlsCertificate::Context() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return context_;
}

}  // namespace fairlead::server
