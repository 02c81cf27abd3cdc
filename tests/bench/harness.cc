#include "tests/bench/harness.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/json_writer.h"

namespace fairlead::bench {
namespace {

double WallNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double CpuNow() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double ThreadCpuNow() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

std::string CpuModel() {
  std::ifstream in("/proc/cpuinfo");
  std::string line;
  while (std::getline(in, line)) {
    if (!absl::StartsWith(line, "model name")) continue;
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (parts.size() == 2) return std::string(absl::StripAsciiWhitespace(parts[1]));
  }
  return "unknown CPU";
}

std::string Machine() {
  static const std::string model = CpuModel();
  double load[1] = {0};
  if (getloadavg(load, 1) != 1) load[0] = -1;
  return absl::StrFormat("%s, %u CPUs, load %.2f", model, std::thread::hardware_concurrency(),
                         load[0]);
}

std::string Number(double value) {
  return std::isfinite(value) ? absl::StrFormat("%.6g", value) : "null";
}

std::string ForPeople(double value) {
  const double size = std::fabs(value);
  if (size >= 1000) return absl::StrFormat("%.0f", value);
  if (size >= 10) return absl::StrFormat("%.1f", value);
  return absl::StrFormat("%.3g", value);
}

// Thrown by Require and caught by Succeeds only.
class NotAsSaid final : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace

void Require(bool condition, absl::string_view what) {
  if (!condition) throw NotAsSaid(std::string(what));
}

bool Succeeds(absl::string_view name, const std::function<void()>& benchmark) {
  try {
    benchmark();
    return true;
  } catch (const NotAsSaid& failure) {
    std::fflush(stdout);
    std::fprintf(stderr, "fairlead-bench: %s: %s\n", std::string(name).c_str(), failure.what());
    return false;
  }
}

Stopwatch::Stopwatch() : wall_(WallNow()), cpu_(CpuNow()), thread_cpu_(ThreadCpuNow()) {}
double Stopwatch::Seconds() const { return WallNow() - wall_; }
double Stopwatch::CpuSeconds() const { return CpuNow() - cpu_; }
double Stopwatch::ThreadCpuSeconds() const { return ThreadCpuNow() - thread_cpu_; }

double Percentile(std::vector<double> samples, double per_cent) {
  if (samples.empty()) return std::nan("");
  std::sort(samples.begin(), samples.end());
  const double rank = std::ceil(per_cent / 100 * static_cast<double>(samples.size()));
  return samples[std::min(samples.size() - 1, static_cast<size_t>(std::max(1.0, rank)) - 1)];
}

double Median(std::vector<double> samples) {
  if (samples.empty()) return std::nan("");
  std::sort(samples.begin(), samples.end());
  const size_t middle = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
}

double MemoryMib(absl::string_view line_name) {
  std::ifstream in("/proc/self/status");
  std::string line;
  while (std::getline(in, line)) {
    absl::string_view rest = line;
    if (!absl::ConsumePrefix(&rest, line_name) || !absl::ConsumePrefix(&rest, ":")) continue;
    absl::ConsumeSuffix(&rest, "kB");
    int64_t kib = 0;
    if (absl::SimpleAtoi(absl::StripAsciiWhitespace(rest), &kib)) {
      return static_cast<double>(kib) / 1024;
    }
  }
  return std::nan("");
}

double AtIndexOne(double value, absl::string_view unit, double index) {
  const absl::string_view of = unit.substr(0, unit.find('/'));
  for (const char* time : {"s", "ms", "us", "ns"}) {
    if (of == time) return value / index;
  }
  return absl::EndsWith(unit, "/s") ? value * index : value;
}

std::optional<bool> IsMet(const Metric& metric, double index_before, double index_after) {
  if (!metric.goal.has_value() || metric.samples.empty()) return std::nullopt;
  const double index = std::sqrt(index_before * index_after);
  const double measured = Median(metric.samples);
  const double value = AtIndexOne(measured, metric.unit, index);
  const bool steady =
      std::max(index_before, index_after) <= kUnsteady * std::min(index_before, index_after);
  // A value that is independent of the machine's speed can always be judged.
  if (!steady && value != measured) return std::nullopt;
  return metric.better == Better::kLower ? value <= *metric.goal : value >= *metric.goal;
}

void Report::Begin() { index_before_ = index_ ? index_() : 1; }

void Report::End() {
  const double index_after = index_ ? index_() : 1;
  for (const Metric& metric : std::exchange(pending_, {})) Print(metric, index_after);
}

void Report::Add(Metric metric) {
  if (!metric.samples.empty()) pending_.push_back(std::move(metric));
}

void Report::Print(const Metric& metric, double index_after) {
  const double value = Median(metric.samples);
  const auto [least, most] = std::minmax_element(metric.samples.begin(), metric.samples.end());
  const bool lower = metric.better == Better::kLower;
  const double index = std::sqrt(index_before_ * index_after);
  const std::optional<bool> met = IsMet(metric, index_before_, index_after);
  if (met == false) ++missed_;

  std::string row =
      absl::StrFormat("%-44s %12s %-13s [%s .. %s]  index %.2f", metric.name, ForPeople(value),
                      metric.unit, ForPeople(*least), ForPeople(*most), index);
  if (metric.goal.has_value()) {
    absl::StrAppend(&row, "  goal ", lower ? "<= " : ">= ", ForPeople(*metric.goal),
                    met == true    ? " met"
                    : met == false ? " MISSED"
                                   : absl::StrFormat(" not judged: index %.2f before, %.2f after",
                                                     index_before_, index_after));
  }
  if (metric.rival.has_value()) {
    absl::StrAppend(&row, "  ", metric.rival->name, ": ", ForPeople(metric.rival->value));
  }
  if (!metric.note.empty()) absl::StrAppend(&row, "  (", metric.note, ")");
  Say(row);

  const auto number = [](std::optional<double> of) {
    return of.has_value() ? Number(*of) : std::string("null");
  };
  JsonWriter row_json;
  row_json.BeginObject().Field("name", metric.name).Key("value").Raw(Number(value));
  row_json.Field("unit", metric.unit).Key("goal").Raw(number(metric.goal));
  row_json.Field("better", lower ? "lower" : "higher").Key("met");
  met.has_value() ? row_json.Bool(*met) : row_json.Null();
  row_json.Key("index").Raw(Number(index)).Key("value_at_index_1");
  row_json.Raw(Number(AtIndexOne(value, metric.unit, index))).Key("rival");
  if (metric.rival.has_value()) {
    row_json.BeginObject().Field("name", metric.rival->name);
    row_json.Key("value").Raw(Number(metric.rival->value)).EndObject();
  } else {
    row_json.Null();
  }
  row_json.Field("machine", Machine()).Key("min").Raw(Number(*least)).Key("max").Raw(Number(*most));
  row_json.Key("repetitions").Int(static_cast<int64_t>(metric.samples.size()));
  row_json.Key("cpu_seconds").Raw(number(metric.cpu_seconds)).Field("note", metric.note);
  rows_.push_back(row_json.EndObject().Take());
}

void Report::Skip(absl::string_view name, absl::string_view reason) {
  Say(absl::StrFormat("%-44s skipped: %s", name, reason));
}

void Report::Say(absl::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
  std::fflush(stdout);
}

absl::Status Report::WriteJson(const std::string& path) const {
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  std::ofstream out(path);
  JsonWriter json(JsonLayout::kPretty);
  json.BeginArray();
  for (const std::string& row : rows_) json.Raw(row);
  out << json.EndArray().Take() << "\n";
  out.close();
  if (!out) return absl::UnavailableError(absl::StrCat("cannot write ", path));
  return absl::OkStatus();
}

}  // namespace fairlead::bench
