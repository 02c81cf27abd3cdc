#include "scheduler/engine/topology.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "scheduler/state/parts.h"

namespace fairlead::engine {
namespace {

using state::NodeId;
using state::PodId;

constexpr int64_t kScoreRange = 10;
constexpr uint32_t kOutside = state::kNoId;

std::string LevelName(const model::Topology::Level& level) {
  if (!level.alias.empty()) return level.alias;
  return level.node_label.substr(level.node_label.rfind('/') + 1);
}

// What the pods ask for of one resource.
struct Want {
  model::ResourceIndex resource = 0;
  int64_t each = 0;  // of one pod, where all are alike
  int64_t total = 0;
  bool limits = true;  // compared with what is free
  bool ranks = true;   // counts for the order of domains
};

struct GroupDemand {
  std::vector<Want> wants;
  int64_t pods = 0;
  bool alike = true;  // equal requests
};

GroupDemand DemandOf(const state::ClusterState& state, const std::vector<PodId>& pods) {
  GroupDemand demand;
  demand.pods = static_cast<int64_t>(pods.size());
  model::Resources total, charge;
  bool parts = false;
  for (PodId pod : pods) {
    const state::PodClass& pod_class = state.class_of(pod);
    total += pod_class.requests;
    charge += pod_class.charge;
    parts = parts || state::TakesParts(pod_class);
    demand.alike = demand.alike && pod_class.requests == state.class_of(pods.front()).requests;
  }
  for (size_t i = 0; i < std::max<size_t>(total.size(), model::kWellKnownResources); ++i) {
    Want want;
    want.resource = static_cast<model::ResourceIndex>(i);
    want.total = total[want.resource];
    want.ranks = want.resource != model::kPods;
    if (parts && state::HasParts(want.resource)) {
      // How much of which device a part finds is the device's matter; this only orders.
      want.total = charge[want.resource];
      want.limits = false;
    }
    if (want.total <= 0) continue;
    want.each = state.class_of(pods.front()).requests[want.resource];
    demand.wants.push_back(want);
  }
  return demand;
}

model::Resources FreeOn(const state::NodeInfo& node, framework::Capacity capacity) {
  switch (capacity) {
    case framework::Capacity::kNow:
      return node.Available();
    case framework::Capacity::kFuture:
      return node.Future();
    case framework::Capacity::kEmpty:
      break;
  }
  return node.allocatable;
}

// Why a question has no candidate. `empty`: no node is left to ask about; `pinned`: running pods
// say which domains may be used.
std::string ReasonFor(const model::TopologyConstraint& constraint, const TopologyAnswer& answer,
                      int64_t pods, bool empty, bool pinned) {
  std::string reason = absl::StrCat("topology ", constraint.topology);
  if (!constraint.required_level.empty()) {
    absl::StrAppend(&reason, ", required level ", constraint.required_level);
  }
  if (empty) {
    return absl::StrCat(reason, pinned ? ": no node left in the domain of the pods that run"
                                       : ": no node that may be used has the labels of all levels");
  }
  const char* which = pinned ? ": the domain of the pods that run has" : ": no domain has";
  absl::StrAppend(&reason, which, pinned ? " no room for " : " room for ", pods,
                  pods == 1 ? " pod" : " pods");
  if (answer.best_room < 0) return reason;
  if (answer.best_domain.empty())
    return absl::StrCat(reason, "; all have room for ", answer.best_room);
  return absl::StrCat(reason, "; ", answer.best_domain, " has room for ", answer.best_room);
}

// A non-negative rational; 1/0 is more than any other.
struct Ratio {
  int64_t over = 0;
  int64_t under = 1;
  friend bool operator>(const Ratio& a, const Ratio& b) {
    return absl::int128(a.over) * b.under > absl::int128(b.over) * a.under;
  }
};

}  // namespace

size_t DepthOf(const model::Topology& topology, absl::string_view level) {
  for (size_t i = 0; i < topology.levels.size(); ++i) {
    if (topology.levels[i].node_label == level) return i + 1;
  }
  for (size_t i = 0; i < topology.levels.size(); ++i) {
    if (topology.levels[i].alias == level && !level.empty()) return i + 1;
  }
  return 0;
}

NodeSet::NodeSet(std::vector<NodeId> nodes) : nodes_(std::move(nodes)) {
  if (nodes_.empty()) return;
  constexpr size_t kBitsOfAnId = 32;
  const auto [low, high] = std::minmax_element(nodes_.begin(), nodes_.end());
  const size_t span = static_cast<size_t>(*high) - *low + 1;
  if (span > kBitsOfAnId * nodes_.size()) {
    sorted_ = nodes_;
    std::sort(sorted_.begin(), sorted_.end());
    return;
  }
  first_ = *low;
  member_.resize(span);
  for (NodeId node : nodes_) member_[node - first_] = true;
}

bool NodeSet::Contains(NodeId node) const {
  if (!sorted_.empty()) return std::binary_search(sorted_.begin(), sorted_.end(), node);
  return node >= first_ && node - first_ < member_.size() && member_[node - first_];
}

std::string DomainOf(const model::Node& node, const model::Topology& topology,
                     absl::string_view level) {
  const size_t depth = DepthOf(topology, level);
  std::string path;
  for (size_t i = 0; i < topology.levels.size(); ++i) {
    const std::string* value = node.meta.labels.Find(topology.levels[i].node_label);
    if (value == nullptr) return "";
    if (i >= depth) continue;
    absl::StrAppend(&path, i == 0 ? "" : "/", LevelName(topology.levels[i]), "=", *value);
  }
  return path;
}

// ---- the tree
// ------------------------------------------------------------------------------------

// The domains that a topology's labels make of all nodes. Immutable.
class TopologyIndex::Tree {
 public:
  static constexpr uint32_t kRoot = 0;
  struct Domain {
    uint32_t parent = kRoot;
    uint32_t depth = 0;
    std::string value;  // of the label
  };

