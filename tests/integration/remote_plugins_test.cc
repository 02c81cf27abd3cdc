// Plugins in other programs beside a real API server: the ones of examples/remote-plugin, in C++
// and in Python, hold and refuse bindings, hang, die and come back.
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"

namespace fairlead::integration {
namespace {

constexpr char kCentre[] = "example.com/cost-centre";

enum class Language { kCpp, kPython };

class RemotePluginsTest : public IntegrationTest, public ::testing::WithParamInterface<Language> {
 protected:
  void SetUp() override {
    IntegrationTest::SetUp();
    MakeQueue("team", -1, -1);
    MakeNode("n1", 8);
    centres_ = Plane::Get()->NewFile("centres.txt");
    // The path of a socket file may have some 100 characters.
    address_ = absl::StrCat("unix:///tmp/fairlead-plugin-", getpid(), "-", ++sockets_, ".sock");
    WriteCentres("cad open\nsim closed\n");
  }
  void WriteCentres(const std::string& lines) {
    // Written beside it and renamed: a plugin reads all of it or none.
    const std::string next = absl::StrCat(centres_, ".next");
    std::ofstream(next) << lines;
    ASSERT_EQ(rename(next.c_str(), centres_.c_str()), 0);
  }
  void Serve() {
    std::vector<std::string> argv;
    if (GetParam() == Language::kPython) {
      argv = {"/usr/bin/env", absl::StrCat("PYTHONPATH=", FAIRLEAD_PYTHON_STUBS), FAIRLEAD_PYTHON,
              absl::StrCat(FAIRLEAD_SOURCE_DIR, "/examples/remote-plugin/cost_centres.py")};
    } else {
      argv = {FAIRLEAD_COST_CENTRES};
    }
    argv.push_back(address_);
    argv.push_back(centres_);
    plugin_ = std::make_unique<ChildProcess>(argv, Plane::Get()->NewFile("plugin.log"));
    ASSERT_TRUE(Eventually(
        "the plugin serves", [&] { return absl::StrContains(plugin_->Log(), "serves at"); },
        [&] { return plugin_->Log(); }));
  }
  void Schedule(const std::string& permit_timeout = "10m", bool judges = false) {
    Settings settings;
    settings.more = absl::StrCat(
        "remotePlugins:\n- {name: CostCentres, address: \"", address_,
        "\", timeout: 2s, permitTimeout: ", permit_timeout, ", podLabels: [", kCentre, "]}\n",
        "---\napiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n",
        "profiles:\n- schedulerName: fairlead\n  plugins:\n",
        "    permit: {enabled: [{name: CostCentres}]}\n",
        "    postBind: {enabled: [{name: CostCentres}]}\n",
        judges ? "    filter: {enabled: [{name: CostCentres}]}\n"
                 "    score: {enabled: [{name: CostCentres}]}\n"
               : "");
    Start(settings);
  }
  void MakePodOf(const std::string& name, const std::string& centre,
                 const std::string& group = "") {
    MakePod(
        {.name = name,
         .group = group,
         .more_labels = centre.empty() ? "" : absl::StrCat("\"", kCentre, "\":\"", centre, "\",")});
  }
  bool Said(const std::string& line) {
    return Eventually(
        absl::StrCat("the plugin said ", line),
        [&] { return absl::StrContains(plugin_->Log(), line); }, [&] { return plugin_->Log(); });
  }
  bool Refused(const std::string& pod, const std::string& why) {
    const auto message = [&, pod] {
      const Json object = Pod(pod);
      const Json* const condition = FindCondition(object, "PodScheduled");
      return condition == nullptr ? "" : condition->TextAt({"message"});
    };
    return Eventually(
        absl::StrCat("refused with ", why),
        [&] { return VerdictOf(pod) == "BindingRefused" && absl::StrContains(message(), why); },
        [&] { return absl::StrCat(VerdictOf(pod), ": ", message()); });
  }

