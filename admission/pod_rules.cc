// Rules of pods: what their annotations and labels say to Fairlead.
#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "admission/validate.h"
#include "kube/codec/json_codec.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/expected_duration.h"
#include "scheduler/model/workload_objects.h"

namespace fairlead::admission {
namespace {

constexpr char kOurPrefix[] = "fairlead.dev/";
constexpr char kLunaPodPrefix[] = "pod.elotl.co/";

// Annotations under our prefix and Luna's that are read from pods, or written to them.
constexpr std::array kKnownAnnotations = {
    model::kVerdictAnnotation,
    model::kStartedUnderAnnotation,
    model::kStartedAsAnnotation,
    model::kVisibleDevicesAnnotation,
    model::kGpuPortionAnnotation,
    model::kDoNotRemoveAnnotation,
    model::kFamilyExclusionsAnnotation,
    model::kFamilyInclusionsAnnotation,
    model::kTypeRegexpAnnotation,
    model::kGpuSkusAnnotation,
    model::kOfferingsAnnotation,
    model::kMaxCostAnnotation,
    model::kMaxGpusAnnotation,
    model::kDoNotEvictAnnotation,
    model::kEstimateAnnotation,
    model::kExpectedDurationAnnotation,
    model::kBindDecisionAnnotation,
    model::kLunaFamilyExclusionsAnnotation,
    model::kLunaFamilyInclusionsAnnotation,
    model::kLunaTypeRegexpAnnotation,
    model::kLunaGpuSkusAnnotation,
    model::kLunaOfferingsAnnotation,
    model::kLunaMaxCostAnnotation,
    model::kLunaMaxGpusAnnotation,
    model::kLunaDoNotEvictAnnotation,
};

std::string AnnotationPath(absl::string_view key) {
  return absl::StrCat("metadata.annotations[", key, "]");
}
std::string LabelPath(absl::string_view key) { return absl::StrCat("metadata.labels[", key, "]"); }

std::string Label(const Json& pod, absl::string_view key) {
  return pod.TextAt({"metadata", "labels", key});
}
std::string Annotation(const Json& pod, absl::string_view key) {
  return pod.TextAt({"metadata", "annotations", key});
}

void CheckNames(const Json& pod, Findings& out) {
  const Json* const annotations = pod.At({"metadata", "annotations"});
  if (annotations == nullptr) return;
  for (const auto& [key, value] : annotations->fields()) {
    if (!absl::StartsWith(key, kOurPrefix) && !absl::StartsWith(key, model::kLunaNodePrefix) &&
        !absl::StartsWith(key, kLunaPodPrefix)) {
      continue;
    }
    const bool known = std::any_of(kKnownAnnotations.begin(), kKnownAnnotations.end(),
                                   [&key = key](const char* name) { return key == name; });
    if (!known) out.Warn(AnnotationPath(key), "is no annotation that Fairlead reads");
  }
}

void CheckDurations(const Json& pod, Findings& out) {
  const std::string expected = Annotation(pod, model::kExpectedDurationAnnotation);
  if (!expected.empty() && !model::ParseExpectedDuration(expected).has_value()) {
    out.Add(
        AnnotationPath(model::kExpectedDurationAnnotation),
        absl::StrCat("\"", expected.substr(0, 64), "\" must be a duration above 0, as in 2h30m"));
  }
  for (const absl::string_view key :
       {model::kStalenessGraceAnnotation, model::kPreemptionDelayAnnotation}) {
    const std::string text = Annotation(pod, key);
    if (text.empty()) continue;
    const std::optional<absl::Duration> span = model::ParseSpan(text);
    const bool negative = span.has_value() && *span < absl::ZeroDuration();
    if (span.has_value() && (!negative || key == model::kStalenessGraceAnnotation)) continue;
    out.Warn(AnnotationPath(key),
             absl::StrCat("\"", text.substr(0, 64),
                          negative ? "\" is negative" : "\" is no duration", "; it is ignored"));
  }
}

void CheckLabels(const Json& pod, Findings& out) {
  const std::string preemptibility = Label(pod, model::kPreemptibilityLabel);
  if (!preemptibility.empty() &&
      model::ParsePreemptibility(preemptibility) == model::Preemptibility::kByPriority) {
    out.Warn(LabelPath(model::kPreemptibilityLabel),
             absl::StrCat("\"", preemptibility,
                          "\" is none of preemptible, non-preemptible; it is ignored"));
  }
  const std::string priority = Label(pod, model::kTaskPriorityLabel);
  int32_t number = 0;
  if (!priority.empty() && !absl::SimpleAtoi(priority, &number)) {
    out.Warn(LabelPath(model::kTaskPriorityLabel),
             absl::StrCat("\"", priority, "\" is no whole number; it is ignored"));
  }
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::string NamedQueue(const Json& pod) {
  const std::string queue = Label(pod, model::kQueueLabel);
  if (!queue.empty()) return queue;
  return model::QueueOfProject(Label(pod, model::kProjectLabel), Label(pod, model::kNodePoolLabel));
}

std::string NamedGroup(const Json& pod) {
  const std::string annotated = Annotation(pod, model::kPodGroupAnnotation);
  return annotated.empty() ? pod.TextAt({"spec", "schedulingGroup", "podGroupName"}) : annotated;
}

bool IsOurs(const Json& pod, const Policy& policy) {
  const std::string scheduler = pod.TextAt({"spec", "schedulerName"});
  if (Contains(policy.scheduler_names, scheduler)) return true;
  return Contains(policy.guests, scheduler) &&
         (!NamedQueue(pod).empty() || !NamedGroup(pod).empty());
}

Findings CheckPod(const Json& pod, const Cluster& cluster, const Policy& policy) {
  Findings out;
  kube::Problems found;
  const absl::StatusOr<model::Object> decoded =
      kube::json::DecodeObject(model::Kind::kPod, pod.Compact(), found);
  if (!decoded.ok()) {
    out.problems.push_back({"", std::string(decoded.status().message())});
    return out;
  }
  for (const kube::Problems::Entry& entry : found.Sorted()) {
    out.problems.push_back({entry.path, entry.text});
  }
  CheckDurations(pod, out);
  CheckNames(pod, out);
  CheckLabels(pod, out);
  const std::string queue = NamedQueue(pod);
  if (queue.empty() || !NamedGroup(pod).empty()) return out;
  const bool labelled = !Label(pod, model::kQueueLabel).empty();
  WarnOfQueue(queue, LabelPath(labelled ? model::kQueueLabel : model::kProjectLabel), cluster,
              policy, out);
  return out;
}

}  // namespace fairlead::admission
