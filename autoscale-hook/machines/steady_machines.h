// Machines that a step of the hook does not look at.
//
// A machine is *steady* if a step would do nothing about it until its row or its node changes,
// whatever the time, the pools, the budgets and the demand are by then: its node is ready, in use
// and alone, the API server has its status, and no write, call, taint or time-out is under way. In
// a large cluster nearly all machines are steady, so a step costs what the others cost.
//
// A machine that nothing needs, and that is not due to be removed yet (removal.h), *waits*: it is
// steady until it is due, the wait of a pool changes, or the clock is set back.
//
// What a step asks about all machines (budgets, caps, DaemonSets) is computed when it is asked,
// from the kinds of steady machines and how many there are of each. There is no second record that
// could contradict the ledger:
//   - Only the end of a step makes a machine steady, and only after it was looked at.
//   - A row is changed through the ledger alone, and the ledger hands no row out to be changed
//     without ending that it is steady (MachineLedger::Wake).
//   - A node is compared with the one of the last look by its version (StepInput::node_versions).
//     Without versions no machine is steady.
//
// Thread-safety: none. Complexity: a pass is O(nodes + steady machines), a change O(log kinds).
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "scheduler/model/resources.h"

namespace fairlead::hook {

struct Machine;
struct MachineView;

// In devices.
inline int64_t GpusOnNode(const model::ResourceList& allocatable) {
  return model::Get(allocatable, model::kGpuName) / 1000;
}

// What steps ask about a steady machine, beside its name. It is equal for many of them.
struct SteadyKind {
  std::string pool, instance_type, provider, queue, gpu_model, reservation;
  int64_t price_micro_usd_per_hour = 0;     // known
  int64_t ordered_gpus = 0, node_gpus = 0;  // devices: that it was ordered with, that its node has
  bool by_pods_alone = false;               // it is needed, by pods alone
  model::ResourceList daemon_requests;
  friend auto operator<=>(const SteadyKind&, const SteadyKind&) = default;
};

// After all parts of a step have handled the machine: its kind, if it is steady or may wait. O(1).
std::optional<SteadyKind> SteadyKindOf(const MachineView& view);

class SteadyMachines {
 public:
  // How many there are of each; never 0.
  [[nodiscard]] const std::map<SteadyKind, int64_t>& kinds() const { return kinds_; }
  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(by_version_.size()); }
  // When the first of those that wait is due; infinite future if none does.
  [[nodiscard]] absl::Time next_due() const {
    return waiting_.empty() ? absl::InfiniteFuture() : waiting_.begin()->first;
  }
  // In no order.
  void ForEach(absl::FunctionRef<void(const SteadyKind&, const Machine&)> use) const;

  // ---- the nodes of a step, each once, in their order
  void BeginPass();
  // True if this is the node of a steady machine, unchanged. `place`: among the nodes of the step.
  bool Pass(uint64_t node_version, uint32_t place);
  // After the last node: the machines whose nodes were not passed.
  [[nodiscard]] std::vector<Machine*> NotPassed() const;
  // Where the node of the machine was passed, if it is steady or was steady then.
  [[nodiscard]] std::optional<uint32_t> PlaceOf(const Machine& machine) const;

  // ---- for MachineLedger
  // `node_version`: not 0. `due`: of one that waits. False if another steady machine has the
  // version.
  bool Add(Machine& machine, const SteadyKind& kind, uint64_t node_version,
           std::optional<absl::Time> due);
  // Those that wait for a time up to this one.
  [[nodiscard]] std::vector<Machine*> Due(absl::Time until) const;
  void Remove(Machine& machine);

 private:
  using Kinds = std::map<SteadyKind, int64_t>;
  static constexpr uint32_t kNoSlot = std::numeric_limits<uint32_t>::max();
  // What each node of each step reads, apart from the rest: a step is about as fast as this is
  // small.
  struct Slot {
    uint64_t version = 0;  // of the node; 0: the slot is free
    uint32_t pass = 0;     // the last one that had its node, and where
    uint32_t place = 0;
  };
  struct Row {
    Machine* machine = nullptr;
    Kinds::iterator kind;
    std::optional<absl::Time> due;
  };
  // The slot with the version; kNoSlot: none. Nodes mostly follow each other as in the last pass.
  uint32_t Find(uint64_t node_version, uint32_t place);

  Kinds kinds_;
  std::vector<Slot> slots_;
  std::vector<Row> rows_;  // by slot
  std::vector<uint32_t> free_slots_;
  std::set<std::pair<absl::Time, uint32_t>> waiting_;   // due, slot
  absl::flat_hash_map<uint64_t, uint32_t> by_version_;  // slots; its order is never seen
  std::vector<uint32_t> order_, former_order_;          // slots by place, of this pass and the last
  int64_t shift_ = 0;                                   // of places since the last pass
  uint32_t pass_ = 0;
  int64_t passed_ = 0;
  absl::flat_hash_map<uint64_t, uint32_t> removed_;  // since the pass: number of the row -> place
};

}  // namespace fairlead::hook
