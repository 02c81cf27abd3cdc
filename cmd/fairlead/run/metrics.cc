#include "cmd/fairlead/run/metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "scheduler/model/resources.h"

namespace fairlead::cmd {
namespace {

using server::MetricType;
using server::Sample;
using Labels = std::vector<std::pair<std::string, std::string>>;
constexpr MetricType kC = MetricType::kCounter, kG = MetricType::kGauge,
                     kH = MetricType::kHistogram;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

double Dollars(int64_t micro_usd) { return static_cast<double>(micro_usd) / 1e6; }

// Fills the table's metrics; a name or a label that is not in the table is a defect of this file.
class Filler {
 public:
  Filler() {
    for (const MetricInfo& info : AllMetrics()) {
      places_[info.name] = metrics_.size();
      metrics_.push_back({info.name, info.help, info.type, {}});
    }
  }
  void Add(const char* name, double value, Labels labels = {}) {
    Sample sample;
    sample.labels = std::move(labels);
    sample.value = value;
    Push(name, std::move(sample));
  }
  void Add(const char* name, int64_t value, Labels labels = {}) {
    Add(name, static_cast<double>(value), std::move(labels));
  }
  void Add(const char* name, uint64_t value, Labels labels = {}) {
    Add(name, static_cast<double>(value), std::move(labels));
  }
  void Add(const char* name, bool value, Labels labels = {}) {
    Add(name, value ? 1.0 : 0.0, std::move(labels));
  }
  void Add(const char* name, absl::Duration value, Labels labels = {}) {
    Add(name, absl::ToDoubleSeconds(value), std::move(labels));
  }
  void Add(const char* name, const kube::LatencyHistogram& histogram) {
    Sample sample;
    uint64_t total = 0;
    for (size_t i = 0; i < histogram.counts.size(); ++i) {
      total += static_cast<uint64_t>(histogram.counts[i]);
      const bool last = i + 1 == histogram.counts.size();
      sample.buckets.push_back(
          {last ? kInfinite : static_cast<double>(uint64_t{1} << i) / 1000.0, total});
    }
    sample.sum = absl::ToDoubleSeconds(histogram.sum);
    Push(name, std::move(sample));
  }
  void Add(const char* name, const core::PluginHistogram& histogram, Labels labels) {
    Sample sample;
    sample.labels = std::move(labels);
    uint64_t total = 0;
    for (size_t i = 0; i < histogram.counts.size(); ++i) {
      total += static_cast<uint64_t>(histogram.counts[i]);
      const bool last = i == core::PluginHistogram::kBounds;
      sample.buckets.push_back({last ? kInfinite : core::PluginHistogram::BoundSeconds(i), total});
    }
    sample.sum = absl::ToDoubleSeconds(histogram.sum);
    Push(name, std::move(sample));
  }
  // `per_unit`: observations of this size are 1 in the metric.
  template <int64_t kFirst, size_t kBounds>
  void Add(const char* name, const core::DoublingHistogram<kFirst, kBounds>& histogram,
           double per_unit, Labels labels = {}) {
    Sample sample;
    sample.labels = std::move(labels);
    uint64_t total = 0;
    for (size_t i = 0; i < histogram.counts.size(); ++i) {
      total += static_cast<uint64_t>(histogram.counts[i]);
      sample.buckets.push_back(
          {i == kBounds ? kInfinite : static_cast<double>(histogram.BoundOf(i)) / per_unit, total});
    }
    sample.sum = static_cast<double>(histogram.sum) / per_unit;
    Push(name, std::move(sample));
  }
  // Of the samples from now on.
  void SetShard(const std::optional<std::string>& shard) { shard_ = shard; }
  std::vector<server::Metric> Take() { return std::move(metrics_); }

