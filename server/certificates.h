// Makes X.509 certificates: an authority of one's own, and certificates of servers by it. ECDSA on
// P-256, SHA-256, X.509 version 3 (RFC 5280).
//
// Thread-safety: pure functions, but for the randomness of keys and serial numbers. Errors:
// InvalidArgument for texts that are no PEM, Internal if OpenSSL fails. No error has a part of a
// key.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace fairlead::server {

struct CertificateWithKey {
  std::string certificate_pem, key_pem;
};

// A certificate is valid from an hour before `now`: clocks differ.
absl::StatusOr<CertificateWithKey> MakeAuthority(const std::string& common_name, absl::Time now,
                                                 absl::Duration lifetime);
// `names`: DNS names and IP addresses, at least one; the first is the common name.
absl::StatusOr<CertificateWithKey> IssueCertificate(const CertificateWithKey& authority,
                                                    const std::vector<std::string>& names,
                                                    absl::Time now, absl::Duration lifetime);

// When the (first) certificate expires.
absl::StatusOr<absl::Time> ExpiryOf(absl::string_view certificate_pem);
// The first certificate of a text alone, as PEM.
absl::StatusOr<std::string> FirstCertificate(absl::string_view pem);

// InvalidArgument unless the key is the certificate's, the certificate was signed by the (first)
// authority, and every name is one of its own. Does not look at times.
absl::Status CheckCertificate(const CertificateWithKey& certificate,
                              absl::string_view authority_pem,
                              const std::vector<std::string>& names);

}  // namespace fairlead::server
