#include "kube/watch/event_queue.h"

#include <atomic>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/watch/runtime_test_util.h"

namespace fairlead::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

model::ClusterEvent PodUpsert(const std::string& name, const std::string& uid,
                              const std::string& version) {
  model::Pod pod;
  pod.meta.ns = "ns";
  pod.meta.name = name;
  pod.meta.uid = uid;
  pod.meta.resource_version = version;
  return model::Upsert{pod};
}
model::ClusterEvent PodDelete(const std::string& name, const std::string& uid) {
  return model::Delete{model::Kind::kPod, "ns", name, uid};
}

TEST(EventQueueTest, KeepsTheOrder) {
  EventQueue queue;
  queue.Push(PodUpsert("a", "1", "1"));
  queue.Push(model::Synced{model::Kind::kPod});
  queue.Push(model::ActionResult{7, absl::OkStatus()});
  queue.Push(PodDelete("b", "2"));
  EXPECT_THAT(Told(queue), ElementsAre("+ns/a 1@1", "synced", "7 OK", "-ns/b 2"));
  EXPECT_THAT(Told(queue), IsEmpty());
}

TEST(EventQueueTest, MergesWhatIsStillQueued) {
  EventQueue queue;
  queue.Push(PodUpsert("a", "1", "1"));
  queue.Push(PodUpsert("b", "2", "2"));
  queue.Push(PodUpsert("a", "1", "3"));
  queue.Push(PodUpsert("c", "3", "4"));
  queue.Push(PodDelete("b", "2"));
  queue.Push(PodUpsert("b", "9", "6"));
  EXPECT_THAT(Told(queue), ElementsAre("+ns/a 1@3", "-ns/b 2", "+ns/c 3@4", "+ns/b 9@6"));
  EXPECT_EQ(queue.GetStats().merged, 2);
  queue.Push(PodUpsert("a", "1", "7"));
  EXPECT_THAT(Told(queue), ElementsAre("+ns/a 1@7")) << "drained events are merged with no more";
}

TEST(EventQueueTest, AnotherUidIsNeverMerged) {
  EventQueue queue;
  queue.Push(PodUpsert("a", "1", "1"));
  queue.Push(PodDelete("a", "other"));
  queue.Push(PodUpsert("a", "2", "2"));
  queue.Push(PodUpsert("a", "2", "3"));
  EXPECT_THAT(Told(queue), ElementsAre("+ns/a 1@1", "-ns/a other", "+ns/a 2@3"));
}

TEST(EventQueueTest, ObjectsOfTwoKindsAreTwoObjects) {
  EventQueue queue;
  model::Node node;
  node.meta.name = "x";
  node.meta.uid = "u";
  model::Queue other;
  other.meta = node.meta;
  queue.Push(model::Upsert{node});
  queue.Push(model::Upsert{other});
  queue.Push(model::Delete{model::Kind::kQueue, "", "x", "u"});
  EXPECT_THAT(Told(queue), ElementsAre("+x u@", "-x u"));
}

TEST(EventQueueTest, IsBoundedByObjects) {
  EventQueue queue;
  for (int i = 0; i < 10000; ++i) {
    queue.Push(PodUpsert(absl::StrCat(i % 10), "u", absl::StrCat(i)));
  }
  EXPECT_EQ(queue.GetStats().queued, 10u);
  EXPECT_EQ(queue.GetStats().peak, 10u);
  EXPECT_EQ(queue.GetStats().pushed, 10000);
}

TEST(EventQueueTest, AppendsToWhatTheConsumerHas) {
  EventQueue queue;
  std::vector<model::ClusterEvent> out;
  queue.Push(PodUpsert("a", "1", "1"));
  EXPECT_EQ(queue.DrainInto(out, absl::ZeroDuration()), 1u);
  queue.Push(PodUpsert("b", "1", "1"));
  EXPECT_EQ(queue.DrainInto(out, absl::ZeroDuration()), 1u);
  EXPECT_EQ(out.size(), 2u);
}

TEST(EventQueueTest, WakesTheConsumer) {
  EventQueue queue;
  std::atomic<int> wakes{0};
  queue.SetWakeCallback([&] { ++wakes; });
  std::thread producer([&] {
    queue.Push(PodUpsert("a", "1", "1"));
    queue.Push(PodUpsert("b", "1", "1"));
  });
  std::vector<model::ClusterEvent> out;
  while (out.size() < 2) queue.DrainInto(out, absl::InfiniteDuration());
  producer.join();
  EXPECT_GE(wakes, 1);

  std::thread waker([&] { queue.Wake(); });
  EXPECT_EQ(queue.DrainInto(out, absl::InfiniteDuration()), 0u);
  waker.join();
  queue.Wake();  // before the wait: not lost
  EXPECT_EQ(queue.DrainInto(out, absl::InfiniteDuration()), 0u);
}

TEST(EventQueueTest, GathersWhatComesSoonAfter) {
  EventQueue queue;
  std::vector<model::ClusterEvent> out;
  // Without an event there is nothing to gather for.
  EXPECT_EQ(queue.DrainInto(out, absl::ZeroDuration(), absl::Hours(1)), 0u);
  queue.Push(PodUpsert("a", "1", "1"));
  std::thread producer([&] {
    queue.Push(PodUpsert("b", "1", "1"));
    queue.Wake();  // ends the wait
  });
  EXPECT_EQ(queue.DrainInto(out, absl::InfiniteDuration(), absl::Hours(1)), 2u);
  producer.join();
  queue.Push(PodUpsert("c", "1", "1"));
  EXPECT_EQ(queue.DrainInto(out, absl::ZeroDuration(), absl::Milliseconds(1)), 1u);
}

}  // namespace
}  // namespace fairlead::kube
