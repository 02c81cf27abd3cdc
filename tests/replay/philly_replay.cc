#include "tests/replay/philly_replay.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "queues/tree.h"
#include "scheduler/framework/framework.h"
#include "scheduler/model/api_names.h"
#include "scheduler/plugins/registry.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::replay {
namespace {

constexpr char kNamespace[] = "philly";

absl::Time At(int64_t seconds) { return absl::FromUnixSeconds(1'500'000'000 + seconds); }

state::StateOptions OurPods(const state::JobOrder& job_order) {
  state::StateOptions options;
  options.job_order = job_order;
  options.scheduler_names = {model::kDefaultSchedulerName};
  return options;
}

model::Queue QueueOf(const std::string& name, const std::string& parent, int64_t quota_milli,
                     int64_t weight_micro) {
  model::Queue queue;
  queue.meta.name = name;
  queue.meta.uid = absl::StrCat("uid-", name);
  queue.meta.creation = At(0);
  queue.parent = parent;
  queue.gpu = {quota_milli, model::kUnlimited, weight_micro};
  queue.cpu = queue.memory = {model::kUnlimited, model::kUnlimited, weight_micro};
  return queue;
}

model::Node MakeNode(int64_t number) {
  model::Node node;
  // Names sort in the order of the numbers.
  node.meta.name = absl::StrCat("node-", 1000 + number);
  node.meta.uid = absl::StrCat("uid-", node.meta.name);
  node.meta.labels.Set(model::kHostnameLabel, node.meta.name);
  node.allocatable = {{model::kCpuName, 1'000'000}, {model::kPodsName, 1000}};
  model::Set(node.allocatable, model::kGpuName, kGpusPerNode * 1000);
  return node;
}

class Replay {
 public:
  Replay(const PhillyTrace& trace, const PhillyOptions& options)
      : trace_(trace),
        options_(options),
        state_(OurPods(options.job_order)),
        tree_(state_.resource_names()),
        jobs_(trace.jobs.size()) {
    result_.gpus = options.gpus;
    result_.first_start_s.assign(trace.jobs.size(), -1);
    result_.finish_s.resize(trace.jobs.size());
  }

  absl::Status Init() {
    framework::Registry registry;
    FAIRLEAD_RETURN_IF_ERROR(plugins::RegisterAll(registry));
    FAIRLEAD_ASSIGN_OR_RETURN(auto framework,
                              framework::Framework::Make(framework::DefaultProfile(), registry));
    engine_ =
        std::make_unique<engine::Engine>(options_.engine, &state_, &tree_, std::move(framework));
    tree_.Upsert(QueueOf("all", "", model::kUnlimited, queues::kMicro));
    for (size_t i = 0; i < trace_.clusters.size(); ++i) {
      const int64_t quota = options_.quotas.at(i);
      const int64_t weight = options_.weight_by_quota ? std::max<int64_t>(1, quota) : 1;
      tree_.Upsert(QueueOf(trace_.clusters[i], "all", quota * 1000, weight * queues::kMicro));
    }
    engine_->OnQueuesChanged();
    for (int64_t i = 0; i < options_.gpus / kGpusPerNode; ++i) state_.UpsertNode(MakeNode(i));
    return absl::OkStatus();
  }

  absl::StatusOr<PhillyResult> Run() {
    size_t arrived = 0;
    absl::Time wake_at = absl::InfiniteFuture();
    while (done_ < trace_.jobs.size()) {
      absl::Time next = wake_at;
      if (!ends_.empty()) next = std::min(next, At(ends_.top().time_s));
      if (arrived < trace_.jobs.size()) next = std::min(next, At(trace_.jobs[arrived].submit_s));
      if (next == absl::InfiniteFuture()) {
        return absl::InternalError(
            absl::StrCat(trace_.jobs.size() - done_, " jobs wait although nothing runs"));
      }
      // Whole seconds, as everything in the trace.
      now_s_ = absl::ToInt64Seconds(absl::Ceil(next - At(0), absl::Seconds(1)));
      for (; !ends_.empty() && ends_.top().time_s <= now_s_; ends_.pop()) Finish(ends_.top());
      for (; arrived < trace_.jobs.size() && trace_.jobs[arrived].submit_s <= now_s_; ++arrived) {
        Submit(arrived);
      }
      FAIRLEAD_ASSIGN_OR_RETURN(wake_at, Cycle());
    }
    const std::string wrong = engine_->CheckConsistency();
    if (!wrong.empty()) return absl::InternalError(absl::StrCat("inconsistent: ", wrong));
    return std::move(result_);
  }

  PhillyReplayStats stats;

 private:
  struct Job {
    std::vector<model::Pod> pods;  // as the API server has them, from submission to end
    int64_t attempt = 0;
    int64_t done_s = 0;      // work that is safe
    int64_t started_s = -1;  // -1: it does not run
    size_t placed = 0;       // pods that have a node
  };
  struct End {
    int64_t time_s;
    size_t job;
    int64_t attempt;  // another attempt has begun: this end does not come
    bool operator>(const End& other) const {
      return std::tie(time_s, job, attempt) > std::tie(other.time_s, other.job, other.attempt);
    }
  };

  static std::string NameOf(size_t job) { return absl::StrCat("job-", job); }

  void Submit(size_t number) {
    const PhillyJob& job = trace_.jobs[number];
    const std::vector<int64_t> pods = PodsOf(job);
    const std::string& queue = trace_.clusters[job.cluster];
    if (pods.size() > 1) {
      model::PodGroup group;
      group.meta.ns = kNamespace;
      group.meta.name = NameOf(number);
      group.meta.uid = absl::StrCat("uid-group-", number);
      group.meta.creation = At(job.submit_s);
      group.queue = queue;
      group.min_member = static_cast<int32_t>(pods.size());
      state_.UpsertPodGroup(group);
    }
    for (size_t i = 0; i < pods.size(); ++i) {
      model::Pod pod;
      pod.meta.ns = pod.spec.ns = kNamespace;
      pod.meta.creation = At(job.submit_s);
      pod.meta.labels.Set(model::kQueueLabel, queue);
      if (pods.size() > 1) pod.meta.annotations.Set(model::kPodGroupAnnotation, NameOf(number));
      pod.scheduler_name = model::kDefaultSchedulerName;
      model::Set(pod.spec.requests, model::kGpuName, pods[i] * 1000);
      jobs_[number].pods.push_back(std::move(pod));
    }
    Ask(number);
  }

  // New pods, of the same age.
  void Ask(size_t number) {
    Job& job = jobs_[number];
    ++job.attempt;
    job.started_s = -1;
    job.placed = 0;
    for (size_t i = 0; i < job.pods.size(); ++i) {
      model::Pod& pod = job.pods[i];
      pod.meta.name = absl::StrCat(NameOf(number), "-", job.attempt, "-", i);
      pod.meta.uid = absl::StrCat("uid-", pod.meta.name);
      pod.node_name.clear();
      pod.phase = model::PodPhase::kPending;
      pod.meta.annotations.Erase(model::kLastStartAnnotation);
      if (options_.durations != DurationsSaid::kNone) {
        int64_t left_s = trace_.jobs[number].duration_s - job.done_s;
        if (options_.durations == DurationsSaid::kRough) left_s = RoughDuration(number, left_s);
        pod.meta.annotations.Set(model::kExpectedDurationAnnotation,
                                 absl::FormatDuration(absl::Seconds(left_s)));
      }
      job_of_[pod.meta.uid] = number;
      state_.UpsertPod(pod);
    }
  }

  void RemovePods(Job& job) {
    for (const model::Pod& pod : job.pods) {
      job_of_.erase(pod.meta.uid);
      state_.RemovePod(pod.meta.ns, pod.meta.name, pod.meta.uid);
    }
  }

  void Finish(const End& end) {
    Job& job = jobs_[end.job];
    if (end.attempt != job.attempt) return;
    RemovePods(job);
    if (job.pods.size() > 1) {
      state_.RemovePodGroup(kNamespace, NameOf(end.job), absl::StrCat("uid-group-", end.job));
    }
    job.pods = {};
    result_.finish_s[end.job] = now_s_;
    ++done_;
  }

  void Interrupt(size_t number) {
    Job& job = jobs_[number];
    const PhillyJob& said = trace_.jobs[number];
    RemovePods(job);
    if (job.started_s >= 0) {
      const int64_t worked_s = now_s_ - job.started_s;
      int64_t safe_s = 0;
      if (options_.checkpoint == absl::ZeroDuration()) {
        safe_s = worked_s;
      } else if (options_.checkpoint != absl::InfiniteDuration()) {
        const int64_t period_s = absl::ToInt64Seconds(options_.checkpoint);
        safe_s = worked_s / period_s * period_s;
      }
      job.done_s += safe_s;
      ++result_.evicted_jobs;
      result_.lost_gpu_s += (worked_s - safe_s) * said.gpus;
    }
    Ask(number);
  }

  // The effect of a binding on the API server and the kubelet.
  void Start(const engine::Binding& binding) {
    const size_t number = job_of_.at(state_.pod(binding.pod).uid);
    Job& job = jobs_[number];
    const auto pod = std::find_if(job.pods.begin(), job.pods.end(), [&](const model::Pod& p) {
      return p.meta.uid == state_.pod(binding.pod).uid;
    });
    pod->node_name = state_.node(binding.node).name();
    pod->phase = model::PodPhase::kRunning;
    pod->meta.annotations.Set(
        model::kLastStartAnnotation,
        absl::FormatTime(absl::RFC3339_full, At(now_s_), absl::UTCTimeZone()));
    state_.UpsertPod(*pod);
    if (++job.placed < job.pods.size()) return;
    job.started_s = now_s_;
    if (result_.first_start_s[number] < 0) result_.first_start_s[number] = now_s_;
    ends_.push({now_s_ + trace_.jobs[number].duration_s - job.done_s, number, job.attempt});
  }

  absl::StatusOr<absl::Time> Cycle() {
    bool may_evict = true;
    while (true) {
      const engine::CycleResult cycle = engine_->RunCycle(At(now_s_), may_evict);
      ++stats.cycles;
      const auto waiting = static_cast<int64_t>(cycle.waiting.size());
      stats.waiting_sum += waiting;
      stats.waiting_max = std::max(stats.waiting_max, waiting);
      for (const engine::Binding& binding : cycle.bindings) Start(binding);
      std::set<size_t> interrupted;
      for (const engine::Eviction& eviction : cycle.evictions) {
        ++stats.evictions;
        interrupted.insert(job_of_.at(state_.pod(eviction.pod).uid));
      }
      for (const size_t job : interrupted) Interrupt(job);
      // A gang starts as one: placing part of it would be a fault of the engine.
      for (const engine::Binding& binding : cycle.bindings) {
        const auto job = job_of_.find(state_.pod(binding.pod).uid);
        if (job == job_of_.end() || jobs_[job->second].placed == 0) continue;
        if (jobs_[job->second].placed == jobs_[job->second].pods.size()) continue;
        return absl::InternalError(absl::StrCat(NameOf(job->second), " was placed in part"));
      }
      if (interrupted.empty()) return cycle.wake_at;
      may_evict = false;  // as DecisionLoop does
    }
  }

  const PhillyTrace& trace_;
  const PhillyOptions& options_;
  state::ClusterState state_;
  queues::QueueTree tree_;
  std::unique_ptr<engine::Engine> engine_;
  std::vector<Job> jobs_;
  absl::flat_hash_map<std::string, size_t> job_of_;  // by uid of a pod
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  int64_t now_s_ = 0;
  size_t done_ = 0;
  PhillyResult result_;
};

}  // namespace

int64_t RoughDuration(size_t job, int64_t duration_s) {
  constexpr std::pair<int64_t, int64_t> kFactors[] = {{1, 4}, {1, 3}, {1, 2}, {2, 3}, {1, 1},
                                                      {3, 2}, {2, 1}, {3, 1}, {4, 1}};
  const uint64_t draw = StableHash().Add(static_cast<int64_t>(job)).value();
  const auto& [times, over] = kFactors[draw % std::size(kFactors)];
  return std::max<int64_t>(1, duration_s * times / over);
}

engine::EngineOptions PhillyEngine() {
  engine::EngineOptions options;
  options.hook_on = false;
  options.consolidation = false;
  return options;
}

absl::StatusOr<PhillyResult> ReplayPhilly(const PhillyTrace& trace, const PhillyOptions& options,
                                          PhillyReplayStats* stats) {
  if (options.quotas.size() != trace.clusters.size()) {
    return absl::InvalidArgumentError("there is not one quota for each cluster");
  }
  Replay replay(trace, options);
  FAIRLEAD_RETURN_IF_ERROR(replay.Init());
  absl::StatusOr<PhillyResult> result = replay.Run();
  if (stats != nullptr) *stats = replay.stats;
  return result;
}

}  // namespace fairlead::replay
