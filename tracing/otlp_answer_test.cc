#include "tracing/otlp_answer.h"

#include <gtest/gtest.h>

#include <string>

namespace fairlead::tracing {
namespace {

using Kind = ExportAnswer::Kind;

TEST(OtlpAnswerTest, ByStatusAndBody) {
  struct Row {
    int status;
    const char* body;
    Kind kind;
    size_t rejected;
    const char* problem;
  };
  const Row rows[] = {
      // Failures: the specification lists those that may be repeated, and forbids it of all others.
      {429, "", Kind::kRetry, 0, "HTTP status 429"},
      {502, "<html>", Kind::kRetry, 0, "HTTP status 502"},
      {503, R"({"message":"busy"})", Kind::kRetry, 0, "HTTP status 503: busy"},
      {504, "", Kind::kRetry, 0, "HTTP status 504"},
      {500, "", Kind::kRefused, 0, "HTTP status 500"},
      {501, "", Kind::kRefused, 0, "HTTP status 501"},
      {400, R"({"code":3,"message":"bad\nspan"})", Kind::kRefused, 0, "HTTP status 400: bad span"},
      {401, "", Kind::kRefused, 0, "HTTP status 401"},
      {404, "404 page not found", Kind::kRefused, 0, "HTTP status 404"},
      {408, "", Kind::kRefused, 0, "HTTP status 408"},
      {413, "", Kind::kRefused, 0, "HTTP status 413"},
      {302, "", Kind::kRefused, 0, "HTTP status 302"},
      // Accepted.
      {200, "{}", Kind::kAccepted, 0, ""},
      {200, R"({"partialSuccess":{}})", Kind::kAccepted, 0, ""},
      {200, R"({"partialSuccess":{"rejectedSpans":"3","errorMessage":"old"}})", Kind::kAccepted, 3,
       "old"},
      {200, R"({"partialSuccess":{"rejectedSpans":3}})", Kind::kAccepted, 3,
       "the collector gave no reason"},
      {200, R"({"partialSuccess":{"rejectedSpans":"0","errorMessage":"slow down"}})",
       Kind::kAccepted, 0, "slow down"},
      // More than was sent, less than none, and what is no answer at all.
      {200, R"({"partialSuccess":{"rejectedSpans":"99"}})", Kind::kAccepted, 10,
       "the collector gave no reason"},
      {200, R"({"partialSuccess":{"rejectedSpans":-1}})", Kind::kAccepted, 0, ""},
      {200, R"({"partialSuccess":7})", Kind::kAccepted, 0, ""},
      {200, "", Kind::kAccepted, 0, ""},
      {202, "not json", Kind::kAccepted, 0, ""},
  };
  for (const Row& row : rows) {
    const ExportAnswer answer = ReadExportAnswer(row.status, row.body, 10);
    EXPECT_EQ(answer.kind, row.kind) << row.status << " " << row.body;
    EXPECT_EQ(answer.rejected, row.rejected) << row.status << " " << row.body;
    EXPECT_EQ(answer.problem, row.problem) << row.status << " " << row.body;
  }
}

TEST(OtlpAnswerTest, ALongMessageIsCut) {
  const std::string body = R"({"message":")" + std::string(5000, 'x') + "\"}";
  EXPECT_EQ(ReadExportAnswer(400, body, 1).problem.size(), 200u);
}

}  // namespace
}  // namespace fairlead::tracing
