// Converts values of the Kubernetes API to model values. The protobuf and the JSON decoder share
// it, so that both agree about an object. An invalid value is added to `problems` and leaves the
// target unchanged.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "kube/codec/field_problems.h"
#include "scheduler/model/pod.h"
#include "scheduler/model/resources.h"
#include "scheduler/model/selector.h"

namespace fairlead::kube {

// Selects the operators that a requirement may have.
enum class SelectorKind { kLabels, kNodes };
void SetOperator(absl::string_view text, SelectorKind kind, const FieldPath& path,
                 Problems& problems, model::SelectorOperator& out);

void SetTaintEffect(absl::string_view text, const FieldPath& path, Problems& problems,
                    model::TaintEffect& out);

// By restartPolicy: Always, also if it is not there, has no end.
bool RunsToEnd(absl::string_view restart_policy);

// Operator "" equals "Equal"; effect "" is every effect.
void SetTolerationOperator(absl::string_view text, const FieldPath& path, Problems& problems,
                           model::Toleration& out);
void SetTolerationEffect(absl::string_view text, const FieldPath& path, Problems& problems,
                         model::Toleration& out);

void SetWhenUnsatisfiable(absl::string_view text, const FieldPath& path, Problems& problems,
                          model::TopologySpreadConstraint& out);
// "Honor" or "Ignore".
void SetHonorPolicy(absl::string_view text, const FieldPath& path, Problems& problems, bool& out);
// A number of at least one, for maxSkew and minDomains.
void SetPositive(int64_t value, const FieldPath& path, Problems& problems, int32_t& out);
// The weight of a preference is 1..100. A value out of range is clamped: zero means "required" in
// the model.
void SetWeight(int64_t value, const FieldPath& path, Problems& problems, int32_t& out);

// preemptionPolicy of pods and PriorityClasses; the other one is PreemptLowerPriority.
inline constexpr char kNeverPreempts[] = "Never";

model::PodPhase ParsePodPhase(absl::string_view text);

// One entry of a resource map. Amounts are never negative.
void SetQuantity(absl::string_view name, absl::string_view quantity, const FieldPath& path,
                 Problems& problems, model::ResourceList& out);

// matchLabels (any map of strings) as requirements, sorted by key, before those that are there.
void PrependMatchLabels(const model::StringMap& match_labels, model::LabelSelector& out);

}  // namespace fairlead::kube
