#include "sim/report.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/json_writer.h"
#include "scheduler/verdict/phrases.h"

namespace fairlead::sim {
namespace {

constexpr size_t kNamesInALine = 3;
constexpr size_t kMaxTextWidth = 120;

// ---- numbers
// -------------------------------------------------------------------------------------

// value / 10^digits as a decimal, exact.
std::string Decimal(int64_t value, int digits) {
  int64_t scale = 1;
  for (int i = 0; i < digits; ++i) scale *= 10;
  return absl::StrFormat("%s%d.%0*d", value < 0 ? "-" : "", std::abs(value / scale), digits,
                         std::abs(value % scale));
}
std::string Usd(int64_t micro_usd) { return Decimal(micro_usd, 6); }
std::string DollarsAndCents(int64_t micro_usd) {
  return absl::StrCat("$", Decimal((micro_usd + 5000) / 10000, 2));
}
std::string Hours(int64_t seconds) { return Decimal((seconds * 10000 + 1800) / 3600, 4); }
std::string Rfc3339(absl::Time time) {
  return absl::FormatTime(absl::RFC3339_full, time, absl::UTCTimeZone());
}
std::string ClockText(absl::Time time) {
  return absl::FormatTime("%H:%M:%S", time, absl::UTCTimeZone());
}
std::string AmountOrNone(const std::string& resource, int64_t amount) {
  return amount == model::kUnlimited ? "-" : model::FormatAmount(resource, amount);
}

// ---- tables
// --------------------------------------------------------------------------------------

// Columns as wide as their widest cell, two spaces between them; the last one is not padded.
std::string Table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      absl::StrAppend(&text, i == 0 ? "  " : "  ", row[i]);
      if (i + 1 < row.size()) text.append(widths[i] - row[i].size(), ' ');
    }
    text += '\n';
  }
  return text;
}

std::string Shortened(std::string text) {
  if (text.size() <= kMaxTextWidth) return text;
  size_t end = kMaxTextWidth;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // whole letters
  text.resize(end);
  return text + "...";
}

std::string QueueTable(const core::View& view) {
  std::vector<std::vector<std::string>> rows = {
      {"QUEUE", "GPUS", "QUOTA", "LIMIT", "FAIR SHARE", "WAITING", "PODS", ""}};
  for (const core::QueueRow& queue : view.queues) {
    std::vector<std::string> row = {
        absl::StrCat(std::string(static_cast<size_t>(queue.depth) * 2, ' '), queue.name)};
    core::QueueResourceRow gpu;
    for (const auto& resource : queue.resources) {
      if (resource.resource == model::kGpuName) gpu = resource;
    }
    for (int64_t amount : {gpu.allocated, gpu.quota, gpu.limit, gpu.fair_share}) {
      row.push_back(AmountOrNone(model::kGpuName, amount));
    }
    row.push_back(absl::StrCat(queue.waiting_workloads));
    row.push_back(absl::StrCat(queue.running_pods));
    row.push_back(queue.problem);
    rows.push_back(std::move(row));
  }
  return Table(rows);
}

std::string NodeTable(const core::View& view) {
  std::vector<std::vector<std::string>> rows = {
      {"NODE", "TYPE", "STATUS", "GPUS", "PODS", "PROMISED", "$/H"}};
  for (const core::NodeRow& node : view.nodes) {
    rows.push_back(
        {node.name, node.instance_type, node.status,
         absl::StrCat(
             model::FormatAmount(model::kGpuName, model::Get(node.used, model::kGpuName)), "/",
             model::FormatAmount(model::kGpuName, model::Get(node.allocatable, model::kGpuName))),
         absl::StrCat(node.pods), absl::StrCat(node.promised),
         node.node_request.empty() ? "-" : Usd(node.price_micro_usd_per_hour)});
  }
  return Table(rows);
}

std::string WaitingTable(const core::View& view) {
  std::vector<std::vector<std::string>> rows = {
      {"WAITING", "QUEUE", "PODS", "SINCE", "CODE", "WHY"}};
  for (const core::WaitingRow& row : view.waiting) {
    rows.push_back({row.workload, row.queue, absl::StrCat(row.pods.size()), ClockText(row.since),
                    std::string(verdict::CodeName(row.verdict.code)), Shortened(row.message)});
  }
  return Table(rows);
}

