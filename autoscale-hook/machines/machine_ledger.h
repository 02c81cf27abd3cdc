// The ledger of machines: a row per NodeRequest, from its creation until its machines are gone. A
// row has
//   desired   the hook's last decision: the status that the object should have
//   written   the last status write, its attempts and whether the API server has accepted it
//   observed  the object as the watch showed it last
//   provider  the ids of its machines, the calls to the provider, and the answers
// All that is sent, to the API server and to the provider, follows base/write_attempts.h, with the
// rules below. A sent write is not trusted: `Written` is true only of a status that the API server
// has answered OK or the watch has shown. Every action that cannot be undone (TerminateNode,
// deletion of the object) waits for it. A row whose object has not been seen stays as long as its
// creation may have been carried out (Hook::Impl::AdvanceUnseen), and counts against all caps.
//
// Identity: the uid of the NodeRequest. A name is not an identity: an object may be deleted by
// force and made again under its name, by any writer. What holds:
//   - The key of a row is the object's uid. Until the object is seen its row has a key of its own,
//     made of the name ("name/N"), which the API server keeps unique; then the key becomes the uid.
//   - Answers about an object or its machines are matched by uid, answers about one machine also by
//     its provider id, answers about a node by the node's uid. A creation has no uid yet: its
//     answer is matched by name, and only to a row that has not been seen.
//   - Of the rows of one name at most one is *current*: its object exists, or is being created. The
//     others are *lost*: the object is gone and a machine may exist. A lost row counts against the
//     caps until the provider has confirmed the end of its machines, or until the current row of
//     its name takes its registered node over (lost_machines.h).
//   - While a name has a lost row, its current row launches nothing. So there are never machines of
//     two objects of one name, and neither a provider nor the label of a node can confuse them.
//   - A provider id leads to one row. A provider that launched twice gives a row two machines: each
//     counts against the caps, and has calls and answers of its own.
// Names are kept where nothing else exists or people read them: the label of a node (one that an
// older version launched has no other), nominated nodes and verdicts. The label of a registered
// node leads to a lost row of the name if there is one, because the current row has launched
// nothing; else to the current row. A node's providerID, if a row has it, comes before its label.
// A request that is written again for a lost machine has the machine's old name.
//
// An object that disappears is lost only if this process has decided about it: a replica that
// follows another leader cannot know whether that leader has ended the machine before. For such a
// replica an object in an ending phase that goes has ended; in any other phase it is lost.
//
// Fairlead is the only writer of these objects' status (the lease fences it). So an observed status
// that differs from the desired one, while no write of ours is under way, is another leader's and
// is adopted. At a start every row begins with what is observed (I5).
//
// Rows are changed through the ledger alone. What it hands out to be changed is not steady any more
// (steady_machines.h), so the next step looks at it.
//
// Thread-safety: the owner's thread. Complexity: O(log rows) per call.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "autoscale-hook/machines/steady_machines.h"
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
// LaunchNode: repeated without an answer too, because the answer may tell the machine's id. A
// time-out of the machine's life ends that.
inline constexpr WriteAttempts::Rules kLaunchRules = {
    .backoff = {absl::Seconds(30), absl::Minutes(5)},
    .silence = {absl::Minutes(1), absl::Minutes(5)}};
inline constexpr WriteAttempts::Rules kTerminateRules = {
    .backoff = {absl::Seconds(30), absl::Minutes(30)},
    .silence = {absl::Minutes(1), absl::Minutes(30)},
    .unseen = {absl::Seconds(30), absl::Minutes(30)}};

struct StatusWrite {
  model::NodeRequest status;
  WriteAttempts attempts;
};

// The calls that end one machine.
struct MachineEnd {
  WriteAttempts attempts;
  bool confirmed = false;  // the provider's word: this machine does not exist
};

// The proof that no node of a machine exists (node_lists.h).
struct AbsenceProof {
  uint64_t list = 0;  // the list in flight that may give it; 0: none
  absl::Time valid_until = absl::InfinitePast();
  // Lists in a row that showed a node of the machine that the watch has not shown, that node, and
  // when the next list may be asked for.
  int64_t shown = 0;
  std::string shown_node;
  absl::Time next = absl::InfinitePast();
  std::string told, told_over;  // the message of the request that says so, and what it replaced
};

struct Machine {
  std::string key;              // of the row
  uint64_t number = 0;          // of the row, and of no other before or after it
  uint64_t steady_version = 0;  // of its node; 0: it is not steady (steady_machines.h)
  model::NodeRequest desired;
  std::optional<StatusWrite> written;          // absent: the observed status is the desired one
  std::optional<model::NodeRequest> observed;  // absent: creation requested, not seen; or lost
  bool lost = false;                           // the object is gone, a machine may exist
  bool taken_over = false;                     // lost, and another row has its machine
  WriteAttempts launch;                        // calls to the provider
  std::optional<absl::Status> launch_answer;   // not dealt with yet
  // Of its machines, as answers and nodes tell them, until their end is known. One of them is
  // desired.provider_id.
  std::set<std::string> provider_ids;
  std::map<std::string, MachineEnd> ends;  // by provider id; empty: whatever the request has
  AbsenceProof absence;
  bool reported_gone = false;  // the provider says that nothing of it exists

