// Against a real kube-apiserver: how much of its speed reaches the pods, and how long an order
// takes.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "absl/container/flat_hash_set.h"
#include "kube/executor.h"
#include "kube/source.h"
#include "kube/url.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/cluster.h"
#include "tests/bench/control_plane.h"

namespace fairlead::bench {
namespace {

using model::testing::MakeQueue;

constexpr int64_t kNodes = 1000;
constexpr int64_t kPods = 5000;
constexpr int kTeams = 10;
constexpr int kPreparing = 64;  // requests in flight while objects are made and removed

kube::EncodedWrite CreatePod(int64_t number, int gpus) {
  return {"POST", absl::StrCat("/api/v1/namespaces/", kNamespace, "/pods"), kube::kJson,
          absl::StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")",
                       Numbered("pod", number), R"(","labels":{"kai.scheduler/queue":"team-)",
                       number % kTeams,
                       R"("}},"spec":{"schedulerName":"fairlead","containers":[{"name":"main",)"
                       R"("image":"none","resources":{"requests":{"cpu":"1","memory":"1Gi"},)"
                       R"("limits":{"nvidia.com/gpu":")",
                       gpus, R"("}}}]}})")};
}

kube::EncodedWrite CreateNamespace() {
  return {"POST", "/api/v1/namespaces", kube::kJson,
          absl::StrCat(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":")", kNamespace,
                       R"("}})")};
}

void CreateNodes(ApiClient& api) {
  std::vector<kube::EncodedWrite> create, status;
  for (int64_t n = 0; n < kNodes; ++n) {
    model::Node node = GpuNode(n);
    node.meta.uid.clear();
    create.push_back(kube::EncodeCreateNode(node));
    status.push_back(kube::EncodeNodeStatus(node));
  }
  Require(api.SendAll(create, kPreparing) == kNodes, "nodes were not created");
  Require(api.SendAll(status, kPreparing) == kNodes, "the nodes' status was not written");
}

void CreatePods(ApiClient& api) {
  std::vector<kube::EncodedWrite> create;
  for (int64_t p = 0; p < kPods; ++p) create.push_back(CreatePod(p, 1));
  Require(api.SendAll(create, kPreparing) == kPods, "pods were not created");
}

void DeletePods(ApiClient& api) {
  std::vector<kube::EncodedWrite> remove;
  for (int64_t p = 0; p < kPods; ++p) {
    remove.push_back(
        {"DELETE", absl::StrCat("/api/v1/namespaces/", kNamespace, "/pods/", Numbered("pod", p)),
         kube::kJson, R"({"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":0})"});
  }
  Require(api.SendAll(remove, kPreparing) == kPods, "pods were not deleted");
}

struct Round {
  double binds_per_second = 0, cpu_seconds = 0, writes_per_pod = 0, own_writes_per_pod = 0;
  double window = 0, decreases = 0;  // of the executor, at the end
};

// Binds what exists to known nodes, as fast as it goes.
Round BareBinder(const ControlPlane& plane, int window, int connections) {
  ApiClient api(plane.config(), connections);
  std::vector<kube::EncodedWrite> binds;
  for (const kube::Object& object : api.List(model::Kind::kPod)) {
    const model::ObjectMeta& meta = kube::MetaOf(object);
    const auto number = static_cast<int64_t>(binds.size());
    binds.push_back(
        kube::EncodeBind({meta.ns, meta.name, meta.uid, Numbered("node", number % kNodes), {}}));
  }
  const double before = api.WritesSoFar();
  const Stopwatch watch;
  const int64_t bound = api.SendAll(binds, window);
  Round round;
  round.binds_per_second = static_cast<double>(bound) / watch.Seconds();
  round.cpu_seconds = watch.CpuSeconds();
  Require(bound == kPods, "the bare binder did not bind all pods");
  round.writes_per_pod = (api.WritesSoFar() - before) / kPods;
  round.own_writes_per_pod = static_cast<double>(binds.size()) / kPods;
  return round;
}

