// fairlead-replay philly: waits and completion times of the Philly trace, by the engine and by
// textbook policies.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "tests/replay/commands.h"
#include "tests/replay/philly.h"
#include "tests/replay/philly_policies.h"
#include "tests/replay/philly_replay.h"

namespace fairlead::replay {

const char kPhillyUsage[] =
    R"(fairlead-replay philly FILE [flags]

Replays the jobs of 11 virtual clusters of the Philly trace (October and November 2017) in virtual
time through the engine, on nodes of 8 GPUs, each virtual cluster a queue that may borrow. Prints
completion and wait in seconds, beside first-in-first-out and shortest-job-first without queues.

  --gpus N[,N]          sizes of the cluster (default 512)
  --quota WHICH         gpu-time (default: in proportion to what each cluster asks for), equal, or
                        planned (half equal, half in proportion to what its jobs of 8 GPUs and more
                        ask for)
  --weight WHICH        over quota: equal (default), quota (in proportion to it)
  --reclaim on|off      (default on); likewise --preempt; --consolidation (default off)
  --reclaim-min-runtime DURATION   no job is reclaimed before (default 0s)
  --backfill on|off     room is kept for big gangs that wait (default off)
  --reserve-after DURATION, --reserve-min-gpus N, --max-reservations N
  --durations WHICH     what jobs say about how long they run: none (default), true, or rough (off by
                        a factor of up to 4)
  --duration-weight N   short jobs first (state::JobOrder; default 0: first come, first served)
  --evicted WHICH       restart (default: from zero), or a duration: the time between checkpoints
  --days N              only jobs submitted in the first N days
  --only engine|policies
  -o json               a JSON object a run, with the waits at each percentile
)";

namespace {

using QuotaRule = std::vector<int64_t> (*)(const PhillyTrace& trace, int64_t gpus);

struct PhillyArguments {
  std::string file;
  std::vector<int64_t> gpus = {512};
  QuotaRule quotas = QuotasByGpuTime;
  int64_t days = 0;  // 0: all
  bool engine = true, policies = true, json = false;
  PhillyOptions options;
};

absl::Status Understood(bool yes) {
  return yes ? absl::OkStatus() : absl::InvalidArgumentError("");
}

bool ParseSwitch(const std::string& text, bool& out) {
  out = text == "on";
  return out || text == "off";
}

absl::Status ReadFlag(const std::string& flag, const std::string& value, PhillyArguments& command) {
  engine::EngineOptions& engine = command.options.engine;
  if (flag == "--gpus") {
    command.gpus.clear();
    for (const absl::string_view text : absl::StrSplit(value, ',')) {
      int64_t& gpus = command.gpus.emplace_back();
      if (!absl::SimpleAtoi(text, &gpus) || gpus <= 0 || gpus % kGpusPerNode != 0) {
        return Understood(false);
      }
    }
    return absl::OkStatus();
  }
  if (flag == "--quota") {
    command.quotas = value == "equal"     ? EqualQuotas
                     : value == "planned" ? PlannedQuotas
                                          : QuotasByGpuTime;
    return Understood(command.quotas != QuotasByGpuTime || value == "gpu-time");
  }
  if (flag == "--weight") {
    command.options.weight_by_quota = value == "quota";
    return Understood(command.options.weight_by_quota || value == "equal");
  }
  if (flag == "--reclaim") return Understood(ParseSwitch(value, engine.reclaim));
  if (flag == "--preempt") return Understood(ParseSwitch(value, engine.preempt));
  if (flag == "--consolidation") return Understood(ParseSwitch(value, engine.consolidation));
  if (flag == "--reclaim-min-runtime") {
    return Understood(absl::ParseDuration(value, &engine.reclaim_min_runtime));
  }
  engine::ReservationOptions& reservations = engine.reservations;
  if (flag == "--backfill") return Understood(ParseSwitch(value, reservations.on));
  if (flag == "--reserve-after") {
    return Understood(absl::ParseDuration(value, &reservations.reserve_after));
  }
  if (flag == "--reserve-min-gpus") {
    return Understood(absl::SimpleAtoi(value, &reservations.reserve_min_devices));
  }
  if (flag == "--max-reservations") {
    return Understood(absl::SimpleAtoi(value, &reservations.max_reservations));
  }
  if (flag == "--durations") {
    command.options.durations = value == "true"    ? DurationsSaid::kTrue
                                : value == "rough" ? DurationsSaid::kRough
                                                   : DurationsSaid::kNone;
    return Understood(command.options.durations != DurationsSaid::kNone || value == "none");
  }
  if (flag == "--duration-weight") {
    int64_t& weight = command.options.job_order.duration_weight;
    return Understood(absl::SimpleAtoi(value, &weight) && weight >= 0 &&
                      weight <= state::JobOrder::kMaxDurationWeight);
  }
  if (flag == "--evicted") {
    if (value == "restart") return absl::OkStatus();
    return Understood(absl::ParseDuration(value, &command.options.checkpoint) &&
                      command.options.checkpoint >= absl::ZeroDuration());
  }
  if (flag == "--days") return Understood(absl::SimpleAtoi(value, &command.days));
  if (flag == "--only") {
    command.engine = value == "engine";
    command.policies = value == "policies";
    return Understood(command.engine || command.policies);
  }
  command.json = flag == "-o" && value == "json";
  return Understood(command.json);
}

absl::StatusOr<PhillyArguments> ParsePhilly(const std::vector<std::string>& args) {
  PhillyArguments command;
  command.options.engine = PhillyEngine();
  if (args.empty()) return absl::InvalidArgumentError("expected: philly FILE");
  command.file = args[0];
  for (size_t i = 1; i < args.size(); i += 2) {
    if (i + 1 == args.size()) {
      return absl::InvalidArgumentError(absl::StrCat(args[i], ": no value"));
    }
    if (!ReadFlag(args[i], args[i + 1], command).ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(args[i], " ", args[i + 1], ": not understood"));
    }
  }
  return command;
}

