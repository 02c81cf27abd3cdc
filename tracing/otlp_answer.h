// What a collector's answer to an export of spans means (specification of OTLP, "OTLP/HTTP
// Response"): 200 accepts, perhaps but for some spans; 429, 502, 503 and 504 may be repeated; all
// else is not repeated.
//
// Thread-safety: pure functions. Errors: a body that is not understood changes nothing about what
// the HTTP status says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace fairlead::tracing {

struct ExportAnswer {
  enum class Kind : uint8_t {
    kAccepted,
    kRetry,    // the same request may be sent again
    kRefused,  // it must not be
  };
  Kind kind = Kind::kAccepted;
  size_t rejected = 0;  // of kAccepted: spans that were not taken
  // What is wrong, in a line of 200 bytes at most; may be set though all was accepted (a warning
  // of the collector).
  std::string problem;
};

// `body`: an ExportTraceServiceResponse, or google.rpc.Status, in JSON. `spans`: how many were
// sent.
ExportAnswer ReadExportAnswer(int http_status, absl::string_view body, size_t spans);

}  // namespace fairlead::tracing
