// The measuring side of the benchmarks: stop watches, repetitions, and the report that scripts
// read.
//
// A figure is the median of its repetitions, with the smallest and the largest. Wall time is what a
// user waits for; CPU time is independent of other load on the machine. Every figure has the
// machine and the load average at its end.
//
// The speed of a shared machine changes from hour to hour. So a reference workload (reference.h) is
// measured right before and after each benchmark, its index is reported with the figure, and a goal
// is judged at index 1: times are divided by the index, rates multiplied, other values (MiB,
// counts) unchanged. If the two indices differ by more than kUnsteady, the goal is not judged: the
// machine changed during the benchmark.
//
// Report format (build/bench/results.json): an array of
//   {"name", "value", "unit", "goal": number|null, "better": "lower"|"higher",
//    "met": true|false|null, "index", "value_at_index_1",
//    "rival": {"name", "value"}|null, "machine",
//    "min", "max", "repetitions", "cpu_seconds": number|null, "note"}
//
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace fairlead::bench {

enum class Better { kLower, kHigher };

// A figure of another program on the same kind of machine, measured elsewhere; docs/performance.md
// names the source of each.
struct Rival {
  std::string name;
  double value = 0;
};

struct Metric {
  std::string name, unit;
  Better better = Better::kLower;
  std::vector<double> samples;
  std::optional<double> goal = {};
  std::optional<Rival> rival = {};
  std::optional<double> cpu_seconds = {};  // of one repetition
  std::string note = {};
};

// Wall and CPU time (user and system) since its construction.
class Stopwatch {
 public:
  Stopwatch();
  [[nodiscard]] double Seconds() const;
  [[nodiscard]] double CpuSeconds() const;  // of the whole process
  // Of the calling thread, which has to be the one that made it: other processes do not distort it.
  [[nodiscard]] double ThreadCpuSeconds() const;

 private:
  double wall_, cpu_, thread_cpu_;
};

double Median(std::vector<double> samples);
// The smallest sample that is at least as large as `per_cent` of all.
double Percentile(std::vector<double> samples, double per_cent);

// Of the process, in MiB, by the name of the line in /proc/self/status ("VmRSS", "VmHWM").
double MemoryMib(absl::string_view line);

// Before and after.
inline constexpr double kUnsteady = 1.3;

// What the value would be at index 1, by its unit: "s", "ms", "us" and "ns" are times (also per
// something: "us/pod"), "pods/s" and the like are rates.
double AtIndexOne(double value, absl::string_view unit, double index);
// Null: there is no goal, or it cannot be judged.
std::optional<bool> IsMet(const Metric& metric, double index_before, double index_after);

class Report {
 public:
  // `index` measures the machine; null: no measurement.
  explicit Report(std::function<double()> index = nullptr) : index_(std::move(index)) {}

  // Around each benchmark. End prints its rows.
  void Begin();
  void End();
  // A metric without samples is ignored.
  void Add(Metric metric);
  // Why a benchmark has no figures.
  void Skip(absl::string_view name, absl::string_view reason);
  // Tells the reader of the table something.
  static void Say(absl::string_view text);
  // Creates the folder. Unavailable if the file cannot be written.
  [[nodiscard]] absl::Status WriteJson(const std::string& path) const;
  [[nodiscard]] size_t missed() const { return missed_; }

 private:
  void Print(const Metric& metric, double index_after);

  const std::function<double()> index_;
  double index_before_ = 1;
  std::vector<Metric> pending_;    // of the present benchmark
  std::vector<std::string> rows_;  // JSON objects
  size_t missed_ = 0;
};

// The input of a benchmark.
struct Run {
  Report& report;
  int repetitions = 5;
  std::string control_plane;  // path of fairlead-control-plane, or empty
  std::string crds;           // folder of our CRDs
};

struct Benchmark {
  std::string name;
  std::function<void(Run&)> run;
};

// Throws if the condition does not hold: a benchmark that does not do what it says must give no
// figure. It is an exception, so that the live parts of a benchmark (threads, connections, a
// control plane) are destroyed in their order before anything else happens. A benchmark that starts
// a thread with a Require has to carry the exception out of it, as std::async does.
void Require(bool condition, absl::string_view what);

// Runs the benchmark. False if something that it requires does not hold; then stderr has its name
// and the condition.
bool Succeeds(absl::string_view name, const std::function<void()>& benchmark);

}  // namespace fairlead::bench
