#include "cmd/fairlead/webhook/webhook.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cmd/fairlead/settings/config_file.h"
#include "kube/credentials/quiet_thread.h"

namespace fairlead::cmd {
namespace {

constexpr absl::Duration kFolderPoll = absl::Seconds(10);
constexpr absl::Duration kIdentityPoll = absl::Minutes(1);
// After a failure, doubled with each one more: manifests that are applied together are soon there.
constexpr absl::Duration kFirstPause = absl::Milliseconds(250);
constexpr absl::Duration kLongestPause = absl::Seconds(30);
// The API server opens one for each request in flight, and keeps idle ones for 90 s: it closes
// them, not we.
constexpr size_t kMostConnections = 256;
constexpr absl::Duration kIdle = absl::Seconds(120);
// An object and the one that it replaces, each 1.5 MiB at most in etcd.
constexpr size_t kMostBody = size_t{4} << 20;
constexpr int kThreads = 4;

server::HttpServerOptions ServerOptions(WebhookHandlers& handlers,
                                        std::shared_ptr<const server::TlsCertificate> shown) {
  server::HttpServerOptions options;
  options.connections_max = kMostConnections;
  options.body_bytes_max = kMostBody;
  options.read_timeout = kIdle;
  options.slow_threads = kThreads;
  options.tls = std::move(shown);
  options.posts = {
      {kValidatePath, [&handlers](absl::string_view body) { return handlers.Validate(body); }},
      {kDefaultPath, [&handlers](absl::string_view body) { return handlers.Default(body); }}};
  return options;
}

}  // namespace

absl::Status CertificateFolder::Check() {
  FAIRLEAD_ASSIGN_OR_RETURN(std::string chain, ReadTextFile(absl::StrCat(folder_, "/tls.crt")));
  FAIRLEAD_ASSIGN_OR_RETURN(std::string key, ReadTextFile(absl::StrCat(folder_, "/tls.key")));
  if (chain == chain_ && key == key_) return absl::OkStatus();
  const absl::Status shown = shown_->Set(chain, key);
  if (!shown.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(folder_, ": ", shown.message()));
  }
  chain_ = std::move(chain);
  key_ = std::move(key);
  return absl::OkStatus();
}

Webhook::Webhook(const WebhookHandlers::Ports& ports, const WebhookOptions& options)
    : logger_(ports.logger), handlers_(ports, options.policy) {
  if (!options.certificate_dir.empty()) {
    folder_ = std::make_unique<CertificateFolder>(options.certificate_dir, shown_.get());
  } else {
    identity_ = std::make_unique<WebhookIdentity>(
        WebhookIdentity::Ports{ports.transport, ports.clock, shown_.get()}, options.ns);
  }
}

absl::StatusOr<std::unique_ptr<Webhook>> Webhook::Start(const WebhookHandlers::Ports& ports,
                                                        const WebhookOptions& options) {
  std::unique_ptr<Webhook> webhook(new Webhook(ports, options));
  // A mistyped flag; later on a folder may be wrong for a while.
  if (webhook->folder_ != nullptr) FAIRLEAD_RETURN_IF_ERROR(webhook->folder_->Check());
  FAIRLEAD_ASSIGN_OR_RETURN(
      webhook->http_, server::HttpServer::Start(
                          options.address, {}, ServerOptions(webhook->handlers_, webhook->shown_)));
  webhook->thread_ = kube::StartQuietThread([running = webhook.get()] { running->Run(); });
  return webhook;
}

Webhook::~Webhook() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  http_.reset();
}

absl::Status Webhook::Renew() {
  return folder_ != nullptr ? folder_->Check() : identity_->Reconcile();
}

void Webhook::Run() {
  const absl::Duration poll = folder_ != nullptr ? kFolderPoll : kIdentityPoll;
  std::string told = "none";  // the last problem; "" after a success
  absl::Duration pause = kFirstPause;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const absl::Status status = Renew();
    const std::string problem(status.message());
    if (problem != told && problem.empty()) {
      logger_->Info("certificate of the webhooks is in place");
    } else if (problem != told) {
      logger_->Warning("certificate of the webhooks", {{"problem", problem}});
    }
    told = problem;
    const absl::Duration wait = status.ok() ? poll : pause;
    pause = status.ok() ? kFirstPause : std::min(2 * pause, kLongestPause);
    lock.lock();
    changed_.wait_for(lock, absl::ToChronoNanoseconds(wait), [this] { return stopping_; });
  }
}

}  // namespace fairlead::cmd