 private:
  void Push(const char* name, Sample sample) {
    const auto place = places_.find(name);
    FAIRLEAD_CHECK(place != places_.end(), name);
    if (shard_.has_value()) sample.labels.emplace_back("shard", *shard_);
    metrics_[place->second].samples.push_back(std::move(sample));
  }
  std::vector<server::Metric> metrics_;
  std::map<std::string, size_t> places_;
  std::optional<std::string> shard_;
};

void AddKinds(const AppStats& app, Filler& out) {
  for (const kube::ReflectorStats& kind : app.kinds) {
    const Labels labels = {{"kind", model::KindTitle(kind.kind)}};
    out.Add("fairlead_kind_synced", kind.synced, labels);
    out.Add("fairlead_kind_missing", kind.missing, labels);
    out.Add("fairlead_kind_objects", static_cast<uint64_t>(kind.objects), labels);
    if (kind.since_last_event != absl::InfiniteDuration()) {
      out.Add("fairlead_kind_last_word_seconds", kind.since_last_event, labels);
    }
    out.Add("fairlead_kind_stale", kind.synced && kind.IsStale(app.stale_after), labels);
    out.Add("fairlead_kind_events_total", kind.events, labels);
    out.Add("fairlead_kind_snapshots_total", kind.snapshots, labels);
    out.Add("fairlead_kind_errors_total", kind.errors, labels);
    if (kind.kind == model::Kind::kNode || kind.kind == model::Kind::kPod) {
      out.Add("scheduler_cache_size", static_cast<uint64_t>(kind.objects),
              {{"type", kind.kind == model::Kind::kNode ? "nodes" : "pods"}});
    }
  }
}

void AddWrites(const AppStats& app, Filler& out) {
  const kube::ExecutorStats& writes = app.writes;
  for (const auto& [verb, count] : std::map<std::string, int64_t>(writes.requests_by_verb.begin(),
                                                                  writes.requests_by_verb.end())) {
    out.Add("fairlead_api_requests_total", count, {{"method", verb}});
  }
  out.Add("fairlead_api_request_duration_seconds", writes.request_latency);
  out.Add("fairlead_api_request_retries_total", writes.retries);
  out.Add("fairlead_action_duration_seconds", writes.action_latency);
  out.Add("fairlead_writes_in_flight", static_cast<int64_t>(writes.in_flight));
  out.Add("fairlead_writes_in_flight_max", static_cast<int64_t>(writes.window));
  for (int i = 0; i < kube::kWriteLanes; ++i) {
    const Labels labels = {{"lane", kube::WriteLaneName(static_cast<kube::WriteLane>(i))}};
    const auto lane = static_cast<size_t>(i);
    out.Add("fairlead_writes_waiting", static_cast<uint64_t>(writes.queued[lane]), labels);
    out.Add("fairlead_writes_answered_total", writes.answered[lane], labels);
    out.Add("fairlead_writes_failed_total", writes.failed[lane], labels);
  }
  out.Add("fairlead_writes_fenced_total", writes.fenced);
  out.Add("fairlead_writes_dropped_total", writes.shed - writes.shed_events);
  out.Add("fairlead_kube_events_dropped_total", writes.shed_events);
}

// The numbers of KAI's queue-controller and scheduler, by their names and in their units.
struct KaiQueueMetrics {
  const char* resource;
  const char *quota, *allocated, *fair_share;
  double fair_share_unit;  // of the resource's own units
};
constexpr KaiQueueMetrics kKaiQueueMetrics[] = {
    {model::kGpuName, "kai_queue_deserved_gpus", "kai_queue_allocated_gpus",
     "kai_queue_fair_share_gpu", 1},
    {model::kCpuName, "kai_queue_quota_cpu_cores", "kai_queue_allocated_cpu_cores",
     "kai_queue_fair_share_cpu_cores", 1},
    {model::kMemoryName, "kai_queue_quota_memory_bytes", "kai_queue_allocated_memory_bytes",
     "kai_queue_fair_share_memory_gb", 1e9}};

void AddKaiQueues(const OwnerStats& owner, Filler& out) {
  if (!owner.kai_status) return;
  for (const core::QueueRow& queue : owner.totals.queues) {
    const Labels labels = {{"queue_name", queue.name}};
    out.Add("kai_queue_info", int64_t{1}, labels);
    for (const core::QueueResourceRow& row : queue.resources) {
      const auto* metrics = std::find_if(
          std::begin(kKaiQueueMetrics), std::end(kKaiQueueMetrics),
          [&row](const KaiQueueMetrics& each) { return row.resource == each.resource; });
      if (metrics == std::end(kKaiQueueMetrics)) continue;
      const auto units = static_cast<double>(model::BaseUnitsPerUnit(row.resource));
      const auto amount = [units](int64_t base, double unit) {
        return base == model::kUnlimited ? -1.0 : static_cast<double>(base) / units / unit;
      };
      out.Add(metrics->quota, amount(row.quota, 1), labels);
      out.Add(metrics->allocated, amount(row.allocated, 1), labels);
      out.Add(metrics->fair_share, amount(row.fair_share, metrics->fair_share_unit), labels);
    }
  }
}

void AddQueues(const OwnerStats& owner, Filler& out) {
  for (const core::QueueRow& queue : owner.totals.queues) {
    out.Add("fairlead_queue_waiting_workloads", queue.waiting_workloads, {{"queue", queue.name}});
    out.Add("fairlead_queue_running_pods", queue.running_pods, {{"queue", queue.name}});
    for (const core::QueueResourceRow& row : queue.resources) {
      const Labels labels = {{"queue", queue.name}, {"resource", row.resource}};
      const auto units = static_cast<double>(model::BaseUnitsPerUnit(row.resource));
      const auto amount = [units](int64_t base) {
        return base == model::kUnlimited ? kInfinite : static_cast<double>(base) / units;
      };
      out.Add("fairlead_queue_quota", amount(row.quota), labels);
      out.Add("fairlead_queue_limit", amount(row.limit), labels);
      out.Add("fairlead_queue_fair_share", amount(row.fair_share), labels);
      out.Add("fairlead_queue_allocated", amount(row.allocated), labels);
      out.Add("fairlead_queue_requested", amount(row.requested), labels);
    }
  }
}

// How long plugins and the stages of a binding take.
void AddDurations(const OwnerStats& owner, Filler& out) {
  const core::DecisionLoop::Stats& loop = owner.loop;
  for (const auto& [profile, attempts] : loop.attempts) {
    const auto attempt = [&out, &profile = profile](const char* result, const auto& histogram) {
      out.Add("scheduler_scheduling_attempt_duration_seconds", histogram, 1e6,
              {{"profile", profile}, {"result", result}});
    };
    attempt("scheduled", attempts.scheduled_us);
    attempt("error", attempts.error_us);
    const auto point = [&out, &profile = profile](const char* name, const char* status,
                                                  const auto& histogram) {
      out.Add("scheduler_framework_extension_point_duration_seconds", histogram, 1e6,
              {{"extension_point", name}, {"profile", profile}, {"status", status}});
    };
    point("PreBind", "Success", attempts.prepared_us);
    point("PreBind", "Error", attempts.unprepared_us);
    point("Bind", "Success", attempts.bound_us);
    point("Bind", "Error", attempts.refused_us);
  }
  for (const core::PluginDurations* plugins : {&loop.plugins, &owner.counters.probe.durations()}) {
    for (const auto& [key, histogram] : plugins->rows()) {
      out.Add("scheduler_plugin_execution_duration_seconds", histogram,
              {{"extension_point", key.point}, {"plugin", key.plugin}, {"status", key.status}});
    }
  }
  out.Add("scheduler_permit_wait_duration_seconds", loop.permit_granted_us, 1e6,
          {{"result", "Success"}});
  out.Add("scheduler_permit_wait_duration_seconds", loop.permit_denied_us, 1e6,
          {{"result", "Unschedulable"}});
}

// What kube-scheduler's own metrics tell of decisions.
void AddScheduling(const OwnerStats& owner, Filler& out) {
  const core::DecisionLoop::Stats& loop = owner.loop;
  for (const auto& [profile, attempts] : loop.attempts) {
    const auto add = [&out, &profile = profile](const char* result, uint64_t count) {
      out.Add("scheduler_schedule_attempts_total", count,
              {{"profile", profile}, {"result", result}});
    };
    add("scheduled", attempts.scheduled);
    add("unschedulable", attempts.unschedulable);
    add("error", attempts.error);
  }
  AddDurations(owner, out);
  out.Add("scheduler_pod_scheduling_sli_duration_seconds", loop.scheduling_latency_us, 1e6);
  out.Add("scheduler_preemption_attempts_total", loop.preemption_attempts);
  out.Add("scheduler_preemption_victims", loop.preemption_victims, 1);
  out.Add("scheduler_queue_incoming_pods_total", loop.pods_added,
          {{"event", "UnschedulablePodAdd"}, {"queue", "active"}});
  out.Add("scheduler_queue_incoming_pods_total", loop.pods_backing_off,
          {{"event", "ScheduleAttemptFailure"}, {"queue", "backoff"}});
  out.Add("scheduler_cache_size", owner.totals.assumed_pods, {{"type", "assumed_pods"}});
  out.Add("fairlead_suspended_workloads", owner.totals.suspended_workloads);
  for (const auto& [reason, pods] : owner.totals.unschedulable_pods) {
    out.Add("scheduler_unschedulable_pods", pods,
            {{"plugin", reason.first}, {"profile", reason.second}});
  }
}

// The queue of kube-scheduler in which such pods would be.
const char* PendingQueueOf(verdict::Code code) {
  switch (code) {
    case verdict::Code::kGated:
      return "gated";
    case verdict::Code::kBindingRefused:
      return "backoff";
    default:
      return "unschedulable";
  }
}

// Statistics of the owner's thread; none before its first answer.
void AddOwner(const OwnerStats& owner, absl::Time now, Filler& out) {
  if (!owner.known) return;
  out.Add("fairlead_owner_stats_age_seconds", std::max(absl::ZeroDuration(), now - owner.at));
  out.Add("fairlead_synced", owner.synced);
  out.Add("fairlead_reading", owner.reading);
  out.Add("fairlead_history_missing", !owner.totals.history.problem.empty());
  const core::DecisionLoop::Stats& loop = owner.loop;
  out.Add("fairlead_cluster_events_total", loop.events);
  out.Add("fairlead_steps_total", loop.steps);
  out.Add("fairlead_cycles_total", loop.cycles);
  out.Add("fairlead_hook_steps_total", loop.hook_steps);
  out.Add("fairlead_bindings_total", loop.bindings);
  out.Add("fairlead_evictions_total", loop.evictions);
  out.Add("fairlead_node_requests_total", loop.node_requests);
  out.Add("fairlead_verdict_writes_total", loop.verdict_writes);
  out.Add("fairlead_decision_duration_seconds", owner.counters.decisions);
  out.Add("fairlead_reconfigurations_total", owner.counters.reconfigurations);
  for (const auto& [result, count] : owner.counters.results) {
    out.Add("fairlead_actions_total", count, {{"action", result.first}, {"code", result.second}});
  }
  AddScheduling(owner, out);
  const auto& waiting = owner.totals.waiting;
  std::map<std::string, int64_t> pending = {{"gated", 0}, {"unschedulable", 0}, {"backoff", 0}};
  for (const auto& [code, of_code] : waiting) {
    out.Add("fairlead_waiting_pods", of_code.pods, {{"code", std::string(CodeName(code))}});
    pending[PendingQueueOf(code)] += of_code.pods;
  }
  for (const auto& [code, of_code] : waiting) {
    out.Add("fairlead_waiting_workloads", of_code.workloads,
            {{"code", std::string(CodeName(code))}});
  }
  for (const auto& [queue, pods] : pending) {
    out.Add("scheduler_pending_pods", pods, {{"queue", queue}});
  }
  for (const auto& [status, count] : owner.totals.nodes) {
    out.Add("fairlead_nodes", count, {{"status", status}});
  }
  out.Add("fairlead_bought_gpus", owner.totals.gpus_held);
  out.Add("fairlead_bought_dollars_per_hour", Dollars(owner.totals.price_micro_usd_per_hour));
  AddQueues(owner, out);
  AddKaiQueues(owner, out);
}

void AddHost(const HostStats& host, Filler& out) {
  out.Add("fairlead_build_info", int64_t{1}, {{"version", host.version}});
  out.Add("fairlead_log_lines_dropped_total", host.log_lines_dropped);
  out.Add("fairlead_audit_lines_dropped_total", host.audit_lines_dropped);
  out.Add("fairlead_configuration_reloads_total", host.reloads_ok, {{"result", "ok"}});
  out.Add("fairlead_configuration_reloads_total", host.reloads_failed, {{"result", "failed"}});
  out.Add("fairlead_configuration_stale", host.configuration_stale);
  if (host.webhook.has_value()) {
    const std::pair<const char*, uint64_t> answers[] = {
        {"admitted", host.webhook->admitted},         {"defaulted", host.webhook->defaulted},
        {"invalid", host.webhook->invalid},           {"forbidden", host.webhook->forbidden},
        {"unauthorized", host.webhook->unauthorized}, {"failed", host.webhook->failed}};
    for (const auto& [answer, count] : answers) {
      out.Add("fairlead_admission_requests_total", static_cast<int64_t>(count),
              {{"answer", answer}});
    }
  }
  if (host.spans.has_value()) {
    const std::pair<const char*, int64_t> results[] = {{"sent", host.spans->sent},
                                                       {"failed", host.spans->failed},
                                                       {"dropped", host.spans->dropped}};
    for (const auto& [result, count] : results) {
      out.Add("fairlead_trace_spans_total", count, {{"result", result}});
    }
  }
  const ProcessFacts& process = host.process;
  out.Add("process_cpu_seconds_total", process.cpu_seconds);
  out.Add("process_start_time_seconds", process.start_time_seconds);
  out.Add("process_resident_memory_bytes", process.resident_bytes);
  out.Add("process_virtual_memory_bytes", process.virtual_bytes);
  out.Add("process_open_fds", process.open_fds);
  out.Add("process_max_fds", process.max_fds);
}

void AddApp(const AppStats& app, Filler& out) {
  out.Add("fairlead_leader", app.leader);
  if (app.elects) {
    out.Add("fairlead_lease_gains_total", app.lease.gains);
    out.Add("fairlead_lease_losses_total", app.lease.losses);
    out.Add("fairlead_lease_errors_total", app.lease.errors);
    out.Add("fairlead_lease_renewals_withheld_total", app.lease.withheld);
  }
  out.Add("fairlead_owner_silent_seconds", app.owner_silent_for);
  out.Add("fairlead_event_queue_length", static_cast<uint64_t>(app.queue.queued));
  out.Add("fairlead_event_queue_merged_total", app.queue.merged);
  AddKinds(app, out);
  AddWrites(app, out);
}

}  // namespace

const std::vector<MetricInfo>& AllMetrics() {
  static const auto* const kAll = new std::vector<MetricInfo>{
      // As kube-scheduler has them.
      {"scheduler_schedule_attempts_total", kC, "profile, result",
       "Answered bindings: scheduled, or error; and workloads that a decision found no place for: "
       "unschedulable. Equivalent workloads count once in a decision. The profile is the scheduler "
       "name of the pod."},
      {"scheduler_scheduling_attempt_duration_seconds", kH, "profile, result",
       "From the decision that gave a pod a node until its binding was confirmed (scheduled) or "
       "refused (error)."},
      {"scheduler_framework_extension_point_duration_seconds", kH,
       "extension_point, profile, status",
       "PreBind: from the decision until the pod had all that it needs besides its node (device "
       "claims, volumes, a GPU's share, extenders, the profile's own plugins at Reserve, Permit "
       "and PreBind); pods that need none of it do not count. Bind: from the step that sent the "
       "binding until the step that took its answer."},
      {"scheduler_plugin_execution_duration_seconds", kH, "extension_point, plugin, status",
       "Permit, PreBind: how long a plugin held a pod. Filter, Score: single calls; "
       "NormalizeScore: one about up to 8 nodes; these are asked once more, and measured, after "
       "every tenth decision."},
      {"scheduler_permit_wait_duration_seconds", kH, "result",
       "Of pods that had all that they need and waited, for the others of their gang, say: until "
       "their binding was sent (Success), or given up (Unschedulable)."},
      {"scheduler_pod_scheduling_sli_duration_seconds", kH, "",
       "From the first decision that knew of a pod without scheduling gates until its binding was "
       "confirmed."},
      {"scheduler_preemption_attempts_total", kC, "",
       "Finished searches for pods to evict, of reclaim and preempt."},
      {"scheduler_preemption_victims", kH, "",
       "Pods that were chosen to be evicted by one search of reclaim or preempt."},
      {"scheduler_unschedulable_pods", kG, "plugin, profile",
       "Waiting pods by each plugin that refuses nodes to them, or SchedulingGates; the profile is "
       "their scheduler name."},
      {"scheduler_pending_pods", kG, "queue",
       "Pods that wait: gated by a scheduling gate; backoff because their binding was refused; or "
       "unschedulable for any other reason."},
      {"scheduler_queue_incoming_pods_total", kC, "event, queue",
       "Pods that came to wait without scheduling gates (active), and pods that wait again because "
       "their binding failed (backoff)."},
      {"scheduler_cache_size", kG, "type",
       "Objects in memory: nodes, pods; and assumed_pods, whose binding is not confirmed yet."},
      // Health.
      {"fairlead_build_info", kG, "version", "Always 1."},
      {"fairlead_synced", kG, "", "1: every kind of object was listed once."},
      {"fairlead_leader", kG, "", "1: this process leads."},
      {"fairlead_reading", kG, "",
       "1: this process leads and still reads what its predecessor wrote; it decides nothing."},
      {"fairlead_lease_gains_total", kC, "", "How often this process became the leader."},
      {"fairlead_lease_losses_total", kC, "", "How often it ceased to be the leader."},
      {"fairlead_lease_errors_total", kC, "", "Failed reads and writes of the lease."},
      {"fairlead_lease_renewals_withheld_total", kC, "",
       "Renewals that were not sent because the deciding thread did not answer."},
      {"fairlead_owner_silent_seconds", kG, "",
       "How long the deciding thread has not answered; 0: it answers."},
      {"fairlead_owner_stats_age_seconds", kG, "",
       "Age of the deciding thread's own statistics: all metrics of decisions and queues."},
      {"fairlead_configuration_reloads_total", kC, "result",
       "Reloads of configuration and catalogue: ok, failed."},
      {"fairlead_configuration_stale", kG, "",
       "1: the last reload failed and an older configuration is in force."},
      {"fairlead_reconfigurations_total", kC, "", "New configurations that took effect."},
      {"fairlead_admission_requests_total", kC, "answer",
       "Requests to the webhooks: admitted, defaulted, invalid, forbidden, unauthorized (rights "
       "could "
       "not be asked about), failed."},
      {"fairlead_log_lines_dropped_total", kC, "",
       "Log lines dropped because standard error took nothing."},
      {"fairlead_audit_lines_dropped_total", kC, "",
       "Lines of the audit log dropped because 64 MiB of them waited to be written."},
      {"fairlead_trace_spans_total", kC, "result",
       "Spans of traces: sent, and taken by the collector; failed, because it refused them or did "
       "not take them within a minute; dropped, because too many waited."},
      // State of the watches.
      {"fairlead_kind_synced", kG, "kind", "1: the kind was listed once."},
      {"fairlead_kind_missing", kG, "kind", "1: the server does not have the kind."},
      {"fairlead_kind_objects", kG, "kind", "Objects in memory."},
      {"fairlead_kind_last_word_seconds", kG, "kind",
       "Age of the last event, bookmark or list. Up to 75 s is normal for a quiet kind."},
      {"fairlead_kind_stale", kG, "kind",
       "1: the objects may be out of date; nothing is evicted, provisioned or removed."},
      {"fairlead_kind_events_total", kC, "kind", "Events of watches, bookmarks included."},
      {"fairlead_kind_snapshots_total", kC, "kind", "Complete lists."},
      {"fairlead_kind_errors_total", kC, "kind", "Watches and lists that failed."},
      {"fairlead_event_queue_length", kG, "", "Events that wait for the deciding thread."},
      {"fairlead_event_queue_merged_total", kC, "",
       "Events that replaced an older one of the same object that still waited."},
      // Decisions.
      {"fairlead_cluster_events_total", kC, "", "Events that were applied."},
      {"fairlead_steps_total", kC, "", "Steps of the decision loop, with or without a decision."},
      {"fairlead_cycles_total", kC, "", "Scheduling cycles."},
      {"fairlead_decision_duration_seconds", kH, "", "Duration of steps that decided."},
      {"fairlead_bindings_total", kC, "", "Bindings decided."},
      {"fairlead_evictions_total", kC, "", "Pods evicted, or suspended with their workload."},
      {"fairlead_suspended_workloads", kG, "",
       "Workloads suspended instead of evicted, until their pods have ended."},
      {"fairlead_hook_steps_total", kC, "", "Steps of the autoscaler."},
      {"fairlead_node_requests_total", kC, "", "Nodes requested."},
      {"fairlead_verdict_writes_total", kC, "", "Verdicts written."},
      {"fairlead_history_missing", kG, "",
       "1: fair shares are divided without the usage history that is configured."},
      {"fairlead_waiting_workloads", kG, "code", "Waiting workloads, by verdict."},
      {"fairlead_waiting_pods", kG, "code", "Waiting pods, by verdict."},
      {"fairlead_nodes", kG, "status", "Nodes, requested ones included."},
      {"fairlead_bought_gpus", kG, "", "GPUs of the autoscaler's nodes, requested ones included."},
      {"fairlead_bought_dollars_per_hour", kG, "",
       "Price per hour of the autoscaler's nodes, requested ones included."},
      {"fairlead_queue_quota", kG, "queue, resource", "Quota, in the resource's own unit."},
      {"fairlead_queue_limit", kG, "queue, resource", "Limit; +Inf: none."},
      {"fairlead_queue_fair_share", kG, "queue, resource", "Fair share at the last decision."},
      {"fairlead_queue_allocated", kG, "queue, resource", "Amount that pods hold."},
      {"fairlead_queue_requested", kG, "queue, resource", "Amount that pods hold or wait for."},
      {"fairlead_queue_waiting_workloads", kG, "queue", "Waiting workloads."},
      {"fairlead_queue_running_pods", kG, "queue", "Running pods."},
      // KAI's, by its names.
      {"kai_queue_info", kG, "queue_name", "1: the queue is there."},
      {"kai_queue_deserved_gpus", kG, "queue_name", "Quota of GPUs; -1: unlimited."},
      {"kai_queue_quota_cpu_cores", kG, "queue_name", "Quota of cores; -1: unlimited."},
      {"kai_queue_quota_memory_bytes", kG, "queue_name", "Quota of memory; -1: unlimited."},
      {"kai_queue_allocated_gpus", kG, "queue_name", "GPUs that pods hold."},
      {"kai_queue_allocated_cpu_cores", kG, "queue_name", "Cores that pods hold."},
      {"kai_queue_allocated_memory_bytes", kG, "queue_name", "Memory that pods hold."},
      {"kai_queue_fair_share_gpu", kG, "queue_name", "Fair share of GPUs at the last decision."},
      {"kai_queue_fair_share_cpu_cores", kG, "queue_name",
       "Fair share of cores at the last decision."},
      {"kai_queue_fair_share_memory_gb", kG, "queue_name",
       "Fair share of memory at the last decision, in 10^9 bytes."},
      // Writes.
      {"fairlead_actions_total", kC, "action, code",
       "Answered actions by gRPC status code; Kubernetes events are not counted."},
      {"fairlead_action_duration_seconds", kH, "", "From decision to answer, retries included."},
      {"fairlead_api_requests_total", kC, "method", "Write requests, and reads between them."},
      {"fairlead_api_request_duration_seconds", kH, "", "Single requests."},
      {"fairlead_api_request_retries_total", kC, "", "Requests that were repeated."},
      {"fairlead_writes_in_flight", kG, "", "Requests that wait for an answer."},
      {"fairlead_writes_in_flight_max", kG, "",
       "Limit of requests in flight, which follows the server's pace."},
      {"fairlead_writes_waiting", kG, "lane", "Actions without an answer."},
      {"fairlead_writes_answered_total", kC, "lane", "Actions that were answered."},
      {"fairlead_writes_failed_total", kC, "lane", "Actions that were answered with an error."},
      {"fairlead_writes_fenced_total", kC, "",
       "Actions refused because this process did not lead."},
      {"fairlead_writes_dropped_total", kC, "", "Actions dropped because too many waited."},
      {"fairlead_kube_events_dropped_total", kC, "",
       "Kubernetes events dropped because too many waited."},
      // The process.
      {"process_cpu_seconds_total", kC, "", "User and system time."},
      {"process_start_time_seconds", kG, "", "Unix time of the start."},
      {"process_resident_memory_bytes", kG, "", "Resident memory."},
      {"process_virtual_memory_bytes", kG, "", "Virtual memory."},
      {"process_open_fds", kG, "", "Open file descriptors."},
      {"process_max_fds", kG, "", "How many there may be."},
  };
  return *kAll;
}

std::vector<server::Metric> MetricsOf(const std::vector<ShardStats>& shards, const HostStats& host,
                                      absl::Time now) {
  Filler out;
  for (const ShardStats& shard : shards) {
    out.SetShard(shard.shard);
    AddApp(shard.app, out);
    AddOwner(shard.owner, now, out);
  }
  out.SetShard(std::nullopt);
  AddHost(host, out);
  return out.Take();
}

ProcessFacts ProcessFacts::Read() {
  ProcessFacts facts;
  // proc(5): field 2 may have spaces, so counting begins after its ')'.
  std::string stat;
  std::getline(std::ifstream("/proc/self/stat"), stat);
  const size_t name_end = stat.rfind(')');
  if (name_end != std::string::npos) {
    const std::vector<std::string> fields =
        absl::StrSplit(stat.substr(name_end + 1), ' ', absl::SkipEmpty());
    const auto field = [&fields](size_t number) {  // as proc(5) numbers them
      int64_t value = 0;
      if (number - 3 < fields.size()) (void)absl::SimpleAtoi(fields[number - 3], &value);
      return value;
    };
    const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    facts.cpu_seconds = static_cast<double>(field(14) + field(15)) / ticks;
    facts.virtual_bytes = field(23);
    facts.resident_bytes = field(24) * sysconf(_SC_PAGESIZE);
    double booted = 0;
    std::ifstream kernel("/proc/stat");
    for (std::string line; std::getline(kernel, line);) {
      if (line.rfind("btime ", 0) == 0) (void)absl::SimpleAtod(line.substr(6), &booted);
    }
    facts.start_time_seconds = booted + static_cast<double>(field(22)) / ticks;
  }
  if (DIR* folder = opendir("/proc/self/fd"); folder != nullptr) {
    while (const dirent* entry = readdir(folder)) {
      if (entry->d_name[0] != '.') ++facts.open_fds;
    }
    closedir(folder);
    --facts.open_fds;  // that of the folder itself
  }
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) facts.max_fds = static_cast<int64_t>(limit.rlim_cur);
  return facts;
}

}  // namespace fairlead::cmd
