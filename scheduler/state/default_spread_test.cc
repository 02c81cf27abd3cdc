// Default constraints of topology spread: which pods get them, and by which selector.
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "scheduler/model/testing/affinity_builders.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::state {
namespace {

using model::Kind;
using model::SelectorOperator;
using model::SpreadOrigin;
using model::StringMap;
using model::testing::AppSelector;
using model::testing::AppTerm;
using model::testing::MakeNode;
using model::testing::PodBuilder;

model::TopologySpreadConstraint Over(const char* key, bool hard) {
  model::TopologySpreadConstraint constraint;
  constraint.topology_key = key;
  constraint.do_not_schedule = hard;
  return constraint;
}

// "fairlead" has none, "soft" two of the system, "hard" one of a list.
StateOptions Options() {
  StateOptions options;
  options.scheduler_names = {"fairlead", "soft", "hard"};
  options.profiles = {{"fairlead", 0}, {"soft", 1}, {"hard", 2}};
  options.spread_defaults = {{},
                             {{Over("host", false), Over("zone", false)}, SpreadOrigin::kSystem},
                             {{Over("zone", true)}, SpreadOrigin::kListed}};
  return options;
}

model::Service MakeService(const std::string& name, StringMap selector,
                           const std::string& ns = "ns") {
  model::Service service;
  service.meta.ns = ns;
  service.meta.name = name;
  service.selector = std::move(selector);
  return service;
}

template <typename T, typename Selector>
T MakeController(const std::string& name, Selector selector) {
  T controller;
  controller.meta.ns = "ns";
  controller.meta.name = name;
  controller.selector = std::move(selector);
  return controller;
}

model::Pod OwnedBy(model::Pod pod, const std::string& kind, const std::string& name) {
  const std::string version = kind == "ReplicationController" ? "v1" : "apps/v1";
  pod.meta.owners.push_back({version, kind, name, "uid-" + name, true});
  return pod;
}

PodBuilder Soft(const std::string& name) {
  PodBuilder pod("ns", name);
  pod.Scheduler("soft");
  return pod;
}

std::string Text(const model::LabelSelector& selector) {
  std::string text;
  for (const model::SelectorRequirement& each : selector.requirements) {
    absl::StrAppend(&text, text.empty() ? "" : ",", each.key,
                    each.op == SelectorOperator::kIn      ? "="
                    : each.op == SelectorOperator::kNotIn ? "!="
                                                          : "?");
    for (const std::string& value : each.values) absl::StrAppend(&text, value);
  }
  return text;
}

class DefaultSpreadTest : public ::testing::Test {
 protected:
  ~DefaultSpreadTest() override { EXPECT_EQ(state_.CheckConsistency(), ""); }
  const model::PodSpec& SpecOf(const std::string& pod) {
    return *state_.class_of(state_.FindPod("ns", pod)).spec;
  }
  // "none", or the selector that all its constraints have.
  std::string SelectorOf(const std::string& pod) {
    const model::PodSpec& spec = SpecOf(pod);
    if (spec.topology_spread.empty()) {
      EXPECT_EQ(spec.spread_origin, SpreadOrigin::kOwn);
      return "none";
    }
    for (const auto& each : spec.topology_spread) {
      EXPECT_FALSE(each.selector.none);
      EXPECT_EQ(each.selector, spec.topology_spread.front().selector);
    }
    return Text(spec.topology_spread.front().selector);
  }

