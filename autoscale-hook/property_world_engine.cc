// The engine of the small world, with its stale view, and what is checked of each step.
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/property_world.h"

namespace fairlead::hook::testing {

// Whether pods would find room on the nodes that the engine sees.
class PropertyWorld::Rooms final : public Evacuation {
 public:
  explicit Rooms(PropertyWorld& world) : world_(world) {}
  Occupants OccupantsOf(const std::string& node) override {
    Occupants occupants;
    occupants.staying = world_.BoundOn(node);
    occupants.lost_work = absl::Minutes(2);
    return occupants;
  }
  bool FindRoom(const std::vector<std::string>& nodes) override {
    int64_t room = 0;
    for (const auto& [name, request] : world_.seen_requests_) {
      const auto node = world_.seen_nodes_.find(name);
      const bool leaves = std::count(nodes.begin(), nodes.end(), name) > 0;
      if (leaves || node == world_.seen_nodes_.end() || !node->second.ready ||
          node->second.tainted || request.phase != Phase::kReady || world_.IsClosed(name)) {
        continue;
      }
      room += world_.GpusOf(request) - world_.BoundOn(name);
    }
    return PodsOf(nodes) <= room;
  }
  model::ResourceList RequestsOf(const std::vector<std::string>& nodes) override {
    return {{model::kGpuName, 1000 * PodsOf(nodes)}};
  }
  bool FitOn(const std::vector<std::string>& nodes, const model::Node& node) override {
    return 1000 * PodsOf(nodes) <= model::Get(node.allocatable, model::kGpuName);
  }

