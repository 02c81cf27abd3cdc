// PodTopologySpread (upstream: pkg/scheduler/framework/plugins/podtopologyspread). Constraints of
// the pod's class: its own, or the default ones of its profile, which the state gives it
// (scheduler/state/default_spread.cc). The args say which these are (spread_args.h).
//
// Filter, for each constraint DoNotSchedule:
//   matching pods in the node's domain + (1 if the pod matches itself) - least of all domains <=
//   maxSkew where the least is 0 with fewer domains than minDomains. Domains are those of the nodes
//   that have the keys of all such constraints and that the pod's node affinity and (if
//   nodeTaintsPolicy is Honor) tolerations allow. Pods of the same namespace count, promised ones
//   too, terminating ones do not. For Capacity::kNow a victim counts until it terminates, and
//   the condition has to hold without the promised pods, too (spread_tally.h).
// Score: by the constraints ScheduleAnyway, each
//   matching pods in the node's domain * ln(domains that the nodes to choose from are in + 2)
//   + maxSkew - 1
// rounded, and turned round: 100 (most + least - sum) / most of the nodes to choose from. 0 on
// nodes that lack a key of these; they do not count otherwise. For kubernetes.io/hostname each node
// is a domain, whatever its label says, as upstream has it. The system's default constraints
// (SpreadOrigin::kSystem) count each for itself: a node that lacks the key of one has the sum of
// the others, and all nodes without a key are one domain more.
//
// Nodes that are ordered or not usable yet are domains for Capacity::kFuture only: an empty zone to
// come must not hold pods back now. Capacity::kEmpty asks for the keys alone.
//
// Thread-safety: the state's. Complexity: O(constraints) a node, by counters (spread_tally.h);
// O((nodes + pods) * constraints) for a class that is asked about for the first time.
#pragma once

#include "scheduler/framework/framework.h"
#include "scheduler/plugins/class_records.h"
#include "scheduler/plugins/spread_tally.h"

namespace fairlead::plugins {

class PodTopologySpread final : public framework::FilterPlugin,
                                public framework::NormalizedScorePlugin,
                                public framework::DomainPlugin {
 public:
  static constexpr char kName[] = "PodTopologySpread";
  // Classes that are counted for: a few bytes a node each.
  static constexpr size_t kMaxRecords = 256;
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kCluster;
  }
  [[nodiscard]] bool FilterApplies(const state::PodClass& pod_class) const override {
    return HasConstraint(pod_class, /*hard=*/true);
  }
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;
  [[nodiscard]] bool ScoreApplies(const state::PodClass& pod_class) const override {
    return HasConstraint(pod_class, /*hard=*/false);
  }
  void AddMarks(const framework::Context& context, const state::NodeInfo& node,
                const framework::TopologyKeys& by_node, framework::Marks& marks) const override;
  [[nodiscard]] framework::Depends MarksDependOn() const override {
    return framework::Depends::kNodeUsage;
  }
  void ScoreKinds(const framework::Context& context, absl::Span<const framework::Kind> kinds,
                  absl::Span<int64_t> scores) const override;

  void Attach(framework::DomainCounters* counters) override { records_.Attach(counters); }
  void AddDependence(const framework::Context& context,
                     framework::DomainDependence& dependence) const override;
  [[nodiscard]] bool AdmitsDomains(const framework::Context& context, const state::NodeInfo& node,
                                   const framework::TopologyKeys& keys) const override;
  void AddThresholds(const framework::Context& context, const framework::TopologyKeys& keys,
                     std::vector<int64_t>& thresholds) const override;

 private:
  // As the constraints of the spec.
  using Record = std::vector<std::unique_ptr<SpreadTally>>;
  static bool HasConstraint(const state::PodClass& pod_class, bool hard);
  // Which rule refuses the node; `keys` null: all constraints count.
  enum class Refusal { kNone, kKey, kSkew };
  static Refusal Judge(const Record& record, const framework::Context& context,
                       const state::NodeInfo& node, const framework::TopologyKeys* keys);
  const Record& RecordOf(const framework::Context& context) const;

  mutable ClassRecords<Record> records_{kMaxRecords};
};

}  // namespace fairlead::plugins