  Tree(const model::Topology& topology, const state::ClusterState& state) {
    for (const model::Topology::Level& level : topology.levels) {
      names_.push_back(LevelName(level));
      labels_.push_back(level.node_label);
    }
    domains_.emplace_back();
    absl::flat_hash_map<std::pair<uint32_t, std::string>, uint32_t> children;
    for (const auto& [name, id] : state.nodes_by_name()) {
      if (state.node(id).kind == state::NodeKind::kVirtual) continue;
      const model::StringMap& labels = state.node(id).object.meta.labels;
      uint32_t domain = kRoot;
      // All labels or none: a domain is not made for a node that is outside.
      if (!IsInside(labels)) continue;
      for (const std::string& label : labels_) {
        const std::string& value = *labels.Find(label);
        const auto next = static_cast<uint32_t>(domains_.size());
        const auto [it, added] = children.try_emplace({domain, value}, next);
        if (added) domains_.push_back({domain, domains_[domain].depth + 1, value});
        domain = it->second;
      }
      if (leaf_.size() <= id) leaf_.resize(id + 1, kOutside);
      leaf_[id] = domain;
      nodes_.push_back(id);
    }
  }

  // Those inside, by name.
  [[nodiscard]] const std::vector<NodeId>& nodes() const { return nodes_; }
  [[nodiscard]] const Domain& domain(uint32_t id) const { return domains_[id]; }
  // kOutside if the node is not in the tree. O(levels).
  [[nodiscard]] uint32_t DomainAt(NodeId node, size_t depth) const {
    if (node >= leaf_.size() || leaf_[node] == kOutside) return kOutside;
    uint32_t domain = leaf_[node];
    while (domains_[domain].depth > depth) domain = domains_[domain].parent;
    return domain;
  }
  // Whether the node has, or has not, a place in the tree as its labels say. O(levels).
  [[nodiscard]] bool Shows(NodeId id, const state::NodeInfo& node) const {
    const uint32_t leaf = id < leaf_.size() ? leaf_[id] : kOutside;
    const model::StringMap& labels = node.object.meta.labels;
    const bool inside = node.id == id && IsInside(labels);
    if (!inside || leaf == kOutside) return !inside && leaf == kOutside;
    for (uint32_t at = leaf; at != kRoot; at = domains_[at].parent) {
      if (*labels.Find(labels_[domains_[at].depth - 1]) != domains_[at].value) return false;
    }
    return true;
  }
  [[nodiscard]] std::string PathOf(uint32_t id) const {
    if (id == kRoot) return "";
    const Domain& domain = domains_[id];
    const std::string own = absl::StrCat(names_[domain.depth - 1], "=", domain.value);
    return domain.parent == kRoot ? own : absl::StrCat(PathOf(domain.parent), "/", own);
  }

