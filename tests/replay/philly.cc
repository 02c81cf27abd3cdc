#include "tests/replay/philly.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "document/csv.h"

namespace fairlead::replay {
namespace {

// "66.0": whole seconds, written as a decimal; rounded up, and at least one.
bool ParseSeconds(const std::string& text, int64_t& out) {
  double seconds = 0;
  if (!absl::SimpleAtod(text, &seconds) || !(seconds >= 0) || seconds > 1e9) return false;
  out = static_cast<int64_t>(seconds);
  if (static_cast<double>(out) < seconds || out == 0) ++out;
  return true;
}

struct Row {
  absl::Time submit;
  PhillyJob job;
};

absl::Status ReadRow(const Csv& csv, size_t row, Row& out) {
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string submit, csv.Text(row, "timestamp"));
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string duration, csv.Text(row, "duration"));
  if (!absl::ParseTime("%Y-%m-%d %H:%M:%S", submit, &out.submit, nullptr)) {
    return csv.Bad(row, absl::StrCat("timestamp \"", submit, "\" is no time"));
  }
  if (!ParseSeconds(duration, out.job.duration_s)) {
    return csv.Bad(row, absl::StrCat("duration \"", duration, "\" is no number of seconds"));
  }
  FAIRLEAD_RETURN_IF_ERROR(csv.Number(row, "num_gpus", out.job.gpus));
  if (out.job.gpus == 0) return csv.Bad(row, "num_gpus is 0");
  return absl::OkStatus();
}

std::vector<int64_t> Deal(const std::vector<int64_t>& weights, int64_t amount) {
  const int64_t sum = std::accumulate(weights.begin(), weights.end(), int64_t{0});
  std::vector<int64_t> parts(weights.size(), 0);
  if (sum == 0) return parts;
  std::vector<std::pair<int64_t, size_t>> remainders;  // (minus remainder, index)
  int64_t left = amount;
  for (size_t i = 0; i < weights.size(); ++i) {
    parts[i] = amount * weights[i] / sum;
    left -= parts[i];
    remainders.emplace_back(-(amount * weights[i] % sum), i);
  }
  std::sort(remainders.begin(), remainders.end());
  for (int64_t i = 0; i < left; ++i) ++parts[remainders[static_cast<size_t>(i)].second];
  return parts;
}

// The GPU time that jobs of `least_gpus` and more request, by cluster.
std::vector<int64_t> GpuTimes(const PhillyTrace& trace, int64_t least_gpus) {
  std::vector<int64_t> gpu_s(trace.clusters.size(), 0);
  for (const PhillyJob& job : trace.jobs) {
    if (job.gpus >= least_gpus) gpu_s[job.cluster] += job.duration_s * job.gpus;
  }
  return gpu_s;
}

int64_t Quantile(std::vector<int64_t>& values, int64_t percent) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<size_t>((static_cast<int64_t>(values.size()) * percent + 99) / 100);
  return values[std::max<size_t>(rank, 1) - 1];
}

double Mean(const std::vector<int64_t>& values) {
  if (values.empty()) return 0;
  const int64_t sum = std::accumulate(values.begin(), values.end(), int64_t{0});
  return static_cast<double>(sum) / static_cast<double>(values.size());
}

}  // namespace

