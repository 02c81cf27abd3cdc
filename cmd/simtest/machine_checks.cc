#include "cmd/simtest/machine_checks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "autoscale-hook/machines/machine_reports.h"
#include "cmd/simtest/catalogue.h"
#include "sim/world/api_json.h"

namespace fairlead::simtest {
namespace {

using sim::world::Json;
using sim::world::PodRow;
using sim::world::ResourceType;
using sim::world::TextAt;

constexpr absl::Duration kAccount = absl::Seconds(10);
// The same for what happened while no process led: the next one hears of it from the cloud.
constexpr absl::Duration kFind = absl::Seconds(45);  // beside hook::kUnclaimedGrace
// Pods of a burst are gathered for a few seconds at most.
constexpr absl::Duration kBurst = absl::Seconds(5);
constexpr int64_t kLeastBurst = 8;  // GPUs: fewer are too few to save anything
constexpr absl::Duration kTimeToHelp = absl::Seconds(15);
// Gangs are not cut: the last of them may take this much more than its bucket has.
constexpr int64_t kMostPods = 6;

// Forgets what is older than a minute.
void KeepAMinute(std::deque<absl::Time>& times, absl::Time now) {
  while (!times.empty() && times.front() <= now - absl::Minutes(1)) times.pop_front();
}

bool IsLive(const sim::world::Cloud::Machine& machine) {
  return machine.ended == absl::InfiniteFuture() && !machine.uninvited;
}

}  // namespace

MachineChecks::MachineChecks(const sim::EventQueue* time, sim::world::ApiServer* server,
                             const sim::world::Truth* truth, sim::world::Cloud* cloud,
                             const Caps& caps, Fail fail)
    : time_(time),
      server_(server),
      truth_(truth),
      cloud_(cloud),
      caps_(caps),
      fail_(std::move(fail)) {
  cloud->OnTerminate(
      [this](const Machine& machine, absl::Time sent) { OnTerminate(machine, sent); });
  cloud->OnCall([this](const std::string& call, const std::string& request, const std::string& id) {
    OnCall(call, request, id);
  });
}

// ---- what is bought
// ------------------------------------------------------------------------------

std::string MachineChecks::JobOf(const std::string& workload) const {
  const auto pod = truth_->pods().find(workload);
  return pod != truth_->pods().end() ? pod->second.facts.job : workload;
}

bool MachineChecks::IsLonePod(const std::string& workload) const {
  const auto pod = truth_->pods().find(workload);
  return pod != truth_->pods().end() && pod->second.facts.group.empty();
}

bool MachineChecks::IsLoneGpuPod(const std::string& workload) const {
  const auto pod = truth_->pods().find(workload);
  return pod != truth_->pods().end() && pod->second.facts.group.empty() &&
         pod->second.facts.requests.gpu == 1000;
}

void MachineChecks::OnRequest(const Json& request, bool undisturbed, bool lied) {
  NoteSet(request);
  ended_.erase(TextAt(request, {"metadata", "name"}));  // another one had the name
  const absl::Time now = time_->now();
  CheckReserved(request);
  const auto spec = request.find("spec");
  if (spec == request.end() || !spec->contains("reasonWorkloads")) return;
  std::vector<std::string> reasons;
  for (const Json& reason : (*spec)["reasonWorkloads"])
    reasons.push_back(reason.get<std::string>());
  if (reasons.empty()) return;
  reasons_[TextAt(request, {"metadata", "uid"})] = reasons;
  all_orders_.push_back(now);
  KeepAMinute(all_orders_, now);
  const auto all = static_cast<int64_t>(all_orders_.size());
  if (undisturbed && all > kTotalBurst + kTotalPerMinute + kMostPods) {
    fail_("rate", absl::StrCat(all, " nodes were requested in a minute; ", kTotalBurst,
                               " at once and ", kTotalPerMinute, " a minute is the rate of all"));
  }
  const std::string job = JobOf(reasons.front());
  // The first node that comes may be taken by pods of another job, whose own nodes cost otherwise.
  for (auto& [other, burst] : bursts_) burst.undisturbed = burst.undisturbed && other == job;
  if (job.empty()) return;
  std::deque<absl::Time>& orders = orders_[job];
  orders.push_back(now);
  KeepAMinute(orders, now);
  const auto count = static_cast<int64_t>(orders.size());
  // Of lone pods each is a step of its own.
  const bool lone = std::all_of(reasons.begin(), reasons.end(),
                                [&](const std::string& workload) { return IsLonePod(workload); });
  if (undisturbed && count > kPurchaseBurst + kPurchasesPerMinute + (lone ? 1 : kMostPods)) {
    fail_("rate", absl::StrCat(count, " nodes were requested for pods of ", job, " in a minute; ",
                               kPurchaseBurst, " at once and ", kPurchasesPerMinute,
                               " a minute is the rate"));
  }
  if (!std::all_of(reasons.begin(), reasons.end(), [&](const std::string& workload) {
        return IsLoneGpuPod(workload) && JobOf(workload) == job;
      })) {
    return;
  }
  if (!TextAt(*spec, {"reservation"}).empty()) return;  // paid for anyway
  const hook::InstanceType* const type = WorldCatalog().Find(TextAt(*spec, {"instanceType"}));
  if (type == nullptr) return;
  Burst& burst = bursts_.try_emplace(job, Burst{now}).first->second;
  burst.gpus += type->gpu_count;
  burst.micro_usd += *type->on_demand_micro_usd;
  // Pools may sell dearer types alone.
  burst.undisturbed = burst.undisturbed && undisturbed && !lied && !truth_->pools().Any();
}

// Never more than the catalogue has. What is being ended is not counted here, but by Fairlead.
void MachineChecks::CheckReserved(const Json& request) {
  const std::string name = TextAt(request, {"spec", "reservation"});
  if (name.empty()) return;
  const hook::InstanceType* const type =
      WorldCatalog(kReserving).Find(TextAt(request, {"spec", "instanceType"}));
  const hook::Reservation* const reservation =
      type == nullptr ? nullptr : type->FindReservation(name);
  const std::string zone = TextAt(request, {"spec", "zone"});
  const std::string of = absl::StrCat("node request ", TextAt(request, {"metadata", "name"}));
  if (reservation == nullptr || (!reservation->zone.empty() && reservation->zone != zone)) {
    return fail_("reservation",
                 absl::StrCat(of, " is of ", name, " in ", zone, ", which is no such reservation"));
  }
  int64_t requests = 0;
  server_->ForEach(ResourceType::kNodeRequests, [&](const Json& object) {
    const std::string phase = TextAt(object, {"status", "phase"});
    const bool over = phase == "Failed" || phase == "Draining" || phase == "Gone" ||
                      object["metadata"].contains("deletionTimestamp");
    if (!over && TextAt(object, {"spec", "reservation"}) == name) ++requests;
  });
  if (requests <= reservation->count) return;
  fail_("reservation", absl::StrCat(of, " is number ", requests, " of reservation ", name,
                                    ", which has ", reservation->count));
}

void MachineChecks::CheckBursts() {
  for (auto it = bursts_.begin(); it != bursts_.end();) {
    const auto& [job, burst] = *it;
    if (time_->now() - burst.since < kBurst) {
      ++it;
      continue;
    }
    const int64_t cheapest = CheapestMicroUsdFor(burst.gpus);
    if (burst.undisturbed && burst.gpus >= kLeastBurst &&
        burst.micro_usd * 100 > cheapest * kDear) {
      fail_("cost",
            absl::StrCat("pods of ", job, " that came together are served by machines for ",
                         burst.micro_usd, " micro-dollars an hour; so many GPUs cost ", cheapest));
    }
    it = bursts_.erase(it);
  }
}

void MachineChecks::CheckCaps() {
  const auto check = [&](int64_t has, int64_t cap, const char* what) {
    if (has > cap) fail_("caps", absl::StrCat(has, " ", what, " are paid for, the cap is ", cap));
  };
  check(cloud_->live_gpus(), caps_.gpus, "GPUs");
  check(cloud_->live_price(), caps_.micro_usd_per_hour, "micro-dollars an hour");
  check(cloud_->live_count(), caps_.nodes, "nodes");
}

// ---- what is ended
// -------------------------------------------------------------------------------

void MachineChecks::NoteSet(const Json& request) {
  const std::string id = TextAt(request, {"metadata", "labels", "fairlead.dev/launch-set"});
  const auto text = [&](const char* key) {
    return TextAt(request, {"metadata", "annotations", key});
  };
  int64_t size = 0;
  if (id.empty() || text("fairlead.dev/launch-set-atomic") != "true" ||
      !absl::SimpleAtoi(text("fairlead.dev/launch-set-size"), &size)) {
    return;
  }
  const std::string uid = TextAt(request, {"metadata", "uid"});
  sets_[id].size = size;
  sets_[id].written.insert(uid);
  set_of_[uid] = id;
}

void MachineChecks::CheckSet(const std::string& uid) {
  const auto id = set_of_.find(uid);
  if (id == set_of_.end()) return;
  const WholeSet& set = sets_[id->second];
  const auto written = static_cast<int64_t>(set.written.size());
  if (written >= set.size) return;
  fail_("set", absl::StrCat("a machine of ", id->second, " is ordered, and ", written, " of its ",
                            set.size, " requests were written"));
}

void MachineChecks::OnCall(const std::string& call, const std::string& request,
                           const std::string& id) {
  if (call == "launch") {
    CheckSet(id);
    if (ended_.contains(request)) {
      fail_("terminate", absl::StrCat(request, " is launched after all of it was to be ended"));
    }
  } else {
    ended_at_ = time_->now();
    if (id.empty()) ended_.insert(request);
  }
  const std::string machine = absl::StrCat(request, " ", id);
  std::deque<absl::Time>& calls = calls_[absl::StrCat(call, " ", machine)];
  calls.push_back(time_->now());
  KeepAMinute(calls, time_->now());
  if (static_cast<int64_t>(calls.size()) > kCallsAMinute) {
    fail_("storm", absl::StrCat("the cloud was asked ", calls.size(), " times in a minute to ",
                                call, " ", machine));
  }
}

void MachineChecks::OnTerminate(const Machine& machine, absl::Time sent) {
  CheckStatus(machine);
  const auto found = truth_->nodes().find(machine.node);
  if (found == truth_->nodes().end()) return;
  for (const auto& [key, row] : truth_->pods()) {
    if (row.facts.node != machine.node || row.facts.terminal || row.facts.stays) continue;
    if (row.facts.terminating) continue;
    // A machine may register, and another scheduler use it, when its end is on its way.
    const absl::Time decided = std::min(found->second.removing_since, sent);
    if (!row.BoundByFairlead() && row.bound_at > decided) continue;
    fail_("terminate", absl::StrCat("node ", machine.node, " is terminated under pod ", key,
                                    ", bound by ", row.bound_by, " ",
                                    absl::FormatDuration(time_->now() - row.bound_at), " ago"));
  }
}

// A replica that starts after this reads what the request says, and may promise its node.
void MachineChecks::CheckStatus(const Machine& machine) {
  const Json* const request = server_->Find(ResourceType::kNodeRequests, "", machine.request);
  if (request == nullptr || TextAt(*request, {"metadata", "uid"}) != machine.uid) return;
  if (request->at("metadata").contains("deletionTimestamp")) return;
  const std::string phase = TextAt(*request, {"status", "phase"});
  if (phase == "Draining" || phase == "Failed" || phase == "Gone") return;
  // Of two machines of one request one may end alone. The taint says so to such a replica.
  const auto node = truth_->nodes().find(machine.node);
  const auto& machines = cloud_->machines();
  const bool another = std::any_of(machines.begin(), machines.end(), [&](const Machine& other) {
    return other.id != machine.id && other.uid == machine.uid &&
           other.ended == absl::InfiniteFuture() && truth_->nodes().contains(other.node);
  });
  if (another && node != truth_->nodes().end() && node->second.facts.removing) return;
  fail_("terminate", absl::StrCat("machine ", machine.id, " is ended, and its request ",
                                  machine.request, " says \"", phase, "\""));
}

// Machines that were there, ready, for a while, and a pod that they were for waits all the same.
void MachineChecks::NoteUseless(const Machine& machine) {
  if (machine.ran_a_pod || machine.uninvited) return;
  if (machine.ready == absl::InfiniteFuture() || machine.ended - machine.ready < kTimeToHelp) {
    return;
  }
  const auto reasons = reasons_.find(machine.uid);
  if (reasons == reasons_.end()) return;
  for (const sim::world::Workload& workload : truth_->Waiting()) {
    const auto& keys = reasons->second;
    if (std::find(keys.begin(), keys.end(), workload.key) == keys.end()) continue;
    const bool old = std::all_of(workload.waiting.begin(), workload.waiting.end(),
                                 [&](const PodRow* row) { return row->created < machine.started; });
    // Pods of a job are equal. What was ordered together proves nothing: the others come when the
    // first has.
    const std::string what = absl::StrCat(machine.type, " for ", JobOf(workload.key));
    const auto [since, first] = useless_since_.try_emplace(what, time_->now());
    if (first || !old || machine.started < since->second) continue;
    since->second = time_->now();
    if (++useless_[what] < kUseless) return;
    fail_("purchase",
          absl::StrCat("machines of type ", what, " were provisioned ", useless_[what] + 1,
                       " times, one after the other, none ran a pod, and ", workload.key,
                       " waits: ", workload.waiting.front()->facts.condition));
    return;
  }
}

// A type that has turned out to be too small for a pod is not bought for that pod again. What a
// type brings is learned by pool, and anew when a pool changes: worlds with pools are not judged.
void MachineChecks::NoteTooSmall(const Machine& machine) {
  if (machine.uninvited || truth_->pools().Any()) return;
  const auto reasons = reasons_.find(machine.uid);
  const auto node = truth_->nodes().find(machine.node);
  if (reasons == reasons_.end() || node == truth_->nodes().end()) return;
  for (const sim::world::Workload& workload : truth_->Waiting()) {
    const auto& keys = reasons->second;
    if (std::find(keys.begin(), keys.end(), workload.key) == keys.end()) continue;
    const sim::world::PodFacts& pod = workload.waiting.front()->facts;
    if (pod.requests.FitsIn(node->second.facts.allocatable)) continue;
    const std::string what = absl::StrCat(machine.type, " for ", JobOf(workload.key));
    const absl::Time since = too_small_since_.try_emplace(what, time_->now()).first->second;
    if (machine.started < since + kAccount || ++too_small_[what] <= 1) continue;
    fail_("purchase", absl::StrCat(too_small_[what], " machines of type ", what,
                                   " were provisioned since one was too small for it"));
  }
}

// ---- what is there
// -------------------------------------------------------------------------------

bool MachineChecks::HasNode(const Machine& machine) const {
  const auto node = truth_->nodes().find(machine.node);
  return node != truth_->nodes().end() && node->second.facts.provider_id == machine.provider_id();
}

bool MachineChecks::IsThere(const Machine& machine) const {
  const Json* const request = server_->Find(ResourceType::kNodeRequests, "", machine.request);
  return request != nullptr && TextAt(*request, {"metadata", "uid"}) == machine.uid;
}

// It stays for a while, so that the next process knows that the machine did not help.
bool MachineChecks::IsRecord(const Machine& machine) const {
  const Json* const request = server_->Find(ResourceType::kNodeRequests, "", machine.request);
  return request != nullptr && TextAt(*request, {"status", "phase"}) == "Gone" &&
         TextAt(*request, {"status", "failure"}) == "Unhelpful";
}

bool MachineChecks::IsLed() const {
  const Json* const lease = server_->Find(ResourceType::kLeases, "fairlead", "fairlead");
  absl::Time renewed;
  return lease != nullptr &&
         absl::ParseTime(absl::RFC3339_full, TextAt(*lease, {"spec", "renewTime"}), &renewed,
                         nullptr) &&
         time_->now() - renewed < kAccount;
}

void MachineChecks::CheckAccounts() {
  if (!IsLed()) last_unled_ = time_->now();
  std::map<std::string, absl::Time> unaccounted;
  for (const Machine& machine : cloud_->machines()) {
    if (!IsLive(machine) || IsThere(machine) || HasNode(machine)) continue;
    const auto since = unaccounted_since_.find(machine.id);
    const absl::Time from = since == unaccounted_since_.end() ? time_->now() : since->second;
    unaccounted[machine.id] = from;
    const absl::Time due = std::max(
        from + kAccount, from <= last_unled_ ? last_unled_ + hook::kUnclaimedGrace + kFind : from);
    if (time_->now() < due) continue;
    fail_("leak",
          absl::StrCat("machine ", machine.id, " is paid for, and there is neither its request ",
                       machine.request, " nor a node"));
  }
  unaccounted_since_ = std::move(unaccounted);
}

void MachineChecks::EverySecond() {
  CheckCaps();
  CheckBursts();
  CheckAccounts();
  for (const Machine& machine : cloud_->machines()) {
    if (machine.ready != absl::InfiniteFuture() && measured_.insert(machine.id).second) {
      NoteTooSmall(machine);
    }
    if (machine.ended == absl::InfiniteFuture() || !judged_.insert(machine.id).second) continue;
    NoteUseless(machine);
  }
}

bool MachineChecks::MayStayIdle(const Machine& machine, absl::Time calm_since) const {
  const Json* const request = server_->Find(ResourceType::kNodeRequests, "", machine.request);
  if (request == nullptr) return false;
  const auto versions =
      truth_->pools().InForceSince(TextAt(*request, {"spec", "pool"}), calm_since);
  return std::any_of(versions.begin(), versions.end(), [](const sim::world::PoolFacts* pool) {
    return pool->removal.value_or(absl::ZeroDuration()) > kLeak / 4 ||
           pool->empties_at_once.has_value();
  });
}

void MachineChecks::CheckIdle(absl::Time calm_since) {
  std::map<std::string, absl::Time> idle;
  for (const Machine& machine : cloud_->machines()) {
    if (!IsLive(machine) || MayStayIdle(machine, calm_since)) continue;
    const bool used =
        std::any_of(truth_->pods().begin(), truth_->pods().end(), [&](const auto& entry) {
          const sim::world::PodFacts& pod = entry.second.facts;
          return pod.node == machine.node && !pod.terminal && !pod.stays;
        });
    if (used) continue;
    const auto since = idle_since_.find(machine.id);
    idle[machine.id] = since == idle_since_.end() ? time_->now() : since->second;
    const absl::Time from = std::max(idle[machine.id], calm_since);
    if (time_->now() - from > kLeak) {
      fail_("leak", absl::StrCat("machine ", machine.id, " of request ", machine.request,
                                 " has been idle for ", absl::FormatDuration(time_->now() - from)));
    }
  }
  idle_since_ = std::move(idle);
}

void MachineChecks::CheckRequests(absl::Time calm_since) {
  for (const Machine& machine : cloud_->machines()) {
    if (machine.ended == absl::InfiniteFuture() || machine.uninvited || !IsThere(machine)) continue;
    if (IsRecord(machine)) continue;
    // A leader that starts asks for every machine that has not registered again: one that was lost
    // meanwhile is replaced under the same request. And of two machines of one request one may have
    // ended alone.
    const auto& machines = cloud_->machines();
    if (std::any_of(machines.begin(), machines.end(), [&](const Machine& other) {
          return other.uid == machine.uid && other.ended == absl::InfiniteFuture();
        })) {
      continue;
    }
    const absl::Time from = std::max(machine.ended, calm_since);
    if (time_->now() - from > kLeak) {
      fail_("leak", absl::StrCat("machine ", machine.id, " ended ",
                                 absl::FormatDuration(time_->now() - machine.ended),
                                 " ago, and its request ", machine.request, " is still there"));
    }
  }
}

void MachineChecks::WhileCalm(absl::Time calm_since) {
  CheckIdle(calm_since);
  CheckRequests(calm_since);
}

void MachineChecks::AtEnd(bool lied) {
  // Pools that change make nodes useless that were ordered.
  if (truth_->pools().Any()) return;
  if (cloud_->NeverHelps()) return;  // every shape of pods finds that out of every type
  int64_t idle = 0;
  for (const Machine& machine : cloud_->machines()) {
    if (!machine.ran_a_pod && !machine.uninvited && !taken_.contains(machine.uid)) ++idle;
  }
  const int64_t bound = (lied ? 16 : 4) + truth_->pods_created() / 4;
  if (idle > bound) {
    fail_("purchase",
          absl::StrCat(idle, " of ", cloud_->machines().size(), " machines never ran a pod; ",
                       truth_->pods_created(), " pods were made, the bound is ", bound));
  }
}

}  // namespace fairlead::simtest
