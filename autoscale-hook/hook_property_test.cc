// A small world: an API server with slow and lost writes, a provider with delays, refusals and lost
// replies, an engine with a stale view, users, and restarts at any step. After every event the
// invariants are checked against the world's own state, which the hook never sees.
//
// Assumptions about the adapters, as documented: calls for one request are carried out in order,
// and writes in flight at a crash have happened or not before the next process lists the objects.
//
// FAIRLEAD_HOOK_SEEDS sets the number of worlds.
#include <gtest/gtest.h>

#include <deque>
#include <iostream>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/hook.h"
#include "autoscale-hook/hook_testing.h"
#include "autoscale-hook/machines/launch_set.h"
#include "autoscale-hook/provisioning/failure.h"
#include "base/testing/environment.h"

namespace fairlead::hook {
namespace {

using Phase = model::NodeRequestPhase;
using fairlead::testing::FromEnvironment;
using testing::ArithmeticPlacement;
using testing::Item;
using testing::kDollar;
using testing::Random;
using testing::Spec;
using testing::Type;

struct ApiNode {
  std::string uid;
  bool ready = false, tainted = false;
  absl::Time ready_at = absl::InfiniteFuture();
};
struct CloudMachine {
  int64_t gpus = 0, price = 0;
  absl::Time registers_at;
  bool registered = false;
};
struct Job {
  int64_t pods = 1;
  std::map<std::string, int64_t> bound;  // node -> pods
  [[nodiscard]] int64_t Waiting() const {
    int64_t n = pods;
    for (const auto& [node, count] : bound) n -= count;
    return n;
  }
};

class World {
 public:
  // `moves`: nodes with pods are emptied, and replaced by cheaper ones.
  World(uint64_t seed, bool caps, bool moves = false) : random_(seed), faults_(true) {
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

  void Run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      now_ += absl::Seconds(Pick(1, 30));
      Users();
      Tick();
      if (Chance(4)) Crash();
    }
  }
  // Nothing comes any more, and pods end.
  void Lull(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      now_ += absl::Seconds(Pick(1, 30));
      if (!jobs_.empty() && Chance(6)) EndOnePod();
      Tick();
      if (Chance(1)) Crash();
    }
  }
  void Calm() {
    faults_ = false;
    for (int i = 0; i < 200 && !::testing::Test::HasFailure(); ++i) {
      now_ += absl::Seconds(15);
      Tick();
    }
  }
  void EndAllJobs() { jobs_.clear(); }
  void ExpectAllRunning() {
    for (const auto& [name, job] : jobs_)
      EXPECT_EQ(job.Waiting(), 0) << name << " waits\n" << Describe();
  }
  std::string Describe() {
    std::string text;
    for (const auto& [name, request] : requests_) {
      auto node = nodes_.find(name);
      absl::StrAppend(&text, name, " ", request.instance_type, " phase ",
                      static_cast<int>(request.phase), " bound ", BoundOn(name),
                      node == nodes_.end() ? " no node" : " node",
                      node != nodes_.end() && node->second.ready ? " ready" : "",
                      node != nodes_.end() && node->second.tainted ? " tainted" : "",
                      machines_.contains(name) ? " machine" : "", "\n");
    }
    Look();
    Placed placed = Place();
    for (const DemandItem& item : placed.demand) {
      absl::StrAppend(&text, "demand ", item.workload, " ", item.classes[0].count, "\n");
    }
    for (const auto& [name, request] : unseen_) absl::StrAppend(&text, "unseen ", name, "\n");
    for (const auto& [name, pods] : placed.promised)
      absl::StrAppend(&text, "promised ", name, "\n");
    return text;
  }
  void ExpectNothingLeft() {
    EXPECT_TRUE(requests_.empty()) << requests_.size() << " requests, first in phase "
                                   << static_cast<int>(requests_.begin()->second.phase);
    EXPECT_TRUE(machines_.empty());
    EXPECT_EQ(nodes_.size(), 1u);
  }
  // I4: if nothing changed, nothing is done.
  void ExpectQuiet() {
    Look();
    const StepOutput out = Step(false);
    EXPECT_TRUE(out.actions.empty()) << out.actions.size() << " actions in a world at rest";
  }
  int bought = 0, crashes = 0, removed = 0, refused = 0, whole = 0, replacing = 0, moved = 0;