  absl::Time first_seen = absl::InfinitePast();  // by a step of this process
  bool created_here = false;                     // by this process
  std::optional<absl::Time> missing_since;       // its node was there
  WriteAttempts creation, deletion;              // of the object
  struct NodeTaint {
    bool wanted = false;
    WriteAttempts attempts;
  };
  std::map<std::string, NodeTaint> taints;          // by uid of the node
  std::map<std::string, absl::Time> surplus_since;  // by provider id (surplus.h)
  // Its pods are to go, so that it can be removed (emptying.h). Only this process knows of it.
  struct Emptying {
    enum class Reason : uint8_t { kUnderutilized, kReplaced, kInterrupted };
    Reason reason = Reason::kUnderutilized;
    absl::Time since;
    bool evicting = false;  // its pods are being evicted, behind the fence
  };
  std::optional<Emptying> emptying;
  // Of a request that replaces others (replacement.h), anew in each step.
  enum class Replacing : uint8_t {
    kNo,          // it is a machine like any other
    kAwaitsPods,  // their pods are to come: it is needed
    kGivenBack    // they are not to come any more: it goes at once if nothing needs it
  };
  Replacing replacing = Replacing::kNo;
  bool replacement_over = false;  // their pods did not come, and are not to come any more
  absl::Time not_emptied_before = absl::InfinitePast();
  int64_t given_up = 0;          // attempts to empty it
  bool failure_counted = false;  // in the back-off
  bool shape_learned = false;
  bool witness_refused = false;  // a status that said it was of no use (provisioning_guard.h)
  bool loss_told = false;

  [[nodiscard]] const std::string& name() const { return desired.meta.name; }
  [[nodiscard]] const std::string& uid() const { return desired.meta.uid; }
  [[nodiscard]] bool seen() const { return observed.has_value(); }
  // True if the API server is known to have this phase.
  [[nodiscard]] bool Written(model::NodeRequestPhase phase) const;
  // True if its node may take pods, now or when it comes.
  [[nodiscard]] bool Promises() const;
  // The provider speaks of it as of one that exists: a machine that was gone is back, or was never
  // gone.
  void IsThere(const std::string& provider_id);
  // True if the provider was told to end one of its machines.
  [[nodiscard]] bool EndStarted() const;
};

class MachineLedger {
 public:
  MachineLedger() = default;
  MachineLedger(const MachineLedger&) = delete;
  MachineLedger& operator=(const MachineLedger&) = delete;

  // ---- observed. True if decisions have to be made again.
  bool Observe(const model::NodeRequest& request);
  // `keep_machine`: the row stays, as a lost one, if its machine may exist.
  bool ObserveGone(const std::string& name, const std::string& uid, bool keep_machine = true);

  // ---- written
  void CreationSent(const model::NodeRequest& request, absl::Time now);
  // The answer to a creation. True if it was refused for certain: the row may be forgotten.
  bool CreationAnswered(const std::string& name, const absl::Status& status, absl::Time now);
  // The object does not exist: the creation was refused for certain, or would be seen.
  void Forget(const std::string& name);
  // The answer to a status write. True if a decision waits for it.
  bool StatusAnswered(const model::NodeRequest& written, const absl::Status& status,
                      absl::Time now);
  void TaintAnswered(const std::string& node_uid, bool present, const absl::Status& status,
                     absl::Time now);
  void DeletionAnswered(const std::string& name, const std::string& uid, const absl::Status& status,
                        absl::Time now);

  // ---- rows
  // The current row of a name; null if there is none.
  [[nodiscard]] const Machine* Find(const std::string& name) const;
  // The row of a registered node, by its providerID, else by its label; null if there is none.
  [[nodiscard]] const Machine* FindByNode(const std::string& request_name,
                                          const std::string& provider_id) const;
  [[nodiscard]] bool HasLost(const std::string& name) const;
  // False if a row has the name, or one of the last kEndedNames that are gone had it: a machine
  // that was ended may still come, under the name of its request.
  [[nodiscard]] bool IsFree(const std::string& name) const;
  // The name of the request whose machine has this provider id; empty if none.
  [[nodiscard]] std::string FindByProviderId(const std::string& provider_id) const;
  // The ids of all machines of requests of this name.
  [[nodiscard]] std::set<std::string> ProviderIdsOf(const std::string& name) const;
  [[nodiscard]] const std::map<std::string, Machine>& rows() const { return rows_; }
  // Rows whose object is seen and that are not steady, by name.
  void ForEachUnsteady(absl::FunctionRef<void(const Machine&)> use) const;
  // Rows whose object is gone, and those whose object has not been seen, by key. O(of these).
  [[nodiscard]] std::vector<const Machine*> Lost() const;
  [[nodiscard]] std::vector<const Machine*> Unseen() const;
  // Names that have had no current row at some time since the last call, each once or more often.
  // None: that is not known, because it is the first call, or there are more than kEndedNames.
  [[nodiscard]] std::optional<std::vector<std::string>> TakeGone();

