#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/model/testing/affinity_builders.h"
#include "scheduler/plugins/plugin_test_util.h"
#include "scheduler/plugins/scale.h"

namespace fairlead::plugins {
namespace {

using model::testing::AppTerm;

constexpr char kNoAffinity[] = "X node(s) didn't match pod affinity rules";
constexpr char kNoAnti[] = "U node(s) didn't match pod anti-affinity rules";
constexpr char kExisting[] = "U node(s) didn't satisfy existing pods anti-affinity rules";

class InterPodAffinityTest : public PluginTest {
 protected:
  InterPodAffinityTest() : affinity_(Only("InterPodAffinity")) {
    for (const auto& [name, zone] :
         std::map<std::string, std::string>{{"a1", "a"}, {"a2", "a"}, {"b1", "b"}}) {
      model::Node node = MakeNode(name, 0);
      node.meta.labels.Set("zone", zone);
      AddNode(node);
    }
    AddNode(MakeNode("none", 0));
  }
  model::Pod On(const char* node, const char* app, const char* ns = "ns") {
    return PodBuilder(ns, absl::StrCat("pod-", ++pods_)).Label("app", app).On(node);
  }
  void Pod(std::vector<model::PodAffinityTerm> affinity,
           std::vector<model::PodAffinityTerm> anti = {}, const char* app = "web") {
    model::PodSpec spec;
    spec.pod_affinity = std::move(affinity);
    spec.pod_anti_affinity = std::move(anti);
    spec.labels_for_affinity = {{"app", app}};
    Waiting(spec);
  }
  // The answers for a1, a2, b1 and none.
  std::vector<std::string> All(Capacity capacity = Capacity::kNow) {
    std::vector<std::string> out;
    for (const char* node : {"a1", "a2", "b1", "none"})
      out.push_back(Why(*affinity_, node, capacity));
    return out;
  }
  using Answers = std::vector<std::string>;

