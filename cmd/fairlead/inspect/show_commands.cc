// queues, nodes, top, explain: takes a snapshot, judges it once and shows the result.
#include "cmd/fairlead/inspect/show_commands.h"

#include <iostream>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "cmd/fairlead/cluster/api_client.h"
#include "cmd/fairlead/inspect/explain.h"
#include "cmd/fairlead/inspect/explain_watch.h"
#include "cmd/fairlead/inspect/open_cluster.h"
#include "cmd/fairlead/inspect/owned_pods.h"
#include "cmd/fairlead/inspect/show.h"
#include "cmd/fairlead/inspect/snapshot.h"
#include "cmd/fairlead/inspect/top.h"
#include "scheduler/model/api_names.h"

namespace fairlead::cmd {
namespace {

absl::StatusOr<Snapshot> Take(Opened& opened) {
  FAIRLEAD_ASSIGN_OR_RETURN(
      Snapshot snapshot,
      TakeSnapshot(opened.connection->transport(), opened.settings->configuration.options,
                   opened.settings->catalog, opened.connection->clock().Now(),
                   FetchUsageOf(opened)));
  TellNotes(snapshot.missing_kinds, snapshot.notes);
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

WatchedAnswer AnswerAboutQueue(const core::View& view, OutputFormat format) {
  WatchedAnswer answer;
  answer.key = QueuesJson(view).Compact();
  answer.text = IsTable(format) ? QueuesText(view) : Render(QueuesJson(view), format);
  return answer;
}

// `noted`: the last note about which pod is meant; one that is new is told.
absl::StatusOr<WatchedAnswer> ExplainOnce(Opened& opened, Subject subject, std::string& noted) {
  if (subject.kind == Subject::Kind::kQueue) {
    FAIRLEAD_ASSIGN_OR_RETURN(const Snapshot all, Take(opened));
    FAIRLEAD_ASSIGN_OR_RETURN(const core::View view, QueueOnly(subject.name, all.view));
    return AnswerAboutQueue(view, opened.format);
  }
  ApiClient client(&opened.connection->transport());
  if (subject.kind == Subject::Kind::kJob || subject.kind == Subject::Kind::kDeployment) {
    FAIRLEAD_ASSIGN_OR_RETURN(const OwnedPod pod, FindPodOf(client, subject));
    if (noted != pod.note) std::cerr << "note: " << pod.note << std::endl;
    noted = pod.note;
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
  WatchedAnswer answer = StateOf(explanation);
  answer.text = IsTable(opened.format) ? ExplainText(explanation)
                                       : Render(ExplainJson(explanation), opened.format);
  return answer;
}

}  // namespace

absl::Status RunQueues(const CommonFlags& flags, std::ostream& out) {
  FAIRLEAD_ASSIGN_OR_RETURN(Opened opened, Open(flags, /*has_wide=*/true));
  FAIRLEAD_ASSIGN_OR_RETURN(const Snapshot snapshot, Take(opened));
  out << (IsTable(opened.format) ? QueuesText(snapshot.view, opened.format == OutputFormat::kWide)
                                 : Render(QueuesJson(snapshot.view), opened.format));
  return absl::OkStatus();
}

absl::Status RunNodes(const CommonFlags& flags, std::ostream& out) {
  FAIRLEAD_ASSIGN_OR_RETURN(Opened opened, Open(flags, /*has_wide=*/true));
  FAIRLEAD_ASSIGN_OR_RETURN(const Snapshot snapshot, Take(opened));
  out << (IsTable(opened.format) ? NodesText(snapshot.view, opened.format == OutputFormat::kWide)
                                 : Render(NodesJson(snapshot.view), opened.format));
  return absl::OkStatus();
}

absl::Status RunTop(const TopFlags& flags, std::ostream& out) {
  FAIRLEAD_ASSIGN_OR_RETURN(const TopOrder order, ParseTopOrder(flags.sort));
  FAIRLEAD_ASSIGN_OR_RETURN(Opened opened, Open(flags.common));
  const core::Options& options = opened.settings->configuration.options;
  const absl::Time now = opened.connection->clock().Now();
  FAIRLEAD_ASSIGN_OR_RETURN(
      const ClusterObjects objects,
      ReadCluster(opened.connection->transport(), {&options}, now, FetchUsageOf(opened)));
  FAIRLEAD_ASSIGN_OR_RETURN(
      const Snapshot snapshot,
      JudgeOnce(objects.events, options, opened.settings->catalog, now, objects.usage));
  TellNotes(objects.missing_kinds, objects.notes);
  const Top top = TopOf(snapshot.view, order);
  out << (IsTable(opened.format) ? TopText(top, static_cast<size_t>(flags.limit))
                                 : Render(TopJson(top), opened.format));
  return absl::OkStatus();
}

absl::Status RunExplain(const ExplainFlags& flags, std::ostream& out) {
  FAIRLEAD_ASSIGN_OR_RETURN(const WatchUntil until, ParseWatchUntil(flags.until));
  FAIRLEAD_ASSIGN_OR_RETURN(Opened opened, Open(flags.common));
  const std::string ns =
      flags.common.ns.empty() ? opened.connection->config().default_namespace : flags.common.ns;
  FAIRLEAD_ASSIGN_OR_RETURN(const Subject subject, ParseSubject(flags.subject, ns));
  if (until != WatchUntil::kNever && subject.kind == Subject::Kind::kQueue) {
    return absl::InvalidArgumentError("--until: a queue is neither placed nor running");
  }
  std::string noted;
  const auto ask = [&] { return ExplainOnce(opened, subject, noted); };
  if (!flags.watch && until == WatchUntil::kNever) {
    FAIRLEAD_ASSIGN_OR_RETURN(const WatchedAnswer answer, ask());
    out << answer.text;
    return absl::OkStatus();
  }
  return WatchAnswers(ask, until, [](absl::Duration wait) { absl::SleepFor(wait); }, out);
}

}  // namespace fairlead::cmd
