// The nodes on which a pod of one class fits (in one Capacity), best first, kept up to date by
// looking only at nodes that changed: the reason why a placement costs a logarithm and not a scan.
//
// An order of Holds::kIdle has only nodes with idle capacity for the pod, promised or not. KAI
// calls a node available by what is idle there (facts 3.8), and so several promises may count on
// it. An order of Holds::kWhatIf is about the day when everything that is on order has come: nodes
// of the what-if that is open are in it, and no node is taken for one that is not usable yet.
//
// Order: usable nodes before ordered ones, score descending, then node name.
//
// Nodes are in groups, and each group is ordered by what its nodes score by themselves: in one
// group nodes are alike in everything else that counts. So only the best of each group is asked
// about, and what scores are normalised by, or what is in other domains, may change without
// anything being ordered anew. A group is the nodes that have the same marks
// (framework::NormalizedScorePlugin), and are in the same domains of the few-valued keys (zone)
// that the class reads. Most classes have one group.
//
// Works for classes whose answers depend on the node alone (framework::NodeLocal), and for those
// that depend on other nodes through topology domains (framework::ByDomain). Domains of many-valued
// keys (host name) would make a group of each node:
//  - nodes that they refuse are left out of the order, and come back when something in one of their
//    domains has changed, or what is allowed everywhere has (thresholds);
//  - what they add to the score is among the marks, if each of their domains has one node. A class
//    that is scored by more domains than max_domains, which share nodes, has no order here.
//
// With Capacity::kNow a node is in the order of such a class only if its domains admit the class in
// Capacity::kFuture, too: what is let in by a pod that terminates is not there to stay.
//
// An order follows NodeChanges; it goes with its class, and if a claim that the class names
// changes.
//
// Thread-safety: the owner's thread. Complexity: O(nodes log nodes) to build, O(changed log nodes)
// to catch up (by domain: times the nodes of a many-valued domain), O(groups) for the best; a node
// that changed and is still the best costs no logarithm. For a class that no node takes, O(changed
// nodes); if that is so by their objects, O(1) until one of these changes. Memory: 48 bytes a node
// and class, 32 more for each node that fits; the least recently used classes are dropped beyond
// kMaxClasses. What no node takes needs no order (refused_classes.h).
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "scheduler/engine/node_changes.h"
#include "scheduler/engine/refused_classes.h"
#include "scheduler/framework/framework.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

// Whether answers about the class depend on the claim "ns/name" wherever it is held.
bool NamesClaim(const state::PodClass& pod_class, absl::string_view claim);

class NodeOrders final : public state::StateSubscriber {
 public:
  static constexpr size_t kMaxClasses = 128;
  // Where it is cheaper to look at each of them. They change no answer.
  struct Limits {
    // A key with so many domains at most, or at most the square root of the number of nodes, makes
    // groups.
    size_t few_domains = 32;
    // So many make groups at most where the score depends on them.
    size_t max_domains = 1024;
  };

  enum class Holds : uint8_t { kAllThatFit, kIdle, kWhatIf };

  // Both this and `changes` are to be subscribed by the owner. kWhatIf: `changes` are of all nodes,
  // and the capacity is kFuture.
  NodeOrders(const state::ClusterState& state, const framework::Framework& framework,
             const NodeChanges& changes, framework::Capacity capacity)
      : NodeOrders(state, framework, changes, capacity, Limits()) {}
  NodeOrders(const state::ClusterState& state, const framework::Framework& framework,
             const NodeChanges& changes, framework::Capacity capacity, Limits limits,
             Holds holds = Holds::kAllThatFit)
      : state_(state),
        framework_(framework),
        changes_(changes),
        capacity_(capacity),
        limits_(limits),
        holds_(holds) {}

  // Whether a usable node, which passes the filters for Capacity::kFuture, has idle capacity for
  // if promises do not count. Parts of devices and claims respect promises.
  static bool FitsIdle(const framework::Framework& framework, const framework::Context& future,
                       const state::NodeInfo& node);

  struct Best {
    state::NodeId node = state::kNoId;  // kNoId: it fits nowhere
    bool ordered = false;               // the node is not usable yet
    int64_t score = 0;
  };
  using Candidates = std::vector<framework::Kind>;
  // The best node for a pod of the class, without those that `passed_over` is true for (O(those)).
  // Scores are normalised over `among`; null: over the nodes of this order, also those that are
  // passed over. `work` grows by the filter evaluations made. None: the order cannot say, every
  // node has to be asked about; never so for a node-local class.
  std::optional<Best> BestFor(state::PodClassId pod_class, uint64_t& work, const Candidates* among,
                              absl::FunctionRef<bool(state::NodeId)> passed_over);
  std::optional<Best> BestFor(state::PodClassId pod_class, uint64_t& work) {
    return BestFor(pod_class, work, nullptr, [](state::NodeId) { return false; });
  }
  // The nodes of the order by kind; none as above.
  std::optional<Candidates> CandidatesFor(state::PodClassId pod_class, uint64_t& work);

