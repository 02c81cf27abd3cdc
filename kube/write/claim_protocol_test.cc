// ReserveClaim and DeallocateClaim: every answer of the server, driven by hand.
#include "kube/write/claim_protocol.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/write/write_answers.h"

namespace fairlead::kube {
namespace {

using ::testing::HasSubstr;

constexpr char kClaim[] = "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c";

model::ReserveClaim Wanted(bool allocate = true) {
  model::ReserveClaim out;
  out.ns = "ns";
  out.name = "c";
  out.uid = "u";
  out.resource_version = "5";
  out.finalizers = {"other/finalizer"};
  out.allocate = allocate;
  out.allocation = {"n1", {{"r", "d.io", "n1", "0"}, {"r", "d.io", "n1", "1"}}, {}};
  out.allocation.node_terms = std::vector{model::TermOfNode("n1")};
  out.pods = {{"p", "pod-uid"}};
  return out;
}

// The claim as the server has it.
struct Stored {
  std::string version = "9", uid = "u";
  std::vector<std::string> finalizers = {"other/finalizer"};
  std::vector<std::string> devices = {};
  std::vector<std::string> pods = {};
  bool deleting = false;
};

HttpResponse Answer(int status, std::string body) {
  HttpResponse response;
  response.status = status;
  response.content_type = kJson;
  response.body = std::move(body);
  return response;
}

HttpResponse Claim(const Stored& stored) {
  const auto quoted = [](std::string* out, const std::string& s) {
    absl::StrAppend(out, "\"", s, "\"");
  };
  std::vector<std::string> results;
  for (const std::string& device : stored.devices) {
    results.push_back(
        absl::StrCat(R"({"request":"r","driver":"d.io","pool":"n1","device":")", device, "\"}"));
  }
  std::vector<std::string> reserved;
  for (const std::string& uid : stored.pods) {
    reserved.push_back(absl::StrCat(R"({"resource":"pods","name":"x","uid":")", uid, "\"}"));
  }
  return Answer(
      200,
      absl::StrCat(R"({"kind":"ResourceClaim","metadata":{"name":"c","namespace":"ns","uid":")",
                   stored.uid, R"(","resourceVersion":")", stored.version, R"(","finalizers":[)",
                   absl::StrJoin(stored.finalizers, ",", quoted), "]",
                   stored.deleting ? R"(,"deletionTimestamp":"2026-11-21T01:00:00Z")" : "",
                   R"(},"spec":{"devices":{}},"status":{)",
                   results.empty() ? std::string()
                                   : absl::StrCat(R"("allocation":{"devices":{"results":[)",
                                                  absl::StrJoin(results, ","), "]}},"),
                   R"("reservedFor":[)", absl::StrJoin(reserved, ","), "]}}"));
}

HttpResponse Refusal(int code) {
  return Answer(code, absl::StrCat(R"({"kind":"Status","code":)", code, R"(,"message":"no"})"));
}

class ClaimProtocolTest : public ::testing::Test {
 protected:
  void Begin(const model::ReserveClaim& wanted) { protocol_ = MakeClaimProtocol(wanted); }
  // The next request, "METHOD path body".
  std::string Sent() {
    const HttpRequest request = protocol_->Next(absl::UnixEpoch());
    return absl::StrCat(request.method, " ", request.path, " ", request.body);
  }
  Decision Answer(const WriteAnswer& answer) { return protocol_->OnAnswer(answer); }
  // Sends, gets the answer, and continues at once.
  void Pass(const WriteAnswer& answer) {
    Sent();
    EXPECT_EQ(Answer(answer).next, Decision::Next::kContinue);
  }
  std::unique_ptr<WriteProtocol> protocol_;
};

// ---- foreign data is never overwritten

TEST_F(ClaimProtocolTest, WhateverChangedAgainstUsAfterAConflictIsADefiniteNo) {
  struct Case {
    Stored stored;
    bool allocate;
    const char* why;
  };
  const Case cases[] = {
      {{.uid = "other"}, true, "another claim has this name now"},
      {{.deleting = true}, true, "being deleted"},
      {{.devices = {"0"}}, true, "allocated otherwise"},
      {{.devices = {"0", "2"}}, true, "allocated otherwise"},
      {{.devices = {"0", "2"}}, false, "allocated otherwise"},
      {{}, false, "no longer allocated"},
      {{.devices = {"0", "1"}, .pods = std::vector<std::string>(256, "x")},
       false,
       "reserved for 256 pods already"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.why);
    Begin(Wanted(c.allocate));
    Pass(Refusal(409));
    EXPECT_EQ(Sent(), absl::StrCat("GET ", kClaim, " "));
    const Decision decision = Answer(Claim(c.stored));
    EXPECT_EQ(decision.next, Decision::Next::kDone);
    EXPECT_TRUE(absl::IsFailedPrecondition(decision.status)) << decision.status;
    EXPECT_THAT(std::string(decision.status.message()), HasSubstr(c.why));
  }
}

