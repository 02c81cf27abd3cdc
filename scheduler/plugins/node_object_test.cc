// The plugins that look at the pod's class and the node object: NodeReady, NodeUnschedulable,
// TaintToleration, NodeAffinity, ResourceType.
#include <functional>
#include <string>
#include <vector>

#include "scheduler/plugins/node_affinity.h"
#include "scheduler/plugins/plugin_test_util.h"
#include "scheduler/plugins/scale.h"

namespace fairlead::plugins {
namespace {

using model::SelectorOperator;
using model::TaintEffect;

TEST_F(PluginTest, NodeDeclaredFeatures) {
  const auto filter = Only("NodeDeclaredFeatures");
  const char* const none = "X node(s) didn't match Pod's required features";
  for (model::NodeFeatures declared = 0; declared <= model::kAllNodeFeatures; ++declared) {
    model::Node node = MakeNode(absl::StrCat("n", declared), 0);
    node.declared_features = declared;
    AddNode(node);
  }
  for (model::NodeFeatures required = 0; required <= model::kAllNodeFeatures; ++required) {
    model::PodSpec spec;
    spec.required_features = required;
    Waiting(spec);
    for (int declared = 0; declared <= model::kAllNodeFeatures; ++declared) {
      EXPECT_EQ(Why(*filter, absl::StrCat("n", declared)), (required & ~declared) == 0 ? "" : none)
          << int{required};
    }
  }
}

TEST_F(PluginTest, NodeReady) {
  const auto ready = Only("NodeReady");
  Waiting({});
  AddNode(MakeNode("good", 0));
  model::Node node = MakeNode("not-ready", 0);
  node.ready = false;
  AddNode(node);
  node = MakeNode("pressed", 0);
  node.bad_conditions = {"MemoryPressure", "DiskPressure"};
  AddNode(node);
  node = MakeNode("broken", 0);
  node.invalid = "allocatable: cpu: not a quantity";
  AddNode(node);
  AddPod(PodBuilder("ns", "parked").On("unseen"));
  state_.UpsertOrderedNode(MakeNode("ordered", 8), "nr-1");
  state_.UpsertOrderedNode(MakeNode("starting", 8), "nr-2");
  AddNode(MakeNode("starting", 0));  // registered, without its devices yet

  struct Case {
    const char* node;
    const char* now;
    const char* future;  // and on an empty node
  };
  const char* not_yet = "X node(s) were requested and not ready for use yet";
  const Case cases[] = {
      {"good", "", ""},
      {"not-ready", "X node(s) were not ready", "X node(s) were not ready"},
      {"pressed", "X node(s) had condition MemoryPressure",
       "X node(s) had condition MemoryPressure"},
      {"broken", "X node(s) had an object that could not be understood",
       "X node(s) had an object that could not be understood"},
      {"unseen", "X node(s) were not known to the API server",
       "X node(s) were not known to the API server"},
      {"ordered", not_yet, ""},
      {"starting", not_yet, ""},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Why(*ready, c.node, Capacity::kNow), c.now) << c.node;
    EXPECT_EQ(Why(*ready, c.node, Capacity::kFuture), c.future) << c.node;
    EXPECT_EQ(Why(*ready, c.node, Capacity::kEmpty), c.future) << c.node;
  }
  state_.SetNodeUsable(state_.FindNode("starting"), true);
  EXPECT_EQ(Why(*ready, "starting", Capacity::kNow), "");
}

TEST_F(PluginTest, NodeUnschedulable) {
  const auto strict = Only("NodeUnschedulable");
  const auto upstream = Only("NodeUnschedulable", R"({"honorToleration":true})");
  AddNode(MakeNode("open", 0));
  model::Node node = MakeNode("cordoned", 0);
  node.unschedulable = true;
  AddNode(node);
  constexpr char kNo[] = "X node(s) were unschedulable";

  Waiting({});
  EXPECT_EQ(Why(*strict, "open"), "");
  EXPECT_EQ(Why(*strict, "cordoned"), kNo);
  EXPECT_EQ(Why(*upstream, "cordoned"), kNo);

  model::PodSpec tolerant;
  tolerant.tolerations = {{"node.kubernetes.io/unschedulable", true, "", TaintEffect::kNoSchedule}};
  Waiting(tolerant);
  EXPECT_EQ(Why(*strict, "cordoned"), kNo) << "KAI refuses in any case";
  EXPECT_EQ(Why(*upstream, "cordoned"), "");

  tolerant.tolerations[0].effect = TaintEffect::kNoExecute;
  Waiting(tolerant);
  EXPECT_EQ(Why(*upstream, "cordoned"), kNo);
}

TEST_F(PluginTest, TaintTolerationFilter) {
  const auto taints = Only("TaintToleration");
  model::Node node = MakeNode("n", 0);
  node.taints = {{"soft", "x", TaintEffect::kPreferNoSchedule},
                 {"gpu", "a100", TaintEffect::kNoSchedule},
                 {"drain", "", TaintEffect::kNoExecute}};
  AddNode(node);
  struct Case {
    std::vector<model::Toleration> tolerations;
    const char* why;
  };
  const Case cases[] = {
      {{}, "X node(s) had untolerated taint(s) {gpu: a100}"},
      {{{"gpu", false, "a100", {}}}, "X node(s) had untolerated taint(s) {drain: }"},
      {{{"gpu", false, "h100", {}}, {"drain", true, "", {}}},
       "X node(s) had untolerated taint(s) {gpu: a100}"},
      {{{"gpu", true, "", TaintEffect::kNoExecute}, {"drain", true, "", {}}},
       "X node(s) had untolerated taint(s) {gpu: a100}"},
      {{{"gpu", true, "", {}}, {"drain", true, "", {}}}, ""},
      {{{"", true, "", {}}}, ""},
      {{{"", false, "", {}}}, "X node(s) had untolerated taint(s) {gpu: a100}"},
  };
  for (const Case& c : cases) {
    model::PodSpec spec;
    spec.tolerations = c.tolerations;
    Waiting(spec);
    EXPECT_EQ(Why(*taints, "n"), c.why);
  }
}

TEST_F(PluginTest, TaintTolerationScore) {
  const auto taints = Only("TaintToleration");
  AddNode(MakeNode("none", 0));
  model::Node node = MakeNode("one", 0);
  node.taints = {{"a", "", TaintEffect::kPreferNoSchedule}, {"hard", "", TaintEffect::kNoSchedule}};
  AddNode(node);
  node = MakeNode("three", 0);
  for (const char* key : {"a", "b", "c"}) {
    node.taints.push_back({key, "", TaintEffect::kPreferNoSchedule});
  }
  AddNode(node);
  Waiting({});
  EXPECT_EQ(Score(*taints, "none"), 100 * kPreferenceStep);
  EXPECT_EQ(Score(*taints, "one"), 67 * kPreferenceStep) << "hard taints do not count";
  EXPECT_EQ(Score(*taints, "three"), 0);
  model::PodSpec spec;
  spec.tolerations = {{"b", true, "", TaintEffect::kPreferNoSchedule}};
  Waiting(spec);
  EXPECT_EQ(Score(*taints, "one"), 50 * kPreferenceStep);
  EXPECT_EQ(Score(*taints, "three"), 0);
}

TEST_F(PluginTest, NodeAffinityFilter) {
  const auto affinity = Only("NodeAffinity");
  model::Node node = MakeNode("n1", 0);
  node.meta.labels.Set("zone", "a");
  node.meta.labels.Set("gpus", "8");
  AddNode(node);
  constexpr char kNo[] = "X node(s) didn't match Pod's node affinity/selector";
  using Terms = std::vector<model::NodeSelectorTerm>;
  struct Case {
    const char* name;
    std::function<void(model::PodSpec&)> set;
    bool fits;
  };
  const auto terms = [](Terms t) {
    return [t = std::move(t)](model::PodSpec& s) {
      s.has_required_node_affinity = true;
      s.required_node_terms = t;
    };
  };
  const Case cases[] = {
      {"nothing", [](model::PodSpec&) {}, true},
      {"selector", [](model::PodSpec& s) { s.node_selector = {{"zone", "a"}}; }, true},
      {"other value", [](model::PodSpec& s) { s.node_selector = {{"zone", "b"}}; }, false},
      {"no such label", [](model::PodSpec& s) { s.node_selector = {{"rack", ""}}; }, false},
      {"no terms", terms({}), false},
      {"empty term", terms({{}}), false},
      {"one of two",
       terms({{{{"zone", SelectorOperator::kIn, {"b"}}}, {}},
              {{{"zone", SelectorOperator::kIn, {"a"}}}, {}}}),
       true},
      {"all of a term",
       terms({{{{"zone", SelectorOperator::kExists, {}}, {"rack", SelectorOperator::kExists, {}}},
               {}}}),
       false},
      {"greater", terms({{{{"gpus", SelectorOperator::kGt, {"7"}}}, {}}}), true},
      {"not greater", terms({{{{"gpus", SelectorOperator::kGt, {"8"}}}, {}}}), false},
      {"name", terms({{{}, {{"metadata.name", SelectorOperator::kIn, {"n1"}}}}}), true},
      {"not this name", terms({{{}, {{"metadata.name", SelectorOperator::kNotIn, {"n1"}}}}}),
       false},
      {"selector and term",
       [&](model::PodSpec& s) {
         terms({{{{"zone", SelectorOperator::kIn, {"a"}}}, {}}})(s);
         s.node_selector = {{"zone", "b"}};
       },
       false},
  };
  for (const Case& c : cases) {
    model::PodSpec spec;
    c.set(spec);
    Waiting(spec);
    EXPECT_EQ(Why(*affinity, "n1"), c.fits ? "" : kNo) << c.name;
  }
}

// Upstream's PreFilter: these nodes are not asked about, and the reason is another one.
TEST_F(PluginTest, TermsThatNameNodesLeaveOutTheOthers) {
  const auto filters =
      framework::Framework::Make({"test", {{"TaintToleration"}, {"NodeAffinity"}}}, registry_);
  ASSERT_TRUE(filters.ok());
  model::Node node = MakeNode("n1", 0);
  node.taints = {{"gpu", "", TaintEffect::kNoSchedule}};
  AddNode(node);
  const auto named = [](std::vector<std::string> names) {
    return model::SelectorRequirement{"metadata.name", SelectorOperator::kIn, std::move(names)};
  };
  const model::SelectorRequirement zone{"zone", SelectorOperator::kExists, {}};
  constexpr char kTaint[] = "X node(s) had untolerated taint(s) {gpu: }";
  constexpr char kOther[] = "X node(s) didn't satisfy plugin(s) [NodeAffinity]";
  const struct {
    std::vector<model::NodeSelectorTerm> terms;
    const char* why;
  } cases[] = {
      {{}, kTaint},
      {{{{}, {named({"n2"})}}}, kOther},
      {{{{}, {named({"n2"})}}, {{zone}, {}}}, kTaint},
      {{{{}, {named({"n2"})}}, {{}, {named({"n0", "n1"})}}}, kTaint},
      {{{{}, {named({"n1", "n2"}), named({"n2", "n3"})}}}, kOther},
      {{{{}, {named({"n1"}), named({"n2"})}}}, "X pod affinity terms conflict"},
      {{{{}, {named({"n1"}), named({"n3"})}}, {{}, {named({"n2"})}}}, kOther},
  };
  for (const auto& c : cases) {
    model::PodSpec spec;
    spec.has_required_node_affinity = true;
    spec.required_node_terms = c.terms;
    Waiting(spec);
    EXPECT_EQ(Why(**filters, "n1"), c.why);
  }
}

TEST_F(PluginTest, NodeAffinityScore) {
  const auto affinity = Only("NodeAffinity");
  AddNode(MakeNode("plain", 0));
  model::Node node = MakeNode("zone-a", 0);
  node.meta.labels.Set("zone", "a");
  AddNode(node);
  node.meta = MakeNode("both", 0).meta;
  node.meta.labels.Set("zone", "a");
  node.meta.labels.Set("ssd", "");
  AddNode(node);
  model::PodSpec spec;
  spec.preferred_node_terms = {{30, {{{"zone", SelectorOperator::kIn, {"a"}}}, {}}},
                               {10, {{{"ssd", SelectorOperator::kExists, {}}}, {}}},
                               {0, {{{"zone", SelectorOperator::kExists, {}}}, {}}}};
  Waiting(spec);
  EXPECT_EQ(Score(*affinity, "plain"), 0);
  EXPECT_EQ(Score(*affinity, "zone-a"), 75 * kPreferenceStep);
  EXPECT_EQ(Score(*affinity, "both"), 100 * kPreferenceStep);
  EXPECT_EQ(Why(*affinity, "plain"), "") << "a preference refuses no node";
}

TEST_F(PluginTest, NodeAffinityThatTheProfileAdds) {
  const auto affinity = Only("NodeAffinity",
                             R"({"addedAffinity":{
        "requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
          {"matchExpressions":[{"key":"pool","operator":"In","values":["a","b"]}]},
          {"matchFields":[{"key":"metadata.name","operator":"In","values":["named"]}]}]},
        "preferredDuringSchedulingIgnoredDuringExecution":[
          {"weight":10,"preference":{"matchExpressions":[{"key":"pool","operator":"In","values":["b"]}]}}]}})");
  for (const char* pool : {"a", "b", "c"}) {
    model::Node node = MakeNode(pool, 0);
    node.meta.labels.Set("pool", pool);
    AddNode(node);
  }
  AddNode(MakeNode("named", 0));
  constexpr char kEnforced[] = "X node(s) didn't match scheduler-enforced node affinity";
  Waiting({});
  EXPECT_EQ(Why(*affinity, "a"), "");
  EXPECT_EQ(Why(*affinity, "named"), "");
  EXPECT_EQ(Why(*affinity, "c"), kEnforced);
  EXPECT_EQ(Score(*affinity, "a"), 0);
  EXPECT_EQ(Score(*affinity, "b"), 100 * kPreferenceStep);
  // Beside the pod's own.
  model::PodSpec spec;
  spec.node_selector.Set("pool", "c");
  spec.preferred_node_terms = {{30, {{{"pool", SelectorOperator::kIn, {"a"}}}, {}}}};
  Waiting(spec);
  EXPECT_EQ(Why(*affinity, "c"), kEnforced);
  EXPECT_EQ(Why(*affinity, "a"), "X node(s) didn't match Pod's node affinity/selector");
  EXPECT_EQ(Score(*affinity, "a"), 100 * kPreferenceStep);
  EXPECT_EQ(Score(*affinity, "b"), 33 * kPreferenceStep);
}

