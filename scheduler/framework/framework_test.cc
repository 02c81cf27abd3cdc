#include "scheduler/framework/framework.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"

namespace fairlead::framework {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What a toy plugin does is told by its args: a letter each.
//   n: refuses  s: refuses with kSuccess as code  x: applies to no class
struct Behaviour {
  bool refuses, bad_code, skips;
  explicit Behaviour(absl::string_view args)
      : refuses(args.find('n') != args.npos || args.find('s') != args.npos),
        bad_code(args.find('s') != args.npos),
        skips(args.find('x') != args.npos) {}
};

constexpr absl::string_view ToyName(Depends depends) {
  switch (depends) {
    case Depends::kNodeObject:
      return "Object";
    case Depends::kNodeUsage:
      return "Usage";
    case Depends::kCluster:
      return "Cluster";
  }
  return "";
}

template <Depends kDepends>
class ToyFilter : public FilterPlugin {
 public:
  explicit ToyFilter(absl::string_view args) : behaviour_(args) {}
  absl::string_view Name() const override { return ToyName(kDepends); }
  Depends DependsOn() const override { return kDepends; }
  bool FilterApplies(const state::PodClass&) const override { return !behaviour_.skips; }
  bool Filter(const Context&, const state::NodeInfo&, Status* why) const override {
    if (behaviour_.refuses && why != nullptr) {
      why->code = behaviour_.bad_code ? Code::kSuccess : Code::kUnschedulableAndUnresolvable;
      why->reason = "toy";
    }
    return !behaviour_.refuses;
  }

 private:
  Behaviour behaviour_;
};

// Scores 7, or the largest integer with "m".
template <Depends kDepends>
class ToyScore : public ScorePlugin {
 public:
  explicit ToyScore(absl::string_view args) : behaviour_(args), max_(args.find('m') != args.npos) {}
  absl::string_view Name() const override {
    if constexpr (kDepends == Depends::kNodeObject) return "ObjectScore";
    return kDepends == Depends::kCluster ? "ClusterScore" : "Score";
  }
  Depends DependsOn() const override { return kDepends; }
  bool ScoreApplies(const state::PodClass&) const override { return !behaviour_.skips; }
  int64_t Score(const Context&, const state::NodeInfo&) const override {
    return max_ ? std::numeric_limits<int64_t>::max() : 7;
  }
  int64_t Step() const override { return 1; }

 private:
  Behaviour behaviour_;
  bool max_;
};

class Both final : public FilterPlugin, public ScorePlugin {
 public:
  absl::string_view Name() const override { return "Both"; }
  Depends DependsOn() const override { return Depends::kNodeUsage; }
  bool Filter(const Context&, const state::NodeInfo&, Status*) const override { return false; }
  int64_t Score(const Context&, const state::NodeInfo&) const override { return 100; }
  int64_t Step() const override { return 1; }
};

// Reads the labels that its args name, separated by spaces.
class Reads final : public FilterPlugin {
 public:
  explicit Reads(absl::string_view args) : keys_(absl::StrSplit(args, ' ')) {}
  absl::string_view Name() const override { return "Reads"; }
  Depends DependsOn() const override { return Depends::kNodeObject; }
  std::vector<std::string> PodLabels() const override { return keys_; }
  bool Filter(const Context&, const state::NodeInfo&, Status*) const override { return true; }

