#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "extenders/testing.h"

namespace fairlead::extenders {
namespace {

using testing::CachingFilter;
using testing::CachingScorer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kNodesPath;
using testing::kPodText;
using testing::NodeText;
using testing::Reply;

class AskTest : public testing::ClientFixture {};

// ---- what an extender is sent ------------------------------------------------------------------

TEST_F(AskTest, AnExtenderWithoutCacheGetsPodAndNodesAsTheApiServerWroteThem) {
  model::ExtenderConfig config = CachingFilter();
  config.node_cache_capable = false;
  config.http_timeout = absl::Seconds(7);
  Start({config});
  OnFilter(0, absl::StrCat(R"({"Nodes":{"items":[)", NodeText("c"), "]}}"));
  const Answer answer = Result({"a", "c"});
  EXPECT_EQ(answer.status, absl::OkStatus());
  EXPECT_EQ(Short(answer), "a:- c:0");
  ASSERT_EQ(extender().exchanges().size(), 1u);
  const kube::HttpRequest& request = extender().exchanges().front().request;
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/s/f");
  EXPECT_EQ(request.content_type, "application/json");
  EXPECT_EQ(request.timeout, absl::Seconds(7));
  EXPECT_EQ(request.body,
            absl::StrCat(R"({"Pod":)", kPodText, R"(,"Nodes":{"metadata":{},"items":[)",
                         NodeText("a"), ",", NodeText("c"), R"(]},"NodeNames":null})"));
}

TEST_F(AskTest, AnExtenderWithCacheGetsNamesAndNoNodesAreRead) {
  Start({CachingFilter()});
  OnFilter(0, R"({"NodeNames":["b"]})");
  EXPECT_EQ(Short(Result()), "a:- b:0 c:-");
  EXPECT_THAT(Bodies(), ElementsAre(absl::StrCat(R"({"Pod":)", kPodText,
                                                 R"(,"Nodes":null,"NodeNames":["a","b","c"]})")));
  EXPECT_THAT(api_.Sent("GET", kNodesPath), IsEmpty());
}

TEST_F(AskTest, NoTimeoutIsUpstreamsDefault) {
  model::ExtenderConfig config = CachingFilter();
  config.http_timeout = absl::ZeroDuration();
  Start({config});
  OnFilter(0, R"({"NodeNames":["b"]})");
  Result();
  EXPECT_EQ(extender().exchanges().front().request.timeout, absl::Seconds(5));
}

// ---- filters -----------------------------------------------------------------------------------

TEST_F(AskTest, EachFilterGetsWhatThoseBeforeItHaveLeft) {
  Start({CachingFilter(1), CachingFilter(2)});
  OnFilter(0, R"({"NodeNames":["c","a"],"FailedNodes":{"b":"full"}})");
  OnFilter(1, R"({"NodeNames":["c"],"FailedAndUnresolvableNodes":{"a":"no such disk"}})");
  const Answer answer = Result();
  EXPECT_EQ(Short(answer), "a:! b:- c:0");
  EXPECT_EQ(ReasonOf(answer, "b"), "full");
  EXPECT_EQ(ReasonOf(answer, "a"), "no such disk");
  EXPECT_THAT(Bodies(1), ElementsAre(HasSubstr(R"("NodeNames":["a","c"])")));
}

TEST_F(AskTest, TheSecondFilterWaitsForTheFirst) {
  Start({CachingFilter(1), CachingFilter(2)});
  Ask();
  Pump();
  EXPECT_EQ(extender(0).open_count(), 1u);
  EXPECT_THAT(Bodies(1), IsEmpty());
}

TEST_F(AskTest, ANodeIsRefusedWithTheReasonThatWasGiven) {
  Start({CachingFilter()});
  OnFilter(0, R"({"NodeNames":[],"FailedNodes":{"a":"x","b":"","z":"not asked about"},)"
              R"("FailedAndUnresolvableNodes":{"a":"y"}})");
  const Answer answer = Result();
  EXPECT_EQ(Short(answer), "a:! b:- c:-");
  EXPECT_EQ(ReasonOf(answer, "a"), "y");
  EXPECT_EQ(ReasonOf(answer, "b"), "refused by extender http://x:1/s");
  EXPECT_EQ(ReasonOf(answer, "c"), "refused by extender http://x:1/s");
}

TEST_F(AskTest, AnExtenderWithoutFilterLeavesAllNodes) {
  Start({CachingScorer(1), CachingFilter(2)});
  OnFilter(1, R"({"NodeNames":["a"]})");
  EXPECT_EQ(Short(Result()), "a:0 b:- c:-");
  EXPECT_THAT(Bodies(0), IsEmpty()) << "one node is left: there is nothing to score";
}

TEST_F(AskTest, NoExtenderIsAskedAboutNoNode) {
  Start({CachingFilter(1), CachingFilter(2), CachingScorer(3)});
  OnFilter(0, R"({})");
  EXPECT_EQ(Short(Result()), "a:- b:- c:-");
  EXPECT_THAT(Bodies(1), IsEmpty());
  EXPECT_THAT(Bodies(2), IsEmpty());
}

TEST_F(AskTest, NoExtenderAndNoNodeIsNoError) {
  Start({CachingFilter()});
  EXPECT_EQ(Result({}).status, absl::OkStatus());
  answers_.clear();
  Ask({"a"}, 0);
  Pump();
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(Short(answers_[0]), "a:0");
  EXPECT_THAT(Bodies(), IsEmpty());
}

// ---- failures ----------------------------------------------------------------------------------

struct Fault {
  const char* name;
  Reply reply;
  const char* message;  // part of it
};

class FaultTest : public AskTest, public ::testing::WithParamInterface<Fault> {};

TEST_P(FaultTest, FailsTheAskAndSaysWhereAndWhy) {
  Start({CachingFilter(1), CachingFilter(2)});
  OnFilter(0, R"({"NodeNames":["a","b"]})");
  OnVerb(1, "f", GetParam().reply);
  const Answer answer = Result();
  EXPECT_TRUE(absl::IsUnavailable(answer.status)) << answer.status;
  EXPECT_THAT(answer.status.message(), HasSubstr("extender http://x:2/s: f: "));
  EXPECT_THAT(answer.status.message(), HasSubstr(GetParam().message));
  EXPECT_LE(answer.status.message().size(), 1000u);
  EXPECT_EQ(answer.failed, 1);
  EXPECT_TRUE(answer.answers.IsEmpty());
}

TEST_P(FaultTest, OfAnIgnorableExtenderChangesNothing) {
  model::ExtenderConfig ignorable = CachingFilter(1);
  ignorable.ignorable = true;
  Start({ignorable, CachingFilter(2)});
  OnVerb(0, "f", GetParam().reply);
  OnFilter(1, R"({"NodeNames":["a","b"]})");
  const Answer answer = Result();
  EXPECT_EQ(answer.status, absl::OkStatus());
  EXPECT_EQ(Short(answer), "a:0 b:0 c:-");
  EXPECT_THAT(Bodies(1), ElementsAre(HasSubstr(R"("NodeNames":["a","b","c"])")));
}

INSTANTIATE_TEST_SUITE_P(
    All, FaultTest,
    ::testing::Values(
        Fault{"Status500", Reply::Json(500, R"({"NodeNames":["a"]})"), "status 500"},
        Fault{"Status202", Reply::Json(202, R"({"NodeNames":["a"]})"), "status 202"},
        Fault{"Redirect", Reply::Json(307, ""), "status 307"},
        Fault{"Error", Reply::Json(200, R"({"NodeNames":["a"],"Error":"licence\u0007expired"})"),
              "expired"},
        Fault{"LongError",
              Reply::Json(200, absl::StrCat(R"({"Error":")", std::string(100'000, 'e'), "\"}")),
              "eeee"},
        Fault{"Unreachable", Reply::Failure(absl::UnavailableError("connection refused")),
              "connection refused"},
        Fault{"TimeOut", Reply::Failure(absl::DeadlineExceededError("no answer within 5s")),
              "no answer"},
        Fault{"Empty", Reply::Json(200, ""), "JSON"},
        Fault{"Html", Reply::Json(200, "<html>"), "JSON"},
        Fault{"List", Reply::Json(200, "[]"), "not a JSON object"},
        Fault{"Cut", Reply::Json(200, R"({"NodeNames":["a")"), "JSON"},
        Fault{"Trailing", Reply::Json(200, R"({"NodeNames":["a"]}{})"), "follows"},
        Fault{"WrongType", Reply::Json(200, R"({"NodeNames":"a"})"), "NodeNames"},
        Fault{"WrongItem", Reply::Json(200, R"({"NodeNames":["a",1]})"), "NodeNames[1]"},
        Fault{"WrongReason", Reply::Json(200, R"({"NodeNames":["a"],"FailedNodes":{"b":{}}})"),
              "FailedNodes[b]"},
        Fault{"Stranger", Reply::Json(200, R"({"NodeNames":["a","z"]})"),
              "\"z\" was not asked about"},
        Fault{"StrangeObject", Reply::Json(200, R"({"Nodes":{"items":[{"metadata":{}}]}})"),
              "\"\" was not asked about"},
        Fault{"Large", Reply::Json(200, std::string((64 << 20) + 1, ' ')), "larger than 67108864"},
        Fault{"DeepList",
              Reply::Json(200, absl::StrCat(R"({"NodeNames":)", std::string(1'000'000, '['))),
              "JSON"}),
    [](const auto& test) { return test.param.name; });

TEST_F(AskTest, ANodeThatWasRefusedBeforeMayNotBeReturned) {
  Start({CachingFilter(1), CachingFilter(2)});
  OnFilter(0, R"({"NodeNames":["a"]})");
  OnFilter(1, R"({"NodeNames":["a","b"]})");
  EXPECT_THAT(Result().status.message(), HasSubstr("\"b\" was not asked about"));
}

TEST_F(AskTest, AnAnswerThatNeverComesIsGivenUp) {
  model::ExtenderConfig config = CachingFilter();
  config.http_timeout = absl::Seconds(2);
  Start({config});
  Ask();
  Pump();
  extender().Advance(absl::Milliseconds(1999));
  Pump();
  EXPECT_THAT(answers_, IsEmpty());
  extender().Advance(absl::Milliseconds(1));
  Pump();
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(answers_[0].status)) << answers_[0].status;
  EXPECT_EQ(answers_[0].failed, 0);
}

