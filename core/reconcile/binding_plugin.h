// The interface of plugins that take part in a binding. A plugin reserves what the pod needs
// besides capacity on its node, before the binding is sent (the writes of upstream's Reserve and
// PreBind). The profile of the pod says whether it runs.
//
// Thread-safety: the owner's thread.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "scheduler/model/action.h"
#include "scheduler/state/records.h"

namespace fairlead::core {

class BindingPlugin {
 public:
  struct Failure {
    std::string ns, name, uid, reason;
  };
  // How a plugin's part in a binding has ended, for metrics alone. Texts are static.
  struct Ran {
    absl::string_view plugin, point;  // as configurations name the plugin; the extension point
    bool ok = true;
    absl::Duration took;
  };
  struct Progress {
    std::vector<model::Action> actions;    // to be sent, without ids
    std::vector<model::BindPod> reserved;  // with what the plugin adds; no longer held
    std::vector<Failure> failed;           // no longer held
    std::vector<Ran> ran = {};             // of plugins within it
  };
  virtual ~BindingPlugin() = default;

  // The framework's plugin of which it is Reserve and PreBind (framework::PreparingPlugin): pods
  // whose profile does not enable that need nothing; and what metrics call it at PreBind. Static.
  // Empty: it serves every profile, and tells by itself what has run in it.
  [[nodiscard]] virtual absl::string_view Name() const { return ""; }
  // False: what it reserves is chosen and written by the scheduler that binds the pod, if that is
  // another one (StateOptions::guest_schedulers).
  [[nodiscard]] virtual bool ServesGuests() const { return false; }
  // True if the pod needs this plugin. Cheap: called for every binding.
  [[nodiscard]] virtual bool Needs(const state::PodRecord& pod) const = 0;
  // Begins to reserve. The binding comes back in Progress::reserved or as a failure. An error: the
  // pod cannot be bound to the decided node.
  virtual absl::Status Reserve(const state::PodRecord& pod, model::BindPod bind) = 0;
  // The pod will not be bound: releases what was reserved for it, if anything.
  virtual void Unreserve(const std::string& ns, const std::string& name) = 0;
  // The progress of reservations since the last call.
  virtual Progress Advance(absl::Time now) = 0;
  [[nodiscard]] virtual bool HasWork(absl::Time now) const = 0;
  [[nodiscard]] virtual absl::Time wake_at() const = 0;
};

}  // namespace fairlead::core
