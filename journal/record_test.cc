#include "journal/record.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/model/testing/affinity_builders.h"
#include "scheduler/model/testing/builders.h"

namespace fairlead::journal {
namespace {

using model::testing::At;
using model::testing::PodBuilder;

model::Pod FullPod() {
  model::Pod pod = PodBuilder("ns", "p").Queue("q").Gpus(2).Created(7).Build();
  pod.meta.annotations.Set("gpu-memory", "1024");
  pod.meta.deletion = At(99);
  pod.meta.owners = {{"batch/v1", "Job", "j", "uid-j", true}};
  pod.spec.pod_affinity = {model::testing::AppTerm("web", "zone")};
  pod.spec.tolerations = {{"key", true, "", model::TaintEffect::kNoExecute}};
  pod.spec.wishes.Own().type = model::TypePattern::Make("^p5").value();
  pod.spec.wishes.Own().max_gpus = 8;
  pod.spec.images.Own().names = {"nginx:latest"};
  pod.spec.node_answers = model::NodeAnswers({{"n2", true}, {"n1", false, true, "no licence"}});
  pod.priority = -5;
  pod.phase = model::PodPhase::kRunning;
  return pod;
}

// One of each kind of record, and of each kind of object.
std::vector<Record> Records() {
  std::vector<Record> records;
  records.emplace_back(Start{1, "0.1", {"{}"}, {"fairlead"}, "ns", "name", {}, true});
  records.emplace_back(Applied{model::Upsert{FullPod()}});
  model::PodGroup group = model::testing::MakeGroup("ns", "g", "q", 3);
  group.staleness_grace_period = -absl::InfiniteDuration();
  group.scheduling_conditions = {{"pool", "1", "{}"}};
  group.resources_status.allocated = {{"cpu", 1000}};
  records.emplace_back(Applied{model::Upsert{group}});
  model::NativePodGroup native;
  static_cast<model::PodGroup&>(native) = group;
  native.scheduled_status = "True";
  records.emplace_back(Applied{model::Upsert{native}});
  model::NodePool pool;
  pool.meta.name = "pool";
  pool.disruption.budgets = {{1, true, CronSchedule::Parse("0 8 * * mon-fri").value()}};
  records.emplace_back(Applied{model::Upsert{pool}});
  records.emplace_back(Applied{model::Delete{model::Kind::kNode, "", "n", "uid"}});
  records.emplace_back(Applied{model::Synced{model::Kind::kPod, true}});
  model::ActionResult result{17, absl::ResourceExhaustedError("budget")};
  result.judgements = std::make_shared<model::NodeJudgements>();
  result.object = std::make_shared<std::string>("{}");
  records.emplace_back(Applied{result});
  records.emplace_back(Applied{model::Progress{model::Kind::kPod, "12"}});
  records.emplace_back(Led{});
  records.emplace_back(PodsListed{"n", "12", {FullPod()}});
  records.emplace_back(
      Machine{{"kwok", "fl-1", "uid", "id", hook::MachineState::kGone, absl::AbortedError("x")}});
  hook::InstanceType type;
  type.name = "p5";
  type.spot_micro_usd = 7;
  records.emplace_back(Offers{"karpenter", std::vector<hook::InstanceType>{type}});
  records.emplace_back(NodesListed{3, absl::OkStatus(), {{"n", "uid", "fl-1", "id"}}});
  records.emplace_back(UsageRestored{"text"});
  records.emplace_back(Stale{{model::Kind::kPod}});
  records.emplace_back(Guest{FullPod(), "n", At(5)});
  records.emplace_back(Stepped{At(6), {1, ~uint64_t{0}}, true});
  return records;
}

TEST(RecordTest, WhatIsReadIsWhatWasWritten) {
  for (const Record& record : Records()) {
    const std::string bytes = Encode(record);
    const absl::StatusOr<Record> read = Decode(bytes);
    ASSERT_TRUE(read.ok()) << record.index();
    EXPECT_EQ(read->index(), record.index());
    EXPECT_EQ(Encode(*read), bytes) << record.index();
  }
  const auto pod = std::get<Applied>(*Decode(Encode(Applied{model::Upsert{FullPod()}})));
  const auto& read = std::get<model::Pod>(std::get<model::Upsert>(pod.event).object);
  EXPECT_EQ(read.spec, FullPod().spec);
  EXPECT_EQ(read.meta.labels, FullPod().meta.labels);
  EXPECT_EQ(read.meta.deletion, At(99));
  EXPECT_EQ(read.priority, -5);
}

TEST(RecordTest, AnEventIsWrittenWithoutACopy) {
  const model::ClusterEvent event = model::Upsert{FullPod()};
  EXPECT_EQ(EncodeApplied(event), Encode(Applied{event}));
}

TEST(RecordTest, DamagedBytesAreNoRecord) {
  for (const Record& record : Records()) {
    const std::string bytes = Encode(record);
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(Decode(absl::string_view(bytes).substr(0, size)).ok()) << record.index();
    }
    EXPECT_FALSE(Decode(bytes + "x").ok()) << record.index();
    // Any byte may be another one: what is read then is something else, or nothing.
    for (size_t i = 0; i < bytes.size(); ++i) {
      for (const int flip : {1, 0x80, 0xff}) {
        std::string wrong = bytes;
        wrong[i] = static_cast<char>(wrong[i] ^ flip);
        Decode(wrong).IgnoreError();
      }
    }
  }
}

TEST(RecordTest, InfiniteTimesStayInfinite) {
  for (const absl::Time time : {absl::InfiniteFuture(), absl::InfinitePast(), At(0)}) {
    const auto read = std::get<Stepped>(*Decode(Encode(Stepped{time, {}, false})));
    EXPECT_EQ(read.now, time);
  }
}

TEST(RecordTest, HashesTellActionsApart) {
  const model::Action bind{4, model::BindPod{"ns", "p", "uid", "n", {}}};
  model::Action other = bind;
  EXPECT_EQ(HashOf(bind), HashOf(other));
  other.id = 5;
  EXPECT_NE(HashOf(bind), HashOf(other));
  other = bind;
  std::get<model::BindPod>(other.what).annotations.Set("a", "b");
  EXPECT_NE(HashOf(bind), HashOf(other));
  const model::Action evict{4, model::EvictPod{"ns", "p", "uid", "n", ""}};
  EXPECT_NE(HashOf(bind), HashOf(evict));
}

}  // namespace
}  // namespace fairlead::journal
