// DriverVersion on nodes and pods that are written here: no cluster, no other plugin.
#include "driver_version.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"

namespace example {
namespace {

using fairlead::framework::Code;
using fairlead::framework::Context;
using fairlead::framework::Framework;
using fairlead::framework::Registry;
using fairlead::framework::Status;
using fairlead::state::ClusterState;
using fairlead::state::StateOptions;

constexpr char kPodLabel[] = "example.com/min-driver";
constexpr char kNodeLabel[] = "nvidia.com/cuda.driver-version.major";

absl::StatusOr<std::unique_ptr<Framework>> MakeFramework(absl::string_view args) {
  Registry registry;
  const absl::Status registered = registry.Register(DriverVersion::kName, DriverVersion::Make);
  if (!registered.ok()) return registered;
  return Framework::Make({"test", {{DriverVersion::kName, 1, std::string(args)}}}, registry);
}

// The plugin alone, nodes "old" and "new", and "silent" without the label.
class DriverVersionTest : public ::testing::Test {
 protected:
  DriverVersionTest() : framework_(*MakeFramework("")), state_(OptionsFor(*framework_)) {
    for (const auto& [name, version] : {std::pair{"old", "535"}, {"new", "570"}, {"silent", ""}}) {
      fairlead::model::Node node = fairlead::model::testing::MakeNode(name, 8);
      if (*version != '\0') node.meta.labels.Set(kNodeLabel, version);
      state_.UpsertNode(node);
    }
  }
  static StateOptions OptionsFor(const Framework& framework) {
    StateOptions options;
    options.scheduler_names = {"fairlead"};
    options.plugin_labels = framework.PodLabels();  // as the scheduler does
    return options;
  }
  // A question about pods with this label.
  Context About(absl::string_view version) {
    fairlead::model::testing::PodBuilder pod("ns", absl::StrCat("wants-", version));
    if (!version.empty()) pod.Label(kPodLabel, version);
    state_.UpsertPod(pod);
    const auto id = state_.FindPod("ns", absl::StrCat("wants-", version));
    return {state_, state_.class_of(id), state_.pod(id).pod_class};
  }
  const fairlead::state::NodeInfo& Node(absl::string_view name) {
    return state_.node(state_.FindNode(name));
  }
  // Why the pod may not go there; "" if it may.
  std::string Why(absl::string_view version, absl::string_view node) {
    const Context context = About(version);
    Status why;
    const bool fits = framework_->Filter(context, Node(node), &why);
    EXPECT_EQ(framework_->Filter(context, Node(node), nullptr), fits);
    if (fits) return "";
    EXPECT_EQ(why.plugin, DriverVersion::kName);
    EXPECT_EQ(why.code, Code::kUnschedulableAndUnresolvable);
    return why.detail.empty() ? why.reason : absl::StrCat(why.reason, " ", why.detail);
  }

  std::unique_ptr<Framework> framework_;
  ClusterState state_;
};

TEST_F(DriverVersionTest, RefusesOlderDrivers) {
  EXPECT_EQ(Why("535", "old"), "");
  EXPECT_EQ(Why("535", "new"), "");
  EXPECT_EQ(Why("550", "new"), "");
  EXPECT_EQ(Why("550", "old"),
            absl::StrCat("node(s) have a GPU driver that is too old {", kNodeLabel, ": 535}"));
  EXPECT_EQ(Why("550", "silent"), "node(s) do not say the version of their GPU driver");
  EXPECT_EQ(Why("", "silent"), "") << "a pod that asks for nothing";
}

TEST_F(DriverVersionTest, PrefersTheOldestThatWillDo) {
  const Context context = About("530");
  EXPECT_GT(framework_->Score(context, Node("old")), framework_->Score(context, Node("new")));
  EXPECT_EQ(framework_->Score(About(""), Node("old")), framework_->Score(About(""), Node("new")));
}

TEST_F(DriverVersionTest, RefusesEverywhereWhatIsNoVersion) {
  for (const char* version : {"latest", "-1", "99999999999", ""}) {
    EXPECT_EQ(framework_->RefusesEverywhere(About(version).pod_class),
              *version == '\0' ? ""
                               : absl::StrCat("metadata.labels[", kPodLabel, "]: \"", version,
                                              "\" is not the major version of a driver"));
  }
}

TEST(DriverVersionArgsTest, AreStrict) {
  const auto error = [](absl::string_view args) {
    return std::string(DriverVersion::Make(args).status().message());
  };
  EXPECT_EQ(error(R"({"podLabel":"a","nodeLabel":"b"})"), "");
  EXPECT_EQ(error(R"({"podLable":"a"})"), "args.podLable: is not an argument of DriverVersion");
  EXPECT_EQ(error(R"({"podLabel":7})"), "args.podLabel: must be a string");
  EXPECT_EQ(error(R"({"nodeLabel":""})"), "args.nodeLabel: must not be empty");
}

}  // namespace
}  // namespace example
