#include "extenders/served.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace fairlead::extenders {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kPod[] =
    R"({"metadata":{"name":"p","namespace":"ns","uid":"u","labels":{"kai.scheduler/queue":"team"}},)"
    R"("spec":{"schedulerName":"kube","containers":[]},"status":{}})";

std::string Ask(const std::string& rest) {
  return absl::StrCat(R"({"Pod":)", kPod, ",", rest, "}");
}

TEST(ServedTest, AQuestionByNamesIsAnsweredByNames) {
  const auto question = ReadFilterQuestion(Ask(R"("Nodes":null,"NodeNames":["a","b"])"));
  ASSERT_TRUE(question.ok()) << question.status();
  EXPECT_EQ(question->pod.meta.ns, "ns");
  EXPECT_EQ(question->pod.meta.uid, "u");
  EXPECT_EQ(question->pod.scheduler_name, "kube");
  EXPECT_EQ(question->pod.meta.labels.Get("kai.scheduler/queue"), "team");
  EXPECT_EQ(FilterAnswer(*question, {.everywhere = false, .node = "b", .reason = "it is on b"}),
            R"({"NodeNames":["b"],"FailedAndUnresolvableNodes":{"a":"it is on b"},"Error":""})");
  EXPECT_EQ(FilterAnswer(*question, {.everywhere = true, .node = "", .reason = ""}),
            R"({"NodeNames":["a","b"],"FailedAndUnresolvableNodes":{},"Error":""})");
  EXPECT_EQ(
      FilterAnswer(*question, {.everywhere = false, .node = "", .reason = "\"q\" is full"}),
      R"({"NodeNames":[],"FailedAndUnresolvableNodes":{"a":"\"q\" is full","b":"\"q\" is full"},)"
      R"("Error":""})");
}

TEST(ServedTest, AQuestionByNodesIsAnsweredByTheSameNodes) {
  const auto question = ReadFilterQuestion(Ask(
      R"("Nodes":{"metadata":{},"items":[{"metadata":{"name":"a"},"x":[1, 2]},{"metadata":{"name":"b"}}]})"));
  ASSERT_TRUE(question.ok()) << question.status();
  EXPECT_THAT(question->names, ElementsAre("a", "b"));
  EXPECT_EQ(FilterAnswer(*question, {.everywhere = false, .node = "a", .reason = "r"}),
            R"({"Nodes":{"items":[{"metadata":{"name":"a"},"x":[1,2]}]},)"
            R"("FailedAndUnresolvableNodes":{"b":"r"},"Error":""})");
}

TEST(ServedTest, SaysWhatIsWrongWithAQuestion) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "no JSON"},
      {"[]", "no JSON object"},
      {"{}", "Pod is missing"},
      {R"({"Pod":null,"NodeNames":[]})", "Pod is missing"},
      {R"({"Pod":{"metadata":{"name":"p"}},"NodeNames":[]})", "no uid"},
      {R"({"Pod":{"metadata":7},"NodeNames":[]})", "no name"},
      {Ask(R"("Nodes":null)"), "Nodes and NodeNames are missing"},
      {Ask(R"("NodeNames":{})"), "NodeNames is no list"},
      {Ask(R"("Nodes":{"items":7})"), "Nodes.items is no list"},
  };
  for (const auto& [body, problem] : cases) {
    const auto question = ReadFilterQuestion(body);
    ASSERT_FALSE(question.ok()) << body;
    EXPECT_THAT(std::string(question.status().message()), HasSubstr(problem)) << body;
  }
  EXPECT_EQ(FilterFailure("no \"leader\""), R"({"Error":"no \"leader\""})");
  EXPECT_FALSE(ReadPreemptionQuestion(Ask(R"("NodeNameToVictims":[])")).ok());
}

TEST(ServedTest, VictimsAreKeptOrDropped) {
  const char* const expected =
      R"({"NodeNameToMetaVictims":{"a":{"Pods":[{"UID":"v"}],"NumPDBViolations":1}}})";
  for (const char* given :
       {R"("NodeNameToMetaVictims":{"a":{"Pods":[{"UID":"v"}],"NumPDBViolations":1}})",
        R"("NodeNameToVictims":{"a":{"Pods":[{"metadata":{"uid":"v"}}],"NumPDBViolations":1}})"}) {
    const auto question = ReadPreemptionQuestion(Ask(given));
    ASSERT_TRUE(question.ok()) << question.status();
    EXPECT_EQ(PreemptionAnswer(*question, true), expected);
    EXPECT_EQ(PreemptionAnswer(*question, false), R"({"NodeNameToMetaVictims":{}})");
  }
}

}  // namespace
}  // namespace fairlead::extenders
