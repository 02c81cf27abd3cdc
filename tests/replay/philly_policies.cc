#include "tests/replay/philly_policies.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace fairlead::replay {
namespace {

class Pool {
 public:
  explicit Pool(int64_t gpus) : free_(static_cast<size_t>(gpus / kGpusPerNode), kGpusPerNode) {
    for (size_t i = 0; i < free_.size(); ++i) by_free_.emplace(kGpusPerNode, i);
  }
  // The node of each pod; none if they do not all fit.
  std::optional<std::vector<size_t>> Take(const std::vector<int64_t>& pods) {
    std::vector<size_t> nodes;
    for (const int64_t gpus : pods) {
      const auto node = by_free_.lower_bound({gpus, 0});
      if (node == by_free_.end()) {
        for (size_t i = 0; i < nodes.size(); ++i) Change(nodes[i], pods[i]);
        return std::nullopt;
      }
      nodes.push_back(node->second);
      Change(node->second, -gpus);
    }
    return nodes;
  }
  void GiveBack(const std::vector<int64_t>& pods, const std::vector<size_t>& nodes) {
    for (size_t i = 0; i < nodes.size(); ++i) Change(nodes[i], pods[i]);
  }

 private:
  void Change(size_t node, int64_t gpus) {
    by_free_.erase({free_[node], node});
    free_[node] += gpus;
    by_free_.emplace(free_[node], node);
  }
  std::vector<int64_t> free_;
  std::set<std::pair<int64_t, size_t>> by_free_;  // (free GPUs, node)
};

class Simulation {
 public:
  Simulation(const PhillyTrace& trace, int64_t gpus, const Policy& policy)
      : trace_(trace), policy_(policy), pool_(gpus), nodes_(trace.jobs.size()) {
    result_.gpus = gpus;
    result_.first_start_s.resize(trace.jobs.size());
    result_.finish_s.resize(trace.jobs.size());
  }
  PhillyResult Run() {
    size_t arrived = 0;
    while (arrived < trace_.jobs.size() || !running_.empty()) {
      int64_t now = running_.empty() ? trace_.jobs[arrived].submit_s : running_.top().first;
      if (arrived < trace_.jobs.size()) now = std::min(now, trace_.jobs[arrived].submit_s);
      for (; !running_.empty() && running_.top().first == now; running_.pop()) {
        const size_t job = running_.top().second;
        pool_.GiveBack(PodsOf(trace_.jobs[job]), nodes_[job]);
      }
      for (; arrived < trace_.jobs.size() && trace_.jobs[arrived].submit_s == now; ++arrived) {
        const PhillyJob& job = trace_.jobs[arrived];
        waiting_[job.gpus].emplace(policy_.order == PolicyOrder::kSjf ? job.duration_s : 0,
                                   arrived);
      }
      StartWhatFits(now);
    }
    return std::move(result_);
  }

 private:
  using Line = std::set<std::pair<int64_t, size_t>>;  // (key, job)

  // Jobs of one size fail alike, so each size is tried only until one of its jobs does not fit.
  void StartWhatFits(int64_t now) {
    std::set<int64_t> failed;
    while (true) {
      const Line::value_type* first = nullptr;
      int64_t gpus = 0;
      for (const auto& [size, line] : waiting_) {
        if (line.empty() || failed.contains(size)) continue;
        if (first == nullptr || *line.begin() < *first) {
          first = &*line.begin();
          gpus = size;
        }
      }
      if (first == nullptr) return;
      const size_t job = first->second;
      std::optional<std::vector<size_t>> nodes = pool_.Take(PodsOf(trace_.jobs[job]));
      if (!nodes.has_value()) {
        if (policy_.strict) return;
        failed.insert(gpus);
        continue;
      }
      nodes_[job] = *std::move(nodes);
      result_.first_start_s[job] = now;
      result_.finish_s[job] = now + trace_.jobs[job].duration_s;
      running_.emplace(result_.finish_s[job], job);
      waiting_[gpus].erase(waiting_[gpus].begin());
    }
  }

  const PhillyTrace& trace_;
  const Policy policy_;
  Pool pool_;
  std::vector<std::vector<size_t>> nodes_;  // by job, while it runs
  std::map<int64_t, Line> waiting_;         // by GPUs
  using End = std::pair<int64_t, size_t>;   // (time, job)
  std::priority_queue<End, std::vector<End>, std::greater<>> running_;
  PhillyResult result_;
};

}  // namespace

PhillyResult RunPolicy(const PhillyTrace& trace, int64_t gpus, const Policy& policy) {
  return Simulation(trace, gpus, policy).Run();
}

}  // namespace fairlead::replay
