#include "tracing/otlp_answer.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "document/json.h"

namespace fairlead::tracing {
namespace {

constexpr size_t kProblemBytes = 200;

std::string OneLine(absl::string_view text) {
  return absl::StrReplaceAll(text.substr(0, kProblemBytes), {{"\r", ""}, {"\n", " "}});
}

bool MayBeRepeated(int http_status) {
  return http_status == 429 || http_status == 502 || http_status == 503 || http_status == 504;
}

}  // namespace

ExportAnswer ReadExportAnswer(int http_status, absl::string_view body, size_t spans) {
  ExportAnswer answer;
  const absl::StatusOr<Json> json = Json::Parse(body);
  const auto text = [&json](std::initializer_list<absl::string_view> path) {
    return json.ok() ? json->TextAt(path) : "";
  };
  if (http_status >= 200 && http_status < 300) {
    uint64_t rejected = 0;  // int64: a number, or a string of digits
    if (absl::SimpleAtoi(text({"partialSuccess", "rejectedSpans"}), &rejected)) {
      answer.rejected = static_cast<size_t>(std::min<uint64_t>(rejected, spans));
    }
    answer.problem = OneLine(text({"partialSuccess", "errorMessage"}));
    if (answer.problem.empty() && answer.rejected > 0)
      answer.problem = "the collector gave no reason";
    return answer;
  }
  answer.kind =
      MayBeRepeated(http_status) ? ExportAnswer::Kind::kRetry : ExportAnswer::Kind::kRefused;
  const std::string message = text({"message"});
  answer.problem =
      OneLine(absl::StrCat("HTTP status ", http_status, message.empty() ? "" : ": ", message));
  return answer;
}

}  // namespace fairlead::tracing