TEST_F(AskTest, AReasonIsShortValidUtf8) {
  Start({CachingFilter()});
  OnFilter(0, absl::StrCat("{\"NodeNames\":[],\"FailedNodes\":{\"a\":\"\xff bad\",\"b\":\"",
                           std::string(255, 'x'), "\xc3\xa9\"}}"));
  const Answer answer = Result();
  EXPECT_EQ(ReasonOf(answer, "a"), "\xef\xbf\xbd bad");
  EXPECT_EQ(ReasonOf(answer, "b"), std::string(255, 'x')) << "a character is not split";
}

// ---- scores ------------------------------------------------------------------------------------

TEST_F(AskTest, ScoresAreWeightedAndAdded) {
  Start({CachingScorer(1, 1), CachingScorer(2, 3)});
  OnScore(0, R"([{"Host":"a","Score":10},{"Host":"b","Score":4}])");
  OnScore(1, R"([{"Host":"b","Score":2},{"Host":"c","Score":1}])");
  EXPECT_EQ(Short(Result()), "a:100 b:100 c:30");
}

TEST_F(AskTest, AllExtendersScoreAtTheSameTimeWhatIsLeft) {
  model::ExtenderConfig both = CachingScorer(1);
  both.filter_verb = "f";
  Start({both, CachingScorer(2)});
  OnFilter(0, R"({"NodeNames":["a","c"]})");
  Ask();
  Pump();
  EXPECT_EQ(extender(0).open_count(), 1u);
  EXPECT_EQ(extender(1).open_count(), 1u);
  EXPECT_THAT(Bodies(1), ElementsAre(HasSubstr(R"("NodeNames":["a","c"])")));
  extender(1).Respond(*extender(1).FindOpen("POST", "/s/p"), Reply::Json(200, "[]").response);
  Pump();
  EXPECT_THAT(answers_, IsEmpty()) << "the other one has not answered";
  extender(0).Fail(*extender(0).FindOpen("POST", "/s/p"), absl::UnavailableError("gone"));
  Pump();
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(Short(answers_[0]), "a:0 b:- c:0");
}

