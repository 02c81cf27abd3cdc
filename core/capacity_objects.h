// CapacityBuffers and ProvisioningRequests of autoscaling.x-k8s.io: what they ask for, and what
// they are told. There are no pods behind them; core/headroom.h looks for their room.
//
// A CapacityBuffer wants room for some pods of a PodTemplate to be free at any time, beside the
// pods that run: spec.replicas of them, or as many as spec.limits hold, or the lesser of both. A
// scalableRef is resolved by another controller, in status.podTemplateRef and status.replicas.
// Conditions ReadyForProvisioning (what it wants is understood) and Provisioning (it has room, or
// nodes are on their way).
//
// A ProvisioningRequest asks once. Class check-capacity: is there room for all of its pods now?
// Class best-effort-atomic-scale-up: the nodes that lack for all of them are provisioned, and none
// for a part. Conditions Accepted, Provisioned, Failed and BookingExpired, with the reasons of
// cluster-autoscaler. Its room is kept for the time of a booking, or until as many pods as it has
// say that they consume it and are bound; after that it is as free as before. Other classes and
// other strategies belong to other programs, and what the provider provisioning-request has made is
// a question to another program: nothing is written to such objects.
//
// Conditions of other types stay as they are. A write is repeated after a refusal or an unknown
// outcome (reconcile/condition_write.h).
//
// Ownership: borrows the state. Thread-safety: the owner's thread. Complexity: O(log objects) an
// event; Asks and Step O(objects). Determinism: in the order of Asks().
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/options.h"
#include "core/reconcile/condition_write.h"
#include "scheduler/model/action.h"
#include "scheduler/model/capacity_objects.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

// One object that wants room.
struct CapacityAsk {
  model::Kind kind = model::Kind::kCapacityBuffer;
  std::string key;  // "namespace/name"
  struct Pods {
    std::shared_ptr<const model::PodSpec> spec;
    int64_t count = 0;
  };
  std::vector<Pods> pods;
  std::string queue;         // the template's label, or empty: no queue is charged, caps of it hold
  bool atomic = false;       // all of them or none
  bool wants_nodes = false;  // nodes may be provisioned for what lacks room
  bool keeps_nodes = false;  // nodes with its room are not removed
  // Of a demand, as no workload of pods can be named.
  [[nodiscard]] std::string Name() const;
};

// What became of it.
struct CapacityAnswer {
  int64_t placed = 0, wanted = 0;  // pods with room, on nodes that there are or are on order
  bool usable = false;             // all of them on nodes that are there
  bool nodes_requested = false;    // for the rest
  std::string code, details;       // of the hook, about the rest
};

class CapacityObjects {
 public:
  CapacityObjects(const state::ClusterState& state, CapacityOptions options, Backoff backoff)
      : state_(state), options_(options), rules_{.backoff = backoff} {}

  // Each: whether a decision may be another.
  bool Upsert(const model::PodTemplate& pod_template);
  bool Upsert(const model::CapacityBuffer& buffer);
  bool Upsert(const model::ProvisioningRequest& request);
  // Of any of the three kinds. An empty uid: whichever is there.
  bool Remove(model::Kind kind, const std::string& ns, const std::string& name,
              const std::string& uid);
  // The annotation consume-provisioning-request of pods.
  bool PodSeen(const model::Pod& pod);
  bool PodGone(const std::string& ns, const std::string& name);

  // In the order of service: requests whose room is kept, those for which nodes are provisioned,
  // those that only check, each by age; then buffers by name. Faults are told.
  std::vector<CapacityAsk> Asks(absl::Time now);
  // The answer to one of the last Asks().
  void Answer(const CapacityAsk& ask, const CapacityAnswer& answer, absl::Time now);

  // Appends the conditions that are due.
  void Step(absl::Time now, std::vector<model::Action>& actions);
  void Answered(model::Kind kind, const std::string& key, const std::string& uid,
                const absl::Status& status, absl::Time now);
  // When Step(), or a decision, could say something else although nothing came.
  [[nodiscard]] absl::Time wake_at() const { return std::min(write_at_, decide_at_); }
  [[nodiscard]] absl::Time decide_at() const { return decide_at_; }
  [[nodiscard]] bool empty() const { return buffers_.empty() && requests_.empty(); }

 private:
  // The conditions of one object, as a value that is written whole.
  struct Status {
    std::vector<model::Condition> conditions;
    std::optional<model::SetConditions::Buffer> buffer;
    [[nodiscard]] bool SaysTheSame(const Status& other) const;
  };
  template <typename Object>
  struct Row {
    Object object;
    // What we say: these conditions in the place of those of their types; without status: there is
    // to be none. Empty: nothing is written.
    std::vector<model::Condition> says;
    std::optional<model::SetConditions::Buffer> buffer;
    ConditionWrite<Status> write;
    // Of a ProvisioningRequest: since when its room is kept; it is answered for good; nodes for it
    // are on their way.
    std::optional<absl::Time> provisioned_at;
    bool ended = false, ordered = false;
  };
  using Buffers = std::map<std::string, Row<model::CapacityBuffer>>;
  using Requests = std::map<std::string, Row<model::ProvisioningRequest>>;

  struct Template {
    model::PodTemplate object;
    std::shared_ptr<const model::PodSpec> spec;  // the same object while it is equal
  };
  // InvalidArgument, if its pods cannot be placed.
  [[nodiscard]] absl::StatusOr<Template*> Resolve(const std::string& ns, const std::string& name,
                                                  const std::string& field);
  [[nodiscard]] int64_t ConsumersOf(const std::string& request) const;
  [[nodiscard]] std::optional<CapacityAsk> AskOf(Row<model::CapacityBuffer>& row);
  [[nodiscard]] std::optional<CapacityAsk> AskOf(Row<model::ProvisioningRequest>& row,
                                                 absl::Time now);
  // False: it is over.
  bool Books(Row<model::ProvisioningRequest>& row, absl::Time now);
  template <typename Object>
  static void Say(Row<Object>& row, const char* type, const char* status, std::string reason,
                  std::string message);
  // What the object says with what we say.
  template <typename Object>
  [[nodiscard]] static Status Desired(const Row<Object>& row);
  template <typename Rows>
  void StepRows(Rows& rows, model::Kind kind, absl::Time now, std::vector<model::Action>& actions);

  const state::ClusterState& state_;
  const CapacityOptions options_;
  const WriteAttempts::Rules rules_;
  std::map<std::string, Template> templates_;  // these three by "namespace/name"
  Buffers buffers_;
  Requests requests_;
  // Of pods that consume a request: pod "namespace/name" -> (request, bound).
  std::map<std::string, std::pair<std::string, bool>> consumers_;
  absl::Time write_at_ = absl::InfiniteFuture(), decide_at_ = absl::InfiniteFuture();
};

}  // namespace fairlead::core
