// RemotePlugin: which calls are made when, and what each answer means. The loop around it is
// core/framework_stage_test.cc's.
#include "scheduler/plugins/remote_plugin.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"

namespace fairlead::plugins {
namespace {

using framework::Progress;
using model::RemoteCall;
using model::RemotePoint;
using model::testing::At;
using model::testing::PodBuilder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kLicence[] = "example.com/licence";

class RemotePluginTest : public ::testing::Test {
 protected:
  RemotePluginTest() : state_(Options()) {
    state_.UpsertNode(model::testing::MakeNode("n", 0, 64, 64));
    config_.name = "Licences";
    Make();
  }
  static state::StateOptions Options() {
    state::StateOptions options;
    options.scheduler_names = {"fairlead"};
    options.plugin_labels = {kLicence};
    return options;
  }
  void Make() { plugin_ = std::make_unique<RemotePlugin>(config_); }
  // A question about a pod that was given the node.
  framework::Placement About(const std::string& name, int64_t at = 0) {
    const state::PodId id = Pod(name);
    return {state_, state_.pod(id), state_.node(state_.FindNode("n")), At(at), At(0)};
  }
  state::PodId Pod(const std::string& name) {
    if (state_.FindPod("ns", name) == state::kNoId) {
      state_.UpsertPod(PodBuilder("ns", name).Queue("q").Label(kLicence, "cad").Build());
    }
    return state_.FindPod("ns", name);
  }
  framework::PodOnNode OnNode(const std::string& name) {
    return {"ns", name, state_.pod(Pod(name)).uid, "n"};
  }
  // The calls that go out, as "point name".
  std::vector<std::string> Calls(int64_t at = 0) {
    std::vector<std::string> texts;
    static constexpr const char* kPoints[] = {"permit", "preBind", "postBind", "unreserve"};
    for (RemoteCall& call : plugin_->TakeCalls(At(at))) {
      texts.push_back(absl::StrCat(kPoints[static_cast<size_t>(call.point)], " ", call.name));
      calls_.push_back(std::move(call));
    }
    return texts;
  }
  void Answer(const absl::Status& status, const std::string& refusal = "", int64_t at = 0) {
    plugin_->Answered(calls_.back().number, {status, refusal}, At(at));
  }
  // Reserve and the first question: its call is out.
  void Begin(const std::string& name, int64_t at = 0) {
    EXPECT_TRUE(plugin_->Reserve(About(name, at)).ok());
    EXPECT_EQ(plugin_->Permit(About(name, at)).is, Progress::Is::kWaits);
    EXPECT_THAT(Calls(at), ElementsAre("permit " + name));
  }
  std::string Said(const Progress& progress) {
    if (progress.is == Progress::Is::kDone) return "passes";
    return progress.is == Progress::Is::kWaits ? "waits" : progress.reason;
  }

