// The parts that messages are made of: amounts, counts, times, what nodes lack.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "scheduler/verdict/verdict.h"

namespace fairlead::verdict {

// "1 pod", "3 pods".
std::string Count(int64_t count, absl::string_view singular, absl::string_view plural);

// "8 GPUs", "1 GPU", "0.5 GPUs", "2.5 CPU cores", "16Gi of memory", "4 rdma/hca", "12 pod slots".
std::string AmountText(absl::string_view resource, int64_t base_units);

// "a", "a and b", "a, b and c"; at most `limit` of them by name, then "and 4 more".
std::string AndList(const std::vector<std::string>& parts, size_t limit);

// "2026-11-21T03:15:00Z".
std::string TimeText(absl::Time time);
// True if the time is set and can be written.
bool IsFinite(const std::optional<absl::Time>& time);

// "8 GPUs, 4 CPU cores and 16Gi of memory", GPUs first; "no resources" if it asks for none.
std::string RequestText(const model::PodSpec& spec);

// "nodes had untolerated taint {gpu: a100}, nodes lack GPUs": without counts and amounts, in a
// stable order. Empty without predicates.
std::string ReasonsText(const std::vector<FailedPredicate>& predicates);

// "Smallest shortage on a node: 2 GPUs and 1Gi of memory": of each resource the least that a node
// lacks. Empty if no node lacks an amount.
std::string ShortageText(const std::vector<FailedPredicate>& predicates);

// "TaintToleration: {gpu: a100} and {spot: true}": what the reasons say beyond kube-scheduler's.
std::string DetailsText(const std::vector<FailedPredicate>& predicates);

}  // namespace fairlead::verdict
