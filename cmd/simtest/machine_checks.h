// The invariants about machines and what they cost; checks.h lists them with the others.
//
// Ownership: borrows. Thread-safety: none, one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "sim/event_queue.h"
#include "sim/world/api_server.h"
#include "sim/world/cloud.h"
#include "sim/world/truth.h"

namespace fairlead::simtest {

// The rates of provisioning in these worlds: nodes for pods of one queue and size, and for all.
inline constexpr int64_t kPurchaseBurst = 8, kPurchasesPerMinute = 6;
inline constexpr int64_t kTotalBurst = 12, kTotalPerMinute = 8;
// Percent of the cheapest price.
inline constexpr int64_t kDear = 125;
inline constexpr absl::Duration kLeak = absl::Seconds(240);
inline constexpr int64_t kCallsAMinute = 8, kUseless = 3;

struct Caps {
  bool hook = true;
  bool empties = false;  // the configuration lets nodes be emptied
  int64_t gpus = 0, micro_usd_per_hour = 0, nodes = 0;
  absl::Duration gang_grace, over_limit;
  // After the last change: by then every search that was postponed has been made.
  absl::Duration searched;
  bool kai_status = false;    // the counts of KAI's controllers are written
  bool rules_change = false;  // pods may have kube-scheduler's priorities for a while
};

class MachineChecks {
 public:
  using Fail = std::function<void(const std::string& invariant, const std::string& text)>;
  MachineChecks(const sim::EventQueue* time, sim::world::ApiServer* server,
                const sim::world::Truth* truth, sim::world::Cloud* cloud, const Caps& caps,
                Fail fail);

  // A NodeRequest was created. `undisturbed`: no fault for long. `lied`: the
  // cloud has lied.
  void OnRequest(const sim::world::Json& request, bool undisturbed, bool lied);
  // A tenant deleted the NodeRequest: no pod may come to its machine any more.
  void OnTaken(const std::string& uid) { taken_.insert(uid); }
  void CheckCaps();
  void EverySecond();
  void WhileCalm(absl::Time calm_since);
  // `lied`: the cloud lied, or lost machines.
  void AtEnd(bool lied);
  // When the cloud was last asked to end a machine. What it refuses is asked again at a back-off,
  // and written then.
  [[nodiscard]] absl::Time ended_at() const { return ended_at_; }

 private:
  using Machine = sim::world::Cloud::Machine;
  void OnTerminate(const Machine& machine, absl::Time sent);
  void OnCall(const std::string& call, const std::string& request, const std::string& id);
  void NoteSet(const sim::world::Json& request);
  void CheckSet(const std::string& uid);
  void CheckStatus(const Machine& machine);
  void CheckReserved(const sim::world::Json& request);
  void CheckBursts();
  void CheckAccounts();
  [[nodiscard]] bool IsLed() const;  // some process renews the lease
  void NoteUseless(const Machine& machine);
  void NoteTooSmall(const Machine& machine);
  void CheckIdle(absl::Time calm_since);
  void CheckRequests(absl::Time calm_since);
  [[nodiscard]] bool IsThere(const Machine& machine) const;   // its request is
  [[nodiscard]] bool IsRecord(const Machine& machine) const;  // only its request is left
  // Its pool may keep it although it is idle.
  [[nodiscard]] bool MayStayIdle(const Machine& machine, absl::Time calm_since) const;
  [[nodiscard]] bool HasNode(const Machine& machine) const;
  [[nodiscard]] std::string JobOf(const std::string& workload) const;
  [[nodiscard]] bool IsLonePod(const std::string& workload) const;
  [[nodiscard]] bool IsLoneGpuPod(const std::string& workload) const;

  struct Burst {
    absl::Time since;
    int64_t gpus = 0, micro_usd = 0;
    bool undisturbed = true;
  };
  const sim::EventQueue* time_;
  sim::world::ApiServer* server_;
  const sim::world::Truth* truth_;
  sim::world::Cloud* cloud_;
  const Caps caps_;
  const Fail fail_;
  std::map<std::string, std::deque<absl::Time>> orders_;  // by job
  std::deque<absl::Time> all_orders_;
  std::map<std::string, std::deque<absl::Time>> calls_;  // by call and machine
  std::set<std::string> ended_;  // requests of which every machine was to be ended
  struct WholeSet {
    int64_t size = 0;
    std::set<std::string> written;  // uids of requests
  };
  std::map<std::string, WholeSet> sets_;                     // by id
  std::map<std::string, std::string> set_of_;                // uid of a request -> id
  std::map<std::string, Burst> bursts_;                      // by job
  std::map<std::string, std::vector<std::string>> reasons_;  // by uid of the request
  std::set<std::string> taken_;                              // uids of requests
  std::map<std::string, absl::Time> useless_since_;          // by type and job: the last one's end
  std::map<std::string, int64_t> useless_;                   // one after the other, by the same
  std::map<std::string, absl::Time> too_small_since_;        // by type and job
  std::map<std::string, int64_t> too_small_;                 // bought after that
  std::set<std::string> measured_;                           // machines that were ready
  std::set<std::string> judged_;                             // machines that have ended
  std::map<std::string, absl::Time> idle_since_;             // machines
  std::map<std::string, absl::Time> unaccounted_since_;      // machines
  absl::Time last_unled_ = absl::InfinitePast();
  absl::Time ended_at_ = absl::InfinitePast();
};

}  // namespace fairlead::simtest