TEST_F(PluginTest, NodeAffinityArgsThatMakeNoSense) {
  constexpr char kRequired[] = "args.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution";
  constexpr char kPreferred[] =
      "args.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]";
  const auto required = [](absl::string_view terms) {
    return absl::StrCat(
        R"({"addedAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[)",
        terms, "]}}}");
  };
  const auto preferred = [](absl::string_view term) {
    return absl::StrCat(R"({"addedAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[)",
                        term, "]}}");
  };
  const std::pair<std::string, std::string> cases[] = {
      {required(""), absl::StrCat(kRequired, ".nodeSelectorTerms: must have a term")},
      {required(R"({"matchExpressions":[{"key":"","operator":"Exists"}]})"), ".key: must not be"},
      {required(R"({"matchExpressions":[{"key":"a","operator":"Near"}]})"),
       ".matchExpressions[0].operator: \"Near\" is not an operator"},
      {required(R"({"matchExpressions":[{"key":"a","operator":"In"}]})"),
       ".values: must be given for In and NotIn"},
      {required(R"({"matchExpressions":[{"key":"a","operator":"Exists","values":["x"]}]})"),
       ".values: may not be given for Exists"},
      {required(R"({"matchExpressions":[{"key":"a","operator":"Gt","values":["x"]}]})"),
       ".values: must be one whole number"},
      {required(R"({"matchFields":[{"key":"metadata.uid","operator":"In","values":["x"]}]})"),
       ".key: must be metadata.name"},
      {required(R"({"matchLabels":{}})"), "matchLabels"},
      {preferred(R"({"weight":0,"preference":{}})"), absl::StrCat(kPreferred, ".weight")},
      {preferred(R"({"weight":101,"preference":{}})"), absl::StrCat(kPreferred, ".weight")},
      {preferred(R"({"preference":{}})"), absl::StrCat(kPreferred, ".weight: must be given")},
      {R"({"addedAffinity":7})", "args.addedAffinity"},
  };
  for (const auto& [args, message] : cases) {
    const auto made = NodeAffinity::Make(args);
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument) << args;
    EXPECT_THAT(std::string(made.status().message()), ::testing::HasSubstr(message)) << args;
  }
}

