// Sends spans to a collector: OTLP over HTTP in JSON, in batches, one request at a time
// (tracing/otlp_json.h, otlp_answer.h).
//
// Add never waits: spans wait in a bounded queue, of which the oldest are dropped when it is full.
// Everything else happens in callbacks of the transport, on its I/O thread: so the transport is
// one of its own, and not that of the API server.
//
// A batch is sent when it is full, or `gather` after its first span came. What may be repeated (no
// answer; 429, 502, 503, 504) is repeated with growing jittered pauses, or after what Retry-After
// says, until `retry_for` has passed since its first attempt; then it is given up. A refused batch
// is given up at once. After either the next one waits for such a pause too. Spans that come
// meanwhile wait, or drop the oldest.
//
// Errors: `tell` hears of the first failure, of each that differs from the one before, and (an
// empty problem) that spans are taken again. It is called on the I/O thread, without a lock.
//
// Ownership: transport, timers and clock outlive it; callbacks after its end are ignored.
// Thread-safety: Add and GetStats from any thread; Stop and the destructor once, not in a callback.
// Complexity: Add O(1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/write_attempts.h"
#include "cmd/fairlead/traces/span_stats.h"
#include "kube/transport/http.h"
#include "tracing/otlp_json.h"
#include "tracing/span.h"

namespace fairlead::cmd {

struct SpanExporterOptions {
  tracing::Resource resource;
  size_t queue_max = 16'384;  // spans; of some 700 bytes
  size_t batch_max = 512;     // spans of a request
  absl::Duration gather = absl::Seconds(1);
  absl::Duration timeout = absl::Seconds(10);  // of a request
  Backoff pauses = {absl::Seconds(1), absl::Seconds(30)};
  absl::Duration longest_wait = absl::Minutes(5);  // whatever Retry-After says
  absl::Duration retry_for = absl::Minutes(1);
  uint64_t seed = 0;  // of the jitter
};

class SpanExporter {
 public:
  using Tell = std::function<void(const std::string& problem)>;

  SpanExporter(kube::HttpTransport& transport, kube::Timers& timers, const Clock& clock,
               SpanExporterOptions options, Tell tell = nullptr);
  // Drops what waits.
  ~SpanExporter();
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;

  void Add(tracing::Span span);
  // Sends what waits, each batch once and without pauses, for `max_wait` (real time) at most; then
  // drops the rest, and all that is added later. A collector that has just asked for a pause
  // (Retry-After) gets nothing more. True if all of it was taken.
  bool Stop(absl::Duration max_wait);

  [[nodiscard]] SpanStats GetStats() const;

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace fairlead::cmd
