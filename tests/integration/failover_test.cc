// Two replicas with leader election, nodes that are provisioned, and leaders that are killed at
// random moments: what one of them had begun is done by the next, and nothing is done twice.
//
// FAIRLEAD_KILLS says how many (3), FAIRLEAD_KILL_SEED which moments.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/integration/fixture.h"

namespace fairlead::integration {
namespace {

constexpr int kLonePods = 2;
constexpr int kGangPods = 3;
// The time from the pods' creation to their nodes, roughly: a kill comes before, within or after
// it.
constexpr int kLatestKill_ms = 1000;

int Setting(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  int value = 0;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

class FailoverTest : public IntegrationTest {
 protected:
  void SetUp() override {
    IntegrationTest::SetUp();
    MakeQueue("team", -1, -1);
    api().Create(kPools, R"({"apiVersion":"fairlead.dev/v1alpha1","kind":"NodePool",)"
                         R"("metadata":{"name":"gpu"},"spec":{"instanceTypes":["g5.xlarge"]}})");
  }
  void TearDown() override {
    Empty(kPools);
    IntegrationTest::TearDown();
  }

  void StartReplica() {
    const std::string name = absl::StrCat("replica-", ++started_);
    // Many kills need more nodes in a minute than the rate of provisioning allows by default.
    replicas_[name] = &Start({.identity = name,
                              .hook = true,
                              .more_of_hook = "  provisioningBurst: 1000\n"
                                              "  totalProvisioningBurst: 1000\n",
                              .election = {3, 2, 1}});
  }
  // The replica that leads; null if none of those that live does.
  ChildProcess* Leader() {
    const auto leader = replicas_.find(api().Get(kLease).body.TextAt({"spec", "holderIdentity"}));
    return leader == replicas_.end() ? nullptr : leader->second;
  }
  void KillLeader() {
    const auto leader = std::find_if(replicas_.begin(), replicas_.end(),
                                     [now = Leader()](const auto& r) { return r.second == now; });
    leader->second->Kill();
    replicas_.erase(leader);
  }
  // Some alone and some in a gang, each of which needs a node of its own.
  std::vector<std::string> MakePods(int round) {
    std::vector<std::string> pods;
    for (int i = 0; i < kLonePods; ++i) {
      pods.push_back(absl::StrCat("alone-", round, "-", i));
      MakePod({.name = pods.back()});
    }
    const std::string gang = absl::StrCat("gang-", round);
    MakeGroup(gang, kGangPods);
    for (int i = 0; i < kGangPods; ++i) {
      pods.push_back(absl::StrCat(gang, "-", i));
      MakePod({.name = pods.back(), .group = gang});
    }
    return pods;
  }

  std::map<std::string, ChildProcess*> replicas_;  // that live, by identity
  int started_ = 0;
};

TEST_F(FailoverTest, WhatALeaderHasBegunIsDoneOnceWheneverItIsKilled) {
  const int kills = Setting("FAIRLEAD_KILLS", 3), seed = Setting("FAIRLEAD_KILL_SEED", 1);
  std::mt19937 random(static_cast<uint32_t>(seed));
  const auto history = api().Watch(kPods);
  StartReplica();
  StartReplica();
  std::vector<std::string> pods;
  std::vector<absl::Duration> pauses;  // from a kill until another replica leads
  for (int round = 0; round < kills; ++round) {
    SCOPED_TRACE(absl::StrCat("kill ", round, " of FAIRLEAD_KILL_SEED=", seed));
    ASSERT_TRUE(Eventually("a replica leads", [&] { return Leader() != nullptr; }));
    const std::vector<std::string> made = MakePods(round);
    pods.insert(pods.end(), made.begin(), made.end());
    absl::SleepFor(absl::Milliseconds(random() % kLatestKill_ms));
    KillLeader();
    const absl::Time killed = absl::Now();
    ASSERT_TRUE(Eventually("another replica leads", [&] { return Leader() != nullptr; }));
    pauses.push_back(absl::Now() - killed);
    StartReplica();
    ASSERT_TRUE(Bound(made));
  }
  std::map<std::string, std::set<std::string>> nodes;  // that each pod was on, by uid
  for (const History::Event& event : history->events()) {
    EXPECT_NE(event.type, "DELETED") << event.object.TextAt({"metadata", "name"});
    const std::string node = event.object.TextAt({"spec", "nodeName"});
    if (!node.empty()) nodes[event.object.TextAt({"metadata", "uid"})].insert(node);
  }
  std::set<std::string> used;
  for (const auto& [uid, on] : nodes) {
    EXPECT_EQ(on.size(), 1U) << uid;
    used.insert(on.begin(), on.end());
  }
  EXPECT_EQ(nodes.size(), pods.size()) << "a pod was made once, and bound once";
  EXPECT_EQ(used.size(), pods.size()) << "each has a node of its own";
  EXPECT_EQ(api().List(kRequests).size(), pods.size()) << "no node was provisioned twice";
  ExpectNoNodeOvercommitted();
  std::sort(pauses.begin(), pauses.end());
  std::cout << kills << " leaders killed; another one led after "
            << absl::FormatDuration(absl::Trunc(pauses[pauses.size() / 2], absl::Milliseconds(1)))
            << " (median), "
            << absl::FormatDuration(absl::Trunc(pauses.back(), absl::Milliseconds(1)))
            << " (longest), with a lease of 3s\n";
}

}  // namespace
}  // namespace fairlead::integration
