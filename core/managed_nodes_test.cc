#include "core/managed_nodes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/random.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/testing/builders.h"

namespace fairlead::core {
namespace {

using fairlead::testing::Random;
using model::testing::MakeNode;
using model::testing::PodBuilder;

// Nodes and their requests, pods on them, and what is written about both.
class UsesWorld {
 public:
  UsesWorld() {
    options_.provider = "kwok";
    hook_ = std::make_unique<hook::Hook>(options_, &hook::Catalog::BuiltIn());
    nodes_ = std::make_unique<ManagedNodes>(state_, *hook_);
  }

  void Change(Random& random) {
    const std::string node = absl::StrCat("node-", random.Between(1, 8));
    const std::string pod = absl::StrCat("pod-", random.Between(1, 20));
    switch (random.Between(0, 6)) {
      case 0:
        return (void)nodes_->Remove(node, "");
      case 1:
        return (void)state_.RemovePod("ns", pod, "");
      case 2:
        return AddPod(pod, node, random.OneIn(3));
      case 3:
        return ShowRequest(node, random.OneIn(2));
      case 4:
        return (void)nodes_->RequestChanged(node, {});
      default:
        return AddNode(node, random);
    }
  }
  const std::vector<hook::NodeUse>& Uses(Random& random) {
    std::set<state::NodeId> promised;
    const state::NodeId node = state_.FindNode(absl::StrCat("node-", random.Between(1, 8)));
    if (node != state::kNoId && random.OneIn(2)) promised.insert(node);
    now_ += absl::Seconds(random.Between(0, 8));
    return nodes_->Uses(promised, now_);
  }
  const std::vector<uint64_t>& versions() { return nodes_->use_versions(); }

 private:
  void AddNode(const std::string& name, Random& random) {
    model::Node node = MakeNode(name, random.Between(0, 1));
    node.meta.labels.Set(model::kNodeRequestLabel, name);
    node.meta.resource_version = absl::StrCat(++version_);
    node.ready = random.OneIn(2);
    if (random.OneIn(3)) node.provider_id = absl::StrCat("cloud://", name);
    if (random.OneIn(3)) {
      node.taints = {{model::kRemovalTaint, "", model::TaintEffect::kNoSchedule}};
    }
    if (random.OneIn(4)) node.meta.annotations.Set(model::kDoNotRemoveAnnotation, "true");
    nodes_->Upsert(node);
  }
  void AddPod(const std::string& name, const std::string& node, bool daemon) {
    model::Pod pod = PodBuilder("ns", name).Cpu(100 * (1 + static_cast<int64_t>(name.size())));
    pod.node_name = node;
    pod.phase = model::PodPhase::kRunning;
    if (daemon) pod.meta.annotations.Set(model::kMirrorPodAnnotation, "it");
    state_.UpsertPod(pod);
  }
  void ShowRequest(const std::string& name, bool ready) {
    model::NodeRequest request;
    request.meta.name = name;
    request.meta.uid = absl::StrCat("uid-", name);
    request.phase = ready ? model::NodeRequestPhase::kReady : model::NodeRequestPhase::kLaunched;
    hook_->Observe(request);
    nodes_->RequestChanged(name, {});
  }

  hook::HookOptions options_;
  state::ClusterState state_{state::StateOptions()};
  std::unique_ptr<hook::Hook> hook_;
  std::unique_ptr<ManagedNodes> nodes_;
  absl::Time now_ = model::testing::At(0);
  int64_t version_ = 0;
};

TEST(ManagedNodesTest, AVersionIsOfOneUseAlone) {
  Random random;
  SCOPED_TRACE(random.Describe());
  UsesWorld world;
  std::map<uint64_t, hook::NodeUse> of_version;
  std::map<std::string, uint64_t> last;  // by name
  int64_t kept = 0, changed = 0;
  for (int round = 0; round < 3000 && !::testing::Test::HasFailure(); ++round) {
    for (int64_t i = random.Between(0, 2); i > 0; --i) world.Change(random);
    const std::vector<hook::NodeUse>& uses = world.Uses(random);
    ASSERT_EQ(world.versions().size(), uses.size());
    std::map<std::string, uint64_t> now;
    for (size_t i = 0; i < uses.size(); ++i) {
      const uint64_t version = world.versions()[i];
      ASSERT_NE(version, 0U);
      const auto [known, added] = of_version.emplace(version, uses[i]);
      EXPECT_EQ(known->second, uses[i]) << "round " << round << ", " << uses[i].name;
      EXPECT_TRUE(now.emplace(uses[i].name, version).second);
      const auto before = last.find(uses[i].name);
      if (before == last.end()) continue;
      const bool same = of_version.at(before->second) == uses[i];
      EXPECT_EQ(before->second == version, same) << uses[i].name << " did not change";
      same ? ++kept : ++changed;
    }
    last = std::move(now);
  }
  EXPECT_GT(kept, 1000);
  EXPECT_GT(changed, 500);
}

}  // namespace
}  // namespace fairlead::core
