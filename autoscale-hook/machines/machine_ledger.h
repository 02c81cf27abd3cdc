// The ledger of machines: a row per NodeRequest, from its creation until its object is gone. A row
// has
//   desired   the hook's last decision: the status that the object should have
//   written   the last status write, its attempts and whether the API server has accepted it
//   observed  the object as the watch showed it last
//   provider  the calls to the provider, their number, and its last answer
// Writes (status, taint, the end of the object) follow base/write_attempts.h, with kWriteRules.
// A sent write is not trusted: `Written` is true only of a status that the API server has answered
// OK or the watch has shown. Every action that cannot be undone (TerminateNode, deletion of the
// object) waits for it.
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

// Calls of one kind to the provider about one machine.
struct ProviderCall {
  std::optional<absl::Time> sent_at;   // of the last one
  int64_t attempts = 0;                // since the last success
  std::optional<absl::Time> retry_at;  // after a failed answer
};

// The API server answers every write; silence is longer than an adapter repeats a write by itself.
inline constexpr WriteAttempts::Rules kWriteRules = {
    .backoff = {absl::Seconds(5), absl::Minutes(5)},
    .silence = {absl::Minutes(1), absl::Minutes(5)},
    .unseen = {absl::Minutes(1), absl::Minutes(5)}};

struct StatusWrite {
  model::NodeRequest status;
  WriteAttempts attempts;
};

struct Machine {
  model::NodeRequest desired;
  std::optional<StatusWrite> written;          // absent: the observed status is the desired one
  std::optional<model::NodeRequest> observed;  // absent: creation requested, not seen
  ProviderCall launch, terminate;
  std::optional<absl::Status> launch_answer;  // not dealt with yet
  bool gone = false;                          // the provider confirmed that no machine exists

  absl::Time first_seen = absl::InfinitePast();  // for an unseen request, its creation
  // When this process requested the creation, by its clock. Absent: another or former process did.
  std::optional<absl::Time> asked_at;
  std::optional<absl::Time> missing_since;  // its node was there
  WriteAttempts taint, deletion;            // of its nodes, and of the object
  bool taint_wanted = false;
  bool failure_counted = false;  // in the back-off
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
  // The creation was refused for certain, or given up.
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
