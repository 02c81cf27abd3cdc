// The connection to the database that reports the usage of queues, from the configuration (`usage`
// with clientType prometheus): address, credentials, transport and queries with one lifetime.
//
// No request is sent before the transport is used. Errors name the field of the configuration.
// Thread-safety: as kube::CurlTransport.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "core/configuration.h"
#include "kube/transport/curl_transport.h"
#include "usage-prometheus/query.h"

namespace fairlead::cmd {

class UsageDatabase {
 public:
  // Per answer; a thousand queues take about 150 KB.
  static constexpr int64_t kMaxAnswerBytes = int64_t{16} << 20;

  // Null if the configuration has no database. The clock outlives the result.
  static absl::StatusOr<std::unique_ptr<UsageDatabase>> Open(
      const core::Configuration& configuration, const Clock& clock);

  kube::CurlTransport& transport() { return *transport_; }
  [[nodiscard]] const prometheus::Queries& queries() const { return queries_; }

 private:
  UsageDatabase(prometheus::Queries queries, std::unique_ptr<kube::CurlTransport> transport)
      : queries_(std::move(queries)), transport_(std::move(transport)) {}

  prometheus::Queries queries_;
  std::unique_ptr<kube::CurlTransport> transport_;
};

}  // namespace fairlead::cmd
