// The current cluster, judged once: every kind is listed, the decision loop steps once, and its
// actions are kept for explanation instead of being carried out. Read-only.
//
// The view shows what the API server has: nodes that this step would request are omitted, and pods
// that it would place count as waiting (Plan names them).
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
#include "autoscale-hook/catalog/catalog.h"
#include "core/options.h"
#include "core/view.h"
#include "kube/transport/http.h"
#include "scheduler/model/cluster_event.h"

namespace fairlead::cmd {

// The next actions of the scheduler, if it runs.
struct Plan {
  std::map<std::string, std::string> bind;      // pod "namespace/name" -> node
  std::set<std::string> evict;                  // pods
  std::map<std::string, std::string> requests;  // node request -> instance type
};

struct Snapshot {
  core::View view;
  Plan plan;
  std::vector<model::NodeRequest> requests;  // as the API server has them, by name
  // Kinds that the server does not have, "NodePool (fairlead.dev/v1alpha1)".
  std::vector<std::string> missing_kinds;
  std::vector<std::string> notes;  // missing inputs of the judgement, in sentences
};

// Reads the usage of queues, if that is reported.
using FetchUsage = std::function<absl::StatusOr<model::UsageReport>(absl::Time now)>;

// All that a decision reads, at one time.
struct ClusterObjects {
  std::vector<model::ClusterEvent> events;  // as a reflector tells them; with the report of usage
  std::string usage;                        // as stored (core/usage_store.h)
  std::vector<std::string> missing_kinds, notes;  // as in Snapshot
};

// Lists the kinds that decisions with any of `options` read, of which there is at least one. The
// first one's history of usage is read. Sends GET requests only. Errors as TakeSnapshot.
absl::StatusOr<ClusterObjects> ReadCluster(kube::HttpTransport& transport,
                                           const std::vector<const core::Options*>& options,
                                           absl::Time now, const FetchUsage& fetch_usage = nullptr);

// Unavailable and other codes from the server. FailedPrecondition, with what to install, if the
// server has no queues. Without the history of usage, a note.
absl::StatusOr<Snapshot> TakeSnapshot(kube::HttpTransport& transport, const core::Options& options,
                                      const hook::Catalog& catalog, absl::Time now,
                                      const FetchUsage& fetch_usage = nullptr);

// As TakeSnapshot, for given objects and the stored usage of queues (core/usage_store.h).
absl::StatusOr<Snapshot> JudgeOnce(const std::vector<model::ClusterEvent>& events,
                                   const core::Options& options, const hook::Catalog& catalog,
                                   absl::Time now, const std::string& usage = {});

}  // namespace fairlead::cmd
