// The share of a real kube-apiserver's speed that reaches the pods.
//
// The ceiling is a bare binder that knows pods and nodes and only sends bindings, over the same
// transport. The server's speed drifts during a run (its heap grows and is collected, etcd
// compacts). So runs are made in pairs, one of ours beside one of the bare binder, and a share is
// that of a pair. Both sides have read the cluster before the clock starts, and the server is idle
// then and has collected its garbage.
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/live_loop.h"

namespace fairlead::bench {
namespace {

using model::testing::MakeQueue;

constexpr int64_t kBindNodes = 1000;
constexpr int64_t kBindPods = 5000;
constexpr int kBindTeams = 10;

std::vector<model::Queue> Queues() {
  std::vector<model::Queue> queues = {
      MakeQueue("department", "", model::kUnlimited, model::kUnlimited)};
  for (int q = 0; q < kBindTeams; ++q) {
    queues.push_back(MakeQueue(absl::StrCat("team-", q), "department", 1000, model::kUnlimited));
  }
  return queues;
}

std::string TeamOf(int64_t pod) { return absl::StrCat("team-", pod % kBindTeams); }

// They outlive the pods of a round.
void CreateGroups(ApiClient& api) {
  std::vector<kube::EncodedWrite> create;
  for (int64_t p = 0; p < kBindPods; ++p) {
    create.push_back(CreatePodGroup(Numbered("group", p), TeamOf(p)));
  }
  SendOrEnd(api, create, "PodGroups were not created");
}

void CreatePods(ApiClient& api, bool groups) {
  std::vector<kube::EncodedWrite> create;
  for (int64_t p = 0; p < kBindPods; ++p) {
    PodToCreate pod{Numbered("pod", p), TeamOf(p)};
    if (groups) pod.group = Numbered("group", p);
    create.push_back(CreatePod(pod));
  }
  SendOrEnd(api, create, "pods were not created");
}

void DeletePods(ApiClient& api) {
  std::vector<kube::EncodedWrite> remove;
  for (int64_t p = 0; p < kBindPods; ++p) {
    remove.push_back(
        {"DELETE", absl::StrCat("/api/v1/namespaces/", kNamespace, "/pods/", Numbered("pod", p)),
         kube::kJson, R"({"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":0})"});
  }
  SendOrEnd(api, remove, "pods were not deleted");
}

struct Round {
  double binds_per_second = 0, cpu_seconds = 0, server_cpu_seconds = 0;
  double writes_per_pod = 0, own_writes_per_pod = 0;
  double window = 0, decreases = 0;  // of the executor, at the end
};

void ComeToRest(const ControlPlane& plane, ApiClient& api) {
  plane.WaitUntilIdle();
  api.CollectServerGarbage();
}

// Binds the existing pods to known nodes, as fast as possible.
Round BareBinder(const ControlPlane& plane, int window, int connections) {
  ApiClient api(plane.config(), connections);
  std::vector<kube::EncodedWrite> binds;
  for (const kube::Object& object : api.List(model::Kind::kPod)) {
    const model::ObjectMeta& meta = kube::MetaOf(object);
    const auto number = static_cast<int64_t>(binds.size());
    binds.push_back(kube::EncodeBind(
        {meta.ns, meta.name, meta.uid, Numbered("node", number % kBindNodes), {}}));
  }
  ComeToRest(plane, api);
  const double server_before = plane.CpuSeconds();
  const Stopwatch watch;
  const int64_t bound = api.SendAll(binds, window);
  Round round;
  round.binds_per_second = static_cast<double>(bound) / watch.Seconds();
  round.cpu_seconds = watch.CpuSeconds();
  round.server_cpu_seconds = plane.CpuSeconds() - server_before;
  Require(bound == kBindPods, "the bare binder did not bind all pods");
  return round;
}

Round Fairlead(const ControlPlane& plane, bool events) {
  core::Options options = LoopCluster::QuietOptions();
  options.emit_events = events;
  LiveLoop live(plane, options, Queues());
  live.Read();
  const double before = live.api().WritesSoFar();
  ComeToRest(plane, live.api());
  const double server_before = plane.CpuSeconds();
  const Stopwatch watch;
  while (live.bound() + live.refused() < kBindPods) {
    live.Decide();
    live.Wait();
  }
  Round round;
  round.binds_per_second = static_cast<double>(live.bound()) / watch.Seconds();
  round.cpu_seconds = watch.CpuSeconds();
  round.server_cpu_seconds = plane.CpuSeconds() - server_before;
  Require(live.bound() == kBindPods, "a binding was refused");
  const kube::ExecutorStats stats = live.executor().GetStats();
  round.window = stats.window;
  round.decreases = static_cast<double>(stats.window_decreases);
  // Asynchronous work counts too.
  live.executor().Drain(absl::Seconds(20));
  for (const auto& [verb, count] : live.executor().GetStats().requests_by_verb) {
    if (verb != "GET") round.own_writes_per_pod += static_cast<double>(count) / kBindPods;
  }
  round.writes_per_pod = (live.api().WritesSoFar() - before) / kBindPods;
  return round;
}

std::vector<double> Each(const std::vector<Round>& rounds, double Round::* field,
                         double factor = 1) {
  std::vector<double> values;
  for (const Round& round : rounds) values.push_back(factor * round.*field);
  return values;
}

std::vector<double> SharesOfPairs(const std::vector<Round>& ours, const std::vector<Round>& bare) {
  std::vector<double> shares;
  for (size_t i = 0; i < ours.size(); ++i) {
    shares.push_back(100 * ours[i].binds_per_second / bare[i].binds_per_second);
  }
  return shares;
}

// The order within a pair is the Thue-Morse sequence. In strict alternation a collection of the
// server's garbage that comes every second run meets the same side each time.
bool BareFirst(int pair) { return std::popcount(static_cast<unsigned>(pair)) % 2 == 0; }

void ReportRounds(Run& run, const std::string& name, const std::vector<Round>& rounds,
                  std::optional<Rival> rate_of, std::optional<Rival> cpu_of) {
  constexpr double kPerThousand = 1000.0 / kBindPods;
  run.report.Add({name, "binds/s", Better::kHigher, Each(rounds, &Round::binds_per_second),
                  std::nullopt, std::move(rate_of), Median(Each(rounds, &Round::cpu_seconds)),
                  "5,000 pods, 1,000 nodes"});
  run.report.Add({name + "/cpu_per_1000_pods", "CPU s", Better::kLower,
                  Each(rounds, &Round::cpu_seconds, kPerThousand), std::nullopt, std::move(cpu_of),
                  std::nullopt, ""});
  run.report.Add({name + "/server_cpu_per_1000_pods", "CPU s", Better::kLower,
                  Each(rounds, &Round::server_cpu_seconds, kPerThousand), std::nullopt,
                  std::nullopt, std::nullopt, "etcd and API server"});
}

// The first pair warms up the server and is not counted.
void InPairs(Run& run, ControlPlane& plane, bool events, bool groups) {
  ApiClient api(plane.config(), 2);
  std::vector<Round> bare, ours;
  const auto one_round = [&](bool is_bare, bool counts) {
    CreatePods(api, groups);
    const Round round = is_bare ? BareBinder(plane, 128, 2) : Fairlead(plane, events);
    if (counts) (is_bare ? bare : ours).push_back(round);
    DeletePods(api);
  };
  // Only the share without events has a goal.
  const int pairs = events ? run.repetitions : 2 * run.repetitions;
  for (int pair = 0; pair <= pairs; ++pair) {
    const bool bare_first = BareFirst(pair);
    one_round(bare_first, pair > 0);
    one_round(!bare_first, pair > 0);
  }
  const std::string base = NameOf("bind_rate", groups);
  const std::string name = base + (events ? "/fairlead_events" : "/fairlead");
  // kube-scheduler on the same pods, pods made first (measured facts, section 1 row a-ks-pre).
  ReportRounds(run, base + (events ? "/bare_events" : "/bare"), bare, std::nullopt, std::nullopt);
  ReportRounds(run, name, ours, Rival{"kube-scheduler", 273}, Rival{"kube-scheduler", 3.34});
  run.report.Add({name + "/share_of_ceiling", "%", Better::kHigher, SharesOfPairs(ours, bare),
                  events ? std::nullopt : std::optional<double>(85), Rival{"kube-scheduler", 17},
                  std::nullopt,
                  absl::StrCat(events ? "with events" : "without events", "; window at the end ",
                               Median(Each(ours, &Round::window)), ", decreased ",
                               Median(Each(ours, &Round::decreases)), " times")});
  run.report.Add({name + "/writes_per_pod", "writes", Better::kLower,
                  Each(ours, &Round::writes_per_pod),
                  events ? std::nullopt : std::optional<double>(1.0), Rival{"KAI", 7}, std::nullopt,
                  absl::StrCat("apiserver_request_total; the executor itself counts ",
                               Median(Each(ours, &Round::own_writes_per_pod)))});
}

}  // namespace

void BindRate(Run& run) {
  for (const bool groups : {false, true}) {
    const std::string name = NameOf("bind_rate", groups);
    if (groups && run.crds.empty()) return run.report.Skip(name, "no CRDs (--crds)");
    for (const bool events : {false, true}) {
      const std::unique_ptr<ControlPlane> plane = StartOrSkip(run, name, groups ? run.crds : "");
      if (plane == nullptr) return;
      ApiClient api(plane->config(), 2);
      CreateNodes(api, kBindNodes);
      if (groups) CreateGroups(api);
      InPairs(run, *plane, events, groups);
    }
  }
}

}  // namespace fairlead::bench
