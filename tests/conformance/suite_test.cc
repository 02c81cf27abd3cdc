// Finding, running, isolating, counting and reporting cases; the list of deviations; the tables
// about queues.
#include "tests/conformance/suite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/conformance/isolate.h"
#include "tests/conformance/queue_tables.h"
#include "tests/conformance/test_cases.h"

namespace fairlead::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A folder of its own, gone with the test.
class SuiteTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "conformance-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    options_.run_session = RunEngineSession;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& file, const std::string& text) {
    std::ofstream(folder_ / file) << text;
  }
  SuiteResult Run() { return RunSuite({folder_.string()}, options_); }
  void List(const std::string& text) {
    auto deviations = ReadDeviations(text);
    ASSERT_TRUE(deviations.ok()) << deviations.status();
    options_.deviations = *std::move(deviations);
  }

  std::filesystem::path folder_;
  SuiteOptions options_;
};

// Passes if the pod is bound, as it will be.
std::string Expecting(absl::string_view status) {
  return CaseJson("single", "{}",
                  absl::StrCat(R"({"pods":{"wait-0":{"status":")", status, R"("}}})"));
}

TEST_F(SuiteTest, CountsAndNamesCases) {
  Write("actions__b.json", absl::StrCat("[", Expecting("Binding"), ",", Expecting("Pending"), "]"));
  Write("README.md", "no case");
  const SuiteResult result = Run();
  ASSERT_EQ(result.cases.size(), 2);
  EXPECT_EQ(result.Count(Outcome::kPassed), 1);
  EXPECT_EQ(result.cases[0].id, "some_test.go:Test[0]");
  EXPECT_EQ(result.cases[1].id, "some_test.go:Test[0] [2]");
  EXPECT_THAT(result.cases[1].differences,
              ElementsAre("pod wait-0: expected Pending, got Binding on n1"));
  const std::string text = ToText(result, false);
  EXPECT_THAT(text, EndsWith("\n1 passed, 1 failed\n"));
  EXPECT_THAT(text, HasSubstr("FAILED some_test.go:Test[0] [2]\n  actions__b.json: a case\n"
                              "    pod wait-0: expected Pending, got Binding on n1\n"));
  EXPECT_THAT(text, HasSubstr("actions__b.json: 1 of 2\n"));
  const absl::StatusOr<Json> json = ParseJson(ToJson(result));
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json->Find("passed")->text, "1");
  EXPECT_EQ(json->Find("failed")->text, "1");
  EXPECT_EQ(json->TextAt({"cases", "some_test.go:Test[0]", "result"}), "passed");
  EXPECT_EQ(json->TextAt({"cases", "some_test.go:Test[0] [2]", "result"}), "failed");
}

TEST_F(SuiteTest, AbsentFolderIsSkipped) {
  const std::string absent = (folder_ / "nowhere").string();
  const SuiteResult result = RunSuite({absent}, options_);
  EXPECT_THAT(result.cases, IsEmpty());
  EXPECT_EQ(ToText(result, false),
            absl::StrCat("skipped: there is no ", absent, "\n0 passed, 0 failed\n"));
}

TEST_F(SuiteTest, MalformedFilesAndCasesFailAlone) {
  Write("a.json", "[{\"source\":");
  Write("b.json", "{}");
  Write("c.json",
        absl::StrCat("[7,{},{\"source\":\"s\",\"objects\":[]},", Expecting("Binding"), "]"));
  Write("d.json", R"([{"source":"f","name":"n","operation":"halve"},)"
                  R"({"source":"g","name":"n","check":"reclaimable"}])");
  const SuiteResult result = Run();
  std::vector<std::string> lines;
  for (const CaseResult& one : result.cases) {
    lines.push_back(absl::StrCat(one.id, ": ", absl::StrJoin(one.differences, "|")));
  }
  EXPECT_THAT(
      lines,
      ElementsAre(HasSubstr("a.json: not JSON"), HasSubstr("b.json: not an array of cases"),
                  "c.json[0]: malformed case: neither objects, operation nor check: of no known "
                  "form",
                  "c.json[1]: malformed case: neither objects, operation nor check: of no known "
                  "form",
                  "s: malformed case: mode: is missing", "some_test.go:Test[0]: ",
                  "f n: malformed case: operation: must be full, overQuotaOnly or tree",
                  "g n: malformed case: queues: is missing"));
  EXPECT_EQ(result.Count(Outcome::kPassed), 1);
}

