// The dashboard's own handlers with a made-up cluster, for browser_test.py: 500 nodes and 5,000
// pods, which change each time they are asked for.
//
// fairlead-dashboard-page [--small] [--hostile] [--standby] [--token]
//
// --small: some nodes with plausible names, for a picture. --hostile: names that try to be HTML.
// --token: data needs the token "good"; "limited" may not list queues, for "away" the API server
// does not answer. Prints "port N", and ends with its standard input.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dashboard/handlers.h"
#include "dashboard/snapshot_json.h"
#include "dashboard/timeline.h"

namespace fairlead::dashboard {
namespace {

constexpr char kHostile[] = "<img src=x onerror=\"window.pwned=1\">";
constexpr char kHostileText[] = "</td></table><script>window.pwned=1</script>'\"&amp;";

struct Flags {
  bool small = false, hostile = false, standby = false, token = false;
};

struct Team {
  const char* name;
  const char* parent;
  int64_t quota, limit, used;  // GPUs; a limit of -1: none
};
constexpr Team kTeams[] = {{"research", "", 112, -1, 90},
                           {"vision", "research", 48, 64, 56},
                           {"language", "research", 48, -1, 22},
                           {"robotics", "research", 16, 32, 12},
                           {"production", "", 80, 160, 58},
                           {"chat-serving", "production", 48, 96, 36},
                           {"ranking", "production", 24, 48, 16},
                           {"batch-scoring", "production", 8, 16, 6},
                           {"sandbox", "", 0, 16, 4}};
constexpr const char* kLeaves[] = {"vision",  "language",      "robotics", "chat-serving",
                                   "ranking", "batch-scoring", "sandbox"};

const char* LeafOf(size_t i) { return kLeaves[i * 5 % std::size(kLeaves)]; }

// A cluster after some changes. Without chance, so that pictures stay the same.
class Cluster {
 public:
  explicit Cluster(const Flags& flags)
      : flags_(flags),
        nodes_(flags.small ? 36 : 500),
        pods_(flags.small ? 400 : 4000),
        waiting_(flags.small ? 9 : 1000) {}

  Snapshot At(size_t turn) const {
    Snapshot snapshot;
    snapshot.at = absl::Now();
    snapshot.version = "0.1.0";
    if (flags_.standby) {
      snapshot.leads = false;
      snapshot.leader = "fairlead-5d4c7-x2x9q_1f";
    }
    for (size_t i = 0; i < nodes_; ++i) AddNode(i, turn, snapshot);
    for (size_t i = turn % 3; i < waiting_ + turn % 3; ++i) snapshot.waiting.push_back(Waiting(i));
    AddQueues(snapshot);
    return snapshot;
  }

