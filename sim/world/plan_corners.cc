#include "sim/world/plan_corners.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "sim/world/cloud.h"
#include "sim/world/plan_dice.h"

namespace fairlead::sim::world {
namespace {

class Corners : PlanDice {
 public:
  Corners(uint64_t seed, const std::set<std::string, std::less<>>& families, Plan& plan)
      : PlanDice(seed * 0xd1342543de82ef95ULL + 7, plan), families_(families) {
    for (const Operation& each : plan.operations) {
      if (each.verb != "node" || each.at_ms != 0) continue;
      ++nodes_;
      gpu_nodes_ += each.Number("gpu") > 0 ? 1 : 0;
    }
  }

  void Add() {
    if (Draw("cloud")) Cloud();
    if (Draw("demand")) {
      plan_.seed % 3 == 0 ? ManySizes() : plan_.seed % 6 == 1 ? OneSize() : Demand();
    }
    if (Draw("lease")) plan_.seed % 3 == 0 ? HungLeader() : Lease();
    if (Draw("watch")) plan_.seed % 3 == 0 ? HangingEvictions() : Watch();
    if (Draw("search")) Search();
    if (Draw("groups")) Groups();
    if (Draw("hostile")) Hostile();
    if (Draw("network")) plan_.seed % 3 == 0 ? DoubtfulWrites() : Network();
    if (Draw("odd")) Odd();
    if (Draw("queues")) DeletedQueue();
    if (Draw("groups")) SucceededMember();
    if (Draw("groups")) HeldMembers();
    if (Draw("kubelet")) StuckPod();
    // So many resources take their time: only some worlds have them.
    if (Draw("hostile") && plan_.seed % 5 == 4) ManyNames();
    if (Draw("cloud") && plan_.seed % 2 == 1) PartStock();
    if (Draw("queues")) Reclaim();
  }

 private:
  // Draws either way, so that a family more does not change the corners of the others.
  bool Draw(const std::string& family) {
    const bool drawn = OneIn(2);
    if (!families_.contains(family)) return false;
    return drawn || families_.size() == 1 || CornerFamilies().contains(family);
  }
  Operation& Job(int64_t at_ms, const std::string& name, const std::string& queue) {
    return At(at_ms, "job").With("name", name).With("ns", "team-a").With("queue", queue);
  }
  // A queue of its own, so that limits of others do not decide.
  void Queue(const std::string& name) {
    At(0, "queue").With("name", name).With("parent", "root").With("gpu_quota", 0);
  }

  void Cloud() {
    if (!plan_.hook) return;
    const bool inherits =
        std::any_of(plan_.operations.begin(), plan_.operations.end(),
                    [](const Operation& each) { return each.verb == "old-machine"; });
    if (!inherits) plan_.max_usd_per_hour = plan_.max_nodes = 40;
    if (OneIn(4)) return Catalogue();
    static constexpr Lie kAlways[] = {Lie::kOwnNames, Lie::kSmaller, Lie::kTainted,
                                      Lie::kAllTainted};
    const Lie lie = kAlways[random_.Below(4)];
    At(0, "cloud").With("lie", LieName(lie)).With("for_ms", "always");
    Queue("corner");
    Operation& job = Job(random_.Between(500, plan_.end_ms / 4), "corner-lie", "corner");
    job.With("cpu", 1000).With("min", 1).With("run", kForever);
    if (lie == Lie::kOwnNames) {
      // A static node takes two of them, a machine of the cheapest type one.
      job.With("pods", 2 * nodes_ + random_.Between(2, 4)).With("memory", 26 * kGiB);
      job.With("grouping", OneIn(2) ? "none" : "own");
    } else if (lie == Lie::kAllTainted) {
      // No static node takes them. They come one after the other, so that their nodes do, too, and
      // pods that come later wait when the first nodes turn out to be useless.
      job.With("pods", random_.Between(4, 8)).With("memory", 70 * kGiB).With("grouping", "none");
      job.With("gap_ms", random_.Between(1, 6) * kSecond);
    } else {
      // Only the largest type takes it, if it is what the catalogue says.
      job.With("pods", 1).With("memory", (lie == Lie::kSmaller ? 250 : 150) * kGiB);
      job.With("grouping", "none");
    }
  }