TEST_F(PluginTest, ResourceTypeKeepsPodsWithoutGpusOffGpuNodes) {
  const auto off = Only("ResourceType");
  const auto on = Only("ResourceType", R"({"keepOffGpuNodes": true})");
  AddNode(MakeNode("cpu", 0));
  AddNode(MakeNode("gpu", 8));
  Waiting({});
  EXPECT_EQ(Why(*off, "gpu"), "") << "as KAI has it, unless it is asked for";
  EXPECT_EQ(Why(*on, "gpu"), "U node(s) have GPUs, which are kept for pods that ask for them");
  EXPECT_EQ(Why(*on, "cpu"), "");
  model::PodSpec spec;
  spec.requests = {{model::kGpuName, 1000}};
  Waiting(spec);
  EXPECT_EQ(Why(*on, "gpu"), "");
}

TEST_F(PluginTest, ResourceType) {
  const auto type = Only("ResourceType");
  AddNode(MakeNode("cpu", 0));
  AddNode(MakeNode("gpu", 8));
  model::Node node = MakeNode("amd", 0);
  model::Set(node.allocatable, model::kAmdGpuName, 8000);
  AddNode(node);
  Waiting({});
  EXPECT_EQ(Score(*type, "cpu"), kResourceTypeStep);
  EXPECT_EQ(Score(*type, "gpu"), 0);
  EXPECT_EQ(Score(*type, "amd"), 0);
  for (const char* gpu : {model::kGpuName, model::kAmdGpuName}) {
    model::PodSpec spec;
    spec.requests = {{gpu, 1000}};
    Waiting(spec);
    for (const char* name : {"cpu", "gpu", "amd"}) EXPECT_EQ(Score(*type, name), 0) << gpu << name;
  }
}

}  // namespace
}  // namespace fairlead::plugins