// The program's own parts, put together as `fairlead run` does, on one transport.
class LiveLoop {
 public:
  LiveLoop(const ControlPlane& plane, const core::Options& options,
           const kube::WriteWindow::Options& window = {})
      : api_(plane.config(), 2) {
    auto loop = core::DecisionLoop::Make(options, &hook::Catalog::BuiltIn());
    Require(loop.ok(), loop.status().ToString());
    loop_ = *std::move(loop);
    source_ =
        std::make_unique<kube::ClusterSource>(api_.transport(), api_.transport(), clock_, queue_);
    kube::ExecutorOptions executor_options;
    executor_options.identity.host = "bench";
    executor_options.window = window;
    executor_ = std::make_unique<kube::Executor>(
        api_.transport(), api_.transport(), clock_, queue_, executor_options,
        // A cloud that takes every order at once.
        [this](const model::Action& action) {
          queue_.Push(model::ActionResult{action.id, absl::OkStatus()});
        });
    loop_->Apply(model::Upsert{MakeQueue("department", "", model::kUnlimited, model::kUnlimited)});
    for (int q = 0; q < kTeams; ++q) {
      loop_->Apply(model::Upsert{
          MakeQueue(absl::StrCat("team-", q), "department", 1000, model::kUnlimited)});
    }
  }
  ~LiveLoop() {
    executor_->Drain(absl::Seconds(20));
    source_->Stop();
    api_.transport().Shutdown();
  }

  // Reads everything that there is, without deciding.
  void Read() {
    source_->Start();
    while (!loop_->synced()) Drain(absl::Seconds(1));
  }
  void Decide() {
    core::StepResult result = loop_->Step(clock_.Now());
    wake_at_ = result.wake_at;
    for (model::Action& action : result.actions) {
      if (std::holds_alternative<model::BindPod>(action.what)) binds_.insert(action.id);
      executor_->Submit(std::move(action));
    }
  }
  void Wait() {
    Drain(std::clamp(wake_at_ - clock_.Now(), absl::ZeroDuration(), absl::Seconds(1)));
  }
  void Wake() { queue_.Wake(); }

  [[nodiscard]] int64_t bound() const { return bound_; }
  [[nodiscard]] int64_t refused() const { return refused_; }
  kube::Executor& executor() { return *executor_; }
  ApiClient& api() { return api_; }

 private:
  void Drain(absl::Duration wait) {
    events_.clear();
    queue_.DrainInto(events_, wait);
    for (const model::ClusterEvent& event : events_) {
      if (const auto* result = std::get_if<model::ActionResult>(&event)) {
        if (binds_.erase(result->action_id) > 0) ++(result->status.ok() ? bound_ : refused_);
      }
      loop_->Apply(event);
    }
  }

  RealClock clock_;
  kube::EventQueue queue_;
  ApiClient api_;
  std::unique_ptr<core::DecisionLoop> loop_;
  std::unique_ptr<kube::ClusterSource> source_;
  std::unique_ptr<kube::Executor> executor_;
  absl::Time wake_at_ = absl::InfiniteFuture();
  std::vector<model::ClusterEvent> events_;
  absl::flat_hash_set<uint64_t> binds_;
  int64_t bound_ = 0, refused_ = 0;
};

Round Fairlead(const ControlPlane& plane, bool events, const kube::WriteWindow::Options& window) {
  core::Options options = LoopCluster::QuietOptions();
  options.emit_events = events;
  LiveLoop live(plane, options, window);
  live.Read();
  const double before = live.api().WritesSoFar();
  const Stopwatch watch;
  while (live.bound() + live.refused() < kPods) {
    live.Decide();
    live.Wait();
  }
  Round round;
  round.binds_per_second = static_cast<double>(live.bound()) / watch.Seconds();
  round.cpu_seconds = watch.CpuSeconds();
  Require(live.bound() == kPods, "bind_rate: a binding was refused");
  const kube::ExecutorStats stats = live.executor().GetStats();
  round.window = stats.window;
  round.decreases = static_cast<double>(stats.window_decreases);
  // What is asynchronous belongs to the pods too.
  live.executor().Drain(absl::Seconds(20));
  for (const auto& [verb, count] : live.executor().GetStats().requests_by_verb) {
    if (verb != "GET") round.own_writes_per_pod += static_cast<double>(count) / kPods;
  }
  round.writes_per_pod = (live.api().WritesSoFar() - before) / kPods;
  return round;
}