  // Gangs of which each pod takes a machine, while each second machine is out of stock.
  void PartStock() {
    if (!plan_.hook) return;
    const int64_t at = random_.Between(kSecond, plan_.end_ms / 3);
    Queue("corner-sets");
    At(at, "cloud")
        .With("lie", LieName(Lie::kPartStock))
        .With("for_ms", random_.Between(20, 60) * kSecond);
    for (int64_t gang = 0; gang < 2; ++gang) {
      const int64_t pods = random_.Between(2, 3);
      Job(at + random_.Between(0, 20) * kSecond, absl::StrCat("corner-set", gang), "corner-sets")
          .With("pods", pods)
          .With("cpu", 1000)
          .With("memory", 70 * kGiB)  // no static node takes them
          .With("grouping", "own")
          .With("min", pods)
          .With("run", random_.Between(60, 120));
    }
  }

  void Catalogue() {
    Queue("corner");
    const int64_t at = random_.Between(500, 10 * kSecond);
    Job(at, "corner-four", "corner")
        .With("pods", 2 * gpu_nodes_ + 1)
        .With("gpu", 4)
        .With("cpu", 500)
        .With("grouping", "none")
        .With("run", kForever);
    At(at + 60 * kSecond, "catalogue");
  }

  void Demand() {
    if (!plan_.hook) return;
    // What is there from the beginning is no purchase.
    const auto inherited =
        std::count_if(plan_.operations.begin(), plan_.operations.end(),
                      [](const Operation& each) { return each.verb == "old-machine"; });
    plan_.max_nodes = inherited + random_.Between(2, 5);
    plan_.max_usd_per_hour = 40;
    Queue("corner");
    Job(random_.Between(500, plan_.end_ms / 2), "corner-crowd", "corner")
        .With("pods", 2 * nodes_ + plan_.max_nodes + random_.Between(3, 8))
        .With("cpu", 7000)
        .With("grouping", "none")
        .With("run", random_.Between(40, 80));
  }

  // Pods of several sizes, each of which stays within the rate of its size.
  void ManySizes() {
    if (!plan_.hook) return;
    plan_.max_nodes = plan_.max_usd_per_hour = 40;
    Queue("corner");
    const int64_t at = random_.Between(500, plan_.end_ms / 2);
    for (int64_t size = 0; size < 5; ++size) {
      Job(at + random_.Between(0, 20), absl::StrCat("corner-size", size), "corner")
          .With("pods", 12)
          .With("cpu", 7000)
          .With("memory", kGiB << size)
          .With("grouping", "none")
          .With("run", kForever);
    }
  }

  // More machines than the rate of one size permits, and fewer than that of all.
  void OneSize() {
    if (!plan_.hook) return;
    plan_.max_nodes = plan_.max_usd_per_hour = 40;
    Queue("corner");
    Job(random_.Between(500, plan_.end_ms / 2), "corner-size", "corner")
        .With("pods", 2 * nodes_ + random_.Between(24, 30))
        .With("cpu", 7000)
        .With("grouping", "none")
        .With("run", kForever);
  }

