#include "autoscale-hook/providers/karpenter/karpenter_provider.h"

#include <gtest/gtest.h>

#include "autoscale-hook/providers/contract_testing.h"
#include "autoscale-hook/providers/karpenter/fake_karpenter_testing.h"

namespace fairlead::hook {
namespace {

// ---- the contract

class KarpenterWorld final : public ContractWorld {
 public:
  explicit KarpenterWorld(absl::Duration latency) : ContractWorld(latency) {}
  [[nodiscard]] ProviderTraits traits() const override { return {}; }
  std::unique_ptr<Provider> MakeProvider() override {
    return std::make_unique<KarpenterProvider>(KarpenterOptions(), &time, &karpenter_);
  }
  std::set<std::string> Machines(const std::string& request) override {
    std::set<std::string> ids;
    for (const auto& [id, owner] : karpenter_.machines) {
      if (owner == request) ids.insert(id);
    }
    return ids;
  }
  void Vanish(const std::string& request) override {
    if (!karpenter_.claims.contains(request)) return;
    karpenter_.machines.erase(karpenter_.claims[request].provider_id);
    karpenter_.BeginDeletion(request);
  }
  void Replace(const std::string& request) override {
    FakeKarpenter::Claim& claim = karpenter_.claims[request];
    karpenter_.machines.erase(claim.provider_id);
    const Json body = claim.body;
    karpenter_.claims.erase(request);
    EXPECT_TRUE(karpenter_.Add(request, body).ok());
  }
  // One of Karpenter's own, and one that has our label.
  void AddForeigner(const std::string& name) override {
    EXPECT_TRUE(
        karpenter_.Add(name, *Json::Parse(R"({"metadata":{"name":")" + name + R"("}})")).ok());
    EXPECT_TRUE(
        karpenter_
            .Add(name + "-2", *Json::Parse(R"({"metadata":{"name":")" + name +
                                           R"(-2","labels":{"fairlead.dev/node-request":")" + name +
                                           R"(-2"}}})"))
            .ok());
  }
  bool HasForeigner(const std::string& name) override {
    return karpenter_.claims.contains(name) && karpenter_.claims.contains(name + "-2");
  }

 private:
  FakeKarpenter karpenter_{&time, &calls};
};

std::unique_ptr<ContractWorld> MakeKarpenterWorld() {
  return std::make_unique<KarpenterWorld>(absl::Milliseconds(20));
}
// Every call is answered before it returns.
std::unique_ptr<ContractWorld> MakePromptKarpenterWorld() {
  return std::make_unique<KarpenterWorld>(absl::ZeroDuration());
}

INSTANTIATE_TEST_SUITE_P(Karpenter, ProviderContract,
                         ::testing::Values(&MakeKarpenterWorld, &MakePromptKarpenterWorld));

// ---- what Karpenter adds

class KarpenterProviderTest : public ::testing::Test, public ProviderListener {
 protected:
  void SetUp() override { provider_->Start(this); }

  void OnMachine(const MachineReport& report) override { reports_.push_back(report); }
  void OnOffers(absl::string_view, std::shared_ptr<const Catalog>) override {}
  void OnProblem(absl::string_view, const absl::Status& problem) override {
    problems_.push_back(problem);
  }

