#include "scheduler/framework/domain_counters.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fairlead::framework {
namespace {

using state::PodStatus;

// Below so many nothing is looked through for what can be dropped.
constexpr size_t kAlwaysKept = 64;
// So many changes of nodes, and one for each node, are kept for views. One that has missed more
// looks at all nodes.
constexpr size_t kNodeChangesKept = 1024;

bool HasPodTerms(const model::PodSpec& spec) {
  return !spec.pod_affinity.empty() || !spec.pod_anti_affinity.empty();
}

bool SelectedByAll(const PodSet& set, const std::string& ns, const model::StringMap& labels) {
  return std::all_of(set.terms().begin(), set.terms().end(), [&](const OwnedTerm& owned) {
    return model::Selects(owned.term, owned.ns, ns, labels) == model::Selection::kYes;
  });
}

}  // namespace

PodTally TallyOf(PodStatus status) {
  PodTally tally;
  if (status == PodStatus::kPipelined) {
    tally.promised = 1;
  } else if (status == PodStatus::kReleasing) {
    tally.releasing = 1;
  } else if (status == PodStatus::kStuckInReleasing) {
    tally.stuck = 1;
  } else if (state::HoldsNode(status)) {
    tally.settled = 1;
  }
  return tally;
}

// ---- sets and their counters

DomainCounter::DomainCounter(const PodSet& set, std::shared_ptr<TopologyKey> key)
    : set_(set), key_(std::move(key)) {
  for (const auto& [node, tally] : set_.nodes_) Add(node, tally, {});
}

void DomainCounter::Add(state::NodeId node, const PodTally& added, const PodTally& taken) {
  const DomainId domain = key_->DomainOf(node);
  if (domain != kNoDomain) Change(domain, added, taken);
}

void DomainCounter::Change(DomainId domain, const PodTally& added, const PodTally& taken) {
  ++version_;
  all_ += added;
  all_ -= taken;
  PodTally& tally = domains_[domain];
  tally += added;
  tally -= taken;
  if (tally.IsZero()) domains_.erase(domain);
}

void PodSet::RemoveView(SetView* view) {
  views_.erase(std::remove(views_.begin(), views_.end(), view), views_.end());
}

void PodSet::Change(state::NodeId node, const PodTally& added, const PodTally& taken) {
  const auto it = nodes_.try_emplace(node).first;
  it->second += added;
  it->second -= taken;
  if (it->second.IsZero()) nodes_.erase(it);
  for (const auto& counter : counters_) counter->Add(node, added, taken);
  for (SetView* view : views_) view->OnTally(node, added, taken);
}

const DomainCounter& PodSet::CounterFor(const std::shared_ptr<TopologyKey>& key) {
  for (const auto& counter : counters_) {
    if (counter->key_ == key) return *counter;
  }
  counters_.push_back(std::make_unique<DomainCounter>(*this, key));
  return *counters_.back();
}

// ---- the index of terms

TermIndex::Keys TermIndex::KeysOf(const PodSet& set) {
  for (const OwnedTerm& owned : set.terms()) {
    for (const model::SelectorRequirement& requirement : owned.term.selector.requirements) {
      if (requirement.op != model::SelectorOperator::kIn) continue;
      Keys keys;
      for (const std::string& value : requirement.values) keys.emplace_back(requirement.key, value);
      std::sort(keys.begin(), keys.end());
      keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
      return keys;
    }
  }
  return {};
}

void TermIndex::Add(PodSet* set) {
  const Keys keys = KeysOf(*set);
  if (keys.empty()) others_.push_back(set);
  for (const auto& key : keys) by_value_[key].push_back(set);
}

void TermIndex::Remove(PodSet* set) {
  const auto erase = [set](std::vector<PodSet*>& from) {
    from.erase(std::remove(from.begin(), from.end(), set), from.end());
  };
  const Keys keys = KeysOf(*set);
  if (keys.empty()) erase(others_);
  for (const auto& key : keys) {
    const auto it = by_value_.find(key);
    erase(it->second);
    if (it->second.empty()) by_value_.erase(it);
  }
}

