// The simulated provider: carries out LaunchNode and TerminateNode in virtual time. Idempotent by
// the name of the request. A machine boots, its node registers (not ready, without its GPUs, with
// its startup taints) and becomes usable, unless a fault point or the scenario prevents it.
//
// Answers are classified as in autoscale-hook/provisioning/failure.h: a stock-out is
// ResourceExhausted, a lost answer is Unavailable.
//
// Ownership: borrows everything. Thread-safety: none, one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "scheduler/model/action.h"
#include "sim/api_server.h"
#include "sim/event_queue.h"
#include "sim/faults.h"

namespace fairlead::sim {

struct CloudOptions {
  absl::Duration boot_delay = absl::Seconds(90);  // launched -> registered
  std::map<std::string, absl::Duration> boot_delay_by_type;
  absl::Duration ready_delay = absl::Seconds(30);      // registered -> ready
  absl::Duration terminate_delay = absl::Seconds(10);  // request -> the Node object is gone
  // Nodes are named "ip-10-0-0-N" instead of by their requests.
  bool own_node_names = false;
  // Of the announced memory.
  int64_t memory_percent = 100;
};

class Cloud {
 public:
  Cloud(EventQueue* queue, ApiServer* server, Faults* faults, CloudOptions options);

  absl::Status Launch(const model::LaunchNode& launch);
  absl::Status Terminate(const model::TerminateNode& terminate);

  // A machine that exists already; TerminateNode ends it.
  void Adopt(const std::string& request_name, const std::string& instance_type,
             const std::string& node_name);

  // The type is unavailable in the zone ("": in any) until then.
  void AddStockout(std::string instance_type, std::string zone, absl::Time until);
  // The next `count` launches are accepted and their machines never come.
  void LoseNextLaunches(int64_t count) { lost_launches_ += count; }
  // The next `count` machines take `factor` times as long.
  void DelayNextLaunches(int64_t count, int64_t factor);
  // The machine disappears without notice (a reclaimed spot machine, a power failure). NotFound if
  // there is no such node.
  absl::Status Kill(const std::string& node_name);

  // Machines that exist or boot, by request name: the ones that cost money.
  struct Machine {
    std::string instance_type, node_name;
    bool arrives = true;  // false: accepted, and no machine will come
  };
  [[nodiscard]] const std::map<std::string, Machine>& machines() const { return machines_; }
  [[nodiscard]] int64_t launched() const { return launched_; }

 private:
  bool InStock(const std::string& type, const std::string& zone) const;
  void Register(const std::string& request, model::Node node, const std::string& pool);
  void BecomeReady(const std::string& request, const model::Node& promised,
                   const std::string& pool);

  struct Stockout {
    std::string instance_type, zone;
    absl::Time until;
  };
  EventQueue* queue_;
  ApiServer* server_;
  Faults* faults_;
  CloudOptions options_;
  std::map<std::string, Machine> machines_;
  std::vector<Stockout> stockouts_;
  int64_t launched_ = 0, lost_launches_ = 0, late_launches_ = 0, late_factor_ = 1;
};

}  // namespace fairlead::sim
