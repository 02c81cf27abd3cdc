// The adapter: objects in, results of the real engine out.
#include "tests/conformance/engine_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/conformance/scheduling_case.h"
#include "tests/conformance/test_cases.h"
#include "tests/conformance/world.h"

namespace fairlead::conformance {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

SessionResult RunObjects(const std::vector<std::string>& objects,
                         std::vector<std::string> actions) {
  SchedulingCase test;
  test.now = absl::FromUnixSeconds(1'767'225'600);
  for (const std::string& object : objects) {
    const absl::StatusOr<Json> json = ParseJson(object);
    EXPECT_TRUE(json.ok()) << object;
    test.objects.push_back(*json);
  }
  const absl::StatusOr<SessionInput> input = World(test).MakeInput(std::move(actions));
  EXPECT_TRUE(input.ok()) << input.status();
  const absl::StatusOr<SessionResult> result = RunEngineSession(*input);
  EXPECT_TRUE(result.ok()) << result.status();
  return *result;
}

TEST(EngineSession, BindsAPodThatFits) {
  const SessionResult result =
      RunObjects({NodeJson("n1", 2), QueueJson("q"), PriorityClassJson("train", 50),
                  GroupJson("a", "q"), PodJson("a-0", "a", "")},
                 {"allocate"});
  EXPECT_EQ(result.pods.at("default/a-0").status, "Binding");
  EXPECT_EQ(result.pods.at("default/a-0").node, "n1");
  EXPECT_EQ(result.pods.at("default/a-0").milli_gpus, 1000);
  EXPECT_EQ(result.nodes.at("n1").idle_milli_gpus, 1000);
  ASSERT_EQ(result.events.size(), 1);
  EXPECT_EQ(result.events[0].op, SessionEvent::Op::kBind);
  EXPECT_EQ(result.events[0].pod, "default/a-0");
  EXPECT_THAT(result.notes, IsEmpty());
}

TEST(EngineSession, PreemptsAndPromises) {
  const SessionResult result = RunObjects(
      {NodeJson("n1", 1), QueueJson("q"), PriorityClassJson("train", 50),
       PriorityClassJson("high", 60), GroupJson("low", "q"), PodJson("low-0", "low", "n1"),
       GroupJson("urgent", "q", "high"), PodJson("urgent-0", "urgent", "")},
      {"allocate", "preempt"});
  EXPECT_EQ(result.pods.at("default/low-0").status, "Releasing");
  EXPECT_EQ(result.pods.at("default/urgent-0").status, "Pipelined");
  EXPECT_EQ(result.pods.at("default/urgent-0").node, "n1");
  EXPECT_EQ(result.nodes.at("n1").releasing_milli_gpus, 1000);
  EXPECT_EQ(result.events.size(), 2);
}

TEST(EngineSession, OnlyTheActionsThatAreNamed) {
  const SessionResult result = RunObjects(
      {NodeJson("n1", 1), QueueJson("q"), PriorityClassJson("train", 50),
       PriorityClassJson("high", 60), GroupJson("low", "q"), PodJson("low-0", "low", "n1"),
       GroupJson("urgent", "q", "high"), PodJson("urgent-0", "urgent", "")},
      {"allocate", "reclaim"});
  EXPECT_EQ(result.pods.at("default/low-0").status, "Running");
  EXPECT_EQ(result.pods.at("default/urgent-0").status, "Pending");
  EXPECT_EQ(result.verdicts.at("default/urgent"), "InsufficientCapacity");
}

TEST(EngineSession, NoActionOnlyLooks) {
  const SessionResult result =
      RunObjects({NodeJson("n1", 2), QueueJson("q"), PriorityClassJson("train", 50),
                  GroupJson("a", "q"), PodJson("a-0", "a", ""), PodJson("a-1", "a", "n1")},
                 {});
  EXPECT_EQ(result.pods.at("default/a-0").status, "Pending");
  EXPECT_EQ(result.pods.at("default/a-1").status, "Running");
  EXPECT_EQ(result.nodes.at("n1").idle_milli_gpus, 1000);
  EXPECT_THAT(result.events, IsEmpty());
}

TEST(EngineSession, NamesWhatMakesNoSense) {
  const SessionResult result = RunObjects(
      {NodeJson("n1", 2), QueueJson("q"), PodJson("a-0", "a", ""),
       R"({"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"thing"}})",
       R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"bad","namespace":"default",)"
       R"("annotations":{"gpu-fraction":"seven"}},"spec":{"schedulerName":"kai-scheduler",)"
       R"("containers":[{"name":"main"}]}})"},
      {"allocate"});
  EXPECT_THAT(result.notes, Contains(HasSubstr("Thing")));
  EXPECT_THAT(result.notes, Contains(HasSubstr("default/bad: ")));
  EXPECT_EQ(result.pods.at("default/bad").status, "Pending");
}

}  // namespace
}  // namespace fairlead::conformance
