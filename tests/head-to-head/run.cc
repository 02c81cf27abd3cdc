#include "tests/head-to-head/run.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "document/json.h"

namespace fairlead::head_to_head {
namespace {

constexpr char kPods[] = "/api/v1/namespaces/default/pods";
constexpr char kNodes[] = "/api/v1/nodes";
constexpr char kGroups[] = "/apis/scheduling.run.ai/v2alpha2/namespaces/default/podgroups";
constexpr char kQueues[] = "/apis/scheduling.run.ai/v2/queues";
// Until nodes that nothing needs are gone: they stay for a while, and ending one takes some
// seconds.
constexpr absl::Duration kGivenBack = absl::Seconds(kEmptySeconds + 30);

std::string QueueText(const Queue& queue) {
  return absl::StrCat(
      R"({"apiVersion":"scheduling.run.ai/v2","kind":"Queue","metadata":{"name":")", queue.name,
      R"("},"spec":{)",
      queue.parent.empty() ? "" : absl::StrCat(R"("parentQueue":")", queue.parent, R"(",)"),
      R"("resources":{"gpu":{"quota":)", queue.gpu_quota, R"(,"limit":)", queue.gpu_limit,
      R"(},"cpu":{"quota":-1,"limit":-1},"memory":{"quota":-1,"limit":-1}}}})");
}

std::string GroupText(const Job& job) {
  return absl::StrCat(
      R"({"apiVersion":"scheduling.run.ai/v2alpha2","kind":"PodGroup","metadata":{"name":")",
      job.name, R"("},"spec":{"minMember":)", job.gang, R"(,"queue":")", job.queue, R"("}})");
}

