// One replica's network: what happens to requests and streams under each fault, and when.
#include "sim/world/network.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/world/api_testing.h"

namespace fairlead::sim::world {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kNodePath[] = "/api/v1/nodes/n";

class StreamLog final : public kube::StreamObserver {
 public:
  void OnHeaders(int status, absl::string_view) override { code = status; }
  void OnData(absl::string_view bytes) override { data.append(bytes.data(), bytes.size()); }
  void OnDone(const absl::Status& status, absl::Duration) override {
    done = status;
    ++ends;
  }
  int code = 0, ends = 0;
  std::string data;
  absl::Status done;
};

class NetworkTest : public ::testing::Test {
 protected:
  NetworkTest() { world_.Create(ResourceType::kNodes, NodeJson("n")); }

  // The answer, once it has come.
  struct Call {
    bool done = false;
    absl::StatusOr<kube::HttpResponse> answer = absl::UnknownError("");
    absl::Time at;
    [[nodiscard]] int status() const { return answer.ok() ? answer->status : -1; }
  };
  std::shared_ptr<Call> Send(const std::string& method, const std::string& path, const Json& body,
                             absl::Duration timeout = absl::Seconds(15)) {
    kube::HttpRequest request;
    request.method = method;
    request.path = path;
    request.content_type = method == "PATCH" ? kube::kMergePatch : kube::kJson;
    request.traffic = method == "GET" ? kube::TrafficClass::kRead : kube::TrafficClass::kWrite;
    request.timeout = timeout;
    if (!body.is_null()) request.body = Dump(body);
    auto call = std::make_shared<Call>();
    last_id_ = network_.Send(std::move(request), [this, call](auto answer) {
      EXPECT_FALSE(call->done) << "answered twice";
      call->done = true;
      call->answer = std::move(answer);
      call->at = world_.time.now();
    });
    return call;
  }
  std::shared_ptr<Call> Get() { return Send("GET", kNodePath, nullptr); }
  std::shared_ptr<Call> Label(const std::string& value) {
    return Send("PATCH", kNodePath, {{"metadata", {{"labels", {{"x", value}}}}}});
  }
  std::string Label() const {
    return TextAt(world_.Get(ResourceType::kNodes, "n"), {"metadata", "labels", "x"});
  }
  std::shared_ptr<StreamLog> Watch(const std::string& path = "/api/v1/nodes?watch=1") {
    kube::HttpRequest request = GetOf(path);
    request.traffic = kube::TrafficClass::kWatch;
    request.timeout = absl::InfiniteDuration();
    auto log = std::make_shared<StreamLog>();
    last_id_ = network_.Stream(std::move(request), log);
    return log;
  }
  void Touch(const std::string& value) {
    world_.Merge(ResourceType::kNodes, "n", {{"metadata", {{"labels", {{"y", value}}}}}});
  }
  void With(NetworkFaults faults) { network_.SetFaults(faults); }
  void Run(absl::Duration by) { world_.Run(by); }

  TestWorld world_;
  Network network_{&world_.time, &world_.server, "replica", 7};
  Network::Id last_id_ = 0;
};

TEST_F(NetworkTest, AnAnswerComesLaterNeverFromWithin) {
  const auto call = Label("1");
  EXPECT_FALSE(call->done);
  EXPECT_EQ(Label(), "");
  Run(absl::Milliseconds(10));
  EXPECT_EQ(call->status(), 200);
  EXPECT_EQ(Label(), "1");
  EXPECT_GE(call->at, TestStart() + absl::Milliseconds(2));
  EXPECT_EQ(network_.requests(), 1);
}

TEST_F(NetworkTest, CallsWaitByMovingTime) {
  kube::HttpRequest request = GetOf(kNodePath);
  const auto answer = network_.Call(request);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->status, 200);
  network_.Partition(absl::InfiniteFuture());
  request.timeout = absl::Seconds(3);
  EXPECT_TRUE(absl::IsDeadlineExceeded(network_.Call(request).status()));
}

