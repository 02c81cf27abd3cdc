// The workload of a journal: what came when, and how long it ran. For `fairlead what-if --journal`.
//
// A journal has the events of a cluster that reacted to its scheduler's decisions, so it cannot be
// played as it is under other decisions. What does not depend on them is taken from it:
//   - each pod of ours: when it came, what it asks for, its queue and group, and for how long it
//     ran after it had got a node. A pod that was evicted and the pod that its controller made in
//     its place are one job; it ran for as long as the last of them.
//   - queues, node pools, priority classes, topologies, namespaces and pod groups, as they
//     changed; the nodes of others, and the pods of other schedulers on them.
// Nodes that Fairlead had provisioned, disruption budgets, claims, volumes and reports of usage are
// not.
//
// Errors: InvalidArgument and FailedPrecondition as of journal/player.h: the journal is played, to
// know what was evicted. Thread-safety: none. Complexity: that of the decisions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "journal/loop_driver.h"
#include "scheduler/model/cluster_event.h"
#include "sim/cluster.h"

namespace fairlead::cmd {

struct RecordedJob {
  model::Pod pod;  // as a template
  std::string queue;
  absl::Time arrived;
  std::optional<absl::Time> started;  // absent: it never got a node
  std::optional<absl::Duration> ran;  // absent: it had not ended
  int64_t evictions = 0;
  bool left_out_claims = false;  // it had claims or volumes
};

// Something else that changed.
struct RecordedChange {
  absl::Time at;
  std::optional<model::Object> applied;  // absent: deleted
  sim::ObjectRef ref;
};

struct RecordedWeek {
  journal::Start start;  // of the first journal
  absl::Time from, to;
  std::vector<RecordedJob> jobs;        // in the order of their arrival
  std::vector<RecordedChange> changes;  // by time
};

class WeekReader {
 public:
  explicit WeekReader(journal::ReadOptions read);

  absl::Status Take(absl::string_view record);
  // After the last record. FailedPrecondition without any step.
  absl::StatusOr<RecordedWeek> Finish();

 private:
  struct Life {
    size_t job = 0;
    bool bound = false, ended = false, evicted = false;
    bool made_way = false;  // for the next pod of its controller
  };

  void Upserted(const model::Object& object);
  // Its end is not its own: it, or its successor, would run on.
  void Evicted(const std::string& uid);
  void Deleted(const model::Delete& gone);
  void PodUpserted(const model::Pod& pod);
  void MakeWay(const std::string& uid, Life& life);
  void PodEnded(const std::string& uid);
  void ForeignPod(const model::Pod& pod);
  void Changed(model::Object object);
  [[nodiscard]] bool IsOurs(const model::Pod& pod) const;
  // The job that the pod goes on with, or a new one.
  size_t JobOf(const model::Pod& pod);

  const std::shared_ptr<journal::DerivedTable> derived_;  // of a redacted journal
  journal::LoopDriver driver_;
  RecordedWeek week_;
  std::optional<absl::Time> now_;
  std::map<std::string, Life> lives_;                        // by uid, of pods of ours
  std::map<std::string, std::vector<size_t>> to_come_back_;  // jobs by uid of the owner
  std::map<std::string, std::string> owner_of_;              // by uid of the pod
  std::map<size_t, std::string> pod_of_;                     // uid of the last one, by job
  std::map<std::string, std::string> last_;                  // kind and key: what it was, as bytes
  std::set<std::string> foreign_pods_, foreign_nodes_;
};

}  // namespace fairlead::cmd
