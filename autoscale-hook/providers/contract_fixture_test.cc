// The fixture of contract_testing.h: what the hook does, and what always holds.
#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/catalog/catalog.h"
#include "autoscale-hook/machines/launch_set.h"
#include "autoscale-hook/providers/contract_testing.h"
#include "autoscale-hook/provisioning/failure.h"

namespace fairlead::hook {

void ProviderContract::SetUp() {
  world_ = GetParam()();
  Restart();
}

void ProviderContract::TearDown() {
  world_->calls.FailAll(Fault::kNone);
  world_->calls.FailWrites(Fault::kNone, 0);
  world_->calls.Release();
  Pass(absl::Minutes(10));
  for (const Call& call : calls_) {
    EXPECT_TRUE(call.lost || call.answers == 1) << "a call about " << call.request;
  }
  Destroy();
}

void ProviderContract::OnMachine(const MachineReport& report) {
  ASSERT_NE(provider_, nullptr) << "a report after the provider's destruction";
  EXPECT_EQ(report.provider, provider_->name());
  ASSERT_TRUE(uids_.contains(report.request_name)) << "foreign: " << report.request_name;
  EXPECT_EQ(report.request_uid, uids_[report.request_name]) << report.request_name;
  if (report.state == MachineState::kGone) {
    const std::set<std::string> machines = Machines(report.request_name);
    EXPECT_TRUE(report.machine_id.empty() ? machines.empty()
                                          : !machines.contains(report.machine_id))
        << report.request_name << " is reported as gone, and exists";
    EXPECT_FALSE(IsUnknownOutcome(report.why)) << report.why;
  } else {
    EXPECT_TRUE(report.why.ok()) << report.why;
  }
  EXPECT_FALSE(report.state == MachineState::kRunning && report.machine_id.empty());
  reports_.push_back(report);
}

std::vector<ProviderContract::Call*> ProviderContract::OrderSet(const std::vector<Wanted>& set,
                                                                bool atomic) {
  std::vector<LaunchOrder> orders;
  std::vector<Call*> made;
  for (const Wanted& wanted : set) {
    uids_[wanted.name] = wanted.uid;
    ended_.erase(wanted.name);
    calls_.push_back({wanted.name});
    made.push_back(&calls_.back());
    InstanceType type;
    type.name = wanted.type;
    type.cpu_milli = 4000;
    type.memory_bytes = int64_t{16} << 30;
    Offer offer;
    offer.type = &type;
    offer.zone = "z1";
    model::LaunchNode launch;
    launch.node = TemplateNode(offer, wanted.name);
    launch.request.Own().meta.name = wanted.name;
    launch.request.Own().meta.uid = wanted.uid;
    launch.request.Own().instance_type = wanted.type;
    launch.request.Own().zone = "z1";
    launch.node_class = {"test.example.com", "TestNodeClass", "default"};
    orders.push_back({launch, [call = made.back()](const ProviderAnswer& answer) {
                        EXPECT_FALSE(call->lost) << "answered after the provider's destruction";
                        EXPECT_EQ(++call->answers, 1) << "an order of " << call->request;
                        call->answer = answer;
                      }});
  }
  if (atomic) {
    std::vector<model::NodeRequest*> requests;
    for (LaunchOrder& order : orders) requests.push_back(&order.launch.request.Own());
    MarkLaunchSet(requests, atomic);
  }
  provider_->Launch(std::move(orders));
  return made;
}

ProviderContract::Call* ProviderContract::End(const std::string& name, const std::string& id) {
  calls_.push_back({name});
  Call* call = &calls_.back();
  provider_->Terminate({name, std::string(provider_->name()), name, id},
                       [this, call, id](const ProviderAnswer& answer) {
                         EXPECT_FALSE(call->lost) << "answered after the provider's destruction";
                         EXPECT_EQ(++call->answers, 1) << "the end of " << call->request;
                         call->answer = answer;
                         if (!answer.status.ok()) return;
                         const std::set<std::string> machines = Machines(call->request);
                         EXPECT_TRUE(!id.empty() || machines.empty()) << "OK, but a machine exists";
                         EXPECT_FALSE(machines.contains(id)) << "OK, but " << id << " exists";
                         if (machines.empty()) ended_.insert(call->request);
                       });
  return call;
}

void ProviderContract::OrderUntilOk(const Wanted& wanted) {
  for (int attempt = 0; attempt < 30; ++attempt) {
    Call* call = Order(wanted);
    for (int s = 0; s < 60 && call->answers == 0; ++s) Pass(absl::Seconds(1));
    if (call->ok()) return;
    EXPECT_TRUE(call->answers == 0 || IsUnknownOutcome(call->answer.status)) << call->answer.status;
    Pass(absl::Seconds(30));
  }
  ADD_FAILURE() << "no OK to an order of " << wanted.name << " within 30 attempts";
}

void ProviderContract::EndUntilOk(const std::string& name, const std::string& id) {
  for (int attempt = 0; attempt < 30; ++attempt) {
    Call* call = End(name, id);
    for (int s = 0; s < 60 && call->answers == 0; ++s) Pass(absl::Seconds(1));
    if (call->ok()) return;
    if (call->answers > 0) Pass(absl::Seconds(30));
  }
  ADD_FAILURE() << "no OK to the end of " << name << " within 30 attempts";
}

void ProviderContract::OrderWholeUntilOk(const std::vector<Wanted>& set) {
  for (int attempt = 0; attempt < 30; ++attempt) {
    const std::vector<Call*> calls = OrderSet(set, /*atomic=*/true);
    Pass(absl::Minutes(1));
    if (std::all_of(calls.begin(), calls.end(), [](const Call* call) { return call->ok(); })) {
      return;
    }
  }
  ADD_FAILURE() << "no OK to an order of a set within 30 attempts";
}

void ProviderContract::GiveBack(const std::string& name) {
  const Call* call = End(name);
  Pass(absl::Minutes(1));
  if (call->answers == 1 && !call->answer.machine_id.empty() && !call->ok()) {
    EndUntilOk(name, call->answer.machine_id);
  }
  EndUntilOk(name);
}

void ProviderContract::Pass(absl::Duration duration) {
  for (absl::Duration t; t < duration; t += absl::Seconds(1)) {
    world_->time.Advance(absl::Seconds(1));
    for (const std::string& name : ended_) {
      ASSERT_EQ(Machines(name), std::set<std::string>()) << name << " came after its end was told";
    }
    for (const auto& [name, uid] : uids_) {
      ASSERT_LE(Machines(name).size(), 1u) << "two machines of one request: " << name;
    }
  }
}

void ProviderContract::Restart() {
  Destroy();
  provider_ = world_->MakeProvider();
  provider_->Start(this);
}

void ProviderContract::Destroy() {
  for (Call& call : calls_) call.lost = call.lost || call.answers == 0;
  provider_.reset();
}

std::string ProviderContract::ToldId(const std::string& name) const {
  std::string id;
  for (const Call& call : calls_) {
    if (call.request == name && !call.answer.machine_id.empty()) id = call.answer.machine_id;
  }
  for (const MachineReport& report : reports_) {
    if (report.request_name == name && !report.machine_id.empty()) id = report.machine_id;
  }
  return id;
}

std::vector<MachineState> ProviderContract::States(const std::string& name) const {
  std::vector<MachineState> states;
  for (const MachineReport& report : reports_) {
    if (report.request_name != name) continue;
    if (states.empty() || states.back() != report.state) states.push_back(report.state);
  }
  return states;
}

absl::Status ProviderContract::Failure(const Call& call) const {
  if (call.answers == 1 && !call.answer.status.ok()) return call.answer.status;
  for (const MachineReport& report : reports_) {
    if (report.request_name == call.request && !report.why.ok()) return report.why;
  }
  return absl::OkStatus();
}

ProviderContract::Wanted ProviderContract::WantAtRandom(fairlead::testing::Random& random,
                                                        const std::string& name, Life& life) {
  const std::array<const char*, 5> types = {kUsualType, kUsualType, kLateType, kNeverType,
                                            kNoneType};
  if (life.uid.empty()) life.uid = absl::StrCat("u-", name, "-", calls_.size());
  return {name, life.uid, types[static_cast<size_t>(random.Between(0, 4))]};
}

// All names that are not being ended, as one set.
void ProviderContract::OrderWholeAtRandom(fairlead::testing::Random& random,
                                          std::map<std::string, Life>& lives) {
  std::vector<Wanted> set;
  for (auto& [name, life] : lives) {
    if (!life.ending) set.push_back(WantAtRandom(random, name, life));
  }
  if (set.size() > 1) OrderSet(set, /*atomic=*/true);
}

// Asks if no question is open, or for a minute; takes the answer of the last one.
void ProviderContract::EndAgain(const std::string& name, Life& life) {
  if (life.end != nullptr && life.end->ok() && life.id.empty()) {
    life = Life();
    return;
  }
  const absl::Duration now = world_->time.now();
  if (life.end != nullptr && life.end->answers == 0 && !life.end->lost &&
      now - life.asked < absl::Minutes(1)) {
    return;
  }
  // Without labels the provider tells an id to end; then the rest is asked about again.
  if (life.end != nullptr && life.end->answers == 1) {
    const bool told = absl::IsFailedPrecondition(life.end->answer.status);
    life.id = told ? life.end->answer.machine_id : life.end->ok() ? "" : life.id;
  }
  life.asked = now;
  life.end = End(name, life.id);
}

void ProviderContract::FailAtRandom(fairlead::testing::Random& random) {
  const std::array<Fault, 4> all = {Fault::kNone, Fault::kNone, Fault::kDown, Fault::kThrottled};
  const Fault refusal = world_->traits().watches ? Fault::kForbidden : Fault::kDown;
  const std::array<Fault, 4> writes = {Fault::kLostReply, Fault::kLostReply, Fault::kDown, refusal};
  BackEndCalls& calls = world_->calls;
  calls.FailAll(all[static_cast<size_t>(random.Between(0, 3))]);
  if (random.OneIn(2)) {
    calls.FailWrites(writes[static_cast<size_t>(random.Between(0, 3))],
                     static_cast<int>(random.Between(1, 3)));
  }
  calls.Release();
  if (random.OneIn(4)) calls.Hold();
  if (random.OneIn(4)) calls.HoldWrites();
  if (random.OneIn(4)) calls.HoldReadReplies();
}

void ProviderContract::RunAtRandom(fairlead::testing::Random& random, int steps) {
  std::map<std::string, Life> lives = {{"fl-1", {}}, {"fl-2", {}}, {"fl-3", {}}};
  for (int step = 0; step < steps && !HasFailure(); ++step) {
    for (auto& [name, life] : lives) {
      if (life.ending) {
        EndAgain(name, life);
      } else if (random.OneIn(4) && !life.uid.empty()) {
        life.ending = true;
        EndAgain(name, life);
      } else if (random.OneIn(2)) {
        Order(WantAtRandom(random, name, life));
      } else if (random.OneIn(8)) {
        world_->Vanish(name);
      }
    }
    if (random.OneIn(10)) OrderWholeAtRandom(random, lives);
    if (random.OneIn(3)) FailAtRandom(random);
    if (random.OneIn(12)) {
      Destroy();
      world_->calls.Release();
      world_->time.Advance(absl::Seconds(1));  // what the former process sent has arrived
      Restart();
    }
    Pass(absl::Seconds(random.Between(1, 40)));
  }
  world_->calls.FailAll(Fault::kNone);
  world_->calls.FailWrites(Fault::kNone, 0);
  world_->calls.Release();
  for (int step = 0; step < 60 && !HasFailure(); ++step) {
    for (auto& [name, life] : lives) {
      life.ending = life.ending || !life.uid.empty();
      if (life.ending) EndAgain(name, life);
    }
    Pass(absl::Seconds(15));
  }
  for (const auto& [name, life] : lives) {
    EXPECT_TRUE(life.uid.empty()) << name << " cannot be ended: "
                                  << (life.end != nullptr ? life.end->answer.status
                                                          : absl::UnknownError("not asked"));
    EXPECT_EQ(Machines(name), std::set<std::string>());
  }
}

}  // namespace fairlead::hook
