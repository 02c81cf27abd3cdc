// Random histories of a small cluster in which everything that pod affinity and topology spread
// read changes at any time: labels of pods and nodes, terms, default constraints, taints,
// readiness, promises, undo. For tests; the state's own invariants are checked elsewhere.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/state/transaction.h"

namespace fairlead::plugins::testing {

class DomainWorld {
 public:
  explicit DomainWorld(uint64_t seed) : random_(seed) {
    for (size_t i = 0; i < 5; ++i) state_.UpsertNode(Node(absl::StrCat("n", i)));
  }

  state::ClusterState& state() { return state_; }
  size_t Below(size_t bound) { return static_cast<size_t>(random_() % bound); }
  bool OneIn(size_t bound) { return Below(bound) == 0; }

  // Something happens outside of transactions.
  void Step() {
    const std::string node = absl::StrCat("n", Below(kNodes));
    switch (Below(16)) {
      case 0:
      case 1:
        state_.UpsertNode(Node(node));
        break;
      case 2:
        if (OneIn(2)) state_.RemoveNode(node, "");
        break;
      case 3:
        ChangeOrdered(absl::StrCat("o", Below(2)));
        break;
      case 4: {
        const state::NodeId id = state_.FindNode(node);
        if (id != state::kNoId && state_.node(id).exists) state_.SetNodeUsable(id, OneIn(2));
        break;
      }
      case 5:
        state_.RemovePod(Namespace(), absl::StrCat("p", Below(kPods)), "");
        break;
      case 6:
      case 7:
        ChangeVictim();
        break;
      case 15: {
        model::Namespace ns;
        ns.meta.name = Namespace();
        if (OneIn(2)) ns.meta.labels.Set("team", "x");
        if (OneIn(5)) {
          state_.SetNamespacesReadable(OneIn(3));
        } else if (OneIn(4)) {
          state_.RemoveNamespace(ns.meta.name);
        } else {
          state_.UpsertNamespace(ns);
        }
        break;
      }
      case 14:
        ChangeService();
        break;
      case 8:
        // What terminates does not end.
        if (OneIn(2)) state_.MarkStuck(absl::FromUnixSeconds(1'000'000'000'000));
        break;
      default:
        state_.UpsertPod(Pod(node));
    }
  }

  // One operation on pods, if it may be done; on any node, whether the pod fits there or not.
  void Try(state::Transaction& txn) {
    std::vector<state::PodId> pods;
    state_.ForEachPod([&](const state::PodRecord& pod) {
      if (pod.ours) pods.push_back(pod.id);
    });
    if (pods.empty()) return;
    const state::PodId pod = pods[Below(pods.size())];
    const state::PodStatus status = state_.pod(pod).status;
    const state::NodeId node = AnyNode();
    if (state::IsAllocated(status)) {
      txn.Evict(pod);
    } else if (node != state::kNoId && status == state::PodStatus::kPending) {
      if (OneIn(3)) {
        txn.Pipeline(pod, node);
      } else {
        txn.Allocate(pod, node);
      }
    }
  }

  // Ids of classes that have pods.
  std::vector<state::PodClassId> Classes() const {
    std::vector<state::PodClassId> classes;
    state_.ForEachPod([&](const state::PodRecord& pod) {
      if (std::find(classes.begin(), classes.end(), pod.pod_class) == classes.end()) {
        classes.push_back(pod.pod_class);
      }
    });
    return classes;
  }

 private:
  static constexpr size_t kNodes = 7;
  static constexpr size_t kPods = 16;

  std::string Namespace() { return OneIn(4) ? "other" : "ns"; }
  std::string TopologyKey() {
    static constexpr const char* kKeys[] = {"zone", "rack", "host", model::kHostnameLabel};
    return kKeys[Below(4)];
  }
  state::NodeId AnyNode() {
    const state::NodeId node = state_.FindNode(absl::StrCat("n", Below(kNodes)));
    return node != state::kNoId && state_.node(node).exists ? node : state::kNoId;
  }