 private:
  std::vector<std::string> keys_;
};

class Neither final : public Plugin {
 public:
  absl::string_view Name() const override { return "Neither"; }
  Depends DependsOn() const override { return Depends::kNodeObject; }
};

template <typename T>
PluginFactory FactoryOf() {
  return [](absl::string_view args) -> absl::StatusOr<std::unique_ptr<Plugin>> {
    return std::make_unique<T>(args);
  };
}

class FrameworkTest : public ::testing::Test {
 protected:
  FrameworkTest() : state_(Options()) {
    Add("Object", FactoryOf<ToyFilter<Depends::kNodeObject>>());
    Add("Usage", FactoryOf<ToyFilter<Depends::kNodeUsage>>());
    Add("Cluster", FactoryOf<ToyFilter<Depends::kCluster>>());
    Add("Score", FactoryOf<ToyScore<Depends::kNodeUsage>>());
    Add("ObjectScore", FactoryOf<ToyScore<Depends::kNodeObject>>());
    Add("ClusterScore", FactoryOf<ToyScore<Depends::kCluster>>());
    Add("Both", [](absl::string_view) -> absl::StatusOr<std::unique_ptr<Plugin>> {
      return std::make_unique<Both>();
    });
    Add("Neither", [](absl::string_view) -> absl::StatusOr<std::unique_ptr<Plugin>> {
      return std::make_unique<Neither>();
    });
    Add("Broken", [](absl::string_view) -> absl::StatusOr<std::unique_ptr<Plugin>> {
      return absl::InvalidArgumentError("args.colour: must be a string");
    });
    state_.UpsertNode(model::testing::MakeNode("n1", 8));
    state_.UpsertPod(model::testing::PodBuilder("ns", "p"));
  }
  static state::StateOptions Options() {
    state::StateOptions options;
    options.scheduler_names = {"fairlead"};
    return options;
  }
  void Add(absl::string_view name, PluginFactory factory) {
    ASSERT_TRUE(registry_.Register(name, std::move(factory)).ok());
  }
  std::unique_ptr<Framework> Make(std::vector<ProfilePlugin> plugins) {
    auto made = Framework::Make({"test", std::move(plugins)}, registry_);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? *std::move(made) : nullptr;
  }
  absl::Status Fails(std::vector<ProfilePlugin> plugins) {
    return Framework::Make({"test", std::move(plugins)}, registry_).status();
  }
  const state::PodClass& Class() { return state_.class_of(state_.FindPod("ns", "p")); }
  Context Ctx() { return {state_, Class(), state_.pod(state_.FindPod("ns", "p")).pod_class}; }
  const state::NodeInfo& Node() { return state_.node(state_.FindNode("n1")); }

  state::ClusterState state_;
  Registry registry_;
};

TEST_F(FrameworkTest, RegistryRefusesASecondPluginOfTheName) {
  const absl::Status status = registry_.Register("Both", FactoryOf<ToyFilter<Depends::kCluster>>());
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(registry_.Names(), ElementsAre("Both", "Broken", "Cluster", "ClusterScore", "Neither",
                                             "Object", "ObjectScore", "Score", "Usage"));
}

TEST_F(FrameworkTest, RegistryRefusesWhatNoConfigurationCanMean) {
  const PluginFactory toy = FactoryOf<ToyFilter<Depends::kCluster>>();
  for (const char* name : {"", "*"}) {
    const absl::Status status = registry_.Register(name, toy);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr("is no name of a plugin"));
  }
  EXPECT_EQ(registry_.Register("Late", nullptr).message(), "plugin Late: the factory is missing");
}

TEST_F(FrameworkTest, KnowsTheLabelsThatItsPluginsRead) {
  Add("Reads", FactoryOf<Reads>());
  EXPECT_THAT(Make({{"Object"}})->PodLabels(), ElementsAre());
  EXPECT_THAT(Make({{"Reads", 1, "b a b"}, {"Object"}})->PodLabels(), ElementsAre("a", "b"));
  const auto all =
      Framework::MakeAll({{"one", {{"Reads", 1, "b a"}}}, {"two", {{"Reads", 1, "c"}}}}, registry_);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT((*all)->PodLabels(), ElementsAre("a", "b", "c"));
}