  struct Answered {
    int times = 0;
    ProviderAnswer answer = absl::UnknownError("no answer");
  };
  static model::LaunchNode Order(const std::string& name, const std::string& uid,
                                 const std::string& type = kUsualType) {
    model::LaunchNode launch;
    launch.request.Own().meta.name = name;
    launch.request.Own().meta.uid = uid;
    launch.request.Own().instance_type = type;
    launch.node_class = {"karpenter.k8s.aws", "EC2NodeClass", "default"};
    launch.node.Own().meta.name = name;
    return launch;
  }
  std::shared_ptr<Answered> Launch(const model::LaunchNode& launch) {
    auto answered = std::make_shared<Answered>();
    provider_->Launch({{launch, [answered](const ProviderAnswer& answer) {
                          ++answered->times;
                          answered->answer = answer;
                        }}});
    return answered;
  }
  std::shared_ptr<Answered> End(const std::string& name, const std::string& id = "") {
    auto answered = std::make_shared<Answered>();
    provider_->Terminate({name, "karpenter", name, id}, [answered](const ProviderAnswer& answer) {
      ++answered->times;
      answered->answer = answer;
    });
    return answered;
  }
  void Pass(absl::Duration duration) { time_.Advance(duration); }
  // No end waits any more for creations of a former process.
  void PassStart() { Pass(kDoubtLasts + absl::Seconds(20)); }
  Json Claim(const std::string& name, const std::string& uid) {
    return *Json::Parse(R"({"metadata":{"name":")" + name +
                        R"(","labels":{"fairlead.dev/node-request":")" + name +
                        R"("},"annotations":{"fairlead.dev/node-request-uid":")" + uid + R"("}}})");
  }
  MachineReport Last() { return reports_.empty() ? MachineReport() : reports_.back(); }

  VirtualTime time_;
  BackEndCalls calls_{&time_, absl::Milliseconds(20)};
  FakeKarpenter karpenter_{&time_, &calls_};
  std::vector<MachineReport> reports_;
  std::vector<absl::Status> problems_;
  std::unique_ptr<KarpenterProvider> provider_ =
      std::make_unique<KarpenterProvider>(KarpenterOptions(), &time_, &karpenter_);
};

TEST_F(KarpenterProviderTest, AnOrderWithoutANodeClassNamesTheSettings) {
  model::LaunchNode order = Order("fl-1", "u1");
  order.request.Own().pool = "a100";
  order.node_class = {};
  const absl::Status status = Launch(order)->answer;
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(),
            "NodeClaim fl-1: spec.nodeClassRef: no node class; set spec.nodeClassRef of NodePool "
            "a100 or karpenter.nodeClassRef of the configuration");
  EXPECT_EQ(karpenter_.creates, 0);
}

TEST_F(KarpenterProviderTest, AClaimOfAnotherRequestIsNeitherTakenNorDeleted) {
  ASSERT_TRUE(karpenter_.Add("fl-1", Claim("fl-1", "theirs")).ok());
  PassStart();
  const auto order = Launch(Order("fl-1", "mine"));
  Pass(absl::Seconds(5));
  EXPECT_EQ(order->answer.status,
            absl::FailedPreconditionError(
                "NodeClaim fl-1 is of NodeRequest uid theirs, not of uid mine"));
  const auto end = End("fl-1");
  Pass(absl::Seconds(20));
  EXPECT_TRUE(end->answer.status.ok()) << "the order got nothing: " << end->answer.status;
  EXPECT_EQ(karpenter_.deletes, 0);
  EXPECT_TRUE(karpenter_.claims.contains("fl-1"));
}

TEST_F(KarpenterProviderTest, AClaimThatIsNotFairleadsIsNeitherTakenNorDeleted) {
  ASSERT_TRUE(karpenter_.Add("fl-1", *Json::Parse(R"({"metadata":{"name":"fl-1"}})")).ok());
  PassStart();
  const auto order = Launch(Order("fl-1", "mine"));
  Pass(absl::Seconds(20));
  EXPECT_TRUE(absl::IsFailedPrecondition(order->answer.status)) << order->answer.status;
  EXPECT_EQ(karpenter_.creates, 3);
  const auto end = End("fl-1");
  Pass(absl::Seconds(20));
  EXPECT_TRUE(end->answer.status.ok());
  EXPECT_EQ(karpenter_.deletes, 0);
  EXPECT_TRUE(reports_.empty());
}

TEST_F(KarpenterProviderTest, AMachineGoesThroughItsStates) {
  Launch(Order("fl-1", "u1"));
  Pass(absl::Seconds(1));
  ASSERT_EQ(reports_.size(), 1u);
  EXPECT_EQ(Last().state, MachineState::kStarting);
  EXPECT_EQ(Last().machine_id, "");
  Pass(absl::Minutes(2));
  ASSERT_EQ(reports_.size(), 2u);
  EXPECT_EQ(Last().state, MachineState::kRunning);
  EXPECT_EQ(Last().machine_id, "aws:///z1/i-1-fl-1");
  EXPECT_EQ(Last().request_uid, "u1");
  karpenter_.BeginDeletion("fl-1");
  Pass(absl::Seconds(30));
  EXPECT_EQ(Last().state, MachineState::kGone);
  EXPECT_EQ(Last().machine_id, "aws:///z1/i-1-fl-1");
  EXPECT_EQ(Last().why, absl::InternalError("NodeClaim fl-1 (node ) was deleted by another"));
}

