// The statuses of KAI's controllers on the real API server, by `kaiStatus`, with the rights of
// manifests/base/rbac.yaml. None of those controllers runs.
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"

namespace fairlead::integration {
namespace {

class KaiStatusTest : public IntegrationTest {
 protected:
  Json Queue(const std::string& name) { return api().Get(Path(kQueues, name)).body; }
  Json Group(const std::string& name) { return api().Get(Path(kGroups, name)).body; }
  // Under status; empty: there is none.
  static std::string AmountIn(const Json& object, const std::vector<absl::string_view>& path,
                              absl::string_view resource) {
    const Json* at = object.Find("status");
    for (const absl::string_view key : path) at = at == nullptr ? nullptr : at->Find(key);
    return at == nullptr ? "" : at->TextAt({resource});
  }
  ::testing::AssertionResult GpusBecome(const std::string& queue, const std::string& allocated,
                                        const std::string& requested) {
    const auto now = [&] {
      const Json object = Queue(queue);
      return absl::StrCat(AmountIn(object, {"allocated"}, "nvidia.com/gpu"), "/",
                          AmountIn(object, {"requested"}, "nvidia.com/gpu"));
    };
    const std::string wanted = absl::StrCat(allocated, "/", requested);
    return Eventually(
        absl::StrCat("GPUs of ", queue, ": ", wanted), [&] { return now() == wanted; }, now);
  }
};

TEST_F(KaiStatusTest, QueuesAndGroupsAreCountedAsKaisControllersDo) {
  const std::string kubeconfig = InstallRights();
  MakeQueue("division", -1, -1);
  MakeQueue("team", -1, -1);
  api().Merge(Path(kQueues, "team"), R"({"spec":{"parentQueue":"division"}})");
  // What is not ours stays.
  api().Merge(Path(kQueues, "team") + "/status",
              R"({"status":{"conditions":[{"type":"OverQuota","status":"False"}]}})");
  MakeNode("n1", 2);
  MakeGroup("gang", 2);
  for (const char* pod : {"p0", "p1", "p2"}) MakePod({.name = pod, .group = "gang"});
  Start({.kubeconfig = kubeconfig, .more = "kaiStatus: true\n"});
  // Which two of the three is not said: they are of the same second.
  ASSERT_TRUE(GpusBecome("team", "2", "3"));
  MakePod({.name = "lone"});
  ASSERT_TRUE(GpusBecome("team", "2", "4"));
  ASSERT_TRUE(GpusBecome("division", "2", "4"));
  ASSERT_TRUE(Eventually("the counts of the group", [&] {
    const Json group = Group("gang");
    return AmountIn(group, {"resourcesStatus", "allocated"}, "nvidia.com/gpu") == "2" &&
           AmountIn(group, {"resourcesStatus", "requested"}, "nvidia.com/gpu") == "3";
  }));
  EXPECT_EQ(
      AmountIn(Group("gang"), {"resourcesStatus", "allocatedNonPreemptible"}, "nvidia.com/gpu"),
      "");
  const Json* const children = Queue("division").At({"status", "childQueues"});
  ASSERT_NE(children, nullptr);
  ASSERT_EQ(children->items().size(), 1U);
  EXPECT_EQ(children->items()[0].text(), "team");
  EXPECT_NE(FindCondition(Queue("team"), "OverQuota"), nullptr);

  // An amount that is no more is taken away, not left.
  for (const char* pod : {"p0", "p1", "p2", "lone"}) api().Delete(Path(kPods, pod));
  ASSERT_TRUE(GpusBecome("division", "", ""));
  ASSERT_TRUE(Eventually("the group is empty", [&] {
    return AmountIn(Group("gang"), {"resourcesStatus", "requested"}, "nvidia.com/gpu").empty();
  }));
  // Counts of another writer are put right; then nothing is written any more.
  api().Merge(Path(kQueues, "division") + "/status",
              R"({"status":{"allocated":{"nvidia.com/gpu":"7"}}})");
  ASSERT_TRUE(GpusBecome("division", "", ""));
}

}  // namespace
}  // namespace fairlead::integration
