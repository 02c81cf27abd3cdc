// NodeClaim (karpenter.sh/v1, cluster-scoped), as far as Fairlead reads and writes it, and its
// JSON.
//
// Source: the CRD nodeclaims.karpenter.sh and Karpenter's documentation. A claim's spec is
// immutable. spec.expireAfter is 720h unless it is given, so "Never" is written: Karpenter would
// end a node under its pods.
//
// Errors: InvalidArgument that names the object and the field. A claim of a list whose name can be
// read, and another field cannot, is listed as not readable: it exists, nothing else is known.
// Thread-safety: plain values, pure functions. Complexity: linear in the text.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "document/json.h"
#include "scheduler/model/object_meta.h"
#include "scheduler/model/pod.h"
#include "scheduler/model/resources.h"
#include "scheduler/model/workload_objects.h"

namespace fairlead::hook {

// Annotation of NodeClaims, by Fairlead: uid of the NodeRequest that the claim was created for.
inline constexpr char kNodeRequestUidAnnotation[] = "fairlead.dev/node-request-uid";

// A requirement with operator In.
struct ClaimRequirement {
  std::string key, value;
  friend bool operator==(const ClaimRequirement&, const ClaimRequirement&) = default;
};

// What Fairlead writes.
struct NewNodeClaim {
  std::string name;
  model::StringMap labels, annotations;
  std::vector<ClaimRequirement> requirements;
  model::ResourceList requests;  // base units
  std::vector<model::Taint> taints, startup_taints;
  model::NodeClassRef node_class;
};

// status: "True", "False" or "Unknown"; all empty: there is no such condition.
struct ClaimCondition {
  std::string status, reason, message;
  [[nodiscard]] bool IsTrue() const { return status == "True"; }
  friend bool operator==(const ClaimCondition&, const ClaimCondition&) = default;
};

// What Fairlead reads.
struct NodeClaim {
  std::string name, uid;
  std::string request;      // label fairlead.dev/node-request
  std::string request_uid;  // annotation kNodeRequestUidAnnotation
  bool deleting = false;    // metadata.deletionTimestamp is set
  std::string provider_id, node_name;
  ClaimCondition launched, registered, initialized;
  bool readable = true;  // false: only the name is known
};

// A part of a list.
struct ClaimPage {
  std::vector<NodeClaim> claims;
  std::string next;                  // metadata.continue; empty: the last page
  std::vector<absl::Status> faults;  // of items that could not be read
};

// Longer texts of a claim are cut (messages) or refused (names, ids).
inline constexpr size_t kLongestClaimText = 2048;
// More items on one page are an error.
inline constexpr size_t kMostClaimsOfPage = 10'000;

std::string EncodeNodeClaim(const NewNodeClaim& claim);
absl::StatusOr<NodeClaim> DecodeNodeClaim(const Json& json);
// A NodeClaimList. Items without a name are left out, with a fault.
absl::StatusOr<ClaimPage> DecodeClaimPage(absl::string_view json);

}  // namespace fairlead::hook
