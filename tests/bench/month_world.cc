#include "tests/bench/month_world.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/bill.h"
#include "core/decision_loop.h"
#include "scheduler/model/api_names.h"
#include "scheduler/verdict/verdict.h"
#include "sim/cluster.h"
#include "tests/bench/month_bound.h"

namespace fairlead::bench {
namespace {

using replay::PhillyJob;
using replay::PhillyTrace;

constexpr absl::Duration kAfterwards = absl::Hours(24 * 90);
constexpr absl::Duration kLook = absl::Hours(1);  // is it over?

std::string QueueName(size_t cluster) { return absl::StrCat("vc-", cluster); }

std::vector<int64_t> LimitsOf(const PhillyTrace& trace) {
  const int64_t length_s = std::max<int64_t>(1, trace.jobs.back().submit_s);
  std::vector<int64_t> gpu_s(trace.clusters.size()), largest(trace.clusters.size());
  for (const PhillyJob& job : trace.jobs) {
    gpu_s[job.cluster] += job.gpus * job.duration_s;
    largest[job.cluster] = std::max(largest[job.cluster], job.gpus);
  }
  std::vector<int64_t> limits;
  for (size_t i = 0; i < gpu_s.size(); ++i) {
    const int64_t nodes = gpu_s[i] * 5 / 4 / length_s / replay::kGpusPerNode + 1;
    const int64_t needed = (largest[i] + replay::kGpusPerNode - 1) / replay::kGpusPerNode;
    limits.push_back(std::max(nodes, needed) * replay::kGpusPerNode);
  }
  return limits;
}

model::Queue QueueOf(size_t cluster, int64_t gpus) {
  model::Queue queue;
  queue.meta.name = QueueName(cluster);
  queue.cpu = queue.memory = {model::kUnlimited, model::kUnlimited, 1'000'000};
  queue.gpu = {gpus * 1000, gpus * 1000, 1'000'000};
  return queue;
}

model::Pod PodOf(const PhillyJob& job, const std::string& name, int64_t gpus,
                 const std::string& gpu_model) {
  model::Pod pod;
  pod.meta.ns = pod.spec.ns = "ns";
  pod.meta.name = name;
  pod.meta.labels.Set(model::kQueueLabel, QueueName(job.cluster));
  pod.meta.annotations.Set(sim::kRunSecondsAnnotation, absl::StrCat(job.duration_s));
  pod.scheduler_name = model::kDefaultSchedulerName;
  pod.spec.requests = {{model::kCpuName, 2000 * gpus}, {model::kMemoryName, gpus << 33}};
  model::Set(pod.spec.requests, model::kGpuName, 1000 * gpus);
  if (!gpu_model.empty()) pod.spec.node_selector.Set(model::kGpuProductLabel, gpu_model);
  return pod;
}

sim::Manifest ManifestOf(const PhillyJob& job, size_t number, const std::string& gpu_model) {
  sim::Manifest manifest;
  const std::vector<int64_t> pods = replay::PodsOf(job);
  const std::string name = absl::StrCat("job-", number);
  if (pods.size() > 1) {
    model::PodGroup group;
    group.meta.ns = "ns";
    group.meta.name = name;
    group.queue = QueueName(job.cluster);
    group.min_member = static_cast<int32_t>(pods.size());
    manifest.objects.emplace_back(group);
  }
  for (size_t i = 0; i < pods.size(); ++i) {
    model::Pod pod = PodOf(job, absl::StrCat(name, "-", i), pods[i], gpu_model);
    if (pods.size() > 1) pod.meta.annotations.Set(model::kPodGroupAnnotation, name);
    manifest.objects.emplace_back(std::move(pod));
  }
  return manifest;
}

// Counts what runs, as the API server tells it.
class Runs {
 public:
  Runs(const hook::Catalog& catalog, std::string gpu_model, absl::Duration boot)
      : catalog_(catalog), gpu_model_(std::move(gpu_model)), bound_(boot) {}

