// What pod affinity and topology spread say by counters, against a look at all nodes and pods for
// each answer, after every step of random histories. The look is written from the definitions in
// the plugins' headers and knows nothing of counters.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scheduler/framework/domain_counters.h"
#include "scheduler/framework/framework.h"
#include "scheduler/plugins/domain_world_testing.h"
#include "scheduler/plugins/inter_pod_affinity.h"
#include "scheduler/plugins/node_affinity.h"
#include "scheduler/plugins/pod_topology_spread.h"
#include "scheduler/plugins/registry.h"
#include "scheduler/plugins/taint_toleration.h"

namespace fairlead::plugins {
namespace {

using framework::Capacity;
using model::PodAffinityTerm;
using model::Selection;
using state::NodeInfo;
using state::PodRecord;
using state::PodStatus;

// The answers by definition.
class Look {
 public:
  Look(const state::ClusterState& state, const state::PodClass& pod_class, Capacity capacity)
      : state_(state), spec_(*pod_class.spec), capacity_(capacity) {
    for (const auto& [name, id] : state_.nodes_by_name()) {
      if (state_.node(id).exists) nodes_.push_back(&state_.node(id));
    }
  }

  bool Affinity(const NodeInfo& node) const {
    const auto lacks_key = [&](const PodAffinityTerm& term) {
      return Required(term) && Value(node, term.topology_key) == nullptr;
    };
    if (std::any_of(spec_.pod_affinity.begin(), spec_.pod_affinity.end(), lacks_key)) return false;
    if (capacity_ == Capacity::kEmpty) return true;
    return AffinityMet(node) && !KeptAway(node);
  }

  // Of all nodes, in their order.
  std::vector<int64_t> AffinityScores(int64_t hard_weight) const {
    std::vector<int64_t> sums;
    for (const NodeInfo* node : nodes_) sums.push_back(Preference(*node, hard_weight));
    const auto [least, most] = std::minmax_element(sums.begin(), sums.end());
    std::vector<int64_t> scores;
    for (const int64_t sum : sums) {
      const double range = static_cast<double>(*most - *least);
      const double share = *most > *least ? static_cast<double>(sum - *least) / range : 0.0;
      scores.push_back(static_cast<int64_t>(100.0 * share) * framework::kPreferenceStep);
    }
    return scores;
  }

  bool Spread(const NodeInfo& node) const {
    for (const auto& c : spec_.topology_spread) {
      if (c.do_not_schedule && Value(node, c.topology_key) == nullptr) return false;
    }
    if (capacity_ == Capacity::kEmpty) return true;
    if (capacity_ == Capacity::kNow && !SkewKept(node, /*promised=*/false)) return false;
    return SkewKept(node, /*promised=*/true);
  }

  bool SkewKept(const NodeInfo& node, bool promised) const {
    return std::all_of(
        spec_.topology_spread.begin(), spec_.topology_spread.end(), [&](const auto& c) {
          if (!c.do_not_schedule) return true;
          const std::map<std::string, int64_t> domains = Domains(c, promised);
          const auto here = domains.find(*Value(node, c.topology_key));
          int64_t least = 0;
          if (here != domains.end() && static_cast<int64_t>(domains.size()) >= c.min_domains) {
            least = Extremes(domains).first;
          }
          const int64_t pods = here == domains.end() ? 0 : here->second;
          const int64_t self = c.selector.Matches(spec_.labels_for_affinity) ? 1 : 0;
          return pods + self - least <= c.max_skew;
        });
  }

  std::vector<int64_t> SpreadScores() const {
    std::vector<std::optional<int64_t>> sums;
    for (const NodeInfo* node : nodes_) sums.push_back(SpreadSum(*node));
    std::optional<int64_t> least;
    int64_t most = 0;
    for (const std::optional<int64_t>& sum : sums) {
      if (!sum.has_value()) continue;
      least = std::min(least.value_or(*sum), *sum);
      most = std::max(most, *sum);
    }
    std::vector<int64_t> scores;
    for (const std::optional<int64_t>& sum : sums) {
      const int64_t score = !sum.has_value() ? 0
                            : most == 0      ? 100
                                             : 100 * (most + *least - *sum) / most;
      scores.push_back(score * framework::kPreferenceStep);
    }
    return scores;
  }

