#include "cmd/fairlead/forecast/what_if.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "cmd/fairlead/inspect/show.h"
#include "cmd/fairlead/terminal/table.h"
#include "scheduler/model/api_names.h"

namespace fairlead::cmd {
namespace {

constexpr size_t kMaxReasons = 10;  // that are told in sentences

const core::QueueRow* QueueOf(const core::View& view, const std::string& name) {
  for (const core::QueueRow& row : view.queues) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

// Fair shares that history moves a little are no difference that the change made.
bool SameQueue(const core::QueueRow* a, const core::QueueRow* b) {
  if (a == nullptr || b == nullptr) return a == b;
  const auto facts = [](const core::QueueRow& queue) {
    std::vector<std::string> text = {queue.parent, queue.problem,
                                     absl::StrCat(queue.waiting_workloads)};
    for (const core::QueueResourceRow& row : queue.resources) {
      text.push_back(absl::StrCat(row.resource, " ", row.quota, " ", row.limit, " ", row.allocated,
                                  " ", row.requested));
    }
    return text;
  };
  return facts(*a) == facts(*b);
}

// Names in both views: the order of the one with the change, then those that are gone.
std::vector<std::string> QueuesThatDiffer(const WhatIf& answer) {
  std::vector<std::string> names;
  const auto add = [&](const core::View& view) {
    for (const core::QueueRow& row : view.queues) {
      if (std::find(names.begin(), names.end(), row.name) != names.end()) continue;
      if (SameQueue(QueueOf(answer.without.end, row.name), QueueOf(answer.with.end, row.name))) {
        continue;
      }
      names.push_back(row.name);
    }
  };
  add(answer.with.end);
  add(answer.without.end);
  return names;
}

Json StateJson(const std::optional<WorkloadState>& state) {
  if (!state.has_value()) return {};
  Json json = Json::Object();
  json.Set("placed", Json::Int(state->placed)).Set("waiting", Json::Int(state->waiting));
  return json.SetUnlessEmpty("code", state->code).SetUnlessEmpty("message", state->message);
}

Json SideJson(const sim::Forecast& forecast) {
  Json json = Json::Object();
  json.Set("settled", Json::Bool(forecast.settled));
  json.Set("lastChange", AfterText(forecast.last_change));
  json.Set("pricePerHourUSD", DollarsExact(forecast.end.price_micro_usd_per_hour));
  json.Set("gpusHeld", Json::Int(forecast.end.gpus_held));
  json.Set("evictions", Json::Int(static_cast<int64_t>(forecast.evictions.size())));
  return json.Set("nodesRequested", Json::Int(static_cast<int64_t>(forecast.orders.size())));
}

std::string QueuesTable(const WhatIf& answer) {
  const std::vector<std::string> names = QueuesThatDiffer(answer);
  if (names.empty()) return "";
  Table table({"QUEUE", ">GPUS", ">QUOTA", ">LIMIT", ">REQUESTED", ">CPU", ">MEMORY", ">WAITING"});
  for (size_t i = 0; i < std::min(names.size(), kMaxRows); ++i) {
    const core::QueueRow* before = QueueOf(answer.without.end, names[i]);
    const core::QueueRow* after = QueueOf(answer.with.end, names[i]);
    const auto cell = [&](const char* resource, int64_t core::QueueResourceRow::* field) {
      const auto text = [&](const core::QueueRow* queue) {
        return queue == nullptr ? "none"
                                : AmountCell(resource, ResourceOf(*queue, resource).*field);
      };
      return Pair(text(before), text(after));
    };
    const auto waiting = [](const core::QueueRow* queue) {
      return queue == nullptr ? "none" : absl::StrCat(queue->waiting_workloads);
    };
    using Row = core::QueueResourceRow;
    table.AddRow({names[i], cell(model::kGpuName, &Row::allocated),
                  cell(model::kGpuName, &Row::quota), cell(model::kGpuName, &Row::limit),
                  cell(model::kGpuName, &Row::requested), cell(model::kCpuName, &Row::allocated),
                  cell(model::kMemoryName, &Row::allocated),
                  Pair(waiting(before), waiting(after))});
  }
  return absl::StrCat("\n", table.Text(), MoreText(names.size()));
}

}  // namespace

absl::StatusOr<WhatIf> AskWhatIf(kube::HttpTransport& transport, const WhatIfQuestion& question,
                                 absl::Time now, const FetchUsage& fetch_usage) {
  const Settings& settings = *question.settings;
  const Settings& changed =
      question.with_settings != nullptr ? *question.with_settings : *question.settings;
  FAIRLEAD_ASSIGN_OR_RETURN(
      ClusterObjects objects,
      ReadCluster(transport, {&settings.configuration.options, &changed.configuration.options}, now,
                  fetch_usage));
  WhatIf answer;
  answer.at = now;
  answer.bound = question.bound;
  sim::Present present = PresentOf(objects);
  FAIRLEAD_ASSIGN_OR_RETURN(PlannedChange planned, PlanChange(question.change, present));
  answer.changes = std::move(planned.done);
  answer.missing_kinds = std::move(objects.missing_kinds);
  answer.notes = std::move(objects.notes);
  sim::ForecastInput without = InputFor(settings, question.bound, now);
  without.present = std::move(present);
  FAIRLEAD_ASSIGN_OR_RETURN(answer.without, sim::Foresee(std::move(without)));
  sim::ForecastInput with = InputFor(changed, question.bound, now);
  with.present = std::move(planned.present);
  with.applied = std::move(planned.applied);
  FAIRLEAD_ASSIGN_OR_RETURN(answer.with, sim::Foresee(std::move(with)));
  return answer;
}

std::vector<WorkloadChange> WorkloadsThatDiffer(const WhatIf& answer) {
  std::map<std::string, WorkloadChange> all;
  for (auto& [name, state] : WorkloadsOf(answer.without.end)) all[name].without = state;
  for (auto& [name, state] : WorkloadsOf(answer.with.end)) all[name].with = state;
  std::vector<WorkloadChange> differing;
  for (auto& [name, change] : all) {
    if (change.without == change.with) continue;
    change.name = name;
    differing.push_back(std::move(change));
  }
  return differing;
}

// By how often a pod is evicted in each.
std::vector<EvictionChange> EvictionsThatDiffer(const WhatIf& answer) {
  std::vector<EvictionChange> differing;
  const auto add = [&](const sim::Forecast& here, const sim::Forecast& there, bool with) {
    std::map<std::string, int> left;
    for (const sim::Forecast::Eviction& eviction : there.evictions) ++left[eviction.pod];
    for (const sim::Forecast::Eviction& eviction : here.evictions) {
      if (left[eviction.pod]-- <= 0) differing.push_back({&eviction, with});
    }
  };
  add(answer.with, answer.without, true);
  add(answer.without, answer.with, false);
  return differing;
}

Json WorkloadsJson(const std::vector<WorkloadChange>& changes) {
  Json workloads = Json::Array();
  for (const WorkloadChange& change : changes) {
    Json item = Json::Object();
    item.Set("name", change.name);
    item.Set("queue", (change.with.has_value() ? change.with : change.without)->queue);
    item.Set("without", StateJson(change.without)).Set("with", StateJson(change.with));
    workloads.Add(std::move(item));
  }
  return workloads;
}

Json EvictionsJson(const std::vector<EvictionChange>& changes) {
  Json evictions = Json::Array();
  for (const EvictionChange& change : changes) {
    Json item = Json::Object();
    item.Set("pod", change.eviction->pod).Set("after", AfterText(change.eviction->after));
    item.Set("why", change.eviction->why).Set("in", change.with ? "with" : "without");
    evictions.Add(std::move(item));
  }
  return evictions;
}

std::string WorkloadsTable(const std::vector<WorkloadChange>& changes) {
  if (changes.empty())
    return "\nNo workload would be placed, or wait, otherwise than without it.\n";
  Table table({"WORKLOAD", "QUEUE", "WITHOUT", "WITH"});
  for (size_t i = 0; i < std::min(changes.size(), kMaxRows); ++i) {
    const WorkloadChange& change = changes[i];
    table.AddRow({change.name, (change.with.has_value() ? change.with : change.without)->queue,
                  StateText(change.without), StateText(change.with)});
  }
  std::string text = absl::StrCat("\n", table.Text(), MoreText(changes.size()));
  std::set<std::string> told;
  for (const WorkloadChange& change : changes) {
    if (!change.with.has_value() || change.with->message.empty()) continue;
    if (told.size() >= kMaxReasons || !told.insert(change.with->message).second) continue;
    absl::StrAppend(&text,
                    Wrapped(Printable(absl::StrCat(change.name, ": ", change.with->message)),
                            kTextWidth, "    "),
                    "\n");
  }
  return text;
}

std::string EvictionsTable(const std::vector<EvictionChange>& changes) {
  if (changes.empty()) return "";
  Table table({"POD", "EVICTED", ">AFTER", "WHY"});
  for (size_t i = 0; i < std::min(changes.size(), kMaxRows); ++i) {
    const EvictionChange& change = changes[i];
    table.AddRow({change.eviction->pod, change.with ? "with" : "only without",
                  AfterText(change.eviction->after), change.eviction->why});
  }
  return absl::StrCat("\n", table.Text(), MoreText(changes.size()));
}

Json WhatIfJson(const WhatIf& answer) {
  Json json = Json::Object();
  json.Set("kind", "WhatIf").Set("at", Rfc3339(answer.at));
  Json changes = Json::Array();
  for (const std::string& change : answer.changes) changes.Add(Json::String(change));
  json.Set("changes", std::move(changes)).Set("bound", AfterText(answer.bound));
  Json queues = Json::Array();
  for (const std::string& name : QueuesThatDiffer(answer)) {
    const auto side = [&](const core::View& view) {
      const core::QueueRow* queue = QueueOf(view, name);
      return queue == nullptr ? Json() : QueueJson(*queue);
    };
    Json item = Json::Object();
    item.Set("name", name).Set("without", side(answer.without.end));
    queues.Add(item.Set("with", side(answer.with.end)));
  }
  Json workloads = WorkloadsJson(WorkloadsThatDiffer(answer));
  Json evictions = EvictionsJson(EvictionsThatDiffer(answer));
  const bool differs =
      !queues.items().empty() || !workloads.items().empty() || !evictions.items().empty() ||
      answer.without.end.price_micro_usd_per_hour != answer.with.end.price_micro_usd_per_hour;
  json.Set("differs", Json::Bool(differs));
  json.Set("without", SideJson(answer.without)).Set("with", SideJson(answer.with));
  json.Set("queues", std::move(queues)).Set("workloads", std::move(workloads));
  json.Set("evictions", std::move(evictions));
  return json.Set("nodes",
                  NodesComparedJson(answer.without.end, answer.with.end, "without", "with"));
}

std::string WhatIfText(const WhatIf& answer) {
  std::string text = absl::StrCat(
      Wrapped(Printable(absl::StrCat("The change ", absl::StrJoin(answer.changes, ", "), ".")),
              kTextWidth, "    "),
      "\n");
  if (answer.changes.empty()) text = "The change is of configuration or catalogue.\n";
  absl::StrAppend(&text, "Played from ", Rfc3339(answer.at), " on: the last change comes after ",
                  AfterText(answer.with.last_change), " (without it after ",
                  AfterText(answer.without.last_change), ").\n",
                  BoundText(answer.with, answer.bound, "with the change"),
                  BoundText(answer.without, answer.bound, "without the change"));
  absl::StrAppend(&text, QueuesTable(answer), WorkloadsTable(WorkloadsThatDiffer(answer)),
                  EvictionsTable(EvictionsThatDiffer(answer)),
                  NodesCompared(answer.without.end, answer.with.end, "WITHOUT", "WITH"));
  return text;
}

}  // namespace fairlead::cmd
