// The fence of machines whose node has not been seen.
//
// A machine without a node in the model may have one all the same: a watch can be dead for a while
// before that is noticed, and the node may run pods of other schedulers. So no such machine is
// ended before a consistent list of all nodes shows that none of it exists. The rule:
//
//   - The list is begun after the decision to end the machine was written (Machine::Written). It is
//     asked for only when TerminateNode is due, and serves every machine that waits for one.
//   - It proves absence for kProofLasts after its answer. That is less than the pause between two
//     attempts at TerminateNode (kTerminateRules), so every attempt has a list of its own. A
//     provider id that is learned later ends the proof: the list was searched without the id.
//   - A listed node that the watch has not shown keeps the machine, and every machine of its name.
//     The list is repeated with kShownBackoff. Once the watch shows the node, the machine is a
//     registered one, and ends behind the fence of removal.h.
//   - Without a list nothing is ended. A list that failed is repeated with kListRules.
//   - The message of a waiting request says what it waits for.
//   - One list is in flight at a time, and kListPause passes between two.
//
// A node that registers between the list and the end of its machine is not seen by anything.
//
// Thread-safety: the owner's thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "autoscale-hook/machines/machine_ledger.h"
#include "base/write_attempts.h"

namespace fairlead::hook {

// A node with a providerID or the label of a request, as a list of nodes shows it.
struct ListedNode {
  std::string name, uid;
  std::string node_request;  // the label fairlead.dev/node-request
  std::string provider_id;
};

inline constexpr absl::Duration kProofLasts = absl::Seconds(5);
inline constexpr absl::Duration kListPause = absl::Seconds(5);
inline constexpr Backoff kShownBackoff = {absl::Seconds(5), absl::Minutes(1)};
inline constexpr WriteAttempts::Rules kListRules = {
    .backoff = {absl::Seconds(5), absl::Minutes(1)},
    .silence = {absl::Minutes(1), absl::Minutes(5)}};
static_assert(kProofLasts < kTerminateRules.backoff.initial &&
              kProofLasts < kTerminateRules.silence.initial &&
              kProofLasts < kTerminateRules.unseen.initial);

class NodeLists {
 public:
  // Numbers go on, so that an answer to the former one is not taken for an answer to this one.
  void Continue(const NodeLists& former) { last_ = former.last_; }
  // The number of the list that `waiting` need and that is to be begun now; 0: none. A machine may
  // be named twice. Sets their messages. `wake_at`: when to call it again without an answer.
  // O(waiting).
  uint64_t Next(const std::vector<Machine*>& waiting, absl::Time now, absl::Time& wake_at);
  // The answer to the list of that number. `unseen`: nodes of requests that the watch has not
  // shown. O(rows + nodes).
  void Answered(uint64_t number, const absl::Status& status, const std::vector<ListedNode>& unseen,
                MachineLedger& ledger, absl::Time now);
  // The machine's node was seen, or the machine is ended: takes back what Next() wrote over the
  // message.
  static void StopWaiting(Machine& machine);

 private:
  uint64_t last_ = 0;
  WriteAttempts attempts_;
  std::string problem_;  // of the last list, if it failed
};

}  // namespace fairlead::hook
