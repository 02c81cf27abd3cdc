#include "kube/leader/lease.h"

#include <memory>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/codec/format_time.h"
#include "kube/leader/lease_record.h"
#include "kube/transport/fake_transport.h"
#include "kube/watch/runtime_test_util.h"

namespace fairlead::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Reply = FakeTransport::Reply;

constexpr char kCollection[] = "/apis/coordination.k8s.io/v1/namespaces/sys/leases";
constexpr char kLease[] = "/apis/coordination.k8s.io/v1/namespaces/sys/leases/fairlead";

// Steady time of the fake clock, and a wall time that can be shifted.
class SkewedClock final : public Clock {
 public:
  explicit SkewedClock(const FakeClock& clock) : clock_(clock) {}
  absl::Time Now() const override { return clock_.Now() + skew; }
  absl::Duration Steady() const override { return clock_.Steady(); }
  absl::Duration skew = absl::ZeroDuration();

 private:
  const FakeClock& clock_;
};

// One Lease object with optimistic locking, as in the API server. It uses the parser under test
// only after the form of the body has been tested independently.
class LeaseServer {
 public:
  explicit LeaseServer(FakeTransport& api) {
    api.On("GET", kLease, [this](const HttpRequest&) { return Get(); });
    api.On("POST", kCollection, [this](const HttpRequest& request) {
      if (down) return Lost();
      if (exists) return ErrorReply(409, "AlreadyExists", "exists");
      return Store(request.body, 201);
    });
    api.On("PATCH", kLease, [this](const HttpRequest& request) {
      if (down) return Lost();
      EXPECT_EQ(request.content_type, kMergePatch);
      const std::string expected = absl::StrCat("\"resourceVersion\":\"", version, "\"");
      if (!exists) return ErrorReply(404, "NotFound", "none");
      if (!absl::StrContains(request.body, expected)) {
        return ErrorReply(409, "Conflict", "the object has been modified");
      }
      return Store(request.body, 200);
    });
  }
  static Reply Lost() { return Reply::Failure(absl::UnavailableError("no route to host")); }
  Reply Get() const {
    if (down) return Lost();
    return exists ? Reply::Json(200, Json()) : ErrorReply(404, "NotFound", "none");
  }
  std::string Json() const {
    return absl::StrCat(R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":)",
                        R"({"name":"fairlead","resourceVersion":")", version, R"("},"spec":)", spec,
                        "}");
  }
  // Another client's write.
  void HeldBy(const std::string& holder, int transitions = 0, int duration_s = 15) {
    exists = true;
    ++version;
    spec = absl::StrCat(R"({"holderIdentity":")", holder, R"(","leaseDurationSeconds":)",
                        duration_s, R"(,"acquireTime":"2026-01-01T00:00:00.000000Z",)",
                        R"("renewTime":"2026-01-01T00:00:00.000000Z","leaseTransitions":)",
                        transitions, "}");
  }
  Reply Store(const std::string& body, int code) {
    const size_t at = body.find("\"spec\":");
    EXPECT_NE(at, std::string::npos);
    spec = body.substr(at + 7, body.size() - at - 8);
    exists = true;
    ++version;
    return lose_answers ? Lost() : Reply::Json(code, Json());
  }

  bool exists = false, down = false, lose_answers = false;
  int version = 100;
  std::string spec;
};

class LeaseTest : public ::testing::Test {
 protected:
  std::unique_ptr<LeaderElector> NewElector(const std::string& identity) {
    LeaseOptions options = options_;
    options.identity = identity;
    LeaseCallbacks callbacks;
    callbacks.on_gain = [this, identity] { told_.push_back("+" + identity); };
    callbacks.on_loss = [this, identity] { told_.push_back("-" + identity); };
    callbacks.alive = [this] { return alive_; };
    return std::make_unique<LeaderElector>(api_, api_, clock_, options, callbacks);
  }
  void Start(const std::string& identity = "me") {
    elector_ = NewElector(identity);
    elector_->Start();
    api_.Pump();
  }

