// What the provider provisioning-request buys, as the configuration says it (provisioningRequest;
// docs/providers/provisioning-request.md), and the marks of its objects.
// Thread-safety: plain values, a pure function.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "scheduler/model/machine_shape.h"
#include "scheduler/model/object_meta.h"

namespace fairlead::model {

// Label of PodTemplates and ProvisioningRequests, by Fairlead: provisioning-request on every object
// that Fairlead makes.
inline constexpr char kMadeByLabel[] = "fairlead.dev/made-by";
inline constexpr char kProvisioningRequestProvider[] = "provisioning-request";

// Provisioning classes of cluster-autoscaler.
inline constexpr char kCheckCapacityClass[] = "check-capacity.autoscaling.x-k8s.io";
inline constexpr char kAtomicScaleUpClass[] = "best-effort-atomic-scale-up.autoscaling.x-k8s.io";

struct ProvisioningGroup : MachineShape {
  std::string name;
  int64_t max_size = 0;

  // "ProvisioningRequest/h100"
  [[nodiscard]] std::string Id() const { return "ProvisioningRequest/" + name; }
  friend bool operator==(const ProvisioningGroup&, const ProvisioningGroup&) = default;
};

struct ProvisioningSettings {
  std::string ns;  // of the objects that are made; empty: that of the lease
  std::string class_name = kAtomicScaleUpClass;
  StringMap parameters;
  // How long a request may say that there is no capacity before it is taken back.
  absl::Duration capacity_wait = absl::ZeroDuration();
  // How long after the condition Provisioned a node may come.
  absl::Duration arrival_timeout = absl::Minutes(20);
  std::vector<ProvisioningGroup> groups;
  friend bool operator==(const ProvisioningSettings&, const ProvisioningSettings&) = default;
};

// Fairlead itself has made the object, for a NodeRequest. Both marks count: a tenant may write
// either on an object of its own, and only leaves that object to other programs by that.
inline bool IsMadeByProvider(const ObjectMeta& meta) {
  if (meta.labels.Get(kMadeByLabel) != kProvisioningRequestProvider) return false;
  return std::any_of(meta.owners.begin(), meta.owners.end(), [](const OwnerReference& owner) {
    return owner.kind == "NodeRequest" &&
           absl::string_view(owner.api_version).substr(0, 13) == "fairlead.dev/";
  });
}

}  // namespace fairlead::model
