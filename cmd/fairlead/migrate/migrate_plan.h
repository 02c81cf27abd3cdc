// `fairlead migrate` and `fairlead migrate back` as steps. Each step sets one field of one object
// from a value to another; nothing is created but the record, and nothing is deleted. The record, a
// ConfigMap beside Fairlead, is written before the first step and has every former value, so `back`
// restores exactly these.
//
// The order keeps one invariant: never do two schedulers serve one scheduler name. KAI's operator
// stops first, because it would start the others again; then KAI's schedulers; last Fairlead's file
// gets the name. Back is the reverse.
//
// Idempotent: a step whose field has the new value already is no step, and a record that is there
// keeps its former values.
// Thread-safety: pure functions. Errors: FailedPrecondition names the object and says what to do by
// hand; InvalidArgument for a record that is damaged.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cmd/fairlead/cluster/api_client.h"
#include "cmd/fairlead/migrate/kai_installation.h"
#include "document/json.h"

namespace fairlead::cmd {

inline constexpr char kMigrationRecord[] = "fairlead-migration";

struct MigrationStep {
  std::string title;  // "stop KAI's scheduler kai-scheduler/kai-scheduler-default"
  ObjectId object;
  std::string pointer;  // RFC 6901: "/spec/replicas"
  Json from, to;
  std::string pods;                   // a label selector: these are to be gone after it; or empty
  std::string served;                 // of Fairlead's file: the scheduler name that it gets
  bool drains_bind_requests = false;  // KAI's binder has to finish what KAI's scheduler decided
};

struct MigrateOptions {
  bool controllers = false;  // stop KAI's other controllers, too
};

// What is still to be done, in order.
absl::StatusOr<std::vector<MigrationStep>> PlanMigration(const KaiInstallation& kai,
                                                         const MigrateOptions& options);

// The record before the steps are done: what `recorded` has, with the former values of `steps` that
// it does not have, or has another value of.
std::vector<MigrationStep> MergeRecord(std::vector<MigrationStep> recorded,
                                       const std::vector<MigrationStep>& steps);
// The ConfigMap, to be applied.
Json RecordManifest(const std::string& ns, const std::vector<MigrationStep>& steps);
absl::StatusOr<std::vector<MigrationStep>> ReadRecord(const Json& config_map);

// The steps that undo the recorded ones: in reverse, `from` and `to` exchanged.
std::vector<MigrationStep> UndoSteps(const std::vector<MigrationStep>& recorded);

// What a step does to its object as it is now.
enum class StepState : uint8_t {
  kDue,      // the field has `from`
  kDone,     // it has `to` already
  kChanged,  // it has another value: somebody has set it since
};
StepState StateOf(const MigrationStep& step, const Json& object);
// The JSON patch of a step that is due; it fails if the field has another value by then.
Json PatchOf(const MigrationStep& step);
// Null if there is nothing.
const Json* ValueAt(const Json& object, absl::string_view pointer);

// A configuration file whose schedulerNames has `name`, or has it no more; the rest of the text
// stays as it is. FailedPrecondition if that cannot be done by changing the list in place.
absl::StatusOr<std::string> WithSchedulerName(const std::string& text, const std::string& name);
absl::StatusOr<std::string> WithoutSchedulerName(const std::string& text, const std::string& name);

// A line per step: "stop ...: Deployment a/b, /spec/replicas: 1 -> 0". Long values are not shown.
std::string StepText(const MigrationStep& step);

}  // namespace fairlead::cmd