// ---- log
// -----------------------------------------------------------------------------------------

// Events with equal keys share a line.
std::string LineKey(const TimelineEvent& event) {
  const bool by_type = event.event == "node_requested" || event.event == "node_registered" ||
                       event.event == "node_ready" || event.event == "node_removed";
  const bool alone =
      event.event == "note" || event.event == "pod_evicted" || event.event == "restarted";
  return absl::StrCat(ClockText(event.time), "|", event.event, "|", event.code, "|",
                      by_type ? event.instance_type : "", "|", event.queue, "|",
                      alone ? event.object + event.text : "");
}

struct Wording {
  const char* event;
  const char* one;
  const char* many;
};
constexpr Wording kWordings[] = {
    {"node_requested", "node requested", "nodes requested"},
    {"node_registered", "node registered", "nodes registered"},
    {"node_ready", "node ready", "nodes ready"},
    {"node_removed", "node removed", "nodes removed"},
    {"node_failed", "node refused by the provider", "nodes refused by the provider"},
    {"pod_bound", "pod placed", "pods placed"},
    {"pod_finished", "pod finished", "pods finished"},
    {"pod_evicted", "pod evicted", "pods evicted"},
    {"verdict", "pod waits", "pods wait"},
};

std::string LineText(const std::vector<const TimelineEvent*>& events) {
  const TimelineEvent& first = *events.front();
  const std::string clock = ClockText(first.time);
  if (first.event == "note") return absl::StrCat(clock, "  * ", first.text);
  std::string what = first.event;
  for (const Wording& wording : kWordings) {
    if (first.event == wording.event) what = events.size() == 1 ? wording.one : wording.many;
  }
  if (first.event == "restarted") return absl::StrCat(clock, "    ", first.text);
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(events.size(), kNamesInALine); ++i) {
    names.push_back(events[i]->object);
  }
  if (events.size() > kNamesInALine) names.push_back("...");
  std::string line = absl::StrCat(clock, "    ", events.size(), " ", what);
  if (!first.code.empty()) absl::StrAppend(&line, " (", first.code, ")");
  absl::StrAppend(&line, ": ", absl::StrJoin(names, ", "));
  const bool same_text = std::all_of(events.begin(), events.end(), [&](const TimelineEvent* event) {
    return event->text == first.text;
  });
  if (!first.text.empty() && (same_text || first.event == "verdict")) {
    absl::StrAppend(&line, "; ", Shortened(first.text));
  } else if (!first.instance_type.empty()) {
    absl::StrAppend(&line, "; ", first.instance_type);
  }
  return line;
}

// ---- JSON
// ----------------------------------------------------------------------------------------

void WriteEvent(const TimelineEvent& event, JsonWriter& json) {
  json.BeginObject().Field("time", Rfc3339(event.time)).Field("event", event.event);
  json.FieldUnlessEmpty("object", event.object).FieldUnlessEmpty("code", event.code);
  json.FieldUnlessEmpty("queue", event.queue).FieldUnlessEmpty("node", event.node);
  json.FieldUnlessEmpty("instance_type", event.instance_type);
  json.FieldUnlessEmpty("text", event.text).EndObject();
}

void WriteEpisode(const WaitEpisode& episode, JsonWriter& json) {
  json.BeginObject().Field("pod", episode.pod).Field("queue", episode.queue);
  json.Field("code", episode.code).Field("since", Rfc3339(episode.since));
  if (episode.until != absl::InfiniteFuture()) json.Field("until", Rfc3339(episode.until));
  json.EndObject();
}

int64_t HookNodes(const core::View& view) {
  return std::count_if(view.nodes.begin(), view.nodes.end(),
                       [](const core::NodeRow& node) { return !node.node_request.empty(); });
}

