#include "cmd/simtest/simulation.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/hash.h"
#include "cmd/simtest/catalogue.h"
#include "cmd/simtest/process_checks.h"
#include "cmd/simtest/replica.h"
#include "cmd/simtest/settings_files.h"
#include "kube/write/executor.h"
#include "sim/faults.h"
#include "sim/world/api_json.h"
#include "sim/world/claim_controller.h"
#include "sim/world/cloud.h"
#include "sim/world/controllers.h"
#include "sim/world/device_driver.h"
#include "sim/world/foreign_scheduler.h"
#include "sim/world/guest_scheduler.h"
#include "sim/world/kubelets.h"
#include "sim/world/objects.h"
#include "sim/world/tenants.h"
#include "sim/world/truth.h"
#include "sim/world/volume_controller.h"
#include "sim/world/volume_provisioner.h"

namespace fairlead::simtest {
namespace {

namespace world = sim::world;
using sim::Random;
using world::ResourceType;

constexpr int64_t kStartSeconds = 1'772'409'600;
// Only its silence tells that a watch is dead, at most kube::ReflectorOptions::silence_limit after
// its last word, however short the fault was. What happened in between is known a little later;
// Checks adds kRecovery to the end of every fault.
const absl::Duration kSilentUntil = absl::Seconds(80) + kKnown - kRecovery;
constexpr absl::Duration kLook = absl::Seconds(5);
// More turns than this in a world are a livelock.
constexpr int64_t kMostTurns = 2'000'000;

// Some configuration of it has kube-scheduler's rules of priority.
bool ChangesRules(const world::Plan& plan) {
  return std::any_of(plan.operations.begin(), plan.operations.end(), [](const auto& operation) {
    return operation.verb == "settings" && operation.Text("configuration") == "spread";
  });
}

// An answer after which a write is not repeated.
bool IsForGood(int64_t status) { return status == 404 || status == 410 || status == 422; }

class Simulation {
 public:
  Simulation(const world::Plan& plan, const RunOptions& options)
      : plan_(plan),
        trace_(options.trace),
        start_(absl::FromUnixSeconds(kStartSeconds)),
        time_(start_),
        server_(&time_),
        truth_(&time_, &server_),
        kubelets_(&time_, &server_, plan.seed + 1),
        controllers_(&time_, &server_, plan.seed + 2),
        foreign_(&time_, &server_, plan.seed + 3),
        guests_(&time_, &server_, plan.seed + 10,
                [this](const world::GuestScheduler::Question& question,
                       std::function<void(const world::GuestScheduler::Say&)> done) {
                  AskLeader(question, std::move(done));
                }),
        cloud_(&time_, &server_, plan.seed + 4),
        driver_(&time_, &server_, plan.seed + 6),
        claims_(&time_, &server_, plan.seed + 7),
        volumes_(&time_, &server_, plan.seed + 8),
        provisioner_(&time_, &server_, plan.seed + 9),
        tenants_({&time_, &server_, &kubelets_, &controllers_, &foreign_, &cloud_, &driver_,
                  &provisioner_}),
        checks_(&time_, start_, &server_, &truth_, &cloud_,
                Caps{plan.hook, plan.empties, kGpuCap, plan.max_usd_per_hour * kMicroPerUsd,
                     plan.max_nodes, absl::Seconds(30), plan.paced ? kOverLimitPaced : kOverLimit,
                     plan.max_search_work > 0 ? kSearched : absl::ZeroDuration(), plan.kai_status,
                     ChangesRules(plan)},
                options.without, options.recount_every),
        files_(plan),
        process_(&time_, &server_, &files_,
                 [this](const std::string& invariant, const std::string& text) {
                   checks_.Fail(invariant, text);
                 }) {
    server_.Listen([this](const world::ApiServer::Commit& commit) { OnCommit(commit); });
    guests_.OnBadNode(
        [this](const std::string& what, absl::Time since) { checks_.GrantedBadNode(what, since); });
    checks_.SetGranted([this](const std::string& uid) { return guests_.IsGranted(uid); });
    for (size_t i = 0; i < replicas_.size(); ++i) {
      cmd::Logger::Sink log;
      if (trace_) {
        log = [this](absl::string_view line) { trace_(absl::StrCat("  ", line)); };
      }
      replicas_[i] = std::make_unique<Replica>(
          Replica::World{&time_, &server_, &cloud_, start_, &plan_, &files_}, i == 0 ? "a" : "b",
          cmd::AppOptions(), plan.seed * 2 + i,
          [this](const std::string& identity, const core::DecisionLoop& loop,
                 const core::StepResult& step) { checks_.OnDecision(identity, loop, step); },
          std::move(log));
      replicas_[i]->OnEarlyRetry([this](const std::string& what) { checks_.Fail("retry", what); });
      replicas_[i]->OnEndByItself(
          [this](const std::string& what) { checks_.Fail("process", what); });
      // No process decides: as if both had crashed.
      replicas_[i]->OnKeptDown([this](absl::Time until) {
        if (!replicas_[0]->alive() && !replicas_[1]->alive()) checks_.Disturb(until);
      });
    }
  }

