// Traces of decisions, from the configuration (`tracing`): what makes the spans (step_tracer.h),
// what sends them (span_exporter.h), and the connection to the collector, with one lifetime.
//
// No request is sent before there is a span. Errors name the field of the configuration.
// Ownership: clock and logger outlive it; it outlives the application that it observes.
// Thread-safety: the observer on the owner's thread; GetStats from any; Stop once, after the
// application has ended.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "cmd/fairlead/logs/logger.h"
#include "cmd/fairlead/traces/span_exporter.h"
#include "cmd/fairlead/traces/span_stats.h"
#include "cmd/fairlead/traces/step_tracer.h"
#include "core/configuration.h"
#include "kube/transport/curl_transport.h"

namespace fairlead::cmd {

class Traces {
 public:
  // How long the end of the process waits for the last spans.
  static constexpr absl::Duration kStopWait = absl::Seconds(2);
  // Of an answer; what is longer is not read.
  static constexpr int64_t kMaxAnswerBytes = int64_t{64} << 10;

  // Null without an endpoint. `instance` names this process among others.
  static absl::StatusOr<std::unique_ptr<Traces>> Open(const core::TracingSettings& settings,
                                                      const std::string& instance,
                                                      const Clock& clock, Logger& logger);

  AppObserver* observer() { return &tracer_; }
  [[nodiscard]] SpanStats GetStats() const;
  // Sends the last spans, for kStopWait at most, and logs how many are lost.
  void Stop();

 private:
  Traces(std::unique_ptr<kube::CurlTransport> transport, SpanExporterOptions exporter,
         const StepTracerOptions& tracer, const Clock& clock, Logger& logger);

  Logger& logger_;
  const std::unique_ptr<kube::CurlTransport> transport_;  // ends after its user
  SpanExporter exporter_;
  StepTracer tracer_;
};

}  // namespace fairlead::cmd