std::string PodText(const Job& job, const std::string& name, const std::string& scheduler) {
  const std::string gpu = job.gpus > 0 ? absl::StrCat(R"("nvidia.com/gpu":")", job.gpus, "\"") : "";
  return absl::StrCat(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
      R"(","labels":{"kai.scheduler/queue":")", job.queue, "\"",
      job.preemptible ? "" : R"(,"kai.scheduler/preemptibility":"non-preemptible")",
      R"(},"annotations":{"fairlead.dev/run-seconds":")", job.run_seconds, "\"",
      job.gang > 0 ? absl::StrCat(R"(,"pod-group-name":")", job.name, "\"") : "",
      R"(}},"spec":{"schedulerName":")", scheduler,
      R"(","restartPolicy":"Never","terminationGracePeriodSeconds":0,"containers":[{"name":"c",
        "image":"none","resources":{"requests":{"cpu":")",
      job.cpu, R"(","memory":")", job.memory_gib, "Gi\"", gpu.empty() ? "" : ",", gpu,
      R"(},"limits":{)", gpu, R"(}}}]}})");
}

double UsdPerHour(const std::string& type) {
  for (const integration::SoldType& sold : SoldTypes()) {
    if (type == sold.name) return sold.milli_usd_per_hour / 1000.0;
  }
  return 0;
}

// The run of one scenario on one side: what was submitted, and what the looks have shown.
class Run {
 public:
  Run(Side& side, const Scenario& scenario)
      : side_(side),
        scenario_(scenario),
        begin_(absl::Now()),
        submitted_(scenario.jobs.size(), absl::InfinitePast()) {
    for (const Queue& queue : scenario.queues) side.api().Create(kQueues, QueueText(queue));
  }

  void SubmitDue() {
    if (scenario_.out_of_stock_seconds > 0 && !restocked_ &&
        absl::Now() >= begin_ + absl::Seconds(scenario_.out_of_stock_seconds)) {
      side_.SetOutOfStock({});
      restocked_ = true;
    }
    for (size_t i = 0; i < scenario_.jobs.size(); ++i) {
      const Job& job = scenario_.jobs[i];
      if (submitted_[i] != absl::InfinitePast() ||
          absl::Now() < begin_ + absl::Seconds(job.after_seconds)) {
        continue;
      }
      submitted_[i] = absl::Now();
      if (job.gang > 0) side_.api().Create(kGroups, GroupText(job));
      for (int k = 0; k < job.pods; ++k) {
        members_.push_back({.job = i, .pod = absl::StrCat(job.name, "-", k)});
        CreatePod(members_.back());
      }
    }
  }

  void Look() {
    LookAtPods();
    LookAtNodes();
  }
  [[nodiscard]] bool AllEnded() const {
    return scenario_.may_run > 0 && ended_ >= scenario_.may_run;
  }
  [[nodiscard]] bool NodesGone() const { return there_ == 0; }
  [[nodiscard]] absl::Time begin() const { return begin_; }

  [[nodiscard]] Figures Count() const {
    Figures figures;
    figures.nodes = static_cast<int>(nodes_.size());
    for (const auto& [name, node] : nodes_) {
      figures.nodes_without_pod += used_.contains(name) ? 0 : 1;
      ++figures.types[node.type];
      figures.usd += UsdPerHour(node.type) * absl::ToDoubleHours(node.last - node.first);
    }
    figures.ran = ran_;
    figures.ended = ended_;
    if (figures.ran >= scenario_.may_run) figures.all_ran = last_ran_ - begin_;
    if (AllEnded()) figures.all_ended = last_ended_ - begin_;
    figures.evictions = evictions_;
    figures.nodes_left = there_;
    figures.cpu_seconds = side_.CpuSeconds();
    for (const Member& member : members_) {
      if (!member.ended) figures.not_ended.push_back(member.seen);
    }
    for (size_t job = 0; job < scenario_.jobs.size(); ++job) figures.waits.push_back(WaitOf(job));
    return figures;
  }

 private:
  struct Node {
    std::string type;
    absl::Time first, last;
  };
  // What a pod is submitted for; an evicted pod is followed by another one.
  struct Member {
    size_t job = 0;
    std::string pod;
    int evictions = 0;
    bool ended = false;
    absl::Duration wait = absl::InfiniteDuration();  // from the job's submission until it first ran
    std::string seen = {};                           // what the last look showed
  };

  void CreatePod(const Member& member) {
    side_.api().Create(kPods,
                       PodText(scenario_.jobs[member.job], member.pod, side_.scheduler_name()));
  }
  void LookAtPods() {
    std::map<std::string, Json> there;
    for (Json& pod : side_.api().List(kPods)) {
      const std::string node = pod.TextAt({"spec", "nodeName"});
      if (!node.empty()) used_.insert(node);
      there.emplace(pod.TextAt({"metadata", "name"}), std::move(pod));
    }
    for (Member& member : members_) {
      if (member.ended) continue;
      if (const auto pod = there.find(member.pod); pod != there.end()) {
        LookAt(pod->second, member);
      } else {
        Replace(member);
      }
    }
  }
  void LookAt(const Json& pod, Member& member) {
    const absl::Time now = absl::Now();
    const std::string phase = pod.TextAt({"status", "phase"});
    member.seen =
        absl::StrCat(member.pod, " ", phase, " on \"", pod.TextAt({"spec", "nodeName"}),
                     "\": ", pod.TextAt({"metadata", "annotations", "fairlead.dev/verdict"}));
    const bool has_run = member.wait != absl::InfiniteDuration();
    if (!has_run && (phase == "Running" || phase == "Succeeded")) {
      member.wait = now - submitted_[member.job];
      last_ran_ = now;
      ++ran_;
    }
    if (phase != "Succeeded") return;
    member.ended = true;
    last_ended_ = now;
    ++ended_;
  }
  // As a Job controller would, so that no side gets rid of work by evicting it. The name is new,
  // because kwok's last write to the former pod goes to any pod of that name.
  void Replace(Member& member) {
    ++evictions_;
    const std::string base = member.pod.substr(0, member.pod.find("-again"));
    member.pod = absl::StrCat(base, "-again-", ++member.evictions);
    CreatePod(member);
  }
  void LookAtNodes() {
    const absl::Time now = absl::Now();
    there_ = 0;
    for (const Json& node : side_.api().List(kNodes)) {
      ++there_;
      auto [known, added] = nodes_.try_emplace(node.TextAt({"metadata", "name"}));
      if (added) {
        known->second.type =
            node.TextAt({"metadata", "labels", "node.kubernetes.io/instance-type"});
        known->second.first = now;
      }
      known->second.last = now;
    }
  }
  [[nodiscard]] absl::Duration WaitOf(size_t job) const {
    absl::Duration sum, longest;
    for (const Member& member : members_) {
      if (member.job != job) continue;
      sum += member.wait;
      longest = std::max(longest, member.wait);
    }
    return scenario_.jobs[job].gang > 0 ? longest : sum / scenario_.jobs[job].pods;
  }

  Side& side_;
  const Scenario& scenario_;
  const absl::Time begin_;
  bool restocked_ = false;
  std::vector<absl::Time> submitted_;  // by job
  std::vector<Member> members_;
  std::map<std::string, Node> nodes_;
  std::set<std::string> used_;
  absl::Time last_ran_, last_ended_;
  int ran_ = 0, ended_ = 0, evictions_ = 0, there_ = 0;
};

}  // namespace

Figures RunScenario(Side& side, const Scenario& scenario) {
  Run run(side, scenario);
  const absl::Time deadline = run.begin() + absl::Seconds(scenario.patience_seconds);
  while (absl::Now() < deadline && !run.AllEnded()) {
    run.SubmitDue();
    run.Look();
    absl::SleepFor(kLook);
  }
  const absl::Time end = absl::Now() + (scenario.may_run > 0 ? kGivenBack : absl::ZeroDuration());
  while (absl::Now() < end && !run.NodesGone()) {
    run.Look();
    absl::SleepFor(kLook);
  }
  return run.Count();
}

}  // namespace fairlead::head_to_head