 private:
  // Whether pods would find room on the nodes that the engine sees.
  class Rooms final : public Evacuation {
   public:
    explicit Rooms(World& world) : world_(world) {}
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
    World& world_;
  };
  [[nodiscard]] bool IsClosed(const std::string& name) const {
    const auto* machine = hook_->machines().Find(name);
    return machine != nullptr && machine->emptying.has_value();
  }
  // Pods of emptied nodes are evicted, and wait again.
  void Empty(const StepOutput& out) {
    for (const StepOutput::EmptiedNode& node : out.emptied) {
      const auto seen = seen_nodes_.find(node.name);
      ASSERT_TRUE(seen != seen_nodes_.end() && seen->second.tainted) << "evicted before its fence";
      if (Fault(50)) continue;
      for (auto& [name, job] : jobs_) moved += job.bound.erase(node.name) > 0 ? 1 : 0;
    }
  }
  int64_t Pick(int64_t low, int64_t high) { return random_.Between(low, high); }
  bool Chance(int percent) { return Pick(1, 100) <= percent; }
  bool Fault(int percent) { return faults_ && Chance(percent); }
  int64_t GpusOf(const model::NodeRequest& r) const {
    return catalog_.Find(r.instance_type)->gpu_count;
  }

  void Users() {
    if (Chance(30))
      jobs_[absl::StrCat("team/j", 1000 + ++job_count_)].pods = Chance(30) ? Pick(2, 5) : 1;
    if (!jobs_.empty() && Chance(20)) {
      auto it = jobs_.begin();
      std::advance(it, Pick(0, static_cast<int64_t>(jobs_.size()) - 1));
      jobs_.erase(it);
    }
    if (!machines_.empty() && Chance(2)) KillMachine(machines_.begin()->first);  // a spot reclaim
  }

  void EndOnePod() {
    auto it = jobs_.begin();
    std::advance(it, Pick(0, static_cast<int64_t>(jobs_.size()) - 1));
    Job& job = it->second;
    if (job.Waiting() == 0) {
      const auto node = job.bound.begin();
      if (--node->second == 0) job.bound.erase(node);
    }
    if (--job.pods == 0) jobs_.erase(it);
  }

