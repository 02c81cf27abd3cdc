// queues, nodes, explain: takes a snapshot, judges it once and shows the result.
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "cmd/fairlead/api_client.h"
#include "cmd/fairlead/commands.h"
#include "cmd/fairlead/config_file.h"
#include "cmd/fairlead/explain.h"
#include "cmd/fairlead/owned_pods.h"
#include "cmd/fairlead/show.h"
#include "cmd/fairlead/snapshot.h"
#include "cmd/fairlead/usage_database.h"
#include "scheduler/model/api_names.h"
#include "usage-prometheus/fetcher.h"

namespace fairlead::cmd {
namespace {

struct Opened {
  OutputFormat format = OutputFormat::kTable;
  std::unique_ptr<Connection> connection;
  std::optional<Settings> settings;
  std::unique_ptr<UsageDatabase> usage_database;  // null: usage is not reported
};

// Finds all errors in the flags before it contacts the server.
absl::StatusOr<Opened> Open(const CommonFlags& flags) {
  Opened opened;
  FAIRLEAD_ASSIGN_OR_RETURN(opened.format, ParseOutputFormat(flags.output));
  FAIRLEAD_ASSIGN_OR_RETURN(opened.settings, LoadSettings(flags.configuration, flags.catalog,
                                                          ReadTextFile, flags.plugins));
  FAIRLEAD_ASSIGN_OR_RETURN(opened.connection, Connection::Open(flags.cluster));
  FAIRLEAD_ASSIGN_OR_RETURN(
      opened.usage_database,
      UsageDatabase::Open(opened.settings->configuration, opened.connection->clock()));
  return opened;
}

absl::StatusOr<model::UsageReport> FetchReport(UsageDatabase& database, absl::Time now) {
  FAIRLEAD_ASSIGN_OR_RETURN(prometheus::Usage usage,
                            prometheus::FetchNow(database.transport(), database.queries(), now));
  return std::move(usage.report);
}

absl::StatusOr<Snapshot> Take(Opened& opened) {
  FetchUsage fetch_usage;
  if (UsageDatabase* database = opened.usage_database.get(); database != nullptr) {
    fetch_usage = [database](absl::Time now) { return FetchReport(*database, now); };
  }
  FAIRLEAD_ASSIGN_OR_RETURN(
      Snapshot snapshot,
      TakeSnapshot(opened.connection->transport(), opened.settings->configuration.options,
                   opened.settings->catalog, opened.connection->clock().Now(), fetch_usage));
  if (!snapshot.missing_kinds.empty()) {
    std::cerr << "note: not installed in this cluster: "
              << absl::StrJoin(snapshot.missing_kinds, ", ") << std::endl;
  }
  for (const std::string& note : snapshot.notes) std::cerr << "note: " << note << std::endl;
  return snapshot;
}

absl::StatusOr<std::optional<Json>> Look(ApiClient& client, const ObjectId& id) {
  absl::StatusOr<Json> found = client.Get(id);
  if (found.ok()) return std::optional<Json>(*std::move(found));
  if (absl::IsNotFound(found.status())) return std::optional<Json>();
  return found.status();
}

// The objects that the subject may mean; for a pod also its group, which has the gang's verdict.
absl::StatusOr<Live> LookUp(ApiClient& client, const Subject& subject) {
  Live live;
  std::string group = subject.kind == Subject::Kind::kPod ? "" : subject.name;
  if (subject.kind != Subject::Kind::kPodGroup) {
    FAIRLEAD_ASSIGN_OR_RETURN(live.pod, Look(client, {"v1", "Pod", subject.ns, subject.name}));
    if (live.pod.has_value()) {
      group = GroupOf(*live.pod);
    }
  }
  if (!group.empty()) {
    const auto look = [&](model::Kind kind) {
      return Look(client, {model::TraitsOf(kind).api_version, "PodGroup", subject.ns, group});
    };
    absl::StatusOr<std::optional<Json>> found = look(model::Kind::kPodGroup);
    if (found.ok() && !found->has_value()) {
      // Who may not read these has no such group.
      absl::StatusOr<std::optional<Json>> native = look(model::Kind::kNativePodGroup);
      if (!absl::IsPermissionDenied(native.status())) found = std::move(native);
    }
    // The pod is readable, its group not: the pod's own record still helps.
    if (live.pod.has_value() && absl::IsPermissionDenied(found.status())) return live;
    FAIRLEAD_ASSIGN_OR_RETURN(live.group, std::move(found));
  }
  return live;
}

}  // namespace

absl::Status RunQueues(const CommonFlags& flags, std::ostream& out) {
  FAIRLEAD_ASSIGN_OR_RETURN(Opened opened, Open(flags));
  FAIRLEAD_ASSIGN_OR_RETURN(const Snapshot snapshot, Take(opened));
  out << (opened.format == OutputFormat::kTable ? QueuesText(snapshot.view)
                                                : Render(QueuesJson(snapshot.view), opened.format));
  return absl::OkStatus();
}

absl::Status RunNodes(const CommonFlags& flags, std::ostream& out) {
  FAIRLEAD_ASSIGN_OR_RETURN(Opened opened, Open(flags));
  FAIRLEAD_ASSIGN_OR_RETURN(const Snapshot snapshot, Take(opened));
  out << (opened.format == OutputFormat::kTable ? NodesText(snapshot.view)
                                                : Render(NodesJson(snapshot.view), opened.format));
  return absl::OkStatus();
}

absl::Status RunExplain(const CommonFlags& flags, const std::string& subject_text,
                        std::ostream& out) {
  FAIRLEAD_ASSIGN_OR_RETURN(Opened opened, Open(flags));
  const std::string ns =
      flags.ns.empty() ? opened.connection->config().default_namespace : flags.ns;
  FAIRLEAD_ASSIGN_OR_RETURN(Subject subject, ParseSubject(subject_text, ns));
  if (subject.kind == Subject::Kind::kQueue) {
    FAIRLEAD_ASSIGN_OR_RETURN(const Snapshot all, Take(opened));
    FAIRLEAD_ASSIGN_OR_RETURN(const core::View view, QueueOnly(subject.name, all.view));
    out << (opened.format == OutputFormat::kTable ? QueuesText(view)
                                                  : Render(QueuesJson(view), opened.format));
    return absl::OkStatus();
  }
  ApiClient client(&opened.connection->transport());
  if (subject.kind == Subject::Kind::kJob || subject.kind == Subject::Kind::kDeployment) {
    FAIRLEAD_ASSIGN_OR_RETURN(const OwnedPod pod, FindPodOf(client, subject));
    std::cerr << "note: " << pod.note << std::endl;
    subject = {Subject::Kind::kPod, subject.ns, pod.name};
  }
  FAIRLEAD_ASSIGN_OR_RETURN(const Live live, LookUp(client, subject));
  const std::vector<std::string> names =
      SchedulerNamesFor(live, opened.settings->configuration.options.state);
  const absl::StatusOr<Snapshot> snapshot = Take(opened);
  // If the cluster may not be listed, the recorded verdict is shown.
  const bool recorded = absl::IsPermissionDenied(snapshot.status());
  if (!recorded) FAIRLEAD_RETURN_IF_ERROR(snapshot.status());
  FAIRLEAD_ASSIGN_OR_RETURN(
      const Explanation explanation,
      recorded ? ExplainRecorded(subject, live, names, opened.connection->clock().Now())
               : Explain(subject, live, *snapshot, names));
  out << (opened.format == OutputFormat::kTable ? ExplainText(explanation)
                                                : Render(ExplainJson(explanation), opened.format));
  return absl::OkStatus();
}

}  // namespace fairlead::cmd