  RunResult Run() {
    MakeWorld();
    for (const world::Operation& operation : plan_.operations) {
      time_.At(start_ + absl::Milliseconds(operation.at_ms), [this, &operation] { Do(operation); });
    }
    const absl::Time calm = start_ + absl::Milliseconds(plan_.end_ms);
    time_.At(calm, [this] { CalmDown(); });
    const absl::Time end = calm + kSettleTime;
    for (absl::Time at = start_ + (calm - start_) % kLook; at < end; at += kLook) {
      time_.At(at, [this, at, calm] { Look(at > calm); });
    }
    for (absl::Time at = start_; at < end; at += absl::Seconds(1)) {
      time_.At(at, [this] { EverySecond(); });
    }
    while (time_.now() < end && !checks_.failure().has_value()) Step(end);
    if (!checks_.failure().has_value()) checks_.AtEnd(LeaderLoop(), LeaderBegan());
    return Result();
  }

 private:
  void EverySecond() {
    checks_.EverySecond();
    for (size_t i = 0; i < replicas_.size(); ++i) process_.EverySecond(i, *replicas_[i]);
  }

  void Look(bool calm) {
    checks_.Look(LeaderLoop(), LeaderBegan());
    if (!calm) return;
    checks_.WhileCalm();
    for (const auto& replica : replicas_) process_.WhileCalm(*replica, checks_.QuietFor());
  }

  void MakeWorld() {
    for (const char* ns :
         {"default", "kube-system", "team-a", "team-b", "kai-resource-reservation"}) {
      Create(ResourceType::kNamespaces, world::MakeNamespace(ns));
    }
    Create(ResourceType::kPriorityClasses, world::MakePriorityClass("train", 50));
    Create(ResourceType::kPriorityClasses, world::MakePriorityClass("high", 80));
    Create(ResourceType::kPriorityClasses, world::MakePriorityClass("build", 100));
  }

  void Create(ResourceType type, world::Json object) {
    const absl::Status made = server_.Create(type, std::move(object), "world");
    if (!made.ok()) checks_.Fail("simulation", std::string(made.message()));
  }

  void Step(absl::Time end) {
    absl::Time next = std::min(time_.next(), end);
    for (const auto& replica : replicas_) next = std::min(next, replica->wake_at());
    const bool events = time_.next() <= next;
    time_.RunUntil(next);
    for (const auto& replica : replicas_) {
      const absl::StatusOr<bool> turned = replica->TurnIfDue(events);
      if (!turned.ok()) {
        checks_.Fail("simulation",
                     absl::StrCat("the program does not start: ", turned.status().message()));
      }
      if (replica->spins() > kSpins) {
        checks_.Fail("spin", absl::StrCat(replica->identity(), " asks to be woken in the past, ",
                                          replica->spins(), " times in a row"));
      }
    }
    if (Turns() > kMostTurns) {
      checks_.Fail("spin", absl::StrCat(Turns(), " turns of the loop in one world"));
    }
  }

