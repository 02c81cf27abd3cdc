#include "usage-prometheus/answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "usage-prometheus/testing.h"

namespace fairlead::prometheus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Vector;

kube::HttpResponse Response(int status, std::string body) {
  kube::HttpResponse response;
  response.status = status;
  response.body = std::move(body);
  return response;
}

// ---- one answer

TEST(AnswerTest, WhatIsNoVectorIsRefused) {
  struct Case {
    const char* what;
    std::string body;
    const char* why;
  };
  const auto data = [](const std::string& fields) {
    return absl::StrCat(R"({"status":"success","data":)", fields, "}");
  };
  const auto result = [&data](const std::string& items) {
    return data(absl::StrCat(R"({"resultType":"vector","result":)", items, "}"));
  };
  const Case cases[] = {
      {"nothing", "", "JSON"},
      {"a web page", "<html>Sign in</html>", "JSON"},
      {"cut short", Vector({{"a", "1"}}).substr(0, 60), "JSON"},
      {"more behind", Vector({}) + "{}", "something follows"},
      {"a list", "[]", "not an object"},
      {"no status", R"({"data":{"resultType":"vector","result":[]}})", "status"},
      {"another status", R"({"status":"maybe","data":{"resultType":"vector","result":[]}})",
       "\"maybe\""},
      {"status is a number", R"({"status":1})", "status"},
      {"no data", R"({"status":"success"})", "resultType"},
      {"data is a list", data("[]"), "resultType"},
      {"data is null", data("null"), "resultType"},
      {"no type", data(R"({"result":[]})"), "resultType"},
      {"no result", data(R"({"resultType":"vector"})"), "data.result is missing"},
      {"a matrix", data(R"({"resultType":"matrix","result":[]})"), "\"matrix\""},
      {"a scalar", data(R"({"resultType":"scalar","result":[1,"2"]})"), "\"scalar\""},
      {"result is an object", result("{}"), "data.result: must be a list"},
      {"a sample is a number", result("[7]"), "data.result[0]: must be an object"},
      {"no value", result(R"([{"metric":{"queue_name":"a"}}])"), "data.result[0]: has no value"},
      {"a histogram", result(R"([{"metric":{"queue_name":"a"},"histogram":[1,{}]}])"),
       "has no value"},
      {"value is null", result(R"([{"metric":{"queue_name":"a"},"value":null}])"), "has no value"},
      {"value is text", result(R"([{"metric":{"queue_name":"a"},"value":"1"}])"),
       "value: must be a list"},
      {"value is short", result(R"([{"metric":{"queue_name":"a"},"value":[1]}])"),
       "not a time and a number"},
      {"value is long", result(R"([{"metric":{"queue_name":"a"},"value":[1,"2","3"]}])"),
       "not a time and a number"},
      {"a number as such", result(R"([{"metric":{"queue_name":"a"},"value":[1,2]}])"),
       "must be a string"},
      {"NaN", Vector({{"a", "1"}, {"b", "NaN"}}), "data.result[1].value: queue b: \"NaN\""},
      {"infinite", Vector({{"a", "+Inf"}}), "queue a: \"+Inf\" is infinite"},
      {"negative", Vector({{"a", "-3"}}), "queue a: \"-3\" is negative"},
      {"no number", Vector({{"a", "lots"}}), "queue a: \"lots\" is no number"},
      {"metric is a list", result(R"([{"metric":[],"value":[1,"1"]}])"), "must be an object"},
      {"a label is a number", result(R"([{"metric":{"queue_name":7},"value":[1,"1"]}])"),
       "queue_name: must be a string"},
  };
  for (const Case& c : cases) {
    const auto answer = ReadAnswer(Response(200, c.body));
    ASSERT_FALSE(answer.ok()) << c.what;
    EXPECT_TRUE(absl::IsInvalidArgument(answer.status())) << c.what << ": " << answer.status();
    EXPECT_THAT(answer.status().message(), HasSubstr(c.why)) << c.what;
  }
}

TEST(AnswerTest, ErrorsSayWhatPrometheusSays) {
  const char kBadData[] =
      R"({"status":"error","errorType":"bad_data","error":"parse error at char 5"})";
  struct Case {
    int status;
    std::string body;
    const char* why;
  };
  const Case cases[] = {
      {400, kBadData, "HTTP status 400: bad_data: parse error at char 5"},
      {422, R"({"status":"error","errorType":"execution"})", "execution: no reason given"},
      {503, "upstream timed out", "HTTP status 503"},
      {500, "", "HTTP status 500"},
      {204, "", "HTTP status 204"},
      {200, kBadData, "bad_data: parse error at char 5"},
      {302, "<a href=/login>", "redirect"},
      {308, "", "connectionString has to name the server itself"},
  };
  for (const Case& c : cases) {
    const auto answer = ReadAnswer(Response(c.status, c.body));
    EXPECT_TRUE(absl::IsUnavailable(answer.status())) << c.status << " " << answer.status();
    EXPECT_THAT(answer.status().message(), HasSubstr(c.why));
  }
  const std::string endless(1 << 20, 'x');
  const auto answer =
      ReadAnswer(Response(500, absl::StrCat(R"({"status":"error","error":")", endless, R"("})")));
  EXPECT_LT(answer.status().message().size(), 400u);
}

