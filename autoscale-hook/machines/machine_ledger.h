// The ledger of machines: a row per NodeRequest, from its creation until its object is gone. A row
// has
//   desired   the hook's last decision: the status that the object should have
//   written   the last status write, its attempts and whether the API server has accepted it
//   observed  the object as the watch showed it last
//   provider  the calls to the provider, their number, and its last answer
// All that is sent, to the API server and to the provider, follows base/write_attempts.h, with the
// rules below. A sent write is not trusted: `Written` is true only of a status that the API server
// has answered OK or the watch has shown. Every action that cannot be undone (TerminateNode,
// deletion of the object) waits for it. A row whose object has not been seen stays as long as its
// creation may have been carried out (Hook::Impl::AdvanceUnseen), and counts against all caps.
//
// Identity: the uid of the NodeRequest. The key of a row is its name, which the API server keeps
// unique. An object of another uid under that name is another row, and the former row is dropped.
// Nodes are not stored here: a node names its request by label or by providerID
// (core::ManagedNodes).
//
// Fairlead is the only writer of these objects' status (the lease fences it). So an observed status
// that differs from the desired one, while no write of ours is under way, is another leader's and
// is adopted. At a start every row begins with what is observed (I5).
//
// Thread-safety: the owner's thread. Complexity: O(log rows) per call.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/write_attempts.h"
#include "scheduler/model/workload_objects.h"

namespace fairlead::hook {

// The API server answers every write; silence is longer than an adapter repeats a write by itself.
inline constexpr WriteAttempts::Rules kWriteRules = {
    .backoff = {absl::Seconds(5), absl::Minutes(5)},
    .silence = {absl::Minutes(1), absl::Minutes(5)},
    .unseen = {absl::Minutes(1), absl::Minutes(5)}};
// Of an object, for which pods wait. One that was created and is not shown when a fresh watch would
// show it is gone.
inline constexpr WriteAttempts::Rules kCreationRules = {
    .backoff = {absl::Seconds(1), absl::Minutes(1)},
    .silence = kWriteRules.silence,
    .unseen = {kDoubtLasts, kDoubtLasts}};
// LaunchNode: without an answer a time-out of the machine's life decides.
inline constexpr WriteAttempts::Rules kLaunchRules = {
    .backoff = {absl::Seconds(30), absl::Minutes(5)}};
inline constexpr WriteAttempts::Rules kTerminateRules = {
    .backoff = {absl::Seconds(30), absl::Minutes(30)},
    .silence = {absl::Minutes(1), absl::Minutes(30)},
    .unseen = {absl::Seconds(30), absl::Minutes(30)}};

struct StatusWrite {
  model::NodeRequest status;
  WriteAttempts attempts;
};

// A node besides the one that was ordered (surplus.h).
struct SurplusNode {
  absl::Time unneeded_since;
  WriteAttempts taint, end;
};

struct Machine {
  model::NodeRequest desired;
  std::optional<StatusWrite> written;          // absent: the observed status is the desired one
  std::optional<model::NodeRequest> observed;  // absent: creation requested, not seen
  WriteAttempts launch, terminate;             // calls to the provider
  std::optional<absl::Status> launch_answer;   // not dealt with yet
  bool gone = false;                           // the provider confirmed that no machine exists

  absl::Time first_seen = absl::InfinitePast();  // by a step of this process
  bool created_here = false;                     // by this process
  std::optional<absl::Time> missing_since;       // its node was there
  WriteAttempts creation, deletion;              // of the object
  WriteAttempts taint;                           // of its nodes
  bool taint_wanted = false;
  std::map<std::string, SurplusNode> surplus;  // by uid of the node
  bool failure_counted = false;                // in the back-off
  bool shape_learned = false;

  [[nodiscard]] const std::string& name() const { return desired.meta.name; }
  [[nodiscard]] bool seen() const { return observed.has_value(); }
  // True if the API server is known to have this phase.
  [[nodiscard]] bool Written(model::NodeRequestPhase phase) const;
  // True if its node may take pods, now or when it comes.
  [[nodiscard]] bool Promises() const;
};

class MachineLedger {
 public:
  // ---- observed. True if decisions have to be made again.
  bool Observe(const model::NodeRequest& request);
  bool ObserveGone(const std::string& name, const std::string& uid);

  // ---- written
  void CreationSent(const model::NodeRequest& request, absl::Time now);
  // The answer to a creation. True if it was refused for certain: the row may be forgotten.
  bool CreationAnswered(const std::string& name, const absl::Status& status, absl::Time now);
  // The object does not exist: the creation was refused for certain, or would be seen.
  void Forget(const std::string& name);
  // The answer to a status write. True if a decision waits for it.
  bool StatusAnswered(const model::NodeRequest& written, const absl::Status& status,
                      absl::Time now);
  void TaintAnswered(const std::string& name, bool present, const absl::Status& status,
                     absl::Time now);
  void DeletionAnswered(const std::string& name, const std::string& uid, const absl::Status& status,
                        absl::Time now);

  [[nodiscard]] const Machine* Find(const std::string& name) const;
  [[nodiscard]] Machine* FindMutable(const std::string& name);
  [[nodiscard]] bool Seen(const std::string& name) const;
  // The request whose machine has this provider id; empty if none.
  [[nodiscard]] std::string FindByProviderId(const std::string& provider_id) const;
  [[nodiscard]] std::map<std::string, Machine>& rows() { return rows_; }
  [[nodiscard]] const std::map<std::string, Machine>& rows() const { return rows_; }

  // Call it after a change of `desired` from outside.
  void Changed() { ++version_; }
  void SetProviderId(Machine& machine, const std::string& provider_id);
  // Equal values mean that nothing changed in between.
  [[nodiscard]] uint64_t version() const { return version_; }

 private:
  void Index(const Machine& machine);
  void Drop(std::map<std::string, Machine>::iterator row);

  std::map<std::string, Machine> rows_;                // by name of the request
  std::map<std::string, std::string> by_provider_id_;  // -> name of the request
  uint64_t version_ = 1;
};

// Status fields equal, times to the second.
bool SameStatus(const model::NodeRequest& a, const model::NodeRequest& b);

}  // namespace fairlead::hook
