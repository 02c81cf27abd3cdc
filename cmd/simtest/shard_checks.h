// The invariant about what belongs to another shard of the cluster; checks.h lists it with the
// others. That its pods are not waited for and its nodes not bound to, the truth sees to: pods of
// it are not ours, and its nodes count as closed by others.
//
// Ownership: borrows. Thread-safety: none, one thread. Complexity: O(log objects) a commit.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "sim/event_queue.h"
#include "sim/world/api_server.h"

namespace fairlead::simtest {

class ShardChecks {
 public:
  using Fail = std::function<void(const std::string& invariant, const std::string& text)>;
  ShardChecks(const sim::EventQueue* time, Fail fail) : time_(time), fail_(std::move(fail)) {}

  // Of any client. `of_fairlead`: of Fairlead. `known`: what was committed before this has
  // reached it.
  void OnCommit(const sim::world::ApiServer::Commit& commit, bool of_fairlead, absl::Time known);

 private:
  const sim::EventQueue* time_;
  Fail fail_;
  std::map<std::string, absl::Time> others_since_;  // objects of the other shard, by uid
};

}  // namespace fairlead::simtest