  Timeline Past(absl::Time now) const {
    Timeline timeline;
    for (int64_t minute = -1439; minute <= 0; ++minute) {
      // A day's wave, with a peak at noon.
      const int64_t hour = (minute + 1439) / 60, ramp = (minute + 1439) % 60;
      const int64_t load[] = {31, 27, 25, 24, 24, 26, 33, 47, 62, 71, 78, 85, 93,
                              88, 80, 82, 84, 79, 70, 61, 52, 47, 44, 58, 76};
      const int64_t percent = load[hour] + (load[hour + 1] - load[hour]) * ramp / 60;
      TimelinePoint point;
      point.at = now + absl::Minutes(minute);
      point.known_gpu_milli = static_cast<int64_t>(nodes_) * 6000;
      point.used_gpu_milli = point.known_gpu_milli * percent / 100;
      point.waiting_workloads =
          static_cast<int64_t>(waiting_) * std::max<int64_t>(0, percent - 50) / 50;
      point.micro_usd_per_hour = point.used_gpu_milli * 3'900;
      for (size_t i = 0; i < std::size(kTeams); ++i) {
        const int64_t part = (percent + static_cast<int64_t>(i) * 7) * kTeams[i].used * 10;
        point.queues.push_back({kTeams[i].name, part, part * 3'900});
      }
      timeline.Add(point);
    }
    const char* const kinds[] = {"requested", "evicted", "removing", "removed", "failed"};
    const char* const why[] = {
        "p4d.24xlarge (on-demand), $32.77 an hour, for language/pretrain, queue language",
        "Evicted (reclaim) for ranking/refresh: GPUs held/fair share: sandbox 12/4, ranking 40/64",
        "unneeded for 10m", "its machine has gone",
        "Stockout: no capacity for p4d.24xlarge in us-east-1a"};
    for (int64_t i = 0; i < 40; ++i) {
      const auto kind = static_cast<size_t>(i * 3 % 5);
      timeline.Add({now - absl::Minutes((40 - i) * 17), kinds[kind],
                    absl::StrCat(kind == 1 ? "sandbox/notebook-" : "fl-", i),
                    flags_.hostile && i == 39 ? kHostileText : why[kind]});
    }
    return timeline;
  }

 private:
  void AddNode(size_t i, size_t turn, Snapshot& snapshot) const {
    const bool big = i % 5 < 3;
    NodeLine node;
    node.name = absl::StrCat("fl-", absl::Hex(uint32_t(0x9e3779b9u * (i + 1)), absl::kZeroPad8));
    node.type = big ? "p4d.24xlarge" : "g6.12xlarge";
    node.zone = i % 2 == 0 ? "us-east-1a" : "us-east-1b";
    node.ours = i % 10 != 9;
    node.coming = node.ours && (i % 31 == 0 || i % 43 == 7);
    node.status =
        node.coming ? (i % 31 == 0 ? "Ordered" : "Starting") : (i % 97 == 5 ? "Cordoned" : "Ready");
    node.gpu_milli = big ? 8000 : 4000;
    if (node.ours) {
      node.pool = big ? "training" : "inference";
      node.capacity_type = i % 4 == 1 ? "spot" : "on-demand";
      node.micro_usd_per_hour = big ? 32'770'000 : 4'600'000;
      snapshot.micro_usd_per_hour += node.micro_usd_per_hour;
    } else {
      node.name = absl::StrCat("rack-", i / 10 + 1);
      node.type.clear();
      if (i % 20 == 9) node.gpu_milli = 0;
    }
    // A tenth of the nodes change each time.
    const size_t idle = (i * 7 + (i % 10 == turn % 10 ? turn : 0)) % 5;
    const int64_t gpus = node.gpu_milli / 1000;
    const int64_t used = std::max<int64_t>(0, gpus - static_cast<int64_t>(idle));
    if (!node.coming) node.used_gpu_milli = used * 1000 - (i % 17 == 3 && used > 0 ? 500 : 0);
    if (node.coming) node.promised_gpu_milli = gpus / 2 * 1000;
    node.pods = node.coming ? 0 : static_cast<int64_t>(pods_ / nodes_);
    if (flags_.hostile && i == 1) node.name = node.pool = kHostile;
    if (node.ours) snapshot.purchases.push_back(Purchase(i, node));
    snapshot.nodes.push_back(std::move(node));
  }

  PurchaseLine Purchase(size_t i, const NodeLine& node) const {
    PurchaseLine purchase;
    purchase.name = node.name;
    purchase.pool = node.pool;
    purchase.type = node.type;
    purchase.zone = node.zone;
    purchase.capacity_type = node.capacity_type;
    purchase.phase = node.status == "Ordered"    ? "Launched"
                     : node.status == "Starting" ? "Registered"
                                                 : "Ready";
    purchase.queue = LeafOf(i);
    purchase.workloads = {absl::StrCat(purchase.queue, "/train-", i), "ranking/refresh-2",
                          "vision/sweep-3", "vision/sweep-4"};
    purchase.workloads.resize(1 + i % 4);
    purchase.micro_usd_per_hour = node.micro_usd_per_hour;
    purchase.requested_at = start_ - absl::Minutes(static_cast<int64_t>(1 + i * 7));
    if (flags_.hostile && i == 0) {
      purchase.message = kHostileText;
      purchase.workloads[0] = kHostile;
    }
    return purchase;
  }

  WaitingLine Waiting(size_t i) const {
    WaitingLine waiting;
    // Most of one queue, as it is if that is at its limit.
    waiting.queue = i % 3 == 1 ? "vision" : LeafOf(i);
    waiting.is_group = i % 3 == 0;
    waiting.workload = absl::StrCat(waiting.queue, waiting.is_group ? "/pretrain-" : "/sweep-", i);
    waiting.priority = i % 4 == 0 ? 100 : 50;
    waiting.since = start_ - absl::Minutes(static_cast<int64_t>(3 + i * 11 % 900));
    waiting.pods = waiting.is_group ? 8 : 1;
    waiting.position = static_cast<int64_t>(i / 7 + 1);
    if (i % 3 == 1) {
      waiting.code = "QueueLimitReached";
      waiting.category = "policy";
      waiting.sentence =
          absl::StrCat("Queue ", waiting.queue, " cannot give 8 GPUs within its limit of 64 GPUs.");
      waiting.message = absl::StrCat(
          "Queue ", waiting.queue,
          " has reached its limit of 64 GPUs: 56 in use, 4 promised, 8 requested. Position ",
          waiting.position, " in the queue.");
      waiting.helps = {absl::StrCat("wait until workloads of queue ", waiting.queue, " end"),
                       absl::StrCat("raise the limit of queue ", waiting.queue, " to 68 GPUs")};
    } else if (i % 3 == 2) {
      waiting.code = "NoInstanceTypeFits";
      waiting.category = "impossible";
      waiting.sentence = "No instance type can run the pod: requested 16 GPUs.";
      waiting.message = "No instance type can run the pod. None of 36 nodes can run it when empty.";
      waiting.helps = {"request at most 8 GPUs per pod"};
    } else {
      waiting.code = "NodesRequested";
      waiting.category = "capacity";
      waiting.sentence = "Waiting for the requested nodes.";
      waiting.message = "Waiting for 1 requested node: fl-9e3779b9, expected within 4m.";
      waiting.helps = {"wait for the requested nodes"};
    }
    if (flags_.hostile && i == 2) {
      waiting.workload = absl::StrCat("ns/", kHostile);
      waiting.sentence = waiting.message = kHostileText;
      waiting.helps = {kHostileText};
    }
    return waiting;
  }

  void AddQueues(Snapshot& snapshot) const {
    std::map<std::string, int64_t> waiting;
    for (const WaitingLine& line : snapshot.waiting) ++waiting[line.queue];
    const int64_t all = snapshot.micro_usd_per_hour / 160;
    snapshot.idle_micro_usd_per_hour = snapshot.micro_usd_per_hour - all * 152;
    for (const Team& team : kTeams) {
      QueueLine queue;
      queue.name = team.name;
      queue.parent = team.parent;
      queue.depth = queue.parent.empty() ? 0 : 1;
      queue.leaf = queue.depth > 0 || queue.name == "sandbox";
      queue.quota_gpu_milli = team.quota * 1000;
      if (team.limit >= 0) queue.limit_gpu_milli = team.limit * 1000;
      queue.fair_share_gpu_milli = std::max(team.quota * 1150, team.used * 1000);
      queue.used_gpu_milli = team.used * 1000;
      queue.waiting_workloads = waiting[queue.name];
      queue.requested_gpu_milli =
          (team.used + std::min<int64_t>(12, waiting[queue.name] * 8)) * 1000;
      queue.running_pods = team.used * 4 / 3;
      queue.micro_usd_per_hour = all * team.used;
      snapshot.queues.push_back(std::move(queue));
    }
    if (!flags_.hostile) return;
    QueueLine queue;
    queue.name = kHostile;
    queue.problem = kHostileText;
    snapshot.queues.push_back(std::move(queue));
  }

  const Flags flags_;
  const absl::Time start_ = absl::Now();
  const size_t nodes_, pods_, waiting_;
};

absl::Status ReviewOf(const std::string& token) {
  if (token == "good") return absl::OkStatus();
  if (token == "limited") {
    return absl::PermissionDeniedError("bob may not list queues.scheduling.run.ai");
  }
  if (token == "away") return absl::UnavailableError("the API server could not check the token");
  return absl::UnauthenticatedError("the API server does not accept the token");
}

int Serve(const Flags& flags) {
  const Cluster cluster(flags);
  const RealClock clock;
  size_t turn = 0;
  CachedText snapshot(
      [&] { return SourceText{SnapshotJson(cluster.At(turn++)), absl::ZeroDuration()}; },
      absl::ZeroDuration(), &clock);
  CachedText timeline(
      [&] { return SourceText{cluster.Past(absl::Now()).Json(), absl::ZeroDuration()}; },
      absl::Seconds(1), &clock);
  Access access(ReviewOf, &clock);
  server::HttpServerOptions options;
  options.requests = Handlers({.snapshot = &snapshot,
                               .timeline = &timeline,
                               .access = flags.token ? &access : nullptr,
                               .local_hosts_only = !flags.token});
  auto server = server::HttpServer::Start({"127.0.0.1", 0}, {}, std::move(options));
  if (!server.ok()) {
    std::cerr << server.status() << "\n";
    return 1;
  }
  std::cout << "port " << (*server)->port() << std::endl;
  while (std::getchar() != EOF) {
  }
  return 0;
}

}  // namespace
}  // namespace fairlead::dashboard

int main(int argc, char** argv) {
  fairlead::dashboard::Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    bool* const known = flag == "--small"     ? &flags.small
                        : flag == "--hostile" ? &flags.hostile
                        : flag == "--standby" ? &flags.standby
                        : flag == "--token"   ? &flags.token
                                              : nullptr;
    if (known == nullptr) {
      std::cerr << "unknown flag " << flag << "\n";
      return 2;
    }
    *known = true;
  }
  return fairlead::dashboard::Serve(flags);
}
