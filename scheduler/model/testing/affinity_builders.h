// Short ways to write selectors and affinity terms in tests. Header only; never part of the
// product.
#pragma once

#include <string>

#include "scheduler/model/pod.h"

namespace fairlead::model::testing {

// Selects pods with label app=`app`.
inline LabelSelector AppSelector(const std::string& app) {
  return {false, {{"app", SelectorOperator::kIn, {app}}}};
}

// Pods with label app=`app`, in domains of label `key`. Weight 0: required.
inline PodAffinityTerm AppTerm(const std::string& app, const std::string& key, int32_t weight = 0) {
  PodAffinityTerm term;
  term.selector = AppSelector(app);
  term.topology_key = key;
  term.weight = weight;
  return term;
}

}  // namespace fairlead::model::testing