  // What the pod's node has of LeastRate() more or less from now on.
  int64_t OnChange(absl::Time now, sim::ChangeType type, const sim::Object& object) {
    const auto* pod = std::get_if<model::Pod>(&object);
    if (pod == nullptr) return 0;
    if (pod->phase == model::PodPhase::kSucceeded) finished_.insert(pod->meta.name);
    const bool runs = type != sim::ChangeType::kDeleted && pod->phase == model::PodPhase::kRunning;
    const auto known = rates_.find(pod->meta.name);
    if (runs == (known != rates_.end())) return 0;
    // Pods that fit no type never run.
    const int64_t change =
        runs ? LeastRate(catalog_, gpu_model_, pod->spec.requests).value_or(0) : -known->second;
    bound_.Add(now, change);
    if (runs) {
      rates_.emplace(pod->meta.name, change);
    } else {
      rates_.erase(known);
    }
    return change;
  }
  [[nodiscard]] const MonthBound& bound() const { return bound_; }
  [[nodiscard]] int64_t finished() const { return static_cast<int64_t>(finished_.size()); }

 private:
  const hook::Catalog& catalog_;
  const std::string gpu_model_;
  MonthBound bound_;
  std::map<std::string, int64_t> rates_;  // of the pods that run
  std::set<std::string> finished_;
};

// The nodes that were bought, from the request's creation to its end, as the API server tells it:
// longer than a provider bills.
class Purchases {
 public:
  explicit Purchases(const hook::Catalog& catalog) : catalog_(catalog) {}

  void OnDecided(const std::vector<const model::NodeRequest*>& requests,
                 const std::vector<core::WaitingRow>& waiting) {
    std::set<std::string> held;
    int64_t may_have_nodes = 0;  // pods
    for (const core::WaitingRow& row : waiting) {
      if (core::ForbidsNodes(row.verdict.code)) {
        held.insert(row.workload);
      } else {
        may_have_nodes += static_cast<int64_t>(row.pods.size());
      }
    }
    for (const model::NodeRequest* request : requests) {
      const std::vector<std::string>& needed_by = request->reason_workloads;
      if (std::any_of(needed_by.begin(), needed_by.end(),
                      [&](const auto& name) { return held.contains(name); })) {
        blocked_.insert(request->meta.name);
      }
      const int64_t gpus = GpusOf(*request);
      const auto on_their_way = std::count_if(nodes_.begin(), nodes_.end(), [&](const auto& node) {
        return node.second.IsComing() && node.second.gpus >= gpus;
      });
      twice_ += on_their_way >= may_have_nodes;
      nodes_.try_emplace(request->meta.name, Node{.gpus = gpus});
    }
  }

  // `rate`: what Runs::OnChange() said.
  void OnChange(absl::Time now, sim::ChangeType type, const sim::Object& object, int64_t rate) {
    if (const auto* pod = std::get_if<model::Pod>(&object)) {
      const auto node = nodes_.find(pod->node_name);
      if (node == nodes_.end()) return;
      Settle(node->second, now);
      node->second.rate += rate;
      node->second.used = true;
    } else if (const auto* object_of_node = std::get_if<model::Node>(&object)) {
      const auto node = nodes_.find(object_of_node->meta.name);
      if (node == nodes_.end()) return;
      Settle(node->second, now);
      node->second.ready |= object_of_node->ready;
    } else if (const auto* request = std::get_if<model::NodeRequest>(&object)) {
      if (type == sim::ChangeType::kAdded) {
        Node& node = nodes_[request->meta.name];
        node.since = now;
        node.price = request->price_micro_usd_per_hour;
        ++count_;
      } else if (type == sim::ChangeType::kDeleted) {
        End(request->meta.name, now);
      } else if (request->phase == model::NodeRequestPhase::kDraining ||
                 request->phase == model::NodeRequestPhase::kFailed) {
        const auto node = nodes_.find(request->meta.name);
        if (node != nodes_.end()) node->second.given_up = true;
      }
    }
  }

