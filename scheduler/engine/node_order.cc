#include "scheduler/engine/node_order.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "scheduler/engine/hypothesis.h"
#include "scheduler/state/parts.h"

namespace fairlead::engine {

using framework::Capacity;
using Kind = state::StateChange::Kind;

bool NamesClaim(const state::PodClass& pod_class, absl::string_view claim) {
  const std::vector<std::string>& names = pod_class.spec->claims_to_join;
  return std::find(names.begin(), names.end(), claim) != names.end();
}

state::ChangeKinds NodeOrders::Kinds() const {
  return {Kind::kClassGone, Kind::kClassAnswers, Kind::kClaim};
}

void NodeOrders::OnChange(const state::StateChange& change) {
  absl::erase_if(orders_, [&](const auto& entry) {
    const bool goes = change.kind != Kind::kClaim ? entry.first == change.row
                                                  : NamesClaim(state_.pod_class(entry.first),
                                                               state_.devices().KeyOf(change.row));
    if (goes) recency_.erase(entry.second->recency);
    return goes;
  });
  if (change.kind != Kind::kClaim) refused_.Forget(change.row);
}

void NodeOrders::Put(Group& group, const Entry& entry) {
  if (group.best.node == state::kNoId) {
    group.best = entry;
  } else if (entry < group.best) {
    group.others.insert(group.best);
    group.best = entry;
  } else {
    group.others.insert(entry);
  }
}

void NodeOrders::PutAll(Group& group, std::vector<Entry> entries) {
  if (entries.empty()) return;
  // They come by name, and often score alike.
  if (!std::is_sorted(entries.begin(), entries.end())) std::sort(entries.begin(), entries.end());
  group.best = entries.front();
  for (size_t i = 1; i < entries.size(); ++i) {
    group.others.insert(group.others.end(), entries[i]);
  }
}

void NodeOrders::Take(Group& group, const Entry& entry) {
  if (group.best.node != entry.node) {
    group.others.erase(entry);
  } else if (group.others.empty()) {
    group.best.node = state::kNoId;
  } else {
    group.best = *group.others.begin();
    group.others.erase(group.others.begin());
  }
}

bool NodeOrders::FitsIdle(const framework::Framework& framework, const framework::Context& future,
                          const state::NodeInfo& node) {
  if (!node.TakesBindings()) return false;
  const state::PodClass& wanted = future.pod_class;
  const model::PodSpec& spec = *wanted.spec;
  const bool claims =
      !spec.resource_claims.empty() || !spec.claims_to_join.empty() || spec.extended->Any();
  if (state::TakesParts(wanted) || claims) {
    framework::Context now = future;
    now.capacity = framework::Capacity::kNow;
    // Of claims the plugin asks about other nodes, too.
    return claims ? framework.Filter(now, node, nullptr)
                  : framework.FilterNodeUsage(now, node, nullptr);
  }
  for (size_t i = 0; i < wanted.requests.size(); ++i) {
    const auto resource = static_cast<model::ResourceIndex>(i);
    const int64_t idle = model::SaturatingAdd(node.allocatable[resource], -node.used[resource]);
    if (wanted.requests[resource] > 0 && wanted.requests[resource] > idle) return false;
  }
  return true;
}

// Its node is kNoId if there is none.
template <typename PassedOver>
NodeOrders::Entry NodeOrders::FirstOf(const Group& group, PassedOver passed_over) {
  if (group.best.node == state::kNoId || !passed_over(group.best.node)) return group.best;
  for (const Entry& entry : group.others) {
    if (!passed_over(entry.node)) return entry;
  }
  return {false, 0, 0, state::kNoId};
}

framework::Context NodeOrders::ContextOf(state::PodClassId pod_class, Capacity capacity) const {
  return {state_, state_.pod_class(pod_class), pod_class, capacity};
}

// ---- keeping an order

void NodeOrders::Refile(Order& order, state::PodClassId pod_class, const Slot& former,
                        state::NodeId id, bool regroup) {
  Slot& slot = order.slots[id];
  if (!former.IsIn() && !slot.IsIn()) return;
  if (slot.IsIn() && (regroup || !former.IsIn())) slot.group = GroupOf(order, pod_class, id);
  if (former.IsIn() && slot.IsIn() && former.group == slot.group) {
    Group& group = order.groups[slot.group];
    const Entry now = slot.AsEntry(id);
    if (group.best.node == id && (group.others.empty() || now < *group.others.begin())) {
      group.best = now;
      return;
    }
    Take(group, former.AsEntry(id));
    Put(group, now);
    return;
  }
  if (slot.IsIn()) Put(order.groups[slot.group], slot.AsEntry(id));
  if (!former.IsIn()) return;
  Take(order.groups[former.group], former.AsEntry(id));
  DropIfEmpty(order, former.group);
}

void NodeOrders::Renew(Order& order, state::PodClassId pod_class, state::NodeId id,
                       uint64_t& work) {
  if (id >= order.slots.size()) order.slots.resize(id + 1);
  if (order.slots[id].version == state_.node(id).version) return;
  const Slot former = order.slots[id];
  const bool regroup = RenewSlot(order, pod_class, id, work);
  Refile(order, pod_class, former, id, regroup);
}

bool NodeOrders::RenewSlot(Order& order, state::PodClassId pod_class, state::NodeId id,
                           uint64_t& work) {
  Slot& slot = order.slots[id];
  const state::NodeInfo& node = state_.node(id);
  const bool object_fitted = slot.object_fits;
  bool regroup = order.marks_by_usage;
  slot.version = node.version;
  slot.fits = node.id == id && node.exists;
  if (!slot.fits) {
    slot.object_fits = false;
    slot.object_version = 0;  // another node may have the row later
  } else {
    ++work;
    regroup |= slot.object_version != node.object_version;
    Look(slot, order.plugins, pod_class, node);
    if (slot.fits && order.domains != nullptr && !order.domains->many.empty()) {
      slot.admitted = Admits(pod_class, node, order.domains->many);
    }
  }
  order.suitable += (slot.object_fits ? 1 : 0) - (object_fitted ? 1 : 0);
  return regroup;
}

void NodeOrders::Look(Slot& slot, const framework::ClassPlugins& plugins,
                      state::PodClassId pod_class, const state::NodeInfo& node) const {
  const framework::Context context = ContextOf(pod_class, capacity_);
  if (slot.object_version != node.object_version) {
    slot.object_version = node.object_version;
    slot.object_fits = Feasibility::MayHold(framework_, plugins, context, node);
    if (slot.object_fits) slot.object_score = plugins.ObjectScore(context, node);
  }
  slot.fits = slot.object_fits && Takes(plugins, context, node);
  if (!slot.fits) return;
  slot.ordered = IsOrdered(node);
  slot.minus_score = -plugins.Score(context, node, slot.object_score);
  slot.name_rank = node.name_rank;
}

bool NodeOrders::Takes(const framework::ClassPlugins& plugins, const framework::Context& context,
                       const state::NodeInfo& node) const {
  return (capacity_ != Capacity::kNow || !IsOrdered(node)) &&
         plugins.FilterNodeUsage(context, node) &&
         (holds_ != Holds::kIdle || FitsIdle(framework_, context, node));
}

std::string NodeOrders::CheckSlot(const Order& order, const framework::ClassPlugins& plugins,
                                  state::PodClassId pod_class, state::NodeId id) const {
  const state::NodeInfo& node = state_.node(id);
  const Slot slot = id < order.slots.size() ? order.slots[id] : Slot();
  Slot now;
  if (node.id == id && node.exists && Covers(node)) {
    // What is on a node that does not suit is not looked at.
    if (slot.version != node.version && slot.object_fits) return "changed unseen";
    Look(now, plugins, pod_class, node);
  }
  if (slot.fits != now.fits) return now.fits ? "fits unseen" : "fits no longer";
  if (now.fits && (slot.minus_score != now.minus_score || slot.name_rank != now.name_rank ||
                   slot.ordered != now.ordered)) {
    return "is not where it belongs";
  }
  if (slot.IsIn() && order.groups[slot.group].key != KeyOf(order, pod_class, node)) {
    return "is among nodes that are not alike";
  }
  return "";
}

std::string NodeOrders::CheckConsistency() const {
  for (const auto& [pod_class, order] : orders_) {
    if (order->domains != nullptr && !framework_.ByDomain(state_.pod_class(pod_class))) continue;
    // It is made anew before it is asked.
    if (!IsCurrent(*order, pod_class)) continue;
    std::vector<bool> changed;
    for (uint64_t i = order->seen; i < changes_.end(); ++i) {
      const state::NodeId id = changes_.At(i);
      if (id >= changed.size()) changed.resize(id + 1);
      changed[id] = true;
    }
    const framework::ClassPlugins plugins = framework_.PluginsOf(state_.pod_class(pod_class));
    const auto check = [&](state::NodeId id) -> std::string {
      if (id < changed.size() && changed[id]) return "";
      const std::string wrong = CheckSlot(*order, plugins, pod_class, id);
      if (wrong.empty()) return "";
      return absl::StrCat("order of nodes for class ", pod_class, ": node ", id, " ", wrong);
    };
    for (state::NodeId id = 0; id < order->slots.size(); ++id) {
      if (std::string wrong = check(id); !wrong.empty()) return wrong;
    }
    for (const auto& [name, id] : state_.nodes_by_name()) {
      if (!Covers(state_.node(id))) continue;
      if (std::string wrong = check(id); !wrong.empty()) return wrong;
    }
  }
  return CheckRefused();
}

std::string NodeOrders::CheckRefused() const {
  std::string wrong;
  refused_.ForEachCurrent([&](state::PodClassId pod_class) {
    const bool by_objects = refused_.SuitsNone(pod_class);
    const framework::ClassPlugins plugins = framework_.PluginsOf(state_.pod_class(pod_class));
    for (const auto& [name, id] : state_.nodes_by_name()) {
      const RefusedClasses::Answer answer = AnswerOf(plugins, pod_class, id);
      if (!answer.takes && !(by_objects && answer.suits)) continue;
      wrong = absl::StrCat("class ", pod_class, " is remembered as refused by node ", id);
    }
  });
  return wrong;
}

void NodeOrders::Build(Order& order, state::PodClassId pod_class, uint64_t& work) {
  order.groups.clear();
  order.group_ids.clear();
  order.free_groups.clear();
  order.slots.clear();
  order.suitable = 0;
  order.seen = changes_.end();
  order.plugins = framework_.PluginsOf(state_.pod_class(pod_class));
  order.domains = ReadDomains(pod_class, order.plugins);
  order.marked = framework_.Normalizes(state_.pod_class(pod_class));
  order.marks_by_usage = order.marked && framework_.MarksDependOnUsage(state_.pod_class(pod_class));
  if (order.domains != nullptr) {
    order.domains->thresholds = ThresholdsOf(*order.domains, pod_class);
  }
  std::vector<std::vector<Entry>> entries;  // by group
  for (const auto& [name, id] : state_.nodes_by_name()) {
    if (!Covers(state_.node(id))) continue;
    if (id >= order.slots.size()) order.slots.resize(id + 1);
    RenewSlot(order, pod_class, id, work);
    Slot& slot = order.slots[id];
    if (!slot.IsIn()) continue;
    slot.group = GroupOf(order, pod_class, id);
    if (slot.group >= entries.size()) entries.resize(slot.group + 1);
    entries[slot.group].push_back(slot.AsEntry(id));
  }
  for (size_t group = 0; group < entries.size(); ++group) {
    PutAll(order.groups[group], std::move(entries[group]));
  }
}

bool NodeOrders::NeverFits(state::PodClassId pod_class) const {
  const auto order = orders_.find(pod_class);
  if (order != orders_.end() && order->second->seen >= changes_.object_end()) {
    return order->second->seen != 0 && order->second->suitable == 0;
  }
  return refused_.SuitsNone(pod_class);
}

RefusedClasses::Answer NodeOrders::AnswerOf(const framework::ClassPlugins& plugins,
                                            state::PodClassId pod_class, state::NodeId id) const {
  const state::NodeInfo& node = state_.node(id);
  if (node.id != id || !node.exists || !Covers(node)) return {};
  const framework::Context context = ContextOf(pod_class, capacity_);
  if (!Feasibility::MayHold(framework_, plugins, context, node)) return {};
  return {true, Takes(plugins, context, node)};
}

bool NodeOrders::AskWhetherRefused(state::PodClassId pod_class, uint64_t& work) {
  const framework::ClassPlugins plugins = framework_.PluginsOf(state_.pod_class(pod_class));
  if (!plugins.node_local) return false;
  bool suits = false;
  for (const auto& [name, id] : state_.nodes_by_name()) {
    ++work;
    const RefusedClasses::Answer answer = AnswerOf(plugins, pod_class, id);
    if (answer.takes) return false;
    suits |= answer.suits;
  }
  refused_.Add(pod_class, !suits, /*by_node=*/true);
  return true;
}

bool NodeOrders::IsRefused(state::PodClassId pod_class, uint64_t& work) {
  if (refused_.ContainsUnasked(pod_class)) return true;
  // An order knows more of each node, so it is renewed with less.
  const auto order = orders_.find(pod_class);
  if (order != orders_.end() && order->second->seen >= changes_.start()) return false;
  std::optional<framework::ClassPlugins> plugins;
  const bool known = refused_.Contains(pod_class, [&](state::NodeId node) {
    if (!plugins.has_value()) plugins = framework_.PluginsOf(state_.pod_class(pod_class));
    ++work;
    return AnswerOf(*plugins, pod_class, node);
  });
  return known || (MayRemember(pod_class) && AskWhetherRefused(pod_class, work));
}

void NodeOrders::CatchUp(Order& order, state::PodClassId pod_class, uint64_t& work) {
  if (order.suitable == 0 && order.seen >= changes_.object_end()) {
    order.seen = changes_.end();
    return;
  }
  const uint64_t start = order.seen;
  changes_.ForEachNode(start, changes_.end(), [&](state::NodeId changed) {
    Renew(order, pod_class, changed, work);
    return true;
  });
  order.seen = changes_.end();
  if (order.domains == nullptr || order.domains->many.empty()) return;
  std::vector<int64_t> thresholds = ThresholdsOf(*order.domains, pod_class);
  if (thresholds != order.domains->thresholds) {
    order.domains->thresholds = std::move(thresholds);
    for (const auto& [name, id] : state_.nodes_by_name()) Readmit(order, pod_class, id, work);
    return;
  }
  changes_.ForEachNode(start, order.seen, [&](state::NodeId changed) {
    ReadmitAround(order, pod_class, changed, work);
    return true;
  });
}

NodeOrders::Order& NodeOrders::Find(state::PodClassId pod_class) {
  std::unique_ptr<Order>& slot = orders_[pod_class];
  if (slot != nullptr) {
    recency_.splice(recency_.begin(), recency_, slot->recency);
    return *slot;
  }
  slot = std::make_unique<Order>();
  Order& made = *slot;
  recency_.push_front(pod_class);
  made.recency = recency_.begin();
  if (orders_.size() > kMaxClasses) {
    orders_.erase(recency_.back());
    recency_.pop_back();
  }
  return made;
}

// ---- domains

void NodeOrders::Classify(Domains& domains, const framework::TopologyKey* key) const {
  const auto reads = [key](const framework::TopologyKeys& keys) {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  };
  const size_t count = key->domain_count();
  if (count <= limits_.few_domains || count * count <= state_.node_count()) {
    domains.few.push_back(key);
    return;
  }
  if (reads(domains.dependence.score)) {
    if (key->shared_domain_count() == 0) {
      domains.by_node.push_back(key);
    } else if (count <= limits_.max_domains) {
      domains.few.push_back(key);
      return;
    } else {
      domains.too_many = true;
    }
  }
  if (reads(domains.dependence.filter)) domains.many.push_back(key);
}

std::unique_ptr<NodeOrders::Domains> NodeOrders::ReadDomains(
    state::PodClassId pod_class, const framework::ClassPlugins& plugins) const {
  if (plugins.node_local) return nullptr;
  auto domains = std::make_unique<Domains>();
  domains->dependence = framework_.DependenceOf(ContextOf(pod_class, capacity_));
  for (const auto* keys : {&domains->dependence.filter, &domains->dependence.score}) {
    for (const framework::TopologyKey* key : *keys) {
      if (std::any_of(domains->held.begin(), domains->held.end(),
                      [key](const auto& held) { return held.get() == key; })) {
        continue;
      }
      domains->held.push_back(key->shared_from_this());
      Classify(*domains, key);
    }
  }
  return domains;
}

bool NodeOrders::IsCurrent(const Order& order, state::PodClassId pod_class) const {
  if (order.seen < changes_.start()) return false;
  if (order.domains == nullptr) return true;
  const Domains& domains = *order.domains;
  // A key that has got many more values than it had makes too many groups.
  const size_t nodes = state_.node_count();
  const framework::TopologyKeys& scored = domains.dependence.score;
  const bool still_few = std::all_of(domains.few.begin(), domains.few.end(), [&](const auto* key) {
    const size_t count = key->domain_count();
    const bool scores = std::find(scored.begin(), scored.end(), key) != scored.end();
    return count <= 2 * limits_.few_domains || count * count <= 4 * nodes ||
           (scores && count <= 2 * limits_.max_domains);
  });
  const bool still_single =
      std::all_of(domains.by_node.begin(), domains.by_node.end(),
                  [](const auto* key) { return key->shared_domain_count() == 0; });
  return still_few && still_single &&
         domains.dependence == framework_.DependenceOf(ContextOf(pod_class, capacity_));
}

std::vector<int64_t> NodeOrders::ThresholdsOf(const Domains& domains,
                                              state::PodClassId pod_class) const {
  std::vector<int64_t> thresholds;
  if (domains.many.empty()) return thresholds;
  framework_.AddThresholds(ContextOf(pod_class, capacity_), domains.many, thresholds);
  // What is left behind in a domain by a node that left it is not among that node's neighbours.
  for (const framework::TopologyKey* key : domains.many) {
    thresholds.push_back(static_cast<int64_t>(key->departures()));
  }
  return thresholds;
}

NodeOrders::GroupKey NodeOrders::KeyOf(const Order& order, state::PodClassId pod_class,
                                       const state::NodeInfo& node) const {
  static const auto& kNoKeys = *new framework::TopologyKeys();
  GroupKey key;
  if (order.domains != nullptr) {
    for (const framework::TopologyKey* each : order.domains->few) {
      key.push_back(each->DomainOf(node.id));
    }
  }
  if (order.marked) {
    framework_.AddMarks(ContextOf(pod_class, ScoredIn()), node,
                        order.domains == nullptr ? kNoKeys : order.domains->by_node, key);
  }
  return key;
}

uint32_t NodeOrders::GroupOf(Order& order, state::PodClassId pod_class, state::NodeId node) {
  GroupKey key = KeyOf(order, pod_class, state_.node(node));
  const auto [it, added] = order.group_ids.try_emplace(key, 0);
  if (!added) return it->second;
  if (order.free_groups.empty()) {
    it->second = static_cast<uint32_t>(order.groups.size());
    order.groups.emplace_back();
  } else {
    it->second = order.free_groups.back();
    order.free_groups.pop_back();
  }
  order.groups[it->second].key = std::move(key);
  return it->second;
}

void NodeOrders::DropIfEmpty(Order& order, uint32_t id) {
  // The only group stays: what fits a moment later is in it again.
  if (!order.groups[id].IsEmpty() || order.groups.size() == 1) return;
  order.group_ids.erase(order.groups[id].key);
  order.free_groups.push_back(id);
}

bool NodeOrders::Admits(state::PodClassId pod_class, const state::NodeInfo& node,
                        const framework::TopologyKeys& keys) const {
  if (!framework_.AdmitsDomains(ContextOf(pod_class, Capacity::kFuture), node, keys)) return false;
  return capacity_ != Capacity::kNow ||
         framework_.AdmitsDomains(ContextOf(pod_class, Capacity::kNow), node, keys);
}

void NodeOrders::Readmit(Order& order, state::PodClassId pod_class, state::NodeId id,
                         uint64_t& work) {
  if (id >= order.slots.size() || !order.slots[id].fits) return;
  Slot& slot = order.slots[id];
  ++work;
  const bool admitted = Admits(pod_class, state_.node(id), order.domains->many);
  if (admitted == slot.admitted) return;
  const Slot former = slot;
  slot.admitted = admitted;
  Refile(order, pod_class, former, id, /*regroup=*/false);
}

void NodeOrders::ReadmitAround(Order& order, state::PodClassId pod_class, state::NodeId id,
                               uint64_t& work) {
  for (const framework::TopologyKey* key : order.domains->many) {
    const framework::DomainId domain = key->DomainOf(id);
    if (domain == framework::kNoDomain) continue;
    for (const state::NodeId node : key->NodesIn(domain)) {
      if (node != id) Readmit(order, pod_class, node, work);
    }
  }
}

// ---- the best node

bool NodeOrders::IsOpen(const Order& order, state::PodClassId pod_class, const Group& group) const {
  if (group.IsEmpty()) return false;
  return order.domains == nullptr || order.domains->few.empty() ||
         Admits(pod_class, state_.node(group.best.node), order.domains->few);
}

NodeOrders::Best NodeOrders::BestOfGroups(
    const Order& order, state::PodClassId pod_class, uint64_t& work, const Candidates* among,
    absl::FunctionRef<bool(state::NodeId)> passed_over) const {
  Candidates kinds;
  if (among != nullptr) kinds = *among;
  const size_t own = kinds.size();
  std::vector<Entry> firsts;  // of the kinds from `own` on
  for (const Group& group : order.groups) {
    if (!IsOpen(order, pod_class, group)) continue;
    ++work;
    kinds.push_back(
        {&state_.node(group.best.node), among == nullptr ? static_cast<int64_t>(group.size()) : 0});
    firsts.push_back(FirstOf(group, passed_over));
  }
  const std::vector<int64_t> scores =
      kinds.size() > 1 ? framework_.ScoreKinds(ContextOf(pod_class, ScoredIn()), kinds)
                       : std::vector<int64_t>(kinds.size(), 0);
  Entry best{false, 0, 0, state::kNoId};
  for (size_t i = 0; i < firsts.size(); ++i) {
    Entry entry = firsts[i];
    if (entry.node == state::kNoId) continue;
    entry.minus_score -= scores[own + i];
    if (best.node == state::kNoId || entry < best) best = entry;
  }
  return {best.node, best.ordered, -best.minus_score};
}

NodeOrders::Order& NodeOrders::Current(state::PodClassId pod_class, uint64_t& work) {
  Order& order = Find(pod_class);
  if (IsCurrent(order, pod_class)) {
    CatchUp(order, pod_class, work);
  } else {
    Build(order, pod_class, work);
  }
  return order;
}

void NodeOrders::RememberIfRefused(const Order& order, state::PodClassId pod_class) {
  if (!MayRemember(pod_class)) return;
  const bool by_objects = order.suitable == 0, by_node = order.domains == nullptr;
  const bool none = std::all_of(order.groups.begin(), order.groups.end(),
                                [](const Group& group) { return group.IsEmpty(); });
  if (by_objects || (by_node && none)) refused_.Add(pod_class, by_objects, by_node);
}

std::optional<NodeOrders::Best> NodeOrders::BestFor(
    state::PodClassId pod_class, uint64_t& work, const Candidates* among,
    absl::FunctionRef<bool(state::NodeId)> passed_over) {
  if (IsRefused(pod_class, work)) return Best();
  const Order& order = Current(pod_class, work);
  if (order.domains != nullptr && order.domains->too_many) return std::nullopt;
  if (order.groups.size() == 1 && among == nullptr && order.domains == nullptr) {
    const Entry best = FirstOf(order.groups.front(), passed_over);
    if (best.node == state::kNoId) RememberIfRefused(order, pod_class);
    return Best{best.node, best.ordered, -best.minus_score};
  }
  const Best best = BestOfGroups(order, pod_class, work, among, passed_over);
  if (best.node == state::kNoId) RememberIfRefused(order, pod_class);
  return best;
}

std::optional<NodeOrders::Candidates> NodeOrders::CandidatesFor(state::PodClassId pod_class,
                                                                uint64_t& work) {
  if (IsRefused(pod_class, work)) return Candidates();
  const Order& order = Current(pod_class, work);
  if (order.domains != nullptr && order.domains->too_many) return std::nullopt;
  Candidates kinds;
  for (const Group& group : order.groups) {
    if (!IsOpen(order, pod_class, group)) continue;
    kinds.push_back({&state_.node(group.best.node), static_cast<int64_t>(group.size())});
  }
  if (kinds.empty()) RememberIfRefused(order, pod_class);
  return kinds;
}

}  // namespace fairlead::engine