TEST_F(NetworkTest, TimersRunInOrderAndCanBeTakenBack) {
  std::vector<int> ran;
  network_.After(absl::Seconds(2), [&] { ran.push_back(2); });
  network_.After(absl::Seconds(1), [&] {
    ran.push_back(1);
    network_.After(absl::ZeroDuration(), [&] { ran.push_back(10); });
  });
  const auto id = network_.After(absl::Seconds(1), [&] { ran.push_back(3); });
  network_.After(absl::Seconds(1), [&] { ran.push_back(4); });
  network_.CancelTimer(id);
  Run(absl::Seconds(3));
  EXPECT_THAT(ran, ElementsAre(1, 4, 10, 2));
}

TEST_F(NetworkTest, ALostRequestIsNotHandled) {
  With({.lose_request = 1000});
  int at_once = 0;
  int at_timeout = 0;
  for (int i = 0; i < 20; ++i) {
    const auto call = Label("lost");
    const absl::Time sent = world_.time.now();
    Run(absl::Seconds(15));
    ASSERT_TRUE(call->done);
    if (absl::IsUnavailable(call->answer.status())) {
      ++at_once;
      EXPECT_LE(call->at, sent + absl::Milliseconds(10));
    } else {
      EXPECT_TRUE(absl::IsDeadlineExceeded(call->answer.status()));
      EXPECT_EQ(call->at, sent + absl::Seconds(15));
      ++at_timeout;
    }
  }
  EXPECT_EQ(Label(), "");
  EXPECT_GT(at_once, 0);
  EXPECT_GT(at_timeout, 0);
}

TEST_F(NetworkTest, ALostAnswerWasHandled) {
  With({.lose_answer = 1000});
  const auto call = Label("done");
  Run(absl::Seconds(15));
  EXPECT_FALSE(call->answer.ok());
  EXPECT_EQ(Label(), "done");
}

TEST_F(NetworkTest, ThrottlingSaysWhenToComeBack) {
  With({.throttle = 1000});
  const auto call = Label("no");
  Run(absl::Seconds(1));
  EXPECT_EQ(call->status(), 429);
  EXPECT_EQ(call->answer->retry_after, absl::Seconds(1));
  EXPECT_EQ(Label(), "");
}

TEST_F(NetworkTest, ServerErrorsAreBothKindsAndHandleNothing) {
  With({.server_error = 1000});
  std::map<int, int> codes;
  for (int i = 0; i < 20; ++i) {
    const auto call = Label("no");
    Run(absl::Seconds(1));
    ++codes[call->status()];
  }
  EXPECT_EQ(codes.size(), 2u);
  EXPECT_GT(codes[500], 0);
  EXPECT_GT(codes[503], 0);
  EXPECT_EQ(Label(), "");
}

TEST_F(NetworkTest, AGatewayTimeoutMayHaveBeenHandled) {
  With({.gateway_timeout = 1000});
  int handled = 0;
  for (int i = 0; i < 20; ++i) {
    const auto call = Label(absl::StrCat(i));
    Run(absl::Seconds(1));
    EXPECT_EQ(call->status(), 504);
    handled += Label() == absl::StrCat(i) ? 1 : 0;
  }
  EXPECT_GT(handled, 0);
  EXPECT_LT(handled, 20);
}

TEST_F(NetworkTest, AFalseConflictIsForWritesAlone) {
  With({.conflict = 1000});
  const auto write = Label("no");
  const auto read = Get();
  Run(absl::Seconds(1));
  EXPECT_EQ(write->status(), 409);
  EXPECT_EQ(read->status(), 200);
  EXPECT_EQ(Label(), "");
}

TEST_F(NetworkTest, FaultsOfAThousandAreAsManyAsWereAskedFor) {
  With({.lose_request = 100, .throttle = 200, .conflict = 50});
  std::map<int, int> codes;
  for (int i = 0; i < 2000; ++i) {
    const auto call = Label("x");
    Run(absl::Seconds(15));
    ++codes[call->status()];
  }
  EXPECT_NEAR(codes[-1], 200, 50);
  EXPECT_NEAR(codes[429], 400, 70);
  EXPECT_NEAR(codes[409], 100, 40);
}

