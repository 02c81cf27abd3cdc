// A plugin in another program (proto/fairlead/plugin/v1), as the framework sees it: at Permit and
// PreBind the pod waits for its answer, PostBind and Unreserve tell it what became of the pod. Its
// filter and its score are remote_nodes.h's.
//
//   Permit ─call─▶ open ─OK──────▶ passes
//                    ├─refusal──▶ the pod waits again, with the program's words
//                    └─failure──▶ the same with the failure; passes if the plugin is ignorable
//
// PostBind and Unreserve are repeated until they are answered, kTellFor at most. Unreserve is told
// of pods for which a call was sent. A program that fails is paused (base/call_health.h): what
// needs it fails at once meanwhile, or passes. UNIMPLEMENTED is an answer: the program has no such
// point. At most kMaxOpen permits are open, and as many other calls; further ones wait for their
// turn.
//
// Thread-safety: the thread that owns the state. Determinism: calls go in the order in which they
// were wanted. Complexity: O(log) per call.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/call_health.h"
#include "base/write_attempts.h"
#include "scheduler/framework/binding_points.h"
#include "scheduler/framework/calling_plugin.h"
#include "scheduler/framework/judging_plugin.h"
#include "scheduler/model/remote_plugin.h"
#include "scheduler/plugins/remote_nodes.h"

namespace fairlead::plugins {

class RemotePlugin final : public framework::FilterPlugin,
                           public framework::ScorePlugin,
                           public framework::JudgingPlugin,
                           public framework::FollowingPlugin,
                           public framework::ReservePlugin,
                           public framework::PermitPlugin,
                           public framework::PreBindPlugin,
                           public framework::PostBindPlugin,
                           public framework::CallingPlugin {
 public:
  static constexpr size_t kMaxOpen = 256;
  static constexpr absl::Duration kTellFor = absl::Minutes(5);
  static constexpr Backoff kTellAgain{absl::Seconds(1), absl::Seconds(30)};

  explicit RemotePlugin(model::RemotePluginConfig config) : config_(std::move(config)) {}
  // Its args in a profile have to be absent: FairleadConfiguration has the settings.
  static framework::NamedPlugin For(const model::RemotePluginConfig& config);

  [[nodiscard]] absl::string_view Name() const override { return config_.name; }
  [[nodiscard]] std::vector<std::string> PodLabels() const override { return config_.pod_labels; }
  [[nodiscard]] bool BindingApplies(const state::PodClass& pod_class) const override {
    return Applies(pod_class);
  }

  // What is asked about the nodes brings its answers as changes of the class.
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeObject;
  }
  [[nodiscard]] bool FilterApplies(const state::PodClass& pod_class) const override {
    return Applies(pod_class);
  }
  [[nodiscard]] std::string Awaits(const state::PodClass& pod_class) const override {
    return nodes_.Awaits(pod_class);
  }
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override {
    return nodes_.Filter(context, node, why);
  }
  [[nodiscard]] bool ScoreApplies(const state::PodClass& pod_class) const override {
    return Applies(pod_class);
  }
  [[nodiscard]] int64_t Score(const framework::Context& context,
                              const state::NodeInfo& node) const override {
    return nodes_.Score(context, node);
  }
  void JudgeAt(bool filter, bool score) override { nodes_.JudgeAt(filter, score); }
  void PodsWait(absl::Span<const state::PodClassId> classes) override;
  std::vector<Changed> TakeChanged(absl::Time now) override { return nodes_.TakeChanged(now); }
  state::StateSubscriber* Follow(const state::ClusterState* state) override;
  std::string CheckConsistency() override { return nodes_.CheckConsistency(); }

  absl::Status Reserve(const framework::Placement& placement) override;
  void Unreserve(const framework::PodOnNode& pod) override;
  framework::Progress Permit(const framework::Placement& placement) override;
  framework::Progress PreBind(const framework::Placement& placement) override;
  void PostBind(const framework::PodOnNode& pod) override;
  void Bound(const framework::PodOnNode& pod) override { Forget(pod.uid); }

  std::vector<model::RemoteCall> TakeCalls(absl::Time now) override;
  [[nodiscard]] absl::Time wake_at() const override;
  void Answered(uint64_t number, const Answer& answer, absl::Time now) override;

  // Calls that wait for their turn or their repetition.
  [[nodiscard]] size_t waiting() const {
    return permits_.calls.size() + others_.calls.size() + repeats_.size();
  }

 private:
  using Said = std::optional<framework::Progress>;
  // Of a pod that is being bound.
  struct Row {
    model::RemoteCall pod;  // without point and number
    // Numbers of its questions; 0: not asked yet.
    uint64_t permit = 0, pre_bind = 0;
    Said permitted, pre_bound;
  };
  struct Call {
    model::RemoteCall call;
    absl::Time give_up = absl::InfiniteFuture();  // of what is told
    int64_t failures = 0;
  };

  struct Lane {
    std::deque<Call> calls;
    size_t open = 0;
    [[nodiscard]] bool MaySend() const { return !calls.empty() && open < kMaxOpen; }
  };

  [[nodiscard]] bool Applies(const state::PodClass& pod_class) const;
  framework::Progress Ask(const framework::Placement& placement, model::RemotePoint point);
  void Tell(model::RemoteCall call, model::RemotePoint point);
  void Enqueue(model::RemoteCall call);
  void Forget(const std::string& uid);
  void Send(Lane& lane, absl::Time now, std::vector<model::RemoteCall>& calls);
  Lane& LaneOf(model::RemotePoint point) {
    return point == model::RemotePoint::kPermit ? permits_ : others_;
  }
  // What a failed call means for the pod.
  [[nodiscard]] framework::Progress AfterFailure(const std::string& why) const;

  const model::RemotePluginConfig config_;
  RemoteNodes nodes_{config_};
  const state::ClusterState* state_ = nullptr;
  uint64_t about_nodes_ = 0;  // number of the open question about nodes
  CallHealth health_;
  uint64_t numbers_ = 0;
  std::map<std::string, Row> rows_;                // by uid
  absl::flat_hash_map<uint64_t, std::string> of_;  // questions, by number -> uid
  Lane permits_, others_;
  std::map<uint64_t, Call> open_;            // by number
  std::multimap<absl::Time, Call> repeats_;  // what is told, by when it is due
};

}  // namespace fairlead::plugins
