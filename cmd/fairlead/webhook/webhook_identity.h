// The certificate of the webhooks, by the program itself: an authority and a certificate for the
// Service's names, kept in a Secret that all replicas share, and the authority written where the
// API server looks for it (clientConfig.caBundle of the two webhook configurations).
//
// Reconcile is one turn:
//   1. The Secret is read; made if there is none. Of two replicas that make it the second gets a
//      conflict, and reads what the first has made.
//   2. A certificate that cannot be used, or expires within kRenewBefore, is issued again; so is
//      the authority within kRenewAuthorityBefore, and the former one stays in the bundle. A write
//      names the version that was read, so of two replicas one gives way.
//   3. The bundle is written into every webhook of the configurations that has another one; a
//      configuration that does not exist is left out, and told.
//   4. The certificate is shown.
// So the API server trusts an authority before any server shows a certificate of it.
//
// Ownership: all ports outlive it. Thread-safety: one thread, which is not the transport's.
// Errors: the first that a turn meets, with the object in it; the next turn begins anew. No error
// and no log line has a part of a key.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "document/json.h"
#include "kube/transport/http.h"
#include "server/certificates.h"
#include "server/tls_certificate.h"

namespace fairlead::cmd {

// Names in manifests/admission.
inline constexpr char kWebhookSecret[] = "fairlead-webhook";
inline constexpr char kWebhookService[] = "fairlead-webhook";
inline constexpr char kWebhookConfiguration[] = "fairlead";

class WebhookIdentity {
 public:
  static constexpr absl::Duration kLifetime = absl::Hours(24 * 90);
  static constexpr absl::Duration kRenewBefore = absl::Hours(24 * 30);
  static constexpr absl::Duration kAuthorityLifetime = absl::Hours(24 * 3650);
  static constexpr absl::Duration kRenewAuthorityBefore = absl::Hours(24 * 365);

  struct Ports {
    kube::HttpTransport* transport;
    const Clock* clock;
    server::TlsCertificate* shown;
  };
  // `ns`: of the Secret and the Service.
  WebhookIdentity(const Ports& ports, std::string ns);

  absl::Status Reconcile();

 private:
  struct Kept {
    std::string version;      // of the Secret; empty: there is none
    std::string authorities;  // PEM; the first is that of `certificate`
    std::string authority_key;
    server::CertificateWithKey certificate;
  };
  // None that can be used: all of it is to be made.
  [[nodiscard]] static Kept KeptIn(const Json& secret);
  absl::StatusOr<Kept> Read();
  // True if something was made anew.
  absl::StatusOr<bool> Renew(Kept& kept) const;
  absl::Status Write(const Kept& kept);
  absl::Status WriteBundle(const char* resource, const std::string& bundle);
  absl::StatusOr<Json> Call(kube::HttpRequest request);

  const Ports ports_;
  const std::string ns_;
  const std::vector<std::string> names_;
};

}  // namespace fairlead::cmd
