// Spans as the body of an OTLP/HTTP request: ExportTraceServiceRequest in OpenTelemetry's JSON
// encoding (specification of OTLP, "JSON Protobuf Encoding"). It is Protobuf's JSON mapping, in
// which ids are lower-case hexadecimal instead of base64, enums are numbers, 64-bit integers are
// decimal strings, and names are in lowerCamelCase. Times are Unix nanoseconds.
//
// A time before 1970 becomes 1970, and an end before its start becomes the start: the fields are
// unsigned, and receivers refuse negative durations.
//
// Thread-safety: pure functions. Complexity: linear in the text.
#pragma once

#include <string>
#include <vector>

#include "tracing/span.h"

namespace fairlead::tracing {

// The path below a collector's address that takes spans.
inline constexpr char kTracesPath[] = "/v1/traces";

// The program that made the spans; empty fields are left out.
struct Resource {
  std::string service_name, service_version, service_instance_id;
};

std::string EncodeTraces(const Resource& resource, const std::vector<Span>& spans);

}  // namespace fairlead::tracing
