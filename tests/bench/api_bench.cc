// Against a real kube-apiserver: the time from a pod to an order.
#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "kube/transport/url.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/live_loop.h"

namespace fairlead::bench {
namespace {

using model::testing::MakeQueue;

constexpr int kTeams = 10;

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

void EndToEndVerdictToRequestWith(Run& run, bool groups) {
  const std::string name = NameOf("e2e_verdict_to_request", groups);
  constexpr int64_t kArrivals = 200;
  if (run.crds.empty()) {
    run.report.Skip(name, "no CRDs (--crds)");
    return;
  }
  const std::unique_ptr<ControlPlane> plane = StartOrSkip(run, name, run.crds);
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
    run.report.Skip(name, absl::StrCat("the server does not know NodeRequests: ", status));
    api.transport().Shutdown();
    return;
  }

  core::Options options = core::KwokOptions();
  // What is measured is the way of one pod: neither the wait for more demand nor the rate of
  // orders.
  options.hook.gathering_quiet = absl::ZeroDuration();
  options.hook.guard.burst = options.hook.guard.total_burst = 2 * kArrivals;
  std::atomic<bool> stop{false};
  std::vector<model::Queue> queues = {
      MakeQueue("department", "", model::kUnlimited, model::kUnlimited)};
  for (int q = 0; q < kTeams; ++q) {
    queues.push_back(MakeQueue(absl::StrCat("team-", q), "department", 1000, model::kUnlimited));
  }
  LiveLoop live(*plane, options, queues);
  live.Read();
  std::future<void> decider = std::async(std::launch::async, [&] {
    while (!stop) {
      live.Decide();
      live.Wait();
    }
  });
  // The future waits for its thread when it goes out of scope, also after a failed Require.
  absl::Cleanup stop_decider = [&] {
    stop = true;
    live.Wake();
  };
  std::vector<double> latency_ms;
  const Stopwatch all;
  for (int64_t i = 0; i < kArrivals; ++i) {
    // Pods of a whole node: each needs an order of its own.
    std::vector<kube::EncodedWrite> create;
    AddPod(create, {Numbered("pod", i), absl::StrCat("team-", i % kTeams), 8}, groups);
    const Stopwatch one;
    SendOrEnd(api, create, "the pod was not created", 1);
    const bool ordered = watch->WaitForAdded(i + 1);
    if (!ordered) {
      run.report.Skip(name, absl::StrCat("no NodeRequest for pod ", i, " within 20 s"));
      break;
    }
    latency_ms.push_back(one.Seconds() * 1e3);
  }
  const double cpu = all.CpuSeconds();
  std::move(stop_decider).Invoke();
  decider.get();
  api.transport().Shutdown();
  if (static_cast<int64_t>(latency_ms.size()) < kArrivals) return;
  run.report.Add({absl::StrCat(name, "/p50"),
                  "ms",
                  Better::kLower,
                  {Percentile(latency_ms, 50)},
                  std::nullopt,
                  std::nullopt,
                  cpu / kArrivals,
                  "POST of the pod sent until the NodeRequest is seen by a watch"});
  run.report.Add({absl::StrCat(name, "/p99"),
                  "ms",
                  Better::kLower,
                  {Percentile(latency_ms, 99)},
                  100,
                  std::nullopt,
                  std::nullopt,
                  absl::StrCat(kArrivals, " pods, one by one, no gathering window")});
}

}  // namespace

void EndToEndVerdictToRequest(Run& run) {
  for (const bool groups : {false, true}) EndToEndVerdictToRequestWith(run, groups);
}

}  // namespace fairlead::bench
