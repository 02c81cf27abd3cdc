// Upstream's extension points between the choice of a node and the binding, and after it
// (k8s.io/kube-scheduler/framework): Reserve and Unreserve, Permit, PreBind, Bind, PostBind.
//
//   node chosen ─Reserve─▶ reserved ─Permit─▶ permitted ─claims, shares, volumes─▶ ─PreBind─▶ bound
//        ▲                    │                  │                                    │  PostBind
//        └─── Unreserve ──────┴──────────────────┴────────────────────────────────────┘
//
// A pod holds its place meanwhile. The pods that are placed with it are bound when all of them have
// come through, or none is: a gang needs no Permit plugin.
//
// Upstream's Permit and PreBind may block a goroutine. Here all plugins run on one thread, so they
// answer that the pod has to wait, and are asked again.
//
// Thread-safety: called on the thread that owns the state. A plugin that hears from elsewhere, by a
// thread of its own, locks what it shares with that thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "scheduler/framework/framework.h"

namespace fairlead::framework {

// A pod that has its node. Valid during the call.
struct Placement {
  const state::ClusterState& state;
  const state::PodRecord& pod;
  const state::NodeInfo& node;
  absl::Time now;
  absl::Time since;  // the pod's first question at this point
};

// The same of a pod that may be gone.
struct PodOnNode {
  std::string ns, name, uid, node;
  friend bool operator==(const PodOnNode&, const PodOnNode&) = default;
};

class BindingPointPlugin : public virtual Plugin {
 public:
  // False for classes that it lets pass at all of the points below: they skip it.
  [[nodiscard]] virtual bool BindingApplies(const state::PodClass&) const { return true; }
};

// A plugin whose Reserve and PreBind write objects, and so take several steps: volumes, claims,
// reservation pods of shared GPUs. The core carries them out under its name
// (core/reconcile/binding_plugin.h), for profiles that enable it at both points.
class PreparingPlugin : public virtual Plugin {};

class ReservePlugin : public virtual BindingPointPlugin {
 public:
  // An error: the pod does not get this node. It waits with the text, and is tried again after a
  // back-off.
  virtual absl::Status Reserve(const Placement& placement) = 0;
  // The pod is not bound there after all. In the reverse order of Reserve, also of the plugin whose
  // Reserve failed, once.
  virtual void Unreserve(const PodOnNode& pod) = 0;
  // The pod is bound there: the other end of what Reserve began. After PostBind.
  virtual void Bound(const PodOnNode&) {}
};

// What a plugin says of a pod that may have to wait.
struct Progress {
  enum class Is : uint8_t { kDone, kWaits, kFailed };
  Is is = Is::kDone;
  std::string reason = {};                    // kFailed: for the pod's events and verdict
  absl::Time again = absl::InfiniteFuture();  // kWaits: asked again then at the latest

  static Progress Done() { return {}; }
  // Asked again with whatever else happens, and at that time.
  static Progress WaitUntil(absl::Time again) { return {Is::kWaits, "", again}; }
  // The pod does not get this node, as after an error of Reserve.
  static Progress Failed(std::string reason) { return {Is::kFailed, std::move(reason)}; }
};

class PermitPlugin : public virtual BindingPointPlugin {
 public:
  // Upstream's Success, Wait and Unschedulable. A time-out is the plugin's: `placement.since`.
  virtual Progress Permit(const Placement& placement) = 0;
};

class PreBindPlugin : public virtual BindingPointPlugin {
 public:
  virtual Progress PreBind(const Placement& placement) = 0;
};

class BindPlugin : public virtual BindingPointPlugin {
 public:
  // Binds the pod to the node, in the place of DefaultBinder. Nothing (upstream's Skip): the next
  // plugin is asked. Once it has answered otherwise it is asked in each step, and at the time that
  // it said, until it does not wait any more. kDone: the API server has the binding. kFailed: it
  // has not, and the pod is tried again after a back-off.
  virtual std::optional<Progress> Bind(const Placement& placement) = 0;
};

class PostBindPlugin : public virtual BindingPointPlugin {
 public:
  // The API server has accepted the binding, or shows it. Once. Not told of pods that were bound
  // before the program started.
  virtual void PostBind(const PodOnNode& pod) = 0;
};

}  // namespace fairlead::framework
