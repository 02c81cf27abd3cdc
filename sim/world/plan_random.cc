#include "sim/world/plan_random.h"

#include <algorithm>
#include <functional>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "sim/faults.h"
#include "sim/world/cloud.h"
#include "sim/world/plan_corners.h"

namespace fairlead::sim::world {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int64_t kSecond = 1000;
constexpr int64_t kMicroPerUsd = 1'000'000;
// The others are told all the time, by corners.
constexpr size_t kLiesByChance = 10;
// With more families than these, what happens is left to chance.
constexpr size_t kFewFamilies = 3;

class Generator {
 public:
  Generator(uint64_t seed, const std::vector<std::string>& families)
      : random_(seed * 0x9e3779b97f4a7c15ULL + 1) {
    plan_.seed = seed;
    plan_.end_ms = random_.Between(90, 200) * kSecond;
    plan_.hook = OneIn(2);
    if (OneIn(4)) plan_.max_usd_per_hour = random_.Between(3, 12);
    if (OneIn(4)) plan_.max_nodes = random_.Between(3, 8);
    plan_.paced = OneIn(3);
    crowded_ = plan_.hook && OneIn(2);
    std::vector<std::string> by_chance, corners;
    for (const std::string& family : families) {
      (CornerFamilies().contains(family) ? corners : by_chance).push_back(family);
    }
    if (seed % 8 == 0) return;
    for (const std::string& family : by_chance) {
      if (OneIn(3)) families_.insert(family);
    }
    if (families_.empty() && !by_chance.empty()) {
      families_.insert(by_chance[random_.Below(by_chance.size())]);
    }
    has_corners_ = families.size() <= kFewFamilies;
    if (has_corners_) families_.insert(corners.begin(), corners.end());
  }

  Plan Make() {
    Cluster();
    Queues();
    Work();
    if (On("tenants")) Tenants();
    if (On("queues")) QueueChanges();
    if (On("groups")) Groups();
    if (On("hostile")) Hostile();
    if (On("odd")) Odd();
    if (On("shares")) Shares();
    if (On("foreign")) Foreign();
    if (On("nodes")) NodeFaults();
    if (On("kubelet")) KubeletFaults();
    if (On("cloud")) CloudFaults();
    if (On("network")) NetworkFaults();
    if (On("watch")) WatchFaults();
    if (On("half-open")) HalfOpenFaults();
    if (On("clock")) ClockFaults();
    if (On("crash")) Crashes();
    if (On("lease")) LeaseFaults();
    if (On("budgets")) Budgets();
    if (has_corners_) AddCorners(plan_.seed, families_, plan_);
    std::stable_sort(plan_.operations.begin(), plan_.operations.end(),
                     [](const Operation& a, const Operation& b) { return a.at_ms < b.at_ms; });
    return std::move(plan_);
  }

 private:
  [[nodiscard]] bool On(const char* family) const { return families_.contains(family); }
  bool OneIn(uint64_t n) { return random_.Below(n) == 0; }
  template <typename T>
  const T& Any(const std::vector<T>& of) {
    return of[random_.Below(of.size())];
  }
  // Some time of the plan, not in its first seconds.
  int64_t Sometime() { return random_.Between(5 * kSecond, plan_.end_ms - kSecond); }
  Operation& Add(int64_t at_ms, absl::string_view verb) {
    Operation& operation = plan_.operations.emplace_back();
    operation.at_ms = at_ms;
    operation.verb = std::string(verb);
    return operation;
  }
  // How often something happens: `low` to `high` times.
  void Times(int64_t low, int64_t high, const std::function<void()>& what) {
    for (int64_t n = random_.Between(low, high); n > 0; --n) what();
  }

