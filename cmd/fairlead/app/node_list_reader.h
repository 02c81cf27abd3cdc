// Lists all nodes for DecisionLoop::AwaitedNodeList, in pages that show the same moment. One
// attempt per number: the hook asks again with another one. A full list, because no selector finds
// nodes by their providerID.
//
// Ownership: the transport outlives it; answers come as tasks, and none comes after its end.
// Thread-safety: the owner's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "autoscale-hook/machines/node_lists.h"
#include "cmd/fairlead/app/owner_calls.h"
#include "cmd/fairlead/app/task_queue.h"
#include "kube/transport/http.h"

namespace fairlead::cmd {

class NodeListReader {
 public:
  static constexpr int kPageSize = 500;
  static constexpr absl::Duration kTimeout = absl::Seconds(15);  // of a page

  // The complete list, or why there is none.
  using Done = std::function<void(uint64_t number, absl::StatusOr<std::vector<hook::ListedNode>>)>;

  NodeListReader(kube::HttpTransport* transport, std::shared_ptr<TaskQueue> tasks, Done done)
      : calls_(transport, std::move(tasks)), done_(std::move(done)) {}

  // Begins the list of that number, if it is a later one than the last; one that is in flight still
  // is given up.
  void Poll(uint64_t number);

 private:
  void ReadPage();
  void OnAnswer(uint64_t number, const absl::StatusOr<kube::HttpResponse>& answer);

  OwnerCalls calls_;
  const Done done_;
  uint64_t number_ = 0;  // of the last list
  std::string continue_token_;
  std::vector<hook::ListedNode> nodes_;
};

}  // namespace fairlead::cmd
