// The one account of machines: a row for each NodeRequest, from the moment that it is asked to be
// created until its object is gone. A row holds side by side
//   desired   what the hook decided last: the status that the object is to have
//   written   the last status write, and whether the API server has answered it
//   observed  the object as the watch showed it last
//   provider  what was asked of the provider, how often, and its last word
// Nothing that was sent is believed: `Written` is true only of what the API server has answered OK
// or the watch has shown. Whatever cannot be taken back (TerminateNode, deletion of the object)
// waits for it.
//
// Identity: the uid of the NodeRequest. Rows are filed by its name, which the API server keeps
// unique; an object of another uid under the same name is another row, and what was known of the
// former one is dropped. Nodes are not filed here: a node names its request by label or by
// providerID (core::ManagedNodes).
//
// Fairlead is the only writer of these objects' status (the lease fences it). A status that is
// observed while nothing of ours is under way, and that is not the desired one, is therefore
// another leader's, and is taken over. At a start every row begins with what is observed (I5).
//
// Thread-safety: the owner's thread. Complexity: O(log rows) a call.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "scheduler/model/workload_objects.h"

namespace fairlead::hook {

// Pauses between attempts: `initial`, doubling, at most `max`. `attempts` were made, at least one.
absl::Duration PauseAfter(int64_t attempts, absl::Duration initial, absl::Duration max);

// Calls of one kind to the provider about one machine.
struct ProviderCall {
  std::optional<absl::Time> sent_at;   // of the last one
  int64_t attempts = 0;                // since the last that succeeded
  std::optional<absl::Time> retry_at;  // after an answer that was no success
};

struct StatusWrite {
  model::NodeRequest status;
  absl::Time sent_at;
  bool accepted = false;               // the API server answered OK
  int64_t refusals = 0;                // in a row
  std::optional<absl::Time> retry_at;  // after a refusal
};

struct Machine {
  model::NodeRequest desired;
  std::optional<StatusWrite> written;          // absent: what is observed is what is desired
  std::optional<model::NodeRequest> observed;  // absent: asked to be created, not seen
  ProviderCall launch, terminate;
  std::optional<absl::Status> launch_answer;  // not dealt with yet
  bool gone = false;                          // the provider confirmed that there is no machine

  absl::Time first_seen = absl::InfinitePast();  // or, unseen, asked to be created
  // By the clock of this process: asked to be created. Absent: another process did, or a former
  // one.
  std::optional<absl::Time> asked_at;
  std::optional<absl::Time> missing_since;  // its node was there
  std::optional<absl::Time> taint_sent, delete_sent;
  bool taint_wanted = false;
  int64_t taint_attempts = 0, delete_attempts = 0;
  bool failure_counted = false;  // in the back-off
  bool shape_learned = false;

  [[nodiscard]] const std::string& name() const { return desired.meta.name; }
  [[nodiscard]] bool seen() const { return observed.has_value(); }
  // The API server is known to have this phase.
  [[nodiscard]] bool Written(model::NodeRequestPhase phase) const;
  // Its node may take pods, now or when it comes.
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

  [[nodiscard]] const Machine* Find(const std::string& name) const;
  [[nodiscard]] Machine* FindMutable(const std::string& name);
  [[nodiscard]] bool Seen(const std::string& name) const;
  // The request whose machine the provider calls so; empty if none.
  [[nodiscard]] std::string FindByProviderId(const std::string& provider_id) const;
  [[nodiscard]] std::map<std::string, Machine>& rows() { return rows_; }
  [[nodiscard]] const std::map<std::string, Machine>& rows() const { return rows_; }

  // After a change to `desired` from outside.
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