  // ---- the provider and the API server
  void KillMachine(std::string name) {  // NOLINT: a copy, as the key dies
    machines_.erase(name);
    nodes_.erase(name);
    for (auto& [job_name, job] : jobs_) job.bound.erase(name);
  }
  void Advance() {
    for (auto& [name, machine] : machines_) {
      if (!machine.registered && now_ >= machine.registers_at) {
        machine.registered = true;
        ApiNode node;
        node.uid = absl::StrCat("n", ++uids_);
        if (!Fault(5)) node.ready_at = now_ + absl::Seconds(Pick(0, 60));
        nodes_[name] = node;
      }
    }
    for (auto& [name, node] : nodes_) node.ready = node.ready || now_ >= node.ready_at;
    std::deque<std::pair<absl::Time, model::Action>> later;
    std::set<std::string> held;  // in order per request
    for (auto& [at, action] : std::exchange(flying_, {})) {
      const std::string name = Subject(action);
      if (at > now_ || held.contains(name)) {
        held.insert(name);
        later.emplace_back(at, std::move(action));
      } else {
        Deliver(action);
        CheckCaps();
      }
    }
    for (auto& entry : flying_) later.push_back(std::move(entry));
    flying_ = std::move(later);
  }
  static std::string Subject(const model::Action& action) {
    if (const auto* a = std::get_if<model::CreateNodeRequest>(&action.what))
      return a->request->meta.name;
    if (const auto* a = std::get_if<model::UpdateNodeRequestStatus>(&action.what)) {
      return a->request->meta.name;
    }
    if (const auto* a = std::get_if<model::DeleteNodeRequest>(&action.what)) return a->name;
    if (const auto* a = std::get_if<model::LaunchNode>(&action.what)) return a->request->meta.name;
    if (const auto* a = std::get_if<model::TerminateNode>(&action.what)) return a->request_name;
    if (const auto* a = std::get_if<model::SetNodeTaint>(&action.what)) return a->node;
    return "";
  }
  void Deliver(const model::Action& action) {
    if (const auto* create = std::get_if<model::CreateNodeRequest>(&action.what)) {
      const std::string& name = create->request->meta.name;
      if (requests_.contains(name))
        return hook_->OnCreateResult(name, absl::AlreadyExistsError(""), now_);
      if (Fault(5)) return hook_->OnCreateResult(name, absl::PermissionDeniedError(""), now_);
      if (Fault(3)) return hook_->OnCreateResult(name, absl::UnavailableError(""), now_);
      model::NodeRequest request = create->request;
      request.meta.uid = absl::StrCat("r", ++uids_);
      request.meta.creation = now_;
      requests_[name] = request;
      if (const auto set = LaunchSetOf(request)) written_[set->id].insert(name);
      return hook_->OnCreateResult(name, Fault(5) ? absl::UnavailableError("") : absl::OkStatus(),
                                   now_);
    }
    if (const auto* update = std::get_if<model::UpdateNodeRequestStatus>(&action.what)) {
      auto it = requests_.find(update->request->meta.name);
      const auto answer = [&](const absl::Status& status) {
        if (!Fault(10)) hook_->OnStatusResult(update->request, status, now_);
      };
      if (it == requests_.end() || it->second.meta.uid != update->request->meta.uid) {
        return answer(absl::FailedPreconditionError("another object"));
      }
      if (Fault(10)) return answer(absl::PermissionDeniedError("refused"));
      if (Fault(10)) return;
      it->second = update->request;
      answer(Fault(5) ? absl::UnavailableError("done all the same") : absl::OkStatus());
    } else if (const auto* erase = std::get_if<model::DeleteNodeRequest>(&action.what)) {
      auto it = requests_.find(erase->name);
      const auto answer = [&](const absl::Status& status) {
        if (!Fault(10)) hook_->OnDeleteResult(erase->name, erase->uid, status, now_);
      };
      if (it == requests_.end() || it->second.meta.uid != erase->uid) {
        return answer(absl::FailedPreconditionError("another object"));
      }
      if (Fault(10)) return answer(absl::PermissionDeniedError("refused"));
      EXPECT_FALSE(machines_.contains(erase->name)) << "forgot a machine that costs money";
      requests_.erase(it);
      answer(Fault(5) ? absl::UnavailableError("done all the same") : absl::OkStatus());
    } else if (const auto* taint = std::get_if<model::SetNodeTaint>(&action.what)) {
      auto it = nodes_.find(taint->node);
      const auto answer = [&](const absl::Status& status) {
        if (!Fault(10)) hook_->OnTaintResult(taint->uid, taint->present, status, now_);
      };
      if (it == nodes_.end() || it->second.uid != taint->uid) {
        return answer(absl::NotFoundError("no such node"));
      }
      if (Fault(10)) return answer(absl::PermissionDeniedError("refused"));
      it->second.tainted = taint->present;
      answer(Fault(5) ? absl::UnavailableError("done all the same") : absl::OkStatus());
    } else if (const auto* launch = std::get_if<model::LaunchNode>(&action.what)) {
      DeliverLaunch(*launch);
    } else if (const auto* terminate = std::get_if<model::TerminateNode>(&action.what)) {
      if (Fault(5)) {
        return hook_->OnProviderResult(CallOf(terminate->request_name, false),
                                       absl::InternalError("x"), now_);
      }
      // No machine is ended because of a decision that a restart would lose.
      const Phase phase = requests_.contains(terminate->request_name)
                              ? requests_.at(terminate->request_name).phase
                              : Phase::kGone;
      EXPECT_TRUE(phase == Phase::kFailed || phase == Phase::kDraining || phase == Phase::kGone)
          << terminate->request_name << " is terminated in phase " << static_cast<int>(phase);
      // I7, checked again at the machine itself.
      for (const auto& [name, job] : jobs_) {
        EXPECT_FALSE(job.bound.contains(terminate->request_name)) << "killed a pod of " << name;
      }
      KillMachine(terminate->request_name);
      ++removed;
      if (!Fault(10)) {
        hook_->OnProviderResult(CallOf(terminate->request_name, false), absl::OkStatus(), now_);
      }
    }
  }
  // Nodes have no provider ids here.
  [[nodiscard]] ProviderCall CallOf(const std::string& name, bool launch) const {
    const auto request = requests_.find(name);
    return {name, request == requests_.end() ? "" : request->second.meta.uid, "", launch};
  }
  // The list is as slow as writes are.
  void DeliverList() {
    if (list_ == 0 || now_ < list_at_) return;
    const uint64_t number = std::exchange(list_, 0);
    if (Fault(5)) return;
    if (Fault(10)) {
      return hook_->OnNodesListed(number, absl::PermissionDeniedError("no"), {}, now_);
    }
    std::vector<ListedNode> unseen;
    for (const auto& [name, node] : nodes_) {
      const auto seen = seen_nodes_.find(name);
      if (seen != seen_nodes_.end() && seen->second.uid == node.uid) continue;
      unseen.push_back({name, node.uid, name, ""});
    }
    hook_->OnNodesListed(number, absl::OkStatus(), unseen, now_);
  }
  void DeliverLaunch(const model::LaunchNode& launch) {
    const std::string& name = launch.request->meta.name;
    if (const auto set = LaunchSetOf(launch.request); set.has_value() && set->atomic) {
      ++whole;
      EXPECT_EQ(static_cast<int64_t>(written_[set->id].size()), set->size)
          << "a machine of a gang is ordered before all of its requests were written";
    }
    const auto answer = [&](const absl::Status& status) {
      if (!Fault(8)) hook_->OnProviderResult(CallOf(name, true), status, now_);
    };
    if (!machines_.contains(name)) {
      if (Fault(15)) {
        ++refused;
        return answer(
            FailureStatus(Chance(80) ? FailureClass::kStockout : FailureClass::kQuota, "no"));
      }
      if (Fault(5)) return answer(absl::UnavailableError("not done"));
      machines_[name] = {GpusOf(launch.request), launch.request->price_micro_usd_per_hour,
                         now_ + absl::Seconds(Pick(10, faults_ ? 330 : 100)), false};
    }
    answer(Fault(8) ? absl::UnavailableError("done all the same") : absl::OkStatus());
  }
  void Crash() {
    ++crashes;
    hook_ = std::make_unique<Hook>(options_, &catalog_);
    for (auto& [at, action] : std::exchange(flying_, {})) {
      if (Chance(50)) Deliver(action);
    }
    hook_ = std::make_unique<Hook>(options_, &catalog_);
    list_ = 0;
    shown_.clear();
    withdrawn_.clear();
    unseen_.clear();
    Look();
  }

