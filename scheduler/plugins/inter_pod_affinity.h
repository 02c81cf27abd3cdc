// InterPodAffinity: required and preferred affinity and anti-affinity between pods, in both
// directions, as upstream (pkg/scheduler/framework/plugins/interpodaffinity).
//
// Filter:
//  - required affinity: for every term the node has the topology key, and its domain holds a pod
//    that matches all terms. The first pod of a series may start if nothing matches anywhere and
//    it matches its own terms.
//  - required anti-affinity of the pod, and that of pods that are there already: no match in the
//  domain.
// Score: the weights of all preferred terms that a node's domains meet, of the pod and of the pods
// there, plus hardPodAffinityWeight for each required affinity of theirs; the least and the most
// become 0 and 100. With ignorePreferredTermsOfExistingPods a pod without preferred terms of its
// own is not scored at all, as upstream.
//
// Which pods count: Capacity::kNow all that are on nodes; promised ones (kPipelined) keep others
// away but attract none yet. Capacity::kFuture: promised ones too, terminating ones no more.
// Capacity::kEmpty: none; only the topology keys of the own terms are asked for.
//
// Where labels of namespaces cannot be read, a namespaceSelector that is not empty cannot be
// evaluated. A pod with one in a required term is then refused with a reason that says so; one in
// an existing pod's anti-affinity counts as matching; one in a preference is passed over.
//
// Args: {"hardPodAffinityWeight": 0..100 (1), "ignorePreferredTermsOfExistingPods": false}.
// Thread-safety: the state's. Complexity: O(terms) a node, by counters (framework/
// domain_counters.h).
#pragma once

#include "scheduler/framework/framework.h"
#include "scheduler/plugins/class_records.h"

namespace fairlead::plugins {

class InterPodAffinity final : public framework::FilterPlugin,
                               public framework::NormalizedScorePlugin,
                               public framework::DomainPlugin {
 public:
  static constexpr char kName[] = "InterPodAffinity";
  // Classes whose terms are kept; the counters of the terms are shared.
  static constexpr size_t kMaxRecords = 1024;
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);
  InterPodAffinity(int64_t hard_weight, bool ignore_existing_preferences)
      : hard_weight_(hard_weight), ignore_existing_preferences_(ignore_existing_preferences) {}

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kCluster;
  }
  // Pods without terms of their own are subject to the terms of others; the state marks those that
  // some pod selects.
  [[nodiscard]] bool FilterApplies(const state::PodClass& pod_class) const override {
    const model::PodSpec& spec = *pod_class.spec;
    return !spec.pod_affinity.empty() || !spec.pod_anti_affinity.empty() ||
           !spec.labels_for_affinity.empty() || spec.selected_by_others;
  }
  [[nodiscard]] std::string RefusesEverywhere(const state::PodClass& pod_class) const override;
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;
  [[nodiscard]] bool ScoreApplies(const state::PodClass& pod_class) const override {
    return FilterApplies(pod_class);
  }
  [[nodiscard]] bool ScoresVary(const framework::Context& context) const override;
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
  struct Preference {
    const framework::DomainCounter* counter;
    int64_t weight;  // negative: keep away
  };
  // The terms that concern a class, as counters.
  struct Record {
    bool refused = false;                                  // on every node: RefusesEverywhere()
    bool matches_itself = false;                           // all its required affinity terms
    std::vector<std::shared_ptr<framework::PodSet>> sets;  // held by those of its own terms
    std::vector<const framework::DomainCounter*> affinity, anti_affinity;
    std::vector<Preference> own_preferences;
    // By the terms of pods that are there; found again when owners_version has changed.
    uint64_t owners_version = 0;
    std::vector<const framework::DomainCounter*> refusing;
    int64_t refusing_version = 0;         // grows when `refusing` becomes another one
    std::vector<Preference> preferences;  // these and its own

    // The required affinity asks for nothing: no pod matches it anywhere, and this one does.
    [[nodiscard]] bool IsFirst(framework::Capacity capacity) const;
  };
  // Which rule refuses the node; `keys` null: all of them count.
  enum class Refusal { kNone, kEverywhere, kAffinity, kAntiAffinity, kExisting };
  static bool HasAffinityKeys(const model::PodSpec& spec, const state::NodeInfo& node);
  static Refusal Judge(const Record& record, framework::Capacity capacity,
                       const state::NodeInfo& node, const framework::TopologyKeys* keys);
  Record& RecordOf(const framework::Context& context) const;
  [[nodiscard]] std::unique_ptr<Record> MakeRecord(framework::DomainCounters& counters,
                                                   const state::PodClass& pod_class) const;
  void ReadOwners(framework::DomainCounters& counters, const model::PodSpec& spec,
                  Record& record) const;
  // `keys` null: the preferences of all keys count.
  static int64_t SumOf(const Record& record, framework::Capacity capacity,
                       const state::NodeInfo& node, const framework::TopologyKeys* keys);

  int64_t hard_weight_;
  bool ignore_existing_preferences_;
  mutable ClassRecords<Record> records_{kMaxRecords};
};

}  // namespace fairlead::plugins