TEST_F(FrameworkTest, MakeRefusals) {
  Add("Alias", FactoryOf<ToyFilter<Depends::kNodeObject>>());
  Add("Nothing",
      [](absl::string_view) -> absl::StatusOr<std::unique_ptr<Plugin>> { return nullptr; });
  struct Case {
    std::vector<ProfilePlugin> plugins;
    absl::StatusCode code;
    const char* text;
  };
  const Case cases[] = {
      {{{"Nope"}},
       absl::StatusCode::kNotFound,
       "profile test: plugin Nope: there is no plugin \"Nope\"; known: Alias, Both, Broken,"},
      {{{"Score"}, {"Score"}}, absl::StatusCode::kInvalidArgument, "plugin Score: named twice"},
      {{{"Score", -1}}, absl::StatusCode::kInvalidArgument, "weight -1 is not between"},
      {{{"Score", kMaxWeight + 1}}, absl::StatusCode::kInvalidArgument, "is not between"},
      {{{"Alias"}}, absl::StatusCode::kInvalidArgument, "plugin Alias: it calls itself Object"},
      {{{"Nothing"}}, absl::StatusCode::kInvalidArgument, "it implements no extension point"},
      {{{"Neither"}}, absl::StatusCode::kInvalidArgument, "it implements no extension point"},
      {{{"Broken"}},
       absl::StatusCode::kInvalidArgument,
       "profile test: plugin Broken: args.colour: must be a string"},
  };
  for (const Case& c : cases) {
    const absl::Status status = Fails(c.plugins);
    EXPECT_EQ(status.code(), c.code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.text));
  }
}

TEST_F(FrameworkTest, FirstRefusalDecides) {
  auto framework = Make({{"Usage"}, {"Cluster", 1, "s"}, {"Object", 1, "n"}});
  Status why;
  EXPECT_FALSE(framework->Filter(Ctx(), Node(), &why));
  EXPECT_EQ(why.plugin, "Cluster");
  EXPECT_EQ(why.code, Code::kUnschedulable) << "a refusal is never a success";
  EXPECT_FALSE(framework->Filter(Ctx(), Node(), nullptr));
}

TEST_F(FrameworkTest, FiltersByWhatTheyDependOn) {
  auto object = Make({{"Object", 1, "n"}, {"Usage"}, {"Cluster"}});
  Status why;
  EXPECT_FALSE(object->FilterNodeObject(Ctx(), Node(), &why));
  EXPECT_EQ(why.code, Code::kUnschedulableAndUnresolvable);
  EXPECT_EQ(why.reason, "toy");
  EXPECT_TRUE(object->FilterNodeUsage(Ctx(), Node(), nullptr));
  for (const char* name : {"Usage", "Cluster"}) {
    auto framework = Make({{"Object"}, {name, 1, "n"}});
    EXPECT_TRUE(framework->FilterNodeObject(Ctx(), Node(), nullptr)) << name;
    EXPECT_EQ(framework->FilterNodeUsage(Ctx(), Node(), nullptr), std::string(name) == "Cluster");
    EXPECT_FALSE(framework->Filter(Ctx(), Node(), nullptr)) << name;
  }
}

TEST_F(FrameworkTest, PluginsThatDoNotApplyAreSkipped) {
  auto framework = Make({{"Cluster", 1, "nx"}, {"Score", 5, "x"}, {"ClusterScore", 3, "x"}});
  Status why;
  EXPECT_TRUE(framework->Filter(Ctx(), Node(), &why));
  EXPECT_EQ(why.code, Code::kSuccess);
  EXPECT_EQ(framework->Score(Ctx(), Node()), 0);
  EXPECT_TRUE(framework->NodeLocal(Class()));
}

