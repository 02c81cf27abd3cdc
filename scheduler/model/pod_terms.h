// What a pod affinity term selects, and how far it reaches: one answer for the state, the counters,
// the plugins, the engine and the hook.
// Source: k8s.io/kube-scheduler framework, AffinityTerm.Matches.
// Thread-safety: pure functions.
#pragma once

#include <string>

#include "scheduler/model/pod.h"

namespace fairlead::model {

enum class Selection {
  kNo,
  kYes,
  kUnknown,  // the term asks for labels of namespaces, which are not known
};

// Does the term of a pod in namespace `owner_ns` select a pod in `ns` with these labels?
Selection Selects(const PodAffinityTerm& term, const std::string& owner_ns, const std::string& ns,
                  const StringMap& labels);

// True if the term asks for labels of namespaces.
bool ReadsNamespaceLabels(const PodAffinityTerm& term);
// True if it does, and they are not known.
bool NeedsNamespaceLabels(const PodAffinityTerm& term);

// A bond: by it, whether a pod fits on a node depends on pods of other nodes. Bonds are required
// affinity, required anti-affinity over anything but the host name, and hard spread.
bool IsBond(const PodAffinityTerm& term, bool anti);
// Calls `use` with each: a PodAffinityTerm or a TopologySpreadConstraint.
template <typename Use>
void ForEachBond(const PodSpec& spec, const Use& use) {
  for (const PodAffinityTerm& term : spec.pod_affinity) {
    if (IsBond(term, /*anti=*/false)) use(term);
  }
  for (const PodAffinityTerm& term : spec.pod_anti_affinity) {
    if (IsBond(term, /*anti=*/true)) use(term);
  }
  for (const TopologySpreadConstraint& spread : spec.topology_spread) {
    if (spread.do_not_schedule) use(spread);
  }
}
inline bool HasBond(const PodSpec& spec) {
  bool any = false;
  ForEachBond(spec, [&any](const auto&) { any = true; });
  return any;
}

}  // namespace fairlead::model