 private:
  // The system's constraints count each for itself, and nodes without its key are a domain more.
  bool OfTheSystem() const { return spec_.spread_origin == model::SpreadOrigin::kSystem; }
  bool HasSoftKeys(const NodeInfo& node) const {
    if (OfTheSystem()) return true;
    return std::all_of(
        spec_.topology_spread.begin(), spec_.topology_spread.end(),
        [&](const auto& c) { return c.do_not_schedule || Value(node, c.topology_key) != nullptr; });
  }
  // None if the node lacks a key.
  std::optional<int64_t> SpreadSum(const NodeInfo& node) const {
    if (!HasSoftKeys(node)) return std::nullopt;
    double sum = 0;
    for (const auto& c : spec_.topology_spread) {
      if (c.do_not_schedule) continue;
      const bool by_host = c.topology_key == model::kHostnameLabel;
      std::set<std::string> values;
      for (const NodeInfo* other : nodes_) {
        if (!HasSoftKeys(*other)) continue;
        const std::string* const value = Value(*other, c.topology_key);
        values.insert(by_host ? other->name() : value == nullptr ? "" : *value);
      }
      if (Value(node, c.topology_key) == nullptr) continue;
      int64_t pods = 0;
      if (by_host) {
        pods = CountMatching(c, node, /*promised=*/true);
      } else {
        const std::map<std::string, int64_t> domains = Domains(c, /*promised=*/true);
        const auto here = domains.find(*Value(node, c.topology_key));
        if (here != domains.end()) pods = here->second;
      }
      sum += static_cast<double>(pods) * std::log(static_cast<double>(values.size() + 2)) +
             static_cast<double>(c.max_skew - 1);
    }
    return static_cast<int64_t>(std::round(sum));
  }
  static bool Required(const PodAffinityTerm& term) { return term.weight == 0; }
  static const std::string* Value(const NodeInfo& node, const std::string& key) {
    return node.object.meta.labels.Find(key);
  }
  bool Place(const NodeInfo& node) const {
    if (capacity_ != Capacity::kNow) return true;
    return node.kind != state::NodeKind::kOrdered && node.usable;
  }
  bool Near(const NodeInfo& a, const NodeInfo& b, const std::string& key) const {
    const std::string* x = Value(a, key);
    const std::string* y = Value(b, key);
    return x != nullptr && y != nullptr && *x == *y;
  }
  static Selection Select(const PodAffinityTerm& term, const std::string& owner,
                          const PodRecord& pod) {
    return model::Selects(term, owner, pod.ns, pod.labels);
  }

  // use(pod, node) of all pods on nodes that attract (or else: keep away).
  template <typename F>
  void ForEachPod(bool attracting, F use) const {
    for (const NodeInfo* node : nodes_) {
      for (const state::PodId id : node->pods) {
        const PodRecord& pod = state_.pod(id);
        const bool promised = pod.status == PodStatus::kPipelined;
        const bool there = capacity_ == Capacity::kNow ? state::HoldsNode(pod.status) : false;
        // A pod that is stuck while it terminates is no promise of its end.
        const bool stays =
            capacity_ == Capacity::kFuture &&
            (state::IsAllocated(pod.status) || pod.status == PodStatus::kStuckInReleasing);
        if (there || stays || (promised && capacity_ == Capacity::kNow && !attracting))
          use(pod, *node);
      }
    }
  }

  bool MatchesAll(const std::string& ns, const model::StringMap& labels) const {
    return std::all_of(spec_.pod_affinity.begin(), spec_.pod_affinity.end(), [&](const auto& t) {
      return !Required(t) || model::Selects(t, spec_.ns, ns, labels) == Selection::kYes;
    });
  }

  bool AffinityMet(const NodeInfo& node) const {
    bool all = true;
    bool anywhere = false;
    for (const PodAffinityTerm& term : spec_.pod_affinity) {
      if (!Required(term)) continue;
      bool met = false;
      ForEachPod(true, [&](const PodRecord& pod, const NodeInfo& there) {
        if (!MatchesAll(pod.ns, pod.labels)) return;
        anywhere = anywhere || Value(there, term.topology_key) != nullptr;
        met = met || Near(node, there, term.topology_key);
      });
      all = all && met;
    }
    return all || (!anywhere && MatchesAll(spec_.ns, spec_.labels_for_affinity));
  }

  bool KeptAway(const NodeInfo& node) const {
    bool away = false;
    ForEachPod(false, [&](const PodRecord& pod, const NodeInfo& there) {
      for (const PodAffinityTerm& term : spec_.pod_anti_affinity) {
        if (!Required(term) || Select(term, spec_.ns, pod) != Selection::kYes) continue;
        away = away || Near(node, there, term.topology_key);
      }
      const model::PodSpec& other = *state_.pod_class(pod.pod_class).spec;
      for (const PodAffinityTerm& term : other.pod_anti_affinity) {
        if (!Required(term)) continue;
        if (model::Selects(term, pod.ns, spec_.ns, spec_.labels_for_affinity) == Selection::kNo) {
          continue;
        }
        away = away || Near(node, there, term.topology_key);
      }
    });
    return away;
  }

