// A RemoteNodes behind its plugin, with a state of its own: what it is asked for comes as text.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/plugins/remote_plugin.h"

namespace fairlead::plugins {

class RemoteNodesTest : public ::testing::Test {
 protected:
  static constexpr char kCentre[] = "example.com/cost-centre";
  static constexpr char kNotYet[] = "node(s) that plugin Centres has not judged yet";

  RemoteNodesTest() : state_(Options()) {
    config_.name = "Centres";
    config_.pod_labels = {kCentre};
  }
  static state::StateOptions Options() {
    state::StateOptions options;
    options.scheduler_names = {"fairlead"};
    options.plugin_labels = {kCentre};
    return options;
  }
  ~RemoteNodesTest() override { Detach(); }

  void Start(bool filter = true, bool score = true) {
    plugin_ = std::make_unique<RemotePlugin>(config_);
    plugin_->JudgeAt(filter, score);
    subscriber_ = plugin_->Follow(&state_);
    ASSERT_NE(subscriber_, nullptr);
    state_.Subscribe(subscriber_);
  }
  void Detach() {
    if (subscriber_ != nullptr) state_.Unsubscribe(subscriber_);
    subscriber_ = nullptr;
  }
  void AddNode(const std::string& name) {
    state_.UpsertNode(model::testing::MakeNode(name, 8, 64, 64));
  }
  // A pod of the cost centre waits; pods of one centre are one class.
  state::PodClassId Waits(const std::string& centre) {
    const std::string name = "pod-" + centre;
    if (state_.FindPod("ns", name) == state::kNoId) {
      state_.UpsertPod(
          model::testing::PodBuilder("ns", name).Queue("q").Label(kCentre, centre).Build());
    }
    return state_.pod(state_.FindPod("ns", name)).pod_class;
  }
  // The pods wait, and the plugin is asked for its calls: the question as text, "" if none.
  std::string Question(int64_t at_ms = 0) {
    std::vector<state::PodClassId> classes;
    for (const std::string& centre : waiting_) classes.push_back(Waits(centre));
    plugin_->PodsWait(classes);
    const std::vector<model::RemoteCall> calls = plugin_->TakeCalls(Time(at_ms));
    if (calls.empty()) return "";
    EXPECT_EQ(calls.size(), 1u) << "one at a time";
    EXPECT_EQ(calls[0].point, model::RemotePoint::kEvaluateNodes);
    question_ = calls[0].question;
    number_ = calls[0].number;
    std::vector<std::string> nodes, classes_asked;
    for (const auto& node : question_->nodes) nodes.push_back(node.node.meta.name);
    for (const auto& asked : question_->classes) {
      classes_asked.push_back(
          absl::StrCat(asked.labels.Get(kCentre), asked.all_nodes ? " all" : " these"));
    }
    return absl::StrCat(question_->base_version == 0 ? "copy" : "change", " [",
                        absl::StrJoin(nodes, " "), "] gone [", absl::StrJoin(question_->gone, " "),
                        "] ", absl::StrJoin(classes_asked, ", "));
  }
  static absl::Time Time(int64_t at_ms) {
    return model::testing::At(0) + absl::Milliseconds(at_ms);
  }
  // The same for all classes of the question.
  void Answer(std::vector<model::NodeJudgement> nodes, int64_t at_ms = 0) {
    auto said = std::make_shared<model::NodeJudgements>();
    for (const auto& asked : question_->classes) said->classes.push_back({asked.number, nodes});
    plugin_->Answered(number_, {absl::OkStatus(), "", said}, Time(at_ms));
  }
  // By numbers, about the first class of the question.
  void AnswerByNumber(model::NodeJudgements::OfClass of_class) {
    of_class.number = question_->classes[0].number;
    auto said = std::make_shared<model::NodeJudgements>();
    said->classes.push_back(std::move(of_class));
    plugin_->Answered(number_, {absl::OkStatus(), "", said}, Time(0));
  }
  // In the question.
  uint32_t NumberOf(const std::string& node) {
    for (const auto& asked : question_->nodes) {
      if (asked.node.meta.name == node) return asked.number;
    }
    ADD_FAILURE() << "no node " << node;
    return 0;
  }
  void Fail(absl::Status status, int64_t at_ms = 0) {
    plugin_->Answered(number_, {std::move(status)}, Time(at_ms));
  }
  // "yes 7", or the reason.
  std::string Says(const std::string& centre, const std::string& node) {
    const state::PodClassId id = Waits(centre);
    const framework::Context context{state_, state_.pod_class(id), id};
    const state::NodeInfo& info = state_.node(state_.FindNode(node));
    framework::Status why;
    if (!plugin_->Filter(context, info, &why)) {
      EXPECT_EQ(why.code, framework::Code::kUnschedulableAndUnresolvable);
      return why.reason;
    }
    return absl::StrCat("yes ", plugin_->Score(context, info));
  }
  std::string Awaits(const std::string& centre) {
    return plugin_->Awaits(state_.pod_class(Waits(centre)));
  }
  size_t Changed(int64_t at_ms = 0) { return plugin_->TakeChanged(Time(at_ms)).size(); }

  state::ClusterState state_;
  model::RemotePluginConfig config_;
  std::unique_ptr<RemotePlugin> plugin_;
  state::StateSubscriber* subscriber_ = nullptr;
  std::vector<std::string> waiting_ = {"cad"};
  std::shared_ptr<const model::NodeQuestion> question_;
  uint64_t number_ = 0;
};

}  // namespace fairlead::plugins