  static inline int sockets_ = 0;
  std::string centres_, address_;
  std::unique_ptr<ChildProcess> plugin_;
};

TEST_P(RemotePluginsTest, HoldsRefusesAndLetsPass) {
  Serve();
  Schedule();
  MakePodOf("open", "cad");
  ASSERT_TRUE(Bound({"open"}));
  EXPECT_TRUE(Said("\nbound default/open on n1"));
  MakePodOf("unknown", "art");
  EXPECT_TRUE(Refused("unknown", "CostCentres: cost centre \"art\" is not known"));
  MakePodOf("closed", "sim");
  MakePodOf("other", "");
  ASSERT_TRUE(Bound({"other"})) << "it is not asked about";
  ASSERT_TRUE(Eventually("the held pod names its node", [&] {
    return Pod("closed").TextAt({"status", "nominatedNodeName"}) == "n1";
  }));
  EXPECT_EQ(NodeOf("closed"), "");
  WriteCentres("cad open\nsim open\nart open\n");
  ASSERT_TRUE(Bound({"closed", "unknown"}));
}

TEST_P(RemotePluginsTest, AGangIsBoundWholeAndAnUnboundPodIsTakenBack) {
  Serve();
  Schedule();
  MakeGroup("gang", 2);
  MakePodOf("a", "cad", "gang");
  MakePodOf("b", "sim", "gang");
  ASSERT_TRUE(Eventually("both hold their place", [&] {
    return Pod("a").TextAt({"status", "nominatedNodeName"}) == "n1" &&
           Pod("b").TextAt({"status", "nominatedNodeName"}) == "n1";
  }));
  EXPECT_EQ(NodeOf("a"), "") << "b has no permit";
  api().Delete(Path("/api/v1/namespaces/default/pods", "b"));
  EXPECT_TRUE(Said("not bound default/a on n1"));
  MakePodOf("c", "cad", "gang");
  ASSERT_TRUE(Bound({"a", "c"}));
}

TEST_P(RemotePluginsTest, OneThatIsAwayHarmsOnlyThePodsThatNeedIt) {
  Schedule();
  MakePodOf("needs", "cad");
  MakePodOf("other", "");
  ASSERT_TRUE(Bound({"other"}));
  EXPECT_TRUE(Refused("needs", absl::StrCat("plugin at ", address_)));
  Serve();
  ASSERT_TRUE(Bound({"needs"}));
  // It hangs: the binding fails after its time-out.
  plugin_->Signal(SIGSTOP);
  MakePodOf("hangs", "cad");
  MakePodOf("another", "");
  ASSERT_TRUE(Bound({"another"}));
  plugin_->Signal(SIGCONT);
  ASSERT_TRUE(Bound({"hangs"}));
  // It dies with a question open, and comes back.
  MakePodOf("waits", "sim");
  ASSERT_TRUE(Eventually(
      "it waits", [&] { return Pod("waits").TextAt({"status", "nominatedNodeName"}) == "n1"; }));
  plugin_->Kill();
  EXPECT_TRUE(Refused("waits", "CostCentres: "));
  WriteCentres("sim open\n");
  Serve();
  ASSERT_TRUE(Bound({"waits"}));
}

TEST_P(RemotePluginsTest, APermitHasATimeOut) {
  Serve();
  Schedule("1s");
  MakePodOf("closed", "sim");
  EXPECT_TRUE(Refused("closed", "did not permit within 1s"));
  EXPECT_TRUE(Said("not bound default/closed on n1"));
}

// Of cost centre `centre`, at this price.
std::string LabelsOf(const std::string& centre, const std::string& cents) {
  return absl::StrCat(R"({"metadata":{"labels":{)",
                      centre.empty() ? "" : absl::StrCat("\"", kCentre, "\":\"", centre, "\","),
                      R"("example.com/cents-per-hour":")", cents, R"("}}})");
}

TEST_P(RemotePluginsTest, ItSaysWhereThePodsGo) {
  MakeNode("n2", 8);
  MakeNode("n3", 8);
  for (const auto& [node, centre, cents] :
       {std::tuple{"n1", "", "80"}, {"n2", "", "20"}, {"n3", "sim", "5"}}) {
    api().Merge(Path("/api/v1/nodes", node), LabelsOf(centre, cents));
  }
  Schedule("10m", /*judges=*/true);
  MakePodOf("first", "cad");
  MakePodOf("other", "");
  ASSERT_TRUE(Bound({"other"})) << "it is not asked about";
  EXPECT_EQ(NodeOf("first"), "") << "the plugin is away";
  Serve();
  ASSERT_TRUE(Bound({"first"}));
  EXPECT_EQ(NodeOf("first"), "n2") << "the cheaper of the two that admit it";
  WriteCentres("cad open\nsim open\n");
  MakePodOf("second", "sim");
  ASSERT_TRUE(Bound({"second"}));
  EXPECT_EQ(NodeOf("second"), "n3");
  // The nodes change, and it is asked again: none is left for the centre.
  api().Merge(Path("/api/v1/nodes", "n1"), LabelsOf("sim", "3"));
  api().Merge(Path("/api/v1/nodes", "n2"), LabelsOf("sim", "1"));
  int probes = 0;
  ASSERT_TRUE(Eventually("pods of the other centre go to the cheapest node now", [&] {
    const std::string probe = absl::StrCat("probe-", ++probes);
    MakePodOf(probe, "sim");
    return Bound({probe}) && NodeOf(probe) == "n2";
  }));
  MakePodOf("third", "cad");
  const auto message = [&] {
    const Json object = Pod("third");
    const Json* const condition = FindCondition(object, "PodScheduled");
    return condition == nullptr ? "" : condition->TextAt({"message"});
  };
  EXPECT_TRUE(Eventually(
      "it is refused everywhere",
      [&] { return absl::StrContains(message(), "3 node(s) of another cost centre"); }, message));
  // It dies. A node for the centre comes while it is away, and it judges that when it is back.
  plugin_->Kill();
  MakeNode("n4", 8);
  api().Merge(Path("/api/v1/nodes", "n4"), LabelsOf("cad", "1"));
  Serve();
  ASSERT_TRUE(Bound({"third"}));
  EXPECT_EQ(NodeOf("third"), "n4");
}

INSTANTIATE_TEST_SUITE_P(Examples, RemotePluginsTest,
                         ::testing::Values(Language::kCpp, Language::kPython),
                         [](const auto& each) {
                           return each.param == Language::kCpp ? "Cpp" : "Python";
                         });

}  // namespace
}  // namespace fairlead::integration
