#include "cmd/fairlead/migrate/migrate_run.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "kube/transport/url.h"

namespace fairlead::cmd {
namespace {

constexpr char kBindRequests[] = "/apis/scheduling.run.ai/v1alpha2/bindrequests";

absl::Status ListInto(ApiClient& api, const std::string& path, std::vector<Json>& out) {
  absl::StatusOr<std::vector<Json>> items = api.List(path);
  if (absl::IsNotFound(items.status())) return absl::OkStatus();
  if (!items.ok()) return items.status();
  out = *std::move(items);
  return absl::OkStatus();
}

absl::Status GetInto(ApiClient& api, const std::string& path, std::vector<Json>& out) {
  absl::StatusOr<Json> object = api.GetPath(path);
  if (absl::IsNotFound(object.status())) return absl::OkStatus();
  if (!object.ok()) return object.status();
  out.push_back(*std::move(object));
  return absl::OkStatus();
}

std::string WithQuery(std::string path, const std::string& key, const std::string& value) {
  kube::AddQuery(path, key, value);
  return path;
}

// What keeps the effect of the step from being complete; empty: nothing.
absl::StatusOr<std::string> Missing(ApiClient& api, const MigrationStep& step) {
  if (!step.pods.empty()) {
    std::vector<Json> pods;
    FAIRLEAD_RETURN_IF_ERROR(
        ListInto(api,
                 WithQuery(absl::StrCat("/api/v1/namespaces/", step.object.ns, "/pods"),
                           "labelSelector", step.pods),
                 pods));
    if (!pods.empty()) return absl::StrCat("pods that still run: ", pods.size());
  }
  if (step.drains_bind_requests) {
    KaiObjects objects;
    FAIRLEAD_RETURN_IF_ERROR(ListInto(api, kBindRequests, objects.bind_requests));
    const std::vector<std::string> open = ReadKaiInstallation(objects).open_bind_requests;
    if (!open.empty()) {
      return absl::StrCat("BindRequests that KAI's binder has not finished: ", open.size(), ", ",
                          open.front());
    }
  }
  return "";
}

absl::Status AwaitEffect(ApiClient& api, const MigrationStep& step, const MigrationPace& pace) {
  for (absl::Duration waited;; waited += pace.poll) {
    FAIRLEAD_ASSIGN_OR_RETURN(const std::string missing, Missing(api, step));
    if (missing.empty()) return absl::OkStatus();
    if (waited >= pace.patience) {
      return absl::DeadlineExceededError(absl::StrCat(
          step.title, ": not complete after ", absl::FormatDuration(pace.patience), ": ", missing,
          "; give the command again when that has changed, or `fairlead migrate back --yes`"));
    }
    pace.sleep(pace.poll);
  }
}

absl::Status DoStep(ApiClient& api, const MigrationStep& step, const MigrationPace& pace,
                    std::ostream& out) {
  FAIRLEAD_ASSIGN_OR_RETURN(const Json object, api.Get(step.object));
  switch (StateOf(step, object)) {
    case StepState::kChanged:
      return absl::FailedPreconditionError(
          absl::StrCat(step.object.Text(), ": ", step.pointer,
                       " was changed meanwhile; give the command again"));
    case StepState::kDue:
      FAIRLEAD_RETURN_IF_ERROR(api.PatchJson(step.object, PatchOf(step)).status());
      break;
    case StepState::kDone:
      break;
  }
  FAIRLEAD_RETURN_IF_ERROR(AwaitEffect(api, step, pace));
  out << "done  " << StepText(step) << std::endl;
  return absl::OkStatus();
}

// Fairlead's file loses the name whatever else was changed in it since.
absl::StatusOr<MigrationStep> AsItIsNow(MigrationStep undo, const Json& object) {
  const Json* const text = ValueAt(object, undo.pointer);
  if (text == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(undo.object.Text(), ": has no ", undo.pointer,
                                                      "; take ", undo.served,
                                                      " from Fairlead's schedulerNames by hand"));
  }
  undo.from = *text;
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string without,
                            WithoutSchedulerName(text->text(), undo.served));
  undo.to = Json::String(without);
  return undo;
}

// True if the field has its former value then.
absl::StatusOr<bool> UndoStep(ApiClient& api, MigrationStep undo, const MigrationPace& pace,
                              std::ostream& out) {
  const absl::StatusOr<Json> object = api.Get(undo.object);
  if (absl::IsNotFound(object.status())) {
    out << "gone  " << StepText(undo) << std::endl;
    return true;
  }
  if (!object.ok()) return object.status();
  StepState state = StateOf(undo, *object);
  const bool serves = !undo.served.empty();
  if (state == StepState::kChanged && serves) {
    FAIRLEAD_ASSIGN_OR_RETURN(undo, AsItIsNow(std::move(undo), *object));
    state = StateOf(undo, *object);
  }
  if (state == StepState::kChanged) {
    const Json* const value = ValueAt(*object, undo.pointer);
    out << "left  " << StepText(undo) << ", because it is "
        << (value == nullptr ? "gone" : value->Compact()) << " now" << std::endl;
    return false;
  }
  if (state == StepState::kDue) {
    FAIRLEAD_RETURN_IF_ERROR(api.PatchJson(undo.object, PatchOf(undo)).status());
    if (serves && pace.settle > absl::ZeroDuration()) {
      out << "wait  " << absl::FormatDuration(pace.settle)
          << " until Fairlead has the changed file, so that no two schedulers serve " << undo.served
          << std::endl;
      pace.sleep(pace.settle);
    }
  }
  out << "done  " << StepText(undo) << std::endl;
  return true;
}

}  // namespace

