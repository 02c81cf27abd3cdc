#include "cmd/fairlead/inspect/snapshot.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "cmd/fairlead/cluster/api_client.h"
#include "cmd/fairlead/cluster/api_lists.h"
#include "core/decision_loop.h"
#include "kube/codec/codec.h"
#include "kube/watch/source.h"
#include "scheduler/model/api_names.h"

namespace fairlead::cmd {
namespace {

constexpr int kPageSize = 500;
constexpr char kNoHistory[] = "fair shares are judged without the history of usage: ";

// Every object of a kind. NotFound if the server has no such kind.
absl::Status ListKind(kube::HttpTransport& transport, model::Kind kind,
                      std::vector<model::ClusterEvent>& events) {
  ListQuery query{.limit = kPageSize};
  do {
    absl::StatusOr<kube::ListPage> page =
        ListPageOf(kind, transport.Call(ListRequest(kind, query)));
    if (!page.ok()) {
      return absl::Status(page.status().code(), absl::StrCat("listing ", kube::CollectionPath(kind),
                                                             ": ", page.status().message()));
    }
    for (kube::Object& object : page->items) {
      if (kube::IsWatched(object)) events.push_back(model::Upsert{std::move(object)});
    }
    query.continue_token = std::move(page->continue_token);
  } while (!query.continue_token.empty());
  events.push_back(model::Synced{kind});
  return absl::OkStatus();
}

// The usage that the scheduler has stored; empty if there is none; a note if it could not be read.
std::string ReadUsage(kube::HttpTransport& transport, const core::Options& options,
                      std::string& note) {
  if (!options.engine.usage.has_value() || options.usage_store.name.empty()) return "";
  if (options.engine.usage->reported) return "";
  kube::HttpRequest request;
  request.path = kube::UsageMapPath(options.usage_store.ns, options.usage_store.name);
  const absl::StatusOr<kube::HttpResponse> answer = transport.Call(std::move(request));
  const absl::Status status = StatusOfAnswer(answer);
  if (absl::IsNotFound(status)) return "";
  absl::StatusOr<std::string> text =
      status.ok() ? kube::DecodeStoredUsage(answer->body) : absl::StatusOr<std::string>(status);
  if (text.ok()) return *std::move(text);
  note = absl::StrCat(kNoHistory, text.status().message());
  return "";
}

// Adds the reported usage.
void AddReport(const core::Options& options, const FetchUsage& fetch_usage, absl::Time now,
               std::vector<model::ClusterEvent>& events, std::string& note) {
  if (!options.engine.usage.has_value() || !options.engine.usage->reported) return;
  absl::StatusOr<model::UsageReport> report =
      absl::UnavailableError("no database of usage is configured");
  if (fetch_usage != nullptr) report = fetch_usage(now);
  if (report.ok()) {
    events.emplace_back(*std::move(report));
  } else {
    note = absl::StrCat(kNoHistory, report.status().message());
  }
}

// "NodePool (fairlead.dev/v1alpha1)"
std::string KindText(model::Kind kind) {
  const model::KindTraits& traits = model::TraitsOf(kind);
  return absl::StrCat(traits.name, " (", traits.api_version, ")");
}

void TakePlan(const core::StepResult& result, Plan& plan) {
  for (const model::Action& action : result.actions) {
    if (const auto* bind = std::get_if<model::BindPod>(&action.what)) {
      plan.bind[model::Key(bind->ns, bind->name)] = bind->node;
    } else if (const auto* extended = std::get_if<model::SetExtendedClaim>(&action.what)) {
      plan.bind[model::Key(extended->ns, extended->name)] = extended->node;
    } else if (const auto* claim = std::get_if<model::ReserveClaim>(&action.what)) {
      // The pods are bound once the claim is reserved.
      for (const model::ReserveClaim::Consumer& pod : claim->pods) {
        plan.bind[model::Key(claim->ns, pod.name)] = claim->allocation.node;
      }
    } else if (const auto* evict = std::get_if<model::EvictPod>(&action.what)) {
      plan.evict.insert(model::Key(evict->ns, evict->name));
    } else if (const auto* create = std::get_if<model::CreateNodeRequest>(&action.what)) {
      plan.requests[create->request->meta.name] = create->request->instance_type;
    }
  }
}

// Removes what only the plan has.
void ShowWhatStands(const Plan& plan, const std::vector<model::NodeRequest>& requests,
                    core::View& view) {
  std::erase_if(view.nodes, [&](const core::NodeRow& node) {
    return plan.requests.contains(node.node_request);
  });
  std::erase_if(view.running,
                [&](const core::RunningRow& row) { return plan.bind.contains(row.pod); });
  view.price_micro_usd_per_hour = 0;
  for (const model::NodeRequest& request : requests) {
    if (request.phase == model::NodeRequestPhase::kGone ||
        request.phase == model::NodeRequestPhase::kFailed) {
      continue;
    }
    view.price_micro_usd_per_hour += request.price_micro_usd_per_hour;
  }
  view.gpus_held = 0;
  for (const core::NodeRow& node : view.nodes) {
    if (node.node_request.empty()) continue;
    view.gpus_held += model::Get(node.allocatable, model::kGpuName) / 1000;
  }
}

}  // namespace

absl::StatusOr<Snapshot> JudgeOnce(const std::vector<model::ClusterEvent>& events,
                                   const core::Options& options, const hook::Catalog& catalog,
                                   absl::Time now, const std::string& usage) {
  core::Options at_once = options;  // the plan shows every eviction, not only the first
  at_once.evictions.max_in_flight = model::kUnlimited;
  at_once.evictions.per_second = 0;
  at_once.grouping.suspend = false;  // that would take more than one step
  // There is no later step in which gathered demand would be planned.
  at_once.hook.gathering_quiet = at_once.hook.gathering_max = absl::ZeroDuration();
  FAIRLEAD_ASSIGN_OR_RETURN(std::unique_ptr<core::DecisionLoop> loop,
                            core::DecisionLoop::Make(at_once, &catalog));
  Snapshot snapshot;
  for (const model::ClusterEvent& event : events) {
    loop->Apply(event);
    const auto* upsert = std::get_if<model::Upsert>(&event);
    if (upsert == nullptr) continue;
    if (const auto* request = std::get_if<model::NodeRequest>(&upsert->object)) {
      snapshot.requests.push_back(*request);
    }
  }
  std::sort(snapshot.requests.begin(), snapshot.requests.end(),
            [](const auto& a, const auto& b) { return a.meta.name < b.meta.name; });
  if (const absl::Status restored = loop->RestoreUsage(usage); !restored.ok()) {
    snapshot.notes.push_back(absl::StrCat(kNoHistory, restored.message()));
  }
  const core::StepResult result = loop->Step(now);
  snapshot.view = loop->MakeView(now);
  TakePlan(result, snapshot.plan);
  // A guest would be told so.
  for (const core::GuestGrant& grant : loop->TakeGrants()) {
    snapshot.plan.bind[model::Key(grant.ns, grant.name)] = grant.node;
  }
  ShowWhatStands(snapshot.plan, snapshot.requests, snapshot.view);
  return snapshot;
}

absl::StatusOr<ClusterObjects> ReadCluster(kube::HttpTransport& transport,
                                           const std::vector<const core::Options*>& options,
                                           absl::Time now, const FetchUsage& fetch_usage) {
  ClusterObjects objects;
  std::vector<model::ClusterEvent>& events = objects.events;
  std::vector<std::string>& missing = objects.missing_kinds;
  bool queues = true;
  for (const model::Kind kind : model::kAllKinds) {
    if (std::none_of(options.begin(), options.end(),
                     [kind](const core::Options* reader) { return core::Reads(*reader, kind); })) {
      continue;
    }
    const absl::Status listed = ListKind(transport, kind, events);
    const bool core_kind = kube::HasProtobuf(kind);
    // Continues without the kind, as the scheduler does.
    if (model::IsOptional(kind) && (absl::IsPermissionDenied(listed) || absl::IsNotFound(listed))) {
      events.push_back(model::Synced{kind, /*missing=*/true});
      continue;
    }
    if (absl::IsNotFound(listed) && !core_kind) {
      missing.push_back(KindText(kind));
      if (kind == model::Kind::kQueue) queues = false;
      events.push_back(model::Synced{kind});
      continue;
    }
    FAIRLEAD_RETURN_IF_ERROR(listed);
  }
  if (!queues) {
    return absl::FailedPreconditionError(
        absl::StrCat("the cluster does not know these kinds: ", absl::StrJoin(missing, ", "),
                     ". Install them with: kubectl apply --server-side -f crds/"));
  }
  std::string note;
  objects.usage = ReadUsage(transport, *options.front(), note);
  AddReport(*options.front(), fetch_usage, now, events, note);
  if (!note.empty()) objects.notes.push_back(std::move(note));
  return objects;
}

absl::StatusOr<Snapshot> TakeSnapshot(kube::HttpTransport& transport, const core::Options& options,
                                      const hook::Catalog& catalog, absl::Time now,
                                      const FetchUsage& fetch_usage) {
  FAIRLEAD_ASSIGN_OR_RETURN(ClusterObjects objects,
                            ReadCluster(transport, {&options}, now, fetch_usage));
  FAIRLEAD_ASSIGN_OR_RETURN(Snapshot snapshot,
                            JudgeOnce(objects.events, options, catalog, now, objects.usage));
  snapshot.missing_kinds = std::move(objects.missing_kinds);
  for (std::string& note : objects.notes) snapshot.notes.push_back(std::move(note));
  return snapshot;
}

}  // namespace fairlead::cmd