  void Tell(MonthResult& result) const {
    result.nodes = count_;
    result.nodes_bought_twice = twice_;
    result.nodes_unused = unused_;
    result.nodes_at_end = static_cast<int64_t>(nodes_.size());
    result.cost_micro_usd = MicroUsd(booting_ + empty_ + partly_empty_ + used_);
    result.booting_micro_usd = MicroUsd(booting_);
    result.empty_micro_usd = MicroUsd(empty_);
    result.partly_empty_micro_usd = MicroUsd(partly_empty_);
    result.policy_blocked_cost_micro_usd = MicroUsd(blocked_cost_);
  }

 private:
  struct Node {
    int64_t gpus = 0, price = 0;
    int64_t rate = 0;  // of the pods on it
    absl::Time since = absl::InfinitePast();
    MonthCost cost = 0;
    bool ready = false, used = false;
    bool given_up = false;  // it is being removed, or does not come
    [[nodiscard]] bool IsComing() const { return !ready && !used && !given_up; }
  };

  [[nodiscard]] int64_t GpusOf(const model::NodeRequest& request) const {
    const hook::InstanceType* type = catalog_.Find(request.instance_type);
    return type == nullptr ? 0 : type->gpu_count;
  }

  void Settle(Node& node, absl::Time now) {
    if (node.since == absl::InfinitePast()) return;  // decided, and not there yet
    const MonthCost all = CostOf(node.price, now - node.since);
    const MonthCost of_pods = CostOf(std::min(node.rate, node.price), now - node.since);
    node.since = now;
    node.cost += all;
    if (node.rate > 0) {
      used_ += of_pods;
      partly_empty_ += all - of_pods;
    } else {
      (node.ready ? empty_ : booting_) += all;
    }
  }

  void End(const std::string& name, absl::Time now) {
    const auto found = nodes_.find(name);
    if (found == nodes_.end()) return;
    Settle(found->second, now);
    if (blocked_.contains(name)) blocked_cost_ += found->second.cost;
    unused_ += !found->second.used;
    nodes_.erase(found);
  }

  const hook::Catalog& catalog_;
  std::map<std::string, Node> nodes_;  // decided, and not deleted yet; by request
  std::set<std::string> blocked_;
  MonthCost booting_ = 0, empty_ = 0, partly_empty_ = 0, used_ = 0, blocked_cost_ = 0;
  int64_t count_ = 0, twice_ = 0, unused_ = 0;
};

core::Options OptionsOfMonth() {
  core::Options options = core::KwokOptions();
  options.hook.provider = "kwok";
  options.emit_events = false;
  // No queue holds more than its quota, so these would move jobs to other nodes alone, where they
  // would begin again.
  options.engine.consolidation = options.engine.reclaim = false;
  return options;
}

// The cluster with its decision loop. As sim::Simulator, but that the view, which has a row for
// everything that waits, is made only where a node is bought.
class Month {
 public:
  Month(const PhillyTrace& trace, const hook::Catalog& catalog, std::string gpu_model)
      : trace_(trace),
        catalog_(catalog),
        gpu_model_(std::move(gpu_model)),
        options_(OptionsOfMonth()),
        cluster_({}, kStart),
        runs_(catalog, gpu_model_,
              sim::CloudOptions().boot_delay + sim::CloudOptions().ready_delay),
        purchases_(catalog) {
    cluster_.server().Listen([this](sim::ChangeType type, const sim::Object& object) {
      const absl::Time now = cluster_.queue().now();
      purchases_.OnChange(now, type, object, runs_.OnChange(now, type, object));
    });
  }