TEST_F(SuiteTest, FilterLooksAtSourceNameAndFile) {
  Write("one.json", absl::StrCat("[", Expecting("Binding"), "]"));
  Write("two.json", absl::StrCat("[", Expecting("Binding"), "]"));
  for (const auto& [filter, count] : std::vector<std::pair<std::string, size_t>>{
           {"", 2}, {"one.json", 1}, {"some_test", 2}, {"a case", 2}, {"other", 0}}) {
    options_.filter = filter;
    EXPECT_EQ(Run().cases.size(), count) << filter;
  }
}

TEST_F(SuiteTest, ACrashIsTheFailureOfItsCase) {
  Write("a.json", absl::StrCat("[", Expecting("Binding"), ",", Expecting("Binding"), "]"));
  options_.run_session = [](const SessionInput&) -> absl::StatusOr<SessionResult> { std::abort(); };
  const SuiteResult result = Run();
  ASSERT_EQ(result.cases.size(), 2);
  EXPECT_THAT(result.cases[0].differences, ElementsAre(HasSubstr("crashed: ")));
  EXPECT_EQ(result.Count(Outcome::kFailed), 2);
}

TEST_F(SuiteTest, AListedCaseMustDeviateAsListed) {
  Write("a.json", absl::StrCat("[", Expecting("Pending"), "]"));
  List("some_test.go:Test[0]\tKAI waits / we bind / sooner\twait-0=Binding@n1\n");
  const SuiteResult exact = Run();
  EXPECT_EQ(exact.Count(Outcome::kDeviates), 1);
  EXPECT_EQ(exact.Count(Outcome::kFailed), 0);
  const std::string text = ToText(exact, false);
  EXPECT_THAT(text, HasSubstr("deviates by decision: some_test.go:Test[0]\n"
                              "    KAI waits / we bind / sooner\n"));
  EXPECT_THAT(text, EndsWith("1 deviate by decision\n0 passed, 0 failed\n"));

  List("some_test.go:Test[0]\tKAI waits / we bind\twait-0=Binding@n2\n");
  EXPECT_EQ(Run().Count(Outcome::kFailed), 1);
  List("some_test.go:Test[0]\tKAI waits / we bind\n");
  EXPECT_EQ(Run().Count(Outcome::kFailed), 1);
  List("some_test.go:Test[0]\tKAI waits / we bind\tother=Binding\n");
  EXPECT_THAT(Run().cases[0].differences, ElementsAre(HasSubstr("pod other")));
}

TEST_F(SuiteTest, AListedCaseThatPassesSaysSo) {
  Write("a.json", absl::StrCat("[", Expecting("Binding"), "]"));
  List("some_test.go:Test[0]\tKAI waits / we bind\twait-0=Binding\n");
  const SuiteResult result = Run();
  EXPECT_EQ(result.Count(Outcome::kPassed), 1);
  EXPECT_THAT(ToText(result, false),
              HasSubstr("listed as a deviation, but does as KAI does: some_test.go:Test[0]\n"));
}

TEST(Deviations, MalformedLinesNameTheirNumber) {
  for (const auto& [text, error] : std::vector<std::pair<std::string, std::string>>{
           {"# only words\n\ncase", "line 3: needs a case, a TAB and the reason"},
           {"case\t\n", "line 1: needs a case"},
           {"a\tb\tc=Pending\td\n", "line 1: needs a case"},
           {"a\tb\nc\td\na\tb\n", "line 3: a comes twice"},
           {"a\tb\tpod\n", "\"pod\" is no NAME=VALUE"},
           {"a\tb\tevictCountMax=few\n", "\"evictCountMax=few\" has no number"},
       }) {
    const auto deviations = ReadDeviations(text);
    ASSERT_FALSE(deviations.ok()) << text;
    EXPECT_THAT(std::string(deviations.status().message()), HasSubstr(error));
  }
  const auto deviations = ReadDeviations("a\tb\tp=Pending q=Running@n evictCountMax=3\r\n");
  ASSERT_TRUE(deviations.ok());
  const Deviation& one = deviations->at("a");
  EXPECT_EQ(one.limits.evictions, 3);
  EXPECT_EQ(one.pods.at("p").node, std::nullopt);
  EXPECT_EQ(one.pods.at("q").node, "n");
}