absl::StatusOr<KaiObjects> ReadKaiObjects(ApiClient& api) {
  KaiObjects objects;
  FAIRLEAD_RETURN_IF_ERROR(ListInto(api, "/apis/kai.scheduler/v1/configs", objects.configs));
  const std::string pods =
      WithQuery("/api/v1/pods", "fieldSelector",
                absl::StrCat("spec.schedulerName=", KaiSchedulerNameOf(objects.configs)));
  const std::string webhooks = "/apis/admissionregistration.k8s.io/v1/";
  const std::pair<std::string, std::vector<Json>*> lists[] = {
      {"/apis/apps/v1/deployments", &objects.deployments},
      {"/apis/kai.scheduler/v1/schedulingshards", &objects.shards},
      {"/apis/scheduling.run.ai/v2/queues", &objects.queues},
      {"/apis/scheduling.run.ai/v2alpha2/podgroups", &objects.pod_groups},
      {"/apis/kai.scheduler/v1alpha1/topologies", &objects.topologies},
      {kBindRequests, &objects.bind_requests},
      {"/apis/scheduling.k8s.io/v1/priorityclasses", &objects.priority_classes},
      {webhooks + "validatingwebhookconfigurations", &objects.validating_webhooks},
      {webhooks + "mutatingwebhookconfigurations", &objects.mutating_webhooks},
      {pods, &objects.pods}};
  for (const auto& [path, list] : lists) FAIRLEAD_RETURN_IF_ERROR(ListInto(api, path, *list));
  for (const char* name : {"queues.scheduling.run.ai", "podgroups.scheduling.run.ai"}) {
    FAIRLEAD_RETURN_IF_ERROR(
        GetInto(api, absl::StrCat("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/", name),
                objects.definitions));
  }
  const FairleadInstallation fairlead = FindFairlead(objects.deployments);
  if (fairlead.config_map.empty()) return objects;
  const absl::StatusOr<Json> file = api.Get({"v1", "ConfigMap", fairlead.ns, fairlead.config_map});
  if (!file.ok() && !absl::IsNotFound(file.status())) return file.status();
  if (file.ok()) objects.fairlead_configuration = *file;
  return objects;
}

absl::StatusOr<std::optional<FoundRecord>> FindRecord(ApiClient& api) {
  std::vector<Json> maps;
  FAIRLEAD_RETURN_IF_ERROR(ListInto(api,
                                    WithQuery("/api/v1/configmaps", "fieldSelector",
                                              absl::StrCat("metadata.name=", kMigrationRecord)),
                                    maps));
  if (maps.empty()) return std::nullopt;
  FoundRecord record;
  record.ns = maps.front().TextAt({"metadata", "namespace"});
  FAIRLEAD_ASSIGN_OR_RETURN(record.steps, ReadRecord(maps.front()));
  return record;
}

absl::Status Migrate(ApiClient& api, const std::string& ns,
                     const std::vector<MigrationStep>& recorded,
                     const std::vector<MigrationStep>& steps, const MigrationPace& pace,
                     std::ostream& out) {
  FAIRLEAD_RETURN_IF_ERROR(
      api.Apply(RecordManifest(ns, MergeRecord(recorded, steps)), "fairlead-migrate").status());
  for (const MigrationStep& step : steps) {
    FAIRLEAD_RETURN_IF_ERROR(DoStep(api, step, pace, out));
  }
  return absl::OkStatus();
}

absl::Status MigrateBack(ApiClient& api, const FoundRecord& record, const MigrationPace& pace,
                         std::ostream& out) {
  std::vector<std::string> left;
  for (const MigrationStep& undo : UndoSteps(record.steps)) {
    FAIRLEAD_ASSIGN_OR_RETURN(const bool restored, UndoStep(api, undo, pace, out));
    if (!restored) left.push_back(undo.object.Text());
  }
  if (!left.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "left as they are, because somebody has changed them since: ", absl::StrJoin(left, ", "),
        "; ConfigMap ", record.ns, "/", kMigrationRecord, " has their former values"));
  }
  return api.Delete({"v1", "ConfigMap", record.ns, kMigrationRecord});
}

}  // namespace fairlead::cmd
