// What the tests have in the place of a kubelet: kwok, with the stages of tests/control-plane/kwok.
#include <memory>
#include <string>

#include "tests/integration/fixture.h"

namespace fairlead::integration {
namespace {

class KubeletTest : public IntegrationTest {
 protected:
  void SetUp() override {
    IntegrationTest::SetUp();
    Plane& plane = *Plane::Get();
    kwok_ = std::make_unique<ChildProcess>(plane.Kwok(), plane.NewFile("kwok.log"));
  }

  void TearDown() override {
    kwok_.reset();
    IntegrationTest::TearDown();
  }

  ::testing::AssertionResult IsInPhase(const std::string& pod, const std::string& phase) {
    return Eventually(
        pod + " " + phase, [&] { return Pod(pod).TextAt({"status", "phase"}) == phase; },
        [&] { return Pod(pod).TextAt({"status", "phase"}); });
  }

  std::unique_ptr<ChildProcess> kwok_;
};

// kwok sees some bindings twice, and plays what follows once more after the pod has been Running.
TEST_F(KubeletTest, APodThatIsStartedTwiceEndsAllTheSame) {
  MakeNode("n", 1);
  api().Merge(Path(kNodes, "n"), R"({"metadata":{"annotations":{"kwok.x-k8s.io/node":"fake"}}})");
  MakePod({.name = "twice"});
  ASSERT_EQ(BindPod("twice", "n"), 201);
  ASSERT_TRUE(IsInPhase("twice", "Running"));
  api().Merge(Path(kPods, "twice") + "/status", R"({"status":{"phase":"Pending"}})");
  ASSERT_TRUE(IsInPhase("twice", "Running"));
  api().Merge(Path(kPods, "twice"),
              R"({"metadata":{"annotations":{"fairlead.dev/run-seconds":"0.1"}}})");
  EXPECT_TRUE(IsInPhase("twice", "Succeeded"));
}

}  // namespace
}  // namespace fairlead::integration
