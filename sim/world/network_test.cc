// The real adapters of kube/ over simulated networks: what they tell of the world is what its
// objects say.
#include "sim/world/network.h"

#include <deque>
#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/leader/lease.h"
#include "kube/watch/event_queue.h"
#include "kube/watch/source.h"
#include "kube/write/executor.h"
#include "sim/world/api_json.h"
#include "sim/world/api_testing.h"
#include "sim/world/virtual_clock.h"

namespace fairlead::sim::world {
namespace {

using model::Kind;
using What = decltype(model::Action::what);

// One replica's adapters, and what they have told.
struct Replica {
  Replica(TestWorld& world, const std::string& name, uint64_t seed)
      : clock(&world.time, world.time.now()),
        network(&world.time, &world.server, name, seed),
        executor(network, network, clock, queue, {}),
        source(network, network, clock, queue, {.reflector = {}, .seed = seed}) {}

  // Takes what has come; returns answers in order.
  void Drain() {
    std::vector<model::ClusterEvent> events;
    queue.DrainInto(events, absl::ZeroDuration());
    for (model::ClusterEvent& event : events) {
      if (auto* upsert = std::get_if<model::Upsert>(&event)) {
        if (auto* pod = std::get_if<model::Pod>(&upsert->object)) pods[pod->meta.name] = *pod;
      } else if (auto* gone = std::get_if<model::Delete>(&event)) {
        if (gone->kind == Kind::kPod) pods.erase(gone->name);
      } else if (auto* result = std::get_if<model::ActionResult>(&event)) {
        answers[result->action_id] = result->status;
      } else if (auto* synced = std::get_if<model::Synced>(&event)) {
        kinds.insert(synced->kind);
      }
    }
  }
  void Submit(uint64_t id, What what) {
    model::Action action;
    action.id = id;
    action.what = std::move(what);
    executor.Submit(action);
  }

  VirtualClock clock;
  Network network;
  kube::EventQueue queue;
  kube::Executor executor;
  kube::ClusterSource source;
  std::map<std::string, model::Pod> pods;
  std::map<uint64_t, absl::Status> answers;
  std::set<Kind> kinds;
};

TEST(NetworkWithAdaptersTest, AReplicaSyncsAndBinds) {
  TestWorld world;
  world.Create(ResourceType::kNodes, NodeJson("n1"));
  world.Create(ResourceType::kPods, PodJson("a"));
  Replica replica(world, "r1", 1);
  replica.source.Start();
  world.Run(absl::Seconds(1));
  EXPECT_TRUE(replica.source.Synced()) << replica.source.Health(absl::Minutes(1));
  replica.Drain();
  EXPECT_EQ(replica.kinds.size(), std::size(model::kAllKinds));
  ASSERT_TRUE(replica.pods.contains("a"));
  replica.Submit(1, model::BindPod{"default", "a", replica.pods["a"].meta.uid, "n1", {{"k", "v"}}});
  world.Run(absl::Seconds(1));
  replica.Drain();
  EXPECT_TRUE(replica.answers.at(1).ok()) << replica.answers.at(1);
  EXPECT_EQ(replica.pods["a"].node_name, "n1");
  const Json& pod = world.Get(ResourceType::kPods, "a");
  EXPECT_EQ(TextAt(pod, {"spec", "nodeName"}), "n1");
  EXPECT_EQ(TextAt(pod, {"metadata", "annotations", "k"}), "v");
  EXPECT_THAT(world.server.unimplemented(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace fairlead::sim::world
