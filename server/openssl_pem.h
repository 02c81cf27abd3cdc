// PEM texts and OpenSSL's objects, with owners. Internal to server.
// Thread-safety: pure functions. An encrypted key is an error: there is no password to open it
// with.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace fairlead::server {

struct OpenSslFree {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
template <typename T>
using OpenSslPtr = std::unique_ptr<T, OpenSslFree>;

// All certificates of the text, in order; empty if it has none, or one that cannot be read.
std::vector<OpenSslPtr<X509>> CertificatesOf(absl::string_view pem);
// Null if it has none.
OpenSslPtr<EVP_PKEY> KeyOf(absl::string_view pem);
std::string PemOf(X509* certificate);
std::string PemOf(EVP_PKEY* key);

}  // namespace fairlead::server