  void OnCommit(const world::ApiServer::Commit& commit) {
    ++commits_;
    const world::Json& object = commit.after != nullptr ? *commit.after : *commit.before;
    const std::string line = absl::StrCat(absl::ToInt64Milliseconds(time_.now() - start_), " ",
                                          std::string(commit.actor),
                                          commit.before == nullptr  ? " creates "
                                          : commit.after == nullptr ? " removes "
                                                                    : " changes ",
                                          std::string(world::RowOf(commit.type).kind), " ",
                                          world::TextAt(object, {"metadata", "namespace"}), "/",
                                          world::TextAt(object, {"metadata", "name"}));
    hash_.Add(line);
    if (trace_ && commit.type != ResourceType::kLeases && commit.type != ResourceType::kEvents) {
      trace_(absl::StrCat(line, Detail(commit, object)));
    }
    if (!commit.actor.empty()) CountForCrash(std::string(commit.actor));
  }

  static std::string Detail(const world::ApiServer::Commit& commit, const world::Json& object) {
    switch (commit.type) {
      case ResourceType::kPods: {
        const world::PodFacts pod = world::ReadPod(object);
        const std::string why = world::DisruptionOf(object);
        return absl::StrCat(" node=", pod.node, " queue=", pod.queue_label, " group=", pod.group,
                            " phase=", world::TextAt(object, {"status", "phase"}),
                            pod.terminating ? " terminating" : "", " told=", pod.condition,
                            pod.condition.empty() ? "" : " ",
                            pod.condition.empty() ? "" : pod.verdict,
                            why.empty() ? "" : " why=", why);
      }
      case ResourceType::kNodeRequests:
        return absl::StrCat(" phase=", world::TextAt(object, {"status", "phase"}),
                            " type=", world::TextAt(object, {"spec", "instanceType"}));
      case ResourceType::kNodes: {
        const world::NodeFacts node = world::ReadNode(object);
        return absl::StrCat(node.ready ? " ready" : " unready", node.removing ? " removing" : "",
                            " request=", node.request, " has ", node.allocatable.Text());
      }
      case ResourceType::kPodGroups:
        return absl::StrCat(" ", object.contains("spec") ? object["spec"].dump() : "", " told=",
                            object.contains("status")
                                ? object["status"].value("schedulability", world::Json()).dump()
                                : "");
      case ResourceType::kResourceClaims: {
        const world::ClaimFacts claim = world::ReadClaim(object);
        return absl::StrCat(claim.allocated ? " allocated on " : "", claim.node, ": ",
                            absl::StrJoin(claim.devices, ","), " for ",
                            absl::StrJoin(claim.reserved, ","), claim.deleting ? " deleting" : "");
      }
      case ResourceType::kPersistentVolumeClaims: {
        const world::VolumeClaimFacts claim = world::ReadVolumeClaim(object);
        return absl::StrCat(" class=", claim.ask.storage_class, " volume=", claim.volume,
                            claim.bound ? " bound" : "", claim.lost ? " lost" : "",
                            claim.deleting ? " deleting" : "", " node=", claim.selected_node);
      }
      case ResourceType::kPersistentVolumes: {
        const world::VolumeFacts volume = world::ReadVolume(object);
        return absl::StrCat(" class=", volume.has.storage_class, " ", volume.phase,
                            " claim=", volume.claim_ns, "/", volume.claim_name, " ",
                            volume.claim_uid, volume.deleting ? " deleting" : "");
      }
      case ResourceType::kQueues:
        return absl::StrCat(" ", object.contains("spec") ? object["spec"].dump() : "");
      default:
        return "";
    }
  }

  // ---- operations
  // --------------------------------------------------------------------------------

  void Do(const world::Operation& operation) {
    if (trace_) trace_(absl::StrCat("> ", world::PrintOperation(operation)));
    if (operation.verb == "cloud" || operation.verb == "lose-machine" ||
        operation.verb == "catalogue" || operation.verb == "old-machine" ||
        !operation.Text("catalogue").empty()) {
      checks_.ExcusePurchases();
    }
    if (tenants_.Do(operation)) return;
    if (DoServer(operation)) return;
    if (operation.verb == "settings") return WriteFiles(operation);
    Replica* replica = Find(operation.Text("replica"));
    if (replica == nullptr) return;
    if (operation.verb == "stop") return Stop(*replica, operation);
    const absl::Time until = time_.now() + absl::Milliseconds(operation.Number("for_ms"));
    checks_.Disturb(until);
    if (operation.verb == "crash") return Crash(*replica, operation);
    if (operation.verb == "crash-at") return CrashAt(*replica, operation);
    if (operation.verb == "clock") {
      const absl::Duration offset = absl::Milliseconds(operation.Number("offset_ms"));
      checks_.Skew(replica->name(), offset);
      replica->clock().SetOffset(offset);
    } else if (replica->alive()) {
      DoNetwork(*replica, operation, until);
    }
  }

