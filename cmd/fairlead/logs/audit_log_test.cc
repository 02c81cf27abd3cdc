#include "cmd/fairlead/logs/audit_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace fairlead::cmd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class AuditLogTest : public ::testing::Test {
 protected:
  template <typename T>
  void Send(uint64_t id, T what) {
    audit_.Sent({id, std::move(what)}, 7, now_);
  }
  void Answer(uint64_t id, absl::Status status = absl::OkStatus()) {
    audit_.Answered({.action_id = id, .status = std::move(status)}, now_);
  }
  std::vector<std::string> Take() { return std::exchange(lines_, {}); }
  static model::NodeRequest Request(model::NodeRequestPhase phase, const char* message = "") {
    model::NodeRequest request;
    request.meta.name = "fl-1";
    request.phase = phase;
    request.message = message;
    return request;
  }

  std::vector<std::string> lines_;
  AuditLog audit_{[this](absl::string_view line) { lines_.emplace_back(line); }};
  const absl::Time now_ = absl::FromUnixMillis(1'700'000'000'123);
};

constexpr char kTime[] = R"({"time":"2023-11-14T22:13:20.123Z",)";

TEST_F(AuditLogTest, AnEvictionAndItsAnswer) {
  Send(3, model::EvictPod{"ns", "p", "u", "Reclaimed", "for \"big\" of queue a"});
  Answer(3, absl::ResourceExhaustedError("budget"));
  Answer(3);
  EXPECT_THAT(
      Take(),
      ElementsAre(std::string(kTime) +
                      R"("event":"evict","id":3,"decision":7,"namespace":"ns","pod":"p",)"
                      R"("uid":"u","reason":"Reclaimed","message":"for \"big\" of queue a"})"
                      "\n",
                  std::string(kTime) + R"("event":"answer","id":3,)"
                                       R"("code":"RESOURCE_EXHAUSTED","message":"budget"})"
                                       "\n"));
}

TEST_F(AuditLogTest, AWorkloadThatIsSuspendedAndReleased) {
  model::Suspendable job{"batch/v1", "Job", "ns", "j", "u", "7", "spec.suspend"};
  Send(4, model::SetSuspended{1, false, job});
  job.reason = "for workload ns/x";
  job.pods = {{"j-0", "u-0"}, {"j-1", "u-1"}};
  Send(3, model::SetSuspended{1, true, job});
  constexpr char kWhat[] =
      R"("decision":7,"namespace":"ns","apiVersion":"batch/v1","kind":"Job","name":"j","uid":"u")";
  EXPECT_THAT(
      Take(),
      ElementsAre(absl::StrCat(kTime, R"("event":"release","id":4,)", kWhat, "}\n"),
                  absl::StrCat(kTime, R"("event":"suspend","id":3,)", kWhat,
                               R"(,"message":"for workload ns/x","pods":["j-0","j-1"]})", "\n")));
}

TEST_F(AuditLogTest, AMachineFromItsPurchaseToItsEnd) {
  using Phase = model::NodeRequestPhase;
  model::NodeRequest request = Request(Phase::kPending);
  request.instance_type = "g5.xlarge";
  request.provider = "kwok";
  request.price_micro_usd_per_hour = 1'006'000;
  request.queue = "research";
  request.reason_workloads = {"ns/a", "ns/b"};
  Send(1, model::CreateNodeRequest{request});
  EXPECT_THAT(Take(), ElementsAre(std::string(kTime) +
                                  R"("event":"provision","id":1,"decision":7,"nodeRequest":"fl-1",)"
                                  R"("instanceType":"g5.xlarge","provider":"kwok",)"
                                  R"("capacityType":"on-demand","priceUsdPerHour":1.006000,)"
                                  R"("queue":"research","workloads":["ns/a","ns/b"]})"
                                  "\n"));
  // Other changes of its status are no news.
  Send(2, model::UpdateNodeRequestStatus{Request(Phase::kPending, "launching")});
  Answer(2);
  EXPECT_THAT(Take(), IsEmpty());
  Send(3, model::UpdateNodeRequestStatus{Request(Phase::kDraining, "empty for 10m")});
  Send(4, model::UpdateNodeRequestStatus{Request(Phase::kDraining, "empty for 11m")});
  EXPECT_THAT(Take(), ElementsAre(std::string(kTime) +
                                  R"("event":"phase","id":3,"decision":7,"nodeRequest":"fl-1",)"
                                  R"("phase":"Draining","message":"empty for 10m"})"
                                  "\n"));
  Send(5, model::TerminateNode{"fl-1", "kwok", "node-1", ""});
  Send(6, model::DeleteNodeRequest{"fl-1", "u"});
  EXPECT_THAT(Take(), ElementsAre(std::string(kTime) +
                                      R"("event":"terminate","id":5,"decision":7,)"
                                      R"("nodeRequest":"fl-1","provider":"kwok","node":"node-1"})"
                                      "\n",
                                  std::string(kTime) + R"("event":"forget","id":6,"decision":7,)"
                                                       R"("nodeRequest":"fl-1"})"
                                                       "\n"));
}

TEST_F(AuditLogTest, AnUnknownPriceIsNull) {
  model::NodeRequest request = Request(model::NodeRequestPhase::kPending);
  request.price_known = false;
  Send(1, model::CreateNodeRequest{request});
  EXPECT_THAT(Take(), ElementsAre(::testing::HasSubstr(R"("priceUsdPerHour":null)")));
}

TEST_F(AuditLogTest, WhatCostsNothingIsNotThere) {
  Send(1, model::BindPod{"ns", "p", "u", "n", {}});
  Answer(1);
  Send(2, model::EvictPod{"ns", "p", "u", "r", "m"});
  audit_.GiveUp();
  Take();
  Answer(2);
  EXPECT_THAT(Take(), IsEmpty());
}

}  // namespace
}  // namespace fairlead::cmd