 private:
  int64_t PodsOf(const std::vector<std::string>& nodes) const {
    int64_t pods = 0;
    for (const std::string& node : nodes) pods += world_.BoundOn(node);
    return pods;
  }
  PropertyWorld& world_;
};

PropertyWorld::PropertyWorld(uint64_t seed, bool caps, bool moves) : random_(seed), faults_(true) {
  if (moves) {
    evacuation_ = std::make_unique<Rooms>(*this);
    options_.disruption.consolidation = model::ConsolidationPolicy::kWhenEmptyOrUnderutilized;
  }
  options_.max_removals_per_step = 1000;
  options_.unneeded_after = moves ? absl::Seconds(40) : absl::Minutes(2);
  options_.ready_timeout = absl::Minutes(5);
  options_.launch_timeout = absl::Minutes(3);
  options_.backoff_max = absl::Minutes(5);
  if (caps) {
    options_.cluster_gpu_limit = Pick(1, 12);
    options_.gpu_limit_by_model["H100"] = Pick(1, 10);
    options_.cost_limit_micro_usd_per_hour = Pick(1, 14) * kDollar;
  }
  InstanceType g1 = Type("g.1", 8, 32, 1, kDollar), g4 = Type("g.4", 32, 128, 4, 7 * kDollar / 2);
  if (moves) g4.on_demand_micro_usd = 2 * kDollar;
  InstanceType t2 = Type("t.2", 16, 64, 2, 3 * kDollar, "T4");
  g1.zones = g4.zones = {"z1", "z2"};
  catalog_ = Catalog::FromTypes({g1, g4, t2});
  nodes_["static-1"] = {"static-uid", true, false, now_};
  options_.provider = "kwok";
  options_.gathering_quiet = absl::ZeroDuration();
  hook_ = std::make_unique<Hook>(options_, &catalog_);
  Look();
}

bool PropertyWorld::IsClosed(const std::string& name) const {
  const auto* machine = hook_->machines().Find(name);
  return machine != nullptr && machine->emptying.has_value();
}

int64_t PropertyWorld::GpusOf(const model::NodeRequest& r) const {
  return catalog_.Find(r.instance_type)->gpu_count;
}

void PropertyWorld::Empty(const StepOutput& out) {
  for (const StepOutput::EmptiedNode& node : out.emptied) {
    const auto seen = seen_nodes_.find(node.name);
    ASSERT_TRUE(seen != seen_nodes_.end() && seen->second.tainted) << "evicted before its fence";
    if (Fault(50)) continue;
    for (auto& [name, job] : jobs_) moved += job.bound.erase(node.name) > 0 ? 1 : 0;
  }
}

void PropertyWorld::Look() {
  seen_requests_ = requests_;
  seen_nodes_ = nodes_;
  for (const auto& [name, request] : requests_) unseen_.erase(name);
  std::erase_if(withdrawn_, [&](const std::string& name) { return !requests_.contains(name); });
}

void PropertyWorld::Tick() {
  Advance();
  if (!faults_ || Chance(75)) Look();
  DeliverList();
  const StepOutput out = Step(true);
  if (out.node_list != 0) {
    list_ = out.node_list;
    list_at_ = now_ + absl::Seconds(faults_ ? Pick(0, 20) : 0);
  }
  for (const model::Action& action : out.actions) {
    flying_.emplace_back(now_ + absl::Seconds(faults_ ? Pick(0, 20) : 0), action);
  }
}

int64_t PropertyWorld::BoundOn(const std::string& node) const {
  int64_t pods = 0;
  for (const auto& [name, job] : jobs_) {
    auto it = job.bound.find(node);
    if (it != job.bound.end()) pods += it->second;
  }
  return pods;
}

PropertyWorld::Placed PropertyWorld::Place() {
  Placed placed;
  std::map<std::string, int64_t> ready, coming;
  for (const auto& [name, request] : seen_requests_) {
    const bool live = request.phase != Phase::kDraining && request.phase != Phase::kFailed &&
                      request.phase != Phase::kGone && !withdrawn_.contains(name);
    auto node = seen_nodes_.find(name);
    const bool there = node != seen_nodes_.end();
    if (!live || (there && node->second.tainted) || IsClosed(name)) continue;
    if (there && node->second.ready) {
      ready[name] = GpusOf(request) - BoundOn(name);
    } else if (request.phase != Phase::kReady) {
      coming[name] = GpusOf(request) - BoundOn(name);
      placed.ordered.insert(name);
    }
  }
  for (const auto& [name, request] : unseen_) coming[name] = GpusOf(request);
  for (auto& [name, job] : jobs_) {
    if (job.Waiting() > 0) PlaceJob(name, job, ready, coming, placed);
  }
  free_coming_ = coming;
  return placed;
}

void PropertyWorld::PlaceJob(const std::string& name, Job& job,
                             std::map<std::string, int64_t>& ready,
                             std::map<std::string, int64_t>& coming, Placed& placed) {
  int64_t room = 0;
  for (const auto& [node, free] : ready) room += free;
  if (room >= job.Waiting()) {
    for (auto& [node, free] : ready) {
      const int64_t here = std::min(free, job.Waiting());
      if (here <= 0 || !nodes_.contains(node)) continue;  // the binding is refused
      job.bound[node] += here;
      free -= here;
    }
    return;
  }
  for (const auto& [node, free] : coming) room += free;
  if (room < job.Waiting()) {
    placed.demand.push_back(Item(name, pod_, job.Waiting(), job.Waiting() > 1));
    return;
  }
  int64_t left = job.Waiting();
  for (auto* part : {&ready, &coming}) {
    for (auto& [node, free] : *part) {
      const int64_t here = std::min(free, left);
      if (here <= 0) continue;
      placed.promised[node] += here;
      free -= here;
      left -= here;
    }
  }
}

std::vector<NodeUse> PropertyWorld::UsesOf(const Placed& placed) const {
  std::vector<NodeUse> uses;
  for (const auto& [name, request] : seen_requests_) {
    auto node = seen_nodes_.find(name);
    if (node == seen_nodes_.end() && !placed.ordered.contains(name)) continue;
    NodeUse use;
    use.name = use.node_request = name;
    use.needed = BoundOn(name) > 0 || placed.promised.contains(name);
    use.needed_by_pods_alone = use.needed && !placed.promised.contains(name);
    if (node != seen_nodes_.end()) {
      use.uid = node->second.uid;
      use.registered = true;
      use.ready = node->second.ready;
      use.removal_tainted = node->second.tainted;
    }
    uses.push_back(use);
  }
  NodeUse foreign;
  foreign.name = "static-1";
  foreign.uid = "static-uid";
  foreign.registered = foreign.ready = true;
  uses.push_back(foreign);
  return uses;
}

StepOutput PropertyWorld::Step(bool buy) {
  Placed placed = Place();
  if (!buy) placed.demand.clear();
  // As core/unservable_demand.h does it, and at random besides.
  for (DemandItem& item : placed.demand) {
    const int64_t kind = item.classes[0].count;
    if (Fault(10)) unservable_.insert(kind);
    item.charged = !unservable_.contains(kind);
  }
  ShowRequests(*hook_, seen_requests_, shown_);
  const std::vector<NodeUse> uses = UsesOf(placed);
  StepInput input;
  input.now = now_;
  input.demand = &placed.demand;
  input.nodes = &uses;
  input.node_versions = versions_.Of(uses);
  input.evacuation = evacuation_.get();
  const StepOutput out = hook_->Step(input, placement_);
  CheckRemovals(out);
  CheckPurchases(out, placed.demand);
  NoteServices(out, placed.demand);
  CheckStepAgain(input, out, placed.demand);
  NotePurchases(out);
  Empty(out);
  CheckCaps();
  return out;
}

void PropertyWorld::NoteServices(const StepOutput& out, const Demand& demand) {
  using Service = DemandOutcome::Service;
  for (size_t i = 0; i < demand.size(); ++i) {
    const int64_t kind = demand[i].classes[0].count;
    const Service service = out.outcomes[i].service;
    if (demand[i].charged && service == Service::kRefused) unservable_.insert(kind);
    if (!demand[i].charged && service == Service::kServed) unservable_.erase(kind);
  }
}

// I4: the input again, with the ordered nodes known.
void PropertyWorld::CheckStepAgain(StepInput input, const StepOutput& out, const Demand& demand) {
  Demand rest;
  bool served = false;
  for (size_t i = 0; i < demand.size(); ++i) {
    if (out.outcomes[i].node_requests.empty()) {
      rest.push_back(demand[i]);
    } else {
      served = true;
    }
  }
  input.demand = &rest;
  // The input differs by that: what waited for nodes has held back the moves of pods.
  if (served) input.evacuation = nullptr;
  const StepOutput again = hook_->Step(input, placement_);
  EXPECT_TRUE(again.actions.empty())
      << again.actions.size() << " actions for the same input, the first of kind "
      << again.actions.front().what.index() << " about " << Subject(again.actions.front());
}

void PropertyWorld::NotePurchases(const StepOutput& out) {
  for (const std::string& name : out.withdrawn) {
    withdrawn_.insert(name);
    unseen_.erase(name);
  }
  for (const StepOutput::NewNode& created : out.created) {
    unseen_[created.request.meta.name] = created.request;
    withdrawn_.erase(created.request.meta.name);
    ++bought;
    replacing += created.request.replaces.empty() ? 0 : 1;
  }
}

void PropertyWorld::CheckRemovals(const StepOutput& out) {
  for (const model::Action& action : out.actions) {
    if (const auto* taint = std::get_if<model::SetNodeTaint>(&action.what)) {
      EXPECT_NE(taint->node, "static-1");
    }
    const auto* terminate = std::get_if<model::TerminateNode>(&action.what);
    if (terminate == nullptr) continue;
    EXPECT_TRUE(requests_.contains(terminate->request_name)) << "not ours";
    auto seen = seen_nodes_.find(terminate->request_name);
    // I7: a node that the engine can see is removed only after a taint that it can see.
    if (seen != seen_nodes_.end()) {
      EXPECT_TRUE(seen->second.tainted) << terminate->request_name;
    }
    EXPECT_EQ(BoundOn(terminate->request_name), 0) << terminate->request_name;
  }
}

// I3: nothing is provisioned for pods that would fit on coming nodes, and no node too many.
void PropertyWorld::CheckPurchases(const StepOutput& out, const Demand& demand) {
  int64_t coming = 0;
  for (const auto& [node, free] : free_coming_) coming += free;
  int64_t pods = 0, capacity = 0, smallest = kUnset;
  for (size_t i = 0; i < demand.size(); ++i) {
    EXPECT_EQ(out.outcomes[i].workload, demand[i].workload);
    const bool ordered = !out.outcomes[i].node_requests.empty();
    if (demand[i].charged) {
      EXPECT_EQ(out.outcomes[i].service == DemandOutcome::Service::kServed, ordered);
    } else {
      EXPECT_FALSE(ordered) << "bought beyond what is charged to its queue (I2)";
    }
    if (!ordered) continue;
    pods += demand[i].classes[0].count;
    EXPECT_LT(coming, demand[i].classes[0].count) << "bought beside capacity in flight";
  }
  for (const StepOutput::NewNode& created : out.created) {
    const int64_t gpus = GpusOf(created.request);
    if (created.request.replaces.empty()) {
      capacity += gpus;
      smallest = std::min(smallest, gpus);
    } else {
      EXPECT_TRUE(std::none_of(demand.begin(), demand.end(), [](const DemandItem& item) {
        return item.charged;
      })) << "replaced while workloads wait";
    }
    const std::string& name = created.request.meta.name;
    const bool freed = std::count(out.withdrawn.begin(), out.withdrawn.end(), name) > 0;
    EXPECT_FALSE(seen_requests_.contains(name) || (unseen_.contains(name) && !freed))
        << "name taken";
  }
  EXPECT_GE(capacity, pods);
  if (smallest != kUnset) {
    EXPECT_LT(capacity - smallest, pods) << "a node too many";
  }
}

// I6: existing machines and open requests never exceed the caps.
void PropertyWorld::CheckCaps() {
  int64_t gpus = 0, price = 0;
  for (const auto& [name, machine] : machines_) {
    gpus += machine.gpus;
    price += machine.price;
    EXPECT_TRUE(requests_.contains(name)) << "a machine that no object remembers (I5)";
  }
  const auto within = [](int64_t used, int64_t limit) { return limit < 0 || used <= limit; };
  EXPECT_TRUE(within(gpus, options_.cluster_gpu_limit)) << gpus;
  EXPECT_TRUE(within(price, options_.cost_limit_micro_usd_per_hour)) << price;
  gpus = 0;
  std::map<std::string, const model::NodeRequest*> asked;
  for (const auto& [name, request] : requests_) asked[name] = &request;
  for (const auto& [name, request] : unseen_) asked.emplace(name, &request);
  int64_t h100 = 0;
  for (const auto& [name, request] : asked) {
    // A request in phase Gone is the record of a machine.
    const bool ended = request->phase == Phase::kFailed || request->phase == Phase::kGone;
    const bool counts = !ended || machines_.contains(name);
    if (!counts) continue;
    gpus += GpusOf(*request);
    if (catalog_.Find(request->instance_type)->gpu_model == "H100") h100 += GpusOf(*request);
  }
  EXPECT_TRUE(within(gpus, options_.cluster_gpu_limit)) << gpus << " asked for";
  auto by_model = options_.gpu_limit_by_model.find("H100");
  if (by_model != options_.gpu_limit_by_model.end()) {
    EXPECT_LE(h100, by_model->second);
  }
}

}  // namespace fairlead::hook::testing
