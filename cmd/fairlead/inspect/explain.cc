#include "cmd/fairlead/inspect/explain.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "cmd/fairlead/inspect/show.h"
#include "cmd/fairlead/terminal/table.h"
#include "scheduler/model/api_names.h"
#include "scheduler/verdict/json.h"
#include "scheduler/verdict/verdict.h"

namespace fairlead::cmd {
namespace {

using State = Explanation::State;

constexpr size_t kTextWidth = 96;

const char* StateName(State state) {
  switch (state) {
    case State::kWaiting:
      return "Waiting";
    case State::kPlaceable:
      return "Placeable";
    case State::kRunning:
      return "Running";
    case State::kFinished:
      return "Finished";
    case State::kNotOurs:
      return "NotOurs";
    case State::kUnknown:
      break;
  }
  return "Unknown";
}

const char* PhaseName(model::NodeRequestPhase phase) {
  static constexpr const char* kNames[] = {"Pending",  "Launched", "Registered", "Ready",
                                           "Draining", "Failed",   "Gone"};
  return kNames[static_cast<size_t>(phase)];
}

// From the root down to the queue; stops at a circle.
std::vector<core::QueueRow> PathOf(const core::View& view, const std::string& queue) {
  std::map<std::string, const core::QueueRow*> by_name;
  for (const core::QueueRow& row : view.queues) by_name[row.name] = &row;
  std::vector<core::QueueRow> path;
  for (auto at = by_name.find(queue); at != by_name.end() && path.size() < by_name.size();
       at = by_name.find(at->second->parent)) {
    path.push_back(*at->second);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

const Json* Condition(const Json& object, absl::string_view type) {
  const Json* conditions = object.At({"status", "conditions"});
  if (conditions == nullptr) return nullptr;
  for (const Json& condition : conditions->items()) {
    if (condition.TextAt({"type"}) == type) return &condition;
  }
  return nullptr;
}

std::optional<absl::Time> TimeOf(const Json& condition) {
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, condition.TextAt({"lastTransitionTime"}), &time,
                       &error)) {
    return std::nullopt;
  }
  return time;
}

Explanation::Recorded RecordedOn(const Json& object, bool is_group) {
  Explanation::Recorded recorded;
  recorded.on = is_group ? "pod group" : "pod";
  const auto take = [&recorded](const Json& verdict) {
    recorded.reason = verdict.TextAt({"code"});
    recorded.message = verdict.TextAt({"message"});
    recorded.hash = verdict.TextAt({"hash"});
  };
  if (is_group &&
      object.TextAt({"apiVersion"}) == model::TraitsOf(model::Kind::kNativePodGroup).api_version) {
    const absl::StatusOr<Json> verdict =
        Json::Parse(object.TextAt({"metadata", "annotations", model::kVerdictAnnotation}));
    if (verdict.ok()) take(*verdict);
    const Json* condition = Condition(object, model::kPodGroupScheduledCondition);
    if (recorded.message.empty() && condition != nullptr &&
        condition->TextAt({"status"}) == "False") {
      recorded.message = condition->TextAt({"message"});
    }
    if (condition != nullptr) recorded.since = TimeOf(*condition);
  } else if (is_group) {
    if (const Json* status = object.At({"status", "schedulability"}); status != nullptr) {
      take(*status);
    }
    const Json* conditions = object.At({"status", "schedulingConditions"});
    if (conditions != nullptr && !conditions->items().empty()) {
      recorded.since = TimeOf(conditions->items().back());
    }
  } else {
    if (const Json* condition = Condition(object, model::kPodScheduledCondition);
        condition != nullptr && condition->TextAt({"status"}) == "False") {
      recorded.reason = condition->TextAt({"reason"});
      recorded.message = condition->TextAt({"message"});
      recorded.since = TimeOf(*condition);
    }
    recorded.hash =
        model::VerdictHashOf(object.TextAt({"metadata", "annotations", model::kVerdictAnnotation}));
  }
  recorded.any = !recorded.hash.empty() || !recorded.message.empty();
  return recorded;
}

void AddRequests(const Snapshot& snapshot, Explanation& out) {
  if (!out.waiting.has_value()) return;
  for (const std::string& name : out.waiting->verdict.node_requests) {
    Explanation::Request request{name, "", "", "", true};
    if (auto planned = snapshot.plan.requests.find(name); planned != snapshot.plan.requests.end()) {
      request.instance_type = planned->second;
      request.written = false;
    }
    for (const model::NodeRequest& known : snapshot.requests) {
      if (known.meta.name != name) continue;
      request.instance_type = known.instance_type;
      request.zone = known.zone;
      request.phase = PhaseName(known.phase);
    }
    out.requests.push_back(std::move(request));
  }
}

// The state of a pod: from the view and the plan first, then from the API server's object.
void JudgePod(const std::string& key, const Json* pod, const Snapshot& snapshot,
              const std::vector<std::string>& scheduler_names, Explanation& out) {
  for (const core::WaitingRow& row : snapshot.view.waiting) {
    if (std::find(row.pods.begin(), row.pods.end(), key) != row.pods.end()) out.waiting = row;
  }
  for (const core::RunningRow& row : snapshot.view.running) {
    if (row.pod != key) continue;
    out.state = State::kRunning;
    out.node = row.node;
    out.pod_status = row.status;
    out.queue = row.queue;
  }
  if (out.state == State::kRunning) {
    out.waiting.reset();
    return;
  }
  if (auto planned = snapshot.plan.bind.find(key); planned != snapshot.plan.bind.end()) {
    out.state = State::kPlaceable;
    out.node = planned->second;
    return;
  }
  if (out.waiting.has_value()) {
    out.state = State::kWaiting;
    return;
  }
  if (pod == nullptr) return;
  if (out.phase == "Succeeded" || out.phase == "Failed") {
    out.state = State::kFinished;
  } else if (std::find(scheduler_names.begin(), scheduler_names.end(), out.scheduler_name) ==
             scheduler_names.end()) {
    out.state = State::kNotOurs;
  }
  out.node = pod->TextAt({"spec", "nodeName"});
}

void JudgeGroup(const std::string& key, const Snapshot& snapshot, Explanation& out) {
  for (const core::WaitingRow& row : snapshot.view.waiting) {
    if (row.is_group && row.workload == key) out.waiting = row;
  }
  for (const core::RunningRow& row : snapshot.view.running) {
    if (row.workload != key) continue;
    out.pods.push_back(row);
    out.queue = row.queue;
  }
  if (out.waiting.has_value()) {
    out.state = State::kWaiting;
  } else if (!out.pods.empty()) {
    out.state = State::kRunning;
  }
}

// By positions, not by the order of rows: a workload may be in several rows, or in none yet.
void AddAhead(const core::View& view, Explanation& out) {
  if (!out.waiting.has_value() || out.state != State::kWaiting) return;
  std::map<int64_t, std::string> ahead;
  for (const core::WaitingRow& row : view.waiting) {
    const int64_t position = row.verdict.position;
    if (row.queue != out.waiting->queue || position <= 0) continue;
    if (position < out.waiting->verdict.position) ahead.emplace(position, row.workload);
  }
  for (const auto& [position, workload] : ahead) {
    if (out.ahead.size() < Explanation::kNamed) out.ahead.push_back(workload);
  }
}

// ---- text
// ------------------------------------------------------------------------------------------

std::string Line(absl::string_view label, absl::string_view text) {
  const std::string padded =
      absl::StrCat(label, std::string(12 - std::min<size_t>(12, label.size()), ' '));
  return absl::StrCat(padded, Wrapped(Printable(text), kTextWidth - 12, std::string(12, ' ')),
                      "\n");
}

std::string QueueTable(const Explanation& e) {
  Table table({"QUEUE", "RESOURCE", ">ALLOCATED", ">QUOTA", ">LIMIT", ">FAIR SHARE"});
  for (size_t depth = 0; depth < e.queue_path.size(); ++depth) {
    const core::QueueRow& queue = e.queue_path[depth];
    bool first = true;
    for (const core::QueueResourceRow& row : queue.resources) {
      // A resource that is neither used nor bounded is omitted; GPUs are always shown.
      const bool bounded = row.quota > 0 || row.limit != model::kUnlimited;
      const bool idle = row.allocated == 0 && row.requested == 0;
      if (row.resource != model::kGpuName && (idle || !bounded)) continue;
      table.AddRow({first ? absl::StrCat(std::string(depth * 2, ' '), queue.name) : "",
                    row.resource == model::kGpuName ? "GPUs" : row.resource,
                    AmountCell(row.resource, row.allocated), AmountCell(row.resource, row.quota),
                    AmountCell(row.resource, row.limit), AmountCell(row.resource, row.fair_share)});
      first = false;
    }
  }
  return table.Text("  ");
}

std::string PredicateTable(const verdict::Verdict& v) {
  Table table({">NODES", "SAY", "PLUGIN", "LEAST MISSING"});
  for (const verdict::FailedPredicate& predicate : v.failed_predicates) {
    std::vector<std::string> missing;
    missing.reserve(predicate.missing.size());
    for (const verdict::MissingAmount& amount : predicate.missing) {
      missing.push_back(absl::StrCat(model::FormatAmount(amount.resource, amount.smallest), " ",
                                     amount.resource));
    }
    table.AddRow({absl::StrCat(predicate.nodes), predicate.reason, predicate.plugin,
                  absl::StrJoin(missing, ", ")});
  }
  return table.Text("  ");
}

std::string RequestTable(const Explanation& e) {
  Table table({"NODE REQUEST", "TYPE", "ZONE", "PHASE"});
  for (const Explanation::Request& request : e.requests) {
    table.AddRow({request.name, request.instance_type, request.zone,
                  request.written ? request.phase : "to be ordered by the next decision"});
  }
  return table.Text("  ");
}

std::string WaitingText(const Explanation& e) {
  const core::WaitingRow& row = *e.waiting;
  const verdict::Verdict& v = row.verdict;
  std::string out = Line("Why", row.message);
  absl::StrAppend(
      &out, Line("Code",
                 absl::StrCat(verdict::CodeName(v.code), " (",
                              verdict::CategoryName(verdict::CategoryOf(v.code)), ", resolved by ",
                              verdict::ResolvableByName(verdict::ResolvableByOf(v.code)), ")")));
  if (row.since > absl::InfinitePast()) {
    absl::StrAppend(&out, Line("Since", absl::StrCat(Rfc3339(row.since), " (",
                                                     AgeText(e.now - row.since), ")")));
  }
  if (v.position > 0) {
    absl::StrAppend(&out, Line("Position", absl::StrCat(v.position, " in queue ", row.queue,
                                                        ", priority ", row.priority)));
  }
  if (!e.ahead.empty()) {
    const int64_t more = v.position - 1 - static_cast<int64_t>(e.ahead.size());
    absl::StrAppend(
        &out, Line("Ahead", absl::StrCat(absl::StrJoin(e.ahead, ", "),
                                         more > 0 ? absl::StrCat(" and ", more, " more") : "")));
  }
  if (v.min_member > 1) {
    absl::StrAppend(
        &out, Line("Gang", absl::StrCat(v.pods_waiting, " pods wait, ", v.pods_running,
                                        " run, at least ", v.min_member, " must start together")));
  }
  if (v.until.has_value() && *v.until < absl::InfiniteFuture()) {
    absl::StrAppend(&out, Line("Until", Rfc3339(*v.until)));
  }
  if (v.expected_at.has_value() && *v.expected_at < absl::InfiniteFuture()) {
    absl::StrAppend(&out, Line("Expected", Rfc3339(*v.expected_at)));
  }
  for (const std::string& detail : v.details) absl::StrAppend(&out, Line("Note", detail));
  if (!v.unblockers.empty()) {
    absl::StrAppend(&out, "\nWhat would let it run, best first:\n");
    for (size_t i = 0; i < v.unblockers.size(); ++i) {
      absl::StrAppend(&out, "  ", i + 1, ". ",
                      Wrapped(Printable(v.unblockers[i].what), kTextWidth - 5, "     "), " [",
                      verdict::ResolvableByName(v.unblockers[i].by), "]\n");
    }
  }
  if (!v.failed_predicates.empty()) {
    absl::StrAppend(&out, "\nNode rejections:\n", PredicateTable(v));
  }
  if (!e.requests.empty()) {
    absl::StrAppend(&out, "\nNodes that it is waiting for:\n", RequestTable(e));
  }
  return out;
}

std::string RecordedOnlyText(const Explanation& e) {
  const Explanation::Recorded& recorded = e.recorded;
  std::string out = Line("Why", recorded.message.empty() ? "not recorded" : recorded.message);
  absl::StrAppend(&out, Line("Code", recorded.reason));
  if (recorded.since.has_value()) {
    absl::StrAppend(&out, Line("Since", absl::StrCat(Rfc3339(*recorded.since), " (",
                                                     AgeText(e.now - *recorded.since), ")")));
  }
  absl::StrAppend(&out, Line("Note", absl::StrCat("the verdict recorded on the ", recorded.on,
                                                  "; its position and the queues' use need the "
                                                  "role fairlead-reader")));
  return out;
}

std::string RecordedText(const Explanation& e) {
  const Explanation::Recorded& recorded = e.recorded;
  if (e.state != State::kWaiting || e.recorded_only) return "";
  if (!recorded.any) {
    return Line("Recorded",
                "nothing yet: no Fairlead scheduler has written its verdict on the API "
                "server. Is one running? (fairlead run)");
  }
  if (recorded.agrees) {
    return Line("Recorded", absl::StrCat("matches the verdict on the ", recorded.on));
  }
  return Line("Recorded",
              absl::StrCat("on the ", recorded.on, ": ", recorded.reason, ": ", recorded.message,
                           " (differs: the scheduler may be a moment behind, or run "
                           "with another configuration)"));
}

// The identity of the object, from the object itself.
absl::StatusOr<Explanation> Introduce(const Subject& subject, const Live& live, absl::Time now) {
  Explanation out;
  out.ns = subject.ns;
  out.name = subject.name;
  out.now = now;
  const bool pod = live.pod.has_value() && subject.kind != Subject::Kind::kPodGroup;
  out.is_group = !pod && live.group.has_value() && subject.kind != Subject::Kind::kPod;
  if (!pod && !out.is_group) {
    const char* what = subject.kind == Subject::Kind::kPod        ? "no pod"
                       : subject.kind == Subject::Kind::kPodGroup ? "no pod group"
                                                                  : "neither a pod nor a pod group";
    return absl::NotFoundError(
        absl::StrCat("there is ", what, " ", subject.name, " in namespace ", subject.ns));
  }
  if (pod) {
    out.scheduler_name = live.pod->TextAt({"spec", "schedulerName"});
    out.phase = live.pod->TextAt({"status", "phase"});
    out.group = GroupOf(*live.pod);
    out.queue = live.pod->TextAt({"metadata", "labels", model::kQueueLabel});
  } else {
    out.queue = live.group->TextAt({"spec", "queue"});
    if (out.queue.empty()) {
      out.queue = live.group->TextAt({"metadata", "labels", model::kQueueLabel});
    }
  }
  return out;
}

}  // namespace

std::string GroupOf(const Json& pod) {
  const std::string annotated = pod.TextAt({"metadata", "annotations", model::kPodGroupAnnotation});
  return annotated.empty() ? pod.TextAt({"spec", "schedulingGroup", "podGroupName"}) : annotated;
}

std::vector<std::string> SchedulerNamesFor(const Live& live, const state::StateOptions& options) {
  std::vector<std::string> names = options.scheduler_names;
  if (!live.pod.has_value()) return names;
  const std::string queue = live.pod->TextAt({"metadata", "labels", model::kQueueLabel});
  if (!queue.empty() || !GroupOf(*live.pod).empty()) return names;
  std::erase_if(names, [&](const std::string& name) {
    return absl::c_linear_search(options.guest_schedulers, name);
  });
  return names;
}

absl::StatusOr<Explanation> ExplainRecorded(const Subject& subject, const Live& live,
                                            const std::vector<std::string>& scheduler_names,
                                            absl::Time now) {
  FAIRLEAD_ASSIGN_OR_RETURN(Explanation out, Introduce(subject, live, now));
  out.recorded_only = true;
  // The whole verdict of a gang is on its group.
  if (live.group.has_value()) out.recorded = RecordedOn(*live.group, /*is_group=*/true);
  if (!out.recorded.any && !out.is_group) {
    out.recorded = RecordedOn(*live.pod, /*is_group=*/false);
  }
  if (!out.is_group) {
    out.node = live.pod->TextAt({"spec", "nodeName"});
    out.pod_status = out.phase;
  }
  if (out.phase == "Succeeded" || out.phase == "Failed") {
    out.state = State::kFinished;
  } else if (!out.is_group && !absl::c_linear_search(scheduler_names, out.scheduler_name)) {
    out.state = State::kNotOurs;
  } else if (!out.node.empty()) {
    out.state = State::kRunning;
  } else if (out.recorded.any) {
    out.state = State::kWaiting;
  }
  return out;
}

absl::StatusOr<Explanation> Explain(const Subject& subject, const Live& live,
                                    const Snapshot& snapshot,
                                    const std::vector<std::string>& scheduler_names) {
  FAIRLEAD_ASSIGN_OR_RETURN(Explanation out, Introduce(subject, live, snapshot.view.at));
  const std::string key = model::Key(subject.ns, subject.name);
  if (out.is_group) {
    JudgeGroup(key, snapshot, out);
  } else {
    JudgePod(key, &*live.pod, snapshot, scheduler_names, out);
  }
  if (out.waiting.has_value()) out.queue = out.waiting->queue;
  AddAhead(snapshot.view, out);
  out.queue_path = PathOf(snapshot.view, out.queue);
  AddRequests(snapshot, out);
  // A gang's verdict is written once, on its group.
  const bool on_group =
      out.is_group || (out.waiting.has_value() && out.waiting->is_group && live.group.has_value());
  out.recorded = RecordedOn(on_group ? *live.group : *live.pod, on_group);
  out.recorded.agrees =
      out.waiting.has_value() && out.recorded.hash == verdict::Hash(out.waiting->verdict);
  // A new judgement does not know how long it has been true.
  if (out.waiting.has_value()) {
    out.waiting->since = out.recorded.agrees ? out.recorded.since.value_or(absl::InfinitePast())
                                             : absl::InfinitePast();
  }
  return out;
}

absl::StatusOr<core::View> QueueOnly(const std::string& name, const core::View& view) {
  core::View only;
  only.at = view.at;
  only.history = view.history;
  only.queues = PathOf(view, name);
  if (only.queues.empty()) {
    return absl::NotFoundError(absl::StrCat("there is no queue ", name));
  }
  for (const core::QueueRow& row : view.queues) {
    if (row.parent == name && row.name != name) only.queues.push_back(row);
  }
  return only;
}

std::string ExplainText(const Explanation& e) {
  std::string out = Line(e.is_group ? "Pod group" : "Pod", model::Key(e.ns, e.name));
  if (!e.group.empty()) absl::StrAppend(&out, Line("Pod group", model::Key(e.ns, e.group)));
  if (!e.queue.empty()) {
    std::vector<std::string> names;
    names.reserve(e.queue_path.size());
    for (const core::QueueRow& queue : e.queue_path) names.push_back(queue.name);
    const std::string lone = e.recorded_only ? e.queue : absl::StrCat(e.queue, " (does not exist)");
    absl::StrAppend(&out, Line("Queue", names.empty() ? lone : absl::StrJoin(names, " / ")));
  }
  switch (e.state) {
    case State::kWaiting:
      absl::StrAppend(&out, Line("State", "waiting"),
                      e.recorded_only ? RecordedOnlyText(e) : WaitingText(e));
      break;
    case State::kPlaceable:
      absl::StrAppend(
          &out,
          Line("State",
               absl::StrCat("can run: the next decision places it on node ", e.node,
                            ". If it stays so, no Fairlead scheduler is running (fairlead run).")));
      break;
    case State::kRunning:
      if (e.is_group) {
        absl::StrAppend(
            &out, Line("State", absl::StrCat("all its ", e.pods.size(), " pods have a node")));
      } else {
        absl::StrAppend(&out, Line("State", absl::StrCat(e.pod_status, " on node ", e.node)));
      }
      break;
    case State::kFinished:
      absl::StrAppend(&out, Line("State", absl::StrCat("finished (", e.phase, ")",
                                                       e.node.empty() ? "" : " on node ", e.node)));
      break;
    case State::kNotOurs:
      absl::StrAppend(
          &out,
          Line("State", absl::StrCat("not scheduled by Fairlead: its spec.schedulerName is \"",
                                     e.scheduler_name, "\"")));
      break;
    case State::kUnknown:
      absl::StrAppend(
          &out, Line("State", e.recorded_only ? "no verdict is recorded; the cluster could not be "
                                                "listed (role fairlead-reader)"
                              : e.is_group    ? "none of its pods waits or runs"
                                              : "neither waits nor runs; it may be ending"));
      break;
  }
  if (e.is_group && !e.pods.empty()) {
    Table table({"POD", "STATUS", "NODE"});
    for (const core::RunningRow& row : e.pods) table.AddRow({row.pod, row.status, row.node});
    absl::StrAppend(&out, "\nPods with a node:\n", table.Text("  "));
  }
  if (!e.queue_path.empty() && e.state != State::kFinished && e.state != State::kNotOurs) {
    absl::StrAppend(&out, "\nIts queue, from the top:\n", QueueTable(e));
  }
  const std::string recorded = RecordedText(e);
  if (!recorded.empty()) absl::StrAppend(&out, "\n", recorded);
  return out;
}

Json ExplainJson(const Explanation& e) {
  Json json = Json::Object();
  json.Set("kind", e.is_group ? "PodGroup" : "Pod").Set("namespace", e.ns).Set("name", e.name);
  json.Set("state", StateName(e.state)).SetUnlessEmpty("queue", e.queue);
  json.SetUnlessEmpty("podGroup", e.group);
  json.SetUnlessEmpty(e.state == State::kPlaceable ? "wouldRunOn" : "node", e.node);
  json.SetUnlessEmpty("podStatus", e.pod_status).SetUnlessEmpty("schedulerName", e.scheduler_name);
  if (e.waiting.has_value()) {
    json.Set("message", e.waiting->message);
    if (e.waiting->since > absl::InfinitePast()) json.Set("since", Rfc3339(e.waiting->since));
    Json ahead = Json::Array();
    for (const std::string& workload : e.ahead) ahead.Add(Json::String(workload));
    if (!e.ahead.empty()) json.Set("ahead", std::move(ahead));
    // Our own writer made it, so it can be parsed.
    absl::StatusOr<Json> whole =
        Json::Parse(verdict::ToJson(e.waiting->verdict, static_cast<size_t>(1) << 20));
    if (whole.ok()) json.Set("verdict", *std::move(whole));
  }
  Json path = Json::Array();
  for (const core::QueueRow& queue : e.queue_path) {
    Json resources = Json::Object();
    for (const core::QueueResourceRow& row : queue.resources) {
      resources.Set(row.resource, AmountsJson(row));
    }
    Json level = Json::Object();
    path.Add(level.Set("name", queue.name).Set("resources", std::move(resources)));
  }
  json.Set("queuePath", std::move(path));
  Json requests = Json::Array();
  for (const Explanation::Request& request : e.requests) {
    Json one = Json::Object();
    one.Set("name", request.name).SetUnlessEmpty("instanceType", request.instance_type);
    one.SetUnlessEmpty("zone", request.zone).SetUnlessEmpty("phase", request.phase);
    requests.Add(one.Set("written", Json::Bool(request.written)));
  }
  if (!requests.items().empty()) json.Set("nodeRequests", std::move(requests));
  Json pods = Json::Array();
  for (const core::RunningRow& row : e.pods) {
    Json one = Json::Object();
    pods.Add(one.Set("name", row.pod).Set("status", row.status).Set("node", row.node));
  }
  if (!pods.items().empty()) json.Set("pods", std::move(pods));
  if (e.recorded.any) {
    Json recorded = Json::Object();
    recorded.Set("on", e.recorded.on).SetUnlessEmpty("reason", e.recorded.reason);
    recorded.SetUnlessEmpty("message", e.recorded.message);
    recorded.SetUnlessEmpty("hash", e.recorded.hash);
    if (!e.recorded_only) recorded.Set("agrees", Json::Bool(e.recorded.agrees));
    json.Set("recorded", std::move(recorded));
  }
  return json;
}

}  // namespace fairlead::cmd