  int64_t Preference(const NodeInfo& node, int64_t hard_weight) const {
    int64_t sum = 0;
    ForEachPod(true, [&](const PodRecord& pod, const NodeInfo& there) {
      const auto add = [&](const PodAffinityTerm& term, int64_t weight, bool selects) {
        if (selects && Near(node, there, term.topology_key)) sum += weight;
      };
      for (const PodAffinityTerm& term : spec_.pod_affinity) {
        add(term, term.weight, Select(term, spec_.ns, pod) == Selection::kYes);
      }
      for (const PodAffinityTerm& term : spec_.pod_anti_affinity) {
        add(term, -term.weight, Select(term, spec_.ns, pod) == Selection::kYes);
      }
      const model::PodSpec& other = *state_.pod_class(pod.pod_class).spec;
      const auto selects_me = [&](const PodAffinityTerm& term) {
        return model::Selects(term, other.ns, spec_.ns, spec_.labels_for_affinity) ==
               Selection::kYes;
      };
      for (const PodAffinityTerm& term : other.pod_affinity) {
        add(term, Required(term) ? hard_weight : term.weight, selects_me(term));
      }
      for (const PodAffinityTerm& term : other.pod_anti_affinity) {
        add(term, -term.weight, selects_me(term));
      }
    });
    return sum;
  }

  int64_t CountMatching(const model::TopologySpreadConstraint& c, const NodeInfo& node,
                        bool promised) const {
    return std::count_if(node.pods.begin(), node.pods.end(), [&](state::PodId id) {
      const PodRecord& pod = state_.pod(id);
      if (pod.status == PodStatus::kPipelined && !promised) return false;
      // Evicted, but not told to end yet.
      const bool victim =
          pod.status == PodStatus::kReleasing && c.do_not_schedule && capacity_ == Capacity::kNow;
      return !pod.terminating && (state::IsAllocated(pod.status) || victim) && pod.ns == spec_.ns &&
             !c.selector.requirements.empty() && c.selector.Matches(pod.labels);
    });
  }

  std::map<std::string, int64_t> Domains(const model::TopologySpreadConstraint& c,
                                         bool promised) const {
    std::map<std::string, int64_t> domains;
    for (const NodeInfo* node : nodes_) {
      const std::string* value = Value(*node, c.topology_key);
      if (!Place(*node) || value == nullptr) continue;
      bool counts = true;
      for (const auto& other : spec_.topology_spread) {
        if (OfTheSystem() || c.do_not_schedule != other.do_not_schedule) continue;
        counts = counts && Value(*node, other.topology_key) != nullptr;
      }
      if (c.honor_node_affinity && !MatchesNodeAffinity(spec_, node->object)) counts = false;
      if (c.honor_node_taints && FindUntolerated(spec_, node->object) != nullptr) counts = false;
      if (!counts) continue;
      domains[*value] += CountMatching(c, *node, promised);
    }
    return domains;
  }
  static std::pair<int64_t, int64_t> Extremes(const std::map<std::string, int64_t>& domains) {
    std::optional<int64_t> least, most;
    for (const auto& [value, pods] : domains) {
      least = std::min(least.value_or(pods), pods);
      most = std::max(most.value_or(pods), pods);
    }
    return {least.value_or(0), most.value_or(0)};
  }

  const state::ClusterState& state_;
  const model::PodSpec& spec_;
  const Capacity capacity_;
  std::vector<const NodeInfo*> nodes_;
};

class DomainRecountTest : public ::testing::TestWithParam<bool> {
 protected:
  static std::unique_ptr<framework::Framework> Only(const char* plugin) {
    framework::Registry registry;
    EXPECT_TRUE(RegisterAll(registry).ok());
    return *framework::Framework::Make({"test", {{plugin}}}, registry);
  }

  void CheckAll() {
    for (const state::PodClassId id : world_->Classes()) {
      const state::PodClass& pod_class = world_->state().pod_class(id);
      for (const Capacity capacity : {Capacity::kNow, Capacity::kFuture, Capacity::kEmpty}) {
        const Look look(world_->state(), pod_class, capacity);
        const framework::Context context{world_->state(), pod_class, id, capacity};
        std::vector<framework::Kind> kinds;
        for (const auto& [name, node_id] : world_->state().nodes_by_name()) {
          const NodeInfo& node = world_->state().node(node_id);
          if (!node.exists) continue;
          CheckNode(look, context, node);
          kinds.push_back({&node, 1});
        }
        CheckScores(look, context, kinds);
      }
    }
  }