  absl::StatusOr<MonthResult> Play() {
    FAIRLEAD_ASSIGN_OR_RETURN(loop_, core::DecisionLoop::Make(options_, &catalog_));
    cluster_.Connect([this](const model::ClusterEvent& event) { loop_->Apply(event); });
    Begin();
    const absl::Time last_job = kStart + kLead + absl::Seconds(trace_.jobs.back().submit_s);
    const absl::Time end = last_job + kAfterwards;
    absl::Time look = last_job;
    while (now_ < end) {
      const absl::Time next = std::max(now_, std::min(cluster_.queue().next(), wake_at_));
      if (next > end) break;
      now_ = next;
      cluster_.queue().RunUntil(now_);
      FAIRLEAD_RETURN_IF_ERROR(problem_);
      Decide();
      if (now_ < look) continue;
      if (runs_.finished() == pods_ && cluster_.cloud().machines().empty()) break;
      look = now_ + kLook;
    }
    return Result();
  }

 private:
  static constexpr absl::Duration kLead = absl::Minutes(1);
  inline static const absl::Time kStart = absl::FromUnixSeconds(1'772'409'600);

  void Begin() {
    sim::Manifest queues;
    const std::vector<int64_t> limits = LimitsOf(trace_);
    for (size_t i = 0; i < limits.size(); ++i) queues.objects.emplace_back(QueueOf(i, limits[i]));
    problem_.Update(cluster_.Apply(queues));
    for (size_t i = 0; i < trace_.jobs.size(); ++i) {
      const PhillyJob& job = trace_.jobs[i];
      pods_ += static_cast<int64_t>(replay::PodsOf(job).size());
      cluster_.queue().At(kStart + kLead + absl::Seconds(job.submit_s), [this, &job, i] {
        problem_.Update(cluster_.Apply(ManifestOf(job, i, gpu_model_)));
      });
    }
  }

  void Decide() {
    core::StepResult result = loop_->Step(now_);
    wake_at_ = result.wake_at;
    ListNodes();
    std::vector<const model::NodeRequest*> bought;
    for (const model::Action& action : result.actions) {
      const auto* create = std::get_if<model::CreateNodeRequest>(&action.what);
      if (create != nullptr) bought.push_back(&*create->request);
      const auto* told = std::get_if<model::SetPodUnschedulable>(&action.what);
      if (told != nullptr && told->reason == verdict::CodeName(verdict::Code::kQueueLimitReached))
        held_.insert(told->name);
    }
    if (!bought.empty()) purchases_.OnDecided(bought, loop_->MakeView(now_).waiting);
    cluster_.executor().Execute(std::move(result.actions));
  }

  void ListNodes() {
    const uint64_t number = loop_->AwaitedNodeList();
    if (number <= last_list_) return;
    last_list_ = number;
    cluster_.executor().ListNodes(
        [this, number](absl::StatusOr<std::vector<hook::ListedNode>> nodes) {
          loop_->NodesListed(number, std::move(nodes));
        });
  }

  MonthResult Result() {
    MonthResult result;
    purchases_.Tell(result);
    result.bound_micro_usd = runs_.bound().Total(now_);
    result.bound_without_boot_micro_usd = runs_.bound().WithoutBoot(now_);
    result.jobs = static_cast<int64_t>(trace_.jobs.size());
    result.pods = pods_;
    result.finished_pods = runs_.finished();
    result.held_pods = static_cast<int64_t>(held_.size());
    result.cycles = loop_->stats().cycles;
    return result;
  }

  const PhillyTrace& trace_;
  const hook::Catalog& catalog_;
  const std::string gpu_model_;
  const core::Options options_;
  sim::Cluster cluster_;
  std::unique_ptr<core::DecisionLoop> loop_;
  Runs runs_;
  Purchases purchases_;
  absl::Status problem_;
  absl::Time now_ = kStart, wake_at_ = absl::InfinitePast();
  uint64_t last_list_ = 0;
  int64_t pods_ = 0;
  std::set<std::string> held_;  // pods
};

}  // namespace

absl::StatusOr<MonthResult> PlayMonth(const PhillyTrace& trace, const hook::Catalog& catalog,
                                      const std::string& gpu_model) {
  return Month(trace, catalog, gpu_model).Play();
}

}  // namespace fairlead::bench
