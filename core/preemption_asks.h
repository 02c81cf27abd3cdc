// What scheduler extenders with a preemptVerb say about victims, before these are evicted. Upstream
// asks about all candidates before it chooses (Evaluator.callExtenders). Here the choice comes
// first: the set of victims is held (core/reconcile/evictions.h) until the extenders have answered,
// and a node that they refuse is refused for all pods of the preemptor's class for kRefusalLasts,
// so that the next cycle chooses others.
//
// One question for each class of pods that the set makes room for: all nodes on which such pods are
// to run, with the victims there. Victims on other nodes, which leave for a limit, are not asked
// about.
//
// An extender that fails, or is paused (core/extender_health.h), refuses all, unless it is
// ignorable.
//
// Thread-safety: the owner's thread. Determinism: questions go out in the order of Add.
// Complexity: O(1) per question and answer.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/extender_health.h"
#include "scheduler/model/action.h"
#include "scheduler/model/cluster_event.h"
#include "scheduler/model/extender_config.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

class PreemptionAsks {
 public:
  // Unanswered at once; further questions wait for their turn.
  static constexpr size_t kMaxAsks = 32;
  // Upstream tries such a pod again at the next event that may help, at most every 10 s.
  static constexpr absl::Duration kRefusalLasts = absl::Seconds(10);

  PreemptionAsks(const state::ClusterState& state, std::vector<model::ExtenderConfig> extenders);

  // False: no extender is ever asked.
  [[nodiscard]] bool AsksAny() const;
  // Whether an extender is to be asked before pods go for one of this class.
  [[nodiscard]] bool Concerns(state::PodClassId preemptor) const;
  struct Question {
    state::PodClassId preemptor = state::kNoId;
    std::string ns, name, uid;       // of a pod of that class
    std::vector<std::string> nodes;  // by name
    std::vector<model::AskExtenders::NodeVictims> victims;
  };
  // What is asked about a set of Evictions; at least one question, each of a class that is
  // concerned.
  void Add(uint64_t set, std::vector<Question> questions);

  struct Refusal {
    state::PodClassId preemptor = state::kNoId;
    std::vector<model::AskExtenders::Victim> victims;
  };
  struct Done {
    uint64_t set = 0;
    bool refused = false;  // a part of it
  };
  struct Progress {
    std::vector<model::Action> actions;
    std::vector<Done> done;
    std::vector<Refusal> refusals;  // stand for kRefusalLasts
  };
  Progress Advance(absl::Time now);
  // The answer to the question of that number.
  void Answered(uint64_t number, const model::ActionResult& result, absl::Time now);

 private:
  struct Open {
    uint64_t set = 0;
    Question question;
    std::vector<int32_t> extenders;  // that are asked
  };
  struct Set {
    size_t open = 0;  // questions
    bool refused = false;
  };

  [[nodiscard]] bool IsAsked(const model::ExtenderConfig& extender,
                             const state::PodClass& preemptor) const;
  void Send(Open open, absl::Time now, Progress& progress);
  // The question of the set is answered.
  void Close(uint64_t set, bool refused);
  // The nodes that the answers do not admit; null: all.
  void Refuse(const Question& question, const model::NodeAnswers* answers);

  const state::ClusterState& state_;
  const std::vector<model::ExtenderConfig> extenders_;
  ExtenderHealth health_;
  std::deque<Open> queue_;
  std::map<uint64_t, Open> asks_;  // unanswered, by number
  uint64_t next_number_ = 1;
  std::map<uint64_t, Set> sets_;
  std::vector<Done> done_;
  std::vector<Refusal> refusals_;
};

}  // namespace fairlead::core
