#include "sim/watch.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace fairlead::sim {
namespace {

// A consumer that keeps the objects, by the contract of model::ClusterEvent alone.
struct Mirror {
  std::map<std::string, std::string> versions;  // "Pod ns/name uid" -> resource version
  std::set<model::Kind> synced;
  uint64_t pods_up_to = 0;  // the last Progress
  std::string broken;       // the contract, if it was

  void Take(const model::ClusterEvent& event) {
    if (const auto* upsert = std::get_if<model::Upsert>(&event)) {
      const model::ObjectMeta& meta = MetaOf(upsert->object);
      const model::Kind kind = KindOf(upsert->object);
      const std::string prefix = absl::StrCat(model::KindName(kind), " ", model::Key(meta), " ");
      auto first = versions.lower_bound(prefix);
      if (first != versions.end() && first->first.rfind(prefix, 0) == 0 &&
          first->first != prefix + meta.uid) {
        broken = "recreated without a deletion: " + prefix;
      }
      versions[prefix + meta.uid] = meta.resource_version;
    } else if (const auto* gone = std::get_if<model::Delete>(&event)) {
      versions.erase(absl::StrCat(model::KindName(gone->kind), " ",
                                  model::Key(gone->ns, gone->name), " ", gone->uid));
    } else if (const auto* done = std::get_if<model::Synced>(&event)) {
      synced.insert(done->kind);
    } else if (const auto* progress = std::get_if<model::Progress>(&event)) {
      if (!absl::SimpleAtoi(progress->resource_version, &pods_up_to)) broken = "not a version";
    }
  }
};

std::map<std::string, std::string> Truth(const ApiServer& server) {
  std::map<std::string, std::string> truth;
  for (model::Kind kind : model::kAllKinds) {
    server.ForEach(kind, [&](const Object& object) {
      const model::ObjectMeta& meta = MetaOf(object);
      truth[absl::StrCat(model::KindName(kind), " ", model::Key(meta), " ", meta.uid)] =
          meta.resource_version;
    });
  }
  return truth;
}

void ChangeSomething(ApiServer& server, Random& random) {
  const std::string name = absl::StrCat("p", random.Below(4));
  const std::string key = "ns/" + name;
  const bool there = server.Find<model::Pod>(key) != nullptr;
  if (!there) {
    model::Pod pod;
    pod.meta.ns = "ns";
    pod.meta.name = name;
    ASSERT_TRUE(server.Create(pod).ok());
  } else if (random.Below(3) == 0) {
    server.Remove<model::Pod>(key);
  } else {
    server.Modify<model::Pod>(key, [](model::Pod& pod) { pod.phase = model::PodPhase::kRunning; });
  }
  model::Node node;
  node.meta.name = absl::StrCat("n", random.Below(3));
  if (!server.Create(node).ok()) server.Remove<model::Node>(node.meta.name);
}

TEST(Watch, ListsEverythingBeforeItSaysSynced) {
  EventQueue queue(absl::UnixEpoch());
  ApiServer server(&queue);
  Faults faults({});
  Watch watch(&queue, &server, &faults, absl::Milliseconds(20));
  model::Queue research;
  research.meta.name = "research";
  ASSERT_TRUE(server.Create(research).ok());
  Mirror mirror;
  watch.Start([&](const model::ClusterEvent& event) {
    mirror.Take(event);
    if (std::holds_alternative<model::Synced>(event) &&
        std::get<model::Synced>(event).kind == model::Kind::kQueue) {
      EXPECT_EQ(mirror.versions.size(), 1u);
    }
  });
  EXPECT_TRUE(mirror.synced.empty()) << "nothing comes at once";
  queue.RunUntil(queue.now() + absl::Seconds(1));
  EXPECT_EQ(mirror.synced.size(), std::size(model::kAllKinds));
  EXPECT_EQ(watch.in_flight(), 0u);
}

// After any fault the consumer finally has the true objects, and no recreated object replaces
// another one without a deletion in between.
TEST(Watch, TellsTheTruthInTheEndUnderEveryFault) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    EventQueue queue(absl::UnixEpoch());
    ApiServer server(&queue);
    FaultOptions options;
    options.seed = seed;
    options.Set(FaultPoint::kWatchBreak, 50);
    options.Set(FaultPoint::kDuplicateEvent, 100);
    options.Set(FaultPoint::kSlowWatch, 100);
    Faults faults(options);
    Watch watch(&queue, &server, &faults, absl::Milliseconds(20));
    Random random(seed);
    Mirror mirror;
    watch.Start([&](const model::ClusterEvent& event) { mirror.Take(event); });
    for (int i = 0; i < 200; ++i) {
      ChangeSomething(server, random);
      queue.RunUntil(queue.now() + absl::Milliseconds(random.Between(0, 2000)));
      if (random.Below(60) == 0) {
        mirror = Mirror();
        watch.Start([&](const model::ClusterEvent& event) { mirror.Take(event); });
      }
    }
    faults.Stop();
    queue.RunUntil(queue.now() + absl::Minutes(2));
    EXPECT_EQ(mirror.versions, Truth(server));
    EXPECT_EQ(mirror.broken, "");
    for (const auto& [name, node] : server.All<model::Node>()) {
      uint64_t version = 0;
      ASSERT_TRUE(absl::SimpleAtoi(node.meta.resource_version, &version));
      EXPECT_GE(mirror.pods_up_to, version) << name;
    }
    EXPECT_EQ(mirror.synced.size(), std::size(model::kAllKinds));
  }
}

}  // namespace
}  // namespace fairlead::sim
