#include "core/queue_provisioning.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

class QueueProvisioningTest : public ::testing::Test {
 protected:
  static model::Queue Queue(const std::string& name, const std::string& parent = "") {
    model::Queue queue;
    queue.meta.name = name;
    queue.meta.uid = "uid-" + name;
    queue.parent = parent;
    return queue;
  }
  static model::Queue Capped(const std::string& name, const char* gpus, const char* cost) {
    model::Queue queue = Queue(name);
    if (gpus != nullptr) queue.meta.annotations.Set(kProvisionedGpuLimit, gpus);
    if (cost != nullptr) queue.meta.annotations.Set(kProvisionedCostLimit, cost);
    return queue;
  }
  static model::Queue WithOverQuota(const std::string& name, const std::string& parent,
                                    const std::string& value) {
    model::Queue queue = Queue(name, parent);
    queue.meta.annotations.Set(kOverQuota, value);
    return queue;
  }
  hook::QueueCap The() {
    const std::vector<hook::QueueCap> caps = caps_.InForce(tree_);
    EXPECT_THAT(caps, SizeIs(1));
    return caps.empty() ? hook::QueueCap() : caps.front();
  }
  model::ResourceNames names_;
  queues::QueueTree tree_{names_};
  QueueProvisioning caps_;
};

TEST_F(QueueProvisioningTest, ACapHoldsForAllQueuesBelow) {
  tree_.Upsert(Queue("top"));
  tree_.Upsert(Queue("mid", "top"));
  tree_.Upsert(Queue("leaf", "mid"));
  tree_.Upsert(Queue("other"));
  EXPECT_FALSE(caps_.Upsert(Queue("other")));
  EXPECT_TRUE(caps_.Upsert(Capped("top", "16", "12.345678")));
  EXPECT_FALSE(caps_.Upsert(Capped("top", "16", "12.345678")));
  const hook::QueueCap cap = The();
  EXPECT_EQ(cap.queue, "top");
  EXPECT_THAT(cap.queues, ElementsAre("leaf", "mid", "top"));
  EXPECT_EQ(cap.gpus, 16);
  EXPECT_EQ(cap.micro_usd_per_hour, 12345678);
  EXPECT_TRUE(caps_.Upsert(Queue("top"))) << "the annotations are gone";
  EXPECT_THAT(caps_.InForce(tree_), IsEmpty());
}

TEST_F(QueueProvisioningTest, AWrongValueOpensNothing) {
  for (const char* wrong : {"", "-1", "many", "1.5", "99999999999999999999", "1e3"}) {
    SCOPED_TRACE(wrong);
    QueueProvisioning caps;
    EXPECT_TRUE(caps.Upsert(Capped("q", wrong, nullptr)));
    ASSERT_THAT(caps.InForce(tree_), SizeIs(1));
    EXPECT_EQ(caps.InForce(tree_).front().gpus, 0);
    EXPECT_EQ(caps.InForce(tree_).front().micro_usd_per_hour, model::kUnlimited);
    const std::vector<model::EmitEvent> events = caps.TakeEvents();
    ASSERT_THAT(events, SizeIs(1));
    EXPECT_EQ(events.front().reason, "QueueCapRefused");
    EXPECT_THAT(events.front().note, HasSubstr(kProvisionedGpuLimit));
    EXPECT_THAT(events.front().note, HasSubstr("nothing is provisioned for the queue"));
  }
  EXPECT_TRUE(caps_.Upsert(Capped("q", nullptr, "-5")));
  EXPECT_EQ(The().micro_usd_per_hour, 0);
}

TEST_F(QueueProvisioningTest, TheLastRightValueStaysInForceAndTheFaultIsToldOnce) {
  caps_.Upsert(Capped("q", "8", "10"));
  EXPECT_TRUE(caps_.Upsert(Capped("q", "eight", "20")));
  EXPECT_EQ(The().gpus, 8);
  EXPECT_EQ(The().micro_usd_per_hour, 20'000'000);
  EXPECT_THAT(caps_.TakeEvents(), SizeIs(1));
  EXPECT_FALSE(caps_.Upsert(Capped("q", "eight", "20")));
  EXPECT_THAT(caps_.TakeEvents(), IsEmpty());
  // Another object of that name: what the former said does not count.
  model::Queue again = Capped("q", "eight", nullptr);
  again.meta.uid = "another";
  EXPECT_TRUE(caps_.Upsert(again));
  EXPECT_EQ(The().gpus, 0);
  EXPECT_TRUE(caps_.Remove("q"));
  EXPECT_THAT(caps_.InForce(tree_), IsEmpty());
}

TEST_F(QueueProvisioningTest, WhatComesFirstAboveQuotaIsInherited) {
  using engine::OverQuota;
  for (const auto& [name, parent] : {std::pair("top", ""),
                                     {"buys", "top"},
                                     {"evicts", "top"},
                                     {"weighs", "top"},
                                     {"other", ""}}) {
    tree_.Upsert(Queue(name, parent));
  }
  const auto leaves = [&](OverQuota configured) {
    return caps_.OverQuotaOfLeaves(tree_, configured);
  };
  const auto bought = [](const char* name) { return Pair(name, OverQuota::kBuyNodes); };
  const auto weighed = [](const char* name) { return Pair(name, OverQuota::kWeigh); };
  EXPECT_THAT(leaves(OverQuota::kEvict), IsEmpty());
  EXPECT_THAT(leaves(OverQuota::kBuyNodes),
              ElementsAre(bought("buys"), bought("evicts"), bought("other"), bought("weighs")));
  EXPECT_TRUE(caps_.Upsert(WithOverQuota("top", "", "BuyNodes")));
  EXPECT_TRUE(caps_.Upsert(WithOverQuota("evicts", "top", "Evict")));
  EXPECT_TRUE(caps_.Upsert(WithOverQuota("weighs", "top", "Weigh")));
  EXPECT_THAT(leaves(OverQuota::kEvict), ElementsAre(bought("buys"), weighed("weighs")));
  EXPECT_THAT(leaves(OverQuota::kWeigh),
              ElementsAre(bought("buys"), weighed("other"), weighed("weighs")));
  EXPECT_THAT(caps_.InForce(tree_), IsEmpty()) << "it is no cap";
  // What is wrong changes nothing.
  EXPECT_TRUE(caps_.Upsert(WithOverQuota("top", "", "buy")));
  EXPECT_THAT(leaves(OverQuota::kEvict), ElementsAre(bought("buys"), weighed("weighs")));
  const std::vector<model::EmitEvent> events = caps_.TakeEvents();
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events.front().note,
            "metadata.annotations[fairlead.dev/over-quota]: \"buy\" must be Evict, BuyNodes or "
            "Weigh; the last right value stays in force");
  EXPECT_TRUE(caps_.Upsert(WithOverQuota("other", "", "")));
  EXPECT_THAT(caps_.TakeEvents().front().note, HasSubstr("as if it were not there"));
  EXPECT_THAT(leaves(OverQuota::kEvict), ElementsAre(bought("buys"), weighed("weighs")));
}

}  // namespace
}  // namespace fairlead::core
