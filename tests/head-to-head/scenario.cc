#include "tests/head-to-head/scenario.h"

#include <utility>

namespace fairlead::head_to_head {
namespace {

// A queue of 8 GPUs, and four jobs of 8: one runs after the other.
Scenario AtItsLimit() {
  Scenario s{"queue-limit", "4 jobs of 8 GPUs in a queue that may use 8 GPUs", {}, {}, 4};
  s.queues = {{"team", "", 8}};
  for (const char* name : {"a", "b", "c", "d"}) s.jobs.push_back({name, "team", 1, 8, 8, 32, 10});
  return s;
}

// The fourth pod never comes.
Scenario IncompleteGang() {
  Scenario s{"incomplete-gang", "3 pods of 8 GPUs, of a gang that needs 4", {}, {}, 0, 45};
  s.queues = {{"team", ""}};
  s.jobs = {{"gang", "team", 3, 8, 8, 32, 20, 4}};
  return s;
}

Scenario GangOf64() {
  Scenario s{"gang-64", "a gang of 64 pods of 1 GPU", {}, {}, 64};
  s.queues = {{"team", ""}};
  s.jobs = {{"gang", "team", 64, 1, 4, 16, 20, 64}};
  return s;
}

Scenario Burst() {
  Scenario s{"burst", "120 pods of four sizes at once", {}, {}, 120};
  s.queues = {{"team", ""}};
  s.jobs = {{"small", "team", 60, 1, 4, 16, 20},
            {"middle", "team", 20, 2, 8, 32, 20},
            {"large", "team", 10, 4, 16, 64, 20},
            {"plain", "team", 30, 0, 2, 8, 20}};
  return s;
}

// Two teams with a sweep of 64 jobs each, 32 GPUs a team and 48 together.
Scenario TwoSweeps() {
  Scenario s{"two-sweeps", "2 sweeps of 64 jobs of 1 GPU; 32 GPUs a team, 48 together", {}, {}, 128,
             240};
  s.queues = {{"dept", "", 48}, {"a", "dept", 32}, {"b", "dept", 32}};
  s.jobs = {{"sweep-a", "a", 64, 1, 4, 16, 10}, {"sweep-b", "b", 64, 1, 4, 16, 10}};
  return s;
}

// The type with the cheapest GPU cannot be had; the next one costs 3 % more per GPU.
Scenario StockOut() {
  Scenario s{"stock-out", "24 jobs of 1 GPU, and gpu-8 is out of stock", {}, {}, 24};
  s.queues = {{"team", ""}};
  s.jobs = {{"job", "team", 24, 1, 4, 16, 20}};
  s.out_of_stock = {"gpu-8"};
  return s;
}

Scenario DrySpell() {
  Scenario s{"dry-spell", "24 jobs of 1 GPU; no type with GPUs is in stock for 20 s", {}, {}, 24};
  s.queues = {{"team", ""}};
  s.jobs = {{"job", "team", 24, 1, 4, 16, 20}};
  s.out_of_stock = {"gpu-1", "gpu-4", "gpu-8"};
  s.out_of_stock_seconds = 20;
  return s;
}

// Team a uses what team b leaves, until b's gang reclaims its quota.
Scenario TwoTeamDay() {
  Scenario s{"two-team-day",
             "104 GPUs, a quota of 52 for each of two teams: 3 sweeps of 64 jobs, a gang of 32 and "
             "8 interactive pods arrive within 130 s",
             {},
             {},
             232,
             330};
  s.queues = {{"dept", "", -1, 104}, {"a", "dept", -1, 52}, {"b", "dept", -1, 52}};
  s.gpu_cap = 104;
  s.jobs = {{"sweep-a1", "a", 64, 1, 4, 16, 60},
            {"notebook-b", "b", 4, 1, 4, 16, 90, 0, 5, false},
            {"sweep-a2", "a", 64, 1, 4, 16, 60, 0, 20},
            {"gang-b", "b", 32, 1, 4, 16, 40, 32, 40},
            {"sweep-b", "b", 64, 1, 4, 16, 30, 0, 90},
            {"notebook-a", "a", 4, 1, 4, 16, 30, 0, 130, false}};
  return s;
}

}  // namespace

std::vector<Scenario> Scenarios(const std::string& name) {
  std::vector<Scenario> found;
  for (Scenario& scenario :
       std::vector<Scenario>{AtItsLimit(), IncompleteGang(), GangOf64(), Burst(), TwoSweeps(),
                             StockOut(), DrySpell(), TwoTeamDay()}) {
    if (name.empty() || scenario.name == name) found.push_back(std::move(scenario));
  }
  return found;
}

}  // namespace fairlead::head_to_head
