// Tracks shared GPUs: which ones a reservation pod holds, which pods wait for one, and which ones
// no pod uses any more.
//
// A shared GPU is held by a reservation pod in a namespace of its own. That pod requests one whole
// GPU of the node from the kubelet and writes which one it got into its annotation
// kGpuIndexAnnotation (KAI's design and KAI's names; cmd/gpu-index is the program inside). A pod
// that was placed on a share is bound only when the device is known, because its environment names
// the device. Until then the pod is *held* here, and the state charges its capacity.
//
//   none ──requested──▶ creating ──seen──▶ no device yet ──annotation──▶ known ──▶ idle ──▶ deleted
//
// - Creations, deletions and config maps follow base/write_attempts.h. The name of a reservation
//   pod follows from node and group, so two requests make one pod; an answer 409 counts as OK.
//   KAI's reservation pods have other names and are recognised by their label.
// - The waiting pods fail, and the reservation pod is deleted, if there is no device within
//   index_timeout, the kubelet refused the pod, or the server refused the creation for certain.
// - A creation that no pod waits for any more may become a pod all the same: for kDoubtLasts, or
//   until the watch shows it, it counts as one that comes (Coming).
// - If no pod shares the GPU (neither in the state, nor by the label of any live pod), the
//   reservation pod is deleted after idle_grace.
// - The watch omits pods that have ended: a pod that vanishes without a device has failed. A pod
//   that exists (409) but is not seen within some seconds is a remainder, and deleted. (No pod can
//   have a device that the watch has not shown.)
// - If the reservation pod vanishes while pods that were bound here share the GPU, it is created
//   again, and each of them gets an event. No pod joins until then, nor if the new one has another
//   device.
// - No pod joins a GPU that is shared by pods of another scheduler without a visible reservation
//   pod. Such a GPU, and one that came back as another device, is *closed*: no pod is placed on it
//   while its present sharers run.
//
// Everything follows from pods that the watch shows: a restart loses only held bindings, which are
// decided again. A standby, which makes no step, says nothing and keeps what is there alone.
//
// Ownership: values. Thread-safety: the owner's thread. Complexity: a step costs what changed.
// Determinism: ordered maps; time comes in as an argument.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/derived_names.h"
#include "base/write_attempts.h"
#include "core/reconcile/binding_plugin.h"
#include "scheduler/model/action.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/pod.h"

namespace fairlead::core {

struct GpuSharingOptions {
  bool enabled = true;
  std::string ns = model::kReservationNamespace;
  std::string image = "fairlead";
  std::vector<std::string> command = {"fairlead-gpu-index"};  // empty: the image's
  std::string service_account = "fairlead-gpu-index";         // empty: the namespace's default
  std::string runtime_class;                                  // empty: the node's default
  absl::Duration index_timeout = absl::Seconds(40);           // KAI's
  absl::Duration idle_grace = absl::Seconds(10);
  std::shared_ptr<DerivedNames> derived_names = nullptr;  // of reservation pods
};

// "gpu-reservation-" and 16 digits.
std::string ReservationName(absl::string_view node, absl::string_view group);

class GpuReservations {
 public:
  // `backoff`: between attempts.
  GpuReservations(GpuSharingOptions options, Backoff backoff)
      : options_(std::move(options)),
        backoff_(backoff),
        creation_rules_{.backoff = backoff,
                        .silence = {options_.index_timeout, options_.index_timeout},
                        .unseen = {options_.index_timeout, options_.index_timeout}} {}

  // ---- events from the watch, every pod of the cluster
  void PodChanged(const model::Pod& pod);
  void PodGone(absl::string_view ns, absl::string_view name, absl::string_view uid);
  void NodeGone(absl::string_view node);