TEST_F(AskTest, TheErrorOfAScoreIsIgnored) {
  for (const Reply& fault :
       {Reply::Json(500, ""), Reply::Json(200, "{}"), Reply::Failure(absl::UnavailableError("x")),
        Reply::Json(200, R"([{"Host":"a","Score":1},{"Host":"b","Score":9223372036854775808}])"),
        Reply::Json(200, R"([{"Host":"a","Score":1},{"Host":"b","Score":1.5}])"),
        Reply::Json(200, R"([{"Host":"a","Score":1}] x)")}) {
    answers_.clear();
    transports_.clear();
    Start({CachingScorer(1), CachingScorer(2)});
    OnVerb(0, "p", fault);
    OnScore(1, R"([{"Host":"a","Score":5}])");
    EXPECT_EQ(Short(Result()), "a:50 b:0 c:0") << fault.response.body;
  }
}

// ---- pod and nodes -----------------------------------------------------------------------------

struct Reading {
  Reply reply;
  absl::StatusCode code;
  const char* message;
};

TEST_F(AskTest, APodThatCannotBeReadFailsTheAsk) {
  for (const Reading& reading :
       {Reading{Reply::Json(200, R"({"metadata":{"uid":"u2"}})"),
                absl::StatusCode::kFailedPrecondition, "pod ns/p: metadata.uid is u2, not u1"},
        Reading{Reply::Json(200, "{}"), absl::StatusCode::kFailedPrecondition, "not u1"},
        Reading{Reply::Json(404, "{}"), absl::StatusCode::kNotFound, "pod ns/p: status 404"},
        Reading{Reply::Json(403, "{}"), absl::StatusCode::kUnavailable, "pod ns/p: status 403"},
        Reading{Reply::Json(200, "<html>"), absl::StatusCode::kUnavailable, "pod ns/p: malformed"},
        Reading{Reply::Failure(absl::DeadlineExceededError("slow")), absl::StatusCode::kUnavailable,
                "pod ns/p: slow"}}) {
    answers_.clear();
    transports_.clear();
    Start({CachingFilter()});
    api_.On("GET", testing::kPodPath, reading.reply);
    const Answer answer = Result();
    EXPECT_EQ(answer.status.code(), reading.code) << answer.status;
    EXPECT_THAT(answer.status.message(), HasSubstr(reading.message));
    EXPECT_EQ(answer.failed, -1);
    EXPECT_THAT(Bodies(), IsEmpty());
  }
}

TEST_F(AskTest, NodesThatCannotBeReadFailTheAsk) {
  model::ExtenderConfig config = CachingFilter();
  config.node_cache_capable = false;
  config.ignorable = true;
  Start({config});
  api_.On("GET", kNodesPath, Reply::Json(500, ""));
  const Answer answer = Result();
  EXPECT_TRUE(absl::IsUnavailable(answer.status)) << answer.status;
  EXPECT_EQ(answer.status.message(), "list of nodes: status 500");
  EXPECT_EQ(answer.failed, -1);
}

TEST_F(AskTest, ANodeThatTheApiServerDoesNotListIsRefused) {
  model::ExtenderConfig config = CachingFilter();
  config.node_cache_capable = false;
  Start({config});
  OnFilter(0, absl::StrCat(R"({"Nodes":{"items":[)", NodeText("a"), "]}}"));
  const Answer answer = Result({"a", "gone"});
  EXPECT_EQ(Short(answer), "a:0 gone:-");
  EXPECT_EQ(ReasonOf(answer, "gone"), "the API server does not list the node");
}

}  // namespace
}  // namespace fairlead::extenders