std::string WaitsOf(const PhillyTrace& trace, const PhillyResult& result, int64_t least_gpus) {
  std::vector<int64_t> waits;
  for (size_t i = 0; i < trace.jobs.size(); ++i) {
    if (trace.jobs[i].gpus >= least_gpus) waits.push_back(WaitOf(trace, result, i));
  }
  std::sort(waits.begin(), waits.end());
  std::vector<int64_t> quantiles;
  for (size_t percent = 0; percent <= 100 && !waits.empty(); ++percent) {
    quantiles.push_back(waits[(waits.size() - 1) * percent / 100]);
  }
  return absl::StrCat("[", absl::StrJoin(quantiles, ","), "]");
}

void Print(const PhillyArguments& command, const PhillyTrace& trace, const std::string& name,
           const PhillyResult& result, double seconds, const PhillyReplayStats& stats) {
  const PhillySummary s = Summarise(trace, result);
  if (command.json) {
    std::printf("%s\n",
                absl::StrFormat(
                    R"({"policy":"%s","gpus":%d,"jobs":%d,"meanCompletionSeconds":%.0f,)"
                    R"("meanWaitSeconds":%.0f,"bigMeanWaitSeconds":%.0f,"p99WaitSeconds":%d,)"
                    R"("bigP99WaitSeconds":%d,"use":%.4f,"evictedJobs":%d,"lost":%.4f,)"
                    R"("waitPercentiles":%s,"bigWaitPercentiles":%s})",
                    name, result.gpus, trace.jobs.size(), s.mean_completion_s, s.mean_wait_s,
                    s.big_mean_wait_s, s.p99_wait_s, s.big_p99_wait_s, s.use, result.evicted_jobs,
                    s.lost, WaitsOf(trace, result, 1), WaitsOf(trace, result, kBigJobGpus))
                    .c_str());
  } else {
    std::printf("%5lld  %-25s %10.0f %10.0f %10lld %10.0f  %.3f",
                static_cast<long long>(result.gpus), name.c_str(), s.mean_completion_s,
                s.mean_wait_s, static_cast<long long>(s.p99_wait_s), s.big_mean_wait_s, s.use);
    if (stats.cycles > 0) {
      std::printf("  %6lld %5.1f %%   %5.0f s of CPU, %lld cycles, %lld wait (most %lld)",
                  static_cast<long long>(result.evicted_jobs), 100 * s.lost, seconds,
                  static_cast<long long>(stats.cycles),
                  static_cast<long long>(stats.waiting_sum / stats.cycles),
                  static_cast<long long>(stats.waiting_max));
    }
    std::printf("\n");
  }
  std::fflush(stdout);
}

// A short name for figures.
std::string NameOf(const PhillyOptions& options) {
  if (options.job_order.duration_weight > 0) return "Fairlead, short first";
  return absl::StrCat("Fairlead", options.engine.reservations.on ? ", reserving" : "",
                      options.durations != DurationsSaid::kNone ? ", told" : "");
}

absl::Status RunPhilly(PhillyArguments command) {
  absl::StatusOr<PhillyTrace> read = ReadPhilly(command.file);
  FAIRLEAD_RETURN_IF_ERROR(read.status());
  PhillyTrace& trace = *read;
  if (command.days > 0) {
    const int64_t end_s = command.days * 86400;
    while (trace.jobs.size() > 1 && trace.jobs.back().submit_s >= end_s) trace.jobs.pop_back();
  }
  if (!command.json) {
    std::printf("%zu jobs; seconds; big: %lld GPUs and more\n", trace.jobs.size(),
                static_cast<long long>(kBigJobGpus));
    std::printf(
        " GPUs  policy                    completion       wait   p99 wait   big wait    use "
        "evicted   "
        "lost\n");
  }
  for (const int64_t gpus : command.gpus) {
    if (command.policies) {
      for (const auto& [name, policy] :
           {std::pair{"FIFO strict", Policy{PolicyOrder::kFifo, true}},
            std::pair{"FIFO greedy", Policy{PolicyOrder::kFifo, false}},
            std::pair{"SJF strict", Policy{PolicyOrder::kSjf, true}},
            std::pair{"SJF greedy", Policy{PolicyOrder::kSjf, false}}}) {
        Print(command, trace, name, RunPolicy(trace, gpus, policy), 0, {});
      }
    }
    if (!command.engine) continue;
    command.options.gpus = gpus;
    command.options.quotas = command.quotas(trace, gpus);
    PhillyReplayStats stats;
    const auto start = std::clock();
    const absl::StatusOr<PhillyResult> result = ReplayPhilly(trace, command.options, &stats);
    FAIRLEAD_RETURN_IF_ERROR(result.status());
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    Print(command, trace, NameOf(command.options), *result, seconds, stats);
  }
  return absl::OkStatus();
}

}  // namespace

int PhillyCommand(const std::vector<std::string>& args) {
  absl::StatusOr<PhillyArguments> command = ParsePhilly(args);
  if (!command.ok()) return ExitCode(command.status(), kPhillyUsage);
  return ExitCode(RunPhilly(*std::move(command)), nullptr);
}

}  // namespace fairlead::replay