  void Cluster() {
    const int64_t nodes = random_.Between(plan_.hook ? 1 : 2, 5);
    for (int64_t i = 0; i < nodes; ++i) {
      nodes_.push_back(absl::StrCat("n", i));
      Add(0, "node")
          .With("name", nodes_.back())
          .With("cpu", 16'000)
          .With("memory", 64 * kGiB)
          .With("gpu", OneIn(4) ? 0 : 8)
          .With("zone", OneIn(2) ? "zone-a" : "zone-b");
    }
  }

  void Bound(Operation& queue, const char* key, int64_t low, int64_t high, uint64_t one_in) {
    if (OneIn(one_in)) queue.With(key, random_.Between(low, high));
  }

  void Queues() {
    Operation& root = Add(0, "queue").With("name", "root");
    Bound(root, "gpu_limit", 8, 40, 3);
    for (int64_t i = random_.Between(2, 4); i > 0; --i) {
      queues_.push_back(absl::StrCat("q", i));
      Queue(Add(0, "queue"), queues_.back());
    }
  }

  void Queue(Operation& queue, const std::string& name) {
    queue.With("name", name).With("parent", "root").With("gpu_quota", random_.Between(0, 8));
    Bound(queue, "gpu_limit", 8, 16, 3);
    Bound(queue, "cpu_limit", 20'000, 60'000, 5);
    if (OneIn(4)) queue.With("priority", random_.Between(1, 3) * 100);
  }

  // Fields that every job has.
  Operation& Job(int64_t at_ms) {
    jobs_.push_back(absl::StrCat("j", jobs_.size()));
    return Add(at_ms, "job")
        .With("name", jobs_.back())
        .With("ns", OneIn(2) ? "team-a" : "team-b")
        .With("queue", Any(queues_));
  }

  void Work() {
    Times(20, 45, [&] {
      const bool gang = OneIn(2);
      const int64_t pods = random_.Between(1, 5);
      Operation& job = Job(random_.Between(500, plan_.end_ms - 5 * kSecond));
      job.With("pods", pods).With("gpu", OneIn(4) ? 0 : random_.Between(1, 2));
      job.With("cpu", random_.Between(1, 4) * 500).With("memory", random_.Between(1, 4) * kGiB);
      // Most pods of a KAI cluster have a PodGroup.
      job.With("grouping", OneIn(5) ? "none" : "own").With("min", gang ? pods : 1);
      job.With("run", random_.Between(3, 25));
      if (OneIn(4)) job.With("class", Any(classes_));
    });
    Times(1, 3, [&] {
      Operation& job = Job(random_.Between(500, plan_.end_ms / 2));
      job.With("kind", "deployment")
          .With("pods", random_.Between(1, 3))
          .With("gpu", OneIn(2) ? 1 : 0);
      job.With("grouping", OneIn(2) ? "none" : "own").With("min", 1);
    });
    if (!crowded_) return;
    Burst();
    if (OneIn(2)) {  // each fills a machine
      Job(random_.Between(500, plan_.end_ms / 2))
          .With("pods", random_.Between(8, 24))
          .With("cpu", 7000)
          .With("grouping", "none")
          .With("run", random_.Between(10, 40));
    }
  }

  // Equal pods, one after the other, that one large machine serves for less than many small ones.
  void Burst() {
    Job(random_.Between(500, plan_.end_ms / 2))
        .With("pods", random_.Between(8, 16))
        .With("gpu", 1)
        .With("cpu", 500)
        .With("grouping", "none")
        .With("gap_ms", random_.Between(5, 60))
        .With("run", random_.Between(20, 60));
  }

  void Tenants() {
    Times(3, 12, [&] {
      const int64_t at = Sometime();
      const std::string& job = Any(jobs_);
      switch (random_.Below(6)) {
        case 0:
          Add(at, "delete-job").With("name", job);
          break;
        case 1:
          Add(at, "scale-job").With("name", job).With("pods", random_.Between(0, 6));
          break;
        case 2:
          Add(at, "delete-pods").With("job", job);
          break;
        case 3:
          Add(at, "delete-pods").With("job", job).With("first", 1);
          break;
        case 4:
          Add(at, "label-pods")
              .With("job", job)
              .With("key", "kai.scheduler/queue")
              .With("value", OneIn(4) ? "no-such-queue" : Any(queues_));
          break;
        default:
          Add(at, "label-pods")
              .With("job", job)
              .With("key", "priorityClassName")
              .With("value", Any(classes_));
      }
    });
  }

  void QueueChanges() {
    Times(2, 7, [&] {
      const int64_t at = Sometime();
      const std::string name = Any(queues_);
      switch (random_.Below(6)) {
        case 5:  // a root of its own is deleted and made again
          Add(at, "change-queue").With("name", name).With("gpu_limit", random_.Between(4, 16));
          Add(at + 2 * kSecond, "delete-queue").With("name", name);
          Add(at + random_.Between(2001, 20'000), "queue")
              .With("name", name)
              .With("gpu_limit", random_.Between(4, 16));
          break;
        case 0:
          Queue(Add(at, "change-queue"), name);
          break;
        case 1:  // deleted and made again
          Add(at, "delete-queue").With("name", name);
          Queue(Add(at + random_.Between(1, 20'000), "queue"), name);
          break;
        case 2:  // its quota is above its limit
          Add(at, "change-queue")
              .With("name", name)
              .With("parent", "root")
              .With("gpu_quota", 12)
              .With("gpu_limit", 4);
          break;
        case 3:  // a root of its own
          Add(at, "change-queue").With("name", name).With("gpu_limit", random_.Between(4, 16));
          break;
        default:
          Add(at, "change-queue")
              .With("name", name)
              .With("parent", OneIn(2) ? name : "no-such-queue");
          Queue(Add(at + random_.Between(1000, 30'000), "change-queue"), name);
      }
    });
  }

  void Groups() {
    Times(2, 6, [&] {  // a pod-grouper that is slow
      const int64_t pods = random_.Between(2, 5);
      Operation& job = Job(Sometime());
      job.With("pods", pods).With("min", pods).With("gpu", random_.Between(0, 2));
      const bool knative = OneIn(4);  // whose pods come again: never later than they settle
      job.With("grouping", "late").With("late_ms", random_.Between(1, knative ? 900 : 4000));
      if (knative) {
        job.With("kind", "deployment");
      } else {
        job.With("run", 15);
      }
    });
    if (OneIn(2)) {  // of which one has to run, and each as a whole
      Times(1, 3, [&] {
        Operation& job = Job(Sometime());
        job.With("kind", "deployment").With("pods", 6).With("gpu", random_.Between(1, 3));
        job.With("grouping", "own").With("sub_groups", 3).With("sub_min", 2);
      });
    }
    Times(2, 6, [&] {
      const int64_t at = Sometime();
      const size_t index = random_.Below(jobs_.size());
      const std::string ns = OneIn(2) ? "team-a" : "team-b";
      if (OneIn(2)) {
        Add(at, "delete-group").With("ns", ns).With("name", jobs_[index]);
        if (OneIn(2)) {
          Add(at + random_.Between(1, 15'000), "group")
              .With("ns", ns)
              .With("name", jobs_[index])
              .With("queue", Any(queues_))
              .With("min", random_.Between(1, 5));
        }
      } else {
        Add(at, "change-group")
            .With("ns", ns)
            .With("name", jobs_[index])
            .With("queue", Any(queues_))
            .With("min", random_.Between(1, 6));
      }
    });
  }

  void Hostile() {
    static const std::vector<std::string> kAmounts = {"9223372036854775807", "-1", "0", "1e30",
                                                      "4611686018427387904"};
    Times(1, 4, [&] {
      const std::string name = absl::StrCat("h", jobs_.size(), "-", plan_.operations.size());
      Operation& pod = Add(Sometime(), "pod");
      pod.With("name", name).With("ns", "team-a").With("queue", Any(queues_));
      pod.With("scheduler", OneIn(2) ? "default-scheduler" : "fairlead");
      pod.With("gpu", Any(kAmounts)).With("run", 10);
    });
    Times(1, 3, [&] {
      Add(Sometime(), "annotate-pods")
          .With("job", Any(jobs_))
          .With("key", Any(std::vector<std::string>{"pod-group-name", "gpu-fraction", "gpu-memory",
                                                    "kai.scheduler/staleness-grace-period"}))
          .With("value",
                Any(std::vector<std::string>{"0.5", "no such group", "-1", "x/../y", "1e9"}));
    });
    Times(0, 2, [&] {
      Add(Sometime(), "queue")
          .With("name", absl::StrCat("odd", plan_.operations.size()))
          .With("parent", "root")
          .With("gpu_limit", Any(std::vector<std::string>{"1e30", "-7", "0"}))
          .With("gpu_quota", Any(std::vector<std::string>{"1e30", "-7", "9223372036854775807"}));
    });
  }

  void Odd() {
    static const std::vector<std::string> kOdd = {"selector", "volume", "gated",
                                                  "namespace-affinity", "namespace-anti-affinity"};
    Times(1, 4, [&] {
      Operation& job = Job(Sometime());
      job.With("pods", random_.Between(1, 3)).With("min", 1).With("gpu", random_.Between(0, 2));
      job.With("grouping", OneIn(2) ? "none" : "own").With("odd", Any(kOdd)).With("run", 10);
    });
  }

  void Shares() {
    Times(2, 6, [&] {
      Operation& job = Job(Sometime());
      job.With("pods", random_.Between(1, 3))
          .With("min", 1)
          .With("grouping", OneIn(2) ? "none" : "own");
      job.With("fraction", OneIn(2) ? "0.5" : "0.25").With("run", random_.Between(5, 20));
    });
    Times(1, 3, [&] {  // one that runs is moved into a group
      const int64_t at = random_.Between(500, plan_.end_ms - 20 * kSecond);
      Operation& job = Job(at);
      job.With("pods", random_.Between(1, 3)).With("min", 1).With("grouping", "none");
      job.With("fraction", "0.5").With("run", 60);
      const std::string name = jobs_.back();
      Add(at + random_.Between(1000, 15'000), "annotate-pods")
          .With("job", name)
          .With("key", "pod-group-name")
          .With("value", OneIn(2) ? name : Any(jobs_));
    });
  }

  void Foreign() {
    Add(0, "foreign-lag").With("ms", random_.Between(0, 1500));
    if (OneIn(2)) {
      Add(0, "foreign-race").With("for_ms", 10 * plan_.end_ms);
      // Kinds are not ordered between each other: pods may be seen seconds after nodes.
      for (const char* replica : {"a", "b"}) {
        Add(kSecond, "network")
            .With("replica", replica)
            .With("max_watch_delay_ms", random_.Between(500, 4000))
            .With("for_ms", plan_.end_ms);
      }
    }
    Times(3, 15, [&] {
      Operation& pod = Add(Sometime(), "pod");
      pod.With("name", absl::StrCat("f", plan_.operations.size())).With("ns", "team-b");
      pod.With("scheduler", "default-scheduler").With("cpu", random_.Between(1, 8) * 1000);
      pod.With("gpu", random_.Between(0, 4)).With("run", random_.Between(5, 60));
    });
  }

  void NodeFaults() {
    Times(2, 6, [&] {
      const int64_t at = Sometime(), later = at + random_.Between(1000, 20'000);
      const std::string& name = Any(nodes_);
      switch (random_.Below(5)) {
        case 0:
          Add(at, "cordon-node").With("name", name).With("on", 1);
          Add(later, "cordon-node").With("name", name).With("on", 0);
          break;
        case 1:
          Add(at, "taint-node").With("name", name).With("on", 1).With("soft", OneIn(2) ? 1 : 0);
          Add(later, "taint-node").With("name", name).With("on", 0);
          break;
        case 2:
          Add(at, "node-ready").With("name", name).With("on", 0);
          Add(later, "node-ready").With("name", name).With("on", 1);
          break;
        case 3:
          Add(at, "kill-node").With("name", name);
          Add(later, "node")
              .With("name", name)
              .With("cpu", 16'000)
              .With("memory", 64 * kGiB)
              .With("gpu", 8);
          break;
        default:
          Add(at, "shrink-node").With("name", name).With("cpu", random_.Between(1, 16) * 1000);
      }
    });
    if (OneIn(2)) Add(Sometime(), "heartbeats").With("for_ms", 60'000);
  }

  void KubeletFaults() {
    Times(1, 2, [&] {
      Add(Sometime(), "stuck-kubelet").With("for_ms", random_.Between(5, 60) * kSecond);
    });
    if (OneIn(2)) Add(0, "static-pods");
    Times(1, 3, [&] {
      Add(Sometime(), "mirror-pod")
          .With("name", absl::StrCat("static-", plan_.operations.size()))
          .With("ns", "kube-system")
          .With("node", Any(nodes_))
          .With("cpu", 100);
    });
  }

  void CloudFaults() {
    Times(1, 4, [&] {
      Add(random_.Between(0, plan_.end_ms - kSecond), "cloud")
          .With("lie", LieName(static_cast<Lie>(random_.Below(kLiesByChance))))
          .With("for_ms", random_.Between(10, 60) * kSecond);
    });
    if (OneIn(2)) Times(1, 2, [&] { Add(Sometime(), "lose-machine"); });
    if (OneIn(2)) {
      Times(1, 5, [&] { Add(Sometime(), "delete-request").With("pick", random_.Between(0, 9)); });
    }
    if (OneIn(3)) Add(Sometime(), "catalogue");
    if (OneIn(3)) SmallMachines();
    if (plan_.hook && OneIn(3)) OldMachines();
  }

  // They never are what the catalogue says, and some pods need all of it.
  void SmallMachines() {
    Add(0, "cloud").With("lie", LieName(Lie::kSmaller)).With("for_ms", "always");
    Times(1, 2, [&] {
      Job(random_.Between(500, plan_.end_ms / 2))
          .With("pods", random_.Between(4, 9))
          .With("gpu", OneIn(3) ? 1 : 0)
          .With("cpu", 1000)
          .With("memory", 30 * kGiB)
          .With("grouping", OneIn(2) ? "none" : "own")
          .With("min", 1)
          .With("run", 600);
    });
  }

  // Whatever they cost, what a hook assumes of them leaves room for a few more.
  void OldMachines() {
    const int64_t count = random_.Between(1, 3);
    for (int64_t i = 0; i < count; ++i) {
      Add(0, "old-machine")
          .With("name", absl::StrCat("old", i))
          .With("gpu", random_.Between(1, 4))
          .With("price", random_.Between(2, 6) * kMicroPerUsd);
    }
    plan_.max_usd_per_hour = 6 * count + random_.Between(3, 10);
    if (crowded_) Burst();
  }

  Operation& OnReplica(int64_t at, absl::string_view verb) {
    return Add(at, verb).With("replica", OneIn(2) ? "a" : "b");
  }

  void NetworkFaults() {
    Times(1, 4, [&] {
      Operation& bad = OnReplica(Sometime(), "network");
      bad.With("for_ms", random_.Between(2, 20) * kSecond);
      static const std::vector<const char*> kChances = {
          "lose_request", "lose_answer", "throttle", "server_error", "gateway_timeout", "conflict"};
      for (const char* chance : kChances) {
        if (OneIn(2)) bad.With(chance, random_.Between(10, 200));
      }
      if (OneIn(3)) bad.With("max_delay_ms", random_.Between(100, 3000));
      if (OneIn(3)) bad.With("max_watch_delay_ms", random_.Between(100, 3000));
    });
    static const std::vector<const char*> kRefused = {
        "/api/v1/namespaces/team-a/pods", "/apis/fairlead.dev/v1alpha1/noderequests",
        "/apis/scheduling.run.ai", "/api/v1/nodes", "/api/v1/pods"};
    static const std::vector<const char*> kSuffixes = {"", "/status", "/binding", "/eviction"};
    static const std::vector<int64_t> kStatus = {403, 500, 404, 0};
    if (plan_.hook && OneIn(2)) {
      Times(1, 2, [&] {
        OnReplica(Sometime(), "refuse")
            .With("prefix", "/apis/fairlead.dev/v1alpha1/noderequests")
            .With("suffix", "/status")
            .With("status", OneIn(2) ? 403 : 500)
            .With("for_ms", random_.Between(20, 80) * kSecond);
      });
    }
    if (OneIn(2)) {  // a webhook that does not let one pod of a gang be bound
      const int64_t pods = random_.Between(2, 4);
      Operation& job = Job(Sometime());
      const std::string name = jobs_.back();
      job.With("pods", pods).With("min", pods).With("gpu", 1).With("cpu", 500);
      job.With("grouping", "own").With("run", 600);
      Add(0, "refuse-binding").With("name", absl::StrCat(name, "-", random_.Below(pods)));
    }
    if (OneIn(2)) {
      Times(1, 3, [&] {
        OnReplica(Sometime(), "refuse")
            .With("prefix", Any(kRefused))
            .With("suffix", Any(kSuffixes))
            .With("status", Any(kStatus))
            .With("for_ms", random_.Between(2, 20) * kSecond);
      });
    }
  }

  void WatchFaults() {
    Times(1, 4, [&] {
      switch (random_.Below(3)) {
        case 0:
          OnReplica(Sometime(), "goaway");
          break;
        case 1:
          Add(Sometime(), "compact");
          break;
        default:
          Add(Sometime(), "end-watches");
      }
    });
    if (!OneIn(2)) return;
    static const std::vector<const char*> kBlind = {"/api/v1/pods", "/api/v1/nodes"};
    Add(random_.Between(5 * kSecond, 40 * kSecond), "blind")
        .With("replica", OneIn(2) ? "leader" : "a")
        .With("prefix", Any(kBlind))
        .With("status", OneIn(2) ? 403 : 500)
        .With("for_ms", random_.Between(80, 150) * kSecond);
  }

  void HalfOpenFaults() {
    Times(1, 2, [&] {
      OnReplica(Sometime(), "half-open")
          .With("class", OneIn(3) ? "read" : "watch")
          .With("for_ms", random_.Between(2, 40) * kSecond);
    });
  }

  void ClockFaults() {
    Times(1, 3, [&] {
      if (OneIn(2)) {
        OnReplica(Sometime(), "clock").With("offset_ms", random_.Between(-120, 120) * kSecond);
      } else {
        OnReplica(Sometime(), "pause").With("for_ms", random_.Between(1, 30) * kSecond);
      }
    });
  }

  void Crashes() {
    Times(1, 4, [&] {
      Operation& crash = OnReplica(Sometime(), "crash");
      crash.With("down_ms", random_.Between(10, 10'000));
      if (OneIn(2)) crash.With("at_write", random_.Between(1, 10));
    });
  }

  void LeaseFaults() {
    Times(1, 2, [&] {
      const int64_t at = Sometime();
      if (OneIn(2)) {  // the standby is behind, and does not know
        Add(at - random_.Between(0, 5 * kSecond), "half-open")
            .With("replica", "standby")
            .With("class", "watch")
            .With("for_ms", random_.Between(2, 10) * kSecond);
      }
      const bool hangs = OneIn(2);
      Add(at, hangs ? "hang" : "partition")
          .With("replica", "leader")
          .With("for_ms", random_.Between(3, hangs ? 120 : 40) * kSecond);
    });
  }

  void Budgets() {
    Times(1, 3, [&] {
      const int64_t at = Sometime();
      const std::string job = Any(jobs_);
      // What else there is to decide, the time decides: a draw more would change all that follows.
      Add(at, "budget")
          .With("name", job)
          .With("min", random_.Between(0, 2))
          .With("unhealthy", at % 2 == 0 ? "AlwaysAllow" : "IfHealthyBudget");
      Add(std::min(at + at % (30 * kSecond), plan_.end_ms - kSecond), "unready")
          .With("name", job)
          .With("for_ms", 20 * kSecond);
    });
  }

  Random random_;
  bool crowded_ = false;  // many pods of one shape
  bool has_corners_ = false;
  Plan plan_;
  std::set<std::string, std::less<>> families_;
  std::vector<std::string> nodes_, queues_, jobs_;
  const std::vector<std::string> classes_ = {"train", "high", "build"};
};

}  // namespace

const std::vector<std::string>& FaultFamilies() {
  static const auto* const kFamilies = new std::vector<std::string>{
      "budgets", "clock",   "cloud",     "crash",   "demand",  "foreign", "groups",
      "hostile", "kubelet", "half-open", "lease",   "network", "nodes",   "odd",
      "queues",  "search",  "shares",    "tenants", "watch"};
  return *kFamilies;
}

absl::StatusOr<std::vector<std::string>> ParseFamilies(absl::string_view text) {
  std::set<std::string> chosen;
  const std::vector<std::string>& all = FaultFamilies();
  for (const absl::string_view word : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const bool out = word.front() == '-';
    const std::string name(out ? word.substr(1) : word);
    if (name == "none") continue;
    if (name == "all") {
      chosen.insert(all.begin(), all.end());
    } else if (std::find(all.begin(), all.end(), name) == all.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("no fault family \"", name, "\"; there are: ", absl::StrJoin(all, ", ")));
    } else if (out) {
      chosen.erase(name);
    } else {
      chosen.insert(name);
    }
  }
  return std::vector<std::string>(chosen.begin(), chosen.end());
}

Plan RandomPlan(uint64_t seed, const std::vector<std::string>& families) {
  return Generator(seed, families).Make();
}

}  // namespace fairlead::sim::world
