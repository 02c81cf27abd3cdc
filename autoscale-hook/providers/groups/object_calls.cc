#include "autoscale-hook/providers/groups/object_calls.h"

#include "absl/strings/str_cat.h"
#include "base/json_writer.h"

namespace fairlead::hook {

absl::Status WithSubject(absl::string_view subject, const absl::Status& status) {
  return {status.code(), absl::StrCat(subject, ": ", status.message())};
}

absl::Status OfObjectCall(const absl::Status& status, absl::string_view call) {
  if (!absl::IsResourceExhausted(status)) return WithSubject(call, status);
  return WithSubject(call, absl::UnavailableError(status.message()));
}

absl::Status OfMachineRead(const absl::Status& status, absl::string_view call) {
  if (!absl::IsNotFound(status)) return OfObjectCall(status, call);
  return WithSubject(call, absl::UnavailableError(status.message()));
}

absl::Status RefusedForGroup(const std::string& group, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("group ", group, ": ", why));
}

absl::Status GivenUp(const GroupOperation& op) {
  return absl::UnavailableError(absl::StrCat("group ", op.group, ": given up after ",
                                             absl::FormatDuration(GroupOperation::kLongest)));
}

absl::Status AnnotationNotShown(absl::string_view path, absl::string_view annotation) {
  return absl::InternalError(
      absl::StrCat("patch ", path, ": the answer does not show annotation ", annotation));
}

absl::Status CheckIncrease(const GroupOperation& op, int64_t replicas, int64_t max_size) {
  // Subtracts, because a sum could overflow.
  if (op.delta > 0 && op.delta <= max_size - replicas) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("group ", op.group, " has ", replicas,
                                                   " replicas, and its maximum is ", max_size));
}

absl::Status CheckDecrease(const GroupOperation& op, int64_t replicas, int64_t min_size) {
  if (op.delta > 0 && replicas - op.delta >= min_size) return absl::OkStatus();
  return RefusedForGroup(op.group, absl::StrCat("its minimum is ", min_size));
}

absl::Status CheckRemoval(const GroupOperation& op, int64_t replicas, int64_t min_size) {
  if (replicas > min_size) return absl::OkStatus();
  return RefusedForGroup(op.group, absl::StrCat("is at its minimum of ", min_size));
}

std::string AnnotationPatch(absl::string_view resource_version, absl::string_view annotation,
                            std::optional<absl::string_view> value) {
  JsonWriter json;
  json.BeginObject().Key("metadata").BeginObject();
  json.FieldUnlessEmpty("resourceVersion", resource_version);
  json.Key("annotations").BeginObject().Key(annotation);
  value.has_value() ? json.String(*value) : json.Null();
  return json.EndObject().EndObject().EndObject().Take();
}

void WriteSize(ObjectApi* api, const OwnedCallbacks& callbacks, const GroupOperation& op,
               const SizeChange& change, CloudGroups::Done done) {
  if (op.expired) return done(GivenUp(op));
  JsonWriter json;
  json.BeginObject().Key("metadata").BeginObject();
  json.Field("resourceVersion", change.resource_version);
  if (!change.annotations.empty()) json.Key("annotations").Raw(change.annotations);
  json.EndObject().Key("spec").BeginObject().Key("replicas").Int(change.replicas);
  json.EndObject().EndObject();
  api->Patch(
      change.path, json.Take(),
      callbacks.Once<absl::StatusOr<Json>>(
          [path = change.path, done = std::move(done)](const absl::StatusOr<Json>& written) {
            done(written.ok() ? absl::OkStatus() : OfObjectCall(written.status(), "patch " + path));
          }));
}

}  // namespace fairlead::hook