  model::Node Node(const std::string& name) {
    model::Node node = model::testing::MakeNode(name, 0, static_cast<int64_t>(2 + Below(5)));
    if (!OneIn(6)) node.meta.labels.Set("zone", absl::StrCat("z", Below(3)));
    if (!OneIn(6)) node.meta.labels.Set("rack", absl::StrCat("r", Below(4)));
    if (!OneIn(6)) node.meta.labels.Set("host", OneIn(6) ? "shared" : name);
    if (OneIn(8)) node.meta.labels.Set(model::kHostnameLabel, "shared");
    if (OneIn(6)) node.taints.push_back({"hard", "", model::TaintEffect::kNoSchedule});
    if (OneIn(6)) node.taints.push_back({"soft", "", model::TaintEffect::kPreferNoSchedule});
    node.ready = !OneIn(10);
    if (OneIn(12)) node.meta.uid = absl::StrCat("again-", Below(3));
    return node;
  }

  void ChangeService() {
    model::Service service;
    service.meta.ns = Namespace();
    service.meta.name = absl::StrCat("s", Below(2));
    if (OneIn(3)) {
      state_.RemoveSpreadSource(model::Kind::kService, service.meta.ns, service.meta.name);
      return;
    }
    if (!OneIn(3)) service.selector.Set("app", App());
    if (OneIn(3)) service.selector.Set("tier", "front");
    state_.UpsertSpreadSource(service);
  }

  void ChangeOrdered(const std::string& name) {
    if (OneIn(3)) {
      state_.RemoveOrderedNode(name);
    } else if (OneIn(3)) {
      state_.UpsertNode(Node(name));
    } else {
      state_.UpsertOrderedNode(Node(name), "request");
    }
  }

  // A pod becomes a victim; a victim runs on, or is told to end.
  void ChangeVictim() {
    std::vector<state::PodId> running, victims;
    state_.ForEachPod([&](const state::PodRecord& pod) {
      if (!pod.ours || pod.terminating) return;
      if (pod.status == state::PodStatus::kReleasing) {
        victims.push_back(pod.id);
      } else if (pod.status == state::PodStatus::kRunning) {
        running.push_back(pod.id);
      }
    });
    if (victims.empty() || (!running.empty() && OneIn(2))) {
      if (!running.empty()) state_.AssumeEvicted(running[Below(running.size())]);
      return;
    }
    const state::PodId victim = victims[Below(victims.size())];
    if (OneIn(2)) {
      state_.ForgetEviction(victim);
      return;
    }
    const state::PodRecord& pod = state_.pod(victim);
    model::testing::PodBuilder builder(pod.ns, pod.name);
    model::Pod told = builder.On(state_.node(pod.node).name()).Deleting().Build();
    told.meta.labels = pod.labels;
    told.spec = *state_.pod_class(pod.pod_class).spec;
    if (told.spec.spread_origin != model::SpreadOrigin::kOwn) {
      // What the pod itself says.
      told.spec.topology_spread.clear();
      told.spec.spread_origin = model::SpreadOrigin::kOwn;
      if (!told.spec.HasAllLabels()) told.spec.labels_for_affinity = {};
    }
    state_.UpsertPod(told);
  }

  model::LabelSelector Selector() {
    using model::SelectorOperator;
    model::LabelSelector selector{false, {}};
    switch (Below(10)) {
      case 0:
        selector.requirements.push_back({"app", SelectorOperator::kExists, {}});
        break;
      case 1:
        selector.requirements.push_back({"app", SelectorOperator::kNotIn, {App()}});
        break;
      case 2:
        selector.requirements.push_back({"app", SelectorOperator::kIn, {App(), App()}});
        break;
      case 3:
        selector.requirements.push_back({"tier", SelectorOperator::kDoesNotExist, {}});
        selector.requirements.push_back({"app", SelectorOperator::kIn, {App()}});
        break;
      case 4:
        selector.none = OneIn(2);
        break;
      default:
        selector.requirements.push_back({"app", SelectorOperator::kIn, {App()}});
    }
    return selector;
  }
  std::string App() { return absl::StrCat("a", Below(3)); }