TEST_F(KarpenterProviderTest, ADeletionByAnotherIsReportedOnce) {
  Launch(Order("fl-1", "u1"));
  Pass(absl::Seconds(10));  // launched, and read every second
  karpenter_.BeginDeletion("fl-1");
  Pass(absl::Seconds(30));
  ASSERT_EQ(reports_.size(), 4u);
  EXPECT_EQ(reports_[2].state, MachineState::kEnding);
  EXPECT_EQ(reports_[3].state, MachineState::kGone);
  EXPECT_TRUE(absl::IsDeadlineExceeded(Last().why)) << "launched, not registered: " << Last().why;
}

TEST_F(KarpenterProviderTest, ADisappearanceIsTheStockout) {
  Launch(Order("fl-1", "u1", kNoneType));
  Pass(absl::Minutes(1));
  EXPECT_EQ(Last().why, absl::ResourceExhaustedError(
                            "Karpenter deleted NodeClaim fl-1 before its node registered (as it "
                            "does when capacity is insufficient)"));
}

TEST_F(KarpenterProviderTest, AFailureThatIsRetriedIsKeptForTheEnd) {
  Launch(Order("fl-1", "u1", kNeverType));
  Pass(absl::Seconds(50));
  EXPECT_EQ(reports_.size(), 1u) << "it is retried";
  EXPECT_EQ(karpenter_.deletes, 0);
  karpenter_.claims["fl-1"].reason = karpenter_.claims["fl-1"].message = "";
  Pass(absl::Seconds(20));
  EXPECT_EQ(karpenter_.deletes, 1) << "Karpenter waits for it, and does nothing else";
  EXPECT_EQ(Last().why,
            absl::DeadlineExceededError("Karpenter deleted NodeClaim fl-1: it was not launched in "
                                        "time: LaunchFailed: no answer of the cloud"));
}

TEST_F(KarpenterProviderTest, AFailedListConcludesNothingAndIsToldOnce) {
  Launch(Order("fl-1", "u1"));
  Pass(absl::Minutes(2));
  calls_.FailAll(Fault::kForbidden);
  Pass(absl::Minutes(30));
  EXPECT_EQ(Last().state, MachineState::kRunning);
  ASSERT_EQ(problems_.size(), 1u);
  EXPECT_EQ(problems_[0], absl::PermissionDeniedError("listing NodeClaims: 403 forbidden"));
  calls_.FailAll(Fault::kNone);
  Pass(absl::Minutes(2));
  calls_.FailAll(Fault::kForbidden);
  Pass(absl::Minutes(2));
  EXPECT_EQ(problems_.size(), 2u) << "it is told again after a success";
}

TEST_F(KarpenterProviderTest, AClaimThatCannotBeReadIsNotGone) {
  Launch(Order("fl-1", "u1"));
  Pass(absl::Minutes(2));
  karpenter_.claims["fl-1"].status_override = R"({"providerID": {"hostile": true}})";
  karpenter_.extra_items =
      R"(,[],{"metadata":[]},{"metadata":{"name":7}},{"metadata":{"name":""}})";
  Pass(absl::Minutes(2));
  EXPECT_EQ(reports_.size(), 2u);
  EXPECT_FALSE(problems_.empty());
  const auto end = End("fl-1");
  Pass(absl::Seconds(9));
  EXPECT_EQ(end->times, 0) << "it exists";
  Pass(absl::Seconds(5));
  EXPECT_TRUE(end->answer.status.ok());
  EXPECT_EQ(karpenter_.deletes, 1);
}

