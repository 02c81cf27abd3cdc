// Steps of `fairlead migrate` and their undoing, without a cluster.
#include "cmd/fairlead/migrate/migrate_plan.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cmd/fairlead/migrate/migrate_testing.h"

namespace fairlead::cmd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Texts(const std::vector<MigrationStep>& steps) {
  std::vector<std::string> texts;
  texts.reserve(steps.size());
  for (const MigrationStep& step : steps) texts.push_back(StepText(step));
  return texts;
}

std::vector<MigrationStep> StepsOf(const KaiObjects& objects, bool controllers = false) {
  auto steps = PlanMigration(ReadKaiInstallation(objects), {.controllers = controllers});
  EXPECT_TRUE(steps.ok()) << steps.status();
  return steps.ok() ? *std::move(steps) : std::vector<MigrationStep>();
}

TEST(MigratePlanTest, TheOperatorStopsFirstAndFairleadServesLast) {
  const std::vector<MigrationStep> steps = StepsOf(testing::Installed());
  EXPECT_THAT(
      Texts(steps),
      ElementsAre(
          "stop KAI's operator: Deployment kai-scheduler/kai-operator /spec/replicas: 1 -> 0",
          "stop KAI's node-scale-adjuster: Deployment kai-scheduler/node-scale-adjuster "
          "/spec/replicas: 1 -> 0",
          "stop KAI's scheduler: Deployment kai-scheduler/kai-scheduler-default /spec/replicas: 2 "
          "-> 0",
          "let Fairlead serve kai-scheduler: ConfigMap fairlead/fairlead-configuration "
          "/data/fairlead.yaml: (text) -> (text)"));
  EXPECT_EQ(steps[2].pods, "app=kai-scheduler-default");
  EXPECT_TRUE(steps[2].drains_bind_requests);
  EXPECT_THAT(steps[3].to.text(), HasSubstr("schedulerNames: [fairlead, kai-scheduler]  # and"));
}

TEST(MigratePlanTest, ControllersStopOnceTheirWebhooksMayFail) {
  const std::vector<std::string> texts = Texts(StepsOf(testing::Installed(), true));
  ASSERT_EQ(texts.size(), 9U);
  EXPECT_THAT(texts[3], HasSubstr("ValidatingWebhookConfiguration queue-validation-v2 "
                                  "/webhooks/0/failurePolicy: \"Fail\" -> \"Ignore\""));
  EXPECT_THAT(texts[4], HasSubstr("binder"));
  EXPECT_THAT(texts[7], HasSubstr("queue-controller"));
  EXPECT_THAT(texts[8], HasSubstr("let Fairlead serve"));
}

TEST(MigratePlanTest, WhatIsDoneAlreadyIsNoStep) {
  KaiObjects objects = testing::Installed();
  for (Json& deployment : objects.deployments) {
    deployment.Find("spec")->Set("replicas", Json::Int(0));
  }
  objects.fairlead_configuration = testing::FileObject(
      "apiVersion: config.fairlead.dev/v1alpha1\nkind: FairleadConfiguration\n"
      "schedulerNames: [fairlead, kai-scheduler]\n");
  EXPECT_THAT(StepsOf(objects), IsEmpty());
}