  // Of the labels, outermost first.
  [[nodiscard]] std::vector<std::string> ValuesOf(uint32_t id) const {
    std::vector<std::string> values(domains_[id].depth);
    for (; id != kRoot; id = domains_[id].parent) {
      values[domains_[id].depth - 1] = domains_[id].value;
    }
    return values;
  }

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  [[nodiscard]] bool IsInside(const model::StringMap& labels) const {
    return std::all_of(labels_.begin(), labels_.end(),
                       [&](const std::string& label) { return labels.Has(label); });
  }

  std::vector<std::string> names_, labels_;  // of the levels, outermost first
  std::vector<Domain> domains_;              // the root first, parents before children
  std::vector<uint32_t> leaf_;               // by node id
  std::vector<NodeId> nodes_;
};

// ---- one question
// --------------------------------------------------------------------------------

// The part of a tree that a question's nodes make, with the room in it.
class TopologyIndex::Question {
 public:
  // Depths of the levels from which and to which candidates are taken, innermost >= outermost.
  Question(const Tree& tree, GroupDemand demand, size_t innermost, size_t outermost)
      : tree_(tree), demand_(std::move(demand)), innermost_(innermost), outermost_(outermost) {
    loads_.push_back(Load(Tree::kRoot, 0, demand_.wants.size()));
    slot_of_.emplace(Tree::kRoot, 0);
  }

  // In the order of names. `node` is inside the tree.
  void AddNode(const state::NodeInfo& node, framework::Capacity capacity);
  [[nodiscard]] bool empty() const { return nodes_.empty(); }
  // After the last node; once.
  void Order();
  [[nodiscard]] std::vector<TopologyCandidate> Candidates(bool scored) const;
  // For a question without candidates.
  void SayBest(TopologyAnswer& answer) const;
  [[nodiscard]] std::vector<TopologyRoom> Rooms(size_t limit, MayUse may_use) const;

 private:
  struct Load {
    Load(uint32_t of, uint32_t parent_slot, size_t wants)
        : domain(of), parent(parent_slot), free(wants) {}
    uint32_t domain;
    uint32_t parent;  // all links are slots in loads_
    std::vector<uint32_t> children;
    int64_t places = 0;                    // for pods that are alike
    absl::InlinedVector<int64_t, 4> free;  // by want
    Ratio fullness;
  };

  uint32_t SlotOf(uint32_t domain);
  [[nodiscard]] bool Fits(const Load& load) const;
  [[nodiscard]] Ratio FullnessOf(const Load& load) const;
  // Whether the domain's nodes are not those of a single child that was a candidate already.
  [[nodiscard]] bool IsNew(const Load& load, size_t depth) const {
    return depth == innermost_ || load.children.size() != 1;
  }