  FakeClock time_{absl::FromUnixSeconds(1'800'000'000)};
  SkewedClock clock_{time_};
  FakeTransport api_{time_};
  LeaseServer server_{api_};
  LeaseOptions options_{"sys", "fairlead", ""};
  bool alive_ = true;
  std::vector<std::string> told_;
  std::unique_ptr<LeaderElector> elector_;
};

TEST_F(LeaseTest, CreatesWhatIsNotThere) {
  Start();
  EXPECT_TRUE(elector_->IsLeader());
  EXPECT_THAT(told_, ElementsAre("+me"));
  EXPECT_EQ(api_.Sent("POST", kCollection).at(0)->request.body,
            R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":)"
            R"({"namespace":"sys","name":"fairlead"},"spec":{"holderIdentity":"me",)"
            R"("leaseDurationSeconds":15,"leaseTransitions":0,)"
            R"("acquireTime":"2027-01-15T08:00:00.000000Z",)"
            R"("renewTime":"2027-01-15T08:00:00.000000Z"}})");
}

TEST_F(LeaseTest, RenewsWithOneWriteAPeriod) {
  Start();
  const size_t before = api_.exchanges().size();
  api_.Advance(absl::Minutes(10));
  EXPECT_TRUE(elector_->IsLeader());
  EXPECT_THAT(told_, ElementsAre("+me"));
  const size_t writes = api_.Sent("PATCH", kLease).size();
  EXPECT_EQ(api_.exchanges().size() - before, writes) << "no reads while leading";
  EXPECT_GE(writes, 250u);
  EXPECT_LE(writes, 300u);
  EXPECT_THAT(server_.spec, HasSubstr(R"("acquireTime":"2027-01-15T08:00:00.000000Z")"));
  EXPECT_THAT(server_.spec, HasSubstr(R"("leaseTransitions":0)"));
}

TEST_F(LeaseTest, TakesOverOnlyAfterItsOwnFullWait) {
  server_.HeldBy("other", 4);  // its times are long past; this has no effect
  Start();
  api_.Advance(absl::Seconds(14.9));
  EXPECT_FALSE(elector_->IsLeader());
  EXPECT_THAT(api_.Sent("PATCH", kLease), IsEmpty());
  api_.Advance(absl::Seconds(3));
  EXPECT_TRUE(elector_->IsLeader());
  EXPECT_THAT(server_.spec, HasSubstr(R"("holderIdentity":"me")"));
  EXPECT_THAT(server_.spec, HasSubstr(R"("leaseTransitions":5)"));
}

TEST_F(LeaseTest, AnyRenewalStartsTheWaitAnew) {
  server_.HeldBy("other");
  Start();
  for (int i = 0; i < 10; ++i) {
    api_.Advance(absl::Seconds(12));
    server_.HeldBy("other");
  }
  EXPECT_FALSE(elector_->IsLeader());
  EXPECT_THAT(api_.Sent("PATCH", kLease), IsEmpty());
}

TEST_F(LeaseTest, ALongerLeaseOfTheHolderIsRespected) {
  server_.HeldBy("other", 0, /*duration_s=*/60);
  Start();
  api_.Advance(absl::Seconds(59));
  EXPECT_FALSE(elector_->IsLeader());
  api_.Advance(absl::Seconds(4));
  EXPECT_TRUE(elector_->IsLeader());
}

TEST_F(LeaseTest, AReleasedLeaseIsTakenAtOnce) {
  server_.HeldBy("", 7);
  Start();
  EXPECT_TRUE(elector_->IsLeader());
  EXPECT_THAT(server_.spec, HasSubstr(R"("leaseTransitions":8)"));
}

TEST_F(LeaseTest, LostRenewalsEndLeadershipBeforeTheLeaseExpires) {
  Start();
  api_.Advance(absl::Seconds(20));
  const absl::Duration last = api_.Sent("PATCH", kLease).back()->sent_at;
  server_.down = true;
  api_.Advance(last + options_.times.renew_deadline - time_.Steady() - absl::Nanoseconds(1));
  EXPECT_TRUE(elector_->IsLeader());
  EXPECT_THAT(told_, ElementsAre("+me"));
  api_.Advance(absl::Nanoseconds(1));
  EXPECT_FALSE(elector_->IsLeader());
  EXPECT_THAT(told_, ElementsAre("+me", "-me"));
  server_.down = false;
  api_.Advance(absl::Seconds(5));
  EXPECT_TRUE(elector_->IsLeader()) << "no other process came";
  EXPECT_THAT(told_, ElementsAre("+me", "-me", "+me"));
}

TEST_F(LeaseTest, AStoppedProcessKnowsWithoutAnyCallback) {
  Start();
  time_.Advance(options_.times.renew_deadline);  // as SIGSTOP: no timer runs
  EXPECT_FALSE(elector_->IsLeader());
  EXPECT_THAT(told_, ElementsAre("+me"));
  // Another process took it meanwhile: our blind renewal is refused and the loss is reported.
  server_.HeldBy("other");
  api_.Pump();
  EXPECT_FALSE(elector_->IsLeader());
  EXPECT_THAT(told_, ElementsAre("+me", "-me"));
  EXPECT_THAT(server_.spec, HasSubstr("other"));
}

TEST_F(LeaseTest, WallTimeMayJumpAsItLikes) {
  server_.HeldBy("other");
  Start();
  clock_.skew = absl::Hours(24);
  api_.Advance(absl::Seconds(10));
  EXPECT_FALSE(elector_->IsLeader());
  clock_.skew = -absl::Hours(24);
  api_.Advance(absl::Seconds(10));
  EXPECT_TRUE(elector_->IsLeader());
  for (int hours : {24, -24, 1, -1}) {
    clock_.skew = absl::Hours(hours);
    api_.Advance(absl::Minutes(1));
    EXPECT_TRUE(elector_->IsLeader());
  }
  EXPECT_THAT(told_, ElementsAre("+me"));
}

TEST_F(LeaseTest, AConflictOnRenewalIsLookedInto) {
  Start();
  ++server_.version;  // another client labelled the object
  api_.Advance(absl::Seconds(6));
  EXPECT_TRUE(elector_->IsLeader());
  EXPECT_THAT(told_, ElementsAre("+me"));
  EXPECT_GE(elector_->GetStats().errors, 1);
  server_.HeldBy("thief");
  api_.Advance(absl::Seconds(6));
  EXPECT_FALSE(elector_->IsLeader());
  EXPECT_THAT(told_, ElementsAre("+me", "-me"));
  EXPECT_EQ(elector_->GetStats().holder, "thief");
}

TEST_F(LeaseTest, ALostAnswerIsNotCountedAsARenewal) {
  Start();
  server_.lose_answers = true;
  api_.Advance(options_.times.renew_deadline + absl::Seconds(3));
  EXPECT_FALSE(elector_->IsLeader()) << "written, but not known to be";
  server_.lose_answers = false;
  api_.Advance(absl::Seconds(5));
  EXPECT_TRUE(elector_->IsLeader());
  EXPECT_THAT(server_.spec, HasSubstr(R"("leaseTransitions":0)")) << "it was ours all along";
}

TEST_F(LeaseTest, AnAnswerThatComesTooLateProvesNothing) {
  // A transport that answers after the given time-out.
  api_.On("POST", kCollection, Reply::Hold());
  Start();
  const auto id = api_.FindOpen("POST", kCollection);
  ASSERT_TRUE(id.has_value());
  time_.Advance(options_.times.renew_deadline);
  server_.HeldBy("me");
  api_.Respond(*id, Reply::Json(201, server_.Json()).response);
  api_.Pump();
  EXPECT_FALSE(elector_->IsLeader());
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(LeaseTest, TwoCandidatesNeverLeadTogether) {
  Start("a");
  auto other = NewElector("b");
  other->Start();
  const auto check = [&](absl::Duration time) {
    for (absl::Duration t; t < time; t += absl::Milliseconds(100)) {
      api_.Advance(absl::Milliseconds(100));
      ASSERT_FALSE(elector_->IsLeader() && other->IsLeader());
    }
  };
  check(absl::Minutes(1));
  EXPECT_TRUE(elector_->IsLeader());
  // "a" loses its connection to the server; "b" does not.
  api_.When([](const HttpRequest& request) { return absl::StrContains(request.body, "\"a\""); },
            [](const HttpRequest&) { return LeaseServer::Lost(); });
  check(absl::Minutes(1));
  EXPECT_TRUE(other->IsLeader());
  EXPECT_THAT(told_, ElementsAre("+a", "-a", "+b"));
  other->Stop();
  other.reset();
  api_.Pump();
}

TEST_F(LeaseTest, AProcessThatHangsLosesTheLeaseAndDoesNotTakeItBack) {
  Start();
  api_.Advance(absl::Seconds(20));
  ASSERT_TRUE(elector_->IsLeader());
  alive_ = false;
  api_.Advance(options_.times.renew_deadline + absl::Seconds(3));
  EXPECT_FALSE(elector_->IsLeader());
  EXPECT_THAT(told_, ElementsAre("+me", "-me"));
  const size_t written = api_.Sent("PATCH", kLease).size();
  api_.Advance(absl::Minutes(1));
  EXPECT_EQ(api_.Sent("PATCH", kLease).size(), written);
  EXPECT_GT(elector_->GetStats().withheld, 3);
  EXPECT_THAT(elector_->GetStats().last_error, HasSubstr("does not answer"));
  alive_ = true;
  api_.Advance(absl::Seconds(5));
  EXPECT_TRUE(elector_->IsLeader()) << "no other process came";
}

// A request that is sent with this time-out is over before another process may lead.
TEST_F(LeaseTest, TimeLeftEndsBeforeTheLeaseDoes) {
  EXPECT_EQ(NewElector("idle")->TimeLeft(), absl::ZeroDuration());
  Start();
  const absl::Duration renewed = time_.Steady();
  EXPECT_LT(elector_->TimeLeft(), options_.times.lease_duration);
  EXPECT_GT(elector_->TimeLeft(), options_.times.renew_deadline);
  server_.down = true;
  while (elector_->IsLeader()) {
    EXPECT_LT(time_.Steady() + elector_->TimeLeft(), renewed + options_.times.lease_duration);
    EXPECT_GT(elector_->TimeLeft(), absl::ZeroDuration());
    api_.Advance(absl::Milliseconds(100));
  }
  EXPECT_EQ(elector_->TimeLeft(), absl::ZeroDuration());
}

TEST_F(LeaseTest, StopReleases) {
  Start();
  bool released = false;
  elector_->Stop([&] { released = true; });
  EXPECT_FALSE(elector_->IsLeader()) << "at once";
  EXPECT_THAT(told_, ElementsAre("+me", "-me"));
  EXPECT_FALSE(released);
  api_.Pump();
  EXPECT_TRUE(released);
  EXPECT_THAT(server_.spec, HasSubstr(R"("holderIdentity":"","leaseDurationSeconds":1)"));
  EXPECT_THAT(server_.spec, HasSubstr(R"("leaseTransitions":0)"));
  EXPECT_EQ(api_.timer_count(), 0u);
}

TEST_F(LeaseTest, StopWaitsForTheRenewalOnTheWire) {
  Start();
  api_.On("PATCH", kLease, Reply::Hold(), 1);
  api_.Advance(absl::Seconds(2.5));
  const auto id = api_.FindOpen("PATCH", kLease);
  ASSERT_TRUE(id.has_value());
  bool released = false;
  elector_->Stop([&] { released = true; });
  api_.Pump();
  EXPECT_FALSE(released);
  // It was written, and the answer was lost.
  ++server_.version;
  api_.Fail(*id, absl::UnavailableError("reset"));
  api_.Pump();
  EXPECT_TRUE(released);
  EXPECT_THAT(server_.spec, HasSubstr(R"("holderIdentity":"")"));
  EXPECT_THAT(told_, ElementsAre("+me", "-me"));
}

TEST_F(LeaseTest, StopGivesUpOnADeadServer) {
  Start();
  server_.down = true;
  bool released = false;
  elector_->Stop([&] { released = true; });
  api_.Advance(absl::Minutes(1));
  EXPECT_TRUE(released);
  EXPECT_EQ(api_.timer_count(), 0u);
}

TEST_F(LeaseTest, ACandidateHasNothingToRelease) {
  server_.HeldBy("other");
  Start();
  bool released = false;
  elector_->Stop([&] { released = true; });
  EXPECT_TRUE(released);
  api_.Pump();
  EXPECT_THAT(api_.Sent("PATCH", kLease), IsEmpty());
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(LeaseTest, DestructionTellsTheLossAndReleasesNothing) {
  Start();
  elector_.reset();
  EXPECT_THAT(told_, ElementsAre("+me", "-me"));
  api_.Advance(absl::Hours(1));
  EXPECT_THAT(server_.spec, HasSubstr(R"("holderIdentity":"me")"));
}

TEST(LeaseRecordTest, MicroTimeHasAlwaysSixDigits) {
  const absl::Time time = absl::FromUnixSeconds(1'800'000'000);
  EXPECT_EQ(FormatMicros(time), "2027-01-15T08:00:00.000000Z");
  EXPECT_EQ(FormatMicros(time + absl::Microseconds(120)), "2027-01-15T08:00:00.000120Z");
  EXPECT_EQ(FormatMicros(time + absl::Nanoseconds(999)), "2027-01-15T08:00:00.000000Z");
}

TEST(LeaseRecordTest, ReadsWhatItNeedsAndRefusesTheRest) {
  const auto record = ParseLease(
      R"({"kind":"Lease","metadata":{"resourceVersion":"7","labels":{"a":"b"}},"spec":)"
      R"({"holderIdentity":"h\"x","leaseDurationSeconds":15,"renewTime":"r","strategy":"x",)"
      R"("acquireTime":"a","leaseTransitions":3}})");
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->holder, "h\"x");
  EXPECT_EQ(record->duration_s, 15);
  EXPECT_EQ(record->transitions, 3);
  EXPECT_EQ(
      EncodeLeasePatch(*record),
      R"({"metadata":{"resourceVersion":"7"},"spec":{"holderIdentity":"h\"x",)"
      R"("leaseDurationSeconds":15,"leaseTransitions":3,"acquireTime":"a","renewTime":"r"}})");
  for (const char* bad : {"", "[]", "{", R"({"kind":"Pod"})", R"({"kind":"Lease"})",
                          R"({"kind":"Lease","metadata":{"resourceVersion":7}})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseLease(bad).status())) << bad;
  }
  EXPECT_TRUE(ParseLease(R"({"kind":"Lease","metadata":{"resourceVersion":"7"}})").ok());
}

TEST(LeaseOptionsTest, AreValidated) {
  const LeaseOptions good{"ns", "name", "me"};
  EXPECT_TRUE(ValidateLeaseOptions(good).ok());
  const auto message = [&](auto change) {
    LeaseOptions options = good;
    change(options);
    const absl::Status status = ValidateLeaseOptions(options);
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  EXPECT_THAT(message([](LeaseOptions& o) { o.ns = ""; }), HasSubstr("namespace"));
  EXPECT_THAT(message([](LeaseOptions& o) { o.name = ""; }), HasSubstr("name"));
  EXPECT_THAT(message([](LeaseOptions& o) { o.identity = ""; }), HasSubstr("identity"));
  EXPECT_THAT(message([](LeaseOptions& o) { o.times.renew_deadline = o.times.lease_duration; }),
              HasSubstr("leaseDuration"));
  EXPECT_THAT(message([](LeaseOptions& o) {
                o.times.renew_deadline = o.times.lease_duration - absl::Milliseconds(900);
              }),
              HasSubstr("leaseDuration: must be at least 1s more than renewDeadline"));
  EXPECT_THAT(message([](LeaseOptions& o) { o.times.retry_period = absl::Seconds(9); }),
              HasSubstr("renewDeadline"));
  EXPECT_THAT(message([](LeaseOptions& o) { o.times.retry_period = absl::ZeroDuration(); }),
              HasSubstr("retryPeriod"));
  EXPECT_THAT(message([](LeaseOptions& o) { o.times.lease_duration = absl::Milliseconds(15500); }),
              HasSubstr("whole seconds"));
}

}  // namespace
}  // namespace fairlead::kube
