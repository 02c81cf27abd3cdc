#include "tests/head-to-head/run.h"

#include <set>

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
      R"("resources":{"gpu":{"quota":-1,"limit":)", queue.gpu_limit,
      R"(},"cpu":{"quota":-1,"limit":-1},"memory":{"quota":-1,"limit":-1}}}})");
}

std::string GroupText(const Job& job) {
  return absl::StrCat(
      R"({"apiVersion":"scheduling.run.ai/v2alpha2","kind":"PodGroup","metadata":{"name":")",
      job.name, R"("},"spec":{"minMember":)", job.gang, R"(,"queue":")", job.queue, R"("}})");
}

std::string PodText(const Job& job, int index, const std::string& scheduler) {
  const std::string gpu = job.gpus > 0 ? absl::StrCat(R"("nvidia.com/gpu":")", job.gpus, "\"") : "";
  return absl::StrCat(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", job.name, "-", index,
      R"(","labels":{"kai.scheduler/queue":")", job.queue,
      R"("},"annotations":{"fairlead.dev/run-seconds":")", job.run_seconds, "\"",
      job.gang > 0 ? absl::StrCat(R"(,"pod-group-name":")", job.name, "\"") : "",
      R"(}},"spec":{"schedulerName":")", scheduler,
      R"(","restartPolicy":"Never","terminationGracePeriodSeconds":0,"containers":[{"name":"c",
        "image":"none","resources":{"requests":{"cpu":")",
      job.cpu, R"(","memory":")", job.memory_gib, "Gi\"", gpu.empty() ? "" : ",", gpu,
      R"(},"limits":{)", gpu, R"(}}}]}})");
}

void Submit(Side& side, const Scenario& scenario) {
  for (const Queue& queue : scenario.queues) side.api().Create(kQueues, QueueText(queue));
  for (const Job& job : scenario.jobs) {
    if (job.gang > 0) side.api().Create(kGroups, GroupText(job));
  }
  for (const Job& job : scenario.jobs) {
    for (int i = 0; i < job.pods; ++i) {
      side.api().Create(kPods, PodText(job, i, side.scheduler_name()));
    }
  }
}

double UsdPerHour(const std::string& type) {
  for (const integration::SoldType& sold : SoldTypes()) {
    if (type == sold.name) return sold.milli_usd_per_hour / 1000.0;
  }
  return 0;
}

class Looks {
 public:
  Looks(Side& side, const Scenario& scenario) : side_(side), scenario_(scenario) {}

  void Look() {
    const absl::Time now = absl::Now();
    open_ = 0;
    for (const Json& pod : side_.api().List(kPods)) {
      const std::string phase = pod.TextAt({"status", "phase"});
      const std::string node = pod.TextAt({"spec", "nodeName"});
      if (!node.empty()) used_.insert(node);
      if (phase == "Running" || phase == "Succeeded") {
        if (ran_.insert(pod.TextAt({"metadata", "name"})).second) last_ran_ = now;
      }
      open_ += phase == "Succeeded" ? 0 : 1;
    }
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
  [[nodiscard]] bool AllRan() const { return static_cast<int>(ran_.size()) >= scenario_.may_run; }
  [[nodiscard]] bool AllEnded() const { return AllRan() && scenario_.may_run > 0 && open_ == 0; }
  [[nodiscard]] int there() const { return there_; }

  [[nodiscard]] Figures Count(absl::Time begin) const {
    Figures figures;
    figures.nodes = static_cast<int>(nodes_.size());
    for (const auto& [name, node] : nodes_) {
      figures.nodes_without_pod += used_.contains(name) ? 0 : 1;
      ++figures.types[node.type];
      figures.usd += UsdPerHour(node.type) * absl::ToDoubleHours(node.last - node.first);
    }
    figures.ran = static_cast<int>(ran_.size());
    figures.all_ran = AllRan() ? last_ran_ - begin : absl::InfiniteDuration();
    figures.nodes_left = there_;
    figures.cpu_seconds = side_.CpuSeconds();
    return figures;
  }

 private:
  struct Node {
    std::string type;
    absl::Time first, last;
  };
  Side& side_;
  const Scenario& scenario_;
  std::map<std::string, Node> nodes_;
  std::set<std::string> used_, ran_;
  absl::Time last_ran_;
  int open_ = 0, there_ = 0;
};

}  // namespace

Figures RunScenario(Side& side, const Scenario& scenario) {
  const absl::Time begin = absl::Now();
  Submit(side, scenario);
  Looks looks(side, scenario);
  const absl::Time deadline = begin + absl::Seconds(scenario.patience_seconds);
  while (absl::Now() < deadline && !looks.AllEnded()) {
    looks.Look();
    absl::SleepFor(kLook);
  }
  const absl::Time end = absl::Now() + (scenario.may_run > 0 ? kGivenBack : absl::ZeroDuration());
  while (absl::Now() < end && looks.there() > 0) {
    looks.Look();
    absl::SleepFor(kLook);
  }
  return looks.Count(begin);
}

}  // namespace fairlead::head_to_head
