// The API objects of one case, as they change from round to round.
//
// Objects stay JSON, so that the product's own decoders read again what the fold writes (node,
// labels, annotations).
//
// Thread-safety: plain values. Errors: InvalidArgument with the object's kind and name.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/conformance/engine_session.h"
#include "tests/conformance/scheduling_case.h"

namespace fairlead::conformance {

class World {
 public:
  explicit World(const SchedulingCase& test);

  // The input of a session with these actions.
  [[nodiscard]] absl::StatusOr<SessionInput> MakeInput(std::vector<std::string> actions) const;

  // Applies a session's result for the next session; returns the pods of the folded world:
  //   Binding    runs on its node, with its GPU groups
  //   Releasing  waits again, or continues to terminate if the case says so
  //   Pipelined  waits again
  // Pod groups with a running pod have a start one minute ago, others none. Statuses of claims are
  // carried over.
  absl::StatusOr<std::map<std::string, PodOutcome>> Fold(const SessionResult& result);

  // "namespace/name" of the pod or pod group; an error if there is none or several of that name.
  [[nodiscard]] absl::StatusOr<std::string> PodKey(absl::string_view name) const;
  [[nodiscard]] absl::StatusOr<std::string> GroupKey(absl::string_view name) const;
  // Keys of the pods of a pod group.
  [[nodiscard]] std::vector<std::string> PodsOf(const std::string& group_key) const;
  // The object's annotation, "" if there is none.
  [[nodiscard]] std::string GroupAnnotation(const std::string& group_key,
                                            absl::string_view annotation) const;

 private:
  [[nodiscard]] absl::StatusOr<std::string> KeyByName(absl::string_view kind,
                                                      absl::string_view name) const;
  void FoldPod(Json& object, PodOutcome& outcome, bool stays_releasing) const;

  absl::Time now_;
  SchedulerSettings settings_;
  std::map<std::string, StartState> start_;
  std::set<std::string> stays_releasing_;
  std::vector<Json> objects_;
};

}  // namespace fairlead::conformance
