// Reclaim against a real kube-apiserver: a full cluster of 8,000 GPUs, 1,000 of them requested by a
// queue with the quota for them. The shape is that of KAI's measurement (measured facts, section 1,
// c).
#include <future>

#include "absl/strings/str_cat.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/live_loop.h"

namespace fairlead::bench {
namespace {

using model::testing::MakeQueue;

constexpr int64_t kReclaimNodes = 1000;
constexpr int64_t kReclaimRunning = 8 * kReclaimNodes;
constexpr int64_t kReclaimAsked = 1000;
constexpr int kAskers = 16;  // as the load generator in KAI's measurement

void FillCluster(ApiClient& api, bool groups) {
  CreateNodes(api, kReclaimNodes);
  std::vector<kube::EncodedWrite> create, mark;
  for (int64_t p = 0; p < kReclaimRunning; ++p) {
    const std::string name = Numbered("run", p);
    AddPod(create, {name, "rich", 1, Numbered("node", p / 8)}, groups);
    mark.push_back(MarkRunning(name));
  }
  SendOrEnd(api, create, "the running pods were not created");
  SendOrEnd(api, mark, "the running pods were not marked");
}

void EndToEndReclaimWith(Run& run, bool groups) {
  const std::string name = NameOf("e2e_reclaim_1000", groups);
  std::vector<double> first_s, answered_s, bound_s, decisions_s, decisions_cpu_s, cycles, cpu;
  for (int i = 0; i < std::min(run.repetitions, 3); ++i) {
    const std::unique_ptr<ControlPlane> plane = StartOrSkip(run, name, groups ? run.crds : "");
    if (plane == nullptr) return;
    ApiClient api(plane->config(), 2);
    FillCluster(api, groups);
    LiveLoop live(*plane, LoopCluster::QuietOptions(),
                  {MakeQueue("rich", "", kReclaimRunning - kReclaimAsked, model::kUnlimited),
                   MakeQueue("poor", "", kReclaimAsked, model::kUnlimited)});
    live.Read();
    live.Decide();
    plane->WaitUntilIdle();
    const LiveLoop::Decisions before = live.decisions();
    const uint64_t cycles_before = live.cycles();

    std::vector<kube::EncodedWrite> ask;
    for (int64_t p = 0; p < kReclaimAsked; ++p) AddPod(ask, {Numbered("ask", p), "poor"}, groups);
    const Stopwatch watch;
    std::future<void> asking = std::async(
        std::launch::async, [&] { SendOrEnd(api, ask, "the pods were not created", kAskers); });
    double first = 0, answered = 0, all = 0;
    // The answer to the last eviction may come after the binding that needed its capacity.
    while ((live.bound() < kReclaimAsked || live.evicted() < kReclaimAsked) &&
           watch.Seconds() < 60) {
      live.Wait();
      // Answers count when they are read, before the decision that follows.
      if (first == 0 && live.saw_pod_go()) first = watch.Seconds();
      if (answered == 0 && live.evicted() > 0) answered = watch.Seconds();
      if (all == 0 && live.bound() == kReclaimAsked) all = watch.Seconds();
      live.Decide();
    }
    asking.get();
    Require(live.bound() == kReclaimAsked, "not all pods were bound within 60 s");
    Require(live.evicted() == kReclaimAsked,
            absl::StrCat(live.evicted(), " evicted for ", kReclaimAsked, " GPUs"));
    first_s.push_back(first);
    answered_s.push_back(answered);
    bound_s.push_back(all);
    decisions_s.push_back(live.decisions().seconds - before.seconds);
    decisions_cpu_s.push_back(live.decisions().cpu_seconds - before.cpu_seconds);
    cycles.push_back(static_cast<double>(live.cycles() - cycles_before));
    cpu.push_back(watch.CpuSeconds());
  }
  run.report.Add({absl::StrCat(name, "/first_eviction"), "s", Better::kLower, first_s, 0.2,
                  Rival{"KAI", 3.3}, std::nullopt,
                  "from the first POST of 1,000 pods until a watch shows that a victim goes"});
  run.report.Add({absl::StrCat(name, "/first_answer"), "s", Better::kLower, answered_s,
                  std::nullopt, std::nullopt, std::nullopt, "until its eviction is answered"});
  run.report.Add({absl::StrCat(name, "/all_bound"), "s", Better::kLower, bound_s, 6,
                  Rival{"KAI", 59.7}, Median(cpu), "8,000 running on 1,000 nodes"});
  run.report.Add({absl::StrCat(name, "/decisions"), "s", Better::kLower, decisions_s, 1,
                  std::nullopt, std::nullopt, "all decisions together, actions handed over"});
  run.report.Add({absl::StrCat(name, "/decisions_cpu"), "s", Better::kLower, decisions_cpu_s, 1,
                  std::nullopt, std::nullopt,
                  absl::StrCat("CPU time of the deciding thread: ", Median(cycles), " cycles")});
}

}  // namespace

void EndToEndReclaim(Run& run) {
  for (const bool groups : {false, true}) EndToEndReclaimWith(run, groups);
}

}  // namespace fairlead::bench