std::unique_ptr<ControlPlane> StartOrSkip(Run& run, absl::string_view name,
                                          const std::string& crds) {
  if (run.control_plane.empty()) {
    run.report.Skip(name, "no control plane; `make test` builds one (it needs Go)");
    return nullptr;
  }
  auto plane = ControlPlane::Start(run.control_plane, crds);
  if (!plane.ok()) {
    run.report.Skip(name, plane.status().ToString());
    return nullptr;
  }
  ApiClient api((*plane)->config(), 1);
  Require(api.SendAll({CreateNamespace()}, 1) == 1, "the namespace was not created");
  return *std::move(plane);
}

}  // namespace

void BindRate(Run& run) {
  const std::unique_ptr<ControlPlane> plane = StartOrSkip(run, "bind_rate", "");
  if (plane == nullptr) return;
  ApiClient api(plane->config(), 2);
  CreateNodes(api);
  struct Contender {
    const char* name;
    std::function<Round()> bind;
    std::vector<Round> rounds = {};
  };
  const kube::WriteWindow::Options as_shipped;
  // Tells what the control of the window costs: as many in flight as the bare binder has.
  kube::WriteWindow::Options wide;
  wide.start = 128;
  wide.latency_floor = absl::Seconds(10);
  Contender contenders[] = {
      {"bare_64x1", [&] { return BareBinder(*plane, 64, 1); }},
      {"fairlead", [&] { return Fairlead(*plane, false, as_shipped); }},
      {"bare_128x2", [&] { return BareBinder(*plane, 128, 2); }},
      {"fairlead_events", [&] { return Fairlead(*plane, true, as_shipped); }},
      {"fairlead_window_128", [&] { return Fairlead(*plane, false, wide); }},
  };
  // The first round warms the server up and is not counted.
  for (int i = 0; i <= run.repetitions; ++i) {
    for (Contender& contender : contenders) {
      CreatePods(api);
      const Round round = contender.bind();
      DeletePods(api);
      if (i > 0) contender.rounds.push_back(round);
    }
  }
  auto each = [](const Contender& contender, double Round::* field) {
    std::vector<double> values;
    for (const Round& round : contender.rounds) values.push_back(round.*field);
    return values;
  };
  // kube-scheduler on the same pods, pods made first (measured facts, section 1 row a-ks-pre).
  for (const Contender& contender : contenders) {
    const bool ours = contender.name[0] == 'f';
    const std::string name = absl::StrCat("bind_rate/", contender.name);
    run.report.Add({name, "binds/s", Better::kHigher, each(contender, &Round::binds_per_second),
                    std::nullopt,
                    ours ? std::optional<Rival>({"kube-scheduler", 273}) : std::nullopt,
                    Median(each(contender, &Round::cpu_seconds)), "5,000 pods, 1,000 nodes"});
  }
  for (const Contender* contender : {&contenders[1], &contenders[3], &contenders[4]}) {
    std::vector<double> share;
    for (size_t i = 0; i < contender->rounds.size(); ++i) {
      const double ceiling = std::max(contenders[0].rounds[i].binds_per_second,
                                      contenders[2].rounds[i].binds_per_second);
      share.push_back(100 * contender->rounds[i].binds_per_second / ceiling);
    }
    const bool quiet = contender == &contenders[1];
    const std::string name = absl::StrCat("bind_rate/", contender->name);
    run.report.Add(
        {name + "/share_of_ceiling", "%", Better::kHigher, share,
         quiet ? std::optional<double>(85) : std::nullopt, std::nullopt, std::nullopt,
         absl::StrCat(contender == &contenders[3] ? "with events" : "without events",
                      "; window at the end ", Median(each(*contender, &Round::window)),
                      ", decreased ", Median(each(*contender, &Round::decreases)), " times")});
    run.report.Add({name + "/cpu_per_1000_pods", "CPU s", Better::kLower,
                    [&] {
                      std::vector<double> cpu = each(*contender, &Round::cpu_seconds);
                      for (double& value : cpu) value *= 1000.0 / kPods;
                      return cpu;
                    }(),
                    std::nullopt, Rival{"kube-scheduler", 3.34}, std::nullopt, ""});
    run.report.Add({name + "/writes_per_pod", "writes", Better::kLower,
                    each(*contender, &Round::writes_per_pod),
                    quiet ? std::optional<double>(1.0) : std::nullopt, Rival{"KAI", 7},
                    std::nullopt,
                    absl::StrCat("apiserver_request_total; the executor itself counts ",
                                 Median(each(*contender, &Round::own_writes_per_pod)))});
  }
}

