// Lists the pods of nodes that are to be removed (DecisionLoop::AwaitedNodes): one small list per
// node, by the field selector spec.nodeName, instead of all pods of the cluster. The watch of pods
// gets kDelay to answer by itself; a list that did not decide, or failed, is repeated after kPause.
//
// Ownership: the transport outlives it; answers come as tasks, and none comes after its end.
// Thread-safety: the owner's thread. Complexity: O(awaited nodes) per Poll.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cmd/fairlead/app/owner_calls.h"
#include "cmd/fairlead/app/task_queue.h"
#include "kube/transport/http.h"
#include "scheduler/model/pod.h"

namespace fairlead::cmd {

class NodePodsReader {
 public:
  static constexpr absl::Duration kDelay = absl::Seconds(1);
  static constexpr absl::Duration kPause = absl::Seconds(5);
  static constexpr int kAtOnce = 16;  // lists in flight

  // Called with each complete list and its version. Ended pods are left out.
  using Found = std::function<void(const std::string& node, const std::string& version,
                                   const std::vector<model::Pod>& pods)>;
  // Called for every list that failed.
  using Failed = std::function<void(const std::string& node, const absl::Status& why)>;

  NodePodsReader(kube::HttpTransport* transport, std::shared_ptr<TaskQueue> tasks, Found found,
                 Failed failed)
      : calls_(transport, std::move(tasks)), found_(std::move(found)), failed_(std::move(failed)) {}

  // Starts the lists that are due. Other nodes than `nodes` are forgotten.
  void Poll(const std::set<std::string>& nodes, absl::Time now);
  // When Poll has something to do; infinite future: it waits for an answer, or for nodes.
  [[nodiscard]] absl::Time wake_at() const;

 private:
  struct Row {
    uint64_t reading = 0;  // the list in flight; 0: none
    absl::Time next;
  };
  void Read(const std::string& node, uint64_t id);
  void OnAnswer(const std::string& node, uint64_t id,
                const absl::StatusOr<kube::HttpResponse>& answer);

  OwnerCalls calls_;
  const Found found_;
  const Failed failed_;
  std::map<std::string, Row> rows_;  // by name of the node
  int in_flight_ = 0;                // also for nodes that are no longer awaited
  uint64_t last_id_ = 0;
};

}  // namespace fairlead::cmd