TEST_F(NetworkTest, TheSameSeedGivesTheSameFate) {
  const auto run = [](uint64_t seed) {
    TestWorld world;
    world.Create(ResourceType::kNodes, NodeJson("n"));
    Network network(&world.time, &world.server, "r", seed);
    network.SetFaults({.lose_request = 100, .lose_answer = 100, .throttle = 100});
    std::string trace;
    for (int i = 0; i < 50; ++i) {
      network.Send(GetOf(kNodePath), [&trace, &world](const auto& answer) {
        absl::StrAppend(&trace, absl::ToUnixMicros(world.time.now()), " ",
                        answer.ok() ? absl::StrCat(answer->status) : answer.status().ToString(),
                        "\n");
      });
    }
    world.Run(absl::Minutes(1));
    return trace;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

TEST_F(NetworkTest, RefusalsMatchMethodPathAndTime) {
  const absl::Time until = world_.time.now() + absl::Minutes(1);
  network_.Refuse("PATCH", "/api/v1/nodes", "", 403, until);
  const auto write = Label("no");
  const auto read = Get();
  Run(absl::Seconds(1));
  EXPECT_EQ(write->status(), 403);
  EXPECT_EQ(
      TextAt(Parse(write->answer->body), {"message"}),
      "nodes \"n\" is forbidden: User \"fairlead\" cannot patch resource \"nodes\" in API group "
      "\"\" at the cluster scope");
  EXPECT_EQ(read->status(), 200);
  Run(absl::Minutes(1));
  const auto later = Label("yes");
  Run(absl::Seconds(1));
  EXPECT_EQ(later->status(), 200);

  network_.Refuse("", "/api/v1/", "/n", 410, world_.time.now() + absl::Minutes(1));
  const auto by_suffix = Get();
  const auto other = Send("GET", "/api/v1/nodes?limit=1", nullptr);
  Run(absl::Seconds(1));
  EXPECT_EQ(by_suffix->status(), 410);
  EXPECT_EQ(TextAt(Parse(by_suffix->answer->body), {"reason"}), "Expired");
  EXPECT_EQ(other->status(), 200);
}

TEST_F(NetworkTest, ARefusalOfZeroHangsUntilTheTimeout) {
  network_.Refuse("", "/api/v1/nodes", "", 0, absl::InfiniteFuture());
  const auto call = Get();
  const auto stream = Watch();
  Run(absl::Minutes(10));
  EXPECT_TRUE(absl::IsDeadlineExceeded(call->answer.status()));
  EXPECT_EQ(stream->code, 0);
  EXPECT_EQ(stream->ends, 0);
}

TEST_F(NetworkTest, ARefusedStreamTellsWhyAndEnds) {
  network_.Refuse("", "/api/v1/nodes", "", 403, absl::InfiniteFuture());
  const auto stream = Watch();
  Run(absl::Seconds(1));
  EXPECT_EQ(stream->code, 403);
  EXPECT_EQ(stream->ends, 1);
  EXPECT_EQ(TextAt(Parse(stream->data), {"reason"}), "Forbidden");
}

TEST_F(NetworkTest, FramesArriveInOrderAndWhole) {
  With({.max_watch_delay = absl::Seconds(5)});
  const auto stream = Watch("/api/v1/nodes?watch=1&resourceVersion=1");
  Run(absl::Seconds(6));
  std::string expected;
  for (int i = 0; i < 50; ++i) {
    Touch(absl::StrCat(i));
    Run(absl::Milliseconds(100));
  }
  Run(absl::Seconds(6));
  std::vector<std::string> labels;
  for (size_t begin = 0; begin < stream->data.size();) {
    const size_t end = stream->data.find('\n', begin);
    const Json event = Parse(stream->data.substr(begin, end - begin));
    const std::string label = TextAt(event, {"object", "metadata", "labels", "y"});
    if (!label.empty()) labels.push_back(label);
    begin = end + 1;
  }
  ASSERT_EQ(labels.size(), 50u);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(labels[static_cast<size_t>(i)], absl::StrCat(i));
}

TEST_F(NetworkTest, ACancelledCallIsToldSoAndMayStillBeDone) {
  const auto call = Label("late");
  network_.Cancel(last_id_);
  EXPECT_FALSE(call->done);
  Run(absl::Seconds(1));
  EXPECT_TRUE(absl::IsCancelled(call->answer.status()));
  EXPECT_EQ(Label(), "late");
}

TEST_F(NetworkTest, ACancelledStreamIsOver) {
  const auto stream = Watch();
  Run(absl::Seconds(1));
  network_.Cancel(last_id_);
  Run(absl::Seconds(1));
  EXPECT_TRUE(absl::IsCancelled(stream->done));
  stream->data.clear();
  Touch("1");
  Run(absl::Seconds(1));
  EXPECT_THAT(stream->data, IsEmpty());
  EXPECT_EQ(stream->ends, 1);
}

TEST_F(NetworkTest, AHalfOpenConnectionIsSilentForItsClassAlone) {
  const auto stream = Watch();
  Run(absl::Seconds(1));
  stream->data.clear();
  network_.HalfOpen(kube::TrafficClass::kWatch, world_.time.now() + absl::Minutes(1));
  const auto begun = Watch();
  const auto write = Label("yes");
  Touch("1");
  Run(absl::Minutes(2));
  EXPECT_EQ(write->status(), 200);
  EXPECT_THAT(stream->data, IsEmpty());
  EXPECT_EQ(stream->ends, 0);
  EXPECT_EQ(begun->code, 0);
  const auto after = Watch();
  Run(absl::Seconds(1));
  EXPECT_EQ(after->code, 200);
}

TEST_F(NetworkTest, WritesOnAHalfOpenConnectionTimeOut) {
  network_.HalfOpen(kube::TrafficClass::kWrite, world_.time.now() + absl::Minutes(1));
  const auto write = Label("no");
  Run(absl::Minutes(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(write->answer.status()));
  EXPECT_EQ(Label(), "");
}

TEST_F(NetworkTest, GoAwayEndsAllStreams) {
  const auto a = Watch();
  const auto b = Watch("/api/v1/pods?watch=1");
  const auto call = Get();
  Run(absl::Milliseconds(100));
  network_.GoAway();
  Run(absl::Milliseconds(1));
  EXPECT_EQ(a->ends, 1);
  EXPECT_EQ(b->ends, 1);
  EXPECT_EQ(call->status(), 200);
}

TEST_F(NetworkTest, APartitionDelaysWhatIsUnderWay) {
  const auto stream = Watch();
  Run(absl::Seconds(1));
  stream->data.clear();
  network_.Partition(world_.time.now() + absl::Seconds(10));
  const auto call = Label("1");
  Touch("y");
  Run(absl::Seconds(9));
  EXPECT_FALSE(call->done);
  EXPECT_EQ(Label(), "");
  EXPECT_THAT(stream->data, IsEmpty());
  Run(absl::Seconds(2));
  EXPECT_EQ(call->status(), 200);
  EXPECT_EQ(Label(), "1");
  EXPECT_FALSE(stream->data.empty());
}

TEST_F(NetworkTest, WhatAPartitionHoldsBeyondItsTimeoutNeverArrives) {
  network_.Partition(world_.time.now() + absl::Seconds(60));
  const auto call = Label("1");
  Run(absl::Seconds(61));
  EXPECT_TRUE(absl::IsDeadlineExceeded(call->answer.status()));
  EXPECT_EQ(Label(), "");
}

TEST_F(NetworkTest, TheDeadHearNothingAndWhatTheySentArrives) {
  const auto stream = Watch();
  Run(absl::Seconds(1));
  stream->data.clear();
  int ran = 0;
  network_.After(absl::Seconds(1), [&] { ++ran; });
  const auto call = Label("last");
  network_.Die();
  Touch("1");
  const auto after = Label("never");
  network_.After(absl::Seconds(1), [&] { ++ran; });
  Run(absl::Minutes(1));
  EXPECT_EQ(Label(), "last");
  EXPECT_FALSE(call->done);
  EXPECT_FALSE(after->done);
  EXPECT_EQ(ran, 0);
  EXPECT_THAT(stream->data, IsEmpty());
  EXPECT_EQ(stream->ends, 0);
}

}  // namespace
}  // namespace fairlead::sim::world
