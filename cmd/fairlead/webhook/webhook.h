// The server of the webhooks: HTTPS, its certificate, and a thread that keeps the certificate.
//
// The certificate is that of a folder (tls.crt and tls.key, as cert-manager's Secrets are mounted),
// read again when it changes, or the program's own (webhook_identity.h). Every replica serves, the
// standby too. Until there is a certificate connections are closed; what goes wrong is logged once
// until it changes, and tried again.
//
// Ownership: the ports outlive it. Its end waits for the request that is on its way, 10 s at most.
// Thread-safety: every method from any thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "cmd/fairlead/webhook/webhook_handlers.h"
#include "cmd/fairlead/webhook/webhook_identity.h"
#include "server/http_server.h"
#include "server/tls_certificate.h"

namespace fairlead::cmd {

inline constexpr char kValidatePath[] = "/validate";
inline constexpr char kDefaultPath[] = "/default";

// Shows what a folder has, if it is another than last time.
class CertificateFolder {
 public:
  CertificateFolder(std::string folder, server::TlsCertificate* shown)
      : folder_(std::move(folder)), shown_(shown) {}
  // InvalidArgument with the file's name; what was shown before stays.
  absl::Status Check();

 private:
  const std::string folder_;
  server::TlsCertificate* const shown_;
  std::string chain_, key_;
};

struct WebhookOptions {
  server::BindAddress address;
  std::string certificate_dir;  // empty: the program makes its own
  std::string ns;               // of the Service and the Secret
  admission::Policy policy;
};

class Webhook {
 public:
  // InvalidArgument if a folder is named that has no certificate; Unavailable if the address cannot
  // be bound.
  static absl::StatusOr<std::unique_ptr<Webhook>> Start(const WebhookHandlers::Ports& ports,
                                                        const WebhookOptions& options);
  ~Webhook();
  Webhook(const Webhook&) = delete;
  Webhook& operator=(const Webhook&) = delete;

  [[nodiscard]] int port() const { return http_->port(); }
  [[nodiscard]] WebhookStats GetStats() const { return handlers_.GetStats(); }

 private:
  Webhook(const WebhookHandlers::Ports& ports, const WebhookOptions& options);
  void Run();
  // One turn of keeping the certificate.
  absl::Status Renew();

  Logger* const logger_;
  WebhookHandlers handlers_;
  std::shared_ptr<server::TlsCertificate> shown_ = std::make_shared<server::TlsCertificate>();
  // One of them.
  std::unique_ptr<CertificateFolder> folder_;
  std::unique_ptr<WebhookIdentity> identity_;
  std::unique_ptr<server::HttpServer> http_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace fairlead::cmd
