// A decision loop, its journal, and the loop that plays it. sim/property_testing.h has random
// worlds.
#include <string>
#include <vector>

#include "core/config_shard.h"
#include "core/configuration.h"
#include "core/decision_loop.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "journal/player.h"
#include "journal/recorder.h"
#include "scheduler/model/testing/builders.h"

namespace fairlead::journal {
namespace {

using model::testing::At;
using model::testing::MakeNode;
using model::testing::MakeQueue;
using model::testing::PodBuilder;
using ::testing::HasSubstr;

constexpr char kDocument[] =
    R"({"apiVersion":"config.fairlead.dev/v1alpha1","kind":"FairleadConfiguration"})";

class ReplayTest : public ::testing::Test {
 protected:
  ReplayTest() { Begin(/*continues=*/false); }
  void Begin(bool continues) {
    auto read = core::ReadConfiguration({kDocument});
    ASSERT_TRUE(read.ok()) << read.status();
    read->options.state.scheduler_names = {"mine"};
    core::SetShard(shard_, "fairlead", read->options);
    auto loop = core::DecisionLoop::Make(read->options, &hook::Catalog::BuiltIn());
    ASSERT_TRUE(loop.ok()) << loop.status();
    if (continues) (*loop)->Continue(*loop_);
    loop_ = *std::move(loop);
    recorder_.Started(read->options, hook::Catalog::BuiltIn(), continues);
    loop_->SetInputLog(&recorder_);
  }
  template <typename T>
  void Put(const T& object) {
    loop_->Apply(model::Upsert{object});
  }
  // Two pods are bound, one after the other.
  void Day() {
    Put(MakeQueue("q", "", model::kUnlimited, model::kUnlimited));
    Put(MakeNode("n", 2));
    for (const model::Kind kind : model::kAllKinds) loop_->Apply(model::Synced{kind});
    loop_->BecomeLeader();
    for (const model::Kind kind : model::kAllKinds) loop_->Apply(model::Synced{kind});
    for (int i = 0; i < 2; ++i) {
      model::Pod pod = PodBuilder("ns", absl::StrCat("p", i)).Queue("q").Gpus(1).Build();
      pod.scheduler_name = "mine";
      Put(pod);
      const core::StepResult step = loop_->Step(At(10 + i));
      EXPECT_FALSE(step.actions.empty());
      for (const model::Action& action : step.actions) {
        loop_->Apply(model::ActionResult{action.id, absl::OkStatus()});
      }
    }
    loop_->SetStale({model::Kind::kPod});
    loop_->Step(At(20));
  }
  absl::Status Play(Player& player) {
    for (const std::string& record : records_) {
      if (absl::Status played = player.Play(record); !played.ok()) return played;
    }
    return absl::OkStatus();
  }
  static Player NewPlayer() { return Player(Player::FromDocuments(plugins::BuiltIn())); }

  std::optional<core::Shard> shard_;  // as a flag says it
  std::vector<std::string> records_;
  Recorder recorder_{"0.1", [this](std::string record) { records_.push_back(std::move(record)); }};
  std::unique_ptr<core::DecisionLoop> loop_;
};

TEST_F(ReplayTest, DecidesTheSame) {
  Day();
  Player player = NewPlayer();
  ASSERT_TRUE(Play(player).ok());
  EXPECT_FALSE(player.difference().has_value());
  EXPECT_EQ(player.version(), "0.1");
  EXPECT_EQ(player.totals().steps, 3);
  EXPECT_GE(player.totals().actions, 2);
  EXPECT_EQ(player.totals().first, At(10));
  EXPECT_EQ(player.totals().last, At(20));
}

// The configuration does not say what a flag said.
TEST_F(ReplayTest, AShardOfAFlagIsRecorded) {
  records_.clear();
  shard_ = core::Shard{""};
  Begin(/*continues=*/false);
  model::Node other = MakeNode("a", 8);
  other.meta.labels.Set(model::kNodePoolLabel, "gpu-a");
  Put(other);
  Day();
  Player player = NewPlayer();
  ASSERT_TRUE(Play(player).ok());
  EXPECT_FALSE(player.difference().has_value());
  EXPECT_GE(player.totals().actions, 2);
}

TEST_F(ReplayTest, ANewConfigurationContinues) {
  Day();
  Begin(/*continues=*/true);
  Day();
  Player player = NewPlayer();
  ASSERT_TRUE(Play(player).ok());
  EXPECT_FALSE(player.difference().has_value());
  EXPECT_EQ(player.totals().steps, 6);
}

TEST_F(ReplayTest, SaysWhatIsDecidedOtherwise) {
  Day();
  // The node has another name.
  for (std::string& record : records_) {
    const absl::StatusOr<Record> read = Decode(record);
    ASSERT_TRUE(read.ok());
    const auto* applied = std::get_if<Applied>(&*read);
    if (applied == nullptr || !std::holds_alternative<model::Upsert>(applied->event)) continue;
    const auto& object = std::get<model::Upsert>(applied->event).object;
    if (!std::holds_alternative<model::Node>(object)) continue;
    record = Encode(Applied{model::Upsert{MakeNode("other", 2)}});
  }
  Player player = NewPlayer();
  ASSERT_TRUE(Play(player).ok());
  ASSERT_TRUE(player.difference().has_value());
  EXPECT_EQ(player.difference()->step, 1);
  EXPECT_EQ(player.difference()->action, 0u);
  ASSERT_TRUE(player.difference()->here.has_value());
  EXPECT_EQ(std::get<model::BindPod>(player.difference()->here->what).node, "other");
  EXPECT_EQ(player.totals().steps, 1) << "nothing is played after it";
}

TEST_F(ReplayTest, RefusesWhatItCannotPlay) {
  Player player = NewPlayer();
  EXPECT_THAT(std::string(player.Play(Encode(Led{})).message()), HasSubstr("does not start"));
  EXPECT_THAT(std::string(player.Play("").message()), HasSubstr("damaged"));
  Start start{.shape = RecordShape() + 1, .version = "9.9"};
  EXPECT_THAT(std::string(player.Play(Encode(start)).message()),
              HasSubstr("recorded by fairlead 9.9"));
  start.shape = RecordShape();
  start.documents = {R"({"kind":"Nonsense"})"};
  EXPECT_THAT(std::string(player.Play(Encode(start)).message()),
              HasSubstr("the recorded configuration: "));
  start.documents = {kDocument};
  start.continues = true;
  EXPECT_THAT(std::string(player.Play(Encode(start)).message()), HasSubstr("not there"));
}

}  // namespace
}  // namespace fairlead::journal
