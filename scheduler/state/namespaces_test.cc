#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::state {
namespace {

using model::SelectorOperator;
using model::testing::PodBuilder;

class NamespacesTest : public ::testing::Test {
 protected:
  ~NamespacesTest() override { EXPECT_EQ(state_.CheckConsistency(), ""); }
  static model::Namespace Named(const std::string& name, const std::string& team) {
    model::Namespace ns;
    ns.meta.name = name;
    ns.meta.labels.Set("team", team);
    return ns;
  }
  static StateOptions Options() {
    StateOptions options;
    options.scheduler_names = {"fairlead"};
    return options;
  }
  void Add(const std::string& name, bool selects, int32_t weight = 0) {
    model::Pod pod = PodBuilder("ns", name);
    if (selects) {
      model::PodAffinityTerm& term = pod.spec.pod_affinity.emplace_back();
      term.selector.none = false;
      term.weight = weight;
      term.topology_key = "zone";
      term.namespace_selector =
          model::LabelSelector{false, {{"team", SelectorOperator::kIn, {"x"}}}};
    }
    state_.UpsertPod(pod);
  }
  const std::optional<model::NamespaceNames>& SelectedBy(const std::string& pod) {
    return state_.class_of(state_.FindPod("ns", pod)).spec->pod_affinity[0].selected_namespaces;
  }

  ClusterState state_{Options()};
};

TEST_F(NamespacesTest, NothingIsSelectedBeforeTheyCanBeRead) {
  state_.UpsertNamespace(Named("a", "x"));
  Add("p", true);
  EXPECT_FALSE(SelectedBy("p").has_value());
  EXPECT_TRUE(state_.SetNamespacesReadable(true).Any());
  ASSERT_TRUE(SelectedBy("p").has_value());
  EXPECT_TRUE(SelectedBy("p")->Has("a"));
  EXPECT_FALSE(SelectedBy("p")->Has("ns"));
  EXPECT_TRUE(state_.SetNamespacesReadable(false).Any());
  EXPECT_FALSE(SelectedBy("p").has_value());
}

// A label that no term reads is no reason to decide anything anew.
TEST_F(NamespacesTest, OnlyWhatSelectsOtherwiseIsAChange) {
  state_.SetNamespacesReadable(true);
  Add("plain", false);
  EXPECT_FALSE(state_.UpsertNamespace(Named("a", "x")).Any());
  EXPECT_FALSE(state_.UpsertNamespace(Named("a", "y")).Any());
  Add("p", true, 5);
  EXPECT_FALSE(SelectedBy("p")->Has("a"));
  EXPECT_FALSE(state_.UpsertNamespace(Named("a", "z")).Any());
  EXPECT_FALSE(state_.UpsertNamespace(Named("b", "y")).Any());
  EXPECT_TRUE(state_.UpsertNamespace(Named("b", "x")).Any());
  EXPECT_TRUE(SelectedBy("p")->Has("b"));
  EXPECT_FALSE(state_.RemoveNamespace("a").Any());
  EXPECT_FALSE(state_.RemoveNamespace("a").Any()) << "known no more";
  EXPECT_TRUE(state_.RemoveNamespace("b").Any());
  EXPECT_FALSE(SelectedBy("p")->Has("b"));
}

// The pod comes again as the API server has it: the same class.
TEST_F(NamespacesTest, ARepeatedPodChangesNothing) {
  state_.SetNamespacesReadable(true);
  state_.UpsertNamespace(Named("a", "x"));
  Add("p", true);
  const PodClassId former = state_.pod(state_.FindPod("ns", "p")).pod_class;
  Add("p", true);
  EXPECT_EQ(state_.pod(state_.FindPod("ns", "p")).pod_class, former);
  state_.RemovePod("ns", "p", "");
  EXPECT_FALSE(state_.RemoveNamespace("a").Any()) << "no term selects it any more";
}

// Tenants write selectors: many of them are not remembered for ever, and stay right.
TEST_F(NamespacesTest, ManySelectors) {
  state_.SetNamespacesReadable(true);
  for (int i = 0; i < 600; ++i) {
    model::Pod pod = PodBuilder("ns", absl::StrCat("p", i));
    model::PodAffinityTerm& term = pod.spec.pod_anti_affinity.emplace_back();
    term.topology_key = "zone";
    term.namespace_selector =
        model::LabelSelector{false, {{"team", SelectorOperator::kIn, {absl::StrCat("t", i)}}}};
    state_.UpsertPod(pod);
    state_.UpsertNamespace(Named(absl::StrCat("n", i % 100), absl::StrCat("t", i)));
  }
}

}  // namespace
}  // namespace fairlead::state
