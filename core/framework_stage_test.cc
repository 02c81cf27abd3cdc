// Plugins at Reserve, Permit, PreBind and PostBind: in which order they are asked, and what follows
// from each answer. The plugin here writes down what it was asked and answers as the test says.
#include "core/framework_stage.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/configuration.h"
#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"

namespace fairlead::core::testing {
namespace {

using framework::Placement;
using framework::PodOnNode;
using framework::Progress;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// What the plugins were asked, and what they answer.
struct Notebook {
  std::vector<std::string> asked;
  absl::Status reserve;
  std::map<std::string, Progress> permit, pre_bind;  // by pod; absent: kDone
  std::vector<absl::Time> since;                     // of questions about permits

  std::vector<std::string> Take() { return std::exchange(asked, {}); }
  static Progress Find(const std::map<std::string, Progress>& answers, const std::string& pod) {
    const auto found = answers.find(pod);
    return found == answers.end() ? Progress::Done() : found->second;
  }
};

class Clerk final : public framework::ReservePlugin,
                    public framework::PermitPlugin,
                    public framework::PreBindPlugin,
                    public framework::PostBindPlugin {
 public:
  Clerk(std::string name, Notebook* notebook) : name_(std::move(name)), notebook_(notebook) {}
  [[nodiscard]] absl::string_view Name() const override { return name_; }
  [[nodiscard]] std::vector<std::string> PodLabels() const override { return {"free"}; }
  [[nodiscard]] bool BindingApplies(const state::PodClass& pod_class) const override {
    return !pod_class.spec->labels_for_plugins.Has("free");
  }

  absl::Status Reserve(const Placement& placement) override {
    Write("reserve", placement.pod.name, placement.node.name());
    return name_ == "Second" ? notebook_->reserve : absl::OkStatus();
  }
  void Unreserve(const PodOnNode& pod) override { Write("unreserve", pod.name, pod.node); }
  Progress Permit(const Placement& placement) override {
    Write("permit", placement.pod.name, placement.node.name());
    notebook_->since.push_back(placement.since);
    return name_ == "First" ? Notebook::Find(notebook_->permit, placement.pod.name)
                            : Progress::Done();
  }
  Progress PreBind(const Placement& placement) override {
    Write("preBind", placement.pod.name, placement.node.name());
    return name_ == "First" ? Notebook::Find(notebook_->pre_bind, placement.pod.name)
                            : Progress::Done();
  }
  void PostBind(const PodOnNode& pod) override { Write("postBind", pod.name, pod.node); }

 private:
  void Write(absl::string_view what, const std::string& pod, const std::string& node) {
    notebook_->asked.push_back(absl::StrCat(name_, " ", what, " ", pod, " ", node));
  }
  const std::string name_;
  Notebook* const notebook_;
};

class FrameworkStageTest : public DecisionLoopTest {
 protected:
  FrameworkStageTest() {
    std::vector<framework::NamedPlugin> own;
    for (const char* name : {"First", "Second"}) {
      own.push_back({name, [this, name](absl::string_view) {
                       return std::make_unique<Clerk>(name, &notebook_);
                     }});
      options_.profiles[0].plugins.push_back({name});
    }
    options_.plugins = *plugins::WithBuiltIn(own);
    options_.hook.enabled = false;
    options_.emit_events = true;
  }
  void Begin() {
    Restart();
    SyncAll();
    Put(MakeQueue("q", "", kUnlimited, kUnlimited));
    Put(MakeNode("n", 0, 8, 64));
  }
  static PodBuilder Builder(const std::string& name) {
    return PodBuilder("ns", name).Queue("q").Cpu(1000);
  }
  void Delete(const std::string& name) {
    loop_->Apply(model::Delete{model::Kind::kPod, "ns", name, ""});
  }
  static std::string FailureIn(const StepResult& step) {
    for (const auto& event : Of<model::EmitEvent>(step)) {
      if (event.reason == "FailedBinding") return event.note;
    }
    return "";
  }