TEST_F(ClaimProtocolTest, AClaimThatChangesForEverIsGivenUpDefinitely) {
  Begin(Wanted());
  Decision decision;
  int conflicts = 0;
  do {
    Sent();
    decision = Answer(Refusal(409));
    ++conflicts;
    if (decision.next != Decision::Next::kContinue) break;
    Pass(Claim({}));
  } while (conflicts < 100);
  EXPECT_EQ(conflicts, kClaimConflicts + 1);
  EXPECT_TRUE(absl::IsAborted(decision.status)) << decision.status;
}

TEST_F(ClaimProtocolTest, RefusalsAreTold) {
  for (const auto& [code, status] : {std::pair{403, absl::StatusCode::kPermissionDenied},
                                     std::pair{404, absl::StatusCode::kNotFound},
                                     std::pair{422, absl::StatusCode::kInvalidArgument}}) {
    Begin(Wanted());
    Sent();
    const Decision decision = Answer(Refusal(code));
    EXPECT_EQ(decision.next, Decision::Next::kDone);
    EXPECT_EQ(decision.status.code(), status);
  }
}

TEST_F(ClaimProtocolTest, AServerThatDropsTheFinalizerIsNotWrittenToForEver) {
  Begin(Wanted());
  Sent();
  const Decision decision = Answer(Claim({}));
  EXPECT_EQ(decision.next, Decision::Next::kDone);
  EXPECT_TRUE(absl::IsFailedPrecondition(decision.status));
}

// ---- lost answers

TEST_F(ClaimProtocolTest, AfterALostAnswerTheClaimDecides) {
  Begin(Wanted());
  Pass(Claim({.version = "6", .finalizers = {"other/finalizer", model::kClaimFinalizer}}));
  Sent();
  Decision decision = Answer(absl::UnavailableError("the connection broke"));
  EXPECT_EQ(decision.next, Decision::Next::kRetry);
  EXPECT_TRUE(absl::IsUnavailable(decision.status));
  EXPECT_TRUE(protocol_->outcome_unknown());
  EXPECT_EQ(Sent(), absl::StrCat("GET ", kClaim, " "));
  // Not readable: the outcome is still unknown.
  decision = Answer(Refusal(403));
  EXPECT_TRUE(absl::IsUnavailable(decision.status)) << decision.status;
  Sent();
  decision = Answer(Claim({.version = "12", .devices = {"1", "0"}, .pods = {"pod-uid"}}));
  EXPECT_EQ(decision.next, Decision::Next::kDone);
  EXPECT_TRUE(decision.status.ok()) << decision.status;
  EXPECT_EQ(decision.resource_version, "12");
}

TEST_F(ClaimProtocolTest, ALostAnswerToTheFinalizerLeavesNothingInDoubt) {
  Begin(Wanted());
  Sent();
  EXPECT_EQ(Answer(absl::DeadlineExceededError("late")).next, Decision::Next::kRetry);
  EXPECT_FALSE(protocol_->outcome_unknown());
  Pass(Claim({.version = "7", .finalizers = {model::kClaimFinalizer}}));
  EXPECT_THAT(Sent(), HasSubstr("/status "));
}

// ---- writes

