// Small random clusters against brute force: whether a domain can hold a step is decided by trying
// every way of putting its pods on its nodes; domains are found by comparing labels.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "scheduler/engine/topology.h"
#include "scheduler/model/testing/builders.h"

namespace fairlead::engine {
namespace {

using framework::Capacity;
using model::testing::PodBuilder;

struct TopologyNode {
  std::string name;
  std::vector<std::string> values;  // of the labels, outermost first
  bool inside = true;               // has them all
  int64_t gpus = 0, cores = 0;      // allocatable
  int64_t busy_gpus = 0, busy_cores = 0;
  int64_t leaving_gpus = 0, leaving_cores = 0;  // the part of busy that is being released
};

struct TopologyPod {
  int64_t gpus = 0, cores = 0;
};

// A random cluster, in a ClusterState and as plain rows.
class TopologyWorld {
 public:
  explicit TopologyWorld(uint64_t seed) : random_(seed), state_(Options()), index_(state_) {
    state_.Subscribe(&index_);
    levels_ = 1 + Below(3);
    model::Topology topology;
    topology.meta.name = "t";
    for (size_t i = 0; i < levels_; ++i) topology.levels.push_back({absl::StrCat("l", i), ""});
    state_.UpsertTopology(topology);
    const size_t nodes = 1 + Below(7);
    for (size_t i = 0; i < nodes; ++i) AddNode(absl::StrCat("n", i));
    const size_t running = Below(7);
    for (size_t i = 0; i < running; ++i) AddRunning(absl::StrCat("r", i));
    const size_t wanted = 1 + Below(4);
    alike_ = Below(2) == 0;
    TopologyPod pod;
    for (size_t i = 0; i < wanted; ++i) {
      if (i == 0 || !alike_)
        pod = {static_cast<int64_t>(Below(4)), 1 + static_cast<int64_t>(Below(4))};
      AddPending(absl::StrCat("p", i), pod);
    }
    required_ = Below(levels_ + 1);
    preferred_ = required_ == 0 ? 1 + Below(levels_) : Below(levels_ + 1);
    capacity_ = static_cast<Capacity>(Below(3));
    if (Below(3) == 0) {
      for (const TopologyNode& node : nodes_) {
        if (Below(4) > 0) within_.insert(node.name);
      }
    } else {
      for (const TopologyNode& node : nodes_) within_.insert(node.name);
      all_ = true;
    }
  }

  TopologyAnswer Ask() {
    NodeSetPtr within;
    if (!all_) {
      std::vector<state::NodeId> ids;
      for (const std::string& name : within_) ids.push_back(state_.FindNode(name));
      within = std::make_shared<const NodeSet>(ids);
    }
    auto level = [](size_t depth) { return depth == 0 ? "" : absl::StrCat("l", depth - 1); };
    return index_.Candidates({"t", level(required_), level(preferred_)}, within, pending_, placed_,
                             capacity_);
  }

  // The domains of a level that may be used, as node numbers. Depth 0: the whole tree.
  std::vector<std::set<size_t>> Domains(size_t depth) const {
    std::set<std::vector<std::string>> pins;
    for (const std::string& host : placed_on_) {
      for (const TopologyNode& node : nodes_) {
        if (node.name == host && node.inside) pins.insert(Prefix(node, required_));
      }
    }
    std::map<std::vector<std::string>, std::set<size_t>> domains;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const TopologyNode& node = nodes_[i];
      if (!node.inside || within_.count(node.name) == 0) continue;
      if (required_ > 0 && !placed_.empty() && pins.count(Prefix(node, required_)) == 0) continue;
      domains[Prefix(node, depth)].insert(i);
    }
    std::vector<std::set<size_t>> sets;
    for (const auto& [values, set] : domains) sets.push_back(set);
    return sets;
  }

  // Every way of putting the pods on these nodes.
  bool Holds(const std::set<size_t>& nodes) const {
    std::vector<TopologyPod> free(nodes_.size());
    for (size_t i : nodes) {
      const TopologyNode& node = nodes_[i];
      free[i] = {node.gpus, node.cores};
      if (capacity_ == Capacity::kEmpty) continue;
      free[i].gpus -= node.busy_gpus;
      free[i].cores -= node.busy_cores;
      if (capacity_ == Capacity::kNow) continue;
      free[i].gpus += node.leaving_gpus;
      free[i].cores += node.leaving_cores;
    }
    return Place(nodes, free, 0);
  }

  std::set<size_t> Numbers(const TopologyCandidate& candidate) const {
    std::set<size_t> numbers;
    for (state::NodeId id : candidate.nodes->nodes()) {
      for (size_t i = 0; i < nodes_.size(); ++i) {
        if (nodes_[i].name != state_.node(id).name()) continue;
        EXPECT_TRUE(numbers.insert(i).second);
      }
    }
    return numbers;
  }

  [[nodiscard]] bool alike() const { return alike_; }
  [[nodiscard]] size_t required() const { return required_; }
  [[nodiscard]] size_t innermost() const { return std::max(required_, preferred_); }

 private:
  static state::StateOptions Options() {
    state::StateOptions options;
    options.scheduler_names = {"fairlead"};
    return options;
  }
  size_t Below(size_t bound) { return random_() % bound; }
  static std::vector<std::string> Prefix(const TopologyNode& node, size_t depth) {
    return {node.values.begin(), node.values.begin() + static_cast<std::ptrdiff_t>(depth)};
  }

