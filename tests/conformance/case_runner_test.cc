// The runner against scripted sessions: its inputs to them, and the differences it sees.
#include "tests/conformance/case_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/model/api_names.h"
#include "tests/conformance/scheduling_case.h"
#include "tests/conformance/test_cases.h"

namespace fairlead::conformance {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kBoth[] =
    R"({"pods":{"wait-0":{"status":"Running","node":"n1"},"run-0":{"status":"Running"}}})";

// Answers with the next result of a list and records its inputs.
struct Script {
  std::vector<SessionResult> results;
  std::vector<SessionInput> inputs;

  SessionRunner Runner() {
    return [this](const SessionInput& input) -> absl::StatusOr<SessionResult> {
      inputs.push_back(input);
      if (inputs.size() > results.size()) return absl::InternalError("one session too many");
      return results[inputs.size() - 1];
    };
  }
};

SessionResult Result(const std::string& wait_status, const std::string& wait_node,
                     const std::string& run_status = "Running",
                     const std::string& run_node = "n1") {
  SessionResult result;
  result.pods["default/wait-0"] = {.status = wait_status, .node = wait_node, .gpu_groups = {}};
  result.pods["default/run-0"] = {.status = run_status, .node = run_node, .gpu_groups = {}};
  return result;
}

CaseReport RunText(const std::string& text, Script& script) {
  const absl::StatusOr<Json> json = ParseJson(text);
  EXPECT_TRUE(json.ok()) << json.status();
  const absl::StatusOr<SchedulingCase> test = ReadSchedulingCase(*json);
  EXPECT_TRUE(test.ok()) << test.status();
  return RunSchedulingCase(*test, script.Runner());
}

const model::Pod& PodOf(const SessionInput& input, absl::string_view name) {
  for (const kube::Object& object : input.objects) {
    if (const auto* pod = std::get_if<model::Pod>(&object)) {
      if (pod->meta.name == name) return *pod;
    }
  }
  static const model::Pod* const none = new model::Pod();
  ADD_FAILURE() << "no pod " << name;
  return *none;
}

const model::PodGroup& GroupOf(const SessionInput& input, absl::string_view name) {
  for (const kube::Object& object : input.objects) {
    if (const auto* group = std::get_if<model::PodGroup>(&object)) {
      if (group->meta.name == name) return *group;
    }
  }
  static const model::PodGroup* const none = new model::PodGroup();
  ADD_FAILURE() << "no pod group " << name;
  return *none;
}

TEST(CaseRunner, SingleComparesStatusAndNode) {
  const std::string text = CaseJson("single", "{}",
                                    R"({"pods":{"wait-0":{"status":"Binding","node":"n1"},)"
                                    R"("run-0":{"status":"Running","node":null}}})");
  Script good{{Result("Binding", "n1")}, {}};
  EXPECT_THAT(RunText(text, good).differences, IsEmpty());
  Script other_node{{Result("Binding", "n2")}, {}};
  EXPECT_THAT(RunText(text, other_node).differences,
              ElementsAre("pod wait-0: expected Binding on n1, got Binding on n2"));
  Script waits{{Result("Pending", "")}, {}};
  EXPECT_THAT(RunText(text, waits).differences,
              ElementsAre("pod wait-0: expected Binding on n1, got Pending"));
  Script evicted{{Result("Binding", "n1", "Releasing")}, {}};
  EXPECT_THAT(RunText(text, evicted).differences,
              ElementsAre("pod run-0: expected Running, got Releasing on n1"));
  Script no_pods{{SessionResult()}, {}};
  EXPECT_THAT(RunText(text, no_pods).differences,
              ElementsAre("pod run-0: expected Running, got no such pod",
                          "pod wait-0: expected Binding on n1, got no such pod"));
}

TEST(CaseRunner, LimitsAreUpperBoundsOfEachKindOfCall) {
  const std::string pods = R"("pods":{"run-0":{"status":"Running"}})";
  for (const auto& [op, field, words] :
       std::vector<std::tuple<SessionEvent::Op, std::string, std::string>>{
           {SessionEvent::Op::kBind, "bindCountMax", "bindings in one session"},
           {SessionEvent::Op::kEvict, "evictCountMax", "evictions in one session"},
           {SessionEvent::Op::kPipeline, "pipelineCountMax", "promises in one session"}}) {
    SessionResult result = Result("Pending", "");
    result.events = {{op, "default/a", "n1"}, {op, "default/b", "n1"}};
    const auto with_limit = [&](int most) {
      return CaseJson("single", "{}",
                      absl::StrCat("{", pods, R"(,"limits":{")", field, R"(":)", most, "}}"));
    };
    Script below{{result}, {}};
    EXPECT_THAT(RunText(with_limit(2), below).differences, IsEmpty());
    Script above{{result}, {}};
    EXPECT_THAT(RunText(with_limit(1), above).differences,
                ElementsAre(absl::StrCat(words,
                                         ": expected at most 1, got 2 (default/a, "
                                         "default/b)")));
  }
}

TEST(CaseRunner, RoundsFoldWhatWasBound) {
  SessionResult bound = Result("Binding", "n1");
  bound.pods["default/wait-0"].gpu_groups = {"g1"};
  SessionResult settled = Result("Running", "n1");
  Script script{{bound, settled}, {}};
  const CaseReport report =
      RunText(CaseJson("rounds", R"({"untilMatch":1,"afterMatch":1})", kBoth), script);
  EXPECT_THAT(report.differences, IsEmpty());
  ASSERT_EQ(script.inputs.size(), 2);
  EXPECT_EQ(PodOf(script.inputs[0], "wait-0").node_name, "");
  const model::Pod& pod = PodOf(script.inputs[1], "wait-0");
  EXPECT_EQ(pod.node_name, "n1");
  EXPECT_EQ(pod.phase, model::PodPhase::kRunning);
  EXPECT_EQ(pod.meta.labels.Get(model::kGpuGroupLabel), "g1");
  EXPECT_EQ(GroupOf(script.inputs[1], "wait").meta.annotations.Get(model::kLastStartAnnotation),
            "2025-12-31T23:59:00Z");
  EXPECT_THAT(script.inputs[1].actions, ElementsAre("allocate"));
}

TEST(CaseRunner, SeveralGpuGroupsHaveALabelEach) {
  SessionResult bound = Result("Binding", "n1");
  bound.pods["default/wait-0"].gpu_groups = {"g1", "g2"};
  Script script{{bound, Result("Running", "n1")}, {}};
  RunText(CaseJson("rounds", R"({"untilMatch":1,"afterMatch":1})", kBoth), script);
  ASSERT_EQ(script.inputs.size(), 2);
  const model::StringMap& labels = PodOf(script.inputs[1], "wait-0").meta.labels;
  EXPECT_FALSE(labels.Has("runai-gpu-group"));
  EXPECT_EQ(labels.Get("runai-gpu-group/g1"), "g1");
  EXPECT_EQ(labels.Get("runai-gpu-group/g2"), "g2");
}

TEST(CaseRunner, RoundsFoldVictimsAndPromisesBackToWaiting) {
  Script script{{Result("Pipelined", "n1", "Releasing"), Result("Binding", "n1", "Pending", ""),
                 Result("Running", "n1", "Pending", "")},
                {}};
  const CaseReport report =
      RunText(CaseJson("rounds", R"({"untilMatch":2,"afterMatch":1})",
                       R"({"pods":{"wait-0":{"status":"Running"},"run-0":{"status":"Pending"}}})"),
              script);
  EXPECT_THAT(report.differences, IsEmpty());
  ASSERT_EQ(script.inputs.size(), 3);
  for (const char* name : {"wait-0", "run-0"}) {
    const model::Pod& pod = PodOf(script.inputs[1], name);
    EXPECT_EQ(pod.node_name, "") << name;
    EXPECT_EQ(pod.phase, model::PodPhase::kPending) << name;
    EXPECT_FALSE(pod.meta.labels.Has(model::kGpuGroupLabel)) << name;
    EXPECT_FALSE(pod.meta.deletion.has_value()) << name;
  }
  EXPECT_FALSE(GroupOf(script.inputs[1], "run").meta.annotations.Has(model::kLastStartAnnotation));
}

TEST(CaseRunner, AVictimThatStaysReleasingGoesOnTerminating) {
  Script script{{Result("Pending", "", "Releasing"), Result("Pending", "", "Releasing")}, {}};
  const CaseReport report =
      RunText(CaseJson("rounds", R"({"untilMatch":1,"afterMatch":1})",
                       R"({"pods":{"run-0":{"status":"Releasing","node":"n1"}}})",
                       R"({"jobs":{"run":{"staysReleasing":true}}})"),
              script);
  EXPECT_THAT(report.differences, IsEmpty());
  ASSERT_EQ(script.inputs.size(), 2);
  EXPECT_TRUE(PodOf(script.inputs[1], "run-0").meta.deletion.has_value());
  EXPECT_EQ(PodOf(script.inputs[1], "run-0").node_name, "n1");
}

TEST(CaseRunner, AfterTheMatchNothingMayChangeBeforeTheFold) {
  // A binding that the fold would turn into the expected state.
  Script script{{Result("Binding", "n1"), Result("Running", "n1"), Result("Binding", "n1")}, {}};
  const CaseReport report =
      RunText(CaseJson("rounds", R"({"untilMatch":1,"afterMatch":2})", kBoth), script);
  EXPECT_THAT(report.differences,
              ElementsAre("round 3 (nothing may change): pod wait-0: expected Running on n1, got "
                          "Binding on n1"));
}

TEST(CaseRunner, TheMatchIsLookedForAfterTheLastRoundUntilIt) {
  Script script{{Result("Pending", ""), Result("Binding", "n1")}, {}};
  EXPECT_THAT(
      RunText(CaseJson("rounds", R"({"untilMatch":2,"afterMatch":0})", kBoth), script).differences,
      IsEmpty());
  Script late{{Result("Binding", "n1"), Result("Pending", "")}, {}};
  EXPECT_THAT(
      RunText(CaseJson("rounds", R"({"untilMatch":2,"afterMatch":3})", kBoth), late).differences,
      ElementsAre("after round 2: pod wait-0: expected Running on n1, got Pending"));
}

TEST(CaseRunner, StartStatesReachOnlyTheFirstSession) {
  Script script{{Result("Pending", ""), Result("Pending", "")}, {}};
  RunText(CaseJson("rounds", R"({"untilMatch":2,"afterMatch":0})",
                   R"({"pods":{"wait-0":{"status":"Pending"}}})",
                   R"({"pods":{"wait-0":{"status":"Pipelined","node":"n1","gpuGroups":["1"]}}})"),
          script);
  ASSERT_EQ(script.inputs.size(), 2);
  EXPECT_EQ(script.inputs[0].start["wait-0"].status, "Pipelined");
  EXPECT_EQ(script.inputs[0].start["wait-0"].node, "n1");
  EXPECT_EQ(script.inputs[1].start["wait-0"].status, "");
}

TEST(CaseRunner, ClaimsAreCarriedOver) {
  std::string text = CaseJson("rounds", R"({"untilMatch":2,"afterMatch":0})",
                              R"({"pods":{"run-0":{"status":"Running"}}})");
  const std::string claim =
      R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":)"
      R"({"name":"c","namespace":"default"}},)";
  text.insert(text.find(R"({"apiVersion":"v1","kind":"Pod")"), claim);
  SessionResult allocated = Result("Pending", "");
  allocated.claim_status["default/c"] = R"({"allocation":{"devices":{}}})";
  Script script{{allocated, Result("Pending", "")}, {}};
  EXPECT_THAT(RunText(text, script).differences, IsEmpty());
  ASSERT_EQ(script.inputs.size(), 2);
  const auto everything = [](const SessionInput& input) {
    std::string all;
    for (const std::string& other : input.other_objects) all += other;
    return all;
  };
  EXPECT_THAT(everything(script.inputs[0]), ::testing::Not(HasSubstr("allocation")));
  // A codec that knows claims takes them from here.
  if (!script.inputs[1].other_objects.empty()) {
    EXPECT_THAT(everything(script.inputs[1]), HasSubstr(R"("allocation":{"devices":{}})"));
  }
}

TEST(CaseRunner, ComparesWhatJobsAskForAndNodesHave) {
  SessionResult result = Result("Pending", "");
  result.pods["default/wait-0"].milli_gpus = 1000;
  result.pods["default/wait-0"].milli_cpus = 1000;
  result.nodes["n1"] = {.idle_milli_gpus = 1000, .releasing_milli_gpus = 500};
  Script script{{result}, {}};
  const CaseReport report = RunText(
      CaseJson("single", "{}",
               R"({"pods":{},"jobs":{"wait":{"gpusRequired":2,"milliCpuRequired":1000,)"
               R"("memoryRequired":7}},"nodes":{"n1":{"idleGpus":1,"releasingGpus":0},"n2":{}}})"),
      script);
  EXPECT_THAT(
      report.differences,
      ElementsAre("node n1: expected 0 GPUs being released, got 0.5 GPUs", "node n2: there is none",
                  "job wait: expected to ask for 2 GPUs, got 1 GPUs",
                  "job wait: expected to ask for 7 bytes of memory, got 0"));
}

TEST(CaseRunner, AVerdictMustMeanWhatTheMessageSays) {
  const std::string text =
      CaseJson("single", "{}",
               R"({"pods":{},"jobs":{"wait":{"errorMessage":"x\n q quota has reached the )"
               R"(allowable limit of GPUs"}}})");
  SessionResult result = Result("Pending", "");
  Script none{{result}, {}};
  EXPECT_THAT(RunText(text, none).differences,
              ElementsAre("job wait: expected the verdict QueueLimitReached, got none"));
  result.verdicts["default/wait"] = "QueueLimitReached";
  Script right{{result}, {}};
  EXPECT_THAT(RunText(text, right).differences, IsEmpty());
  result.verdicts["default/wait"] = "InsufficientCapacity";
  Script wrong{{result}, {}};
  EXPECT_THAT(
      RunText(text, wrong).differences,
      ElementsAre("job wait: expected the verdict QueueLimitReached, got InsufficientCapacity"));
}