TEST_F(FrameworkTest, ThePluginsOfAClassAnswerAsTheFramework) {
  for (const char* object : {"", "n", "x", "nx"}) {
    for (const char* usage : {"", "n", "x", "nx"}) {
      for (const char* cluster : {"n", "x", "nx"}) {
        for (const char* score : {"", "m", "x"}) {
          auto framework = Make({{"Usage", 1, usage},
                                 {"Object", 1, object},
                                 {"Cluster", 1, cluster},
                                 {"Score", 5, score},
                                 {"ObjectScore", 2, score},
                                 {"ClusterScore", 3}});
          const ClassPlugins plugins = framework->PluginsOf(Class());
          const auto where = [&] { return absl::StrCat(object, "|", usage, "|", cluster); };
          EXPECT_EQ(plugins.FilterNodeObject(Ctx(), Node()),
                    framework->FilterNodeObject(Ctx(), Node(), nullptr))
              << where();
          EXPECT_EQ(plugins.FilterNodeUsage(Ctx(), Node()),
                    framework->FilterNodeUsage(Ctx(), Node(), nullptr))
              << where();
          EXPECT_EQ(plugins.Score(Ctx(), Node()), framework->Score(Ctx(), Node())) << score;
          const int64_t by_object = plugins.ObjectScore(Ctx(), Node());
          EXPECT_EQ(by_object, Make({{"ObjectScore", 2, score}})->Score(Ctx(), Node())) << score;
          EXPECT_EQ(plugins.Score(Ctx(), Node(), by_object), framework->Score(Ctx(), Node()));
          EXPECT_EQ(plugins.node_local, framework->NodeLocal(Class())) << where();
        }
      }
    }
  }
}

TEST_F(FrameworkTest, AShareThatNoPluginKnowsIsRefused) {
  state_.UpsertPod(model::testing::PodBuilder("ns", "p").GpuFraction(500));
  ASSERT_TRUE(Class().spec->gpu_share.IsSet());
  auto framework = Make({{"Object"}, {"Usage"}});
  EXPECT_FALSE(framework->PluginsOf(Class()).FilterNodeObject(Ctx(), Node()));
  EXPECT_FALSE(framework->FilterNodeObject(Ctx(), Node(), nullptr));
}

TEST_F(FrameworkTest, ScoresAddUpByWeight) {
  EXPECT_EQ(Make({{"Score", 3}, {"ClusterScore", 2}})->Score(Ctx(), Node()), 35);
  EXPECT_EQ(Make({{"Score", 0}, {"ClusterScore", 2}})->Score(Ctx(), Node()), 14);
  EXPECT_EQ(Make({{"Score", 3}})->Score(Ctx(), Node()), 21);
  EXPECT_EQ(Make({{"Score", 3, "m"}, {"ClusterScore", 2, "m"}})->Score(Ctx(), Node()),
            std::numeric_limits<int64_t>::max());
}

TEST_F(FrameworkTest, APluginMayRunAtOnePointOnly) {
  auto both = Make({{"Both"}});
  EXPECT_FALSE(both->Filter(Ctx(), Node(), nullptr));
  EXPECT_EQ(both->Score(Ctx(), Node()), 100);
  auto no_filter = Make({{"Both", 1, "", false, true}});
  EXPECT_TRUE(no_filter->Filter(Ctx(), Node(), nullptr));
  EXPECT_EQ(no_filter->Score(Ctx(), Node()), 100);
  auto no_score = Make({{"Both", 1, "", true, false}});
  EXPECT_FALSE(no_score->Filter(Ctx(), Node(), nullptr));
  EXPECT_EQ(no_score->Score(Ctx(), Node()), 0);
}

TEST_F(FrameworkTest, NodeLocalUnlessSomethingLooksElsewhere) {
  EXPECT_TRUE(Make({{"Object"}, {"Usage"}, {"Score"}})->NodeLocal(Class()));
  EXPECT_FALSE(Make({{"Object"}, {"Cluster"}})->NodeLocal(Class()));
  EXPECT_FALSE(Make({{"ClusterScore"}})->NodeLocal(Class()));
  EXPECT_TRUE(Make({{"ClusterScore", 0}})->NodeLocal(Class())) << "weight 0 is never asked";
}

}  // namespace
}  // namespace fairlead::framework
