// Where a gang with a topology constraint may go: the domains of a Topology, as candidate node sets
// in the order in which to try them (KAI's rules, v0.17; facts 3.14 and its own table tests).
//
// A Topology names node labels, outermost first. A node that lacks one of them is outside the tree:
// no candidate holds it. A domain of a level is the set of nodes with equal labels down to that
// level; the whole tree is the domain above the outermost level. The nodes of a question are those
// given (a parent's candidate, or all) that exist and are in the tree.
//
// 1. Pins. With a required level, pods of the set that already run leave only the nodes of the
//    domains of that level in which they run. Several such domains (nodes were relabelled):
//    each is a candidate of its own. Pods that all run outside the tree: no candidate. A preferred
//    level pins nothing.
// 2. Room of a domain: the sum over its nodes of what is free (kFuture: idle + releasing), below
// zero
//    counting as zero. Pods of equal requests: the sum over its nodes of how many fit on the node
//    by arithmetic; the domain fits if that reaches the number of pods. Others: it fits if the sum
//    of their requests is at most the sum of what is free, per resource. Of devices that pods
//    may take parts of, whole ones count for those that take whole ones; a pod that takes parts is
//    not compared by them at all. So a domain that
//    does not fit here can certainly not hold the pods; one that fits may still fail and the next
//    is tried.
// 3. Order of domains, from the whole tree inwards: siblings by the largest requested/free ratio of
//    any resource (pod slots aside), highest, that is fullest, first; then by label value. The
//    order of a level is that of its parents, then of siblings: the fullest zone's racks come
//    before another zone's fuller rack.
// 4. Candidates: the fitting domains from the preferred level (if none, or if it is not inside the
//    required level: the required one) outwards to the required level (if none: the whole tree),
//    level by level, each in that order. Nothing inside the preferred level is looked at. A domain
//    with the same nodes as one of its children is left out: it would fail as the child did. That
//    includes everything outside the lowest common domain of the nodes given.
// 5. Scores: the preferred-level domains of a candidate, in order, score floor((index+1)/count*10)
// on
//    each of their nodes: the emptiest gets 10, so that few domains are used. KAI counts over the
//    lowest common domain; counting over the candidate gives the same order with fewer ties where
//    there are more than ten domains.
//
// A constraint without a topology, or with neither level, constrains nothing: one candidate, the
// nodes given. A level is named by its node label or by its alias; the label wins. Segments of a
// workload are sub-groups with constraints of their own and need nothing special.
//
// Trees follow the change log: a tree goes with its topology, and when a node is no longer in the
// domain in which the tree has it.
//
// Thread-safety: the owner's thread. Complexity: O(nodes * levels) for a tree that has gone,
// O(trees * levels) a change of a node's object, O(nodes given * levels + domains log domains) a
// question.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "scheduler/framework/framework.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

// Nodes that a step may use. Null pointer: all nodes.
class NodeSet {
 public:
  // No duplicates; iterated in the order given, which decisions want to be that of node names.
  explicit NodeSet(std::vector<state::NodeId> nodes);
  // O(1), or O(log nodes) for few nodes with scattered ids.
  [[nodiscard]] bool Contains(state::NodeId node) const;
  [[nodiscard]] const std::vector<state::NodeId>& nodes() const { return nodes_; }

 private:
  std::vector<state::NodeId> nodes_;
  // Either a bit for each id from first_ on, or, where that would be mostly gaps, the ids sorted.
  state::NodeId first_ = 0;
  std::vector<bool> member_;
  std::vector<state::NodeId> sorted_;
};
using NodeSetPtr = std::shared_ptr<const NodeSet>;

// One candidate: a domain, and what its nodes score for the preferred level.
struct TopologyCandidate {
  std::string domain;  // "zone=a/rack=r1", for messages; "" if it is the whole tree or all nodes
  NodeSetPtr nodes;
  // Added to a node's score (KAI: floor((index+1)/count*10), times its weight), by NodeId; absent:
  // 0.
  absl::flat_hash_map<state::NodeId, int64_t> preferred_score;
};

// A domain of the required level, or the whole tree, with room for some of a step's pods.
struct TopologyRoom {
  NodeSetPtr nodes;
  std::vector<std::string> values;  // of the labels of the levels down to the required one
};

struct TopologyAnswer {
  std::vector<TopologyCandidate> candidates;  // empty: it cannot be placed
  // Why not, if empty; "Requested topology x does not exist" and the like.
  std::string reason;
  bool invalid = false;  // the topology or level does not exist: no eviction and no node helps
  // If no domain fits: the outermost one with most room, and for how many of the pods (pods of
  // equal requests only; otherwise -1).
  std::string best_domain;
  int64_t best_room = -1;
};

// How deep the level of that name (a node label or an alias) is: 1 is the outermost; 0 if there is
// none.
size_t DepthOf(const model::Topology& topology, absl::string_view level);

// "zone=a/rack=r1": the path of the node's domain at `level` (a node label or an alias), levels by
// alias or by what follows the last slash of the label. "" if the node is outside the tree or there
// is no such level.
std::string DomainOf(const model::Node& node, const model::Topology& topology,
                     absl::string_view level);

class TopologyIndex final : public state::StateSubscriber {
 public:
  // To be subscribed by its owner.
  explicit TopologyIndex(const state::ClusterState& state);
  ~TopologyIndex() override;

  // `within` null: all nodes. `pods`: what is to be placed; `placed`: active pods of the same set.
  // `capacity` kFuture counts idle + releasing (KAI's), kEmpty everything allocatable.
  TopologyAnswer Candidates(const model::TopologyConstraint& constraint, const NodeSetPtr& within,
                            const std::vector<state::PodId>& pods,
                            const std::vector<state::PodId>& placed, framework::Capacity capacity);

  // Where some of the pods may find room (rules 1 and 2, kFuture): at most `limit` of the domains
  // that `may_use` by their values, those with room for most pods first; of pods of unequal
  // requests, the emptiest first.
  using MayUse = absl::FunctionRef<bool(const std::vector<std::string>& values)>;
  std::vector<TopologyRoom> Rooms(const model::TopologyConstraint& constraint,
                                  const std::vector<state::PodId>& pods,
                                  const std::vector<state::PodId>& placed, size_t limit,
                                  MayUse may_use);

  void OnChange(const state::StateChange& change) override;
  [[nodiscard]] state::ChangeKinds Kinds() const override;
  // The trees that are kept against new ones; the first difference, or empty.
  // O(topologies * nodes * levels).
  [[nodiscard]] std::string CheckConsistency() const;
  // Trees that are kept. For tests of what makes one go.
  [[nodiscard]] size_t tree_count() const { return trees_.size(); }

 private:
  class Tree;
  class Question;

  const Tree& TreeOf(const model::Topology& topology);
  // Fills the question with the nodes that rule 1 leaves.
  void AddNodes(Question& question, const Tree& tree, size_t required, const NodeSetPtr& within,
                const std::vector<state::PodId>& placed, framework::Capacity capacity) const;

  const state::ClusterState& state_;
  absl::flat_hash_map<std::string, std::unique_ptr<const Tree>> trees_;  // by topology name
};

}  // namespace fairlead::engine
