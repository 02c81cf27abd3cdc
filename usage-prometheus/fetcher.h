// Asks Prometheus for the usage of queues: all questions of one moment at once, and again each
// fetchInterval. Nobody waits for an answer but, at the start, those who want to decide with it.
//
// Answers are read on the transport's I/O thread. An answer that is late, wrong or too large
// (CurlTransportOptions::max_body_bytes) makes the whole fetch fail; the next one follows in its
// turn, and until then the former report stands, for as long as it is believed.
//
// Ownership: the transport outlives the fetcher, or has told everybody before it ends.
// Thread-safety: the owner's thread, to which `post` brings back what came in. Complexity: O(bytes
// of the answers) a fetch; Poll O(1).
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

// One fetch. `done` is called once, on the transport's I/O thread.
void Fetch(kube::HttpTransport& transport, const Queries& queries, absl::Time now,
           std::function<void(absl::StatusOr<Usage>)> done);
// The same, waited for; for the command line.
absl::StatusOr<Usage> FetchNow(kube::HttpTransport& transport, const Queries& queries,
                               absl::Time now);

class UsageFetcher {
 public:
  // Runs the function on the owner's thread, or drops it when that has ended. Any thread.
  using Post = std::function<void(std::function<void()>)>;
  // Every fetch, on the owner's thread.
  using Told = std::function<void(absl::StatusOr<Usage>)>;

  UsageFetcher(kube::HttpTransport* transport, Queries queries, absl::Duration wait_timeout,
               Post post, Told told);
  ~UsageFetcher() { *alive_ = false; }
  UsageFetcher(const UsageFetcher&) = delete;
  UsageFetcher& operator=(const UsageFetcher&) = delete;

  // Asks if it is time. True: decisions may be made, because the first fetch has ended, well or
  // badly, or was waited for long enough.
  bool Poll(absl::Time now);
  // When Poll would do something that it would not do now; infinite future: only an answer matters.
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
