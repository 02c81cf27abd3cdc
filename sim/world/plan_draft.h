// What a random plan is drawn with: the plan so far, the names that later operations may refer to,
// and the dice. PlanDraft has the helpers, PlanWork the cluster with its queues and jobs,
// PlanTenants what people and their tools do to them; plan_random.cc adds faults.
//
// Determinism: one source of chance, drawn from in the order of the calls. Thread-safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "sim/faults.h"
#include "sim/world/plan.h"

namespace fairlead::sim::world {

inline constexpr int64_t kGiB = int64_t{1} << 30;
inline constexpr int64_t kSecond = 1000;

class PlanDraft {
 protected:
  explicit PlanDraft(uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15ULL + 1) {
    plan_.seed = seed;
  }

  [[nodiscard]] bool On(const char* family) const { return families_.contains(family); }
  bool OneIn(uint64_t n) { return random_.Below(n) == 0; }
  template <typename T>
  const T& Any(const std::vector<T>& of) {
    return of[random_.Below(of.size())];
  }
  // Some time of the plan, not in its first seconds.
  int64_t Sometime() { return random_.Between(5 * kSecond, plan_.end_ms - kSecond); }
  Operation& Add(int64_t at_ms, absl::string_view verb) {
    Operation& operation = plan_.operations.emplace_back();
    operation.at_ms = at_ms;
    operation.verb = std::string(verb);
    return operation;
  }
  // How often something happens: `low` to `high` times.
  void Times(int64_t low, int64_t high, const std::function<void()>& what) {
    for (int64_t n = random_.Between(low, high); n > 0; --n) what();
  }
  Random random_;
  bool crowded_ = false;  // many pods of one shape
  bool has_corners_ = false;
  Plan plan_;
  std::set<std::string, std::less<>> families_;
  std::vector<std::string> nodes_, queues_, jobs_;
  const std::vector<std::string> classes_ = {"train", "high", "build"};
};

class PlanWork : protected PlanDraft {
 protected:
  using PlanDraft::PlanDraft;
  void Cluster();
  void Bound(Operation& queue, const char* key, int64_t low, int64_t high, uint64_t one_in);
  void Queues();
  void Queue(Operation& queue, const std::string& name);
  Operation& Job(int64_t at_ms);
  void Work();
  void Burst();
};

// Families that are people's and their tools' doing.
class PlanTenants : protected PlanWork {
 protected:
  using PlanWork::PlanWork;
  void Tenants();
  void QueueChanges();
  void Groups();
  void Hostile();
  void Odd();
  void Shares();
  void Budgets();
  // plan_names.cc
  void Names();
  // plan_placement.cc
  void NodeChanges();
  void BoundPods();
  void Classes();

 private:
  std::string HostileName();
  // A job of few pods; what it is, is added.
  Operation& Few(const std::string& name, int64_t pods);
  int64_t hostile_names_ = 0;
};

}  // namespace fairlead::sim::world
