#include "server/certificates.h"

#include <openssl/asn1.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "server/openssl_pem.h"

namespace fairlead::server {
namespace {

constexpr absl::Duration kClocksDiffer = absl::Hours(1);
constexpr int kSerialBits = 127;  // positive, and at most 20 bytes

absl::Status Failed(absl::string_view what) {
  ERR_clear_error();
  return absl::InternalError(absl::StrCat("OpenSSL cannot ", what));
}

bool IsIp(const std::string& name) {
  ASN1_OCTET_STRING* const address = a2i_IPADDRESS(name.c_str());
  ERR_clear_error();
  if (address == nullptr) return false;
  ASN1_OCTET_STRING_free(address);
  return true;
}

bool SetSerial(X509* certificate) {
  BIGNUM* const number = BN_new();
  const bool fine = number != nullptr &&
                    BN_rand(number, kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
                    BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nullptr;
  BN_free(number);
  return fine;
}

bool SetTimes(X509* certificate, absl::Time now, absl::Duration lifetime) {
  const auto seconds = [](absl::Time time) {
    return static_cast<time_t>(absl::ToUnixSeconds(time));
  };
  return ASN1_TIME_set(X509_getm_notBefore(certificate), seconds(now - kClocksDiffer)) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), seconds(now + lifetime)) != nullptr;
}

bool Extend(X509* certificate, X509* issuer, int extension, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const made = X509V3_EXT_conf_nid(nullptr, &context, extension, value.c_str());
  if (made == nullptr) return false;
  const bool added = X509_add_ext(certificate, made, -1) == 1;
  X509_EXTENSION_free(made);
  return added;
}

// Who signs a certificate; without, it signs itself.
struct Signer {
  X509* certificate = nullptr;
  EVP_PKEY* key = nullptr;
};

struct Extension {
  int id;
  std::string value;
};

// `common_name` at most 64 bytes (RFC 5280).
absl::StatusOr<CertificateWithKey> Make(const std::string& common_name, const Signer& signer,
                                        absl::Time now, absl::Duration lifetime,
                                        const std::vector<Extension>& extensions) {
  const OpenSslPtr<EVP_PKEY> key(EVP_EC_gen("P-256"));
  const OpenSslPtr<X509> made(X509_new());
  if (key == nullptr || made == nullptr) return Failed("make a key");
  X509* const certificate = made.get();
  X509* const issuer = signer.certificate == nullptr ? certificate : signer.certificate;
  const std::string cut = common_name.substr(0, 64);
  const auto* const text = reinterpret_cast<const unsigned char*>(cut.c_str());
  bool fine = X509_set_version(certificate, 2) == 1 && SetSerial(certificate) &&
              SetTimes(certificate, now, lifetime) &&
              X509_set_pubkey(certificate, key.get()) == 1 &&
              X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                         text, -1, -1, 0) == 1 &&
              X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1;
  for (const Extension& extension : extensions) {
    fine = fine && Extend(certificate, issuer, extension.id, extension.value);
  }
  EVP_PKEY* const signing = signer.key == nullptr ? key.get() : signer.key;
  if (!fine || X509_sign(certificate, signing, EVP_sha256()) == 0) {
    return Failed("make a certificate");
  }
  CertificateWithKey out = {PemOf(certificate), PemOf(key.get())};
  if (out.certificate_pem.empty() || out.key_pem.empty()) return Failed("print a certificate");
  return out;
}

absl::StatusOr<OpenSslPtr<X509>> First(absl::string_view pem) {
  std::vector<OpenSslPtr<X509>> all = CertificatesOf(pem);
  if (all.empty()) return absl::InvalidArgumentError("no PEM certificate");
  return std::move(all.front());
}

bool HasName(X509* certificate, const std::string& name) {
  return IsIp(name) ? X509_check_ip_asc(certificate, name.c_str(), 0) == 1
                    : X509_check_host(certificate, name.c_str(), name.size(), 0, nullptr) == 1;
}

}  // namespace

absl::StatusOr<CertificateWithKey> MakeAuthority(const std::string& common_name, absl::Time now,
                                                 absl::Duration lifetime) {
  return Make(common_name, Signer(), now, lifetime,
              {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
               {NID_key_usage, "critical,keyCertSign,cRLSign"},
               {NID_subject_key_identifier, "hash"}});
}

absl::StatusOr<CertificateWithKey> IssueCertificate(const CertificateWithKey& authority,
                                                    const std::vector<std::string>& names,
                                                    absl::Time now, absl::Duration lifetime) {
  if (names.empty()) return absl::InvalidArgumentError("a certificate needs a name");
  FAIRLEAD_ASSIGN_OR_RETURN(const OpenSslPtr<X509> issuer, First(authority.certificate_pem));
  const OpenSslPtr<EVP_PKEY> key = KeyOf(authority.key_pem);
  if (key == nullptr) return absl::InvalidArgumentError("no PEM key of the authority");
  const std::string all = absl::StrJoin(names, ",", [](std::string* out, const std::string& name) {
    absl::StrAppend(out, IsIp(name) ? "IP:" : "DNS:", name);
  });
  return Make(names.front(), {issuer.get(), key.get()}, now, lifetime,
              {{NID_basic_constraints, "critical,CA:FALSE"},
               {NID_key_usage, "critical,digitalSignature"},
               {NID_ext_key_usage, "serverAuth"},
               {NID_authority_key_identifier, "keyid"},
               {NID_subject_alt_name, all}});
}

absl::StatusOr<absl::Time> ExpiryOf(absl::string_view certificate_pem) {
  FAIRLEAD_ASSIGN_OR_RETURN(const OpenSslPtr<X509> certificate, First(certificate_pem));
  ASN1_TIME* const epoch = ASN1_TIME_set(nullptr, 0);
  int days = 0;
  int seconds = 0;
  const bool fine = epoch != nullptr && ASN1_TIME_diff(&days, &seconds, epoch,
                                                       X509_get0_notAfter(certificate.get())) == 1;
  ASN1_TIME_free(epoch);
  if (!fine) return Failed("read when a certificate expires");
  return absl::UnixEpoch() + int64_t{24} * days * absl::Hours(1) + absl::Seconds(seconds);
}

absl::StatusOr<std::string> FirstCertificate(absl::string_view pem) {
  FAIRLEAD_ASSIGN_OR_RETURN(const OpenSslPtr<X509> certificate, First(pem));
  return PemOf(certificate.get());
}

absl::Status CheckCertificate(const CertificateWithKey& certificate,
                              absl::string_view authority_pem,
                              const std::vector<std::string>& names) {
  FAIRLEAD_ASSIGN_OR_RETURN(const OpenSslPtr<X509> own, First(certificate.certificate_pem));
  FAIRLEAD_ASSIGN_OR_RETURN(const OpenSslPtr<X509> authority, First(authority_pem));
  const OpenSslPtr<EVP_PKEY> key = KeyOf(certificate.key_pem);
  const bool has_key = key != nullptr && X509_check_private_key(own.get(), key.get()) == 1;
  const bool is_signed = X509_check_issued(authority.get(), own.get()) == X509_V_OK &&
                         X509_verify(own.get(), X509_get0_pubkey(authority.get())) == 1;
  ERR_clear_error();
  if (!has_key) return absl::InvalidArgumentError("the key is not that of the certificate");
  if (!is_signed) return absl::InvalidArgumentError("the certificate is not of this authority");
  for (const std::string& name : names) {
    if (!HasName(own.get(), name)) {
      return absl::InvalidArgumentError(absl::StrCat("the certificate is not for ", name));
    }
  }
  return absl::OkStatus();
}

}  // namespace fairlead::server
