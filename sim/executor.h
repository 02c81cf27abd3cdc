// Carries out the actions of the core in virtual time. Each takes a while, is committed by the API
// server or the provider, and is answered by one model::ActionResult. Actions about one object keep
// their order. Fault points make writes slow, lose them, or lose their answers.
//
// Ownership: borrows everything. Thread-safety: none, one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "autoscale-hook/machines/node_lists.h"
#include "scheduler/model/action.h"
#include "sim/api_writes.h"
#include "sim/cloud.h"
#include "sim/event_queue.h"
#include "sim/faults.h"
#include "sim/watch.h"

namespace fairlead::sim {

struct ExecutorOptions {
  absl::Duration write_latency = absl::Milliseconds(10);      // decision -> committed
  absl::Duration answer_latency = absl::Milliseconds(10);     // committed -> answered
  absl::Duration provider_latency = absl::Milliseconds(800);  // of a call to the provider
};

class Executor {
 public:
  Executor(EventQueue* queue, ApiServer* server, Cloud* cloud, Faults* faults, Watch* watch,
           ExecutorOptions options);

  void Execute(std::vector<model::Action> actions);
  // The nodes with a providerID or a request's label, after the latency of a write; or an error.
  using Listed = std::function<void(absl::StatusOr<std::vector<hook::ListedNode>>)>;
  void ListNodes(Listed listed);
  // The requesting process died: actions in flight happen now or never, and get no answer.
  void Abandon();

  // Called at each commit with the true outcome (a lost answer says less).
  using Observer = std::function<void(const model::Action&, const absl::Status&)>;
  void Observe(Observer observer) { observer_ = std::move(observer); }
  // Every write takes that much longer until then.
  void SlowDown(absl::Duration extra, absl::Time until);

  [[nodiscard]] size_t in_flight() const { return pending_.size(); }
  [[nodiscard]] const ApiWrites& writes() const { return writes_; }

 private:
  void Submit(model::Action action);
  void Run(uint64_t ticket);
  absl::Status Commit(const model::Action& action);

  EventQueue* queue_;
  ApiServer* server_;
  Cloud* cloud_;
  Faults* faults_;
  Watch* watch_;
  ExecutorOptions options_;
  ApiWrites writes_;
  Observer observer_;
  absl::Duration slow_extra_ = absl::ZeroDuration();
  absl::Time slow_until_ = absl::InfinitePast();
  uint64_t next_ticket_ = 0;
  std::map<uint64_t, model::Action> pending_;      // by ticket: in the order of submission
  std::map<std::string, absl::Time> last_commit_;  // by object
};

}  // namespace fairlead::sim