void TermIndex::ForEach(const model::StringMap& labels,
                        absl::FunctionRef<void(PodSet*)> use) const {
  // A pod has one value of a key, and a set is filed under values of one key.
  if (!by_value_.empty()) {
    for (const auto& label : labels) {
      const auto it = by_value_.find(label);
      if (it == by_value_.end()) continue;
      for (PodSet* set : it->second) use(set);
    }
  }
  for (PodSet* set : others_) use(set);
}

// ---- all of them

DomainCounters::DomainCounters(const state::ClusterState& state) : state_(state) {
  state_.ForEachPod([this](const state::PodRecord& pod) {
    if (pod.node == state::kNoId) return;
    CountOwner(pod, state::kNoId, {}, pod.node, TallyOf(pod.status));
  });
}

DomainCounters::~DomainCounters() = default;

std::shared_ptr<TopologyKey> DomainCounters::Key(const std::string& name) {
  std::shared_ptr<TopologyKey>& key = keys_[name];
  if (key != nullptr) return key;
  key = std::make_shared<TopologyKey>(name, state_);
  std::shared_ptr<TopologyKey> made = key;
  if (keys_.size() > 2 * keys_after_cleaning_ + kAlwaysKept) ForgetKeys();
  return made;
}

std::shared_ptr<PodSet> DomainCounters::Selected(std::vector<OwnedTerm> terms) {
  for (OwnedTerm& owned : terms) {
    owned.term.topology_key.clear();
    owned.term.weight = 0;
  }
  const auto found = selected_.find(terms);
  if (found != selected_.end()) return found->second;
  auto made = std::make_shared<PodSet>(terms);
  state_.ForEachPod([&](const state::PodRecord& pod) {
    if (pod.node == state::kNoId || !SelectedByAll(*made, pod.ns, pod.labels)) return;
    made->Change(pod.node, TallyOf(pod.status), {});
  });
  selected_.emplace(std::move(terms), made);
  selecting_.Add(made.get());
  if (selected_.size() > 2 * sets_after_cleaning_ + kAlwaysKept) ForgetSets();
  return made;
}

void DomainCounters::ForEachOwner(
    const std::string& ns, const model::StringMap& labels,
    absl::FunctionRef<void(TermKind, model::Selection, PodSet&)> use) {
  const auto look = [&](TermKind kind, const TermIndex& index) {
    index.ForEach(labels, [&](PodSet* set) {
      const OwnedTerm& owned = set->terms().front();
      const model::Selection selects = model::Selects(owned.term, owned.ns, ns, labels);
      if (selects != model::Selection::kNo) use(kind, selects, *set);
    });
  };
  look(TermKind::kAffinity, affinity_owners_);
  look(TermKind::kAntiAffinity, anti_affinity_owners_);
}

PodSet* DomainCounters::Owner(TermKind kind, const std::string& ns,
                              const model::PodAffinityTerm& term) {
  std::unique_ptr<PodSet>& slot = owners_[{kind, {ns, term}}];
  if (slot == nullptr) {
    slot = std::make_unique<PodSet>(std::vector<OwnedTerm>{{ns, term}});
    (kind == TermKind::kAffinity ? affinity_owners_ : anti_affinity_owners_).Add(slot.get());
    ++owners_version_;
  }
  return slot.get();
}

DomainCounters::OwnerClass& DomainCounters::OwnerClassOf(
    const std::shared_ptr<const model::PodSpec>& spec) {
  OwnerClass& owner = owner_classes_[spec.get()];
  if (owner.spec != nullptr) return owner;
  owner.spec = spec;
  for (const model::PodAffinityTerm& term : spec->pod_affinity) {
    owner.sets.push_back(Owner(TermKind::kAffinity, spec->ns, term));
  }
  for (const model::PodAffinityTerm& term : spec->pod_anti_affinity) {
    owner.sets.push_back(Owner(TermKind::kAntiAffinity, spec->ns, term));
  }
  return owner;
}

