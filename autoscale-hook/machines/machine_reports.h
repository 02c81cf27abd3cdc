// What providers report (machine_report.h), taken into the ledger.
//
//   starting, running, ending   the machine's id; a launch whose answer was lost is accepted
//   gone                        its end is confirmed: nothing has to be ended any more. A request
//                               whose node has not registered fails, with the reason
//
// A machine whose request has no row is kept here. Its request may be on its way: the watch of
// NodeRequests and the provider are not ordered. After kUnclaimedGrace the object is gone (a Step
// is called with a fresh watch only): nothing but the provider knew of this machine, for example
// because its request was deleted by force while no process led. It becomes a lost machine
// (lost_machines.h): it counts against the caps, and is ended once a list of nodes has shown that
// it has none, or is adopted with its node. So a machine is never ended on a provider's word alone.
//
// Thread-safety: the owner's thread. Complexity: O(log machines) per report.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "autoscale-hook/machines/machine_ledger.h"
#include "autoscale-hook/machines/machine_report.h"

namespace fairlead::hook {

struct NodeUse;
struct StepContext;

inline constexpr absl::Duration kUnclaimedGrace = absl::Minutes(1);

// True for names that this process gives to NodeRequests: the prefix, then letters and digits. A
// label or a provider may say any name, and another shard's prefix may begin as ours does.
bool IsOurName(absl::string_view name, absl::string_view prefix);

class MachineReports {
 public:
  // `prefix`: of the names of requests.
  explicit MachineReports(std::string prefix) : prefix_(std::move(prefix)) {}

  void Take(const MachineReport& report, MachineLedger& ledger, absl::Time now);
  // At the begin of a Step, before the rows are looked at. `orphans`: registered nodes of requests
  // without a row, which are adopted in another way. The names of machines that are lost from now
  // on go to StepOutput::found.
  void SettleUnclaimed(const std::vector<const NodeUse*>& orphans, StepContext& context);
  [[nodiscard]] size_t unclaimed() const { return unclaimed_.size(); }

 private:
  struct Unclaimed {
    MachineReport last;
    absl::Time since;
  };
  std::string prefix_;
  std::map<std::pair<std::string, std::string>, Unclaimed> unclaimed_;  // by provider, uid or id
};

}  // namespace fairlead::hook
