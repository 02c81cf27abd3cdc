#include "autoscale-hook/providers/karpenter/claim_order.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

// Kubernetes' and Karpenter's own; Karpenter counts every domain with such an end.
constexpr std::array<const char*, 3> kRestrictedEnds = {"kubernetes.io", "k8s.io", "karpenter.sh"};
// Of these, the ones that users may set.
constexpr std::array<const char*, 3> kFreeEnds = {"node.kubernetes.io",
                                                  "node-restriction.kubernetes.io", "kops.k8s.io"};

bool IsExtendedResource(absl::string_view resource) {
  const size_t slash = resource.find('/');
  if (slash == absl::string_view::npos) return false;
  return !absl::EndsWith(resource.substr(0, slash), "kubernetes.io");
}

void RequireOfClaim(absl::string_view key, absl::string_view value, NewNodeClaim& claim) {
  if (!value.empty()) claim.requirements.push_back({std::string(key), std::string(value)});
}

absl::StatusOr<model::NodeClassRef> NodeClassOf(const model::LaunchNode& launch,
                                                const model::NodeClassRef& configured) {
  const std::string& pool = launch.request->pool;
  const model::NodeClassRef& node_class =
      launch.node_class.name.empty() ? configured : launch.node_class;
  if (!node_class.name.empty() && !node_class.kind.empty() && !node_class.group.empty()) {
    return node_class;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "NodeClaim ", launch.request->meta.name, ": spec.nodeClassRef: ",
      node_class.name.empty() ? "no node class" : "group, kind or name is missing", "; set ",
      pool.empty() ? "" : absl::StrCat("spec.nodeClassRef of NodePool ", pool, " or "),
      "karpenter.nodeClassRef of the configuration"));
}

// The text in which words are looked for, and how it is told.
std::string ClaimConditionText(const ClaimCondition& condition) {
  if (condition.message.empty()) return condition.reason;
  return absl::StrCat(condition.reason, ": ", condition.message);
}

struct FailureWords {
  absl::StatusCode code;
  std::vector<const char*> any;
};

// Karpenter's and the clouds' names of errors. The first row with a word of the text counts.
const std::vector<FailureWords>& AllFailureWords() {
  static const auto* const words = new std::vector<FailureWords>{
      // The cloud throttles Karpenter: AWS's name ends as those of its quotas do.
      {absl::StatusCode::kDeadlineExceeded, {"RequestLimitExceeded", "Throttling"}},
      {absl::StatusCode::kOutOfRange, {"LimitExceeded", "QuotaExceeded", "quota"}},
      {absl::StatusCode::kResourceExhausted,
       {"InsufficientCapacity", "InsufficientInstanceCapacity", "insufficient capacity",
        "UnfulfillableCapacity"}},
      {absl::StatusCode::kPermissionDenied,
       {"Unauthorized", "AccessDenied", "NotAuthorized", "not authorized", "Forbidden"}},
      {absl::StatusCode::kFailedPrecondition, {"NodeClass", "node class"}}};
  return *words;
}

std::optional<absl::StatusCode> FailureCodeOf(absl::string_view text) {
  for (const FailureWords& row : AllFailureWords()) {
    for (const char* word : row.any) {
      if (absl::StrContains(text, word)) return row.code;
    }
  }
  return std::nullopt;
}

// It tells of a launch that failed. The other reasons are Karpenter's before it has tried.
bool TellsOfFailure(const ClaimCondition& launched) {
  return !launched.IsTrue() && !launched.reason.empty() &&
         launched.reason != "AwaitingReconciliation";
}

}  // namespace

bool IsRestrictedLabel(absl::string_view key) {
  for (const char* known :
       {model::kInstanceTypeLabel, model::kHostnameLabel, "node.kubernetes.io/windows-build",
        model::kGpuProductLabel, model::kGpuMemoryLabel, model::kGpuCountLabel}) {
    if (key == known) return true;
  }
  const size_t slash = key.find('/');
  if (slash == absl::string_view::npos) return false;
  const absl::string_view domain = key.substr(0, slash);
  const auto ends = [domain](const char* end) { return absl::EndsWith(domain, end); };
  if (std::any_of(kFreeEnds.begin(), kFreeEnds.end(), ends)) return false;
  // karpenter.k8s.aws, karpenter.azure.com: the clouds' own.
  return std::any_of(kRestrictedEnds.begin(), kRestrictedEnds.end(), ends) ||
         absl::StartsWith(domain, "karpenter.");
}