  // ---- decisions
  // The binding waits until the devices of all `groups` are known. `portion` is what of each the
  // pod has, as containers are told ("0.50").
  void Hold(model::BindPod bind, std::vector<std::string> groups, std::string portion);
  [[nodiscard]] bool Holds(absl::string_view ns, absl::string_view name) const;
  // The pod must not be bound any more, or its binding failed.
  void Drop(absl::string_view ns, absl::string_view name);

  // ---- answers to the actions of Step()
  void Created(const std::string& node, const std::string& group, const absl::Status& status,
               absl::Time now);
  void Deleted(const std::string& name, const absl::Status& status, absl::Time now);
  // `name`: of the config map.
  void ConfigMapApplied(absl::string_view ns, absl::string_view pod, absl::string_view uid,
                        const std::string& name, const absl::Status& status, absl::Time now);

  // ---- output of a step
  using Failure = BindingPlugin::Failure;
  // From now on pods may not join the group, or may again.
  struct Closing {
    std::string node, group;
    bool closed = false;
  };
  // A reservation pod that is being created and that no pod needs any more. It will take a GPU of
  // the node until it is deleted; or it is seen by now, or will not come.
  struct Coming {
    std::string ns, name, node, group;
    bool comes = false;
  };
  struct Outcome {
    std::vector<model::Action> actions;    // without ids
    std::vector<model::BindPod> bindings;  // completed; no longer held
    std::vector<Failure> failed;           // no longer held
    std::vector<Closing> closings;         // in order
    std::vector<Coming> coming;            // in order
  };
  // True if pods hold a share of the group, terminating and not yet bound ones included. False if
  // the node is gone.
  using InUse = std::function<bool(const std::string& node, const std::string& group)>;
  Outcome Step(absl::Time now, const InUse& in_use);
  // True if something changed, or a timer is due.
  [[nodiscard]] bool HasWork(absl::Time now) const;
  [[nodiscard]] absl::Time wake_at() const;
  // What the next step looks at, and what it says; groups that nothing holds any more included.
  [[nodiscard]] size_t queued() const { return touched_.size() + said_.size(); }
  [[nodiscard]] size_t groups() const { return groups_.size(); }

 private:
  using GroupKey = std::pair<std::string, std::string>;  // node, group
  // ReservationName(), or what stands for it.
  [[nodiscard]] std::string NameOf(const std::string& node, const std::string& group) const;
  static constexpr size_t kTrimFrom = 64;

  struct Reservation {
    std::string uid, device;
    bool ours = false;    // by its name
    bool ending = false;  // terminating
    bool failed = false;  // refused by the kubelet, or its program gave up for good
    absl::Time creation;
    WriteAttempts deletion;
    // True if it goes, or may be going.
    [[nodiscard]] bool Leaving() const { return ending || deletion.open(); }
  };
  struct Group {
    std::map<std::string, Reservation> pods;  // by name
    std::set<std::string> waiting;            // keys of held_
    WriteAttempts creation;
    // Since then the server says that the pod exists, and the watch does not show it.
    absl::Time unseen_since = absl::InfiniteFuture();
    // No pod waits for its creation any more, but what was sent may become a pod until then.
    absl::Time may_come_until = absl::InfinitePast();
    int failures = 0;                              // of its pods, in a row
    bool failed = false;                           // since the last look
    absl::Time rest_until = absl::InfinitePast();  // no creation before, unless a pod waits
    absl::Time waiting_since = absl::InfiniteFuture();
    absl::Time idle_since = absl::InfiniteFuture();
    absl::Time timer = absl::InfiniteFuture();  // its entry in timers_
  };
  struct Held {
    model::BindPod bind;
    std::vector<std::string> groups;  // sorted
    std::string portion;
    std::map<std::string, WriteAttempts> config_maps = {};  // by name
    std::string told = {};  // the devices to be written to the config maps; empty: none yet
  };
  // A live pod that names groups in its labels.
  struct Sharer {
    std::string ns, name, uid, node;
    std::vector<std::string> groups;   // sorted
    std::vector<std::string> devices;  // per group; empty: bound by another scheduler
    [[nodiscard]] bool Ours() const { return groups.size() == devices.size(); }
    // "" if it does not share the group or its device is unknown.
    [[nodiscard]] std::string DeviceOf(const std::string& group) const;
  };

