// The affinity terms of all classes of pods, to find out whether any of them selects a pod without
// looking at all of them: each is filed under the values of one requirement that has to hold, as
// framework::TermIndex does with sets of pods.
//
// Ownership: keeps copies. Thread-safety: none. Complexity: O(labels of the pod) and the terms that
// are filed under them, or under nothing; terms that ask for no value of a label are looked at one
// by one.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "scheduler/model/pod_terms.h"
#include "scheduler/model/selector.h"

namespace fairlead::state {

class SelectingTerms {
 public:
  // `ns`: of the pods that have the term. True if there was no such term.
  bool Add(const std::string& ns, const model::PodAffinityTerm& term);
  // Of what was added, once for each time.
  void Remove(const std::string& ns, const model::PodAffinityTerm& term);
  [[nodiscard]] bool IsEmpty() const { return terms_.empty(); }
  // Whether some term selects, or may select, a pod in `ns` with these labels.
  [[nodiscard]] bool Select(const std::string& ns, const model::StringMap& labels) const;

 private:
  using Term = std::pair<std::string, model::PodAffinityTerm>;
  using Terms = std::vector<const Term*>;
  // The requirement by whose values it is filed; null: it is among the others.
  static const model::SelectorRequirement* FiledBy(const model::PodAffinityTerm& term);

  absl::node_hash_map<Term, size_t> terms_;  // how many classes have it
  absl::flat_hash_map<std::string, absl::flat_hash_map<std::string, Terms>> by_label_;
  Terms others_;
};

}  // namespace fairlead::state
