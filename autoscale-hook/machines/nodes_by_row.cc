#include "autoscale-hook/machines/nodes_by_row.h"

#include <algorithm>
#include <tuple>

namespace fairlead::hook {
namespace {

bool ComesFirst(const NodeUse* a, const NodeUse* b) {
  return std::tie(b->ready, b->registered, a->name) < std::tie(a->ready, a->registered, b->name);
}

}  // namespace

NodesByRow::NodesByRow(const std::vector<NodeUse>* nodes, const std::vector<uint64_t>* versions,
                       MachineLedger& ledger)
    : nodes_(nodes), versions_(versions), ledger_(ledger) {
  const auto count = static_cast<uint32_t>(nodes == nullptr ? 0 : nodes->size());
  std::vector<uint32_t> changed;
  ledger_.BeginPass();
  for (uint32_t i = 0; i < count; ++i) {
    if (versions == nullptr || !ledger_.Pass((*versions)[i], i)) changed.push_back(i);
  }
  ledger_.EndPass();
  for (const uint32_t i : changed) Assign((*nodes)[i]);
  std::stable_sort(rows_.begin(), rows_.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : ComesFirst(a.second, b.second);
  });
}

void NodesByRow::Assign(const NodeUse& node) {
  if (node.node_request.empty()) return;
  const Machine* row = node.registered ? ledger_.FindByNode(node.node_request, node.provider_id)
                                       : ledger_.Find(node.node_request);
  if (row != nullptr) {
    if (row->steady_version != 0) (void)ledger_.Edit(*row);
    rows_.emplace_back(row->number, &node);
  } else if (node.registered) {
    orphans_.push_back(&node);
  }
}

NodeList NodesByRow::Of(const Machine& machine) const {
  NodeList nodes;
  auto it = std::lower_bound(rows_.begin(), rows_.end(), machine.number,
                             [](const auto& row, uint64_t number) { return row.first < number; });
  for (; it != rows_.end() && it->first == machine.number; ++it) nodes.push_back(it->second);
  if (const std::optional<uint32_t> place = ledger_.steady().PlaceOf(machine)) {
    const NodeUse* const node = &(*nodes_)[*place];
    nodes.insert(std::upper_bound(nodes.begin(), nodes.end(), node, ComesFirst), node);
  }
  return nodes;
}

uint64_t NodesByRow::VersionOf(const NodeUse& node) const {
  return versions_ == nullptr ? 0 : (*versions_)[static_cast<size_t>(&node - nodes_->data())];
}

}  // namespace fairlead::hook
