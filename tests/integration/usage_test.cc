// The usage of queues outlives the process: the real process, restarted on the real API server.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "queues/usage_record.h"
#include "tests/integration/fixture.h"

namespace fairlead::integration {
namespace {

constexpr char kMaps[] = "/api/v1/namespaces/kube-system/configmaps";
constexpr char kMap[] = "/api/v1/namespaces/kube-system/configmaps/fairlead-usage";

class UsageTest : public IntegrationTest {
 protected:
  void SetUp() override {
    IntegrationTest::SetUp();
    api().Delete(kMap);
  }
  void TearDown() override {
    IntegrationTest::TearDown();
    api().Delete(kMap);
  }
  static Settings WithUsage(const std::string& identity) {
    return {.identity = identity, .more = "usage:\n  windowSize: 1h\n  fetchInterval: 1s\n"};
  }
  std::string Text() { return api().Get(kMap).body.TextAt({"data", "usage"}); }
  // The stored record, once its text differs from `former`.
  queues::UsageRecord Stored(const std::string& former) {
    EXPECT_TRUE(Eventually("it is stored", [&] {
      const std::string text = Text();
      return !text.empty() && text != former;
    }));
    queues::UsageOptions options;
    options.window = absl::Hours(1);
    options.sample_interval = absl::Seconds(1);
    auto record = queues::UsageRecord::Decode(Text(), options);
    EXPECT_TRUE(record.ok()) << record.status();
    return record.ok() ? *std::move(record) : *queues::UsageRecord::Create(options);
  }
};

TEST_F(UsageTest, ARestartGoesOnWithIt) {
  MakeQueue("team", -1, -1);
  MakeNode("n1", 4);
  MakePod({.name = "p"});
  ChildProcess& first = Start(WithUsage("a"));
  EXPECT_TRUE(Says(first, "history=\"none yet\""));
  ASSERT_TRUE(Bound({"p"}));
  Stored("");
  const std::string before = Text();
  // A user keeps a note beside it.
  api().Merge(kMap, R"({"data":{"note":"ours"},"metadata":{"labels":{"team":"x"}}})");
  first.Kill();

  ChildProcess& second = Start(WithUsage("b"));
  EXPECT_TRUE(Says(second, "history=read"));
  // No pod holds anything any more, but the queue still has its past usage.
  const queues::UsageRecord after = Stored(before);
  EXPECT_GT(after.cell_count(), 0u);
  const Json map = api().Get(kMap).body;
  EXPECT_EQ(map.TextAt({"data", "note"}), "ours");
  EXPECT_EQ(map.TextAt({"metadata", "labels", "team"}), "x");
}

TEST_F(UsageTest, WhatIsNoRecordIsToldAndReplacedAndNothingElse) {
  api().Create(kMaps, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":)"
                      R"("fairlead-usage"},"data":{"usage":"half a rec","note":"ours"}})");
  MakeQueue("team", -1, -1);
  MakeNode("n1", 4);
  ChildProcess& process = Start(WithUsage("a"));
  EXPECT_TRUE(Says(process, "usage of queues could not be read; recording starts again"));
  MakePod({.name = "p"});
  ASSERT_TRUE(Bound({"p"}));
  Stored("half a rec");
  EXPECT_EQ(api().Get(kMap).body.TextAt({"data", "note"}), "ours");
}

}  // namespace
}  // namespace fairlead::integration