TEST(CaseRunner, MessagesToCodes) {
  EXPECT_THAT(CodesFor("Queue 'x' does not exist"), ElementsAre("QueueNotFound"));
  EXPECT_THAT(CodesFor("topology t, requirement rack couldn't be satisfied for job <a>"),
              Contains("TopologyInfeasible"));
  EXPECT_THAT(CodesFor("Resources were not found for pod a/b due to: MaxNodePoolResources: .."),
              Contains("NoInstanceTypeFits"));
  EXPECT_THAT(CodesFor("something new"), IsEmpty());
}

TEST(CaseRunner, SaysWhatTheSessionsDid) {
  SessionResult result = Result("Binding", "n1");
  result.events = {{SessionEvent::Op::kBind, "default/wait-0", "n1"}};
  result.verdicts["default/other"] = "Gated";
  result.notes = {"a note"};
  Script script{{result}, {}};
  EXPECT_THAT(RunText(CaseJson("single", "{}", R"({"pods":{}})"), script).log,
              ElementsAre("bind default/wait-0 to n1", "default/other waits: Gated", "a note"));
}

TEST(CaseRunner, AFailingSessionIsADifference) {
  Script script;
  EXPECT_THAT(RunText(CaseJson("single", "{}", R"({"pods":{}})"), script).differences,
              ElementsAre("one session too many"));
  Script unknown_pod{{Result("Pending", "")}, {}};
  EXPECT_THAT(
      RunText(CaseJson("single", "{}", R"({"pods":{"other":{"status":"Pending"}}})"), unknown_pod)
          .differences,
      ElementsAre("expect.pods: no object Pod other"));
  std::string text = CaseJson("single", "{}", R"({"pods":{}})");
  text.replace(text.find(R"("kind":"Node")"), 13, R"("kind":7)");
  Script unread{{Result("Pending", "")}, {}};
  EXPECT_THAT(RunText(text, unread).differences, ElementsAre(HasSubstr("object")));
}

