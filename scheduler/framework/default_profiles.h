// The plugins that a profile has before its configuration says anything.
//
// Thread-safety: pure functions.
#pragma once

#include "absl/strings/string_view.h"
#include "scheduler/framework/framework.h"

namespace fairlead::framework {

enum class ProfileBase : uint8_t {
  // KAI's behaviour: GPUs are packed, preferences beat whether a pod would have to wait.
  kFairlead,
  // kube-scheduler's: its default plugins with its weights, only nodes on which a pod can start are
  // compared, and priorities mean what they mean there. What queues and GPUs need runs beside them:
  // GpuKind, NodeReady and GpuSharing
  // filter, and GpuSharing, ResourceType and NodePlacement decide between nodes that score alike,
  // of which kube-scheduler takes any.
  kUpstream,
};

// The base of a profile for pods of that scheduler name, if nothing says otherwise: kFairlead for
// "fairlead" and "kai-scheduler", so that who brings a file of kube-scheduler's gets what it says.
ProfileBase BaseOf(absl::string_view scheduler_name);

Profile DefaultProfile(ProfileBase base);

}  // namespace fairlead::framework
