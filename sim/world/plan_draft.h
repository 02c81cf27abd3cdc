// What a random plan is drawn with: the plan so far and the names that later operations may refer
// to. PlanWork draws the cluster with its queues and jobs, PlanTenants what people and their tools
// do to them; plan_random.cc adds faults.
//
// Determinism: one source of chance, drawn from in the order of the calls. Thread-safety: none.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sim/world/plan_dice.h"

namespace fairlead::sim::world {

class PlanDraft : protected PlanDice {
 protected:
  PlanDraft(uint64_t seed, Plan& plan) : PlanDice(seed * 0x9e3779b97f4a7c15ULL + 1, plan) {
    plan_.seed = seed;
  }

  [[nodiscard]] bool On(const char* family) const { return families_.contains(family); }
  bool crowded_ = false;  // many pods of one shape
  bool has_corners_ = false;
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