TEST(MigratePlanTest, NothingIsPlannedIfTheFileCannotBeChanged) {
  const auto steps =
      PlanMigration(ReadKaiInstallation(testing::Installed(
                        "apiVersion: config.fairlead.dev/v1alpha1\nkind: FairleadConfiguration\n"
                        "schedulerNames:\n  [\n  fairlead]\n")),
                    {});
  EXPECT_EQ(steps.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(steps.status().message(), HasSubstr("change it by hand"));
}

struct FileCase {
  const char *name, *without, *with;
};
class SchedulerNames : public ::testing::TestWithParam<FileCase> {};

std::string FileWith(const std::string& names) {
  return absl::StrCat("# head\napiVersion: config.fairlead.dev/v1alpha1\n",
                      "kind: FairleadConfiguration\n", names,
                      "events: true  # schedulerNames: [x]\n");
}

TEST_P(SchedulerNames, AreChangedInPlaceBothWays) {
  const std::string without = FileWith(GetParam().without), with = FileWith(GetParam().with);
  EXPECT_EQ(WithSchedulerName(without, "kai-scheduler").value_or("?"), with);
  EXPECT_EQ(WithoutSchedulerName(with, "kai-scheduler").value_or("?"), without);
  EXPECT_EQ(WithSchedulerName(with, "kai-scheduler").value_or("?"), with);
  EXPECT_EQ(WithoutSchedulerName(without, "kai-scheduler").value_or("?"), without);
}

INSTANTIATE_TEST_SUITE_P(
    Files, SchedulerNames,
    ::testing::Values(FileCase{"Brackets", "schedulerNames: [fairlead]\n",
                               "schedulerNames: [fairlead, kai-scheduler]\n"},
                      FileCase{"Comment", "schedulerNames:   [fairlead, \"b\"] # [z]\n",
                               "schedulerNames:   [fairlead, \"b\", kai-scheduler] # [z]\n"},
                      FileCase{"Lines", "schedulerNames:\n- fairlead # ours\n",
                               "schedulerNames:\n- fairlead # ours\n- kai-scheduler\n"},
                      FileCase{"Indented",
                               "schedulerNames: # all\n  - fairlead\n\n  # next\n  - b\n",
                               "schedulerNames: # all\n  - fairlead\n\n  # next\n  - b\n"
                               "  - kai-scheduler\n"}),
    [](const auto& row) { return row.param.name; });

TEST(MigratePlanTest, AListThatIsNotThereIsChangedByHand) {
  const std::string no_list = FileWith("");
  EXPECT_EQ(WithSchedulerName(no_list, "kai-scheduler").value_or("?"), no_list)
      << "the default has the name";
  EXPECT_EQ(WithoutSchedulerName(no_list, "kai-scheduler").status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(WithoutSchedulerName(FileWith("schedulerNames: [kai-scheduler]\n"), "kai-scheduler")
                .status()
                .code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(WithSchedulerName("hook: [\n", "kai-scheduler").ok());
}

TEST(MigratePlanTest, TheRecordHasWhatUndoesIt) {
  const std::vector<MigrationStep> steps = StepsOf(testing::Installed(), true);
  const Json map = RecordManifest("fairlead", steps);
  EXPECT_EQ(map.TextAt({"metadata", "name"}), kMigrationRecord);
  const auto read = ReadRecord(map);
  ASSERT_TRUE(read.ok()) << read.status();
  const std::vector<MigrationStep> undo = UndoSteps(*read);
  ASSERT_EQ(undo.size(), steps.size());
  EXPECT_EQ(undo.front().served, "kai-scheduler") << "the name is let go first";
  EXPECT_EQ(undo.front().to.text(), testing::kFile);
  EXPECT_EQ(StepText(undo.back()),
            "undo: stop KAI's operator: Deployment kai-scheduler/kai-operator /spec/replicas: 0 -> "
            "1");
  for (const MigrationStep& step : undo) EXPECT_EQ(step.pods, "");
}

TEST(MigratePlanTest, ADamagedRecordIsNoRecord) {
  for (const char* steps : {"", "[", "{}", "[]", R"([{"kind":"Deployment","name":"a"}])"}) {
    Json map = RecordManifest("fairlead", {});
    map.Find("data")->Set("steps", steps);
    EXPECT_EQ(ReadRecord(map).status().code(), absl::StatusCode::kFailedPrecondition) << steps;
  }
}

TEST(MigratePlanTest, AnotherRunKeepsFormerValuesAndAddsWhatIsNew) {
  KaiObjects objects = testing::Installed();
  const std::vector<MigrationStep> first = StepsOf(objects);
  // The scheduler is stopped; somebody has started the operator again, with three replicas.
  objects.deployments[1].Find("spec")->Set("replicas", Json::Int(0));
  objects.deployments[2].Find("spec")->Set("replicas", Json::Int(3));
  const std::vector<MigrationStep> merged = MergeRecord(first, StepsOf(objects));
  ASSERT_EQ(merged.size(), first.size());
  EXPECT_EQ(merged[0].from.text(), "3");
  EXPECT_EQ(merged[2].from.text(), "2") << "and not 0, as it is now";
}

TEST(MigratePlanTest, AStepKnowsWhatItsFieldHas) {
  MigrationStep step;
  step.pointer = "/data/a~1b";
  step.from = Json::String("x");
  step.to = Json::String("y");
  const auto state = [&](const char* text) { return StateOf(step, *Json::Parse(text)); };
  EXPECT_EQ(state(R"({"data":{"a/b":"x"}})"), StepState::kDue);
  EXPECT_EQ(state(R"({"data":{"a/b":"y"}})"), StepState::kDone);
  EXPECT_EQ(state(R"({"data":{"a/b":"z"}})"), StepState::kChanged);
  EXPECT_EQ(state(R"({"data":{}})"), StepState::kChanged);
  EXPECT_EQ(state(R"({"data":7})"), StepState::kChanged);
  EXPECT_EQ(PatchOf(step).Compact(), R"([{"op":"test","path":"/data/a~1b","value":"x"},)"
                                     R"({"op":"replace","path":"/data/a~1b","value":"y"}])");
  step.pointer = "/list/1/a";
  EXPECT_EQ(state(R"({"list":[{},{"a":"x"}]})"), StepState::kDue);
  for (const char* text : {R"({"list":[{}]})", R"({"list":{}})", R"({"list":[{},7]})"}) {
    EXPECT_EQ(state(text), StepState::kChanged) << text;
  }
}

}  // namespace
}  // namespace fairlead::cmd
