// A behaviour: a YAML file that says what a user of a scheduler does and may then rely on.
// README.md has the format. The first document is the story; the others are plain Kubernetes
// manifests, which the steps of the story name.
//
// Errors: InvalidArgument "file:line:column: field: what is wrong"; NotFound for a missing file.
// Thread-safety: plain values, pure functions (besides those that read files).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "document/json.h"
#include "tests/behaviours/object_ref.h"

namespace fairlead::behaviours {

// The scheduler name of pods whose manifest has none, as the API server defaults it.
inline constexpr char kDefaultScheduler[] = "default-scheduler";

// What must be true of one pod after a step: it is on one of `nodes`, or waits if there are none.
struct PodExpectation {
  TextPlace place;
  std::string pod;  // "namespace/name"
  std::vector<std::string> nodes;
  // Not this scheduler's pod: it is neither placed nor told anything.
  bool is_ignored = false;
  // Of a pod that waits; empty: any.
  std::string code;     // of the verdict
  std::string reason;   // part of why a node refuses it, in the words of kube-scheduler
  std::string message;  // part of the verdict's message
};

// How many of the pods are in each domain, in ascending order; a domain without any is not counted.
struct SpreadExpectation {
  TextPlace place;
  std::vector<std::string> pods;  // "namespace/name"
  std::string label;              // of their nodes
  std::vector<int64_t> counts;
};

struct Step {
  TextPlace place;
  std::vector<ObjectRef> apply;
  std::vector<std::pair<ObjectRef, Json>> patch;  // JSON merge patches
  std::vector<ObjectRef> remove;
  std::vector<PodExpectation> pods;
  std::vector<SpreadExpectation> spread;
  TextPlace evicted_place;
  std::vector<std::string> evicted;  // exactly these pods, in this step; sorted
};

struct Behaviour {
  std::string file, name, why;
  bool for_kube_scheduler = true;  // it must meet the expectations too
  // KubeSchedulerConfiguration, FairleadConfiguration; at most one of each.
  std::vector<Json> config;
  std::map<ObjectRef, Json> manifests;
  std::vector<Step> steps;

  // The first profile's scheduler name.
  [[nodiscard]] std::string SchedulerName() const;
  // `config` with a KubeSchedulerConfiguration, which is added if the file has none: one profile of
  // the default scheduler.
  [[nodiscard]] std::vector<Json> CompleteConfig() const;
};

// `file` is for errors; its stem must be the behaviour's name.
absl::StatusOr<Behaviour> ParseBehaviour(absl::string_view text, const std::string& file);
absl::StatusOr<Behaviour> ReadBehaviour(const std::string& file);
// The YAML files of a folder, by name; none if there is no such folder.
std::vector<std::string> BehaviourFiles(const std::string& folder);
// The file's name without folder, ending and characters that a test's name may not have.
std::string TestNameOf(const std::string& file);

}  // namespace fairlead::behaviours