  void AskLeader(const world::GuestScheduler::Question& question,
                 std::function<void(const world::GuestScheduler::Say&)> done) {
    Replica* leader = Find("leader");
    if (leader == nullptr) return;
    model::Pod pod;
    pod.meta.ns = question.ns;
    pod.meta.name = question.name;
    pod.meta.uid = question.uid;
    pod.scheduler_name = world::kGuestScheduler;
    leader->AskGuest(pod, question.reserved_on, std::move(done));
  }

  bool DoServer(const world::Operation& operation) {
    if (operation.verb == "guests-reserve") {
      guests_.ReserveFirst();
      return true;
    }
    if (operation.verb == "guests-unreliable") {
      const absl::Time until = start_ + absl::Milliseconds(operation.Number("until_ms"));
      guests_.BeUnreliable(until);
      checks_.ExpectLostGrants(until);
      return true;
    }
    if (operation.verb == "catalogue" ||
        operation.verb == "old-machine") {  // rolled out: one replica after the other
      files_.Write("", "1");
      process_.FilesWritten();
      checks_.Disturb(time_.now() + absl::Seconds(2));
      for (size_t i = 0; i < replicas_.size(); ++i) {
        time_.After(absl::Seconds(static_cast<int64_t>(i)),
                    [this, i] { replicas_[i]->Kill(time_.now() + absl::Milliseconds(500)); });
      }
    } else if (operation.verb == "compact") {
      server_.Compact();
    } else if (operation.verb == "end-watches") {
      server_.EndAllWatches();
    } else if (operation.verb == "delete-lease") {
      checks_.ExcuseWriters(time_.now() + absl::Seconds(20));
      server_.RemoveNow(ResourceType::kLeases, "kube-system", "fairlead", "tenant").IgnoreError();
    } else {
      return false;
    }
    checks_.Disturb(time_.now());
    return true;
  }

  void DoNetwork(Replica& replica, const world::Operation& operation, absl::Time until) {
    world::Network& network = *replica.network();
    const std::string& verb = operation.verb;
    if (verb == "pause") {
      replica.Pause(until);
    } else if (verb == "hang") {
      replica.Hang(until);
      checks_.Hung(replica.identity(), until);
    } else if (verb == "blind") {
      const auto status = static_cast<int>(operation.Number("status", 403));
      network.Refuse("GET", operation.Text("prefix"), "", status, until);
      network.GoAway();
      checks_.Blind(replica.identity(), until);
    } else if (verb == "partition") {
      replica.Partition(until);
    } else if (verb == "goaway") {
      network.GoAway(operation.Number("calls") != 0);
    } else if (verb == "answer") {
      Answer(network, operation, until);
    } else if (verb == "refuse") {
      checks_.Refuse(until);
      if (IsForGood(operation.Number("status"))) checks_.RefuseForGood(until + kKnown);
      network.Refuse(operation.Text("method"), operation.Text("prefix"), operation.Text("suffix"),
                     static_cast<int>(operation.Number("status")), until);
    } else if (verb == "half-open") {
      const std::string traffic = operation.Text("class");
      if (traffic == "watch") {
        checks_.Disturb(until + kSilentUntil);
      } else {  // also of a write that looked at its object first, and got no answer to that
        checks_.LoseAnswers(until + kube::ExecutorOptions().request_timeout);
      }
      network.HalfOpen(traffic == "read"    ? kube::TrafficClass::kRead
                       : traffic == "write" ? kube::TrafficClass::kWrite
                                            : kube::TrafficClass::kWatch,
                       until);
    } else if (verb == "network") {
      SetFaults(network, operation);
      // What was lost may have been done, for all that is known: its correction is sent.
      if (operation.Number("lose_request") > 0) checks_.Refuse(until);
      if (operation.Number("lose_answer") > 0 || operation.Number("gateway_timeout") > 0 ||
          operation.Number("server_error") > 0) {
        checks_.LoseAnswers(until + kube::ExecutorOptions().request_timeout);
      }
      // What waits behind slow writes is given up unsent.
      if (operation.Number("max_delay_ms") >= 1000) checks_.LoseAnswers(until);
      time_.At(until, [this, name = replica.name(), identity = replica.identity()] {
        Replica* later = Find(name);
        if (later->identity() == identity && later->alive()) later->network()->SetFaults({});
      });
    } else {
      checks_.Fail("simulation", absl::StrCat("the plan has no verb \"", verb, "\""));
    }
  }