  // ---- rows, to be changed
  [[nodiscard]] Machine& Edit(const Machine& row);
  // The current row of a name; null if there is none.
  [[nodiscard]] Machine* FindMutable(const std::string& name);
  // The row of an object, a lost one too. An object without a uid has none but its name.
  [[nodiscard]] Machine* FindObject(const std::string& name, const std::string& uid);
  // The row that a provider speaks of: by uid, else by the machine's id. An object that is not seen
  // has launched nothing.
  [[nodiscard]] Machine* FindReported(const std::string& name, const std::string& uid,
                                      const std::string& provider_id);
  // Rows whose object is seen and that are not steady, by name.
  [[nodiscard]] const std::map<std::string, Machine*>& unsteady() { return unsteady_; }

  // ---- steady rows
  [[nodiscard]] const SteadyMachines& steady() const { return steady_; }
  // From now on a step does not look at it. It must be seen. `node_version`: not 0. `due`: of one
  // that waits.
  void MakeSteady(Machine& machine, const SteadyKind& kind, uint64_t node_version,
                  std::optional<absl::Time> due);
  // Ends that those are steady that wait for a time up to this one.
  void EndWaits(absl::Time until);
  // The nodes of a step pass; the last call ends that those are steady whose node did not pass.
  void BeginPass() { steady_.BeginPass(); }
  [[nodiscard]] bool Pass(uint64_t node_version, uint32_t place) {
    return steady_.Pass(node_version, place);
  }
  void EndPass();

  // ---- machines
  // The id leads to this row.
  [[nodiscard]] bool HasProviderId(const Machine& machine, const std::string& provider_id) const;
  // A machine of the row. An empty id says nothing.
  void AddProviderId(Machine& machine, const std::string& provider_id);
  // The same, and the request names it.
  void SetProviderId(Machine& machine, const std::string& provider_id);
  // It does not exist any more.
  void RemoveProviderId(Machine& machine, const std::string& provider_id);
  // The current row of its name, which has launched nothing of its own, takes the machines over.
  void HandOver(Machine& lost, Machine& current);
  // A machine without an object, of which the provider alone knows.
  void AddLost(const model::NodeRequest& request, absl::Time now);
  // The end of its machines is confirmed.
  void DropLost(const std::string& key);
  // Takes the lost rows of a former ledger of this process, whose answers will not come any more.
  void TakeLost(MachineLedger& former);

  // Call it after a change of `desired` from outside.
  void Changed() { ++version_; }
  // A taint of the node is under way: its answer is matched by the node's uid.
  void TaintSent(const Machine& machine, const std::string& node_uid);
  // The row has these nodes and no others.
  void KeepTaints(Machine& machine, const std::set<std::string>& node_uids);
  // Equal values mean that nothing changed in between.
  [[nodiscard]] uint64_t version() const { return version_; }

 private:
  static constexpr size_t kEndedNames = 4096;
  using Rows = std::map<std::string, Machine>;
  Rows::iterator AddRow(const std::string& key);
  void Lose(Rows::iterator row);
  void Drop(Rows::iterator row);
  // It is not steady any more.
  void Wake(Machine& machine);
  // Its object is not seen any more.
  void Unsee(Machine& machine);
  // The row ceases to be the current one of its name, if it is that.
  void Retire(const Machine& machine);
  void AddToLost(const Machine& machine);

  Rows rows_;                                 // by key; rows stay in their place
  std::map<std::string, Machine*> unsteady_;  // by name
  SteadyMachines steady_;
  absl::flat_hash_map<std::string, Machine*> current_;  // by name
  std::map<std::string, std::set<std::string>> lost_;   // name -> keys
  absl::flat_hash_map<std::string, Machine*> by_provider_id_;
  std::map<std::string, std::string> by_node_;  // uid of a node with a taint of ours -> key
  std::set<std::string> ended_;                 // names of rows that are gone
  std::deque<std::string> ended_order_;
  std::optional<std::vector<std::string>> gone_;  // see TakeGone()
  uint64_t last_number_ = 0;
  uint64_t version_ = 1;
};

// Status fields equal, times to the second.
bool SameStatus(const model::NodeRequest& a, const model::NodeRequest& b);

}  // namespace fairlead::hook