  // True if it is known that no node takes a pod of the class, whatever is on it: its objects do
  // not suit, or are too small. O(1); false for a class that was not asked about lately.
  [[nodiscard]] bool NeverFits(state::PodClassId pod_class) const;

  void OnChange(const state::StateChange& change) override;
  [[nodiscard]] state::ChangeKinds Kinds() const override;
  // What is remembered of nodes that have not changed since, against a look at them; the first
  // difference, or empty. O(classes * nodes).
  [[nodiscard]] std::string CheckConsistency() const;

 private:
  struct Entry {
    bool ordered;  // the node is not usable yet
    int64_t minus_score;
    uint64_t name_rank;
    state::NodeId node;
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };
  // What was last found out about one node.
  struct Slot {
    uint64_t version = 0;         // of the node then; 0: never looked at
    uint64_t object_version = 0;  // of its object
    int64_t object_score = 0;     // ClassPlugins::ObjectScore, if the object fits
    int64_t minus_score = 0;      // without what depends on other nodes
    uint64_t name_rank = 0;
    uint32_t group = 0;        // while it is in
    bool object_fits = false;  // Feasibility::MayHold
    bool fits = false;         // by these and those that read what is on it
    bool admitted = true;      // by its domains of many-valued keys; where `fits`
    bool ordered = false;
    [[nodiscard]] bool IsIn() const { return fits && admitted; }
    [[nodiscard]] Entry AsEntry(state::NodeId node) const {
      return {ordered, minus_score, name_rank, node};
    }
  };
  // Its domains of few-valued keys, and its marks.
  using GroupKey = std::vector<int64_t>;
  struct Group {
    // kNoId if there is none. Not in `others`: it is the one that changes most.
    Entry best{false, 0, 0, state::kNoId};
    absl::btree_set<Entry> others;
    GroupKey key;
    [[nodiscard]] bool IsEmpty() const { return best.node == state::kNoId; }
    [[nodiscard]] size_t size() const { return IsEmpty() ? 0 : 1 + others.size(); }
  };
  // Of a class that depends on other nodes.
  struct Domains {
    framework::DomainDependence dependence;
    std::vector<std::shared_ptr<const framework::TopologyKey>> held;  // all of its keys
    framework::TopologyKeys few;                                      // make groups
    framework::TopologyKeys many;     // of the filter, without those
    framework::TopologyKeys by_node;  // of the score, without those
    bool too_many = false;            // the score has others
    std::vector<int64_t> thresholds;  // for which nodes were admitted
  };
  struct Order {
    framework::ClassPlugins plugins;  // that look at the class; once built
    std::vector<Group> groups;        // empty ones are used again
    absl::flat_hash_map<GroupKey, uint32_t> group_ids;
    std::vector<uint32_t> free_groups;
    bool marked = false;               // what is normalised tells nodes apart
    bool marks_by_usage = false;       // also by what is on them
    std::unique_ptr<Domains> domains;  // null: node-local
    std::vector<Slot> slots;           // by NodeId
    uint64_t seen = 0;                 // the first of NodeChanges that is not; 0: not built yet
    size_t suitable = 0;               // nodes whose object fits
    std::list<state::PodClassId>::iterator recency;
  };

