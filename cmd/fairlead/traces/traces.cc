#include "cmd/fairlead/traces/traces.h"

#include <random>
#include <utility>

#include "base/status_macros.h"
#include "cmd/fairlead/cluster/connection.h"
#include "cmd/fairlead/cluster/version.h"

namespace fairlead::cmd {
namespace {

uint64_t RandomBits(std::random_device& device) {
  return uint64_t{device()} << 32 | uint64_t{device()};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Traces>> Traces::Open(const core::TracingSettings& settings,
                                                     const std::string& instance,
                                                     const Clock& clock, Logger& logger) {
  if (settings.endpoint.empty()) return std::unique_ptr<Traces>();
  kube::CurlTransportOptions options;
  options.write_connections_max = 1;
  options.max_body_bytes = kMaxAnswerBytes;
  FAIRLEAD_ASSIGN_OR_RETURN(
      std::unique_ptr<kube::CurlTransport> transport,
      OpenService({settings.endpoint, settings.ca_file, settings.bearer_token_file}, options, clock,
                  "tracing: the collector"));
  std::random_device device;
  SpanExporterOptions exporter;
  exporter.resource = {"fairlead", kVersion, instance};
  exporter.timeout = settings.timeout;
  exporter.seed = RandomBits(device);
  StepTracerOptions tracer;
  tracer.sampling_rate_per_million = settings.sampling_rate_per_million;
  tracer.prefix = RandomBits(device);
  tracer.seed = RandomBits(device);
  logger.Info("sending traces", {{"endpoint", settings.endpoint},
                                 {"per_million", settings.sampling_rate_per_million}});
  return std::unique_ptr<Traces>(
      new Traces(std::move(transport), std::move(exporter), tracer, clock, logger));
}

Traces::Traces(std::unique_ptr<kube::CurlTransport> transport, SpanExporterOptions exporter,
               const StepTracerOptions& tracer, const Clock& clock, Logger& logger)
    : logger_(logger),
      transport_(std::move(transport)),
      exporter_(*transport_, *transport_, clock, std::move(exporter),
                [&logger](const std::string& problem) {
                  if (problem.empty()) {
                    logger.Info("the collector takes traces again");
                  } else {
                    logger.Warning("traces are not taken; decisions go on", {{"problem", problem}});
                  }
                }),
      tracer_(&clock, tracer, [this](tracing::Span span) { exporter_.Add(std::move(span)); }) {}

SpanStats Traces::GetStats() const {
  SpanStats stats = exporter_.GetStats();
  stats.dropped += tracer_.dropped();
  return stats;
}

void Traces::Stop() {
  tracer_.OnGivenUp();
  if (exporter_.Stop(kStopWait)) return;
  const SpanStats stats = GetStats();
  logger_.Warning("the last traces are lost",
                  {{"sent", stats.sent}, {"failed", stats.failed}, {"dropped", stats.dropped}});
}

}  // namespace fairlead::cmd
