// Texts beside the journals: objects of the API and metrics.
#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "journal/redactor.h"

namespace fairlead::journal {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Collects, then replaces.
std::string Replaced(const std::function<std::string(Redactor&)>& make) {
  Redactor redactor({});
  static_cast<void>(make(redactor));
  redactor.Assign();
  std::string out = make(redactor);
  EXPECT_EQ(redactor.problem(), "");
  return out;
}
std::string ReplacedObject(const char* json) {
  return Replaced(
      [&](Redactor& redactor) { return redactor.ApiObject(Json::Parse(json).value()).Compact(); });
}
std::string ReplacedMetrics(const std::string& text) {
  return Replaced([&](Redactor& redactor) { return redactor.Metrics(text); });
}

TEST(RedactorDocumentsTest, AFieldThatIsOnNoListIsRenamed) {
  const std::string object =
      ReplacedObject(R"({"metadata":{"name":"acme-pod"},"acmeField":{"jane":["secret"]}})");
  for (const char* word : {"acme", "jane", "secret"}) EXPECT_THAT(object, Not(HasSubstr(word)));
  EXPECT_THAT(object, HasSubstr("\"metadata\":{\"name\":"));
}

TEST(RedactorDocumentsTest, AmountsAndTimesStay) {
  const std::string object = ReplacedObject(
      R"({"metadata":{"creationTimestamp":"2026-11-29T00:00:00Z","resourceVersion":"4711"},)"
      R"("status":{"allocatable":{"memory":"512Gi","acme.example/fpga":"3"},"phase":"Running"}})");
  EXPECT_THAT(object, HasSubstr("2026-11-29T00:00:00Z"));
  EXPECT_THAT(object, HasSubstr("\"resourceVersion\":\"4711\""));
  EXPECT_THAT(object, HasSubstr("\"memory\":\"512Gi\""));
  EXPECT_THAT(object, HasSubstr(":\"3\""));
  EXPECT_THAT(object, Not(HasSubstr("acme")));
}

TEST(RedactorDocumentsTest, AVersionStaysWithoutItsBuild) {
  EXPECT_EQ(ReplacedObject(R"({"gitVersion":"v1.31.2+acme-7"})"), R"({"gitVersion":"v1.31.2"})");
}

TEST(RedactorDocumentsTest, AVerdictKeepsItsCodeAndNumbers) {
  const std::string object = ReplacedObject(
      R"({"metadata":{"annotations":{"fairlead.dev/verdict":)"
      R"("{\"code\":\"QueueLimitReached\",\"queue\":\"acme\",\"position\":3,\"hash\":\"ab\"}"}}})");
  EXPECT_THAT(object, HasSubstr("QueueLimitReached"));
  EXPECT_THAT(object, HasSubstr("\\\"position\\\":3"));
  EXPECT_THAT(object, Not(HasSubstr("acme")));
}

TEST(RedactorDocumentsTest, AVerdictThatIsNoJsonIsRenamed) {
  EXPECT_THAT(
      ReplacedObject(R"({"metadata":{"annotations":{"fairlead.dev/verdict":"acme says no"}}})"),
      Not(HasSubstr("acme")));
}

TEST(RedactorDocumentsTest, LabelsOfMetricsAreRenamedUpToTheirEnd) {
  const std::string metrics = ReplacedMetrics(
      "# HELP fairlead_queue_gpus GPUs.\n"
      "fairlead_queue_gpus{queue=\"acme\\\"jane\",le=\"0.5\"} 2\n"
      "fairlead_open{queue=\"acme\n");
  EXPECT_THAT(metrics, HasSubstr("# HELP fairlead_queue_gpus GPUs.\n"));
  EXPECT_THAT(metrics, HasSubstr("le=\"0.5\"} 2\n"));
  for (const char* word : {"acme", "jane"}) EXPECT_THAT(metrics, Not(HasSubstr(word)));
}

TEST(RedactorDocumentsTest, MetricsOfOtherProgramsAreLeftOut) {
  EXPECT_EQ(ReplacedMetrics("# HELP acme_total of jane\nacme_total{a=\"b\"} 1\n# acme\njane\n"),
            "");
}

}  // namespace
}  // namespace fairlead::journal
