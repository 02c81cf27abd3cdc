// What a pod affinity term selects: one answer for the state, the counters and the plugins.
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

}  // namespace fairlead::model