  ClusterState state_{Options()};
};

TEST_F(DefaultSpreadTest, AServiceGivesItsPodsTheConstraintsOfTheirProfile) {
  state_.UpsertPod(Soft("a").Label("app", "web"));
  state_.UpsertPod(PodBuilder("ns", "b").Scheduler("hard").Label("app", "web"));
  state_.UpsertPod(PodBuilder("ns", "c").Label("app", "web"));
  state_.UpsertPod(Soft("d").Label("app", "db"));
  EXPECT_EQ(SelectorOf("a"), "none");
  EXPECT_TRUE(state_.UpsertSpreadSource(MakeService("s", {{"app", "web"}})).Any());
  EXPECT_EQ(SelectorOf("a"), "app=web");
  EXPECT_EQ(SpecOf("a").spread_origin, SpreadOrigin::kSystem);
  ASSERT_EQ(SpecOf("a").topology_spread.size(), 2u);
  EXPECT_EQ(SpecOf("a").topology_spread[1].topology_key, "zone");
  EXPECT_EQ(SelectorOf("b"), "app=web");
  EXPECT_EQ(SpecOf("b").spread_origin, SpreadOrigin::kListed);
  EXPECT_TRUE(SpecOf("b").topology_spread[0].do_not_schedule);
  EXPECT_EQ(SelectorOf("c"), "none") << "its profile has none";
  EXPECT_EQ(SelectorOf("d"), "none") << "another app";
  EXPECT_FALSE(state_.UpsertSpreadSource(MakeService("s", {{"app", "web"}})).Any());
  EXPECT_FALSE(state_.UpsertSpreadSource(MakeService("t", {{"app", "web"}})).Any());
  EXPECT_FALSE(state_.RemoveSpreadSource(Kind::kService, "ns", "s").Any()) << "t says the same";
  EXPECT_FALSE(state_.RemoveSpreadSource(Kind::kService, "other", "t").Any());
  EXPECT_TRUE(state_.RemoveSpreadSource(Kind::kService, "ns", "t").Any());
  EXPECT_EQ(SelectorOf("a"), "none");
  EXPECT_TRUE(SpecOf("a").labels_for_affinity.empty());
  EXPECT_FALSE(state_.RemoveSpreadSource(Kind::kService, "ns", "t").Any());
}

TEST_F(DefaultSpreadTest, APodThatComesLaterHasThemAtOnce) {
  state_.UpsertSpreadSource(MakeService("s", {{"app", "web"}}));
  state_.UpsertSpreadSource(MakeService("s", {{"app", "web"}}, "other"));
  state_.UpsertPod(Soft("a").Label("app", "web").Label("job", "1"));
  const PodClassId first = state_.pod(state_.FindPod("ns", "a")).pod_class;
  EXPECT_EQ(SelectorOf("a"), "app=web");
  EXPECT_EQ(SpecOf("a").labels_for_affinity, (StringMap{{"app", "web"}}));
  EXPECT_FALSE(state_.UpsertPod(Soft("a").Label("app", "web").Label("job", "1")).Any());
  // Labels that no constraint reads make no class.
  state_.UpsertPod(Soft("b").Label("app", "web").Label("job", "2"));
  EXPECT_EQ(state_.pod(state_.FindPod("ns", "b")).pod_class, first);
  state_.UpsertPod(Soft("a").Label("app", "db"));
  EXPECT_EQ(SelectorOf("a"), "none") << "relabelled";
  state_.UpsertPod(Soft("a").Label("app", "web"));
  EXPECT_EQ(SelectorOf("a"), "app=web");
  state_.RemovePod("ns", "a", "");
}

TEST_F(DefaultSpreadTest, LabelsOfAllServicesAreMerged) {
  state_.UpsertPod(Soft("a").Label("app", "web").Label("tier", "x").Label("zone", "z"));
  state_.UpsertSpreadSource(MakeService("1", {{"tier", "x"}, {"zone", "z"}}));
  state_.UpsertSpreadSource(MakeService("2", {{"app", "web"}, {"tier", "x"}}));
  state_.UpsertSpreadSource(MakeService("3", {{"app", "web"}, {"tier", "y"}}));
  state_.UpsertSpreadSource(MakeService("4", {{"absent", ""}}));
  EXPECT_EQ(SelectorOf("a"), "app=web,tier=x,zone=z");
  state_.RemoveSpreadSource(Kind::kService, "ns", "1");
  EXPECT_EQ(SelectorOf("a"), "app=web,tier=x");
  EXPECT_TRUE(state_.UpsertSpreadSource(MakeService("2", {{"zone", "z"}})).Any());
  EXPECT_EQ(SelectorOf("a"), "zone=z");
}

TEST_F(DefaultSpreadTest, WhatSelectsByNothingSaysNothing) {
  state_.UpsertPod(OwnedBy(Soft("a").Label("app", "web"), "ReplicaSet", "r"));
  EXPECT_FALSE(state_.UpsertSpreadSource(MakeService("s", {})).Any());
  EXPECT_FALSE(
      state_.UpsertSpreadSource(MakeController<model::ReplicaSet>("r", model::LabelSelector{}))
          .Any());
  EXPECT_FALSE(state_
                   .UpsertSpreadSource(
                       MakeController<model::ReplicaSet>("r", model::LabelSelector{false, {}}))
                   .Any());
  model::Service odd = MakeService("s", {{"app", "web"}});
  odd.invalid = "spec.selector.x: must be a string";
  EXPECT_FALSE(state_.UpsertSpreadSource(odd).Any());
  auto set = MakeController<model::ReplicaSet>("r", AppSelector("web"));
  EXPECT_TRUE(state_.UpsertSpreadSource(set).Any());
  EXPECT_EQ(SelectorOf("a"), "app=web");
  set.invalid = "spec.selector: odd";
  EXPECT_TRUE(state_.UpsertSpreadSource(set).Any());
  EXPECT_EQ(SelectorOf("a"), "none");
}

TEST_F(DefaultSpreadTest, TheControllerAddsItsRequirements) {
  const PodBuilder pod = Soft("a").Label("app", "web").Label("hash", "1");
  state_.UpsertPod(OwnedBy(pod, "ReplicaSet", "r"));
  state_.UpsertSpreadSource(MakeService("s", {{"app", "web"}}));
  model::LabelSelector selector = AppSelector("web");
  selector.requirements.push_back({"hash", SelectorOperator::kIn, {"1"}});
  selector.requirements.push_back({"tier", SelectorOperator::kNotIn, {"x"}});
  state_.UpsertSpreadSource(MakeController<model::StatefulSet>("r", AppSelector("db")));
  EXPECT_EQ(SelectorOf("a"), "app=web") << "of another kind";
  state_.UpsertSpreadSource(MakeController<model::ReplicaSet>("r", selector));
  EXPECT_EQ(SelectorOf("a"), "app=web,hash=1,tier!=x") << "none of them twice";
  state_.RemoveSpreadSource(Kind::kService, "ns", "s");
  EXPECT_EQ(SelectorOf("a"), "app=web,hash=1,tier!=x");
  state_.UpsertPod(OwnedBy(pod, "StatefulSet", "r"));
  EXPECT_EQ(SelectorOf("a"), "app=db") << "it need not select the pod";
  EXPECT_EQ(SpecOf("a").labels_for_affinity, (StringMap{{"app", "web"}}));
}

TEST_F(DefaultSpreadTest, AReplicationControllerReplacesLabels) {
  state_.UpsertPod(
      OwnedBy(Soft("a").Label("app", "web").Label("tier", "x"), "ReplicationController", "r"));
  state_.UpsertSpreadSource(MakeService("s", {{"app", "web"}, {"tier", "x"}}));
  state_.UpsertSpreadSource(
      MakeController<model::ReplicationController>("r", StringMap{{"app", "db"}, {"b", "1"}}));
  EXPECT_EQ(SelectorOf("a"), "app=db,b=1,tier=x");
  state_.RemoveSpreadSource(Kind::kReplicationController, "ns", "r");
  EXPECT_EQ(SelectorOf("a"), "app=web,tier=x");
}

TEST_F(DefaultSpreadTest, OnlyTheControllerCounts) {
  for (const char* name : {"r", "first"}) {
    state_.UpsertSpreadSource(MakeController<model::ReplicaSet>(name, AppSelector(name)));
  }
  const auto with = [&](const model::OwnerReference& owner) {
    model::Pod pod = Soft("a");
    pod.meta.owners = {owner};
    state_.UpsertPod(pod);
    return SelectorOf("a");
  };
  EXPECT_EQ(with({"apps/v1", "ReplicaSet", "r", "u", true}), "app=r");
  EXPECT_EQ(with({"apps/v1", "ReplicaSet", "r", "u", false}), "none");
  EXPECT_EQ(with({"apps/v1beta1", "ReplicaSet", "r", "u", true}), "none");
  EXPECT_EQ(with({"v1", "ReplicaSet", "r", "u", true}), "none");
  EXPECT_EQ(with({"batch/v1", "Job", "r", "u", true}), "none");
  EXPECT_EQ(with({"apps/v1", "ReplicaSet", "other", "u", true}), "none");
  model::Pod two = OwnedBy(OwnedBy(Soft("a"), "ReplicaSet", "first"), "ReplicaSet", "r");
  two.meta.owners.insert(two.meta.owners.begin(), {"apps/v1", "ReplicaSet", "r", "u", false});
  state_.UpsertPod(two);
  EXPECT_EQ(SelectorOf("a"), "app=first");
}

TEST_F(DefaultSpreadTest, ConstraintsOfItsOwnStay) {
  state_.UpsertSpreadSource(MakeService("s", {{"app", "web"}}));
  model::Pod pod = Soft("a").Label("app", "web").Label("x", "y");
  pod.spec.topology_spread = {Over("rack", true)};
  pod.spec.topology_spread[0].selector = AppSelector("other");
  pod.spec.labels_for_affinity = pod.meta.labels;
  state_.UpsertPod(pod);
  EXPECT_EQ(SelectorOf("a"), "app=other");
  EXPECT_EQ(SpecOf("a").spread_origin, SpreadOrigin::kOwn);
  state_.RemoveSpreadSource(Kind::kService, "ns", "s");
  EXPECT_EQ(SelectorOf("a"), "app=other");
  EXPECT_EQ(SpecOf("a").labels_for_affinity, pod.meta.labels);
}

TEST_F(DefaultSpreadTest, AffinityOfItsOwnKeepsAllLabels) {
  model::Pod pod = Soft("a").Label("app", "web").Label("x", "y");
  pod.spec.pod_affinity = {AppTerm("db", "zone")};
  pod.spec.labels_for_affinity = pod.meta.labels;
  state_.UpsertPod(pod);
  state_.UpsertSpreadSource(MakeService("s", {{"app", "web"}}));
  EXPECT_EQ(SelectorOf("a"), "app=web");
  EXPECT_EQ(SpecOf("a").labels_for_affinity, pod.meta.labels);
  state_.RemoveSpreadSource(Kind::kService, "ns", "s");
  EXPECT_EQ(SpecOf("a").labels_for_affinity, pod.meta.labels);
}

// A term that asks for the absence of a label must not take the pod for one without it.
TEST_F(DefaultSpreadTest, TermsOfOtherPodsReadTheirKeysToo) {
  const auto watcher = [](const std::string& name, SelectorOperator op, const char* value) {
    model::Pod pod = PodBuilder("ns", name);
    model::PodAffinityTerm term = AppTerm("", "zone");
    term.selector.requirements = {{"tier", op, {value}}};
    pod.spec.pod_anti_affinity = {term};
    return pod;
  };
  state_.UpsertPod(Soft("a").Label("app", "web").Label("tier", "x").Label("n", "1"));
  state_.UpsertSpreadSource(MakeService("s", {{"app", "web"}}));
  EXPECT_EQ(SpecOf("a").labels_for_affinity, (StringMap{{"app", "web"}}));
  state_.UpsertPod(watcher("w", SelectorOperator::kNotIn, "x"));
  EXPECT_FALSE(SpecOf("a").selected_by_others);
  EXPECT_EQ(SpecOf("a").labels_for_affinity, (StringMap{{"app", "web"}, {"tier", "x"}}));
  state_.UpsertPod(Soft("b").Label("app", "web").Label("tier", "x").Label("n", "2"));
  EXPECT_EQ(SpecOf("b").labels_for_affinity, (StringMap{{"app", "web"}, {"tier", "x"}}));
  state_.UpsertPod(watcher("v", SelectorOperator::kIn, "x"));
  EXPECT_TRUE(SpecOf("a").selected_by_others);
  EXPECT_EQ(SelectorOf("a"), "app=web");
  state_.RemoveSpreadSource(Kind::kService, "ns", "s");
  EXPECT_TRUE(SpecOf("a").selected_by_others);
  EXPECT_EQ(SpecOf("a").labels_for_affinity, (StringMap{{"tier", "x"}}));
  state_.UpsertSpreadSource(MakeService("s", {{"app", "web"}}));
  EXPECT_TRUE(SpecOf("a").selected_by_others);
  EXPECT_EQ(SpecOf("a").labels_for_affinity, (StringMap{{"app", "web"}, {"tier", "x"}}));
}

TEST_F(DefaultSpreadTest, APlacedPodKeepsItsPlaceAndChargesWhenItsClassChanges) {
  state_.UpsertNode(MakeNode("n1", 2));
  state_.UpsertPod(Soft("a").Label("app", "web").GpuFraction(500).On("n1"));
  const GpuPick groups = state_.pod(state_.FindPod("ns", "a")).gpu_groups;
  state_.UpsertSpreadSource(MakeService("s", {{"app", "web"}}));
  EXPECT_EQ(SelectorOf("a"), "app=web");
  const PodRecord& pod = state_.pod(state_.FindPod("ns", "a"));
  EXPECT_EQ(pod.node, state_.FindNode("n1"));
  EXPECT_EQ(pod.status, PodStatus::kRunning);
  EXPECT_EQ(pod.gpu_groups, groups);
}

TEST_F(DefaultSpreadTest, WithoutDefaultsNothingIsKept) {
  StateOptions options = Options();
  options.spread_defaults.clear();
  ClusterState state(options);
  state.UpsertPod(Soft("a").Label("app", "web"));
  EXPECT_FALSE(state.UpsertSpreadSource(MakeService("s", {{"app", "web"}})).Any());
  EXPECT_FALSE(state.RemoveSpreadSource(Kind::kService, "ns", "s").Any());
  EXPECT_EQ(state.CheckConsistency(), "");
}

// 10,000 Services of one namespace, each of which selects every pod there, in every order.
TEST_F(DefaultSpreadTest, ManyServicesThatSelectEverything) {
  constexpr int kServices = 10'000, kPods = 100;
  PodBuilder like = Soft("p");
  for (int i = 0; i < 20; ++i) like.Label(absl::StrCat("l", i), "x");
  const auto add_pods = [&](int from, int to) {
    for (int i = from; i < to; ++i) {
      model::Pod pod = like;
      pod.meta.name = absl::StrCat("p", i);
      pod.meta.uid = pod.meta.name;
      pod.meta.labels.Set("n", absl::StrCat(i));
      state_.UpsertPod(pod);
    }
  };
  add_pods(0, kPods / 2);
  std::mt19937 random(7);
  for (int i = 0; i < kServices; ++i) {
    StringMap selector{{"l0", "x"}};
    for (int k = 0; k < 4; ++k) selector.Set(absl::StrCat("l", random() % 20), "x");
    state_.UpsertSpreadSource(MakeService(absl::StrCat("s", i), selector));
  }
  add_pods(kPods / 2, kPods);
  EXPECT_EQ(SpecOf("p0").topology_spread[0].selector.requirements.size(), 20u);
  EXPECT_EQ(state_.pod(state_.FindPod("ns", "p0")).pod_class,
            state_.pod(state_.FindPod("ns", "p99")).pod_class)
      << "one class, whatever other labels they have";
  EXPECT_EQ(state_.CheckConsistency(), "");
  for (int i = 0; i < kServices; ++i) {
    state_.RemoveSpreadSource(Kind::kService, "ns", absl::StrCat("s", i));
  }
  EXPECT_EQ(SelectorOf("p99"), "none");
}

// Against the definition: for each pod, all objects of its namespace, one after another.
class Definition {
 public:
  std::map<std::string, model::Service> services;
  std::map<std::string, model::ReplicationController> controllers;
  std::map<std::string, model::LabelSelector> replica_sets, stateful_sets;