  // Files that change are seen by each replica at its next look. What cannot be used is no fault:
  // nothing may come of it.
  void WriteFiles(const world::Operation& operation) {
    files_.Write(operation.Text("configuration"), operation.Text("catalogue"));
    FilesWritten(operation.Number("signal") != 0);
  }

  void FilesWritten(bool signal) {
    process_.FilesWritten();
    checks_.Reload(time_.now() + cmd::kFilePoll + kReadWithin);
    if (files_.usable()) checks_.Disturb(time_.now() + cmd::kFilePoll);
    for (size_t i = 0; i < replicas_.size(); ++i) {
      const absl::Duration at = signal ? absl::ZeroDuration()
                                       : absl::Milliseconds(files_random_.Between(
                                             1, absl::ToInt64Milliseconds(cmd::kFilePoll)));
      time_.After(at, [this, i, signal] { LookAtFiles(i, signal); });
    }
  }

  void LookAtFiles(size_t i, bool signal) {
    if (!replicas_[i]->frozen()) return replicas_[i]->CheckFiles(signal);
    checks_.Reload(time_.now() + cmd::kFilePoll + kReadWithin);
    time_.After(absl::Seconds(1), [this, i, signal] { LookAtFiles(i, signal); });
  }

  void Stop(Replica& replica, const world::Operation& operation) {
    if (!replica.alive()) return;
    const absl::Duration down = absl::Milliseconds(operation.Number("down_ms", 1000));
    process_.Stopping(replica.name() == "a" ? 0 : 1, replica.identity(),
                      !checks_.IsDisturbed() && !replica.ending());
    checks_.Disturb(time_.now() + down);
    replica.Stop(down);
  }

  void CrashAt(Replica& replica, const world::Operation& operation) {
    const Replica::CrashPoint point{operation.Text("write"), operation.Text("when") == "after",
                                    std::max<int64_t>(1, operation.Number("count", 1)),
                                    absl::Milliseconds(operation.Number("down_ms", 1000))};
    replica.CrashAt(point, [this](absl::Duration down) { checks_.Disturb(time_.now() + down); });
  }

  void Answer(world::Network& network, const world::Operation& operation, absl::Time until) {
    world::WriteRefusal refusal;
    refusal.kind = operation.Text("write");
    refusal.status = static_cast<int>(operation.Number("status", 500));
    refusal.chance = static_cast<int>(operation.Number("chance", 1000));
    refusal.served = operation.Number("served") != 0;
    refusal.retry_after = absl::Milliseconds(operation.Number("retry_after_ms"));
    refusal.until = until;
    if (IsForGood(refusal.status)) checks_.RefuseForGood(until + kKnown);
    // That there is no answer is known when the request's time is over.
    const bool silent = refusal.status == 0;
    checks_.Refuse(silent ? until + kube::ExecutorOptions().request_timeout : until);
    network.RefuseWrites(std::move(refusal));
  }

  static void SetFaults(world::Network& network, const world::Operation& operation) {
    const auto chance = [&](const char* key) { return static_cast<int>(operation.Number(key)); };
    world::NetworkFaults faults;
    faults.lose_request = chance("lose_request");
    faults.lose_answer = chance("lose_answer");
    faults.throttle = chance("throttle");
    faults.server_error = chance("server_error");
    faults.gateway_timeout = chance("gateway_timeout");
    faults.conflict = chance("conflict");
    faults.min_delay = absl::Milliseconds(operation.Number("min_delay_ms", 1));
    faults.min_watch_delay = absl::Milliseconds(operation.Number("min_watch_delay_ms", 1));
    faults.max_delay = absl::Milliseconds(operation.Number("max_delay_ms", 5));
    faults.max_watch_delay = absl::Milliseconds(operation.Number("max_watch_delay_ms", 20));
    network.SetFaults(faults);
  }

