#include "server/openssl_pem.h"

#include <openssl/err.h>

#include <utility>

namespace fairlead::server {
namespace {

OpenSslPtr<BIO> Memory(absl::string_view text) {
  return OpenSslPtr<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// OpenSSL would ask on the terminal.
int NoPassword(char* /*buffer*/, int /*size*/, int /*rwflag*/, void* /*data*/) { return -1; }

std::string TextOf(BIO* out) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(out, &bytes);
  return size > 0 ? std::string(bytes, static_cast<size_t>(size)) : "";
}

}  // namespace

std::vector<OpenSslPtr<X509>> CertificatesOf(absl::string_view pem) {
  std::vector<OpenSslPtr<X509>> found;
  const OpenSslPtr<BIO> in = Memory(pem);
  while (true) {
    OpenSslPtr<X509> next(PEM_read_bio_X509(in.get(), nullptr, NoPassword, nullptr));
    if (next == nullptr) break;
    found.push_back(std::move(next));
  }
  const bool ended = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!ended) found.clear();
  return found;
}

OpenSslPtr<EVP_PKEY> KeyOf(absl::string_view pem) {
  const OpenSslPtr<BIO> in = Memory(pem);
  OpenSslPtr<EVP_PKEY> key(PEM_read_bio_PrivateKey(in.get(), nullptr, NoPassword, nullptr));
  ERR_clear_error();
  return key;
}

std::string PemOf(X509* certificate) {
  const OpenSslPtr<BIO> out(BIO_new(BIO_s_mem()));
  return PEM_write_bio_X509(out.get(), certificate) == 1 ? TextOf(out.get()) : "";
}

std::string PemOf(EVP_PKEY* key) {
  const OpenSslPtr<BIO> out(BIO_new(BIO_s_mem()));
  const int written =
      PEM_write_bio_PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return written == 1 ? TextOf(out.get()) : "";
}

}  // namespace fairlead::server
