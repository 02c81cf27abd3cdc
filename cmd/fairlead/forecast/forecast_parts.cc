#include "cmd/fairlead/forecast/forecast_parts.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cmd/fairlead/inspect/show.h"
#include "cmd/fairlead/terminal/table.h"

namespace fairlead::cmd {

std::string MoreText(size_t rows) {
  return rows <= kMaxRows ? ""
                          : absl::StrCat("... and ", rows - kMaxRows, " more; -o json has all\n");
}

sim::ForecastInput InputFor(const Settings& settings, absl::Duration bound, absl::Time now) {
  sim::ForecastInput input;
  input.core = settings.configuration.options;
  input.catalog = &settings.catalog;
  input.now = now;
  input.bound = bound;
  return input;
}

std::string Pair(const std::string& before, const std::string& after) {
  return before == after ? after : absl::StrCat(before, " -> ", after);
}

absl::StatusOr<absl::Duration> ParseBound(const std::string& text) {
  absl::Duration bound;
  if (absl::ParseDuration(text, &bound) && bound >= absl::Seconds(1) && bound <= absl::Hours(24)) {
    return bound;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--for ", text, ": must be a duration from 1s to 24h, such as 30m"));
}

sim::Present PresentOf(const ClusterObjects& objects) {
  sim::Present present;
  present.usage = objects.usage;
  for (const model::ClusterEvent& event : objects.events) {
    if (const auto* upsert = std::get_if<model::Upsert>(&event)) {
      present.objects.push_back(upsert->object);
    } else if (const auto* synced = std::get_if<model::Synced>(&event)) {
      if (synced->missing) present.missing.insert(synced->kind);
    } else if (const auto* report = std::get_if<model::UsageReport>(&event)) {
      present.report = *report;
    }
  }
  return present;
}

std::map<std::string, WorkloadState> WorkloadsOf(const core::View& view) {
  std::map<std::string, WorkloadState> states;
  for (const core::RunningRow& row : view.running) {
    if (row.status == "Releasing") continue;
    WorkloadState& state = states[row.workload];
    state.queue = row.queue;
    ++state.placed;
  }
  for (const core::WaitingRow& row : view.waiting) {
    WorkloadState& state = states[row.workload];
    state.queue = row.queue;
    state.waiting += static_cast<int64_t>(row.pods.size());
    state.code = std::string(verdict::CodeName(row.verdict.code));
    state.message = row.message;
  }
  return states;
}

std::string StateText(const std::optional<WorkloadState>& state) {
  if (!state.has_value()) return "-";
  std::string text;
  if (state->placed > 0) {
    text = state->placed + state->waiting > 1 ? absl::StrCat(state->placed, " placed") : "placed";
  }
  if (state->waiting == 0) return text;
  return absl::StrCat(
      text, text.empty() ? "" : ", ",
      state->placed + state->waiting > 1 ? absl::StrCat(state->waiting, " wait") : "waits", ": ",
      state->code);
}

namespace {

struct NodeTotal {
  int64_t count = 0, price_micro_usd_per_hour = 0;
};
// By type and capacity type.
using NodeTotals = std::map<std::pair<std::string, std::string>, NodeTotal>;

NodeTotals NodesByType(const core::View& view) {
  NodeTotals totals;
  for (const core::NodeRow& node : view.nodes) {
    if (node.node_request.empty()) continue;
    NodeTotal& total = totals[{node.instance_type, node.capacity_type}];
    ++total.count;
    total.price_micro_usd_per_hour += node.price_micro_usd_per_hour;
  }
  return totals;
}

// Every type of either, with both totals.
std::map<std::pair<std::string, std::string>, std::pair<NodeTotal, NodeTotal>> BothByType(
    const core::View& before, const core::View& after) {
  std::map<std::pair<std::string, std::string>, std::pair<NodeTotal, NodeTotal>> both;
  for (const auto& [type, total] : NodesByType(before)) both[type].first = total;
  for (const auto& [type, total] : NodesByType(after)) both[type].second = total;
  return both;
}

}  // namespace

std::string NodesCompared(const core::View& before, const core::View& after,
                          const std::string& before_title, const std::string& after_title) {
  const auto both = BothByType(before, after);
  std::string text = "\n";
  if (!both.empty()) {
    Table table({"PROVISIONED TYPE", "CAPACITY", absl::StrCat(">", before_title),
                 absl::StrCat(">", after_title), ">$/H"});
    for (const auto& [type, totals] : both) {
      table.AddRow({type.first, type.second, absl::StrCat(totals.first.count),
                    absl::StrCat(totals.second.count),
                    Pair(DollarsText(totals.first.price_micro_usd_per_hour),
                         DollarsText(totals.second.price_micro_usd_per_hour))});
    }
    absl::StrAppend(&text, table.Text(), "\n");
  }
  return absl::StrCat(
      text, "Provisioned nodes, $ an hour: ",
      Pair(DollarsText(before.price_micro_usd_per_hour),
           DollarsText(after.price_micro_usd_per_hour)),
      "; their GPUs: ", Pair(absl::StrCat(before.gpus_held), absl::StrCat(after.gpus_held)), ".\n");
}

Json NodesComparedJson(const core::View& before, const core::View& after, const char* before_key,
                       const char* after_key) {
  const auto total = [](const NodeTotal& of) {
    Json json = Json::Object();
    json.Set("count", Json::Int(of.count));
    return json.Set("pricePerHourUSD", DollarsExact(of.price_micro_usd_per_hour));
  };
  Json nodes = Json::Array();
  for (const auto& [type, totals] : BothByType(before, after)) {
    Json item = Json::Object();
    item.Set("instanceType", type.first).Set("capacityType", type.second);
    item.Set(before_key, total(totals.first)).Set(after_key, total(totals.second));
    nodes.Add(std::move(item));
  }
  return nodes;
}

std::string AfterText(absl::Duration duration) {
  return absl::FormatDuration(absl::Trunc(duration, absl::Seconds(1)));
}

std::string BoundText(const sim::Forecast& forecast, absl::Duration bound,
                      absl::string_view which) {
  if (forecast.settled) return "";
  return absl::StrCat("Not the end: ", which, " something may still change after ",
                      AfterText(bound), " (last change after ", AfterText(forecast.last_change),
                      "); --for plays longer.\n");
}

}  // namespace fairlead::cmd