TEST_F(KarpenterProviderTest, ReadsAtTheRateThatIsNeeded) {
  Pass(absl::Minutes(1));
  karpenter_.lists = 0;
  Pass(absl::Minutes(10));
  EXPECT_NEAR(karpenter_.lists, 40, 2) << "idle";
  Launch(Order("fl-0", "u0", kLateType));
  Pass(absl::Seconds(1));
  karpenter_.lists = 0;
  Pass(absl::Minutes(1));
  EXPECT_NEAR(karpenter_.lists, 58, 4) << "busy";
  karpenter_.page_size = 500;
  for (int i = 1; i < 1500; ++i) {
    const std::string name = absl::StrCat("fl-", i);
    ASSERT_TRUE(karpenter_.Add(name, Claim(name, absl::StrCat("u", i))).ok());
  }
  Pass(absl::Seconds(4));
  karpenter_.lists = 0;
  Pass(absl::Seconds(6));
  EXPECT_NEAR(karpenter_.lists, 4 * 3, 3) << "a millisecond per claim, pages of 500";
  EXPECT_GE(reports_.size(), 1500u);
}

TEST_F(KarpenterProviderTest, AThrottledCreationIsGivenUpAfterAMinute) {
  calls_.FailWrites(Fault::kThrottled, 1000);
  const auto order = Launch(Order("fl-1", "u1"));
  Pass(absl::Seconds(59));
  EXPECT_EQ(order->times, 0);
  Pass(absl::Seconds(2));
  EXPECT_TRUE(absl::IsUnavailable(order->answer.status));
  calls_.FailWrites(Fault::kNone, 0);
  Pass(absl::Minutes(10));
  EXPECT_EQ(karpenter_.creates, 0);
  EXPECT_TRUE(reports_.empty());
}

TEST_F(KarpenterProviderTest, ManyOrdersPauseTogether) {
  calls_.FailAll(Fault::kThrottled);
  for (int i = 0; i < 1000; ++i) Launch(Order(absl::StrCat("fl-", i), "u"));
  Pass(absl::Minutes(1));
  EXPECT_LE(calls_.count(), 30);
}

TEST_F(KarpenterProviderTest, ADefiniteRefusalIsTheAnswer) {
  calls_.FailWrites(Fault::kForbidden);
  const auto order = Launch(Order("fl-1", "u1"));
  Pass(absl::Seconds(1));
  EXPECT_EQ(order->answer.status, absl::PermissionDeniedError("NodeClaim fl-1: 403 forbidden"));
  Launch(Order("fl-2", "u2"));
  Pass(absl::Minutes(3));
  calls_.FailWrites(Fault::kForbidden);
  const auto end = End("fl-2");
  Pass(absl::Seconds(1));
  EXPECT_EQ(end->answer.status, absl::PermissionDeniedError("NodeClaim fl-2: 403 forbidden"));
  EXPECT_EQ(Last().state, MachineState::kRunning);
}

TEST_F(KarpenterProviderTest, AnEndIsOpenUntilTheClaimIsGoneAndOneQuestionIsOpen) {
  Launch(Order("fl-1", "u1"));
  PassStart();
  const auto first = End("fl-1"), second = End("fl-1");
  EXPECT_EQ(first->answer.status, absl::UnavailableError("NodeClaim fl-1: asked again"));
  Pass(absl::Seconds(9));
  EXPECT_EQ(second->times, 0);
  EXPECT_TRUE(absl::IsUnavailable(Launch(Order("fl-1", "u2"))->answer.status));
  Pass(absl::Seconds(3));
  EXPECT_TRUE(second->answer.status.ok()) << second->answer.status;
  EXPECT_EQ(karpenter_.deletes, 1);
  EXPECT_EQ(Last().state, MachineState::kGone);
  EXPECT_TRUE(Last().why.ok());
}

TEST_F(KarpenterProviderTest, AnEventTellsWhyAClaimIsGone) {
  PassStart();
  karpenter_.warnings["fl-1"] = "resolving node class from nodeclaim, it is not there";
  Launch(Order("fl-1", "u1", kNoneType));
  Pass(absl::Seconds(10));
  EXPECT_EQ(Last().state, MachineState::kGone);
  EXPECT_TRUE(absl::IsFailedPrecondition(Last().why)) << Last().why;
  // The reason may not be read; the end is reported all the same.
  karpenter_.events_are_forbidden = true;
  Launch(Order("fl-2", "u2", kNoneType));
  Pass(absl::Seconds(10));
  EXPECT_EQ(Last().request_name, "fl-2");
  EXPECT_TRUE(absl::IsResourceExhausted(Last().why)) << Last().why;
}