TEST(SchedulingCase, MalformedCasesNameTheField) {
  const std::string good = CaseJson("single", "{}", R"({"pods":{"run-0":{"status":"Running"}}})");
  const auto error_with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const absl::StatusOr<Json> json = ParseJson(text);
    EXPECT_TRUE(json.ok()) << text;
    const auto test = ReadSchedulingCase(*json);
    return test.ok() ? "read" : std::string(test.status().message());
  };
  EXPECT_EQ(error_with("single", "single"), "read");
  EXPECT_EQ(error_with(R"("single")", R"("twice")"), R"(mode: must be "single" or "rounds")");
  EXPECT_EQ(error_with(R"("single")", "1"), "mode: must be a string");
  EXPECT_EQ(error_with(R"(["allocate"])", R"(["allocate","dance"])"),
            "actions[1]: unknown action dance");
  EXPECT_EQ(error_with("2026-01-01T", "tomorrow"), "now: not a time: Failed to parse input");
  EXPECT_EQ(error_with(R"("status":"Running"}}})", R"("status":"Walking"}}})"),
            "expect.pods.run-0.status: unknown status Walking");
  EXPECT_EQ(error_with(R"({"status":"Running"}}})", R"({}}})"),
            "expect.pods.run-0.status: is missing");
  EXPECT_EQ(error_with(R"("rounds":{})", R"("rounds":{"untilMatch":100000})"),
            "rounds: there must be 1 to 1000 rounds until the match, and 0 to 1000 after it");
  EXPECT_EQ(error_with(R"("rounds":{})", R"("rounds":{"untilMatch":1.5})"),
            "rounds.untilMatch: must be a whole number");
  EXPECT_EQ(error_with(R"("schedulerConfig":{})", R"("schedulerConfig":{"schedulerConf":{}})"),
            "schedulerConfig.schedulerConf.tiers: is missing");
  EXPECT_EQ(
      error_with(R"("schedulerConfig":{})", R"("schedulerConfig":{"stalenessGracePeriod":"soon"})"),
      "schedulerConfig.stalenessGracePeriod: not a duration");
  EXPECT_EQ(error_with(R"("state":{})", R"("state":{"pods":{"a":{"gpuGroups":[1]}}})"),
            "state.pods.a.gpuGroups[0]: must be a string");
}

TEST(Json, RoundTripKeepsEveryValue) {
  const std::string text =
      R"({"a":[1,-2,0.7,1e+30,true,null,"x\"\\\u0001y",{}],"b":18446744073709551615})";
  const absl::StatusOr<Json> json = ParseJson(text);
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(ToText(*json), text);
  EXPECT_FALSE(ParseJson("{\"a\":").ok());
  EXPECT_FALSE(ParseJson("").ok());
}

}  // namespace
}  // namespace fairlead::conformance