  // ---- the engine
  void Look() {
    seen_requests_ = requests_;
    seen_nodes_ = nodes_;
    for (const auto& [name, request] : requests_) unseen_.erase(name);
    std::erase_if(withdrawn_, [&](const std::string& name) { return !requests_.contains(name); });
  }
  void Tick() {
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

  [[nodiscard]] int64_t BoundOn(const std::string& node) const {
    int64_t pods = 0;
    for (const auto& [name, job] : jobs_) {
      auto it = job.bound.find(node);
      if (it != job.bound.end()) pods += it->second;
    }
    return pods;
  }
  // Places what fits; returns the pipelined pods and the rest.
  struct Placed {
    std::map<std::string, int64_t> promised;
    std::set<std::string> ordered;
    Demand demand;
  };
  Placed Place() {
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
      int64_t room = 0;
      for (const auto& [node, free] : ready) room += free;
      if (job.Waiting() == 0) continue;
      if (room >= job.Waiting()) {
        for (auto& [node, free] : ready) {
          const int64_t here = std::min(free, job.Waiting());
          if (here <= 0 || !nodes_.contains(node)) continue;  // the binding is refused
          job.bound[node] += here;
          free -= here;
        }
        continue;
      }
      for (const auto& [node, free] : coming) room += free;
      if (room < job.Waiting()) {
        placed.demand.push_back(Item(name, pod_, job.Waiting(), job.Waiting() > 1));
        continue;
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
    free_coming_ = coming;
    return placed;
  }

  StepOutput Step(bool buy) {
    Placed placed = Place();
    StepInput input;
    std::vector<NodeUse> uses;
    input.now = now_;
    if (!buy) placed.demand.clear();
    // As core/unservable_demand.h does it, and at random besides.
    for (DemandItem& item : placed.demand) {
      const int64_t kind = item.classes[0].count;
      if (Fault(10)) unservable_.insert(kind);
      item.charged = !unservable_.contains(kind);
    }
    input.demand = &placed.demand;
    testing::ShowRequests(*hook_, seen_requests_, shown_);
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
    input.nodes = &uses;
    input.node_versions = versions_.Of(uses);
    input.evacuation = evacuation_.get();
    const StepOutput out = hook_->Step(input, placement_);
    CheckRemovals(out);
    CheckPurchases(out, placed.demand);
    for (size_t i = 0; i < placed.demand.size(); ++i) {
      using Service = DemandOutcome::Service;
      const DemandItem& item = placed.demand[i];
      const int64_t kind = item.classes[0].count;
      if (item.charged && out.outcomes[i].service == Service::kRefused) unservable_.insert(kind);
      if (!item.charged && out.outcomes[i].service == Service::kServed) unservable_.erase(kind);
    }

    // I4: the input again, with the ordered nodes known.
    Demand rest;
    bool served = false;
    for (size_t i = 0; i < placed.demand.size(); ++i) {
      if (out.outcomes[i].node_requests.empty()) {
        rest.push_back(placed.demand[i]);
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
    Empty(out);
    CheckCaps();
    return out;
  }

  // ---- the books
  void CheckRemovals(const StepOutput& out) {
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
  void CheckPurchases(const StepOutput& out, const Demand& demand) {
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
  void CheckCaps() {
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

  static constexpr int64_t kUnset = int64_t{1} << 40;
  Random random_;
  bool faults_;
  HookOptions options_;
  Catalog catalog_;
  ArithmeticPlacement placement_;
  std::unique_ptr<Rooms> evacuation_;
  std::unique_ptr<Hook> hook_;
  absl::Time now_ = absl::FromUnixSeconds(1800000000);
  std::shared_ptr<const model::PodSpec> pod_ = Spec(1000, 1, 1);
  int uids_ = 0, job_count_ = 0;
  std::map<std::string, model::NodeRequest> requests_, seen_requests_, unseen_;
  std::map<std::string, std::string> shown_;
  std::map<std::string, std::set<std::string>> written_;  // by set, names of requests
  std::map<std::string, ApiNode> nodes_, seen_nodes_;
  testing::NodeVersions versions_;
  std::map<std::string, CloudMachine> machines_;
  std::map<std::string, Job> jobs_;
  std::map<std::string, int64_t> free_coming_;
  std::set<std::string> withdrawn_;
  std::set<int64_t> unservable_;  // kinds, by pods: they are not charged
  std::deque<std::pair<absl::Time, model::Action>> flying_;
  uint64_t list_ = 0;  // of nodes, in flight; 0: none
  absl::Time list_at_ = absl::InfinitePast();
};

TEST(HookPropertyTest, InvariantsHoldInAFaultyWorld) {
  constexpr uint64_t kFirstSeed = 1;
  const uint64_t seeds = FromEnvironment("FAIRLEAD_HOOK_SEEDS", 6);
  int bought = 0, crashes = 0, removed = 0, refused = 0, whole = 0;
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + seeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    World world(seed, seed % 2 == 0);
    world.Run(150);
    world.Calm();
    if (seed % 2 == 1) world.ExpectAllRunning();
    world.EndAllJobs();
    world.Calm();
    world.ExpectNothingLeft();
    world.ExpectQuiet();
    bought += world.bought;
    crashes += world.crashes;
    removed += world.removed;
    refused += world.refused;
    whole += world.whole;
    if (::testing::Test::HasFailure()) break;
  }
  std::cout << "seeds " << kFirstSeed << ".." << kFirstSeed + seeds - 1 << ": " << bought
            << " nodes bought, " << whole << " orders for gangs, " << removed << " terminated, "
            << refused << " refused, " << crashes << " restarts\n";
  // The worlds do provision nodes.
  EXPECT_GT(bought, 3 * static_cast<int>(seeds));
  EXPECT_GT(crashes, static_cast<int>(seeds));
  EXPECT_GT(refused, static_cast<int>(seeds) / 2);
  EXPECT_GT(whole, static_cast<int>(seeds) / 2);
}

TEST(HookPropertyTest, InvariantsHoldWhilePodsAreMoved) {
  constexpr uint64_t kFirstSeed = 1001;
  const uint64_t seeds = FromEnvironment("FAIRLEAD_HOOK_SEEDS", 6);
  int replacing = 0, moved = 0;
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + seeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    World world(seed, seed % 2 == 0, /*moves=*/true);
    world.Run(100);
    world.Lull(300);
    world.Calm();
    world.EndAllJobs();
    world.Calm();
    world.ExpectNothingLeft();
    world.ExpectQuiet();
    replacing += world.replacing;
    moved += world.moved;
    if (::testing::Test::HasFailure()) break;
  }
  std::cout << "seeds " << kFirstSeed << ".." << kFirstSeed + seeds - 1 << ": " << replacing
            << " machines to replace others, pods of " << moved << " jobs moved\n";
  EXPECT_GT(replacing, 0);
  EXPECT_GT(moved, static_cast<int>(seeds) / 2);
}

}  // namespace
}  // namespace fairlead::hook
