// Reads what extenders are told from the API server: pods, and all nodes, as JSON text.
//
// The nodes are read from the server's watch cache (resourceVersion=0), as the watches of a
// scheduler are. One list serves everything that asks for nodes within kNodeListAge after the
// request for the list was sent, and everything that asks before the list has come.
//
// Errors: NotFound (no such pod), FailedPrecondition (a pod of that name with another uid),
// Cancelled, and Unavailable for everything else.
// Ownership: `api` and `clock` are not used after Close. The reader is held by its calls.
// Thread-safety: any thread. Callbacks run on the I/O thread of `api`; or in the thread that calls,
// if the list is there or the reader is closed. Complexity: O(bytes).
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "kube/transport/http.h"

namespace fairlead::extenders {

// The text of each node, by name.
using NodeTexts = absl::flat_hash_map<std::string, std::string>;
using NodeTextsPtr = std::shared_ptr<const NodeTexts>;

class ApiReader : public std::enable_shared_from_this<ApiReader> {
 public:
  static constexpr absl::Duration kNodeListAge = absl::Seconds(1);

  using PodDone = std::function<void(absl::StatusOr<std::string>)>;
  using NodesDone = std::function<void(absl::StatusOr<NodeTextsPtr>)>;

  ApiReader(kube::HttpTransport* api, const Clock* clock) : api_(api), clock_(clock) {}

  void ReadPod(const std::string& ns, const std::string& name, const std::string& uid,
               PodDone done);
  void ReadNodes(NodesDone done);
  // Everything from now on ends with Cancelled.
  void Close();

 private:
  void OnNodes(const absl::StatusOr<kube::HttpResponse>& answer);

  std::mutex mutex_;          // guards the rest
  kube::HttpTransport* api_;  // null: closed
  const Clock* clock_;
  NodeTextsPtr nodes_;                                       // the last list
  absl::Duration listed_at_ = -absl::InfiniteDuration();     // when its request was sent
  absl::Duration requested_at_ = -absl::InfiniteDuration();  // the same, of the list to come
  std::vector<NodesDone> waiting_;                           // for the list to come
};

}  // namespace fairlead::extenders
