#include "scheduler/engine/unfold.h"

#include <map>
#include <string>
#include <utility>

namespace fairlead::engine {
namespace {

// A verdict of which somebody behind its owner is the next to bear it.
struct Behind {
  Waiting entry;  // of the one before
  CrowdRest rest;
};
struct ByNext {
  bool operator()(const Behind& a, const Behind& b) const { return *a.rest.next < *b.rest.next; }
};

class Unfolding {
 public:
  explicit Unfolding(const state::ClusterState& state) : state_(state) {}

  void Add(Waiting entry, const CrowdRest& rest) {
    if (rest.crowd != nullptr) behind_[entry.verdict.queue].insert({entry, rest});
    entry.behind = 0;
    entry.verdict.position = ++positions_[entry.verdict.queue];
    all_.push_back(std::move(entry));
  }
  // Those of the queue that stand before `until`; null: all.
  void AddBehind(const std::string& queue, const ServiceKey* until) {
    const auto found = behind_.find(queue);
    if (found == behind_.end()) return;
    while (!found->second.empty()) {
      auto first = found->second.extract(found->second.begin());
      Behind& row = first.value();
      if (until != nullptr && *until < *row.rest.next) {
        found->second.insert(std::move(first));
        return;
      }
      const state::Workload& workload = state_.workload(row.rest.next->workload);
      ++row.rest.next;
      row.entry.workload = workload.id;
      row.entry.pods = {{workload.pods.front()}};
      Waiting entry = row.entry;
      const bool more = row.rest.next != row.rest.crowd->members.end();
      if (more) found->second.insert(std::move(first));
      Add(std::move(entry), {});
    }
  }
  std::vector<Waiting> Take() { return std::move(all_); }

 private:
  const state::ClusterState& state_;
  std::map<std::string, std::multiset<Behind, ByNext>> behind_;  // by queue
  std::map<std::string, int64_t> positions_;
  std::vector<Waiting> all_;
};

}  // namespace

std::vector<Waiting> Unfold(const state::ClusterState& state,
                            const std::function<CrowdRest(const Waiting&)>& rest_behind,
                            std::vector<Waiting> waiting) {
  std::map<std::string, size_t> left;
  for (const Waiting& entry : waiting) ++left[entry.verdict.queue];
  Unfolding unfolding(state);
  for (Waiting& entry : waiting) {
    const std::string queue = entry.verdict.queue;
    const ServiceKey key = MakeServiceKey(state.workload(entry.workload));
    unfolding.AddBehind(queue, &key);
    const CrowdRest rest = rest_behind(entry);
    unfolding.Add(std::move(entry), rest);
    if (--left[queue] == 0) unfolding.AddBehind(queue, nullptr);
  }
  return unfolding.Take();
}

}  // namespace fairlead::engine
