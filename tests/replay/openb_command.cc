// fairlead-replay openb: allocates the openb traces with the scheduler and compares with published
// policies.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/replay/commands.h"
#include "tests/replay/replay.h"

namespace fairlead::replay {

const char kOpenbUsage[] =
    R"(fairlead-replay openb FOLDER [flags]

Replays the traces FOLDER/openb_pod_list_*.csv on the nodes of FOLDER/openb_node_list_gpu_node.csv:
pods arrive one by one in the order of the published runs until the arrived GPU demand is 130 % of
the capacity; none leaves, and a pod that does not fit at once is rejected. Prints the GPU allocation
in percent, beside the best policy of FOLDER/expected_allocation.csv where that file knows the trace.

  --plugin NAME         GpuFragmentation (default; typical pods are those of the trace),
                        GpuFragmentation:learned (from what runs), default (the default profile)
  --trace NAME[,NAME]   only these (default: all in FOLDER)
  --seeds N[,N]         orders of arrival (default 42; published: 42 to 51)
  --shuffle-names SEED  deal the names of the nodes anew: ties go to the smaller name
  -o json               a JSON object for each run instead of the table
)";

namespace {

struct OpenbArguments {
  std::string folder;
  ReplayOptions options;
  std::vector<std::string> traces;
  std::vector<int64_t> seeds = {42};
  bool json = false;
};

using Published = std::map<std::pair<std::string, int64_t>, PublishedCurves>;

absl::StatusOr<OpenbArguments> ParseOpenb(const std::vector<std::string>& args) {
  OpenbArguments command;
  if (args.empty()) return absl::InvalidArgumentError("expected: openb FOLDER");
  command.folder = args[0];
  for (size_t i = 1; i < args.size(); ++i) {
    const std::string& flag = args[i];
    if (i + 1 == args.size()) return absl::InvalidArgumentError(absl::StrCat(flag, ": no value"));
    const std::string& value = args[++i];
    const auto bad = [&] {
      return absl::InvalidArgumentError(absl::StrCat(flag, " ", value, ": not understood"));
    };
    if (flag == "--plugin") {
      command.options.plugin = value;
    } else if (flag == "--trace") {
      command.traces = absl::StrSplit(value, ',');
    } else if (flag == "--seeds") {
      command.seeds.clear();
      for (const absl::string_view text : absl::StrSplit(value, ',')) {
        if (!absl::SimpleAtoi(text, &command.seeds.emplace_back())) return bad();
      }
    } else if (flag == "--shuffle-names") {
      if (!absl::SimpleAtoi(value, &command.options.shuffle_names.emplace())) return bad();
    } else if (flag == "-o" && value == "json") {
      command.json = true;
    } else {
      return bad();
    }
  }
  return command;
}

// The best published policy and its allocation; "" if unknown.
std::pair<std::string, double> BestOf(const Published& published, const std::string& trace,
                                      int64_t seed) {
  std::pair<std::string, double> best("", 0);
  const auto known = published.find({trace, seed});
  if (known == published.end()) return best;
  for (const auto& [policy, curve] : known->second) {
    if (!curve.empty() && curve.back() > best.second) best = {policy, curve.back()};
  }
  return best;
}

std::string CurveJson(const std::vector<double>& curve) {
  return absl::StrCat("[",
                      absl::StrJoin(curve, ",",
                                    [](std::string* out, double value) {
                                      *out += std::isnan(value) ? std::string("null")
                                                                : absl::StrFormat("%.2f", value);
                                    }),
                      "]");
}

void PrintJson(const OpenbArguments& command, const Published& known, const std::string& trace,
               int64_t seed, const ReplayResult& result,
               const std::pair<std::string, double>& best) {
  std::string published = "null";
  std::string published_curve = "null";
  if (!best.first.empty()) {
    published_curve = CurveJson(known.at({trace, seed}).at(best.first));
    published =
        absl::StrFormat("{\"policy\":\"%s\",\"allocationPercent\":%.2f}", best.first, best.second);
  }
  const std::string names = command.options.shuffle_names.has_value()
                                ? absl::StrCat(*command.options.shuffle_names)
                                : "null";
  std::printf(
      "{\"trace\":\"%s\",\"plugin\":\"%s\",\"seed\":%lld,\"shuffleNames\":%s,"
      "\"allocationPercent\":%.2f,\"arrivedMilli\":%lld,\"allocatedMilli\":%lld,"
      "\"capacityMilli\":%lld,\"placed\":%lld,\"refused\":%lld,\"bestPublished\":%s,"
      "\"curve\":%s,\"publishedCurve\":%s}\n",
      trace.c_str(), command.options.plugin.c_str(), static_cast<long long>(seed), names.c_str(),
      result.Final(), static_cast<long long>(result.arrived_milli),
      static_cast<long long>(result.allocated_milli), static_cast<long long>(result.capacity_milli),
      static_cast<long long>(result.placed), static_cast<long long>(result.refused),
      published.c_str(), CurveJson(result.curve).c_str(), published_curve.c_str());
  std::fflush(stdout);
}

absl::Status RunTrace(const OpenbArguments& command, const std::vector<TraceNode>& nodes,
                      const std::string& trace, const Published& published) {
  const absl::StatusOr<std::vector<TracePod>> pods = ReadPods(PodFile(command.folder, trace));
  if (!pods.ok()) return pods.status();
  double sum = 0;
  double best_sum = 0;
  double worst = 100;
  size_t compared = 0;
  std::string policy;
  int64_t arrivals = 0;
  const auto start = std::chrono::steady_clock::now();
  for (const int64_t seed : command.seeds) {
    ReplayOptions options = command.options;
    options.seed = seed;
    const absl::StatusOr<ReplayResult> result = Replay(nodes, *pods, options);
    if (!result.ok()) return result.status();
    const auto best = BestOf(published, trace, seed);
    if (command.json) PrintJson(command, published, trace, seed, *result, best);
    sum += result->Final();
    worst = std::min(worst, result->Final());
    arrivals += result->placed + result->refused;
    if (best.first.empty()) continue;
    policy = best.first;
    best_sum += best.second;
    ++compared;
  }
  if (command.json) return absl::OkStatus();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto runs = static_cast<double>(command.seeds.size());
  std::string beside = "not known";
  if (compared == command.seeds.size()) {
    beside = absl::StrFormat("%.2f %s  %+.2f", best_sum / runs, policy, (sum - best_sum) / runs);
  }
  std::printf("%-14s %6.2f  (least %6.2f)   published: %-24s %7.0f pods/s\n", trace.c_str(),
              sum / runs, worst, beside.c_str(), static_cast<double>(arrivals) / seconds);
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::Status RunOpenb(OpenbArguments command) {
  const absl::StatusOr<std::vector<TraceNode>> nodes = ReadNodes(NodeFile(command.folder));
  if (!nodes.ok()) return nodes.status();
  const absl::StatusOr<Published> published = ReadPublished(command.folder);
  if (!published.ok()) return published.status();
  if (command.traces.empty()) {
    absl::StatusOr<std::vector<std::string>> all = TracesOf(command.folder);
    if (!all.ok()) return all.status();
    command.traces = *std::move(all);
  }
  if (!command.json) {
    std::printf("%s, seeds %s, %s\n", command.options.plugin.c_str(),
                absl::StrJoin(command.seeds, ",").c_str(),
                command.options.shuffle_names.has_value() ? "node names shuffled"
                                                          : "node names of the trace");
    std::printf("GPU allocation in %% at %lld %% of arrived demand, mean over the seeds\n",
                static_cast<long long>(command.options.percent));
  }
  absl::Status first_error;
  for (const std::string& trace : command.traces) {
    first_error.Update(RunTrace(command, *nodes, trace, *published));
  }
  return first_error;
}

}  // namespace

int OpenbCommand(const std::vector<std::string>& args) {
  absl::StatusOr<OpenbArguments> command = ParseOpenb(args);
  if (!command.ok()) return ExitCode(command.status(), kOpenbUsage);
  return ExitCode(RunOpenb(*std::move(command)), nullptr);
}

}  // namespace fairlead::replay
