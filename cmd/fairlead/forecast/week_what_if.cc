#include "cmd/fairlead/forecast/week_what_if.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "cmd/fairlead/forecast/forecast_parts.h"
#include "cmd/fairlead/inspect/show.h"
#include "cmd/fairlead/terminal/table.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/group_name.h"
#include "sim/simulator.h"

namespace fairlead::cmd {
namespace {

// How often costs are shared among pods, and progress is told.
constexpr absl::Duration kSample = absl::Minutes(5);
constexpr absl::string_view kJobPrefix = "recorded-job-";
constexpr absl::Duration kReadyDelay = absl::Seconds(20);

std::string JobName(size_t number) { return absl::StrCat(kJobPrefix, number); }

// Of "namespace/recorded-job-17-0": 17.
std::optional<size_t> JobOfPod(absl::string_view key) {
  const size_t slash = key.find('/');
  absl::string_view name = slash == absl::string_view::npos ? key : key.substr(slash + 1);
  if (!absl::ConsumePrefix(&name, kJobPrefix)) return std::nullopt;
  size_t number = 0;
  if (!absl::SimpleAtoi(name.substr(0, name.find('-')), &number)) return std::nullopt;
  return number;
}

int64_t GpuMilliOf(const model::PodSpec& spec) {
  return model::Get(spec.requests, model::kGpuName) +
         (spec.gpu_share.IsSet() ? spec.gpu_share.devices * spec.gpu_share.fraction_milli : 0);
}

// The queue of each job: by its own label, else by its group.
std::vector<std::string> QueuesOf(const RecordedWeek& week) {
  std::map<std::string, std::string> of_group;
  for (const RecordedChange& change : week.changes) {
    const auto* group =
        change.applied.has_value() ? std::get_if<model::PodGroup>(&*change.applied) : nullptr;
    if (group != nullptr) of_group[model::Key(group->meta)] = group->queue;
  }
  std::vector<std::string> queues;
  for (const RecordedJob& job : week.jobs) {
    const auto group = of_group.find(model::Key(job.pod.meta.ns, model::GroupNameOf(job.pod)));
    queues.push_back(group == of_group.end() ? job.queue : group->second);
  }
  return queues;
}

sim::ScenarioStep& StepAt(sim::Scenario& scenario, absl::Time at) {
  sim::ScenarioStep& step = scenario.timeline.emplace_back();
  step.at = at - scenario.start;
  step.files = {"the journal"};
  step.apply.emplace_back();
  return step;
}

// What is played: the recorded changes, the change that is asked about, and the jobs.
sim::Scenario ScenarioOf(const RecordedWeek& week, const core::Options& options,
                         const Change* change) {
  sim::Scenario scenario;
  scenario.name = "recorded";
  scenario.start = week.from;
  scenario.end = week.to;
  scenario.cloud.ready_delay = std::min(kReadyDelay, options.hook.expected_boot);
  scenario.cloud.boot_delay = options.hook.expected_boot - scenario.cloud.ready_delay;
  // What is changed stays so, whatever became of it in the record.
  std::set<std::string> changed;
  if (change != nullptr) {
    for (const sim::Object& object : change->applied.objects) {
      changed.insert(absl::StrCat(model::KindName(model::KindOf(object)), " ",
                                  model::Key(model::MetaOf(object))));
    }
    for (const sim::ObjectRef& ref : change->removed) {
      changed.insert(absl::StrCat(ref.kind, " ", ref.key));
    }
    StepAt(scenario, week.from).apply[0] = change->applied;
  }
  for (const RecordedChange& recorded : week.changes) {
    if (changed.contains(absl::StrCat(recorded.ref.kind, " ", recorded.ref.key))) continue;
    sim::ScenarioStep& step = StepAt(scenario, recorded.at);
    if (recorded.applied.has_value()) {
      step.apply[0].objects.push_back(*recorded.applied);
    } else {
      step.remove.push_back(recorded.ref);
    }
  }
  for (size_t i = 0; i < week.jobs.size(); ++i) {
    const RecordedJob& job = week.jobs[i];
    sim::ControllerSpec spec;
    spec.kind = sim::ControllerKind::kJob;
    spec.ns = job.pod.meta.ns;
    spec.name = JobName(i);
    spec.pod_template = job.pod;
    if (job.ran.has_value()) {
      const int64_t seconds = std::max<int64_t>(absl::ToInt64Seconds(*job.ran), 1);
      spec.pod_template.meta.annotations.Set(sim::kRunSecondsAnnotation, absl::StrCat(seconds));
    }
    StepAt(scenario, job.arrived).apply[0].controllers.push_back(std::move(spec));
  }
  std::stable_sort(scenario.timeline.begin(), scenario.timeline.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  return scenario;
}

// Adds what each pod pays of its node's price for so long.
void ShareCosts(const core::View& view, const RecordedWeek& week,
                const std::vector<std::string>& queues, absl::Duration span, WeekSide& side) {
  std::map<std::string, std::vector<size_t>> on_node;
  for (const core::RunningRow& row : view.running) {
    if (const auto job = JobOfPod(row.pod); job.has_value()) on_node[row.node].push_back(*job);
  }
  for (const core::NodeRow& node : view.nodes) {
    if (node.node_request.empty() || !node.confirmed) continue;
    const int64_t cost = node.price_micro_usd_per_hour * absl::ToInt64Seconds(span) / 3600;
    side.cost_micro_usd += cost;
    const std::vector<size_t>& jobs = on_node[node.name];
    if (jobs.empty()) side.idle_micro_usd += cost;
    int64_t weights = 0;
    const auto weight = [&](size_t job) {
      return std::max<int64_t>(GpuMilliOf(week.jobs[job].pod.spec), 1);
    };
    for (const size_t job : jobs) weights += weight(job);
    for (const size_t job : jobs) {
      side.queues[queues[job]].cost_micro_usd += cost * weight(job) / weights;
    }
  }
}

// What the record of a simulation says about each job.
void TakeTimeline(const sim::Recorder& recorder, const RecordedWeek& week,
                  const std::vector<std::string>& queues, WeekSide& side) {
  struct Track {
    std::optional<absl::Time> first, since;
    absl::Duration held;
  };
  std::vector<Track> tracks(week.jobs.size());
  const auto end = [&](Track& track, absl::Time at) {
    if (track.since.has_value()) track.held += at - *track.since;
    track.since.reset();
  };
  for (const sim::TimelineEvent& event : recorder.timeline()) {
    const std::optional<size_t> job = JobOfPod(event.object);
    if (!job.has_value() || *job >= tracks.size()) continue;
    Track& track = tracks[*job];
    if (event.event == "pod_bound") {
      if (!track.first.has_value()) track.first = event.time;
      track.since = event.time;
    } else if (event.event == "pod_evicted" || event.event == "pod_finished") {
      end(track, event.time);
    }
  }
  for (size_t i = 0; i < tracks.size(); ++i) {
    end(tracks[i], week.to);
    WeekTotals& totals = side.queues[queues[i]];
    ++totals.jobs;
    if (tracks[i].first.has_value()) ++totals.started;
    const absl::Duration wait = tracks[i].first.value_or(week.to) - week.jobs[i].arrived;
    totals.wait += wait;
    totals.waits.push_back(wait);
    totals.gpu_milli_seconds +=
        GpuMilliOf(week.jobs[i].pod.spec) * absl::ToInt64Seconds(tracks[i].held);
  }
  for (auto& [name, totals] : side.queues) std::sort(totals.waits.begin(), totals.waits.end());
  for (const sim::WaitEpisode& episode : recorder.Episodes()) ++side.verdicts[episode.code];
  side.nodes = recorder.nodes_bought();
  side.evictions = recorder.evictions();
}

absl::StatusOr<WeekSide> PlayWeek(const WeekQuestion& question, const core::Options& options,
                                  const hook::Catalog& catalog, const Change* change, int side_no,
                                  const std::vector<std::string>& queues) {
  const RecordedWeek& week = *question.week;
  sim::SimulatorOptions simulated;
  simulated.core = options;
  simulated.core.extenders.clear();
  simulated.core.grouping.enabled = false;  // pods name their groups by now
  simulated.catalog = &catalog;
  FAIRLEAD_ASSIGN_OR_RETURN(
      const std::unique_ptr<sim::Simulator> simulator,
      sim::Simulator::Make(ScenarioOf(week, options, change), std::move(simulated)));
  WeekSide side;
  const int64_t total = absl::ToInt64Seconds(week.to - week.from);
  while (simulator->now() < week.to) {
    const absl::Time before = simulator->now();
    FAIRLEAD_RETURN_IF_ERROR(simulator->RunUntil(std::min(week.to, before + kSample)));
    ShareCosts(simulator->view(), week, queues, simulator->now() - before, side);
    if (question.progress != nullptr) {
      question.progress(side_no * total + absl::ToInt64Seconds(simulator->now() - week.from),
                        2 * total);
    }
  }
  TakeTimeline(simulator->recorder(), week, queues, side);
  return side;
}

// The same of what was recorded.
std::map<std::string, WeekTotals> RecordedTotals(const RecordedWeek& week,
                                                 const std::vector<std::string>& queues) {
  std::map<std::string, WeekTotals> all;
  for (size_t i = 0; i < week.jobs.size(); ++i) {
    WeekTotals& totals = all[queues[i]];
    ++totals.jobs;
    if (week.jobs[i].started.has_value()) ++totals.started;
    const absl::Duration wait = week.jobs[i].started.value_or(week.to) - week.jobs[i].arrived;
    totals.wait += wait;
    totals.waits.push_back(wait);
  }
  for (auto& [name, totals] : all) std::sort(totals.waits.begin(), totals.waits.end());
  return all;
}

// What is deleted is something that was recorded, and that is played.
absl::Status CheckRemoved(const Change& change, const RecordedWeek& week) {
  for (const sim::ObjectRef& ref : change.removed) {
    const bool is_there = absl::c_any_of(week.changes, [&](const RecordedChange& recorded) {
      return recorded.ref.kind == ref.kind && recorded.ref.key == ref.key;
    });
    if (!is_there) {
      return absl::NotFoundError(absl::StrCat("--delete ", ref.kind, "/", ref.key,
                                              ": the journal has no such object that is played"));
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> WordsOf(const Change& change) {
  std::vector<std::string> words;
  for (const sim::Object& object : change.applied.objects) {
    words.push_back(absl::StrCat("applies ", model::KindName(model::KindOf(object)), " ",
                                 model::Key(model::MetaOf(object))));
  }
  for (const sim::ObjectRef& ref : change.removed) {
    words.push_back(absl::StrCat("deletes ", ref.kind, " ", ref.key));
  }
  return words;
}

std::string HoursText(int64_t gpu_milli_seconds) {
  return absl::StrFormat("%.1f", static_cast<double>(gpu_milli_seconds) / 3'600'000);
}

const WeekTotals& TotalsOf(const std::map<std::string, WeekTotals>& all, const std::string& name) {
  static const WeekTotals& none = *new WeekTotals();
  const auto found = all.find(name);
  return found == all.end() ? none : found->second;
}

Json WaitsJson(const WeekTotals& totals) {
  Json json = Json::Object();
  json.Set("pods", Json::Int(totals.jobs)).Set("started", Json::Int(totals.started));
  json.Set("meanWaitSeconds", Json::Int(absl::ToInt64Seconds(totals.MeanWait())));
  return json.Set("p90WaitSeconds", Json::Int(absl::ToInt64Seconds(totals.LongWait())));
}

Json PlayedJson(const WeekTotals& totals) {
  Json json = WaitsJson(totals);
  json.Set("gpuHours", HoursText(totals.gpu_milli_seconds));
  return json.Set("costUSD", DollarsExact(totals.cost_micro_usd));
}

Json CountsJson(const std::map<std::string, int64_t>& counts) {
  Json json = Json::Object();
  for (const auto& [name, count] : counts) json.Set(name, Json::Int(count));
  return json;
}

Json SideOfWeekJson(const WeekSide& side) {
  Json json = Json::Object();
  json.Set("evictions", Json::Int(side.evictions));
  json.Set("costUSD", DollarsExact(side.cost_micro_usd));
  json.Set("idleCostUSD", DollarsExact(side.idle_micro_usd));
  json.Set("waitsByCode", CountsJson(side.verdicts));
  return json.Set("nodesRequested", CountsJson(side.nodes));
}

// A row for each name of either.
std::string CountsTable(const char* title, const std::map<std::string, int64_t>& before,
                        const std::map<std::string, int64_t>& after) {
  std::map<std::string, std::pair<int64_t, int64_t>> both;
  for (const auto& [name, count] : before) both[name].first = count;
  for (const auto& [name, count] : after) both[name].second = count;
  if (both.empty()) return "";
  Table table({title, ">WITHOUT", ">WITH"});
  for (const auto& [name, counts] : both) {
    table.AddRow({name, absl::StrCat(counts.first), absl::StrCat(counts.second)});
  }
  return absl::StrCat("\n", table.Text());
}

}  // namespace

absl::Duration WeekTotals::MeanWait() const {
  return jobs == 0 ? absl::ZeroDuration() : wait / jobs;
}

absl::Duration WeekTotals::LongWait() const {
  if (waits.empty()) return absl::ZeroDuration();
  return waits[(waits.size() - 1) * 9 / 10];
}

absl::StatusOr<WeekAnswer> AskWeek(const WeekQuestion& question) {
  const RecordedWeek& week = *question.week;
  FAIRLEAD_RETURN_IF_ERROR(CheckRemoved(question.change, week));
  const std::vector<std::string> queues = QueuesOf(week);
  WeekAnswer answer;
  answer.from = week.from;
  answer.to = week.to;
  answer.changes = WordsOf(question.change);
  answer.jobs = static_cast<int64_t>(week.jobs.size());
  for (const RecordedJob& job : week.jobs) {
    if (job.left_out_claims) ++answer.jobs_without_claims;
    if (!job.ran.has_value()) ++answer.jobs_still_running;
  }
  answer.recorded = RecordedTotals(week, queues);
  FAIRLEAD_ASSIGN_OR_RETURN(answer.without, PlayWeek(question, question.without_options,
                                                     question.without_catalog, nullptr, 0, queues));
  FAIRLEAD_ASSIGN_OR_RETURN(answer.with,
                            PlayWeek(question, question.with_options, question.with_catalog,
                                     &question.change, 1, queues));
  return answer;
}

std::string WeekText(const WeekAnswer& answer) {
  std::string text =
      absl::StrCat("Recorded from ", Rfc3339(answer.from), " to ", Rfc3339(answer.to), ": ",
                   answer.jobs, " pods. Played twice in a simulated cluster.\n",
                   answer.changes.empty()
                       ? "The change is of configuration or catalogue.\n"
                       : absl::StrCat("The change ", absl::StrJoin(answer.changes, ", "), ".\n"),
                   "\n");
  Table table({"QUEUE", ">PODS", ">STARTED", ">WAIT RECORDED", ">WAIT", ">9 OF 10 WAIT",
               ">GPU HOURS", ">$"});
  std::set<std::string> names;
  for (const auto& [name, totals] : answer.without.queues) names.insert(name);
  for (const auto& [name, totals] : answer.with.queues) names.insert(name);
  for (const std::string& name : names) {
    const WeekTotals& without = TotalsOf(answer.without.queues, name);
    const WeekTotals& with = TotalsOf(answer.with.queues, name);
    table.AddRow({name.empty() ? "(none)" : name, absl::StrCat(without.jobs),
                  Pair(absl::StrCat(without.started), absl::StrCat(with.started)),
                  AfterText(TotalsOf(answer.recorded, name).MeanWait()),
                  Pair(AfterText(without.MeanWait()), AfterText(with.MeanWait())),
                  Pair(AfterText(without.LongWait()), AfterText(with.LongWait())),
                  Pair(HoursText(without.gpu_milli_seconds), HoursText(with.gpu_milli_seconds)),
                  Pair(DollarsText(without.cost_micro_usd), DollarsText(with.cost_micro_usd))});
  }
  absl::StrAppend(
      &text, table.Text(),
      CountsTable("PODS THAT WAITED WITH", answer.without.verdicts, answer.with.verdicts),
      CountsTable("NODES REQUESTED", answer.without.nodes, answer.with.nodes), "\n");
  absl::StrAppend(
      &text, "Provisioned nodes: ",
      Pair(DollarsText(answer.without.cost_micro_usd), DollarsText(answer.with.cost_micro_usd)),
      ", of it idle ",
      Pair(DollarsText(answer.without.idle_micro_usd), DollarsText(answer.with.idle_micro_usd)),
      "; evictions: ",
      Pair(absl::StrCat(answer.without.evictions), absl::StrCat(answer.with.evictions)), ".\n");
  absl::StrAppend(&text,
                  "Pods whose end was not recorded run to the end: ", answer.jobs_still_running,
                  "; played without their claims and volumes: ", answer.jobs_without_claims, ".\n");
  return text;
}

Json WeekJson(const WeekAnswer& answer) {
  Json json = Json::Object();
  json.Set("kind", "WeekWhatIf").Set("from", Rfc3339(answer.from)).Set("to", Rfc3339(answer.to));
  Json changes = Json::Array();
  for (const std::string& change : answer.changes) changes.Add(Json::String(change));
  json.Set("changes", std::move(changes)).Set("pods", Json::Int(answer.jobs));
  json.Set("podsWithoutRecordedEnd", Json::Int(answer.jobs_still_running));
  json.Set("podsWithoutTheirClaims", Json::Int(answer.jobs_without_claims));
  Json queues = Json::Array();
  std::set<std::string> names;
  for (const auto& [name, totals] : answer.without.queues) names.insert(name);
  for (const auto& [name, totals] : answer.with.queues) names.insert(name);
  for (const std::string& name : names) {
    Json item = Json::Object();
    item.Set("name", name).Set("recorded", WaitsJson(TotalsOf(answer.recorded, name)));
    item.Set("without", PlayedJson(TotalsOf(answer.without.queues, name)));
    queues.Add(item.Set("with", PlayedJson(TotalsOf(answer.with.queues, name))));
  }
  json.Set("queues", std::move(queues)).Set("without", SideOfWeekJson(answer.without));
  return json.Set("with", SideOfWeekJson(answer.with));
}

}  // namespace fairlead::cmd
