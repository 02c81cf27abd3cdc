// The first decisions on a cluster that KAI has been running (tests/takeover/cluster.yaml): running
// pods continue, are counted as KAI counted them, and KAI's data in objects stay valid.
#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"
#include "kube/codec/codec.h"

namespace fairlead::core {
namespace {

using testing::At;
using testing::Of;
using testing::PodBuilder;

constexpr char kCluster[] = "tests/takeover/cluster.yaml";

// AGO(3h) becomes the time three hours before `now`.
std::string WithTimes(std::string text, absl::Time now) {
  static constexpr absl::string_view kMark = "AGO(";
  for (size_t at = text.find("\"AGO("); at != std::string::npos; at = text.find("\"AGO(", at)) {
    const size_t begin = at + 1 + kMark.size();
    const size_t end = text.find(')', begin);
    absl::Duration age;
    EXPECT_TRUE(absl::ParseDuration(text.substr(begin, end - begin), &age));
    text.replace(at + 1, end - at,
                 absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", now - age, absl::UTCTimeZone()));
  }
  return text;
}

class TakeoverTest : public testing::DecisionLoopTest {
 protected:
  static constexpr int64_t kNow = 100'000;

  TakeoverTest() {
    options_.hook.enabled = false;
    Restart();
  }

  // Sends all objects of the API server, with the uids and ages that it gives them. `change` may
  // alter an object on its way.
  void TakeOver(const std::function<void(model::ObjectMeta&)>& change = nullptr) {
    for (kube::Object& object : Manifests()) {
      if (change != nullptr) {
        std::visit([&](auto& o) { change(o.meta); }, object);
      }
      loop_->Apply(model::Upsert{object});
    }
    SyncAll();
  }
  static std::vector<kube::Object> Manifests() {
    std::ifstream file(kCluster);
    EXPECT_TRUE(file.good()) << "run from the root of the repository";
    std::stringstream text;
    text << file.rdbuf();
    auto manifests = kube::DecodeManifests(WithTimes(text.str(), At(kNow)));
    EXPECT_TRUE(manifests.ok()) << manifests.status();
    if (!manifests.ok()) return {};
    EXPECT_TRUE(manifests->skipped.empty()) << manifests->skipped.front();
    int64_t age = 0;
    for (kube::Object& object : manifests->objects) {
      std::visit(
          [&](auto& o) {
            o.meta.uid = absl::StrCat("uid-", o.meta.ns, "-", o.meta.name);
            o.meta.creation = At(age++);
          },
          object);
    }
    return std::move(manifests->objects);
  }

  // Makes moving impossible: otherwise `half` and `slice` could move to the GPUs of `multi`.
  void MoveNoPod() {
    options_.engine.consolidation = false;
    options_.engine.consolidating_reclaim = false;
    Restart();
  }
  static PodBuilder NewPod(const std::string& name, const std::string& queue) {
    return PodBuilder("default", name)
        .Scheduler(model::kKaiSchedulerName)
        .Queue(queue)
        .Created(kNow);
  }
  void Gone(const std::string& pod) {
    loop_->Apply(model::Delete{model::Kind::kPod, "default", pod, ""});
  }
  // A step that decides even if no timer is due.
  StepResult Decision(int64_t at) {
    Put(NewPod(absl::StrCat("lost-", at), "no-such-queue").Build());
    return Step(at);
  }
  static std::set<std::string> Evicted(const StepResult& result) {
    std::set<std::string> names;
    for (const model::EvictPod& evict : Of<model::EvictPod>(result)) names.insert(evict.name);
    return names;
  }
  static std::map<std::string, std::string> Bound(const StepResult& result) {
    std::map<std::string, std::string> places;
    for (const model::BindPod& bind : Of<model::BindPod>(result)) places[bind.name] = bind.node;
    return places;
  }
};

TEST_F(TakeoverTest, NothingThatRunsIsTouchedAndOnlyReasonsForWaitingAreWritten) {
  TakeOver();
  const StepResult first = Step(kNow);
  EXPECT_TRUE(first.decided);
  std::set<std::string> told;
  for (const model::Action& action : first.actions) {
    if (const auto* group = std::get_if<model::SetPodGroupSchedulability>(&action.what)) {
      told.insert(group->name);
    } else if (const auto* pod = std::get_if<model::SetPodUnschedulable>(&action.what)) {
      EXPECT_EQ(pod->name, "over-0");
      EXPECT_EQ(pod->reason, "QueueLimitReached");
    } else {
      ADD_FAILURE() << "action of type " << action.what.index();
    }
  }
  // The waiting workloads, and running ones that still have KAI's reason for not running.
  EXPECT_EQ(told, (std::set<std::string>{"pg-over-8e8e", "pg-train-6f1c"}));
  AnswerAll(first);
  EXPECT_TRUE(Step(kNow + 1).actions.empty());
  EXPECT_EQ(loop_->stats().bindings + loop_->stats().evictions, 0u);
}

TEST_F(TakeoverTest, QueuesAreChargedWhatKaiCharges) {
  TakeOver();
  Step(kNow);
  const View view = loop_->MakeView(At(kNow));
  std::map<std::string, QueueAmounts> here;
  int compared = 0;
  for (const QueueRow& queue : view.queues) {
    for (const QueueResourceRow& row : queue.resources) {
      const QueueAmounts counted{row.allocated, row.allocated_non_preemptible, row.requested};
      if (row.resource == model::kGpuName) here[queue.name] = counted;
      if (queue.name == model::kDefaultQueue) continue;  // ours; KAI has none here
      ASSERT_TRUE(row.recorded.has_value()) << queue.name;
      // KAI's controllers count differently from its scheduler here; see below.
      const bool gpu = row.resource == model::kGpuName;
      if (gpu &&
          (queue.name == "institute" || queue.name == "multi" || queue.name == "by-memory")) {
        continue;
      }
      EXPECT_EQ(counted, *row.recorded) << queue.name << " " << row.resource;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 27);
  // The status has 0.4 for two devices with 0.4 held each, and nothing for the requested 20000 MiB.
  EXPECT_EQ(here["multi"], (QueueAmounts{800, 0, 800}));
  EXPECT_EQ(here["by-memory"], (QueueAmounts{250, 0, 250}));
  EXPECT_EQ(here["mig"], (QueueAmounts{2000, 0, 2000}));
  EXPECT_EQ(here["institute"], (QueueAmounts{16550, 4000, 18550}));
}

// What KAI's controllers wrote would be written, and so nothing is; without it, all of it is.
TEST_F(TakeoverTest, StatusesAreThoseOfKaisControllers) {
  options_.kai_status = true;
  Restart();
  TakeOver();
  std::map<std::string, model::Queue> queues;
  std::map<std::string, model::PodGroup> groups;
  std::map<std::string, model::KaiCounts> counts;
  const auto play = [&] {
    size_t writes = 0;
    for (absl::Time at = At(kNow); at < At(kNow + 20); at += absl::Milliseconds(200)) {
      const StepResult result = loop_->Step(at);
      AnswerAll(result);
      for (const model::SetKaiStatus& write : Of<model::SetKaiStatus>(result)) {
        counts[model::Key(write.ns, write.name)] = write.counts;
        ++writes;
        if (write.kind != model::Kind::kQueue) continue;
        EXPECT_EQ(write.child_queues, queues[write.name].child_queues) << write.name;
      }
    }
    return writes;
  };
  EXPECT_EQ(play(), 0U) << absl::StrJoin(
      counts, " ", [](std::string* out, const auto& entry) { absl::StrAppend(out, entry.first); });
  for (const kube::Object& object : Manifests()) {
    if (const auto* queue = std::get_if<model::Queue>(&object)) {
      queues[queue->meta.name] = *queue;
    } else if (const auto* group = std::get_if<model::PodGroup>(&object)) {
      groups[model::Key(group->meta)] = *group;
    }
  }
  ASSERT_EQ(queues.size(), 10U);
  ASSERT_EQ(groups.size(), 12U);
  for (auto [name, queue] : queues) {
    queue.status.reset();
    queue.child_queues.clear();
    Put(queue);
  }
  for (auto [name, group] : groups) {
    group.resources_status = {};
    Put(group);
  }
  play();
  const auto sorted = [](model::KaiCounts of) {
    for (model::ResourceList* list :
         {&of.allocated, &of.allocated_non_preemptible, &of.requested}) {
      std::sort(list->begin(), list->end());
    }
    return of;
  };
  for (const auto& [name, queue] : queues) {
    if (name == "claims") continue;  // nothing is in it
    EXPECT_EQ(counts[name], sorted(*queue.status)) << name;
  }
  for (const auto& [name, group] : groups) {
    EXPECT_EQ(counts[name], sorted(group.resources_status)) << name;
  }
}

TEST_F(TakeoverTest, NodesAreAsFullAsTheyAre) {
  TakeOver();
  Step(kNow);
  std::map<std::string, int64_t> used;
  const View view = loop_->MakeView(At(kNow));
  for (const NodeRow& node : view.nodes) used[node.name] = model::Get(node.used, model::kGpuName);
  // A reservation pod and the pods that share its GPU are one GPU.
  EXPECT_EQ(used["gpu-a"], 8000);
  EXPECT_EQ(used["gpu-b"], 8000);
  for (const NodeRow& node : view.nodes) {
    if (node.name == "mig-a") {
      EXPECT_EQ(model::Get(node.used, "nvidia.com/mig-1g.10gb"), 2);
    }
  }
}

TEST_F(TakeoverTest, OtherPoolsKeepTheirConditionsAndOursIsTheNewest) {
  TakeOver();
  const StepResult first = Step(kNow);
  int seen = 0;
  for (const auto& write : Of<model::SetPodGroupSchedulability>(first)) {
    const std::string body = kube::EncodePodGroupSchedulability(write, At(kNow)).body;
    const size_t after = body.rfind("\"op\":\"add\"");
    ASSERT_NE(after, std::string::npos);
    const std::string list = body.substr(after);
    EXPECT_TRUE(absl::StrContains(list, "/status/schedulingConditions")) << list;
    EXPECT_TRUE(absl::StrContains(list, R"("nodePool": "pool-b")") ||
                absl::StrContains(list, R"("nodePool":"pool-b")"))
        << list;
    EXPECT_FALSE(absl::StrContains(list, "allowable limit")) << "KAI's own entry: " << list;
    ASSERT_EQ(write.conditions.size(), 2u);
    const bool waits = !write.schedulability_json.empty();
    EXPECT_EQ(absl::StrContains(list, R"("nodePool":"default")"), waits) << list;
    const std::string id = absl::StrCat("\"transitionID\":\"", absl::ToUnixSeconds(At(kNow)));
    EXPECT_EQ(absl::StrContains(list, id), waits) << list;
    ++seen;
  }
  EXPECT_EQ(seen, 2);
}

TEST_F(TakeoverTest, MinimumRuntimesCountFromKaisTimestamps) {
  MoveNoPod();
  // Pods that share a GPU could be moved together, and none would have to go.
  options_.state.place_gpu_shares = false;
  Restart();
  TakeOver();
  Gone("broken-0");
  AnswerAll(Step(kNow));
  // Within its quota, and no other queue is over its quota. Both victims have a minimum runtime of
  // two hours: `young` would be the first to go, but it has run for one; `long` has run for three.
  Put(NewPod("claim-0", "claims").Gpus(1).Build());
  const StepResult first = Step(kNow + 10);
  EXPECT_EQ(Evicted(first), std::set<std::string>{"long"});
  AnswerAll(first);
  Gone("long");
  EXPECT_EQ(Bound(Step(kNow + 20)), (std::map<std::string, std::string>{{"claim-0", "gpu-a"}}));

  Put(NewPod("claim-1", "claims").Gpus(1).Build());
  const StepResult waits = Step(kNow + 30);
  EXPECT_EQ(Evicted(waits), std::set<std::string>{});
  AnswerAll(waits);
  EXPECT_EQ(Evicted(Step(kNow + 3599)), std::set<std::string>{});
  // Nothing changes except that its time is over.
  EXPECT_EQ(Evicted(Step(kNow + 3600)), std::set<std::string>{"young"});
}

TEST_F(TakeoverTest, WhatWeStartedAgainIsProtectedFromThenOn) {
  MoveNoPod();
  // Pods that share a GPU could be moved together, and none would have to go.
  options_.state.place_gpu_shares = false;
  Restart();
  // The group's annotation is of the run that KAI started; ours is on the pod.
  TakeOver([](model::ObjectMeta& meta) {
    if (meta.name == "long" || meta.name == "young") {
      meta.annotations.Set(
          model::kLastStartAnnotation,
          absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", At(kNow - 600), absl::UTCTimeZone()));
    }
  });
  Gone("broken-0");
  AnswerAll(Step(kNow));
  Put(NewPod("claim-0", "claims").Gpus(1).Build());
  EXPECT_EQ(Evicted(Step(kNow + 10)), std::set<std::string>{});
  EXPECT_EQ(Evicted(Decision(kNow - 600 + 7199)), std::set<std::string>{});
  EXPECT_EQ(Evicted(Decision(kNow - 600 + 7200)), std::set<std::string>{"young"});
}

TEST_F(TakeoverTest, AStaleGangHasTheRestOfItsGracePeriod) {
  TakeOver();
  AnswerAll(Step(kNow));
  // Since ten minutes before; it may for an hour.
  EXPECT_EQ(Evicted(Step(kNow + 49 * 60)), std::set<std::string>{});
  EXPECT_EQ(Evicted(Step(kNow + 50 * 60)), std::set<std::string>{"broken-0"});
}

TEST_F(TakeoverTest, ANewFractionGoesWhereASharedGpuHasRoom) {
  options_.state.place_gpu_shares = true;
  Restart();
  TakeOver();
  AnswerAll(Step(kNow));
  // No GPU is free. Half and slice leave a quarter of theirs, multi leaves 0.6 of its two.
  Put(NewPod("f-700", "shared").GpuFraction(700).Build());
  Put(NewPod("f-600", "shared").GpuFraction(600).Build());
  Put(NewPod("f-250", "shared").GpuFraction(250).NodeSelector("kubernetes.io/hostname", "gpu-b"));
  const StepResult placed = Step(kNow + 1);
  EXPECT_EQ(Bound(placed),
            (std::map<std::string, std::string>{{"f-250", "gpu-b"}, {"f-600", "gpu-a"}}));
  EXPECT_EQ(Evicted(placed), std::set<std::string>{});
}

TEST_F(TakeoverTest, AStandbyQueuesNoEventsAndTellsWhatIsTrueWhenItLeads) {
  options_.emit_events = true;
  Restart();
  SyncAll();
  for (int i = 0; i < 500; ++i) {
    Put(testing::MakeQueue("mended", "", 8 + i, 4));
    Put(testing::MakeQueue("wrong", "", 8 + i, 4));
    EXPECT_LE(loop_->queue_sizes().events_waiting, 2u);
  }
  Put(testing::MakeQueue("mended", "", 4, 8));
  loop_->BecomeLeader();
  SyncAll();
  std::vector<std::string> told;
  for (const auto& event : Of<model::EmitEvent>(Step(1))) {
    if (event.reason == "ContradictoryQueue") told.push_back(event.name);
  }
  EXPECT_THAT(told, ::testing::ElementsAre("wrong"));
  EXPECT_EQ(loop_->queue_sizes().events_waiting, 0u);
}

TEST_F(TakeoverTest, AsTheStandbyOfARestartNothingChangesEither) {
  TakeOver();
  AnswerAll(Step(kNow));
  Restart();
  // The API server has none of the first process's writes: they are repeated, and no more.
  TakeOver();
  const StepResult again = Step(kNow + 60);
  EXPECT_TRUE(Of<model::BindPod>(again).empty());
  EXPECT_TRUE(Of<model::EvictPod>(again).empty());
  EXPECT_EQ(Of<model::SetPodGroupSchedulability>(again).size(), 2u);
}

}  // namespace
}  // namespace fairlead::core
