// What is submitted in a head-to-head run, and what it means: the same objects for every side.
//
// Thread-safety: values.
#pragma once

#include <string>
#include <vector>

namespace fairlead::head_to_head {

struct Queue {
  std::string name, parent;
  int gpu_limit = -1;  // -1: none
  int gpu_quota = -1;  // -1: no bound
};

// Equal pods, or one gang of them.
struct Job {
  std::string name, queue;
  int pods = 1;
  int gpus = 0, cpu = 1, memory_gib = 4;  // of a pod
  int run_seconds = 20;
  int gang = 0;             // pods that have to start together; 0: each runs alone
  int after_seconds = 0;    // submitted then
  bool preemptible = true;  // else in its queue's quota alone, and never evicted
};

struct Scenario {
  std::string name, what;
  std::vector<Queue> queues;
  std::vector<Job> jobs;
  int may_run = 0;  // pods that policy and gangs let run in the end
  int patience_seconds = 150;
  int gpu_cap = 0;                             // that the side may hold together; 0: no bound
  std::vector<std::string> out_of_stock = {};  // instance types
  int out_of_stock_seconds = 0;                // from the start; 0: to the end
};

// By name; empty: all.
std::vector<Scenario> Scenarios(const std::string& name);

}  // namespace fairlead::head_to_head
