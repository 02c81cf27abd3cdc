#include "cmd/fairlead/forecast/drain_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "cmd/fairlead/forecast/forecast_parts.h"
#include "cmd/fairlead/inspect/show.h"
#include "cmd/fairlead/terminal/table.h"
#include "scheduler/model/instance_wishes.h"
#include "sim/successors.h"

namespace fairlead::cmd {
namespace {

using Kind = PodFate::Kind;

struct FateWords {
  const char* name;   // in JSON
  const char* words;  // for people
};

FateWords WordsOf(Kind kind) {
  switch (kind) {
    case Kind::kPlaced:
      return {"placed", "placed"};
    case Kind::kWaits:
      return {"waits", "waits"};
    case Kind::kRefused:
      return {"refused", "stays: a budget refuses"};
    case Kind::kKept:
      return {"kept", "stays: an annotation keeps it"};
    case Kind::kBelongsToNode:
      return {"belongsToNode", "stays: belongs to the node"};
    case Kind::kEnds:
      return {"ends", "ends: no controller"};
    case Kind::kOtherScheduler:
      return {"otherScheduler", "goes: of another scheduler"};
    case Kind::kEnding:
      break;
  }
  return {"ending", "ends already"};
}

// Cordons the nodes. NotFound if one is missing.
absl::Status Cordon(const std::vector<std::string>& names, std::vector<model::Object>& objects) {
  std::set<std::string> missing(names.begin(), names.end());
  for (model::Object& object : objects) {
    auto* node = std::get_if<model::Node>(&object);
    if (node != nullptr && missing.erase(node->meta.name) > 0) node->unschedulable = true;
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("the cluster has no node ", absl::StrJoin(missing, ", ")));
}

// Looks up what became of pods.
class Fates {
 public:
  explicit Fates(const sim::Forecast& forecast) : forecast_(forecast) {
    for (const core::RunningRow& row : forecast.end.running) running_.emplace(row.pod, &row);
    for (const core::WaitingRow& row : forecast.end.waiting) {
      for (const std::string& pod : row.pods) waiting_.emplace(pod, &row);
    }
    for (const sim::Forecast::Order& order : forecast.orders) ordered_.insert(order.request);
    for (const core::NodeRow& node : forecast.end.nodes) {
      if (ordered_.contains(node.node_request)) new_nodes_.insert(node.name);
    }
  }

  [[nodiscard]] PodFate Of(const model::Pod& pod) const {
    PodFate fate;
    fate.pod = model::Key(pod.meta);
    fate.node = pod.node_name;
    if (const auto row = running_.find(fate.pod); row != running_.end()) {
      fate.workload = row->second->workload;
    }
    if (const auto row = waiting_.find(fate.pod); row != waiting_.end()) {
      fate.workload = row->second->workload;
    }
    fate.kind = KindOf(pod, fate);
    return fate;
  }

 private:
  Kind KindOf(const model::Pod& pod, PodFate& fate) const {
    if (sim::BelongsToNode(pod)) return Kind::kBelongsToNode;
    const auto asked = forecast_.drained.find(fate.pod);
    if (asked == forecast_.drained.end()) {
      return pod.meta.deletion.has_value() ? Kind::kEnding : Kind::kKept;
    }
    if (!asked->second.evicted) {
      fate.message = asked->second.refusal;
      return Kind::kRefused;
    }
    if (!sim::HasSuccessor(pod)) return Kind::kEnds;
    if (const auto row = waiting_.find(fate.pod); row != waiting_.end()) {
      fate.code = std::string(verdict::CodeName(row->second->verdict.code));
      fate.message = row->second->message;
      return Kind::kWaits;
    }
    if (const auto row = running_.find(fate.pod); row != running_.end()) {
      fate.to = row->second->node;
      fate.ordered = new_nodes_.contains(fate.to);
      return Kind::kPlaced;
    }
    return Kind::kOtherScheduler;
  }