  void CheckNode(const Look& look, const framework::Context& context, const NodeInfo& node) {
    // A pod of others may come without labels of its own in its spec; it is not asked about.
    if (affinity_->RefusesEverywhere(context.pod_class).empty()) {
      const bool applies = !affinity_->NodeLocal(context.pod_class);
      ASSERT_EQ(affinity_->Filter(context, node, nullptr), !applies || look.Affinity(node))
          << node.name();
    }
    if (spread_->NodeLocal(context.pod_class)) return;
    ASSERT_EQ(spread_->Filter(context, node, nullptr), look.Spread(node)) << node.name();
  }

  // Of a choice between all nodes.
  void CheckScores(const Look& look, const framework::Context& context,
                   const std::vector<framework::Kind>& kinds) {
    if (kinds.empty()) return;
    const std::vector<int64_t> none(kinds.size(), 0);
    if (affinity_->RefusesEverywhere(context.pod_class).empty()) {
      ASSERT_EQ(affinity_->ScoreKinds(context, kinds),
                affinity_->NodeLocal(context.pod_class) ? none : look.AffinityScores(1));
    }
    ASSERT_EQ(spread_->ScoreKinds(context, kinds),
              spread_->Normalizes(context.pod_class) ? look.SpreadScores() : none);
  }

  std::unique_ptr<testing::DomainWorld> world_;
  std::unique_ptr<framework::Framework> affinity_ = Only(InterPodAffinity::kName);
  std::unique_ptr<framework::Framework> spread_ = Only(PodTopologySpread::kName);
};

// With counters that follow the state, and without.
TEST_P(DomainRecountTest, AgreesWithALookAtEverything) {
  const uint64_t seeds = GetParam() ? 20 : 6;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    world_ = std::make_unique<testing::DomainWorld>(seed);
    framework::DomainCounters counters(world_->state());
    if (GetParam()) {
      world_->state().Subscribe(&counters);
      affinity_->Attach(&counters);
      spread_->Attach(&counters);
    }
    const auto check = [&] {
      ASSERT_EQ(GetParam() ? counters.CheckConsistency() : "", "");
      ASSERT_NO_FATAL_FAILURE(CheckAll());
    };
    for (int step = 0; step < 60; ++step) {
      SCOPED_TRACE(absl::StrCat("step ", step));
      world_->Step();
      // Not after each step, so that several changes come together.
      if (step % 3 != 0) continue;
      ASSERT_NO_FATAL_FAILURE(check());
      state::Transaction txn(world_->state());
      for (size_t i = world_->Below(5); i > 0; --i) world_->Try(txn);
      ASSERT_NO_FATAL_FAILURE(check());
      if (world_->OneIn(3)) {
        txn.Commit();
      } else {
        txn.RollbackTo(world_->Below(txn.Mark() + 1));
        ASSERT_NO_FATAL_FAILURE(check());
        txn.RollbackTo(0);
      }
      ASSERT_NO_FATAL_FAILURE(check());
    }
    affinity_->Attach(nullptr);
    spread_->Attach(nullptr);
    world_->state().Unsubscribe(&counters);
  }
}

INSTANTIATE_TEST_SUITE_P(Attached, DomainRecountTest, ::testing::Bool());

// Terms that come and go are forgotten.
TEST_F(DomainRecountTest, MemoryIsBoundedByWhatIsInUse) {
  state::ClusterState state{{{model::kDefaultSchedulerName}}};
  framework::DomainCounters counters(state);
  state.Subscribe(&counters);
  affinity_->Attach(&counters);
  state.UpsertNode(model::testing::MakeNode("n", 0));
  for (int i = 0; i < 2500; ++i) {
    model::Pod pod = model::testing::PodBuilder("ns", "p").On("n");
    PodAffinityTerm term;
    term.topology_key = absl::StrCat("key-", i);
    term.selector = {false, {{"app", model::SelectorOperator::kIn, {absl::StrCat("a", i)}}}};
    pod.spec.pod_anti_affinity = {term};
    state.UpsertPod(pod);
    const PodRecord& record = state.pod(state.FindPod("ns", "p"));
    (void)affinity_->Filter(
        {state, state.pod_class(record.pod_class), record.pod_class, Capacity::kFuture},
        state.node(record.node), nullptr);
  }
  EXPECT_LT(counters.set_count(), 2 * InterPodAffinity::kMaxRecords + 400);
  affinity_->Attach(nullptr);
  state.Unsubscribe(&counters);
}

}  // namespace
}  // namespace fairlead::plugins