namespace {

// Counts the NodeRequests that the API server shows as added.
class RequestWatch final : public kube::StreamObserver {
 public:
  void OnHeaders(int status, absl::string_view content_type) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    status_ = status;
    decoder_ = std::make_unique<kube::WatchDecoder>(model::Kind::kNodeRequest, content_type);
    changed_.notify_all();
  }
  void OnData(absl::string_view bytes) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<kube::WatchEvent> events;
    if (status_ != 200 || !decoder_->Feed(bytes, events).ok()) return;
    for (const kube::WatchEvent& event : events) {
      if (event.type == kube::WatchEventType::kAdded) ++added_;
    }
    changed_.notify_all();
  }
  void OnDone(const absl::Status&, absl::Duration) override {}

  // The HTTP status of the watch.
  int WaitForStart() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(10), [this] { return status_ != 0; });
    return status_;
  }
  bool WaitForAdded(int64_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return added_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int status_ = 0;
  int64_t added_ = 0;
  std::unique_ptr<kube::WatchDecoder> decoder_;
};

}  // namespace

void EndToEndVerdictToRequest(Run& run) {
  constexpr absl::string_view kName = "e2e_verdict_to_request";
  constexpr int64_t kArrivals = 200;
  if (run.crds.empty()) {
    run.report.Skip(kName, "no CRDs (--crds)");
    return;
  }
  const std::unique_ptr<ControlPlane> plane = StartOrSkip(run, kName, run.crds);
  if (plane == nullptr) return;
  ApiClient api(plane->config(), 2);
  auto watch = std::make_shared<RequestWatch>();
  kube::HttpRequest request;
  request.path = kube::CollectionPath(model::Kind::kNodeRequest);
  kube::AddQuery(request.path, "watch", "true");
  request.traffic = kube::TrafficClass::kWatch;
  request.timeout = absl::InfiniteDuration();
  api.transport().Stream(request, watch);
  if (const int status = watch->WaitForStart(); status != 200) {
    run.report.Skip(kName, absl::StrCat("the server does not know NodeRequests: ", status));
    api.transport().Shutdown();
    return;
  }

  core::Options options = core::DefaultOptions();
  std::atomic<bool> stop{false};
  LiveLoop live(*plane, options);
  live.Read();
  std::thread decider([&] {
    while (!stop) {
      live.Decide();
      live.Wait();
    }
  });
  std::vector<double> latency_ms;
  const Stopwatch all;
  for (int64_t i = 0; i < kArrivals; ++i) {
    // Whole nodes: each needs an order of its own.
    const std::vector<kube::EncodedWrite> pod = {CreatePod(i, 8)};
    const Stopwatch one;
    Require(api.SendAll(pod, 1) == 1, "e2e_verdict_to_request: the pod was not created");
    const bool ordered = watch->WaitForAdded(i + 1);
    if (!ordered) {
      run.report.Skip(kName, absl::StrCat("no NodeRequest for pod ", i, " within 20 s"));
      break;
    }
    latency_ms.push_back(one.Seconds() * 1e3);
  }
  const double cpu = all.CpuSeconds();
  stop = true;
  live.Wake();
  decider.join();
  api.transport().Shutdown();
  if (static_cast<int64_t>(latency_ms.size()) < kArrivals) return;
  run.report.Add({absl::StrCat(kName, "/p50"),
                  "ms",
                  Better::kLower,
                  {Percentile(latency_ms, 50)},
                  std::nullopt,
                  std::nullopt,
                  cpu / kArrivals,
                  "POST of the pod sent until the NodeRequest is seen by a watch"});
  run.report.Add({absl::StrCat(kName, "/p99"),
                  "ms",
                  Better::kLower,
                  {Percentile(latency_ms, 99)},
                  100,
                  std::nullopt,
                  std::nullopt,
                  absl::StrCat(kArrivals, " pods, one by one")});
}

}  // namespace fairlead::bench
