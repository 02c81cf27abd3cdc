// One extender: its configuration, and the calls to it.
//
// Ownership: the transport is not used after Close. Thread-safety: any thread; callbacks as
// call_queue.h says. Complexity: O(bytes of the messages).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "extenders/call_queue.h"
#include "kube/transport/http.h"
#include "scheduler/model/extender_config.h"

namespace fairlead::extenders {

// Calls of one extender in flight: questions, and bindings beside them.
inline constexpr int kCallsMax = 16, kBindingsMax = 8;
inline constexpr size_t kBodyBytesMax = size_t{128} << 20;

class Endpoint {
 public:
  Endpoint(model::ExtenderConfig config, kube::HttpTransport* transport);

  [[nodiscard]] const model::ExtenderConfig& config() const { return config_; }
  // It has a verb for asks.
  [[nodiscard]] bool answers() const {
    return !config_.filter_verb.empty() || !config_.prioritize_verb.empty();
  }

  // A question: gives the body of an answer 200, else Unavailable or Cancelled. `bytes`: the size
  // of the body, nearly.
  void Ask(const std::string& verb, size_t bytes, std::function<std::string()> body,
           std::function<void(absl::StatusOr<std::string>)> done) const;
  // Client::Bind says what the status means.
  void Bind(std::string body, std::function<void(absl::Status)> done) const;
  void Close() const;

  // "extender http://x:1/y: filter: status 500".
  [[nodiscard]] absl::Status Describe(absl::string_view verb, const absl::Status& status) const;

 private:
  [[nodiscard]] CallQueue::Call CallOf(const std::string& verb) const;

  const model::ExtenderConfig config_;
  const std::string path_;
  const std::shared_ptr<CallQueue> asks_, bindings_;
};

}  // namespace fairlead::extenders
