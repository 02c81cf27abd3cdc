// The nodes of a step by the row of the ledger that they belong to.
//
// A node that is not the unchanged node of a steady machine (steady_machines.h) is assigned anew,
// and ends that its row is steady. So is a steady machine whose node is gone.
//
// Ownership: borrows all, for one step. Thread-safety: none. Complexity: making it is O(nodes)
// look-ups of a number, and O(log rows) for each node that is assigned; Of() is O(log of these).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "autoscale-hook/hook.h"
#include "autoscale-hook/machines/machine_ledger.h"

namespace fairlead::hook {

// Of one row: usually there is one.
using NodeList = absl::InlinedVector<const NodeUse*, 1>;

class NodesByRow {
 public:
  // As in StepInput; both may be null.
  NodesByRow(const std::vector<NodeUse>* nodes, const std::vector<uint64_t>* versions,
             MachineLedger& ledger);
  // Ready ones first, then registered ones, then by name.
  [[nodiscard]] NodeList Of(const Machine& machine) const;
  // Registered nodes of requests without a row.
  [[nodiscard]] const std::vector<const NodeUse*>& orphans() const { return orphans_; }
  // Of a node that Of() has returned; 0: not known.
  [[nodiscard]] uint64_t VersionOf(const NodeUse& node) const;

 private:
  void Assign(const NodeUse& node);

  const std::vector<NodeUse>* nodes_;
  const std::vector<uint64_t>* versions_;
  MachineLedger& ledger_;
  std::vector<std::pair<uint64_t, const NodeUse*>> rows_;  // number of the row, node; in order
  std::vector<const NodeUse*> orphans_;
};

}  // namespace fairlead::hook