  static void Put(Group& group, const Entry& entry);
  // Into an empty group. O(entries log entries), and less for entries in order.
  static void PutAll(Group& group, std::vector<Entry> entries);
  static void Take(Group& group, const Entry& entry);
  template <typename PassedOver>
  static Entry FirstOf(const Group& group, PassedOver passed_over);
  // True if no node takes a pod of the class, and no order is needed to say so: it is known, or
  // there is none that could be used, and all nodes are asked.
  bool IsRefused(state::PodClassId pod_class, uint64_t& work);
  // What the node says to a class of these plugins, without what depends on other nodes.
  [[nodiscard]] RefusedClasses::Answer AnswerOf(const framework::ClassPlugins& plugins,
                                                state::PodClassId pod_class,
                                                state::NodeId node) const;
  // Notes that no node takes a pod of the class, if that is why its order is empty.
  void RememberIfRefused(const Order& order, state::PodClassId pod_class);
  // Of a class about which no node depends on another: asks all until one takes it.
  bool AskWhetherRefused(state::PodClassId pod_class, uint64_t& work);
  // A claim may suit another node a moment later, and no node changes.
  [[nodiscard]] bool MayRemember(state::PodClassId pod_class) const {
    return state_.pod_class(pod_class).spec->claims_to_join.empty();
  }
  // The order of the class, made if there is none yet.
  Order& Find(state::PodClassId pod_class);
  void Build(Order& order, state::PodClassId pod_class, uint64_t& work);
  void CatchUp(Order& order, state::PodClassId pod_class, uint64_t& work);
  void Renew(Order& order, state::PodClassId pod_class, state::NodeId node, uint64_t& work);
  // Finds out about a node that has changed, without filing it. True if it may belong to another
  // group.
  bool RenewSlot(Order& order, state::PodClassId pod_class, state::NodeId node, uint64_t& work);
  // Files a node as `former` said and `slot` says now. `regroup`: it may belong to another group.
  void Refile(Order& order, state::PodClassId pod_class, const Slot& former, state::NodeId node,
              bool regroup);
  // The order of the class as of now.
  Order& Current(state::PodClassId pod_class, uint64_t& work);

  // Whether it is about the node at all.
  [[nodiscard]] bool Covers(const state::NodeInfo& node) const {
    return holds_ == Holds::kWhatIf || node.kind != state::NodeKind::kVirtual;
  }
  // In which capacity pods count that are normalised by.
  [[nodiscard]] framework::Capacity ScoredIn() const {
    return holds_ == Holds::kWhatIf ? framework::Capacity::kFuture : framework::Capacity::kNow;
  }
  // What Renew() finds out, without what depends on other nodes.
  void Look(Slot& slot, const framework::ClassPlugins& plugins, state::PodClassId pod_class,
            const state::NodeInfo& node) const;
  // Whether it takes a pod of the class, which it suits, but for what depends on other nodes.
  [[nodiscard]] bool Takes(const framework::ClassPlugins& plugins,
                           const framework::Context& context, const state::NodeInfo& node) const;
  [[nodiscard]] bool IsOrdered(const state::NodeInfo& node) const {
    return holds_ != Holds::kWhatIf && !node.TakesBindings();
  }
  [[nodiscard]] std::string CheckRefused() const;
  // `plugins`: found out anew.
  [[nodiscard]] std::string CheckSlot(const Order& order, const framework::ClassPlugins& plugins,
                                      state::PodClassId pod_class, state::NodeId node) const;

  [[nodiscard]] framework::Context ContextOf(state::PodClassId pod_class,
                                             framework::Capacity capacity) const;
  // Null: the class is node-local.
  [[nodiscard]] std::unique_ptr<Domains> ReadDomains(state::PodClassId pod_class,
                                                     const framework::ClassPlugins& plugins) const;
  void Classify(Domains& domains, const framework::TopologyKey* key) const;
  [[nodiscard]] bool IsCurrent(const Order& order, state::PodClassId pod_class) const;
  [[nodiscard]] std::vector<int64_t> ThresholdsOf(const Domains& domains,
                                                  state::PodClassId pod_class) const;
  uint32_t GroupOf(Order& order, state::PodClassId pod_class, state::NodeId node);
  static void DropIfEmpty(Order& order, uint32_t group);
  [[nodiscard]] GroupKey KeyOf(const Order& order, state::PodClassId pod_class,
                               const state::NodeInfo& node) const;
  // Whether its domains of few-valued keys admit the class.
  [[nodiscard]] bool IsOpen(const Order& order, state::PodClassId pod_class,
                            const Group& group) const;
  [[nodiscard]] bool Admits(state::PodClassId pod_class, const state::NodeInfo& node,
                            const framework::TopologyKeys& keys) const;
  // Asks again whether the node is admitted.
  void Readmit(Order& order, state::PodClassId pod_class, state::NodeId node, uint64_t& work);
  // The nodes that are in one of its domains of many-valued keys.
  void ReadmitAround(Order& order, state::PodClassId pod_class, state::NodeId node, uint64_t& work);
  Best BestOfGroups(const Order& order, state::PodClassId pod_class, uint64_t& work,
                    const Candidates* among,
                    absl::FunctionRef<bool(state::NodeId)> passed_over) const;

  const state::ClusterState& state_;
  const framework::Framework& framework_;
  const NodeChanges& changes_;
  const framework::Capacity capacity_;
  const Limits limits_;
  const Holds holds_;
  absl::flat_hash_map<state::PodClassId, std::unique_ptr<Order>> orders_;
  std::list<state::PodClassId> recency_;  // most recent first
  RefusedClasses refused_{changes_};
};

}  // namespace fairlead::engine
