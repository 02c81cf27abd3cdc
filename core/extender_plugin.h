// The plugin for scheduler extenders in a binding. Upstream asks extenders after its own filters,
// and before it chooses a node. Here the choice comes first: the pod holds its place while they are
// asked about all nodes that would take it, so that neither their time nor their failure delays
// other pods, and what they are asked about stays true.
//
//   placed ──AskExtenders──▶ answered: its node is admitted, and no other one scores otherwise
//      ▲                        │                                          └──▶ goes on
//      │                        └─else: the answers become part of its class (plugins::Extender),
//      └────placed again, by them─┘  and its whole step is placed again
//
// Answers serve one placement. Those that admit a node are dropped after kFresh; those that admit
// none after a back-off, which grows from one to the next, and the extenders are asked anew
// (upstream: podInitialBackoffSeconds, podMaxBackoffSeconds).
//
// An extender that fails fails the binding of the pod, unless it is ignorable. While one is paused
// (core/extender_health.h), pods that need it fail at once, and those that do not are placed
// without it.
//
// Thread-safety: the owner's thread. Determinism: asks go out in the order of Reserve. Complexity:
// what the engine takes to find the nodes that fit, per ask.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/write_attempts.h"
#include "core/extender_health.h"
#include "core/reconcile/binding_plugin.h"
#include "core/reconcile/due_times.h"
#include "scheduler/model/cluster_event.h"
#include "scheduler/model/extender_config.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

class ExtenderPlugin final : public BindingPlugin {
 public:
  // Unanswered at once; further pods wait for their turn.
  static constexpr size_t kMaxAsks = 32;
  static constexpr absl::Duration kFresh = absl::Seconds(5);
  static constexpr Backoff kAskAgain{absl::Seconds(1), absl::Seconds(10)};

  // The nodes to which the pod could be bound, by name (engine::Engine::NodesThatFit).
  using NodesThatFit = std::function<std::vector<std::string>(state::PodId)>;

  ExtenderPlugin(const state::ClusterState& state, std::vector<model::ExtenderConfig> extenders,
                 NodesThatFit nodes_that_fit);

  [[nodiscard]] bool Needs(const state::PodRecord& pod) const override;
  absl::Status Reserve(const state::PodRecord& pod, model::BindPod bind) override;
  void Unreserve(const std::string& ns, const std::string& name) override;
  Progress Advance(absl::Time now) override;
  [[nodiscard]] bool HasWork(absl::Time now) const override;
  [[nodiscard]] absl::Time wake_at() const override;

  // The extender that makes the binding of the pod; -1: none.
  [[nodiscard]] int32_t BinderOf(const state::PodRecord& pod) const;
  // The answer to the ask of that number.
  void Answered(uint64_t number, const model::ActionResult& result, absl::Time now);
  // What is to be set (ClusterState::SetNodeAnswers) since the last call.
  struct Change {
    std::string ns, name, uid;
    model::NodeAnswers answers;
  };
  std::vector<Change> TakeChanges() { return std::exchange(changes_, {}); }
  // Pods that are known; each is forgotten some minutes after its last ask.
  [[nodiscard]] size_t known() const { return rows_.size(); }

 private:
  enum class Stage : uint8_t { kIdle, kQueued, kAsked, kAnswered };
  struct Row {
    std::string ns, name, uid;
    Stage stage = Stage::kIdle;
    uint64_t number = 0;                      // of the ask; kAsked
    std::optional<model::BindPod> bind;       // held; kQueued and kAsked
    int64_t refusals = 0;                     // in a row that admitted no node
    absl::Time due = absl::InfiniteFuture();  // kAnswered: dropped then; kIdle: forgotten then
  };

  // It filters or scores, and has an interest in the pod.
  [[nodiscard]] bool IsAskedAbout(const model::ExtenderConfig& extender,
                                  const state::PodClass& pod_class) const;
  [[nodiscard]] std::vector<int32_t> AskedAbout(const state::PodClass& pod_class) const;
  void RetireAt(absl::Time due, const std::string& key, Row& row);
  void Expire(absl::Time now);
  void SendNext(absl::Time now, std::vector<model::Action>& actions);
  void Fail(Row& row, const std::string& reason);
  void TakeAnswers(const std::string& key, Row& row, const model::NodeAnswers& answers,
                   absl::Time now);

  const state::ClusterState& state_;
  const std::vector<model::ExtenderConfig> extenders_;
  const NodesThatFit nodes_that_fit_;
  ExtenderHealth health_;
  std::map<std::string, Row> rows_;  // by key of the pod
  std::deque<std::string> queue_;    // keys; some are no longer kQueued
  struct Ask {
    std::string key;
    std::vector<int32_t> extenders;
  };
  std::map<uint64_t, Ask> asks_;  // unanswered, by number; the pods of some have gone
  uint64_t next_number_ = 1;
  absl::Time now_ = absl::InfinitePast();  // of the last Advance
  DueTimes<std::string> due_;
  std::vector<model::BindPod> ready_;
  std::vector<Failure> failed_;
  std::vector<Change> changes_;
};

}  // namespace fairlead::core