  model::PodAffinityTerm Term(bool preferred) {
    model::PodAffinityTerm term;
    term.selector = Selector();
    term.topology_key = TopologyKey();
    if (preferred) term.weight = static_cast<int32_t>(1 + Below(100));
    if (OneIn(4)) term.namespaces = {Namespace()};
    if (OneIn(5)) term.namespace_selector = model::LabelSelector{OneIn(3), {}};
    if (OneIn(8)) {
      const auto op =
          OneIn(2) ? model::SelectorOperator::kExists : model::SelectorOperator::kDoesNotExist;
      term.namespace_selector = model::LabelSelector{false, {{"team", op, {}}}};
    }
    return term;
  }

  model::Pod Pod(const std::string& node) {
    model::testing::PodBuilder builder(Namespace(), absl::StrCat("p", Below(kPods)));
    if (!OneIn(6)) builder.Label("app", App());
    if (OneIn(3)) builder.Label("tier", "front");
    if (OneIn(6)) builder.Scheduler("other");
    if (OneIn(2)) {
      builder.On(node, OneIn(3) ? model::PodPhase::kPending : model::PodPhase::kRunning);
      if (OneIn(6)) builder.Deleting();
    }
    model::Pod pod = builder.Build();
    // Few kinds, so that classes live and return.
    const size_t kind = Below(9);
    if (kind == 0) pod.spec.pod_affinity = {Term(false)};
    if (kind == 1) pod.spec.pod_affinity = {Term(false), Term(OneIn(2))};
    if (kind == 2) pod.spec.pod_anti_affinity = {Term(false)};
    if (kind == 3) pod.spec.pod_anti_affinity = {Term(false), Term(OneIn(2))};
    if (kind == 4) pod.spec.pod_affinity = {Term(true)};
    if (kind == 5 || kind == 6) {
      for (size_t i = 0; i <= Below(2); ++i) pod.spec.topology_spread.push_back(Spread());
    }
    if (kind == 6) (OneIn(2) ? pod.spec.pod_affinity : pod.spec.pod_anti_affinity) = {Term(false)};
    if (OneIn(5)) pod.spec.node_selector.Set("zone", absl::StrCat("z", Below(3)));
    if (OneIn(3)) pod.spec.tolerations = {{"hard", true, "", std::nullopt}};
    if (kind <= 6) pod.spec.labels_for_affinity = pod.meta.labels;
    return pod;
  }

  model::TopologySpreadConstraint Spread() {
    model::TopologySpreadConstraint constraint;
    constraint.topology_key = TopologyKey();
    constraint.max_skew = static_cast<int32_t>(1 + Below(2));
    constraint.do_not_schedule = !OneIn(3);
    constraint.selector = Selector();
    constraint.min_domains = OneIn(4) ? 3 : 1;
    constraint.honor_node_affinity = OneIn(2);
    constraint.honor_node_taints = OneIn(2);
    return constraint;
  }

  // As kube-scheduler's, over keys that nodes lack and share.
  static state::StateOptions Options() {
    state::StateOptions options;
    options.scheduler_names = {model::kDefaultSchedulerName};
    model::TopologySpreadConstraint constraint;
    constraint.do_not_schedule = false;
    for (const char* key : {model::kHostnameLabel, "zone", "host"}) {
      constraint.topology_key = key;
      constraint.max_skew += 2;
      auto& defaults = options.spread_defaults;
      if (defaults.empty()) defaults.push_back({{}, model::SpreadOrigin::kSystem});
      defaults[0].constraints.push_back(constraint);
    }
    return options;
  }

  std::mt19937_64 random_;
  state::ClusterState state_{Options()};
};

}  // namespace fairlead::plugins::testing
