// The cluster as it is now, judged once: every kind is listed, the decision loop steps once, and
// what it would do is kept for explanation instead of being done. Read-only.
//
// What the view shows is what stands on the API server: nodes that this step would only now order
// are left out of it, and pods that it would only now place count as waiting (Plan names them).
//
// Thread-safety: pure function of the server. Complexity: O(everything).
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "autoscale-hook/catalog.h"
#include "core/options.h"
#include "core/view.h"
#include "kube/transport/http.h"
#include "scheduler/model/cluster_event.h"

namespace fairlead::cmd {

// What the scheduler would do next, if it runs.
struct Plan {
  std::map<std::string, std::string> bind;      // pod "namespace/name" -> node
  std::set<std::string> evict;                  // pods
  std::map<std::string, std::string> requests;  // node request -> instance type
};

struct Snapshot {
  core::View view;
  Plan plan;
  std::vector<model::NodeRequest> requests;  // as they stand, by name
  // Kinds that the server does not have, "NodePool (fairlead.dev/v1alpha1)".
  std::vector<std::string> missing_kinds;
  std::vector<std::string> notes;  // what was judged without, in sentences
};

// Asks for what queues have used, where that is reported.
using FetchUsage = std::function<absl::StatusOr<model::UsageReport>(absl::Time now)>;

// Unavailable and so on as the server says. FailedPrecondition, with what to install, if the server
// does not know queues. Without the history of usage, a note.
absl::StatusOr<Snapshot> TakeSnapshot(kube::HttpTransport& transport, const core::Options& options,
                                      const hook::Catalog& catalog, absl::Time now,
                                      const FetchUsage& fetch_usage = nullptr);

// The same of objects at hand, and of the usage of queues as it is stored (core/usage_store.h).
absl::StatusOr<Snapshot> JudgeOnce(const std::vector<model::ClusterEvent>& events,
                                   const core::Options& options, const hook::Catalog& catalog,
                                   absl::Time now, const std::string& usage = {});

}  // namespace fairlead::cmd
