// A span of a trace, as OpenTelemetry has it: something that took time, as a part of something
// larger. Field by field what trace.proto of opentelemetry-proto 1.x says, less what is not used
// here (events, trace state).
//
// Ownership: keys and names are borrowed and live for the whole program (literals). Thread-safety:
// plain values.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace fairlead::tracing {

// All zero: none, which no trace may have.
struct TraceId {
  uint64_t high = 0, low = 0;
  friend bool operator==(const TraceId&, const TraceId&) = default;
};

// Numbers as on the wire.
enum class SpanKind : uint8_t {
  kInternal = 1,
  kClient = 3,  // a request to another program
};
enum class StatusCode : uint8_t { kUnset = 0, kOk = 1, kError = 2 };

struct Attribute {
  absl::string_view key;
  std::variant<std::string, int64_t, bool> value;
};

// To a span of this or another trace that is about the same thing.
struct Link {
  TraceId trace;
  uint64_t id = 0;
  friend bool operator==(const Link&, const Link&) = default;
};

struct Span {
  TraceId trace;
  uint64_t id = 0;      // not 0, unique within the trace
  uint64_t parent = 0;  // 0: the root
  absl::string_view name;
  SpanKind kind = SpanKind::kInternal;
  absl::Time start, end;
  std::vector<Attribute> attributes = {};  // each key once
  std::vector<Link> links = {};
  StatusCode status = StatusCode::kUnset;
  std::string status_message = {};  // of kError
};

}  // namespace fairlead::tracing
