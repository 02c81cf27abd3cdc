// What a plugin in another program says about nodes, by class of pods (EvaluateNodes of
// proto/fairlead/plugin/v1): the table that its filter and score read, and the questions that fill
// it. Internal to RemotePlugin.
//
// The program keeps a copy of the nodes. A question carries what has changed since the copy that
// the last answer confirmed, and the classes with waiting pods that some node was not judged for,
// or was judged for as it was before. One question is open at a time; what changes meanwhile is in
// the next one. A judgement ends when the node's object changes, when it is as old as the
// configuration allows, and when the next one comes. While the program fails none ends by its age.
//
//   no answer yet      no node is admitted, and the pods wait
//   answered           as answered; a node that is not judged yet is not admitted
//   it fails           the same as before, and asked again after a pause; every node is admitted,
//                      all alike, if the plugin is ignorable or does not serve the method
//
// Nodes that take no pods yet are admitted: they may be bought, and promised.
//
// Ownership: borrows the state. Thread-safety: the thread that owns the state. Complexity: filter
// and score O(1); an entry of the log O(1), of a node that goes O(classes); a question O(changed
// nodes + classes), an answer O(nodes) for each class in it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/write_attempts.h"
#include "scheduler/framework/calling_plugin.h"
#include "scheduler/framework/judging_plugin.h"
#include "scheduler/model/remote_plugin.h"

namespace fairlead::plugins {

class RemoteNodes final : public state::StateSubscriber {
 public:
  static constexpr Backoff kAskAgain{absl::Milliseconds(500), absl::Seconds(30)};
  // Between two questions that only what pods request has made.
  static constexpr absl::Duration kUsagePause = absl::Milliseconds(100);
  static constexpr absl::Duration kUnservedPause = absl::Seconds(30);
  // In one question, so that it stays below what gRPC servers read (4 MiB).
  static constexpr size_t kMaxNodes = 1000, kMaxClasses = 64;
  static constexpr size_t kMaxReasons = 64;  // of a class
  static constexpr size_t kMaxReasonBytes = 256;

  explicit RemoteNodes(const model::RemotePluginConfig& config) : config_(config) {}

  void JudgeAt(bool filter, bool score) {
    filters_ = filter;
    scores_ = score;
  }
  [[nodiscard]] bool enabled() const { return filters_ || scores_; }
  void Follow(const state::ClusterState* state);
  void OnChange(const state::StateChange& change) override;
  [[nodiscard]] state::ChangeKinds Kinds() const override;
  // The first difference between the table of nodes and the state, or empty.
  [[nodiscard]] std::string CheckConsistency() const;

  // For classes that it is asked about.
  [[nodiscard]] std::string Awaits(const state::PodClass& pod_class) const;
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const;
  [[nodiscard]] int64_t Score(const framework::Context& context, const state::NodeInfo& node) const;

  void PodsWait(std::vector<state::PodClassId> classes);
  // The next question, if one is due; answered with Answered().
  std::shared_ptr<const model::NodeQuestion> TakeQuestion(absl::Time now);
  [[nodiscard]] absl::Time wake_at() const;
  [[nodiscard]] bool open() const { return open_.has_value(); }
  void Answered(const framework::CallingPlugin::Answer& answer, absl::Time now);
  std::vector<framework::JudgingPlugin::Changed> TakeChanged(absl::Time now);

 private:
  using Class = framework::JudgingPlugin::Changed;
  struct Slot {
    enum class Is : uint8_t { kUnknown, kAdmitted, kRefused };
    Is is = Is::kUnknown;
    uint8_t score = 0;
    uint16_t reason = 0;          // index in Row::reasons
    uint64_t object_version = 0;  // of the node that was judged
    friend bool operator==(const Slot&, const Slot&) = default;
  };
  // Of a class that it was asked about.
  struct Row {
    uint64_t serial = 0;     // of the class; 0: none
    uint64_t judged_at = 0;  // the copy for which all its nodes were judged; 0: none
    absl::Time expires = absl::InfiniteFuture();
    std::vector<Slot> by_node;
    std::vector<std::string> reasons;
  };
  // A node of the copy.
  struct Sent {
    std::string name;  // empty: the row is not in the copy
    uint64_t changed_at = 0;
    uint64_t object_version = 0;  // as it is in the copy
  };
  struct Question {
    uint64_t base_version = 0, version = 0;
    struct Asked {
      Class of;
      bool all_nodes;
    };
    std::vector<Asked> classes;
  };

  // Node.number of the protocol.
  static uint32_t NumberOf(state::NodeId id) { return id + 1; }
  [[nodiscard]] const state::PodClass* Find(const Class& of) const;
  [[nodiscard]] const Row* RowOf(state::PodClassId id, uint64_t serial) const;
  // When the class is to be asked about; infinite past: it waits for that.
  [[nodiscard]] absl::Time AskAt(const Class& of) const;
  // What is known of the node as it is.
  [[nodiscard]] Slot SlotOf(const framework::Context& context, const state::NodeInfo& node) const;
  // In the copy from now on: nodes that the API server shows.
  [[nodiscard]] bool BelongsToCopy(state::NodeId id) const;
  void MarkDirty(state::NodeId id, bool object);
  void DropNode(state::NodeId id);
  // As many as one question takes. True if the copy is complete with them.
  bool AddNodes(model::NodeQuestion& question);
  // The program has no copy, or an unknown one.
  void LoseCopy();
  [[nodiscard]] model::NodeQuestion::SnapshotNode Describe(const state::NodeInfo& node) const;
  [[nodiscard]] model::NodeQuestion::AskedClass Describe(const state::PodClass& pod_class) const;
  void Apply(const Question& question, const model::NodeJudgements& judgements, absl::Time now);
  // `said` may be null.
  void Judge(const Question& question, const Question::Asked& asked,
             const model::NodeJudgements::OfClass* said, Row& row);
  // The place of the reason in the row.
  uint16_t ReasonIn(Row& row, absl::string_view refusal) const;
  void Failed(const Question& question, const absl::Status& status, absl::Time now);
  void SetPasses(bool passes);

  const model::RemotePluginConfig& config_;
  bool filters_ = false, scores_ = false;
  const state::ClusterState* state_ = nullptr;
  std::vector<Sent> sent_;  // by NodeId
  absl::flat_hash_map<std::string, state::NodeId> ids_;
  // Nodes that are to be looked at for the next copy, each once; and whether one of them changed in
  // more than what pods request.
  std::vector<state::NodeId> dirty_;
  std::vector<bool> is_dirty_;
  bool object_dirty_ = false;
  std::vector<std::string> gone_;
  uint64_t version_ = 0;     // of the last copy
  uint64_t objects_at_ = 0;  // the last one in which the object of a node was another one
  uint64_t confirmed_ = 0;   // the copy that the program has; 0: unknown
  bool complete_ = false;    // that copy has had all nodes once
  std::vector<Row> rows_;    // by PodClassId
  std::vector<Class> waiting_;
  std::optional<Question> open_;
  int64_t failures_ = 0;  // in a row
  std::string failure_;
  bool passes_ = false;  // it is not to be had, and pods are placed without it
  absl::Time not_before_ = absl::InfinitePast(), usage_not_before_ = absl::InfinitePast();
  absl::Time next_expiry_ = absl::InfiniteFuture();  // of a row, or earlier
  std::vector<Class> changed_;
};

}  // namespace fairlead::plugins
