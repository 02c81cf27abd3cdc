// The plugin for pods' PersistentVolumeClaims in a binding: it waits until each claim of the pod is
// bound to a volume that the node can use, as upstream's plugin VolumeBinding does in PreBind
// (k8s.io/kubernetes pkg/scheduler/framework/plugins/volumebinding, BindPodVolumes).
//
//   held ──BindVolume or SelectVolumeNode for each claim──▶ claims bound by their controller
//        ──▶ the binding goes
//
// - What a claim gets was decided with the node (state::VolumeClaimRow::decided). A volume: the
//   volume names the claim from now on. None: the claim says for which node one is to be made.
//   Nothing is written if the objects say so already, so a restart goes on where it was.
// - There is one write per claim at a time, for all pods that wait for the claim.
// - Each write is for the version of the object that the state has. A later version without the
//   effect of a write that was accepted means that the effect was taken away: the provisioner gave
//   up, or the volume was released. The same version means that the watch is late. For this
//   reason a later version without it ends a doubt: that attempt was not done, and never will be.
// - A refusal, an effect that is taken away, a claim or volume that is gone, and a volume that the
//   node cannot use fail all pods of the claim. They are decided again.
// - After an unknown outcome the write is repeated after a pause that doubles. A refusal is
// believed
//   then, unless it is a conflict, of which the first attempt may be the reason: if the write was
//   done, the objects say so. A write that was not sent (Cancelled), or neither done nor judged
//   (Aborted), is repeated, too.
// - What was written for a pod with a failed binding is not taken back.
//
// Ownership: borrows the state. Thread-safety: the owner's thread. Complexity: a call of Advance
// costs O(pods of the claims that changed); NodeGone O(held pods). Determinism: ordered maps; time
// comes in as an argument.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/write_attempts.h"
#include "core/reconcile/binding_plugin.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

class VolumePlugin final : public BindingPlugin {
 public:
  // `backoff`: between attempts. `timeout`: how long a pod waits for its claims.
  VolumePlugin(const state::ClusterState& state, Backoff backoff, absl::Duration timeout)
      : state_(state), rules_{.backoff = backoff}, timeout_(timeout) {}

  [[nodiscard]] absl::string_view Name() const override { return "VolumeBinding"; }
  // True also for a claim that was bound since the decision: its volume has to suit the node.
  [[nodiscard]] bool Needs(const state::PodRecord& pod) const override;
  absl::Status Reserve(const state::PodRecord& pod, model::BindPod bind) override;
  void Unreserve(const std::string& ns, const std::string& name) override;
  Progress Advance(absl::Time now) override;
  [[nodiscard]] bool HasWork(absl::Time now) const override;
  [[nodiscard]] absl::Time wake_at() const override;

  // ---- events from the watch, after the state has applied them
  void ClaimChanged(const std::string& key);  // "ns/name"; changed or gone
  void VolumeChanged(const std::string& name);
  void NodeGone(const std::string& name);
  // An empty uid matches any.
  void PodGone(const std::string& ns, const std::string& name, const std::string& uid);

  // The answer to an action of Advance about that claim.
  void Answered(const std::string& claim, const absl::Status& status, absl::Time now);

 private:
  // A claim that pods wait for, or of which a write is in flight or not yet shown.
  struct Entry {
    // What its pods rely on; the uids are of the claim and of the decided volume.
    state::VolumeDecision decided;
    std::string uid, volume_uid;
    std::set<std::string> pods;     // held, "ns/name"
    std::set<std::string> volumes;  // names of volumes whose changes matter to it
    WriteAttempts write;
    std::string sent_version;  // of the object, for which the last attempt is
    bool outdated = false;     // the write in flight is for a former decision
    bool shown = false;        // the watch has shown what is decided
    absl::Time timer = absl::InfiniteFuture();
  };
  struct Held {
    model::BindPod bind;
    std::set<std::string> claims;  // that are not bound yet
    absl::Time deadline = absl::InfiniteFuture();
  };
  using Entries = std::map<std::string, Entry>;

  void Begin(const state::VolumeClaimRow& row, Entry& entry);
  void Follow(const std::string& key, const std::string& volume, Entry& entry);
  void Forget(Entries::iterator at);
  void SetTimer(const std::string& key, absl::Time at, Entry& entry);
  void Drop(const std::string& pod);
  void Fail(const std::string& pod, const std::string& reason);
  void FailAll(const Entry& entry, const std::string& reason);
  void MarkDone(const std::string& claim, const std::string& pod, Entry& entry);
  // Null if the decided volume is gone or another one.
  [[nodiscard]] const model::PersistentVolume* DecidedVolume(const Entry& entry) const;
  [[nodiscard]] bool Suits(const model::PersistentVolume& volume, const std::string& node) const;
  // Why the claim is no longer the one that was decided on; empty: it is.
  [[nodiscard]] std::string WhyLost(const std::string& key, const Entry& entry,
                                    const state::VolumeClaimRow* row) const;
  // Why what is decided must not be written; empty: it may. `volume`: the decided one.
  [[nodiscard]] std::string WhyNotWritten(const state::VolumeClaimRow& row,
                                          const model::PersistentVolume* volume) const;
  void ServeTouched(absl::Time now, Progress& out);
  void Serve(const std::string& key, absl::Time now, Progress& out);
  // The claim names a volume: waits for the controller to complete it.
  void ServeNamed(const state::VolumeClaimRow& row, Entry& entry);
  // It names none: writes what is decided, or waits for what was written.
  void ServeOpen(const state::VolumeClaimRow& row, Entry& entry, absl::Time now, Progress& out);
  void Write(const state::VolumeClaimRow& row, const model::PersistentVolume* volume, Entry& entry,
             absl::Time now, Progress& out) const;
  // Why the pod must not be bound although it has waited for all of its claims; empty: it may.
  [[nodiscard]] std::string WhyNotBound(const model::BindPod& bind) const;
  void ExpireHeld(absl::Time now);

  const state::ClusterState& state_;
  const WriteAttempts::Rules rules_;
  const absl::Duration timeout_;
  Entries entries_;                                         // by "ns/name" of the claim
  std::map<std::string, Held> held_;                        // by "ns/name" of the pod
  std::map<std::string, std::set<std::string>> followers_;  // claims by name of a volume
  std::set<std::string> touched_;                           // claims to look at
  std::set<std::string> ready_;                             // held pods without missing claims
  std::set<std::string> arrived_;                           // held pods without a deadline yet
  std::set<std::pair<absl::Time, std::string>> timers_;     // of claims
  std::set<std::pair<absl::Time, std::string>> deadlines_;  // of held pods
  std::vector<Failure> failed_;
};

}  // namespace fairlead::core