  // A gang that is below its minimum because one of its pods has succeeded.
  void SucceededMember() {
    const int64_t at = random_.Between(2 * kSecond, plan_.end_ms - 60 * kSecond);
    Queue("corner-gang");
    At(0, "node").With("name", "corner-gang").With("cpu", 8000).With("memory", 32 * kGiB);
    Job(at, "corner-gang", "corner-gang")
        .With("pods", 2)
        .With("cpu", 500)
        .With("grouping", "own")
        .With("min", 3)
        .With("run", kForever);
    const auto annotate = [&](int64_t when, const char* job, const char* key, const char* value) {
      At(when, "annotate-pods").With("job", job).With("key", key).With("value", value);
    };
    annotate(at + 100, "corner-gang", "kai.scheduler/staleness-grace-period", "2s");
    Job(at + 2 * kSecond, "corner-first", "corner-gang")
        .With("pods", 1)
        .With("cpu", 500)
        .With("grouping", "none")
        .With("run", 10);
    annotate(at + 2 * kSecond + 50, "corner-first", "pod-group-name", "corner-gang");
  }

  // A pod that goes does not end, and another one waits for its room, although it could have a
  // machine, or the room of a pod of lower priority.
  void StuckPod() {
    constexpr int64_t kMemory = 150 * kGiB;  // as no other node has, and the largest type
    if (plan_.hook) plan_.max_nodes = plan_.max_usd_per_hour = 40;
    Queue("corner-stuck");
    const auto job = [&](int64_t at, const char* name, const char* priority_class) {
      Job(at, name, "corner-stuck")
          .With("pods", 1)
          .With("cpu", 1000)
          .With("memory", kMemory)
          .With("class", priority_class)
          .With("grouping", "none")
          .With("run", kForever);
    };
    const auto node = [&](const char* name) {
      At(0, "node").With("name", name).With("cpu", 2000).With("memory", 200 * kGiB);
    };
    node("corner-stuck");
    job(kSecond, "corner-stuck", "high");
    if (!plan_.hook) {
      node("corner-other");
      job(2 * kSecond, "corner-other", "train");
    }
    const int64_t at = random_.Between(10 * kSecond, 25 * kSecond);
    At(at - kSecond, "stuck-kubelet").With("job", "corner-stuck").With("for_ms", 1000 * kSecond);
    At(at, "delete-job").With("name", "corner-stuck");
    job(at + 3 * kSecond, "corner-waits", "high");
  }

  // Together they name more resources than the program tells apart.
  void ManyNames() {
    Queue("corner-names");
    Job(random_.Between(kSecond, plan_.end_ms / 2), "corner-names", "corner-names")
        .With("pods", 4)
        .With("names", 350)
        .With("cpu", 100)
        .With("gap_ms", 1000)
        .With("grouping", "none")
        .With("run", kForever);
  }

  // Pods for which there is room one by one are held until it is clear that they have no group, and
  // get one meanwhile, for which there is no room.
  void HeldMembers() {
    Queue("corner-held");
    // Only this node takes one of them.
    At(0, "node").With("name", "corner-held").With("cpu", 1000).With("memory", 400 * kGiB);
    Job(kSecond, "corner-before", "corner-held")  // so that there are groups
        .With("pods", 1)
        .With("cpu", 100)
        .With("grouping", "own")
        .With("min", 1)
        .With("run", kForever);
    const int64_t at = random_.Between(5 * kSecond, plan_.end_ms - 20 * kSecond);
    Job(at, "corner-held", "corner-held")
        .With("pods", 2)
        .With("cpu", 600)
        .With("memory", 300 * kGiB)
        .With("grouping", "late")
        .With("late_ms", random_.Between(100, 900))
        .With("min", 2)
        .With("run", kForever);
  }

