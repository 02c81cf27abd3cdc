// The Philly trace, reduced form: jobs of virtual clusters with submission time, duration and
// number of GPUs. The setup here: nodes of 8 GPUs; a job of up to 8 is one pod, a larger one a gang
// of pods of 8 and one of the rest.
//
// Units: seconds since the first submission, whole GPUs. Thread-safety: pure functions. Errors:
// NotFound for a missing file; InvalidArgument names file and line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace fairlead::replay {

inline constexpr int64_t kGpusPerNode = 8;
inline constexpr int64_t kBigJobGpus = 8;  // from here on a job is "big" in the results

struct PhillyJob {
  int64_t submit_s = 0;
  int64_t duration_s = 0;
  int64_t gpus = 0;
  size_t cluster = 0;  // index into PhillyTrace::clusters
};

struct PhillyTrace {
  std::vector<std::string> clusters;  // sorted
  std::vector<PhillyJob> jobs;        // by submission, then as in the file
};

// Jobs of `clusters` submitted in [from, to) (dates as in the file, "2017-10-01").
absl::StatusOr<PhillyTrace> ReadPhilly(const std::string& file, const std::string& from,
                                       const std::string& to,
                                       const std::vector<std::string>& clusters);
// October and November of the 11 virtual clusters with published results: 68,503 jobs.
absl::StatusOr<PhillyTrace> ReadPhilly(const std::string& file);

// GPUs of each pod of the job, largest first.
std::vector<int64_t> PodsOf(const PhillyJob& job);

// `gpus` divided among the clusters in whole GPUs: in proportion to the GPU time that each requests
// in the trace, or in equal parts. Largest remainders; ties to the smaller name.
std::vector<int64_t> QuotasByGpuTime(const PhillyTrace& trace, int64_t gpus);
std::vector<int64_t> EqualQuotas(const PhillyTrace& trace, int64_t gpus);
// Half in equal parts, half in proportion to the GPU time of the cluster's big jobs: small jobs
// find capacity that others leave, whole nodes have to be reserved.
std::vector<int64_t> PlannedQuotas(const PhillyTrace& trace, int64_t gpus);

// The result of a trace under some policy.
struct PhillyResult {
  int64_t gpus = 0;
  std::vector<int64_t> first_start_s, finish_s;  // by job
  int64_t evicted_jobs = 0;                      // times that a running job had to begin again
  int64_t lost_gpu_s = 0;                        // work lost by that
};

struct PhillySummary {
  double mean_completion_s = 0;  // submission to end
  // Wait: completion less the duration of the job, so lost work counts as waiting too.
  double mean_wait_s = 0, big_mean_wait_s = 0;
  int64_t p50_wait_s = 0, p99_wait_s = 0, big_p99_wait_s = 0;
  double use = 0;   // useful GPU time as a fraction of the GPUs' time until the last job ended
  double lost = 0;  // lost GPU time, as a fraction of the useful
};
PhillySummary Summarise(const PhillyTrace& trace, const PhillyResult& result);

// Wait of the job, as above.
inline int64_t WaitOf(const PhillyTrace& trace, const PhillyResult& result, size_t job) {
  return result.finish_s[job] - trace.jobs[job].submit_s - trace.jobs[job].duration_s;
}

}  // namespace fairlead::replay