  // Pods that the selector matches among `all`, which says more than a text of it.
  std::set<std::string> Alike(const model::Pod& pod, const std::vector<model::Pod>& all) const {
    std::map<std::string, std::string> labels;
    for (const auto& [name, service] : services) {
      bool selects = true;
      for (const auto& [key, value] : service.selector) {
        selects = selects && pod.meta.labels.Has(key) && pod.meta.labels.Get(key) == value;
      }
      if (!selects) continue;
      for (const auto& [key, value] : service.selector) labels[key] = value;
    }
    std::vector<model::SelectorRequirement> added;
    if (!pod.meta.owners.empty()) {
      const model::OwnerReference& owner = pod.meta.owners[0];
      if (owner.kind == "ReplicationController" && controllers.contains(owner.name)) {
        for (const auto& [key, value] : controllers.at(owner.name).selector) labels[key] = value;
      }
      if (owner.kind == "ReplicaSet" && replica_sets.contains(owner.name)) {
        added = replica_sets.at(owner.name).requirements;
      }
      if (owner.kind == "StatefulSet" && stateful_sets.contains(owner.name)) {
        added = stateful_sets.at(owner.name).requirements;
      }
    }
    if (labels.empty() && added.empty()) return {"none"};
    for (const auto& [key, value] : labels) added.push_back({key, SelectorOperator::kIn, {value}});
    std::set<std::string> alike;
    for (const model::Pod& other : all) {
      bool selected = true;
      for (const auto& each : added) selected = selected && Matches(each, other.meta.labels);
      if (selected) alike.insert(other.meta.name);
    }
    return alike;
  }
};

TEST_F(DefaultSpreadTest, AgreesWithTheDefinition) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  const auto some_labels = [&] {
    StringMap labels;
    for (const char* key : {"a", "b", "c"}) {
      if (below(2) == 0) labels.Set(key, absl::StrCat(below(2)));
    }
    return labels;
  };
  const auto some_selector = [&] {
    model::LabelSelector selector;
    selector.none = below(4) == 0;
    if (selector.none) return selector;
    for (const auto& [key, value] : some_labels()) {
      const auto op = below(4) == 0 ? SelectorOperator::kNotIn : SelectorOperator::kIn;
      selector.requirements.push_back({key, op, {value}});
    }
    return selector;
  };
  Definition definition;
  std::map<std::string, model::Pod> pods;
  size_t with = 0;
  for (int step = 0; step < 400; ++step) {
    const std::string name = absl::StrCat("x", below(4));
    switch (below(6)) {
      case 0:
        definition.services[name] = MakeService(name, some_labels());
        state_.UpsertSpreadSource(definition.services[name]);
        break;
      case 1:
        definition.controllers[name] =
            MakeController<model::ReplicationController>(name, some_labels());
        state_.UpsertSpreadSource(definition.controllers[name]);
        break;
      case 2: {
        const model::LabelSelector selector = some_selector();
        const bool stateful = below(2) == 0;
        (stateful ? definition.stateful_sets : definition.replica_sets)[name] = selector;
        if (stateful) {
          state_.UpsertSpreadSource(MakeController<model::StatefulSet>(name, selector));
        } else {
          state_.UpsertSpreadSource(MakeController<model::ReplicaSet>(name, selector));
        }
        break;
      }
      case 3:
        state_.RemoveSpreadSource(Kind::kService, "ns", name);
        definition.services.erase(name);
        state_.RemoveSpreadSource(Kind::kStatefulSet, "ns", name);
        definition.stateful_sets.erase(name);
        break;
      default: {
        const std::string pod_name = absl::StrCat("p", below(12));
        model::Pod pod = Soft(pod_name);
        pod.meta.labels = some_labels();
        const unsigned kind = below(4);
        if (kind > 0) {
          pod = OwnedBy(pod,
                        kind == 1   ? "ReplicationController"
                        : kind == 2 ? "ReplicaSet"
                                    : "StatefulSet",
                        name);
        }
        state_.UpsertPod(pod);
        pods.insert_or_assign(pod_name, pod);
      }
    }
    ASSERT_EQ(state_.CheckConsistency(), "");
    std::vector<model::Pod> all;
    for (const auto& [pod_name, pod] : pods) all.push_back(pod);
    for (const model::Pod& pod : all) {
      std::set<std::string> alike;
      if (SelectorOf(pod.meta.name) == "none") alike.insert("none");
      for (const auto& constraint : SpecOf(pod.meta.name).topology_spread) {
        for (const model::Pod& other : all) {
          if (constraint.selector.Matches(other.meta.labels)) alike.insert(other.meta.name);
        }
      }
      ASSERT_EQ(alike, definition.Alike(pod, all)) << "pod " << pod.meta.name << " step " << step;
      if (!SpecOf(pod.meta.name).topology_spread.empty()) ++with;
    }
  }
  EXPECT_GT(with, 0u);
}

}  // namespace
}  // namespace fairlead::state