TEST(Isolate, AnswersOfAnySizeComeWhole) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1'000'000}}) {
    const auto answer = RunIsolated(absl::Seconds(30), [size] { return std::string(size, 'x'); });
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->size(), size);
  }
}

TEST(Isolate, TellsHowItEnded) {
  const auto crashed =
      RunIsolated(absl::Seconds(30), []() -> std::string { std::raise(SIGKILL), std::abort(); });
  EXPECT_EQ(crashed.status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(crashed.status().message()), HasSubstr("crashed: Killed"));
  const auto exited = RunIsolated(absl::Seconds(30), []() -> std::string { std::_Exit(3); });
  EXPECT_THAT(std::string(exited.status().message()), HasSubstr("ended early, code 3"));
  const auto endless = RunIsolated(absl::Milliseconds(50), []() -> std::string {
    while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
  });
  EXPECT_EQ(endless.status().code(), absl::StatusCode::kDeadlineExceeded);
}

std::vector<std::string> Table(absl::string_view text) {
  const absl::StatusOr<Json> json = ParseJson(text);
  EXPECT_TRUE(json.ok()) << text;
  const auto differences =
      IsFairShareCase(*json) ? RunFairShareCase(*json) : RunQueueCheckCase(*json);
  if (differences.ok()) return *differences;
  return {std::string(differences.status().message())};
}

TEST(QueueTables, FairShareDifferencesAreSeen) {
  const auto level = [](absl::string_view share, absl::string_view left) {
    return Table(absl::StrCat(
        R"({"operation":"full","resource":"gpu","total":3,"kValue":0,"queues":{"a":{"quota":1,)"
        R"("limit":-1,"overQuotaWeight":0,"request":2,"expectedFairShare":)",
        share, R"(}},"expectedRemaining":)", left, "}"));
  };
  EXPECT_THAT(level("1", "2"), IsEmpty());
  EXPECT_THAT(level("2", "1"),
              ElementsAre("remaining: expected 1, got 2", "fair share of a: expected 2, got 1"));
  EXPECT_THAT(level("\"1\"", "2"), ElementsAre("queues.a.expectedFairShare: must be a number"));
  EXPECT_THAT(level("1e300", "2"), ElementsAre("queues.a.expectedFairShare: is out of range"));
  EXPECT_THAT(
      Table(
          R"({"operation":"tree","total":{"gpu":2},"queues":{"top":{"gpu":{"quota":-1,"limit":-1,)"
          R"("request":2},"expectedFairShare":{"gpu":1}}}})"),
      ElementsAre("fair share of top in gpu: expected 1, got 2"));
}

TEST(QueueTables, ChecksAreSeen) {
  const auto limit = [](absl::string_view rest) {
    return Table(absl::StrCat(
        R"({"check":"isJobOverQueueCapacity","queues":{"q":{"gpu":{"allocated":3,"limit":3}}},)"
        R"("job":{"queue":"q","preemptible":true},"requested":{"gpu":1},)",
        rest, "}"));
  };
  EXPECT_THAT(limit(R"("expected":false,"reason":"OverLimit","message":"q Limit is 3 GPUs, )"
                    R"(currently 3 GPUs, requested 1 GPUs")"),
              IsEmpty());
  EXPECT_THAT(limit(R"("expected":true)"), ElementsAre("expected yes, got no"));
  EXPECT_THAT(limit(R"("expected":false,"reason":"NonPreemptibleOverQuota")"),
              ElementsAre("reason: expected NonPreemptibleOverQuota, got OverLimit"));
  EXPECT_THAT(limit(R"("expected":false,"message":"q Limit is 4 GPUs, currently 3 GPUs, )"
                    R"(requested 1 GPUs")"),
              ElementsAre(HasSubstr("got Limit is 3 ")));
  EXPECT_THAT(Table(R"({"check":"canReclaimResources","queues":{"q":{"gpu":{"allocated":2,)"
                    R"("fairShare":2}}},"reclaimer":{"queue":"q","required":{"gpu":1}},)"
                    R"("expected":true})"),
              ElementsAre(HasSubstr("expected yes, got no: refusal 1 at queue q")));
  EXPECT_THAT(Table(R"({"check":"canReclaimResources","queues":{},"reclaimer":{"queue":"q",)"
                    R"("required":{}},"expected":true})"),
              ElementsAre("reclaimer: there is no queue q"));
}

}  // namespace
}  // namespace fairlead::conformance