  const Tree& tree_;
  const GroupDemand demand_;
  const size_t innermost_, outermost_;
  std::vector<Load> loads_;                          // parents before children
  absl::flat_hash_map<uint32_t, uint32_t> slot_of_;  // domain -> slot
  std::vector<std::pair<NodeId, uint32_t>> nodes_;   // with the slot at the innermost level
  std::vector<std::vector<uint32_t>> by_depth_;      // slots, in order
};

uint32_t TopologyIndex::Question::SlotOf(uint32_t domain) {
  auto it = slot_of_.find(domain);
  if (it != slot_of_.end()) return it->second;
  const uint32_t parent = SlotOf(tree_.domain(domain).parent);
  const auto slot = static_cast<uint32_t>(loads_.size());
  loads_.push_back(Load(domain, parent, demand_.wants.size()));
  loads_[parent].children.push_back(slot);
  slot_of_.emplace(domain, slot);
  return slot;
}

void TopologyIndex::Question::AddNode(const state::NodeInfo& node, framework::Capacity capacity) {
  const uint32_t slot = SlotOf(tree_.DomainAt(node.id, innermost_));
  nodes_.emplace_back(node.id, slot);
  const model::Resources available = FreeOn(node, capacity);
  Load& load = loads_[slot];
  int64_t places = demand_.pods;
  for (size_t i = 0; i < demand_.wants.size(); ++i) {
    const Want& want = demand_.wants[i];
    int64_t free = std::max<int64_t>(0, available[want.resource]);
    if (state::HasParts(want.resource) && want.limits) free -= free % state::kWholeDevice;
    load.free[i] = model::SaturatingAdd(load.free[i], free);
    if (want.limits && want.each > 0) places = std::min(places, free / want.each);
  }
  load.places = model::SaturatingAdd(load.places, places);
}

Ratio TopologyIndex::Question::FullnessOf(const Load& load) const {
  Ratio highest;
  for (size_t i = 0; i < demand_.wants.size(); ++i) {
    if (!demand_.wants[i].ranks) continue;
    const Ratio ratio =
        load.free[i] == 0 ? Ratio{1, 0} : Ratio{demand_.wants[i].total, load.free[i]};
    if (ratio > highest) highest = ratio;
  }
  return highest;
}

void TopologyIndex::Question::Order() {
  for (size_t slot = loads_.size() - 1; slot > 0; --slot) {
    Load& parent = loads_[loads_[slot].parent];
    for (size_t i = 0; i < parent.free.size(); ++i) {
      parent.free[i] = model::SaturatingAdd(parent.free[i], loads_[slot].free[i]);
    }
    parent.places = model::SaturatingAdd(parent.places, loads_[slot].places);
  }
  for (Load& load : loads_) load.fullness = FullnessOf(load);
  auto before = [this](uint32_t a, uint32_t b) {
    const Load& x = loads_[a];
    const Load& y = loads_[b];
    if (x.fullness > y.fullness) return true;
    if (y.fullness > x.fullness) return false;
    return tree_.domain(x.domain).value < tree_.domain(y.domain).value;
  };
  by_depth_.assign(innermost_ + 1, {});
  by_depth_[0] = {0};
  for (size_t depth = 0; depth < innermost_; ++depth) {
    for (uint32_t slot : by_depth_[depth]) {
      std::vector<uint32_t>& children = loads_[slot].children;
      std::sort(children.begin(), children.end(), before);
      by_depth_[depth + 1].insert(by_depth_[depth + 1].end(), children.begin(), children.end());
    }
  }
}

bool TopologyIndex::Question::Fits(const Load& load) const {
  if (demand_.alike) return load.places >= demand_.pods;
  for (size_t i = 0; i < demand_.wants.size(); ++i) {
    if (demand_.wants[i].limits && load.free[i] < demand_.wants[i].total) return false;
  }
  return true;
}

std::vector<TopologyCandidate> TopologyIndex::Question::Candidates(bool scored) const {
  std::vector<TopologyCandidate> candidates;
  // Innermost domains in their order, as positions; `above` is each one's domain at `depth`.
  std::vector<uint32_t> above = by_depth_[innermost_];
  std::vector<uint32_t> position(loads_.size());
  for (size_t i = 0; i < above.size(); ++i) position[above[i]] = static_cast<uint32_t>(i);
  for (size_t depth = innermost_;; --depth) {
    std::vector<int64_t> count(loads_.size());
    std::vector<int64_t> index(above.size());  // of a position in its domain
    for (size_t i = 0; i < above.size(); ++i) index[i] = count[above[i]]++;
    std::vector<uint8_t> wanted(loads_.size());
    for (uint32_t slot : by_depth_[depth]) {
      wanted[slot] = IsNew(loads_[slot], depth) && Fits(loads_[slot]);
    }
    std::vector<std::vector<NodeId>> members(loads_.size());
    std::vector<absl::flat_hash_map<NodeId, int64_t>> scores(loads_.size());
    for (const auto& [node, innermost_slot] : nodes_) {
      const uint32_t at = position[innermost_slot];
      const uint32_t slot = above[at];
      if (!wanted[slot]) continue;
      members[slot].push_back(node);
      if (scored) scores[slot].emplace(node, (index[at] + 1) * kScoreRange / count[slot]);
    }
    for (uint32_t slot : by_depth_[depth]) {
      if (!wanted[slot]) continue;
      candidates.push_back({tree_.PathOf(loads_[slot].domain),
                            std::make_shared<const NodeSet>(std::move(members[slot])),
                            std::move(scores[slot])});
    }
    if (depth == outermost_) return candidates;
    for (uint32_t& slot : above) slot = loads_[slot].parent;
  }
}

void TopologyIndex::Question::SayBest(TopologyAnswer& answer) const {
  if (!demand_.alike) return;
  for (uint32_t slot : by_depth_[outermost_]) {
    if (loads_[slot].places <= answer.best_room) continue;
    answer.best_room = loads_[slot].places;
    answer.best_domain = tree_.PathOf(loads_[slot].domain);
  }
}

std::vector<TopologyRoom> TopologyIndex::Question::Rooms(size_t limit, MayUse may_use) const {
  std::vector<uint32_t> slots = by_depth_[outermost_];
  std::erase_if(slots, [&](uint32_t slot) {
    return loads_[slot].places == 0 || !may_use(tree_.ValuesOf(loads_[slot].domain));
  });
  if (demand_.alike) {
    std::stable_sort(slots.begin(), slots.end(), [this](uint32_t a, uint32_t b) {
      return loads_[a].places > loads_[b].places;
    });
  } else {
    std::reverse(slots.begin(), slots.end());
  }
  slots.resize(std::min(slots.size(), limit));
  std::vector<TopologyRoom> rooms;
  for (const uint32_t slot : slots) {
    std::vector<NodeId> members;
    for (const auto& [node, innermost] : nodes_) {
      uint32_t at = innermost;
      while (tree_.domain(loads_[at].domain).depth > outermost_) at = loads_[at].parent;
      if (at == slot) members.push_back(node);
    }
    rooms.push_back(
        {std::make_shared<const NodeSet>(std::move(members)), tree_.ValuesOf(loads_[slot].domain)});
  }
  return rooms;
}

// ---- the index
// -----------------------------------------------------------------------------------

TopologyIndex::TopologyIndex(const state::ClusterState& state) : state_(state) {}
TopologyIndex::~TopologyIndex() = default;

state::ChangeKinds TopologyIndex::Kinds() const {
  using Kind = state::StateChange::Kind;
  return {Kind::kNodeObject, Kind::kTopology, Kind::kTopologyGone};
}

void TopologyIndex::OnChange(const state::StateChange& change) {
  if (trees_.empty()) return;
  if (change.kind != state::StateChange::Kind::kNodeObject) {
    trees_.erase(state_.topology(change.row).meta.name);
    return;
  }
  const state::NodeInfo& node = state_.node(change.to_node);
  if (node.kind == state::NodeKind::kVirtual) return;
  absl::erase_if(trees_,
                 [&](const auto& entry) { return !entry.second->Shows(change.to_node, node); });
}

std::string TopologyIndex::CheckConsistency() const {
  for (const auto& [name, tree] : trees_) {
    const model::Topology* topology = state_.FindTopology(name);
    if (topology == nullptr) return absl::StrCat("topology ", name, " has gone, its tree has not");
    const Tree fresh(*topology, state_);
    if (tree->names() != fresh.names() || tree->nodes() != fresh.nodes()) {
      return absl::StrCat("tree of topology ", name, ": its levels or nodes");
    }
    const size_t depth = fresh.names().size();
    for (const NodeId node : fresh.nodes()) {
      if (tree->PathOf(tree->DomainAt(node, depth)) != fresh.PathOf(fresh.DomainAt(node, depth))) {
        return absl::StrCat("tree of topology ", name, ": node ", state_.node(node).name());
      }
    }
  }
  return "";
}

const TopologyIndex::Tree& TopologyIndex::TreeOf(const model::Topology& topology) {
  std::unique_ptr<const Tree>& tree = trees_[topology.meta.name];
  if (tree == nullptr) tree = std::make_unique<const Tree>(topology, state_);
  return *tree;
}

TopologyAnswer TopologyIndex::Candidates(const model::TopologyConstraint& constraint,
                                         const NodeSetPtr& within, const std::vector<PodId>& pods,
                                         const std::vector<PodId>& placed,
                                         framework::Capacity capacity) {
  TopologyAnswer answer;
  if (constraint.topology.empty()) {
    answer.candidates.push_back({"", within, {}});
    return answer;
  }
  auto invalid = [&answer](std::string reason) {
    answer.invalid = true;
    answer.reason = std::move(reason);
    return answer;
  };
  const std::string& name = constraint.topology;
  const model::Topology* topology = state_.FindTopology(name);
  if (topology == nullptr)
    return invalid(absl::StrCat("Requested topology ", name, " does not exist"));
  if (!topology->invalid.empty()) {
    return invalid(absl::StrCat("Requested topology ", name, " is invalid: ", topology->invalid));
  }
  for (const std::string* level : {&constraint.required_level, &constraint.preferred_level}) {
    if (!level->empty() && DepthOf(*topology, *level) == 0) {
      return invalid(absl::StrCat("Topology ", name, " has no level ", *level));
    }
  }
  const size_t required = DepthOf(*topology, constraint.required_level);
  const size_t preferred = DepthOf(*topology, constraint.preferred_level);
  if (required == 0 && preferred == 0) {
    answer.candidates.push_back({"", within, {}});
    return answer;
  }

  const Tree& tree = TreeOf(*topology);
  Question question(tree, DemandOf(state_, pods), std::max(required, preferred), required);
  AddNodes(question, tree, required, within, placed, capacity);
  question.Order();
  answer.candidates = question.Candidates(preferred > 0);
  if (!answer.candidates.empty()) return answer;
  question.SayBest(answer);
  answer.reason = ReasonFor(constraint, answer, static_cast<int64_t>(pods.size()), question.empty(),
                            required > 0 && !placed.empty());
  return answer;
}

void TopologyIndex::AddNodes(Question& question, const Tree& tree, size_t required,
                             const NodeSetPtr& within, const std::vector<PodId>& placed,
                             framework::Capacity capacity) const {
  absl::flat_hash_set<uint32_t> pinned;
  const bool pins = required > 0 && !placed.empty();
  if (pins) {
    for (PodId pod : placed) pinned.insert(tree.DomainAt(state_.pod(pod).node, required));
    pinned.erase(kOutside);
  }
  for (NodeId node : within == nullptr ? tree.nodes() : within->nodes()) {
    const uint32_t domain = tree.DomainAt(node, required);
    if (domain == kOutside || !state_.node(node).exists) continue;
    if (!pins || pinned.contains(domain)) question.AddNode(state_.node(node), capacity);
  }
}

std::vector<TopologyRoom> TopologyIndex::Rooms(const model::TopologyConstraint& constraint,
                                               const std::vector<PodId>& pods,
                                               const std::vector<PodId>& placed, size_t limit,
                                               MayUse may_use) {
  const model::Topology* topology = state_.FindTopology(constraint.topology);
  if (topology == nullptr || !topology->invalid.empty() || pods.empty()) return {};
  const size_t required = DepthOf(*topology, constraint.required_level);
  const Tree& tree = TreeOf(*topology);
  Question question(tree, DemandOf(state_, pods), required, required);
  AddNodes(question, tree, required, nullptr, placed, framework::Capacity::kFuture);
  question.Order();
  return question.Rooms(limit, may_use);
}

}  // namespace fairlead::engine