  void Crash(Replica& replica, const world::Operation& operation) {
    const absl::Duration down = absl::Milliseconds(operation.Number("down_ms", 1000));
    const int64_t at_write = operation.Number("at_write");
    if (at_write > 0) {
      Doom& doom = dooms_[replica.name() == "a" ? 0 : 1];
      doom = {at_write, down};
      return;
    }
    checks_.Disturb(time_.now() + down);
    replica.Kill(time_.now() + down);
  }

  // A process that is to die at its n-th write from now on dies right after the server has it.
  void CountForCrash(const std::string& actor) {
    for (size_t i = 0; i < replicas_.size(); ++i) {
      if (dooms_[i].writes_left == 0 || replicas_[i]->identity() != actor) continue;
      if (--dooms_[i].writes_left > 0) continue;
      const absl::Time restart = time_.now() + dooms_[i].down;
      checks_.Disturb(restart);
      time_.At(time_.now(), [this, i, restart] { replicas_[i]->Kill(restart); });
    }
  }

  void CalmDown() {
    if (trace_) trace_("> all faults end");
    cloud_.BeHonest();
    foreign_.SetLag(absl::Milliseconds(20));
    guests_.BeUnreliable(time_.now());
    kubelets_.StickUntil(time_.now());
    provisioner_.BeHonest();
    dooms_ = {};
    for (const auto& replica : replicas_) {
      replica->CrashAt({}, nullptr);
      if (replica->alive()) replica->network()->SetFaults({});
    }
    if (!files_.usable()) {
      files_.Restore();
      FilesWritten(false);
    }
    checks_.Settle();
  }

  Replica* Find(const std::string& name) {
    for (const auto& replica : replicas_) {
      if (replica->name() == name) return replica.get();
      const bool leads = replica->identity() == checks_.lease_holder();
      if (name == "leader" && leads) return replica.get();
      if (name == "standby" && !leads) return replica.get();
    }
    return nullptr;
  }

  const core::DecisionLoop* LeaderLoop() {
    const Replica* leader = Find("leader");
    return leader != nullptr && leader->alive() ? leader->loop() : nullptr;
  }

  absl::Time LeaderBegan() {
    const Replica* leader = Find("leader");
    return leader != nullptr ? leader->began() : time_.now();
  }

  [[nodiscard]] int64_t Turns() const { return replicas_[0]->turns() + replicas_[1]->turns(); }

  RunResult Result() {
    RunResult result;
    result.failure = checks_.failure();
    result.steps = Turns();
    result.lifetimes = truth_.pods_ended();
    result.commits = commits_;
    result.writes = checks_.writes();
    result.virtual_time = time_.now() - start_;
    result.trace_hash = hash_.value();
    return result;
  }

  struct Doom {
    int64_t writes_left = 0;  // 0: none
    absl::Duration down;
  };

  const world::Plan& plan_;
  const std::function<void(absl::string_view)> trace_;
  const absl::Time start_;
  sim::EventQueue time_;
  world::ApiServer server_;
  world::Truth truth_;  // first to hear of a commit
  world::Kubelets kubelets_;
  world::Controllers controllers_;
  world::ForeignScheduler foreign_;
  world::GuestScheduler guests_;
  world::Cloud cloud_;
  world::DeviceDriver driver_;
  world::ClaimController claims_;
  world::VolumeController volumes_;
  world::VolumeProvisioner provisioner_;
  world::Tenants tenants_;
  Checks checks_;
  StableHash hash_;
  int64_t commits_ = 0;
  SettingsFiles files_;
  Random files_random_{plan_.seed + 5};
  ProcessChecks process_;
  std::array<Doom, 2> dooms_;
  std::array<std::unique_ptr<Replica>, 2> replicas_;
};

}  // namespace

RunResult RunPlan(const world::Plan& plan, const RunOptions& options) {
  return Simulation(plan, options).Run();
}

}  // namespace fairlead::simtest
