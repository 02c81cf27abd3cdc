#include "cmd/fairlead/webhook/webhook_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "admission/names.h"
#include "autoscale-hook/catalog/catalog.h"
#include "core/configuration.h"
#include "core/decision_loop.h"

namespace fairlead::cmd {
namespace {

model::Upsert QueueSeen(const std::string& name, const std::string& parent = "",
                        int64_t generation = 0) {
  model::Queue queue;
  queue.meta.name = name;
  queue.meta.generation = generation;
  queue.parent = parent;
  return {queue};
}

model::Upsert NamespaceSeen(const std::string& name, const std::string& queue) {
  model::Namespace ns;
  ns.meta.name = name;
  if (!queue.empty()) ns.meta.labels.Set(admission::kDefaultQueueLabel, queue);
  return {ns};
}

class WebhookCacheTest : public ::testing::Test {
 protected:
  void Sync() {
    cache_.OnEvent(model::Synced{model::Kind::kQueue});
    cache_.OnEvent(model::Synced{model::Kind::kNamespace});
  }
  static std::unique_ptr<core::DecisionLoop> Loop() {
    return *core::DecisionLoop::Make(core::OptionsWithoutHook(), &hook::Catalog::BuiltIn());
  }
  WebhookCache cache_;
};

TEST_F(WebhookCacheTest, KnowsNothingBeforeBothKindsWereListed) {
  cache_.OnEvent(QueueSeen("a"));
  EXPECT_EQ(cache_.Get(), nullptr);
  cache_.OnEvent(model::Synced{model::Kind::kQueue});
  cache_.OnEvent(model::Synced{model::Kind::kPod});
  EXPECT_EQ(cache_.Get(), nullptr);
  cache_.OnEvent(model::Synced{model::Kind::kNamespace, /*missing=*/true});
  ASSERT_NE(cache_.Get(), nullptr);
  EXPECT_TRUE(cache_.Get()->queues.contains("a"));
}

TEST_F(WebhookCacheTest, FollowsChanges) {
  Sync();
  cache_.OnEvent(QueueSeen("a"));
  cache_.OnEvent(NamespaceSeen("team", "a"));
  cache_.OnEvent(NamespaceSeen("other", ""));
  const auto before = cache_.Get();
  EXPECT_EQ(before->default_queues.at("team"), "a");
  EXPECT_FALSE(before->default_queues.contains("other"));
  EXPECT_EQ(cache_.Get(), before);  // nothing has changed
  cache_.OnEvent(QueueSeen("a", "b"));
  cache_.OnEvent(NamespaceSeen("team", "b"));
  EXPECT_EQ(cache_.Get()->queues.at("a")->parent, "b");
  EXPECT_EQ(cache_.Get()->default_queues.at("team"), "b");
  EXPECT_EQ(before->queues.at("a")->parent, "");  // what was given stays as it was
  cache_.OnEvent(NamespaceSeen("team", ""));
  cache_.OnEvent(model::Delete{model::Kind::kQueue, "", "a", ""});
  EXPECT_TRUE(cache_.Get()->queues.empty());
  EXPECT_TRUE(cache_.Get()->default_queues.empty());
}

TEST_F(WebhookCacheTest, AStatusIsNoChange) {
  Sync();
  cache_.OnEvent(QueueSeen("a", "", 3));
  const auto before = cache_.Get();
  cache_.OnEvent(QueueSeen("a", "", 3));
  EXPECT_EQ(cache_.Get(), before);
  cache_.OnEvent(QueueSeen("a", "", 4));
  EXPECT_NE(cache_.Get(), before);
}

// A new configuration lists everything again: what has gone meanwhile is not told.
TEST_F(WebhookCacheTest, ANewLoopBeginsAnew) {
  const auto first = Loop();
  cache_.OnEvent(QueueSeen("a"));
  cache_.OnTick(*first, absl::UnixEpoch());
  Sync();
  EXPECT_TRUE(cache_.Get()->queues.contains("a"));
  const auto second = Loop();
  cache_.OnTick(*second, absl::UnixEpoch());
  cache_.OnEvent(QueueSeen("b"));
  EXPECT_TRUE(cache_.Get()->queues.contains("a"));  // until all is known again
  Sync();
  EXPECT_FALSE(cache_.Get()->queues.contains("a"));
  EXPECT_TRUE(cache_.Get()->queues.contains("b"));
}

}  // namespace
}  // namespace fairlead::cmd