  std::unique_ptr<framework::Framework> affinity_;
  int pods_ = 0;
};

TEST_F(InterPodAffinityTest, RequiredAffinity) {
  Pod({AppTerm("db", "zone")});
  EXPECT_EQ(All(), (Answers{kNoAffinity, kNoAffinity, kNoAffinity, kNoAffinity}));
  EXPECT_EQ(All(Capacity::kEmpty), (Answers{"", "", "", kNoAffinity})) << "the key alone";
  AddPod(On("a1", "db", "elsewhere"));
  EXPECT_EQ(All(), (Answers{kNoAffinity, kNoAffinity, kNoAffinity, kNoAffinity}));
  AddPod(On("a1", "db"));
  EXPECT_EQ(All(), (Answers{"", "", kNoAffinity, kNoAffinity}));
  Pod({AppTerm("db", "zone"), AppTerm("cache", "zone")});
  AddPod(On("a2", "cache"));
  EXPECT_EQ(All(), (Answers{kNoAffinity, kNoAffinity, kNoAffinity, kNoAffinity}))
      << "one pod has to match all terms, as upstream has it";
}

TEST_F(InterPodAffinityTest, FirstPodOfASeriesMayStart) {
  Pod({AppTerm("web", "zone")});
  EXPECT_EQ(All(), (Answers{"", "", "", kNoAffinity}));
  AddPod(On("b1", "web"));
  EXPECT_EQ(All(), (Answers{kNoAffinity, kNoAffinity, "", kNoAffinity}));
}

// Also without any other change: an agent labels pods while they run.
TEST_F(InterPodAffinityTest, LabelsOfPodsThatRunMayChange) {
  Pod({AppTerm("db", "zone")});
  model::Pod pod = On("a1", "web");
  AddPod(pod);
  EXPECT_EQ(All(), (Answers{kNoAffinity, kNoAffinity, kNoAffinity, kNoAffinity}));
  pod.meta.labels.Set("app", "db");
  EXPECT_TRUE(state_.UpsertPod(pod).Any()) << "the pod that waits has to be looked at again";
  EXPECT_EQ(All(), (Answers{"", "", kNoAffinity, kNoAffinity}));
  Waiting({});
  pod.meta.labels.Set("app", "web");
  state_.UpsertPod(pod);  // it is classed without the labels that the term read
  pod.meta.labels.Set("app", "cache");
  EXPECT_FALSE(state_.UpsertPod(pod).Any()) << "no pod reads labels of others any more";
}

TEST_F(InterPodAffinityTest, Namespaces) {
  AddPod(On("a1", "db", "data"));
  model::PodAffinityTerm term = AppTerm("db", "zone");
  term.namespaces = {"other", "data"};
  Pod({term});
  EXPECT_EQ(Why(*affinity_, "a1"), "");
  term.namespaces.clear();
  term.namespace_selector = model::LabelSelector{false, {}};
  Pod({term});
  EXPECT_EQ(Why(*affinity_, "a1"), "") << "an empty selector is every namespace";
  term.namespace_selector->requirements = {{"team", model::SelectorOperator::kExists, {}}};
  Pod({term});
  for (Capacity capacity : {Capacity::kNow, Capacity::kEmpty}) {
    EXPECT_EQ(Why(*affinity_, "a1", capacity),
              "X node(s) cannot be judged: Fairlead may not read namespaces");
  }
}

TEST_F(InterPodAffinityTest, NamespacesAreSelectedByTheirLabels) {
  model::PodAffinityTerm term = AppTerm("db", "zone");
  term.namespace_selector =
      model::LabelSelector{false, {{"team", model::SelectorOperator::kIn, {"x"}}}};
  const auto name_space = [&](const char* name, const char* team) {
    model::Namespace ns;
    ns.meta.name = name;
    if (*team != 0) ns.meta.labels.Set("team", team);
    state_.UpsertNamespace(ns);
  };
  state_.SetNamespacesReadable(true);
  name_space("ns", "");
  name_space("theirs", "x");
  AddPod(On("a1", "db"));
  AddPod(On("b1", "db", "theirs"));
  Pod({term});
  EXPECT_EQ(All(), (Answers{kNoAffinity, kNoAffinity, "", kNoAffinity}));
  Pod({}, {term});
  EXPECT_EQ(All(), (Answers{"", "", kNoAnti, ""}));
  term.namespaces = {"ns"};
  Pod({}, {term});
  EXPECT_EQ(All(), (Answers{kNoAnti, kNoAnti, kNoAnti, ""})) << "both count";
  name_space("theirs", "y");
  EXPECT_EQ(All(), (Answers{kNoAnti, kNoAnti, "", ""})) << "a pod that is known already";
  state_.RemoveNamespace("theirs");
  name_space("theirs", "x");
  EXPECT_EQ(All(), (Answers{kNoAnti, kNoAnti, kNoAnti, ""}));
  // In the other direction: a pod that is there keeps the waiting one away.
  model::Pod lonely = On("a1", "db", "theirs");
  lonely.spec.ns = "theirs";
  lonely.spec.pod_anti_affinity = {AppTerm("web", "zone")};
  lonely.spec.pod_anti_affinity[0].namespace_selector = term.namespace_selector;
  AddPod(lonely);
  Pod({});
  EXPECT_EQ(All(), (Answers{"", "", "", ""}));
  name_space("ns", "x");
  EXPECT_EQ(All(), (Answers{kExisting, kExisting, "", ""}));
  EXPECT_EQ(state_.CheckConsistency(), "");
}

// No node helps such a pod: that it is told so keeps the hook and other autoscalers from it.
TEST_F(InterPodAffinityTest, ATermThatSelectsNoNamespaceIsRefusedEverywhere) {
  model::PodAffinityTerm term = AppTerm("web", "zone");
  term.namespace_selector =
      model::LabelSelector{false, {{"team", model::SelectorOperator::kExists, {}}}};
  state_.SetNamespacesReadable(true);
  model::Namespace ns;
  ns.meta.name = "ns";
  state_.UpsertNamespace(ns);
  const auto refused = [&] {
    return affinity_->RefusesEverywhere(state_.class_of(state_.FindPod("ns", "waiting")));
  };
  Pod({}, {term});
  EXPECT_EQ(refused(), "") << "nothing to keep away from";
  Pod({term});
  EXPECT_EQ(refused(),
            "spec.affinity.podAffinity: no namespace has the labels that namespaceSelector asks "
            "for");
  for (Capacity capacity : {Capacity::kNow, Capacity::kEmpty}) {
    EXPECT_EQ(Why(*affinity_, "a1", capacity), "X node(s) didn't match pod affinity rules");
  }
  ns.meta.labels.Set("team", "x");
  state_.UpsertNamespace(ns);
  EXPECT_EQ(refused(), "");
  EXPECT_EQ(Why(*affinity_, "a1", Capacity::kEmpty), "");
  ns.meta.labels = {};
  state_.UpsertNamespace(ns);
  term.namespaces = {"ns"};
  Pod({term});
  EXPECT_EQ(refused(), "");
}

TEST_F(InterPodAffinityTest, RequiredAntiAffinity) {
  AddPod(On("a1", "db"));
  Pod({}, {AppTerm("db", "zone")});
  EXPECT_EQ(All(), (Answers{kNoAnti, kNoAnti, "", ""}));
  EXPECT_EQ(All(Capacity::kEmpty), (Answers{"", "", "", ""}));
  Pod({}, {AppTerm("db", model::kHostnameLabel)});
  EXPECT_EQ(All(), (Answers{kNoAnti, "", "", ""}));
}

TEST_F(InterPodAffinityTest, AntiAffinityOfPodsThatAreThere) {
  model::Pod lonely = On("a1", "db");
  lonely.spec.pod_anti_affinity = {AppTerm("web", "zone")};
  AddPod(lonely);
  Pod({});
  EXPECT_EQ(All(), (Answers{kExisting, kExisting, "", ""}));
  Pod({}, {}, "batch");
  EXPECT_EQ(All(), (Answers{"", "", "", ""}));
  // A selector by namespace labels is taken for a match: better to wait than to break a promise.
  lonely.spec.pod_anti_affinity[0].namespace_selector =
      model::LabelSelector{false, {{"team", model::SelectorOperator::kExists, {}}}};
  AddPod(lonely);
  Pod({});
  EXPECT_EQ(Why(*affinity_, "a1"), kExisting);
}

// A term may select what lacks a label; pods without labels of their own are kept away too, also
// those that have other terms.
TEST_F(InterPodAffinityTest, AntiAffinityAgainstPodsWithoutLabels) {
  model::Pod lonely = On("a1", "db");
  lonely.spec.pod_anti_affinity = {AppTerm("web", "zone")};
  lonely.spec.pod_anti_affinity[0].selector.requirements = {
      {"tier", model::SelectorOperator::kNotIn, {"back"}}};
  AddPod(lonely);
  Waiting({});
  EXPECT_EQ(All(), (Answers{kExisting, kExisting, "", ""}));
  model::PodSpec spread;
  spread.topology_spread.emplace_back().topology_key = "zone";
  Waiting(spread);
  EXPECT_EQ(All(), (Answers{kExisting, kExisting, "", ""}));
}

TEST_F(InterPodAffinityTest, TerminatingAndPromisedPods) {
  model::Pod ends = On("a1", "db");
  ends.meta.deletion = model::testing::At(9);
  AddPod(ends);
  Pod({}, {AppTerm("db", "zone")});
  EXPECT_EQ(Why(*affinity_, "a1", Capacity::kNow), kNoAnti) << "it is still there";
  EXPECT_EQ(Why(*affinity_, "a1", Capacity::kFuture), "");

  AddPod(PodBuilder("ns", "promised").Label("app", "cache"));
  Pod({AppTerm("cache", "zone")});
  state::Transaction txn(state_);
  txn.Pipeline(state_.FindPod("ns", "promised"), state_.FindNode("b1"));
  EXPECT_EQ(Why(*affinity_, "b1", Capacity::kNow), kNoAffinity) << "it is not there yet";
  EXPECT_EQ(Why(*affinity_, "b1", Capacity::kFuture), "");
}

TEST_F(InterPodAffinityTest, PromisedPodsKeepOthersAway) {
  AddPod(PodBuilder("ns", "promised").Label("app", "db"));
  Pod({}, {AppTerm("db", "zone")});
  state::Transaction txn(state_);
  txn.Pipeline(state_.FindPod("ns", "promised"), state_.FindNode("b1"));
  EXPECT_EQ(Why(*affinity_, "b1", Capacity::kNow), kNoAnti);
  EXPECT_EQ(Why(*affinity_, "b1", Capacity::kFuture), kNoAnti);
}

TEST_F(InterPodAffinityTest, PreferredTerms) {
  AddPod(On("a1", "db"));
  AddPod(On("b1", "noisy"));
  Pod({AppTerm("db", "zone", 30)}, {AppTerm("noisy", "zone", 10)});
  EXPECT_EQ(All(), (Answers{"", "", "", ""}));
  // Sums 30, 30, -10 and 0.
  EXPECT_EQ(Score(*affinity_, "a1"), 100 * kPreferenceStep);
  EXPECT_EQ(Score(*affinity_, "a2"), 100 * kPreferenceStep);
  EXPECT_EQ(Score(*affinity_, "b1"), 0);
  EXPECT_EQ(Score(*affinity_, "none"), 25 * kPreferenceStep);
}

TEST_F(InterPodAffinityTest, PreferencesOfPodsThatAreThere) {
  model::Pod friendly = On("a1", "db");
  friendly.spec.pod_affinity = {AppTerm("web", model::kHostnameLabel, 50)};
  AddPod(friendly);
  model::Pod hard = On("b1", "db");
  hard.spec.pod_affinity = {AppTerm("web", "zone")};
  AddPod(hard);
  Pod({});
  EXPECT_EQ(Score(*affinity_, "a1"), 100 * kPreferenceStep);
  EXPECT_EQ(Score(*affinity_, "b1"), 2 * kPreferenceStep) << "required terms of theirs weigh 1";
  EXPECT_EQ(Score(*affinity_, "none"), 0);
  affinity_ = Only("InterPodAffinity",
                   R"({"hardPodAffinityWeight":9,"ignorePreferredTermsOfExistingPods":true})");
  EXPECT_EQ(Score(*affinity_, "a1"), 0);
  EXPECT_EQ(Score(*affinity_, "b1"), 0);
  // All terms count for a pod with a preference.
  Pod({AppTerm("no-pod", "zone", 1)});
  EXPECT_EQ(Score(*affinity_, "a1"), 100 * kPreferenceStep);
  EXPECT_EQ(Score(*affinity_, "b1"), 18 * kPreferenceStep);
}

TEST_F(InterPodAffinityTest, PlainPodsDoNotAsk) {
  Waiting({});
  EXPECT_TRUE(affinity_->NodeLocal(Ctx().pod_class));
  Pod({});
  EXPECT_FALSE(affinity_->NodeLocal(Ctx().pod_class));
}

// Anti-affinity in both directions against the definition: no pair of pods in one domain may
// object.
TEST_F(InterPodAffinityTest, AgreesWithTheDefinition) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 engine(seed);
  const auto below = [&](unsigned n) { return static_cast<unsigned>(engine()) % n; };
  const char* apps[] = {"web", "db", "cache"};
  const char* keys[] = {"zone", model::kHostnameLabel};
  const char* nodes[] = {"a1", "a2", "b1", "none"};
  struct Placed {
    std::string app, hates, key, node;
  };
  const auto same_domain = [&](const std::string& key, const std::string& x, const std::string& y) {
    const std::string* a = Node(x).object.meta.labels.Find(key);
    const std::string* b = Node(y).object.meta.labels.Find(key);
    return a != nullptr && b != nullptr && *a == *b;
  };
  int answers[2] = {0, 0};
  for (int round = 0; round < 40; ++round) {
    std::vector<Placed> placed;
    for (unsigned i = below(4); i > 0; --i) {
      Placed p{apps[below(3)], apps[below(3)], keys[below(2)], nodes[below(4)]};
      model::Pod pod = On(p.node.c_str(), p.app.c_str());
      pod.spec.pod_anti_affinity = {AppTerm(p.hates.c_str(), p.key.c_str())};
      AddPod(pod);
      placed.push_back(p);
    }
    const Placed mine{apps[below(3)], apps[below(3)], keys[below(2)], ""};
    Pod({}, {AppTerm(mine.hates.c_str(), mine.key.c_str())}, mine.app.c_str());
    for (const char* node : nodes) {
      bool fits = true;
      for (const Placed& p : placed) {
        if (p.app == mine.hates && same_domain(mine.key, node, p.node)) fits = false;
        if (p.hates == mine.app && same_domain(p.key, node, p.node)) fits = false;
      }
      ASSERT_EQ(Why(*affinity_, node).empty(), fits) << round << node;
      ++answers[fits ? 1 : 0];
    }
    for (int i = 0; i < static_cast<int>(placed.size()); ++i) {
      state_.RemovePod("ns", absl::StrCat("pod-", pods_ - i), "");
    }
  }
  EXPECT_GT(answers[0], 0);
  EXPECT_GT(answers[1], 0);
}

}  // namespace
}  // namespace fairlead::plugins
