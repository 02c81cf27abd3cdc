// The certificate with which a TLS server shows who it is. It may be replaced while connections are
// served: those that are open keep the one that they began with.
//
// TLS 1.2 and 1.3, without renegotiation, resumption by session ids and client certificates.
// Thread-safety: every method from any thread. Errors: InvalidArgument, without any part of a key.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

struct ssl_ctx_st;

namespace fairlead::server {

// Of a file with a certificate chain, or a key.
inline constexpr size_t kMostPemBytes = size_t{1} << 20;

class TlsCertificate {
 public:
  // PEM: the certificate and those between it and its authority, and its key. New connections have
  // it from now on. InvalidArgument: nothing changes.
  absl::Status Set(absl::string_view chain_pem, absl::string_view key_pem);
  // False before the first Set: connections are closed.
  [[nodiscard]] bool ready() const { return Context() != nullptr; }
  // For the server: OpenSSL's SSL_CTX with the certificate of now; null before the first Set.
  [[nodiscard]] std::shared_ptr<ssl_ctx_st> Context() const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<ssl_ctx_st> context_;
};

}  // namespace fairlead::server