void DomainCounters::CountOwner(const state::PodRecord& pod, state::NodeId from,
                                const PodTally& taken, state::NodeId to, const PodTally& added) {
  const std::shared_ptr<const model::PodSpec>& spec = state_.pod_class(pod.pod_class).spec;
  if (!HasPodTerms(*spec)) return;
  OwnerClass& owner = OwnerClassOf(spec);
  owner.pods += (to == state::kNoId ? 0 : 1) - (from == state::kNoId ? 0 : 1);
  for (PodSet* set : owner.sets) {
    if (from == to) {
      set->Change(to, added, taken);
      continue;
    }
    if (from != state::kNoId) set->Change(from, {}, taken);
    if (to != state::kNoId) set->Change(to, added, {});
  }
  if (owner.pods > 0) return;
  owner_classes_.erase(spec.get());
  if (owners_.size() > 2 * owners_after_cleaning_ + kAlwaysKept) ForgetOwners();
}

void DomainCounters::CountSelected(const state::PodRecord& pod, state::NodeId from,
                                   const PodTally& taken, state::NodeId to, const PodTally& added) {
  if (selecting_.empty()) return;
  const model::StringMap& labels = pod.labels;
  selecting_.ForEach(labels, [&](PodSet* set) {
    if (!SelectedByAll(*set, pod.ns, labels)) return;
    if (from == to) {
      set->Change(to, added, taken);
      return;
    }
    if (from != state::kNoId) set->Change(from, {}, taken);
    if (to != state::kNoId) set->Change(to, added, {});
  });
}

state::ChangeKinds DomainCounters::Kinds() const {
  using Kind = state::StateChange::Kind;
  return {Kind::kPodMoved, Kind::kPodLabelsGo, Kind::kPodLabelsCome, Kind::kNodeObject};
}

void DomainCounters::OnChange(const state::StateChange& change) {
  using Kind = state::StateChange::Kind;
  switch (change.kind) {
    case Kind::kPodMoved: {
      const PodTally taken =
          change.from_node == state::kNoId ? PodTally{} : TallyOf(change.from_status);
      const PodTally added =
          change.to_node == state::kNoId ? PodTally{} : TallyOf(change.to_status);
      if (change.from_node == change.to_node && taken == added) return;
      const state::PodRecord& pod = state_.pod(change.pod);
      CountOwner(pod, change.from_node, taken, change.to_node, added);
      CountSelected(pod, change.from_node, taken, change.to_node, added);
      return;
    }
    case Kind::kPodLabelsGo: {
      const state::PodRecord& pod = state_.pod(change.pod);
      CountSelected(pod, change.to_node, TallyOf(pod.status), state::kNoId, {});
      return;
    }
    case Kind::kPodLabelsCome: {
      const state::PodRecord& pod = state_.pod(change.pod);
      CountSelected(pod, state::kNoId, {}, change.to_node, TallyOf(pod.status));
      return;
    }
    case Kind::kNodeObject:
      OnNodeObject(change.to_node);
      return;
    default:
      return;  // is not told
  }
}

template <typename F>
void DomainCounters::ForEachSet(F f) const {
  for (const auto& [terms, set] : selected_) f(*set);
  for (const auto& [key, set] : owners_) f(*set);
}

void DomainCounters::OnNodeObject(state::NodeId node) {
  bool moved = false;
  absl::flat_hash_map<const TopologyKey*, DomainId> former;
  for (const auto& [name, key] : keys_) {
    const DomainId before = key->Update(node);
    if (before == key->DomainOf(node)) continue;
    former.emplace(key.get(), before);
    moved = true;
  }
  // What was added for the node goes with it.
  if (moved) {
    ForEachSet([&](PodSet& set) {
      if (set.counters_.empty()) return;
      const PodTally tally = set.On(node);
      if (tally.IsZero()) return;
      for (const auto& counter : set.counters_) {
        const auto before = former.find(&counter->key());
        if (before == former.end()) continue;
        if (before->second != kNoDomain) counter->Change(before->second, {}, tally);
        counter->Add(node, tally, {});
      }
    });
  }
  node_changes_.Add(node, kNodeChangesKept + state_.nodes_by_name().size());
  for (const auto& [key, domain] : former) keys_.at(key->name())->ReleaseIfEmpty(domain);
}

