// A plan: what happens in a world, and when. A list of operations, one a line, so that a failing
// plan is printed, shortened by leaving operations out, and replayed exactly:
//
//   # seed 17
//   0 node name=n0 cpu=16000 memory=68719476736 gpu=8
//   2500 job name=j1 ns=team-a queue=q1 pods=4 min=4 gpu=1
//   61000 crash replica=a
//
// Times are milliseconds since the world began. An operation on an object that is not there does
// nothing, so any subset of a plan is a plan.
//
// Thread-safety: plain values, pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fairlead::sim::world {

struct Operation {
  int64_t at_ms = 0;
  std::string verb;
  std::vector<std::pair<std::string, std::string>> arguments;

  Operation& With(absl::string_view key, absl::string_view value);
  Operation& With(absl::string_view key, int64_t value);
  [[nodiscard]] std::string Text(absl::string_view key) const;  // "" where absent
  [[nodiscard]] int64_t Number(absl::string_view key, int64_t otherwise = 0) const;
};

struct Plan {
  uint64_t seed = 0;   // of everything that the operations leave open: delays, losses, ties
  int64_t end_ms = 0;  // all faults end here; the settle phase begins
  bool hook = true;    // whether the autoscaler is on
  // What the hook may hold.
  int64_t max_nodes = 40, max_usd_per_hour = 40;
  bool paced = false;                 // evictions go out at one a second
  bool empties = false;               // nodes whose pods have room elsewhere are emptied
  bool kai_status = false;            // the program writes what KAI's controllers count
  bool sharded = false;               // the program has the shard without a label alone
  int64_t max_search_work = 0;        // of a cycle (engine::EngineOptions); 0: its default
  std::vector<Operation> operations;  // by time
};

std::string PrintOperation(const Operation& operation);
std::string PrintPlan(const Plan& plan);
// InvalidArgument with the line's number.
absl::StatusOr<Plan> ParsePlan(absl::string_view text);

// Whether the program groups pods by their owners: a job has grouping=owners. Then all have.
bool GroupsByOwners(const Plan& plan);

}  // namespace fairlead::sim::world