  Notebook notebook_;
};

TEST_F(FrameworkStageTest, EachPointInItsTurn) {
  Begin();
  Put(Builder("p").Build());
  const StepResult step = Step(1);
  EXPECT_THAT(BoundIn(step), ElementsAre("p"));
  EXPECT_THAT(notebook_.Take(),
              ElementsAre("First reserve p n", "Second reserve p n", "First permit p n",
                          "Second permit p n", "First preBind p n", "Second preBind p n"));
  AnswerAll(step);
  AnswerAll(Step(2));
  EXPECT_THAT(notebook_.Take(), ElementsAre("First postBind p n", "Second postBind p n"));
  Put(Builder("p").On("n").Build());
  Step(3);
  Delete("p");
  Step(4);
  EXPECT_THAT(notebook_.Take(), IsEmpty()) << "a pod that was bound is not unreserved";
}

TEST_F(FrameworkStageTest, WhatItDoesNotApplyToSkipsIt) {
  Begin();
  Put(Builder("p").Label("free", "yes").Build());
  const StepResult step = Step(1);
  EXPECT_THAT(BoundIn(step), ElementsAre("p"));
  AnswerAll(step);
  AnswerAll(Step(2));
  EXPECT_THAT(notebook_.Take(), IsEmpty());
}

TEST_F(FrameworkStageTest, APodWaitsForItsPermitAndOthersGoOn) {
  Begin();
  notebook_.permit["slow"] = Progress::WaitUntil(At(60));
  Put(Builder("slow").Build());
  StepResult step = Step(1);
  EXPECT_THAT(BoundIn(step), IsEmpty());
  EXPECT_LE(step.wake_at, At(60));
  Put(Builder("fast").Build());
  EXPECT_THAT(BoundIn(Step(2)), ElementsAre("fast"));
  notebook_.permit.clear();
  step = Step(60);
  EXPECT_THAT(BoundIn(step), ElementsAre("slow"));
  EXPECT_EQ(notebook_.since.front(), At(1));
  // One that waited, and then asked the second plugin, began to wait there anew.
  EXPECT_EQ(notebook_.since.back(), At(60));
}

TEST_F(FrameworkStageTest, AFailureIsTakenBackInReverseAndToldAsItsReason) {
  struct Case {
    const char* at;
    std::vector<std::string> asked;
  };
  const std::vector<Case> cases = {
      {"reserve",
       {"First reserve p n", "Second reserve p n", "Second unreserve p n", "First unreserve p n"}},
      {"permit",
       {"First reserve p n", "Second reserve p n", "First permit p n", "Second unreserve p n",
        "First unreserve p n"}},
      {"preBind",
       {"First reserve p n", "Second reserve p n", "First permit p n", "Second permit p n",
        "First preBind p n", "Second unreserve p n", "First unreserve p n"}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.at);
    notebook_ = {};
    Begin();
    const std::string at = c.at;
    if (at == "reserve") notebook_.reserve = absl::ResourceExhaustedError("no licence is left");
    if (at == "permit") notebook_.permit["p"] = Progress::Failed("no licence is left");
    if (at == "preBind") notebook_.pre_bind["p"] = Progress::Failed("no licence is left");
    Put(Builder("p").Build());
    const StepResult step = Step(1);
    EXPECT_THAT(BoundIn(step), IsEmpty());
    EXPECT_EQ(notebook_.Take(), c.asked);
    EXPECT_EQ(FailureIn(step),
              absl::StrCat(at == "reserve" ? "Second" : "First", ": no licence is left"));
    // It is tried again.
    notebook_.reserve = absl::OkStatus();
    notebook_.permit.clear();
    notebook_.pre_bind.clear();
    EXPECT_THAT(BoundIn(Step(60)), ElementsAre("p"));
  }
}

TEST_F(FrameworkStageTest, OfAGangAllAreBoundOrNone) {
  Begin();
  Put(MakeGroup("ns", "g", "q", 2));
  notebook_.permit["b"] = Progress::WaitUntil(At(100));
  for (const char* name : {"a", "b"}) Put(Builder(name).Group("g").Build());
  EXPECT_THAT(BoundIn(Step(1)), IsEmpty());
  notebook_.Take();
  notebook_.permit["b"] = Progress::Failed("refused");
  EXPECT_THAT(BoundIn(Step(2)), IsEmpty());
  std::vector<std::string> unreserved;
  for (const std::string& line : notebook_.Take()) {
    if (line.find("unreserve") != std::string::npos) unreserved.push_back(line);
  }
  EXPECT_THAT(unreserved, ElementsAre("Second unreserve a n", "First unreserve a n",
                                      "Second unreserve b n", "First unreserve b n"));
  notebook_.permit.clear();
  StepResult step = Step(60);
  EXPECT_THAT(BoundIn(step), ElementsAre("b")) << "what was refused goes first";
  AnswerAll(step);
  EXPECT_THAT(BoundIn(Step(61)), ElementsAre("a"));
}

TEST_F(FrameworkStageTest, WhateverEndsAReservationIsTold) {
  const auto unreserved = [this] {
    const std::vector<std::string> asked = notebook_.Take();
    return std::count_if(asked.begin(), asked.end(), [](const std::string& line) {
      return line.find("unreserve") != std::string::npos;
    });
  };
  for (const char* end : {"deleted while it waits", "deleted after it was sent", "bound elsewhere",
                          "refused", "another pod of its name", "the node is gone"}) {
    SCOPED_TRACE(end);
    notebook_ = {};
    Begin();
    Put(MakeNode("other", 0, 8, 64));
    const std::string what = end;
    const bool waits = what == "deleted while it waits" || what == "the node is gone";
    if (waits) notebook_.permit["p"] = Progress::WaitUntil(At(1000));
    Put(Builder("p").Build());
    const StepResult step = Step(1);
    EXPECT_THAT(BoundIn(step), SizeIs(waits ? 0 : 1));
    EXPECT_EQ(unreserved(), 0);
    if (what == "refused") AnswerThe<model::BindPod>(step, absl::PermissionDeniedError("403"));
    if (what == "bound elsewhere") {
      const std::string there = Of<model::BindPod>(step)[0].node;
      Put(Builder("p").On(there == "n" ? "other" : "n").Build());
    }
    if (what.starts_with("deleted")) Delete("p");
    if (what == "another pod of its name") {
      model::Pod another = Builder("p").Build();
      another.meta.uid = "another";
      notebook_.permit["p"] = Progress::WaitUntil(At(1000));
      Put(another);
    }
    if (what == "the node is gone") {
      for (const char* node : {"n", "other"}) {
        loop_->Apply(model::Delete{model::Kind::kNode, "", node, ""});
      }
      notebook_.permit.clear();
    }
    Step(2);
    EXPECT_EQ(unreserved(), 2) << "each of both plugins, once";
    Step(3);
  }
}

// A configuration names them at their points; one that is not theirs is refused.
TEST(BindingPointsConfigurationTest, PointsRunWhatIsEnabledThere) {
  Notebook notebook;
  const auto registry = *plugins::WithBuiltIn(
      {{"First", [&](absl::string_view) { return std::make_unique<Clerk>("First", &notebook); }}});
  const auto read = [&](absl::string_view lists) {
    return ReadConfiguration(
        {absl::StrCat(R"({"apiVersion":"kubescheduler.config.k8s.io/v1",)",
                      R"("kind":"KubeSchedulerConfiguration","profiles":[{)",
                      R"("schedulerName":"fairlead","plugins":{)", lists, "}}]}")},
        registry);
  };
  constexpr char kEnabled[] = R"({"enabled":[{"name":"First"}]})";
  const auto points = [&](absl::string_view lists) {
    const auto configuration = read(lists);
    EXPECT_TRUE(configuration.ok()) << configuration.status();
    const auto made = framework::Framework::MakeAll(configuration->options.profiles,
                                                    *configuration->options.plugins);
    EXPECT_TRUE(made.ok()) << made.status();
    state::PodClass pod_class;
    pod_class.spec = std::make_shared<const model::PodSpec>();
    const framework::BindingPoints& runs = (*made)->PointsOf(pod_class);
    return absl::StrCat(runs.reserve.size(), runs.permit.size(), runs.pre_bind.size(),
                        runs.post_bind.size());
  };
  EXPECT_EQ(points(absl::StrCat(R"("multiPoint":)", kEnabled)), "1111");
  EXPECT_EQ(points(absl::StrCat(R"("permit":)", kEnabled)), "0100");
  EXPECT_EQ(points(absl::StrCat(R"("reserve":)", kEnabled, R"(,"postBind":)", kEnabled)), "1001");
  EXPECT_EQ(points(absl::StrCat(R"("multiPoint":)", kEnabled,
                                R"(,"preBind":{"disabled":[{"name":"First"}]})")),
            "1101");
  for (const char* point : {"filter", "preScore", "bind", "queueSort", "postFilter"}) {
    EXPECT_THAT(std::string(read(absl::StrCat("\"", point, "\":", kEnabled)).status().message()),
                HasSubstr(absl::StrCat("plugins.", point,
                                       ".enabled: plugin \"First\" does not extend ", point)));
  }
}

}  // namespace
}  // namespace fairlead::core::testing
