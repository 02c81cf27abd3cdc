#include "autoscale-hook/machines/startup_taints.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

constexpr const char* kKnownKeys[] = {
    model::kStartupTaint,
    "karpenter.sh/unregistered",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/not-ready",
};
constexpr char kAutoscalerPrefix[] = "startup-taint.cluster-autoscaler.kubernetes.io/";

}  // namespace

bool IsStartupTaint(const model::Taint& taint, const std::vector<model::Taint>& of_pool) {
  const auto has_key = [&](const char* key) { return taint.key == key; };
  if (std::any_of(std::begin(kKnownKeys), std::end(kKnownKeys), has_key)) return true;
  if (absl::StartsWith(taint.key, kAutoscalerPrefix)) return true;
  return std::any_of(of_pool.begin(), of_pool.end(), [&](const model::Taint& own) {
    return own.key == taint.key && own.effect == taint.effect;
  });
}

}  // namespace fairlead::hook