  void AddNode(const std::string& name) {
    TopologyNode row;
    row.name = name;
    row.gpus = static_cast<int64_t>(Below(5));
    row.cores = 1 + static_cast<int64_t>(Below(8));
    model::Node node = model::testing::MakeNode(name, row.gpus, row.cores);
    for (size_t i = 0; i < levels_; ++i) {
      row.values.push_back(absl::StrCat("v", Below(2)));
      if (Below(12) == 0) {
        row.inside = false;
      } else {
        node.meta.labels.Set(absl::StrCat("l", i), row.values.back());
      }
    }
    state_.UpsertNode(node);
    nodes_.push_back(row);
  }
  void AddRunning(const std::string& name) {
    TopologyNode& row = nodes_[Below(nodes_.size())];
    const auto gpus = static_cast<int64_t>(Below(3));
    const auto cores = 1 + static_cast<int64_t>(Below(2));
    const bool leaving = Below(3) == 0;
    PodBuilder pod("ns", name);
    pod.Gpus(gpus).Cpu(cores * 1000).On(row.name);
    if (leaving) pod.Deleting();
    state_.UpsertPod(pod);
    row.busy_gpus += gpus;
    row.busy_cores += cores;
    if (leaving) {
      row.leaving_gpus += gpus;
      row.leaving_cores += cores;
    } else if (Below(4) == 0) {
      placed_.push_back(state_.FindPod("ns", name));
      placed_on_.push_back(row.name);
    }
  }
  void AddPending(const std::string& name, const TopologyPod& pod) {
    state_.UpsertPod(PodBuilder("ns", name).Gpus(pod.gpus).Cpu(pod.cores * 1000));
    pending_.push_back(state_.FindPod("ns", name));
    rows_.push_back(pod);
  }
  bool Place(const std::set<size_t>& nodes, std::vector<TopologyPod>& free, size_t next) const {
    if (next == rows_.size()) return true;
    const TopologyPod& pod = rows_[next];
    for (size_t i : nodes) {
      if ((pod.gpus > 0 && free[i].gpus < pod.gpus) || free[i].cores < pod.cores) continue;
      free[i].gpus -= pod.gpus;
      free[i].cores -= pod.cores;
      const bool rest = Place(nodes, free, next + 1);
      free[i].gpus += pod.gpus;
      free[i].cores += pod.cores;
      if (rest) return true;
    }
    return false;
  }

  std::mt19937_64 random_;
  state::ClusterState state_;
  TopologyIndex index_;
  size_t levels_ = 1;
  std::vector<TopologyNode> nodes_;
  std::vector<TopologyPod> rows_;
  std::vector<state::PodId> pending_, placed_;
  std::vector<std::string> placed_on_;
  std::set<std::string> within_;
  bool all_ = false;
  bool alike_ = true;
  size_t required_ = 0, preferred_ = 0;
  Capacity capacity_ = Capacity::kFuture;
};

TEST(TopologyOracle, CandidatesHoldTheStepWheneverADomainCan) {
  int feasible = 0;
  int infeasible = 0;
  int preferred_met = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    TopologyWorld world(seed);
    const TopologyAnswer answer = world.Ask();
    EXPECT_FALSE(answer.invalid);
    std::vector<std::set<size_t>> candidates;
    for (const TopologyCandidate& c : answer.candidates) candidates.push_back(world.Numbers(c));

    // Every candidate is a domain of a level from the preferred to the required one, innermost
    // levels first, none twice.
    std::set<std::set<size_t>> allowed;
    size_t last_first_depth = world.innermost();
    for (const std::set<size_t>& candidate : candidates) {
      EXPECT_TRUE(allowed.insert(candidate).second) << "a set is tried twice";
      size_t depth = world.innermost() + 1;
      for (size_t d = world.innermost() + 1; d-- > world.required();) {
        for (const std::set<size_t>& domain : world.Domains(d)) {
          if (depth > world.innermost() && domain == candidate) depth = d;
        }
      }
      ASSERT_LE(depth, world.innermost()) << "not a domain";
      EXPECT_LE(depth, last_first_depth) << "an inner level after an outer one";
      last_first_depth = depth;
    }

    // A domain of the required level that can hold the step has a candidate that can.
    bool any = false;
    for (const std::set<size_t>& domain : world.Domains(world.required())) {
      if (!world.Holds(domain)) continue;
      any = true;
      bool found = false;
      for (const std::set<size_t>& candidate : candidates) {
        found = found ||
                (std::includes(domain.begin(), domain.end(), candidate.begin(), candidate.end()) &&
                 world.Holds(candidate));
      }
      EXPECT_TRUE(found);
    }
    ++(any ? feasible : infeasible);

    // So has one of the preferred level, which then comes first of all.
    bool preferred = false;
    for (const std::set<size_t>& domain : world.Domains(world.innermost())) {
      if (!world.Holds(domain)) continue;
      preferred = true;
      EXPECT_EQ(std::count(candidates.begin(), candidates.end(), domain), 1);
    }
    if (preferred) ++preferred_met;

    if (world.alike()) {
      // Then counting is exact.
      EXPECT_EQ(any, !candidates.empty());
      for (const std::set<size_t>& candidate : candidates) EXPECT_TRUE(world.Holds(candidate));
    }
    if (::testing::Test::HasFailure()) return;
  }
  // The random clusters are of all sorts.
  EXPECT_GT(feasible, 500);
  EXPECT_GT(infeasible, 500);
  EXPECT_GT(preferred_met, 300);
  EXPECT_GT(feasible, preferred_met + 30);
}

}  // namespace
}  // namespace fairlead::engine