absl::StatusOr<NewNodeClaim> ClaimOfOrder(const model::LaunchNode& launch,
                                          const model::NodeClassRef& configured) {
  const model::NodeRequest& request = *launch.request;
  const model::Node& node = *launch.node;
  const std::string& name = request.meta.name;
  for (const auto& [field, value] :
       {std::pair("metadata.name", &name), std::pair("metadata.uid", &request.meta.uid),
        std::pair("spec.instanceType", &request.instance_type)}) {
    if (!value->empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat("NodeRequest ", name, ": ", field, ": empty"));
  }
  absl::StatusOr<model::NodeClassRef> node_class = NodeClassOf(launch, configured);
  if (!node_class.ok()) return node_class.status();
  NewNodeClaim claim;
  claim.name = name;
  claim.node_class = *std::move(node_class);
  for (const auto& [key, value] : node.meta.labels) {
    if (!IsRestrictedLabel(key)) claim.labels.Set(key, value);
  }
  claim.labels.Set(model::kNodeRequestLabel, name);
  claim.annotations.Set(kNodeRequestUidAnnotation, request.meta.uid);
  RequireOfClaim(model::kInstanceTypeLabel, request.instance_type, claim);
  RequireOfClaim(model::kZoneLabel, request.zone, claim);
  RequireOfClaim("karpenter.sh/capacity-type", request.CapacityType(), claim);
  // Those that Karpenter or the cloud set are what it finds the reservation by.
  for (const auto& [key, value] : launch.reservation_labels) {
    if (IsRestrictedLabel(key)) RequireOfClaim(key, value, claim);
  }
  RequireOfClaim(model::kArchLabel, node.meta.labels.Get(model::kArchLabel), claim);
  RequireOfClaim(model::kOsLabel, "linux", claim);
  for (const auto& [resource, amount] : node.allocatable) {
    if (amount > 0 && IsExtendedResource(resource)) model::Set(claim.requests, resource, amount);
  }
  claim.taints = node.taints;
  claim.startup_taints = launch.startup_taints;
  for (const model::Taint& taint : launch.startup_taints) {
    auto it = std::find(claim.taints.begin(), claim.taints.end(), taint);
    if (it != claim.taints.end()) claim.taints.erase(it);
  }
  return claim;
}

bool TellsWhy(const NodeClaim& last) {
  return last.launched.IsTrue() || TellsOfFailure(last.launched);
}

absl::Status WhyNeverRegistered(const NodeClaim& last, absl::string_view warning) {
  const std::string claim = absl::StrCat("Karpenter deleted NodeClaim ", last.name);
  if (last.launched.IsTrue()) {
    const std::string text = ClaimConditionText(last.registered);
    return absl::DeadlineExceededError(
        absl::StrCat(claim, ": its machine was launched, and its node did not register",
                     text.empty() ? "" : ": ", text));
  }
  if (!TellsOfFailure(last.launched)) {
    if (warning.empty()) {
      return absl::ResourceExhaustedError(absl::StrCat(
          claim, " before its node registered (as it does when capacity is insufficient)"));
    }
    // Karpenter calls a node class that it cannot use a want of capacity.
    const bool of_class =
        absl::StrContains(warning, "NodeClass") || absl::StrContains(warning, "node class");
    const absl::StatusCode code =
        of_class ? absl::StatusCode::kFailedPrecondition
                 : FailureCodeOf(warning).value_or(absl::StatusCode::kResourceExhausted);
    return {code, absl::StrCat(claim, ": ", warning)};
  }
  const std::string text = ClaimConditionText(last.launched);
  std::optional<absl::StatusCode> code = FailureCodeOf(last.launched.reason);
  if (last.launched.reason == "ICE") code = absl::StatusCode::kResourceExhausted;
  if (!code.has_value()) code = FailureCodeOf(text);
  if (code.has_value()) return {*code, absl::StrCat(claim, ": ", text)};
  return absl::DeadlineExceededError(absl::StrCat(claim, ": it was not launched in time: ", text));
}

void KeepLaunchFailure(const NodeClaim& before, NodeClaim& now) {
  if (now.launched.IsTrue() || TellsOfFailure(now.launched)) return;
  if (TellsOfFailure(before.launched)) now.launched = before.launched;
}

}  // namespace fairlead::hook