void DomainCounters::ForgetSets() {
  absl::erase_if(selected_, [this](const auto& entry) {
    if (entry.second.use_count() > 1) return false;
    selecting_.Remove(entry.second.get());
    return true;
  });
  sets_after_cleaning_ = selected_.size();
}

void DomainCounters::ForgetOwners() {
  absl::erase_if(owners_, [this](const auto& entry) {
    // A class whose first pod is being counted has sets that are empty yet, but holds none then.
    if (!entry.second->IsEmpty()) return false;
    (entry.first.kind == TermKind::kAffinity ? affinity_owners_ : anti_affinity_owners_)
        .Remove(entry.second.get());
    return true;
  });
  owners_after_cleaning_ = owners_.size();
  ++owners_version_;
}

void DomainCounters::ForgetKeys() {
  absl::erase_if(keys_, [](const auto& entry) { return entry.second.use_count() == 1; });
  keys_after_cleaning_ = keys_.size();
}

std::string DomainCounters::CheckSet(
    const PodSet& set, const absl::flat_hash_map<state::NodeId, PodTally>& nodes) const {
  const std::string name =
      absl::StrCat("pods counted for terms of ", set.terms().empty() ? "" : set.terms().front().ns);
  if (set.nodes_ != nodes) return absl::StrCat(name, ": by node");
  for (const auto& counter : set.counters_) {
    absl::flat_hash_map<DomainId, PodTally> domains;
    PodTally all;
    for (const auto& [node, tally] : nodes) {
      const DomainId domain = counter->key().DomainOf(node);
      if (domain == kNoDomain) continue;
      domains[domain] += tally;
      all += tally;
    }
    if (domains != counter->domains_ || all != counter->all_) {
      return absl::StrCat(name, ": by ", counter->key().name());
    }
  }
  for (SetView* view : set.views_) {
    std::string wrong = view->CheckConsistency();
    if (!wrong.empty()) return wrong;
  }
  return "";
}

std::string DomainCounters::CheckConsistency() const {
  for (const auto& [name, key] : keys_) {
    std::string wrong = key->CheckConsistency();
    if (!wrong.empty()) return wrong;
  }
  std::string wrong;
  absl::flat_hash_map<const PodSet*, absl::flat_hash_map<state::NodeId, PodTally>> recount;
  state_.ForEachPod([&](const state::PodRecord& pod) {
    if (pod.node == state::kNoId) return;
    for (const auto& [terms, set] : selected_) {
      if (SelectedByAll(*set, pod.ns, pod.labels)) {
        recount[set.get()][pod.node] += TallyOf(pod.status);
      }
    }
    const model::PodSpec& spec = *state_.pod_class(pod.pod_class).spec;
    const auto own = [&](TermKind kind, const std::vector<model::PodAffinityTerm>& terms) {
      for (const model::PodAffinityTerm& term : terms) {
        const auto it = owners_.find({kind, {spec.ns, term}});
        if (it == owners_.end()) {
          wrong = absl::StrCat("a term of pod ", pod.ns, "/", pod.name, " is not counted");
        } else {
          recount[it->second.get()][pod.node] += TallyOf(pod.status);
        }
      }
    };
    own(TermKind::kAffinity, spec.pod_affinity);
    own(TermKind::kAntiAffinity, spec.pod_anti_affinity);
  });
  ForEachSet([&](const PodSet& set) {
    if (wrong.empty()) wrong = CheckSet(set, recount[&set]);
  });
  return wrong;
}

}  // namespace fairlead::framework