TEST_F(ClaimProtocolTest, FirstTheFinalizerThenTheStatusEachWithItsVersion) {
  Begin(Wanted());
  EXPECT_EQ(Sent(),
            absl::StrCat("PATCH ", kClaim,
                         R"( {"metadata":{"uid":"u","resourceVersion":"5","finalizers":[)",
                         R"("other/finalizer","resource.kubernetes.io/delete-protection")", "]}}"));
  EXPECT_EQ(
      Answer(Claim({.version = "6", .finalizers = {"other/finalizer", model::kClaimFinalizer}}))
          .next,
      Decision::Next::kContinue);
  EXPECT_EQ(
      Sent(),
      absl::StrCat(
          "PATCH ", kClaim, R"(/status {"metadata":{"uid":"u","resourceVersion":"6"},"status":{)",
          R"("allocation":{"devices":{"results":[)",
          R"({"request":"r","driver":"d.io","pool":"n1","device":"0"},)",
          R"({"request":"r","driver":"d.io","pool":"n1","device":"1"}]},)",
          R"("nodeSelector":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name",)",
          R"("operator":"In","values":["n1"]}]}]},"allocationTimestamp":)",
          R"("1970-01-01T00:00:00Z"},)",
          R"("reservedFor":[{"resource":"pods","name":"p","uid":"pod-uid"}]}})"));
  const Decision decision =
      Answer(Claim({.version = "7", .devices = {"0", "1"}, .pods = {"pod-uid"}}));
  EXPECT_EQ(decision.next, Decision::Next::kDone);
  EXPECT_TRUE(decision.status.ok());
  EXPECT_EQ(decision.resource_version, "7");
}

TEST_F(ClaimProtocolTest, AnAllocatedClaimOnlyGetsThePod) {
  Begin(Wanted(/*allocate=*/false));
  EXPECT_EQ(Sent(), absl::StrCat("PATCH ", kClaim,
                                 R"(/status {"metadata":{"uid":"u","resourceVersion":"5"},)",
                                 R"("status":{"reservedFor":[{"resource":"pods","name":"p",)",
                                 R"("uid":"pod-uid"}]}})"));
}

TEST_F(ClaimProtocolTest, AHarmlessChangeIsWrittenUponAndWhatIsThereAlreadyIsLeftOut) {
  model::ReserveClaim wanted = Wanted();
  wanted.pods.push_back({"q", "second"});
  Begin(wanted);
  Pass(Refusal(409));
  Pass(Claim({.version = "8", .devices = {"0", "1"}, .pods = {"foreign", "pod-uid"}}));
  EXPECT_EQ(Sent(), absl::StrCat("PATCH ", kClaim,
                                 R"(/status {"metadata":{"uid":"u","resourceVersion":"8"},)",
                                 R"("status":{"reservedFor":[{"resource":"pods","name":"q",)",
                                 R"("uid":"second"}]}})"));
}

TEST(EncodeClaim, ConfigurationAndTolerationsAreRepeated) {
  model::ReserveClaim claim = Wanted();
  claim.allocation.devices = {{"r", "d.io", "n1", "0", R"([{"key":"k","operator":"Exists"}])"}};
  claim.allocation.config = {
      {true, {{"r"}, R"({"driver":"d.io","parameters":{"a":1}})"}},
      {false, {{}, R"({"driver":"d.io","parameters":{"b":2}})"}},
  };
  const std::string body = EncodeReserveClaim(claim, absl::UnixEpoch()).body;
  EXPECT_THAT(body, HasSubstr(R"("device":"0","tolerations":[{"key":"k","operator":"Exists"}]})"));
  EXPECT_THAT(
      body,
      HasSubstr(R"("config":[{"source":"FromClass","requests":["r"],"opaque":{"driver":"d.io",)"
                R"("parameters":{"a":1}}},{"source":"FromClaim","opaque":{"driver":"d.io",)"
                R"("parameters":{"b":2}}}]},"nodeSelector")"));
}

TEST(EncodeClaim, DeallocationNamesTheVersionThatItIsFor) {
  const EncodedWrite write = EncodeDeallocateClaim({"ns", "c", "u", "5"});
  EXPECT_EQ(write.method, "PATCH");
  EXPECT_EQ(write.path, absl::StrCat(kClaim, "/status"));
  EXPECT_EQ(write.content_type, kMergePatch);
  EXPECT_EQ(write.body, R"({"metadata":{"uid":"u","resourceVersion":"5"},)"
                        R"("status":{"allocation":null,"reservedFor":null}})");
}

TEST(DeallocateClaim, AConflictIsADefiniteNo) {
  model::Action action;
  action.what = model::DeallocateClaim{"ns", "c", "u", "5"};
  const auto protocol = MakeWriteProtocol(action);
  protocol->Next(absl::UnixEpoch());
  EXPECT_TRUE(absl::IsFailedPrecondition(protocol->OnAnswer(Refusal(409)).status));
}

}  // namespace
}  // namespace fairlead::kube
