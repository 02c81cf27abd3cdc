// The simulated API server: objects as JSON, with the rules that clients live by.
//
//  - Every change gets the next resource version (one counter for all types, as etcd has). Objects
//  get uid and
//    creationTimestamp; generation grows when spec changes; an update or patch that changes nothing
//    makes no version.
//  - Preconditions: metadata.uid and metadata.resourceVersion of updates and patches, preconditions
//  of deletions (409).
//  - Sub-resources: pods/status, pods/binding, pods/eviction (PodDisruptionBudgets: 429), /status
//  of custom resources.
//    A binding refuses a pod that has a node, is terminating, has gates, or is another uid; it
//    merges annotations and labels.
//  - Patches: JSON patch with tests, merge patch, strategic merge patch (as far as clients here use
//  it: conditions by type), apply.
//  - Finalizers and grace periods: a deletion stamps deletionTimestamp; the object goes when the
//  last finalizer has gone and, for
//    pods on a node, when the kubelet says so.
//  - Lists with limit and continue, watches from a version with bookmarks and sendInitialEvents,
//  410 when the version is older than
//    the history or `Compact` was called.
//  - Core kinds are answered in protobuf where the client accepts it, so that the product's own
//  wire decoders run.
//
// Actors of the world change objects through Create, Modify and Remove; clients through Handle and
// OpenWatch. Both go the same way.
//
// Ownership: owns the objects; borrows time. Thread-safety: none, one thread. Determinism: uids and
// versions are counters, iteration is by key. Complexity: O(log n) an access, O(size of the object)
// a change, O(watches) a change.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "kube/transport/http.h"
#include "sim/event_queue.h"
#include "sim/world/json.h"
#include "sim/world/resource_types.h"

namespace fairlead::sim::world {

class ApiServer {
 public:
  explicit ApiServer(EventQueue* time);
  ~ApiServer();

  // ---- clients ---------------------------------------------------------------------------------
  // One request that is not a watch. What it commits is committed when this returns. Any path or
  // verb that is not implemented is answered 501 and remembered in `unimplemented()`: the harness
  // fails a world in which that happened.
  kube::HttpResponse Handle(const kube::HttpRequest& request, absl::string_view client);

  // What a watch sends, in order. `data` is one frame, in the encoding that was negotiated.
  struct WatchSink {
    std::function<void(int status, std::string content_type)> headers;
    std::function<void(std::string data)> data;
    std::function<void()> end;  // the server ends the stream; nothing follows
  };
  using WatchId = uint64_t;
  WatchId OpenWatch(const kube::HttpRequest& request, WatchSink sink);
  void CloseWatch(WatchId watch);
  // Ends streams as a server that restarts does.
  void EndAllWatches();
  // Whether new objects of a custom type get an empty status. At first as crds/ has it: PodGroups
  // and NodeRequests do. KAI's own CRD of PodGroups does not.
  void DefaultStatus(ResourceType type, bool has_default);
  // Forgets history up to now: watches that begin before it are answered 410, lists with an old
  // continue token too.
  void Compact();

  // ---- actors ----------------------------------------------------------------------------------
  // Null if there is none. Valid until that object changes. `ns` empty for cluster-wide types.
  [[nodiscard]] const Json* Find(ResourceType type, absl::string_view ns,
                                 absl::string_view name) const;
  // By namespace and name. The callback may not change objects of this type.
  void ForEach(ResourceType type, const std::function<void(const Json&)>& use) const;
  [[nodiscard]] size_t Count(ResourceType type) const;

  // AlreadyExists. Fields that the server owns are set here.
  absl::Status Create(ResourceType type, Json object, absl::string_view actor);
  // `change` alters a copy, spec and status alike; NotFound, or what `change` returns, and then
  // nothing is changed.
  absl::Status Modify(ResourceType type, absl::string_view ns, absl::string_view name,
                      const std::function<absl::Status(Json&)>& change, absl::string_view actor);
  // As DELETE with that grace period (seconds; absent: the object's own). NotFound.
  absl::Status Remove(ResourceType type, absl::string_view ns, absl::string_view name,
                      absl::string_view actor, int64_t grace_seconds = -1);
  // The kubelet's last word on a pod, and garbage collection: gone now, finalizers or not.
  absl::Status RemoveNow(ResourceType type, absl::string_view ns, absl::string_view name,
                         absl::string_view actor);

  // ---- onlookers --------------------------------------------------------------------------------
  struct Commit {
    ResourceType type;
    const Json* before;       // null: created
    const Json* after;        // null: gone
    absl::string_view actor;  // client of Handle, or actor
    uint64_t version;
  };
  // Called within every change, after it, in the order of registration; it must not change objects:
  // it asks `time` to do so.
  void Listen(std::function<void(const Commit&)> listener);

  // A webhook of the cluster answers 403 to bindings of pods of this name.
  void RefuseBinding(const std::string& pod) { refused_bindings_.insert(pod); }
  [[nodiscard]] const std::set<std::string>& refused_bindings() const { return refused_bindings_; }
  // The same for what clients write to the status of ResourceClaims, and to
  // PersistentVolumeClaims, whose names begin with this.
  void RefuseClaims(const std::string& prefix) { refused_claims_.insert(prefix); }
  [[nodiscard]] bool RefusesClaim(absl::string_view name) const;
  [[nodiscard]] bool RefusesAnyClaim() const { return !refused_claims_.empty(); }
  // Called before a client's request is handled, in the order of registration; it may change
  // objects, as a faster client does.
  void Precede(std::function<void(const kube::HttpRequest&)> hurry) {
    hurries_.push_back(std::move(hurry));
  }

  [[nodiscard]] uint64_t version() const;
  [[nodiscard]] const std::vector<std::string>& unimplemented() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
  std::vector<std::function<void(const kube::HttpRequest&)>> hurries_;
  std::set<std::string> refused_bindings_, refused_claims_;
};

}  // namespace fairlead::sim::world