void WriteBill(const core::BillTotals& bill, JsonWriter& json) {
  json.BeginObject().Key("node_hours").Raw(Hours(bill.node_seconds));
  json.Key("cost_usd").Raw(Usd(bill.cost_micro_usd));
  json.Key("policy_blocked_nodes").Int(bill.policy_blocked_nodes);
  json.Key("policy_blocked_cost_usd").Raw(Usd(bill.policy_blocked_cost_micro_usd));
  json.Key("duplicate_nodes").Int(bill.duplicate_nodes);
  json.Key("reactive_cost_usd").Raw(Usd(bill.reactive_cost_micro_usd));
  json.Key("reactive_nodes").Int(bill.reactive_nodes).EndObject();
}

}  // namespace

std::string ViewText(const core::View& view) {
  return absl::StrCat(ClockText(view.at), "  ", verdict::Count(view.gpus_held, "GPU", "GPUs"),
                      " held, ", DollarsAndCents(view.price_micro_usd_per_hour), " an hour\n",
                      QueueTable(view), "\n", NodeTable(view), "\n", WaitingTable(view));
}

std::string LogText(const std::vector<TimelineEvent>& timeline) {
  // A line is at the place of its first event; later events of that second join it.
  std::vector<std::vector<const TimelineEvent*>> lines;
  std::map<std::string, size_t> line_of;
  for (const TimelineEvent& event : timeline) {
    const auto [line, added] = line_of.try_emplace(LineKey(event), lines.size());
    if (added) lines.emplace_back();
    lines[line->second].push_back(&event);
  }
  std::string text;
  for (const auto& line : lines) absl::StrAppend(&text, LineText(line), "\n");
  return text;
}

std::string BillText(const Report& report) {
  const core::BillTotals& bill = report.bill;
  std::vector<std::string> bought;
  for (const auto& [type, count] : report.nodes_bought) {
    bought.push_back(absl::StrCat(count, " x ", type));
  }
  return absl::StrCat(
      "Bill\n",
      Table({{"nodes bought", absl::StrCat(bill.nodes_requested, bought.empty() ? "" : ": ",
                                           absl::StrJoin(bought, ", "))},
             {"node hours", Hours(bill.node_seconds)},
             {"cost", DollarsAndCents(bill.cost_micro_usd)},
             {"nodes for policy-blocked pods",
              absl::StrCat(bill.policy_blocked_nodes, " (",
                           DollarsAndCents(bill.policy_blocked_cost_micro_usd), ")")},
             {"nodes that never ran a pod", absl::StrCat(bill.duplicate_nodes)},
             {"reactive autoscaler (estimate)",
              absl::StrCat(DollarsAndCents(bill.reactive_cost_micro_usd), " (", bill.reactive_nodes,
                           " nodes more)")},
             {"pods evicted", absl::StrCat(report.evictions)},
             {"nodes at the end", absl::StrCat(HookNodes(report.end))}}));
}

std::string ReportText(const Report& report) {
  return absl::StrCat(report.name, report.description.empty() ? "" : ": ", report.description,
                      "\n\n", LogText(report.timeline), "\n", ViewText(report.end), "\n",
                      BillText(report));
}

std::string ReportJson(const Report& report) {
  JsonWriter json;
  json.BeginObject().Field("scenario", report.name).Key("timeline").BeginArray();
  for (const TimelineEvent& event : report.timeline) WriteEvent(event, json);
  json.EndArray().Key("waiting").BeginArray();
  for (const WaitEpisode& episode : report.episodes) {
    if (episode.until == absl::InfiniteFuture()) WriteEpisode(episode, json);
  }
  json.EndArray().Key("waited").BeginArray();
  for (const WaitEpisode& episode : report.episodes) WriteEpisode(episode, json);
  WriteBill(report.bill, json.EndArray().Key("bill"));
  json.Key("nodes_at_end").Int(HookNodes(report.end)).Key("nodes_bought").BeginObject();
  for (const auto& [type, count] : report.nodes_bought) json.Key(type).Int(count);
  json.EndObject().Key("requests").Int(report.bill.nodes_requested);
  json.Key("evictions").Int(report.evictions).Key("decisions").Int(report.stats.cycles);
  json.Key("bindings").Int(report.stats.bindings);
  json.Key("verdicts").Int(report.stats.verdict_writes);
  return json.EndObject().Take() + "\n";
}

}  // namespace fairlead::sim