TEST(AnswerTest, AVectorInAnyOrderOfFields) {
  const auto answer = ReadAnswer(Response(
      200, R"({"data":{"result":[{"value":[1767268800.123,"80640.5"],"metric":{"pod":"x",)"
           R"("queue_name":"team-a"}},{"metric":{},"value":[1,"0"]}],"resultType":"vector"},)"
           R"("infos":["i"],"warnings":["1","2","3","4"],"isPartial":false,"status":"success"})"));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->samples, ElementsAre(Sample{"team-a", {806405, -1}}, Sample{"", {0, 0}}));
  EXPECT_THAT(answer->warnings, ElementsAre("1", "2", "3"));
  EXPECT_THAT(ReadAnswer(Response(200, Vector({})))->samples, IsEmpty());
}

// ---- the computed usage

using Samples = std::vector<std::pair<std::string, std::string>>;

MetricAnswers Both(const Samples& allocation, const Samples& capacity) {
  const auto read = [](const Samples& samples) {
    auto answer = ReadAnswer(Response(200, Vector(samples)));
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *std::move(answer) : Answer();
  };
  return {read(allocation), read(capacity)};
}

// Three metrics: the given one; the other two have no series.
absl::StatusOr<Usage> CombineOne(const MetricAnswers& gpu) {
  const std::vector<Metric> metrics = DefaultMetrics();
  return Combine(absl::UnixEpoch(), metrics,
                 std::vector<MetricAnswers>{gpu, MetricAnswers(), MetricAnswers()});
}

TEST(CombineTest, OneBadSeriesMakesAllOfItWorthless) {
  struct Case {
    const char* what;
    MetricAnswers answers;
    const char* why;
  };
  const Case cases[] = {
      {"no label", Both({{"a", "1"}, {"", "2"}}, {{"", "8"}}),
       "gpuAllocationMetric: a series has no label queue_name"},
      {"twice", Both({{"a", "1"}, {"b", "1"}, {"a", "2"}}, {{"", "8"}}),
       "gpuAllocationMetric: queue a has two series"},
      {"no capacity", Both({{"a", "1"}}, {}), "gpuCapacityMetric: no capacity"},
      {"capacity of zero", Both({{"a", "1"}}, {{"", "0"}}), "gpuCapacityMetric: no capacity"},
      {"capacities", Both({{"a", "1"}}, {{"x", "8"}, {"y", "8"}}), "gpuCapacityMetric: 2 series"},
  };
  for (const Case& c : cases) {
    const auto usage = CombineOne(c.answers);
    ASSERT_FALSE(usage.ok()) << c.what;
    EXPECT_THAT(usage.status().message(), HasSubstr(c.why)) << c.what;
  }
}

TEST(CombineTest, AResourceThatNoQueueHasIsNoProblem) {
  for (const MetricAnswers& answers :
       {Both({}, {}), Both({{"a", "0"}}, {}), Both({{"a", "0"}}, {{"", "0"}})}) {
    const auto usage = CombineOne(answers);
    ASSERT_TRUE(usage.ok()) << usage.status();
    EXPECT_THAT(usage->report.parts, IsEmpty());
    EXPECT_THAT(usage->warnings, IsEmpty());
  }
}

TEST(CombineTest, PartsAreOrderedAndWarningsNamed) {
  const std::vector<Metric> metrics = DefaultMetrics();
  std::vector<MetricAnswers> answers = {Both({{"b", "4"}, {"a", "2"}, {"idle", "0"}}, {{"", "8"}}),
                                        Both({{"a", "1"}}, {{"", "1e+01"}}),
                                        Both({}, {{"", "1024"}})};
  answers[1].capacity.warnings = {"slow"};
  const absl::Time at = absl::FromUnixSeconds(77);
  const auto usage = Combine(at, metrics, answers);
  ASSERT_TRUE(usage.ok()) << usage.status();
  EXPECT_EQ(usage->report.at, at);
  using Part = model::UsageReport::Part;
  EXPECT_THAT(usage->report.parts,
              ElementsAre(Part{"a", "cpu", 100'000'000}, Part{"a", "nvidia.com/gpu", 250'000'000},
                          Part{"b", "nvidia.com/gpu", 500'000'000}));
  EXPECT_THAT(usage->warnings,
              ElementsAre("cpuCapacityMetric: slow",
                          "memoryAllocationMetric: no series: no queue has used the resource"));
}

}  // namespace
}  // namespace fairlead::prometheus
