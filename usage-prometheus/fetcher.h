// Queries Prometheus for the usage of queues: all questions of one moment at once, and again each
// fetchInterval. Only the first decision waits for an answer.
//
// Answers are read on the transport's I/O thread. An answer that is late, wrong or too large
// (CurlTransportOptions::max_body_bytes) makes the whole fetch fail. The next fetch comes at its
// usual time; until then the former report is valid, until it becomes stale.
//
// Ownership: the transport must outlive the fetcher, or have made all its callbacks before.
// Thread-safety: the owner's thread, to which `post` brings the results. Complexity: O(bytes of the
// answers) per fetch; Poll O(1).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kube/transport/http.h"
#include "usage-prometheus/answer.h"
#include "usage-prometheus/query.h"

namespace fairlead::prometheus {

// One fetch. Calls `done` once, on the transport's I/O thread.
void Fetch(kube::HttpTransport& transport, const Queries& queries, absl::Time now,
           std::function<void(absl::StatusOr<Usage>)> done);
// One fetch, waiting for the result; for the command line.
absl::StatusOr<Usage> FetchNow(kube::HttpTransport& transport, const Queries& queries,
                               absl::Time now);

class UsageFetcher {
 public:
  // Runs the function on the owner's thread, or drops it if that has ended. Any thread.
  using Post = std::function<void(std::function<void()>)>;
  // Receives every fetch, on the owner's thread.
  using Told = std::function<void(absl::StatusOr<Usage>)>;

  UsageFetcher(kube::HttpTransport* transport, Queries queries, absl::Duration wait_timeout,
               Post post, Told told);
  ~UsageFetcher() { *alive_ = false; }
  UsageFetcher(const UsageFetcher&) = delete;
  UsageFetcher& operator=(const UsageFetcher&) = delete;

  // Starts a fetch if one is due. True if decisions may be made: the first fetch has ended, with or
  // without success, or its wait is over.
  bool Poll(absl::Time now);
  // When Poll has something to do; infinite future: it waits for an answer.
  [[nodiscard]] absl::Time wake_at() const;

 private:
  void Ask(absl::Time now);

  kube::HttpTransport* const transport_;
  const Queries queries_;
  const absl::Duration wait_timeout_;
  const Post post_;
  const Told told_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  bool asking_ = false, ready_ = false;
  absl::Time waits_until_ = absl::InfinitePast();
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace fairlead::prometheus