// Its former life ended in this process, so nothing of it may still come.
TEST_F(KarpenterProviderTest, EndOfAClaimThatWasSeenIsConfirmedSoonAfterTheStart) {
  Launch(Order("fl-1", "u1"));
  Pass(absl::Seconds(5));
  const auto end = End("fl-1");
  Pass(absl::Seconds(20));
  EXPECT_EQ(end->times, 1);
  EXPECT_TRUE(end->answer.status.ok()) << end->answer.status;
}

TEST_F(KarpenterProviderTest, NoEndIsConfirmedWhileACreationMayStillCome) {
  PassStart();
  calls_.FailWrites(Fault::kDown);
  const auto order = Launch(Order("fl-1", "u1"));
  Pass(absl::Seconds(1));
  EXPECT_TRUE(absl::IsUnavailable(order->answer.status));
  const auto end = End("fl-1");
  Pass(kDoubtLasts - absl::Seconds(10));
  EXPECT_EQ(end->times, 0);
  ASSERT_TRUE(karpenter_.Add("fl-1", Claim("fl-1", "u1")).ok());  // it comes
  Pass(absl::Seconds(5));
  EXPECT_EQ(karpenter_.deletes, 1);
  Pass(absl::Seconds(20));
  EXPECT_TRUE(end->answer.status.ok());
}

TEST_F(KarpenterProviderTest, NoEndIsConfirmedWhileACreationOfAFormerProcessMayStillCome) {
  PassStart();
  calls_.HoldWrites();
  Launch(Order("fl-1", "u1"));
  Pass(absl::Seconds(1));
  provider_ = std::make_unique<KarpenterProvider>(KarpenterOptions(), &time_, &karpenter_);
  provider_->Start(this);
  const auto end = End("fl-1");
  Pass(kDoubtLasts - absl::Seconds(10));
  EXPECT_EQ(end->times, 0);
  calls_.Release();
  Pass(absl::Seconds(9));
  EXPECT_EQ(karpenter_.deletes, 1);
  Pass(absl::Seconds(20));
  EXPECT_TRUE(end->answer.status.ok());
  EXPECT_TRUE(karpenter_.machines.empty());
}

TEST_F(KarpenterProviderTest, AnEndOfAnIdThatAnotherClaimHasIsRefused) {
  Launch(Order("fl-1", "u1"));
  Launch(Order("fl-2", "u2"));
  Pass(absl::Minutes(2));
  const auto end = End("fl-1", karpenter_.claims["fl-2"].provider_id);
  Pass(absl::Seconds(20));
  EXPECT_TRUE(absl::IsFailedPrecondition(end->answer.status)) << end->answer.status;
  EXPECT_EQ(karpenter_.deletes, 0);
}

TEST_F(KarpenterProviderTest, AnAnswerMayEndTheProvider) {
  provider_->Launch({{Order("fl-1", "u1"), [this](const ProviderAnswer&) { provider_.reset(); }},
                     {Order("fl-2", "u2"), [](const ProviderAnswer&) { FAIL(); }}});
  Pass(absl::Minutes(5));
  EXPECT_EQ(provider_, nullptr);
  EXPECT_TRUE(reports_.empty());
}

TEST_F(KarpenterProviderTest, AnAnswerMayAskAtOnce) {
  PassStart();
  absl::Status ended = absl::UnknownError("no answer");
  provider_->Launch({{Order("fl-1", "u1"), [&](const ProviderAnswer&) {
                        provider_->Terminate({"fl-1", "karpenter", "fl-1", ""},
                                             [&](const ProviderAnswer& a) { ended = a.status; });
                      }}});
  Pass(absl::Minutes(1));
  EXPECT_TRUE(ended.ok()) << ended;
  EXPECT_TRUE(karpenter_.claims.empty());
}

}  // namespace
}  // namespace fairlead::hook