  const sim::Forecast& forecast_;
  std::map<std::string, const core::RunningRow*> running_;
  std::map<std::string, const core::WaitingRow*> waiting_;
  std::set<std::string> ordered_, new_nodes_;
};

// What happens to others than the drained pods.
std::vector<WorkloadChange> OtherWorkloads(const DrainPlan& plan) {
  std::set<std::string> own;
  for (const PodFate& fate : plan.pods) {
    own.insert(fate.workload);
    own.insert(fate.pod);  // one that ends is its own workload
  }
  std::vector<WorkloadChange> changes = WorkloadsThatDiffer(plan.what_if);
  std::erase_if(changes, [&](const WorkloadChange& change) { return own.contains(change.name); });
  return changes;
}

std::string PodsTable(const DrainPlan& plan) {
  if (plan.pods.empty()) return "\nThere is no pod on them.\n";
  Table table({"POD", "NODE", "THEN", "TO", "CODE"});
  std::string reasons;
  std::set<std::string> told;
  for (size_t i = 0; i < std::min(plan.pods.size(), kMaxRows); ++i) {
    const PodFate& fate = plan.pods[i];
    table.AddRow({fate.pod, fate.node, WordsOf(fate.kind).words,
                  absl::StrCat(fate.to, fate.ordered ? " (to be requested)" : ""), fate.code});
    if (fate.message.empty() || !told.insert(fate.message).second) continue;
    absl::StrAppend(
        &reasons,
        Wrapped(Printable(absl::StrCat(fate.pod, ": ", fate.message)), kTextWidth, "    "), "\n");
  }
  return absl::StrCat("\n", table.Text(), MoreText(plan.pods.size()), reasons.empty() ? "" : "\n",
                      reasons);
}

}  // namespace

absl::StatusOr<DrainPlan> AskDrainPlan(kube::HttpTransport& transport,
                                       const DrainQuestion& question, absl::Time now,
                                       const FetchUsage& fetch_usage) {
  const Settings& settings = *question.settings;
  FAIRLEAD_ASSIGN_OR_RETURN(
      ClusterObjects objects,
      ReadCluster(transport, {&settings.configuration.options}, now, fetch_usage));
  DrainPlan plan;
  const std::set<std::string> names(question.nodes.begin(), question.nodes.end());
  plan.nodes.assign(names.begin(), names.end());
  plan.what_if.at = now;
  plan.what_if.bound = question.bound;
  plan.what_if.missing_kinds = std::move(objects.missing_kinds);
  plan.what_if.notes = std::move(objects.notes);
  sim::ForecastInput without = InputFor(settings, question.bound, now);
  without.present = PresentOf(objects);
  sim::ForecastInput with = without;
  FAIRLEAD_RETURN_IF_ERROR(Cordon(plan.nodes, with.present.objects));
  with.drained = plan.nodes;
  std::vector<model::Pod> pods;
  for (const model::Object& object : with.present.objects) {
    const auto* pod = std::get_if<model::Pod>(&object);
    if (pod != nullptr && names.contains(pod->node_name) && !sim::IsTerminal(*pod)) {
      pods.push_back(*pod);
    }
  }
  FAIRLEAD_ASSIGN_OR_RETURN(plan.what_if.without, sim::Foresee(std::move(without)));
  FAIRLEAD_ASSIGN_OR_RETURN(plan.what_if.with, sim::Foresee(std::move(with)));
  const Fates fates(plan.what_if.with);
  for (const model::Pod& pod : pods) plan.pods.push_back(fates.Of(pod));
  std::sort(plan.pods.begin(), plan.pods.end(), [](const PodFate& a, const PodFate& b) {
    return std::tie(a.node, a.pod) < std::tie(b.node, b.pod);
  });
  return plan;
}

Json DrainPlanJson(const DrainPlan& plan) {
  const sim::Forecast& with = plan.what_if.with;
  Json json = Json::Object();
  json.Set("kind", "DrainPlan").Set("at", Rfc3339(plan.what_if.at));
  Json nodes = Json::Array();
  for (const std::string& node : plan.nodes) nodes.Add(Json::String(node));
  json.Set("nodes", std::move(nodes)).Set("bound", AfterText(plan.what_if.bound));
  json.Set("settled", Json::Bool(with.settled)).Set("lastChange", AfterText(with.last_change));
  Json pods = Json::Array();
  for (const PodFate& fate : plan.pods) {
    Json item = Json::Object();
    item.Set("pod", fate.pod).Set("node", fate.node).Set("fate", WordsOf(fate.kind).name);
    item.SetUnlessEmpty("to", fate.to);
    if (fate.kind == Kind::kPlaced) item.Set("ordered", Json::Bool(fate.ordered));
    pods.Add(item.SetUnlessEmpty("code", fate.code).SetUnlessEmpty("message", fate.message));
  }
  json.Set("pods", std::move(pods));
  json.Set("workloads", WorkloadsJson(OtherWorkloads(plan)));
  json.Set("evictions", EvictionsJson(EvictionsThatDiffer(plan.what_if)));
  Json orders = Json::Array();
  for (const sim::Forecast::Order& order : with.orders) {
    Json item = Json::Object();
    item.Set("instanceType", order.instance_type).Set("after", AfterText(order.after));
    orders.Add(std::move(item));
  }
  json.Set("nodesRequested", std::move(orders));
  const core::View& before = plan.what_if.without.end;
  json.Set("provisioned", NodesComparedJson(before, with.end, "before", "after"));
  Json price = Json::Object();
  price.Set("before", DollarsExact(before.price_micro_usd_per_hour));
  price.Set("after", DollarsExact(with.end.price_micro_usd_per_hour));
  return json.Set("pricePerHourUSD", std::move(price));
}

std::string DrainPlanText(const DrainPlan& plan) {
  const sim::Forecast& with = plan.what_if.with;
  const std::vector<WorkloadChange> others = OtherWorkloads(plan);
  std::string text =
      absl::StrCat("Drained at ", Rfc3339(plan.what_if.at), ": ", absl::StrJoin(plan.nodes, ", "),
                   "; the last change comes after ", AfterText(with.last_change), ".\n",
                   BoundText(with, plan.what_if.bound, "with the drain"));
  absl::StrAppend(&text, PodsTable(plan));
  if (!others.empty()) absl::StrAppend(&text, "\nOther workloads:\n", WorkloadsTable(others));
  absl::StrAppend(&text, EvictionsTable(EvictionsThatDiffer(plan.what_if)),
                  NodesCompared(plan.what_if.without.end, with.end, "BEFORE", "AFTER"));
  return text;
}

}  // namespace fairlead::cmd