  // The leader's evictions get no answer, then it hears nothing of pods, and what they were for
  // goes.
  void HangingEvictions() {
    const int64_t at = random_.Between(25 * kSecond, 45 * kSecond);
    Queue("corner-hang");
    // Only this node takes these pods, and one takes the room of all others.
    At(0, "node").With("name", "corner-hang").With("cpu", 64'000).With("memory", 4096 * kGiB);
    const auto job = [&](int64_t when, const char* name, const char* priority_class) -> Operation& {
      Operation& added = Job(when, name, "corner-hang");
      added.With("memory", 300 * kGiB).With("class", priority_class).With("grouping", "none");
      return added;
    };
    job(kSecond, "corner-hang-low", "train")
        .With("pods", 8)
        .With("cpu", 7500)
        .With("run", kForever);
    At(at - kSecond, "refuse")
        .With("replica", "leader")
        .With("prefix", "/api/v1/namespaces")
        .With("suffix", "/eviction")
        .With("status", 0)
        .With("for_ms", 70 * kSecond);
    job(at, "corner-hang-high", "high").With("pods", 1).With("cpu", 62'000).With("run", kForever);
    At(at + 500, "blind")
        .With("replica", "leader")
        .With("prefix", "/api/v1/pods")
        .With("status", 403)
        .With("for_ms", 100 * kSecond);
    At(at + 2 * kSecond, "delete-job").With("name", "corner-hang-high");
  }

  void Lease() {
    const int64_t at = random_.Between(40 * kSecond, plan_.end_ms - 30 * kSecond);
    if (OneIn(2)) {
      At(at, "network")
          .With("replica", "leader")
          .With("min_delay_ms", random_.Between(5, 9) * kSecond)
          .With("max_delay_ms", random_.Between(10, 14) * kSecond)
          .With("for_ms", 25 * kSecond);
    } else {
      const int64_t behind = random_.Between(15, 30) * kSecond;
      At(at - behind - 5 * kSecond, "network")
          .With("replica", "standby")
          .With("min_watch_delay_ms", behind)
          .With("max_watch_delay_ms", behind + 5 * kSecond)
          .With("for_ms", behind + 25 * kSecond);
      At(at, "partition")
          .With("replica", "leader")
          .With("for_ms", random_.Between(20, 40) * kSecond);
    }
    Flow(at - 25 * kSecond);
  }

  // Nothing else is wrong, so that the other replica could lead.
  void HungLeader() {
    std::erase_if(plan_.operations, [](const Operation& each) {
      return each.verb == "hang" || each.verb == "partition" || each.verb == "half-open";
    });
    plan_.end_ms = std::max(plan_.end_ms, 200 * kSecond);
    At(random_.Between(30 * kSecond, 60 * kSecond), "hang")
        .With("replica", "leader")
        .With("for_ms", 100 * kSecond);
  }

  void Watch() {
    plan_.paced = true;
    const int64_t at = random_.Between(25 * kSecond, 45 * kSecond);
    Queue("corner");
    // Only this node takes these pods, and one takes the room of all others.
    constexpr int64_t kPods = 24;
    At(0, "node").With("name", "corner").With("cpu", 64'000).With("memory", 2048 * kGiB);
    const auto job = [&](int64_t when, const char* name, const char* priority_class) -> Operation& {
      Operation& added = Job(when, name, "corner");
      added.With("memory", 70 * kGiB).With("class", priority_class).With("grouping", "none");
      return added;
    };
    job(kSecond, "corner-low", "train").With("pods", kPods).With("cpu", 2500).With("run", kForever);
    At(at, "blind")
        .With("replica", "leader")
        .With("prefix", "/api/v1/nodes")
        .With("status", 403)
        .With("for_ms", 120 * kSecond);
    job(at + random_.Between(48, 54) * kSecond, "corner-high", "high")
        .With("pods", 1)
        .With("cpu", 62'000)
        .With("run", 20);
  }

  // A pod for which consolidation is searched in vain in every cycle, at the price of the whole
  // budget, and that preemption would help.
  void Search() {
    if (plan_.hook) return;
    plan_.max_search_work = 1;
    Queue("corner");
    // Only these nodes take these pods; each has idle room, and none takes another one's pods.
    constexpr int64_t kCount = 3;
    for (int64_t i = 0; i < kCount; ++i) {
      At(0, "node")
          .With("name", absl::StrCat("corner", i))
          .With("cpu", 17'000)
          .With("memory", 400 * kGiB);
    }
    const auto job = [&](int64_t at, const char* name, const char* priority_class, int64_t pods,
                         int64_t cpu) {
      Job(at, name, "corner")
          .With("pods", pods)
          .With("cpu", cpu)
          .With("memory", 70 * kGiB)
          .With("class", priority_class)
          .With("grouping", "none")
          .With("run", kForever);
    };
    job(1, "corner-stays", "build", kCount, 9000);
    job(2 * kSecond, "corner-low", "train", kCount, 5000);
    job(plan_.end_ms - random_.Between(5, 30) * kSecond, "corner-soon", "high", 1, 5500);
  }

  void Groups() {
    Queue("corner");
    const int64_t at = random_.Between(2 * kSecond, plan_.end_ms - 20 * kSecond);
    const bool complete = OneIn(2);
    Operation& group = At(at, "group").With("ns", "team-a").With("name", "corner-group");
    group.With("min", complete ? 3 : 6);
    Job(at + 10, "corner-pods", complete ? "q1" : "corner")
        .With("pods", 3)
        .With("cpu", 500)
        .With("group", "corner-group")
        .With("run", kForever);
    if (complete) {
      plan_.operations[plan_.operations.size() - 2].With("queue", "corner");
      At(std::max(plan_.end_ms, at) + 120 * kSecond, "delete-group")
          .With("ns", "team-a")
          .With("name", "corner-group");
      return;
    }
    // It is never complete, so it waits.
    const auto label = [&](int64_t when, const char* key, const std::string& value) {
      At(when, "label-pods")
          .With("job", "corner-pods")
          .With("last", 1)
          .With("key", key)
          .With("value", value);
    };
    const int64_t then = at + random_.Between(1, 5) * kSecond;
    label(then, "kai.scheduler/queue", "q1");
    label(then + random_.Between(100, 5000), "kai.scheduler/task-priority", "7");
  }

  void Hostile() {
    static constexpr char kMost[] = "9223372036854775807";
    const int64_t at = random_.Between(20 * kSecond, plan_.end_ms - 20 * kSecond);
    Operation& pod = At(at, "pod").With("name", "corner-huge").With("ns", "team-b");
    pod.With("scheduler", "default-scheduler").With("node", "n0");
    pod.With("cpu", kMost).With("memory", kMost).With("gpu", kMost);
    if (!OneIn(3)) pod.With("run", 10);
    Flow(at - 15 * kSecond);
  }

  // Pods come and go all the time, and more wait than there is room for.
  void Flow(int64_t at) {
    Queue("corner");
    Job(at, "corner-flow", "corner")
        .With("pods", 36)
        .With("cpu", 7000)
        .With("gap_ms", 1000)
        .With("grouping", "none")
        .With("run", random_.Between(8, 16));
  }

  void Network() {
    const int64_t at = random_.Between(20 * kSecond, plan_.end_ms - 40 * kSecond);
    Operation& slow = At(at, "network").With("replica", "leader").With("for_ms", 40 * kSecond);
    if (OneIn(2)) {
      slow.With("lose_answer", 400).With("min_watch_delay_ms", 3000);
      slow.With("max_watch_delay_ms", 5000);
      // Of a pod whose binding is refused for ever the outcome was unknown before.
      if (plan_.seed % 3 == 2) {
        for (int64_t i = 12; i < 18; ++i) {
          At(at, "refuse-binding").With("name", absl::StrCat("corner-flow-", i));
        }
      }
      // A read of the pod does not tell whether its binding was done.
      if (OneIn(2)) {
        At(at, "refuse")
            .With("replica", "leader")
            .With("method", "GET")
            .With("prefix", "/api/v1/namespaces/team-a/pods/")
            .With("status", 403)
            .With("for_ms", 40 * kSecond);
      }
    } else {
      slow.With("max_delay_ms", 3000);
      Job(at + kSecond, "corner-stays", "corner")
          .With("pods", 2 * nodes_)
          .With("cpu", 7000)
          .With("gap_ms", 1500)
          .With("grouping", "none")
          .With("run", kForever);
    }
    Flow(at - 10 * kSecond);
  }

  // Bindings and requests for nodes are done, and the answer says that they may not be; the watches
  // show them seconds later.
  void DoubtfulWrites() {
    const int64_t at = random_.Between(20 * kSecond, plan_.end_ms - 40 * kSecond);
    At(at, "network")
        .With("replica", "leader")
        .With("min_watch_delay_ms", 6000)
        .With("max_watch_delay_ms", 8000)
        .With("for_ms", 40 * kSecond);
    for (const char* write : {"create-pods/binding", "create-noderequests"}) {
      At(at, "answer")
          .With("replica", "leader")
          .With("write", write)
          .With("status", 504)
          .With("served", 1)
          .With("chance", 700)
          .With("for_ms", 40 * kSecond);
    }
    Flow(at - 10 * kSecond);
  }

  void Odd() {
    if (!plan_.hook) return;
    Queue("corner");
    plan_.operations.back().With("gpu_limit", 2);
    const int64_t at = random_.Between(500, plan_.end_ms - 40 * kSecond);
    const auto job = [&](int64_t when, const char* name) -> Operation& {
      return Job(when, name, "corner")
          .With("pods", 1)
          .With("gpu", 2)
          .With("cpu", 2000)
          .With("memory", 70 * kGiB)  // no static node has as much
          .With("grouping", "none")
          .With("run", kForever);
    };
    Operation& odd = job(at, "corner-odd").With("class", "high");
    if (plan_.seed % 2 == 0) {
      odd.With("odd", "selector");
    } else {
      odd.With("near", "no-such-app");
    }
    job(at + random_.Between(5, 30) * kSecond, "corner-next");
  }

  void DeletedQueue() {
    Queue("corner-gone");
    Job(random_.Between(500, plan_.end_ms / 2), "corner-rest", "corner-gone")
        .With("pods", 2)
        .With("cpu", 1000)
        .With("grouping", "none")
        .With("run", kForever);
    At(plan_.end_ms - random_.Between(1, 20) * kSecond, "delete-queue").With("name", "corner-gone");
  }

  // A queue without a quota holds all GPUs of a node for ever, and one within its quota needs some.
  void Reclaim() {
    constexpr int64_t kGpus = 8;
    const int64_t at = random_.Between(30 * kSecond, plan_.end_ms - 10 * kSecond);
    Queue("corner-giver");
    At(0, "queue").With("name", "corner-taker").With("parent", "root").With("gpu_quota", kGpus);
    At(0, "node")
        .With("name", "corner-reclaim")
        .With("cpu", 16'000)
        .With("memory", 64 * kGiB)
        .With("gpu", kGpus);
    const bool gang = OneIn(3);
    Job(kSecond, "corner-holds", "corner-giver")
        .With("pods", kGpus * (gpu_nodes_ + 1))
        .With("gpu", 1)
        .With("cpu", 500)
        .With("class", "train")
        .With("grouping", "none")
        .With("run", kForever);
    Job(at, "corner-takes", "corner-taker")
        .With("pods", gang ? 2 : 1)
        .With("gpu", gang ? 2 : random_.Between(1, kGpus))
        .With("cpu", 500)
        .With("class", "train")
        .With("grouping", gang ? "own" : "none")
        .With("min", gang ? 2 : 1)
        .With("run", kForever);
  }

  const std::set<std::string, std::less<>>& families_;
  int64_t nodes_ = 0, gpu_nodes_ = 0;
};

}  // namespace

const std::set<std::string, std::less<>>& CornerFamilies() {
  static const auto* const kFamilies = new std::set<std::string, std::less<>>{"demand", "search"};
  return *kFamilies;
}

void AddCorners(uint64_t seed, const std::set<std::string, std::less<>>& families, Plan& plan) {
  Corners(seed, families, plan).Add();
}

}  // namespace fairlead::sim::world
