// The webhooks of admission: AdmissionReview in, AdmissionReview out, for the HTTP server's posts.
//
//   /validate   rules of our kinds and of pods; who may submit to which queue
//   /default    the queue of the namespace, for pods that name none
//
// An answer other than 200 lets the failurePolicy of the API server's configuration decide: 400 for
// what is no review, 503 while the cluster has not been read.
//
// A question about rights is asked of the API server and waited for, at most kAccessWait; without
// an answer the policy decides (admission::NotAuthorized). A permission is believed for
// kAllowedLasts, as many as kMostRemembered at a time; a refusal is asked about again.
//
// Ownership: all that it is given outlives it. Thread-safety: every method from any thread but the
// transport's. Complexity: as admission::Validate, and one request for rights.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "admission/access.h"
#include "admission/cluster.h"
#include "base/clock.h"
#include "cmd/fairlead/logs/logger.h"
#include "cmd/fairlead/webhook/webhook_cache.h"
#include "cmd/fairlead/webhook/webhook_stats.h"
#include "kube/transport/http.h"
#include "server/http_server.h"

namespace fairlead::cmd {

class WebhookHandlers {
 public:
  static constexpr absl::Duration kAccessWait = absl::Seconds(3);
  static constexpr absl::Duration kAllowedLasts = absl::Seconds(10);
  static constexpr size_t kMostRemembered = 1000;

  struct Ports {
    const WebhookCache* cache;
    kube::HttpTransport* transport;
    const Clock* clock;
    Logger* logger;
  };
  WebhookHandlers(const Ports& ports, admission::Policy policy)
      : ports_(ports), policy_(std::move(policy)) {}

  server::Response Validate(absl::string_view body);
  server::Response Default(absl::string_view body);
  [[nodiscard]] WebhookStats GetStats() const;

 private:
  // What the user may not do, or what could not be found out; admits otherwise.
  admission::Response Authorize(const admission::Request& request, const std::string& queue);
  bool Remembers(const std::string& question);
  void Remember(const std::string& question);
  void LogRefusal(const admission::Request& request, const admission::Response& response);

  const Ports ports_;
  const admission::Policy policy_;
  std::atomic<uint64_t> admitted_{0}, defaulted_{0}, invalid_{0}, forbidden_{0}, unauthorized_{0},
      failed_{0};
  std::mutex mutex_;
  std::map<std::string, absl::Duration> allowed_;  // question -> until, steady
};

}  // namespace fairlead::cmd
