// Verdicts as JSON: the annotation fairlead.dev/verdict on pods (compact, bounded) and
// status.schedulability on pod groups (whole). docs/verdict.md lists the fields.
// Thread-safety: pure functions.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "scheduler/verdict/verdict.h"

namespace fairlead::verdict {

inline constexpr size_t kMaxAnnotationBytes = 2048;

// Fields in a fixed order; a field without a value is left out. Longer than `max_bytes`: the
// demand's terms, then predicates, then details are left out, last first, and "truncated": true is
// set; code, queue block and hash always stay. If that is not enough, unblockers, node requests,
// whole demand entries and the subject go too. Fits into 2048 bytes for every queue and resource
// name that Kubernetes allows (253 and 317 bytes).
//  {"v":1,"code":..,"category":..,"scope":..,"resolvableBy":..,"hash":..,"queue":..,"position":..,
//   "queueBlock":{"queue","resource","limit","used","requested"},"podsWaiting":..,"podsRunning":..,
//   "minMember":..,"observedGeneration":..,"subject":..,"until":..,"expectedAt":..,
//   "nodeRequests":[..],"unblockers":[{"by","what"}],"details":[..],
//   "predicates":[{"plugin","reason","nodes","missing":{resource: quantity}}],
//   "demand":[see DemandJson],"truncated":true}
// Amounts are Kubernetes quantities as strings, times RFC 3339 in UTC.
std::string ToJson(const Verdict& verdict, size_t max_bytes = kMaxAnnotationBytes);

// One entry of the demand:
//  {"count":..,"minCount":..,"resources":{name: quantity},"gpu":{"fractionMilli" or "memoryMib",
//   "devices"},"nodeSelector":{..},"terms":[{"matchExpressions":[{"key","operator","values"}],
//   "matchFields":[..]}],"tolerations":[{"key","operator","value","effect"}],
//   "spread":[{"topologyKey","maxSkew"}],"antiAffinity":[topology keys of required terms]}
// Only hard constraints are in it: preferences never decide which nodes are provisioned.
std::string DemandJson(const DemandClass& demand);

}  // namespace fairlead::verdict
