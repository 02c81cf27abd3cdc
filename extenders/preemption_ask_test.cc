#include "extenders/preemption_ask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "extenders/testing.h"

namespace fairlead::extenders {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kPodText;
using testing::Reply;

constexpr char kVictimPath[] = "/api/v1/namespaces/ns/pods/v1";
constexpr char kVictimText[] =
    R"({"kind":"Pod","metadata":{"name":"v1","namespace":"ns","uid":"uv1"},"spec":{"y": 2.0}})";

model::ExtenderConfig Preempter(int port = 1) {
  model::ExtenderConfig config;
  config.url_prefix = absl::StrCat("http://x:", port, "/s");
  config.preempt_verb = "e";
  config.node_cache_capable = true;
  return config;
}

// Pods v1 and v2 of node a, and v3 of node b, would go.
class PreemptionAskTest : public testing::ClientFixture {
 protected:
  PreemptionAskTest() { api_.On("GET", kVictimPath, Reply::Json(200, kVictimText)); }

  void AskAbout(std::vector<model::AskExtenders::NodeVictims> victims,
                std::vector<std::string> nodes) {
    model::AskExtenders action{.ns = "ns", .name = "p", .uid = "u1", .extenders = {}, .nodes = {}};
    for (size_t i = 0; i < transports_.size(); ++i) {
      action.extenders.push_back(static_cast<int32_t>(i));
    }
    action.nodes = std::move(nodes);
    action.victims = std::move(victims);
    client_->Ask(std::move(action), [this](Answer answer) { answers_.push_back(answer); });
    Pump();
  }
  Answer Asked() {
    AskAbout({{{{"ns", "v1", "uv1"}, {"ns", "v2", "uv2"}}, 1}, {{{"ns", "v3", "uv3"}}, 0}},
             {"a", "b"});
    EXPECT_EQ(answers_.size(), 1u);
    return answers_.empty() ? Answer() : answers_.front();
  }
};

constexpr char kBoth[] = R"({"NodeNameToMetaVictims":{"b":{"Pods":[{"UID":"uv3"}]},)"
                         R"("a":{"Pods":[{"UID":"uv2"},{"UID":"uv1"}],"NumPDBViolations":1}}})";

TEST_F(PreemptionAskTest, AnExtenderWithCacheGetsUidsAndMayAdmitThemAll) {
  Start({Preempter()});
  OnVerb(0, "e", Reply::Json(200, kBoth));
  EXPECT_EQ(Short(Asked()), "a:0 b:0");
  EXPECT_THAT(Bodies(),
              ElementsAre(absl::StrCat(
                  R"({"Pod":)", kPodText, R"(,"NodeNameToVictims":null,"NodeNameToMetaVictims":{)",
                  R"("a":{"Pods":[{"UID":"uv1"},{"UID":"uv2"}],"NumPDBViolations":1},)",
                  R"("b":{"Pods":[{"UID":"uv3"}],"NumPDBViolations":0}}})")));
  EXPECT_THAT(api_.Sent("GET", kVictimPath), IsEmpty());
}

TEST_F(PreemptionAskTest, AnExtenderWithoutCacheGetsThePodsAsTheApiServerWroteThem) {
  model::ExtenderConfig config = Preempter();
  config.node_cache_capable = false;
  Start({config});
  OnVerb(0, "e", Reply::Json(200, R"({"NodeNameToMetaVictims":{"a":{"Pods":[{"UID":"uv1"}]}}})"));
  AskAbout({{{{"ns", "v1", "uv1"}}, 0}}, {"a"});
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(Short(answers_.front()), "a:0");
  EXPECT_THAT(Bodies(),
              ElementsAre(absl::StrCat(
                  R"({"Pod":)", kPodText, R"(,"NodeNameToMetaVictims":null,"NodeNameToVictims":{)",
                  R"("a":{"Pods":[)", kVictimText, R"(],"NumPDBViolations":0}}})")));
}

TEST_F(PreemptionAskTest, ANodeWithAVictimThatHasGoneIsRefusedAndNotAskedAbout) {
  model::ExtenderConfig config = Preempter();
  config.node_cache_capable = false;
  Start({config});
  api_.On("GET", kVictimPath, Reply::Json(404, "{}"));
  AskAbout({{{{"ns", "v1", "uv1"}}, 0}}, {"a"});
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(answers_.front().status, absl::OkStatus());
  EXPECT_EQ(Short(answers_.front()), "a:-");
  EXPECT_THAT(Bodies(), IsEmpty());
}

TEST_F(PreemptionAskTest, ANodeThatIsLeftOutIsRefused) {
  Start({Preempter()});
  OnVerb(0, "e", Reply::Json(200, R"({"nodenametometavictims":{"b":{"pods":[{"uid":"uv3"}]}}})"));
  const Answer answer = Asked();
  EXPECT_EQ(Short(answer), "a:- b:0");
  EXPECT_EQ(answer.answers.Find("a")->reason, "extender http://x:1/s refuses evictions there");
}

TEST_F(PreemptionAskTest, OtherVictimsRefuseTheNode) {
  for (const char* pods : {R"([{"UID":"uv1"}])", R"([{"UID":"uv1"},{"UID":"uv2"},{"UID":"uv9"}])",
                           R"([{"UID":"uv1"},{"UID":"uv1"}])"}) {
    answers_.clear();
    transports_.clear();
    Start({Preempter()});
    OnVerb(
        0, "e",
        Reply::Json(200, absl::StrCat(R"({"NodeNameToMetaVictims":{"a":{"Pods":)", pods, "}}}")));
    const Answer answer = Asked();
    EXPECT_EQ(Short(answer), "a:- b:-") << pods;
    EXPECT_THAT(answer.answers.Find("a")->reason, HasSubstr("wants other pods")) << pods;
  }
}

TEST_F(PreemptionAskTest, TheNextExtenderIsAskedAboutWhatIsLeftAndNoneIfNothingIs) {
  Start({Preempter(1), Preempter(2), Preempter(3)});
  OnVerb(0, "e", Reply::Json(200, R"({"NodeNameToMetaVictims":{"b":{"Pods":[{"UID":"uv3"}]}}})"));
  OnVerb(1, "e", Reply::Json(200, R"({"NodeNameToMetaVictims":null})"));
  EXPECT_EQ(Short(Asked()), "a:- b:-");
  EXPECT_THAT(Bodies(1), ElementsAre(::testing::Not(HasSubstr("uv1"))));
  EXPECT_THAT(Bodies(2), IsEmpty());
}

TEST_F(PreemptionAskTest, AnErrorFailsTheAskAndNamesTheExtender) {
  for (const auto& [reply, why] : std::vector<std::pair<Reply, std::string>>{
           {Reply::Json(500, "{}"), "status 500"},
           {Reply::Json(200, "[]"), "not a JSON object"},
           {Reply::Json(200, R"({"NodeNameToMetaVictims":{"z":{}}})"), "was not asked about"}}) {
    answers_.clear();
    transports_.clear();
    Start({Preempter()});
    OnVerb(0, "e", reply);
    const Answer answer = Asked();
    EXPECT_THAT(std::string(answer.status.message()), HasSubstr("extender http://x:1/s: e: "));
    EXPECT_THAT(std::string(answer.status.message()), HasSubstr(why));
    EXPECT_EQ(answer.failed, 0);
  }
}

TEST_F(PreemptionAskTest, AnIgnorableExtenderThatFailsIsPassedOver) {
  model::ExtenderConfig config = Preempter(1);
  config.ignorable = true;
  Start({config, Preempter(2)});
  OnVerb(0, "e", Reply::Json(500, "{}"));
  OnVerb(1, "e", Reply::Json(200, kBoth));
  EXPECT_EQ(Short(Asked()), "a:0 b:0");
}

TEST_F(PreemptionAskTest, APodThatIsAnotherByNowFailsIt) {
  Start({Preempter()});
  api_.On("GET", testing::kPodPath,
          Reply::Json(200, R"({"metadata":{"name":"p","namespace":"ns","uid":"u2"}})"));
  EXPECT_TRUE(absl::IsFailedPrecondition(Asked().status));
  EXPECT_THAT(Bodies(), IsEmpty());
}

}  // namespace
}  // namespace fairlead::extenders