  // The authoritative reservation pod; null if there is none.
  [[nodiscard]] static const Reservation* Live(const Group& group);
  void Touch(const GroupKey& key) { touched_.insert(key); }
  // Drops groups that nothing holds or names any more, if many wait for a step that does so: on a
  // standby there is none.
  void Trim();
  [[nodiscard]] bool IsEmpty(const GroupKey& key) const;
  void ForgetSent(const std::string& key);
  void ReservationChanged(const model::Pod& pod);
  void ReservationGone(const std::string& name, bool ended);
  void SharerChanged(const std::string& key, const model::Pod& pod,
                     std::vector<std::string> groups);
  void SharerGone(const std::string& key);
  void TellLoss(const GroupKey& key, const std::string& pod);
  std::map<std::string, Held>::iterator Release(std::map<std::string, Held>::iterator held);
  void Fail(const std::string& pod, std::string reason);
  void FailWaiting(Group& group, const std::string& reason);

  void Serve(const GroupKey& key, absl::Time now, const InUse& in_use, Outcome& out);
  void ServeIdle(Group& group, absl::Time now, absl::Time& due, Outcome& out);
  // Tells whether pods may join the group, if that has changed.
  void Close(const GroupKey& key, bool closed, Outcome& out);
  void TellComing(const GroupKey& key, bool comes, Outcome& out);
  void ServeMissing(const GroupKey& key, Group& group, bool used, absl::Time now, absl::Time& due,
                    Outcome& out);
  // True if pods that were bound here share the GPU.
  [[nodiscard]] bool SharedByOurs(const GroupKey& key) const;
  // Why no pod may join; "" if pods may.
  [[nodiscard]] std::string Obstacle(const GroupKey& key, const Reservation* live) const;
  void Delete(const std::string& name, Reservation& pod, absl::Time now, absl::Time& due,
              Outcome& out);
  void SetTimer(const GroupKey& key, Group& group, absl::Time at);
  void Advance(const std::string& pod, absl::Time now, Outcome& out);
  // True if all of them are written.
  bool WriteConfigMaps(Held& held, const std::string& devices, absl::Time now, Outcome& out) const;
  // The next repetition of a config map of a pod that waits for the group; after `now`.
  [[nodiscard]] absl::Time NextConfigMap(const Group& group, absl::Time now) const;

  GpuSharingOptions options_;
  Backoff backoff_;
  const WriteAttempts::Rules creation_rules_;
  std::map<GroupKey, Group> groups_;
  std::map<std::string, GroupKey> group_of_reservation_;  // by the pod's name
  std::map<std::string, Held> held_;                      // by "ns/name"
  // Released bindings that the watch does not show yet: node and groups.
  std::map<std::string, std::pair<std::string, std::vector<std::string>>> sent_;  // by "ns/name"
  std::map<std::string, Sharer> sharers_;                                         // by "ns/name"
  std::map<std::string, std::set<std::string>> named_;  // group -> keys of sharers_
  // Config maps that pods mutated by KAI's webhook need, by "ns/name"; unbound pods only.
  std::map<std::string, std::vector<std::string>> config_maps_;
  // To be checked; `again_` after the state knows the failed ones.
  std::set<GroupKey> touched_, again_;
  std::set<GroupKey> closed_, coming_;
  std::set<std::string> ready_;  // keys of held_ to be checked
  std::set<std::pair<absl::Time, GroupKey>> timers_;
  size_t trim_at_ = kTrimFrom;
  // False until the first step. What a standby would say is the leader's to say.
  bool speaks_ = false;
  std::vector<model::Action> said_;
  std::vector<Failure> failed_;
};

}  // namespace fairlead::core