absl::StatusOr<PhillyTrace> ReadPhilly(const std::string& file, const std::string& from,
                                       const std::string& to,
                                       const std::vector<std::string>& clusters) {
  PhillyTrace trace;
  trace.clusters = clusters;
  std::sort(trace.clusters.begin(), trace.clusters.end());
  absl::Time first;
  absl::Time last;
  for (const auto& [text, time] : {std::pair{&from, &first}, std::pair{&to, &last}}) {
    if (!absl::ParseTime("%Y-%m-%d", *text, time, nullptr)) {
      return absl::InvalidArgumentError(absl::StrCat("\"", *text, "\" is no date"));
    }
  }
  FAIRLEAD_ASSIGN_OR_RETURN(const Csv csv, Csv::Read(file));
  std::vector<Row> rows;
  for (size_t i = 0; i < csv.size(); ++i) {
    FAIRLEAD_ASSIGN_OR_RETURN(const std::string cluster, csv.Text(i, "cluster"));
    const auto known = std::lower_bound(trace.clusters.begin(), trace.clusters.end(), cluster);
    if (known == trace.clusters.end() || *known != cluster) continue;
    Row row;
    FAIRLEAD_RETURN_IF_ERROR(ReadRow(csv, i, row));
    if (row.submit < first || row.submit >= last) continue;
    row.job.cluster = static_cast<size_t>(known - trace.clusters.begin());
    rows.push_back(row);
  }
  if (rows.empty()) return absl::InvalidArgumentError(absl::StrCat(file, " has no such jobs"));
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.submit < b.submit; });
  for (Row& row : rows) {
    row.job.submit_s = absl::ToInt64Seconds(row.submit - rows.front().submit);
    trace.jobs.push_back(row.job);
  }
  return trace;
}

absl::StatusOr<PhillyTrace> ReadPhilly(const std::string& file) {
  return ReadPhilly(file, "2017-10-01", "2017-12-01",
                    {"0e4a51", "103959", "11cb48", "2869ce", "6214e9", "6c71a0", "7f04ca", "b436b2",
                     "e13805", "ed69ec", "ee9e8c"});
}

std::vector<int64_t> PodsOf(const PhillyJob& job) {
  std::vector<int64_t> pods(static_cast<size_t>(job.gpus / kGpusPerNode), kGpusPerNode);
  if (job.gpus % kGpusPerNode != 0) pods.push_back(job.gpus % kGpusPerNode);
  return pods;
}

std::vector<int64_t> QuotasByGpuTime(const PhillyTrace& trace, int64_t gpus) {
  return Deal(GpuTimes(trace, 0), gpus);
}

std::vector<int64_t> EqualQuotas(const PhillyTrace& trace, int64_t gpus) {
  return Deal(std::vector<int64_t>(trace.clusters.size(), 1), gpus);
}

std::vector<int64_t> PlannedQuotas(const PhillyTrace& trace, int64_t gpus) {
  std::vector<int64_t> parts = GpuTimes(trace, kBigJobGpus);
  const int64_t total = std::accumulate(parts.begin(), parts.end(), int64_t{0});
  if (total == 0) return EqualQuotas(trace, gpus);
  for (int64_t& part : parts) {
    part = part / 2 + total / (2 * static_cast<int64_t>(parts.size()));
  }
  return Deal(parts, gpus);
}

PhillySummary Summarise(const PhillyTrace& trace, const PhillyResult& result) {
  std::vector<int64_t> completions;
  std::vector<int64_t> waits;
  std::vector<int64_t> big_waits;
  int64_t useful_gpu_s = 0;
  int64_t end_s = 0;
  for (size_t i = 0; i < trace.jobs.size(); ++i) {
    const PhillyJob& job = trace.jobs[i];
    completions.push_back(result.finish_s[i] - job.submit_s);
    waits.push_back(WaitOf(trace, result, i));
    if (job.gpus >= kBigJobGpus) big_waits.push_back(waits.back());
    useful_gpu_s += job.duration_s * job.gpus;
    end_s = std::max(end_s, result.finish_s[i]);
  }
  PhillySummary summary;
  summary.mean_completion_s = Mean(completions);
  summary.mean_wait_s = Mean(waits);
  summary.big_mean_wait_s = Mean(big_waits);
  summary.p50_wait_s = Quantile(waits, 50);
  summary.p99_wait_s = Quantile(waits, 99);
  summary.big_p99_wait_s = Quantile(big_waits, 99);
  const auto useful = static_cast<double>(useful_gpu_s);
  if (end_s > 0) summary.use = useful / static_cast<double>(result.gpus * end_s);
  if (useful_gpu_s > 0) summary.lost = static_cast<double>(result.lost_gpu_s) / useful;
  return summary;
}

}  // namespace fairlead::replay