  state::ClusterState state_;
  model::RemotePluginConfig config_;
  std::unique_ptr<RemotePlugin> plugin_;
  std::vector<RemoteCall> calls_;
};

TEST_F(RemotePluginTest, APodWaitsForTheAnswer) {
  config_.pod_labels = {kLicence, "other"};
  Make();
  Begin("p");
  EXPECT_EQ(calls_[0].labels, (model::StringMap{{kLicence, "cad"}}));
  EXPECT_EQ(calls_[0].queue, "q");
  EXPECT_EQ(calls_[0].node, "n");
  EXPECT_EQ(Said(plugin_->Permit(About("p"))), "waits");
  EXPECT_THAT(Calls(), IsEmpty()) << "asked once";
  Answer(absl::OkStatus());
  EXPECT_EQ(Said(plugin_->Permit(About("p"))), "passes");
  EXPECT_EQ(Said(plugin_->PreBind(About("p"))), "waits");
  EXPECT_THAT(Calls(), ElementsAre("preBind p"));
  Answer(absl::OkStatus());
  EXPECT_EQ(Said(plugin_->PreBind(About("p"))), "passes");
  plugin_->PostBind(OnNode("p"));
  plugin_->Bound(OnNode("p"));
  EXPECT_THAT(Calls(), ElementsAre("postBind p"));
  EXPECT_EQ(calls_.back().queue, "q");
  Answer(absl::OkStatus());
  EXPECT_THAT(Calls(1000), IsEmpty());
}

TEST_F(RemotePluginTest, WhatEachAnswerMeans) {
  struct Case {
    absl::Status status;
    std::string refusal, firm, ignorable;
  };
  const std::vector<Case> cases = {
      {absl::OkStatus(), "", "passes", "passes"},
      {absl::OkStatus(), "no licence", "no licence", "no licence"},
      {absl::UnimplementedError("x"), "", "passes", "passes"},
      {absl::UnavailableError("no connection"), "", "no connection", "passes"},
      {absl::InternalError("the disk is full"), "", "the disk is full", "passes"},
      {absl::DeadlineExceededError("did not permit"), "", "did not permit", "did not permit"},
  };
  for (const bool ignorable : {false, true}) {
    for (const Case& c : cases) {
      SCOPED_TRACE(absl::StrCat(c.status.ToString(), " ", c.refusal, ignorable));
      config_.ignorable = ignorable;
      Make();
      Begin("p");
      Answer(c.status, c.refusal);
      EXPECT_EQ(Said(plugin_->Permit(About("p"))), ignorable ? c.ignorable : c.firm);
    }
  }
}

TEST_F(RemotePluginTest, UnreserveIsToldOfWhatWasAsked) {
  Begin("p");
  plugin_->Unreserve(OnNode("p"));
  EXPECT_THAT(Calls(), ElementsAre("unreserve p")) << "its question is open still";
  plugin_->Answered(calls_[0].number, {absl::OkStatus(), ""}, At(0));
  plugin_->Unreserve(OnNode("p"));
  EXPECT_THAT(Calls(), IsEmpty()) << "once";
  // A question that has not gone out is withdrawn.
  EXPECT_TRUE(plugin_->Reserve(About("q")).ok());
  EXPECT_EQ(Said(plugin_->Permit(About("q"))), "waits");
  plugin_->Unreserve(OnNode("q"));
  EXPECT_THAT(Calls(), IsEmpty());
  // The pod comes again, to be asked about anew.
  Begin("q");
}

TEST_F(RemotePluginTest, AnOldAnswerIsNoneToANewQuestion) {
  Begin("p");
  plugin_->Unreserve(OnNode("p"));
  EXPECT_THAT(Calls(), ElementsAre("unreserve p"));
  Begin("p");
  plugin_->Answered(calls_[0].number, {absl::OkStatus(), "no"}, At(0));
  EXPECT_EQ(Said(plugin_->Permit(About("p"))), "waits");
  plugin_->Answered(calls_[0].number, {absl::OkStatus(), ""}, At(0));
  plugin_->Answered(99, {absl::OkStatus(), ""}, At(0));
  EXPECT_EQ(Said(plugin_->Permit(About("p"))), "waits") << "an answer twice, and to nothing";
  Answer(absl::OkStatus());
  EXPECT_EQ(Said(plugin_->Permit(About("p"))), "passes");
}

TEST_F(RemotePluginTest, WhatIsToldIsRepeatedForSomeMinutes) {
  Begin("p");
  Answer(absl::OkStatus());
  plugin_->Unreserve(OnNode("p"));
  int64_t now = 0, told = 0;
  while (true) {
    const std::vector<std::string> calls = Calls(now);
    if (calls.empty()) break;
    ASSERT_THAT(calls, ElementsAre("unreserve p"));
    ++told;
    Answer(absl::UnavailableError("x"), "", now);
    if (plugin_->wake_at() == absl::InfiniteFuture()) break;
    EXPECT_GT(plugin_->wake_at(), At(now));
    now = absl::ToInt64Seconds(plugin_->wake_at() - At(0));
  }
  EXPECT_GT(told, 10);
  EXPECT_LE(now, 300);
  EXPECT_EQ(plugin_->waiting(), 0u);
}

TEST_F(RemotePluginTest, AProgramThatFailsIsLeftAloneForAWhile) {
  for (const bool ignorable : {false, true}) {
    SCOPED_TRACE(ignorable);
    config_.ignorable = ignorable;
    Make();
    for (const char* name : {"a", "b", "c"}) {
      Begin(name);
      Answer(absl::UnavailableError("no connection"));
    }
    EXPECT_TRUE(plugin_->Reserve(About("d")).ok());
    EXPECT_EQ(Said(plugin_->Permit(About("d"))), ignorable ? "passes" : "no connection");
    EXPECT_THAT(Calls(), IsEmpty());
    plugin_->Unreserve(OnNode("d"));
    EXPECT_THAT(Calls(), IsEmpty()) << "it was not asked";
    Begin("e", 2);
    Answer(absl::OkStatus(), "", 2);
    Begin("f", 2);
  }
}

TEST_F(RemotePluginTest, SlowPermitsDoNotHoldBackWhatIsTold) {
  for (size_t i = 0; i < RemotePlugin::kMaxOpen + 10; ++i) {
    const std::string name = absl::StrCat("p", i);
    EXPECT_TRUE(plugin_->Reserve(About(name)).ok());
    EXPECT_EQ(Said(plugin_->Permit(About(name))), "waits");
  }
  EXPECT_THAT(Calls(), SizeIs(RemotePlugin::kMaxOpen));
  EXPECT_THAT(Calls(), IsEmpty());
  plugin_->Unreserve(OnNode("p0"));
  EXPECT_THAT(Calls(), ElementsAre("unreserve p0"));
  plugin_->Answered(calls_[0].number, {absl::OkStatus(), ""}, At(0));
  EXPECT_EQ(plugin_->wake_at(), absl::InfinitePast());
  EXPECT_THAT(Calls(), ElementsAre(absl::StrCat("permit p", RemotePlugin::kMaxOpen)));
}

TEST_F(RemotePluginTest, AppliesToPodsWithOneOfItsLabels) {
  EXPECT_TRUE(plugin_->BindingApplies(state_.class_of(Pod("p"))));
  config_.pod_labels = {kLicence};
  Make();
  EXPECT_TRUE(plugin_->BindingApplies(state_.class_of(Pod("p"))));
  config_.pod_labels = {"other"};
  Make();
  EXPECT_FALSE(plugin_->BindingApplies(state_.class_of(Pod("p"))));
}

TEST_F(RemotePluginTest, HasNoArgs) {
  const framework::NamedPlugin named = RemotePlugin::For(config_);
  EXPECT_EQ(named.name, "Licences");
  EXPECT_TRUE(named.make("").ok());
  EXPECT_EQ(named.make(R"({"address":"h:1"})").status().message(),
            "args.address: is not an argument of Licences");
}

}  // namespace
}  // namespace fairlead::plugins
