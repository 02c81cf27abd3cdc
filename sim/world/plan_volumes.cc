#include "sim/world/plan_volumes.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sim/world/plan_dice.h"

namespace fairlead::sim::world {
namespace {

constexpr uint64_t kVolumeSalt = 0x8ebc6af09c88c6e3ULL;

class VolumeWork : PlanDice {
 public:
  VolumeWork(uint64_t seed, Plan& plan) : PlanDice(seed * kVolumeSalt + 23, plan) {
    for (const Operation& each : plan.operations) {
      if (each.at_ms != 0) continue;
      if (each.verb == "node") nodes_.push_back(each.Text("name"));
      if (each.verb == "queue" && !each.Text("parent").empty()) {
        queues_.push_back(each.Text("name"));
      }
    }
  }

  void Add() {
    Cluster();
    Times(4, 9, [&] { Work(); });
    Times(1, 3, [&] { Stateful(); });
    Times(1, 5, [&] { People(); });
    if (OneIn(2)) Provisioner();
    if (OneIn(3)) RefusedClaim();
    if (OneIn(3)) Answers();
    if (OneIn(3)) Crashes();
  }

  void AddCorners() {
    switch (plan_.seed % 5) {
      case 0:
        return TwoGangs();
      case 1:
        return RefusedGang();
      case 2:
        return FullZone();
      case 3:
        return SilentProvisioner();
      default:
        return ManyAttached();
    }
  }

 private:
  void Class(const char* name, const char* where, bool immediate = false) {
    Operation& made = At(0, "storage-class").With("name", name).With("where", where);
    if (immediate) made.With("immediate", 1);
  }
  void LocalVolume(const std::string& node, const char* name_of_class = "local") {
    At(0, "volume")
        .With("name", absl::StrCat("pv-", node, "-", plan_.operations.size()))
        .With("class", name_of_class)
        .With("node", node)
        .With("gib", random_.Between(1, 3))
        .With("modes", OneIn(4) ? "ReadWriteOnce,ReadWriteMany,ReadWriteOncePod" : "");
  }

  void Cluster() {
    Class("zonal", "zone");
    Class("label", "label");
    Class("host", "host");
    Class("local", "none");
    Class("now", "zone", /*immediate=*/true);
    for (const std::string& node : nodes_) {
      Times(0, 3, [&] { LocalVolume(node); });
      if (OneIn(3)) At(0, "csi-node").With("name", node).With("count", random_.Between(1, 5));
    }
  }

  Operation& Job(int64_t at, const std::string& name, const std::string& queue) {
    return At(at, "job").With("name", name).With("ns", "team-a").With("queue", queue);
  }

  Operation& NextJob(int64_t at) {
    static const std::vector<std::string> kClasses = {"zonal", "zonal", "label",
                                                      "host",  "local", "now"};
    jobs_.push_back(absl::StrCat("v", jobs_.size()));
    Operation& job = Job(at, jobs_.back(), Any(queues_));
    job.With("cpu", random_.Between(1, 4) * 500).With("gpu", OneIn(3) ? 1 : 0);
    job.With("volume_class", Any(kClasses)).With("volume_gib", random_.Between(1, 3));
    return job;
  }

  void Work() {
    const int64_t pods = random_.Between(1, 4);
    Operation& job = NextJob(random_.Between(500, plan_.end_ms - 5 * kSecond));
    static const std::vector<std::string> kKinds = {"own",       "own",    "own",
                                                    "ephemeral", "shared", "both"};
    job.With("volume", Any(kKinds));
    if (OneIn(2)) job.With("volume_modes", "ReadWriteOncePod");
    if (OneIn(5)) job.With("volume_of", Any(jobs_));
    job.With("pods", pods).With("grouping", OneIn(3) ? "none" : "own");
    job.With("min", OneIn(2) ? pods : 1).With("run", random_.Between(3, 25));
    if (OneIn(5)) job.With("class", OneIn(2) ? "train" : "high");
  }

  void Stateful() {
    const int64_t pods = random_.Between(1, 3);
    Operation& job = NextJob(random_.Between(500, plan_.end_ms / 2));
    job.With("kind", "stateful").With("volume", OneIn(4) ? "both" : "own");
    job.With("pods", pods).With("grouping", OneIn(2) ? "none" : "own");
    job.With("min", OneIn(2) ? pods : 1);
    const std::string name = jobs_.back();
    Times(1, 3, [&] {
      Operation& gone = At(Sometime(), "delete-pods").With("job", name);
      if (OneIn(2)) gone.With("first", 1);
    });
  }

  void People() {
    const int64_t at = Sometime();
    const std::string& job = Any(jobs_);
    switch (random_.Below(4)) {
      case 0:
        At(at, "delete-volume-claims").With("job", job);
        if (OneIn(2)) At(at + random_.Between(1, 5000), "delete-pods").With("job", job);
        break;
      case 1:
        At(at, "delete-volumes").With("job", job).With("force", OneIn(2) ? 1 : 0);
        break;
      case 2:
        At(at, "delete-pods").With("job", job);
        break;
      default:
        At(at, "csi-node").With("name", Any(nodes_)).With("count", random_.Between(1, 5));
    }
  }

  void Provisioner() {
    static const std::vector<std::string> kHow = {"slow", "slow", "silent", "refuses"};
    Times(1, 3, [&] {
      At(Sometime(), "provisioner")
          .With("how", Any(kHow))
          .With("for_ms", random_.Between(5, 60) * kSecond);
    });
    if (OneIn(2)) At(0, "provisioner").With("refuse_one_in", random_.Between(2, 6));
  }

  // A webhook does not let a node be selected for the claim of one pod of a gang.
  void RefusedClaim() {
    const int64_t pods = random_.Between(2, 4);
    Operation& job = NextJob(Sometime()).With("volume", "own").With("pods", pods);
    job.With("min", pods).With("grouping", "own").With("run", kForever);
    At(0, "refuse-claims").With("prefix", absl::StrCat("data-", jobs_.back(), "-", pods - 1));
  }

  const char* VolumeWrite() {
    return OneIn(3) ? "patch-persistentvolumes" : "patch-persistentvolumeclaims";
  }

  void Answers() {
    static const std::vector<int64_t> kStatus = {404, 409, 422, 429, 500, 503, 504, 0};
    Times(1, 3, [&] {
      const int64_t status = Any(kStatus);
      Operation& answer = At(Sometime(), "answer");
      answer.With("replica", "leader").With("write", VolumeWrite()).With("status", status);
      answer.With("for_ms", random_.Between(2, 20) * kSecond);
      answer.With("chance", random_.Between(100, 1000));
      // Only these may come though the write was done.
      if ((status >= 500 || status == 0) && OneIn(2)) answer.With("served", 1);
      if (status == 429) answer.With("retry_after_ms", random_.Between(1, 8) * kSecond);
    });
  }

  void Crashes() {
    Times(1, 2, [&] {
      At(Sometime(), "crash-at")
          .With("replica", "leader")
          .With("write", VolumeWrite())
          .With("when", OneIn(2) ? "before" : "after")
          .With("count", random_.Between(1, 4))
          .With("down_ms", random_.Between(10, 10'000));
    });
  }

  // ---- corners

  // A tree of its own, so that limits of others do not decide.
  void Queue(const std::string& name) { At(0, "queue").With("name", name).With("gpu_quota", 0); }
  void Node(const std::string& name, int64_t cpu, const char* zone) {
    At(0, "node").With("name", name).With("cpu", cpu).With("memory", 64 * kGiB).With("zone", zone);
  }

  void TwoGangs() {
    Queue("corner-local");
    Node("corner-local", 16'000, "zone-c");
    Class("corner-local", "none");
    Times(4, 4, [&] { LocalVolume("corner-local", "corner-local"); });
    for (const char* name : {"corner-one", "corner-two"}) {
      Job(random_.Between(2, 3) * kSecond, name, "corner-local")
          .With("pods", 3)
          .With("min", 3)
          .With("cpu", 500)
          .With("grouping", "own")
          .With("volume", "own")
          .With("volume_class", "corner-local")
          .With("run", random_.Between(10, 20));
      At(random_.Between(plan_.end_ms / 2, plan_.end_ms), "delete-volume-claims").With("job", name);
    }
  }

  void RefusedGang() {
    Queue("corner-refused");
    Node("corner-refused", 2000, "zone-c");
    At(0, "storage-class")
        .With("name", "corner-refused")
        .With("where", "zone")
        .With("zones", "zone-c");
    const int64_t at = random_.Between(2 * kSecond, plan_.end_ms / 2);
    Job(at, "corner-refused", "corner-refused")
        .With("pods", 3)
        .With("min", 3)
        .With("cpu", 500)
        .With("grouping", "own")
        .With("volume", "own")
        .With("volume_class", "corner-refused")
        .With("run", kForever);
    At(0, "refuse-claims").With("prefix", "data-corner-refused-2");
    Job(at + random_.Between(5, 30) * kSecond, "corner-beside", "corner-refused")
        .With("pods", 2)
        .With("cpu", 1000)
        .With("grouping", "none")
        .With("volume", "own")
        .With("volume_class", "corner-refused")
        .With("run", 20);
  }

  void FullZone() {
    Queue("corner-zone");
    Node("corner-zone", 2000, "zone-c");
    At(0, "storage-class")
        .With("name", "corner-zone")
        .With("where", OneIn(2) ? "zone" : "label")
        .With("zones", "zone-c");
    Job(2 * kSecond, "corner-state", "corner-zone")
        .With("kind", "stateful")
        .With("pods", 3)
        .With("cpu", 600)
        .With("grouping", "none")
        .With("volume", "own")
        .With("volume_class", "corner-zone");
    Times(3, 6, [&] {
      At(random_.Between(10 * kSecond, plan_.end_ms - kSecond), "delete-pods")
          .With("job", "corner-state")
          .With("first", random_.Between(1, 3));
    });
    At(random_.Between(20 * kSecond, plan_.end_ms / 2), "cordon-node")
        .With("name", "corner-zone")
        .With("on", 1);
    At(plan_.end_ms - kSecond, "cordon-node").With("name", "corner-zone").With("on", 0);
  }

  void SilentProvisioner() {
    Queue("corner-silent");
    const int64_t at = random_.Between(5 * kSecond, plan_.end_ms / 3);
    const int64_t silent = random_.Between(30, 60) * kSecond;
    At(at, "provisioner").With("how", "silent").With("for_ms", silent);
    Job(at + kSecond, "corner-silent", "corner-silent")
        .With("pods", 2)
        .With("min", 2)
        .With("cpu", 500)
        .With("grouping", "own")
        .With("volume", OneIn(2) ? "own" : "shared")
        .With("volume_class", "zonal")
        .With("run", kForever);
    if (OneIn(2)) {
      At(at + silent / 2, "delete-pods").With("job", "corner-silent").With("first", 1);
    }
    At(at + silent - 1, "provisioner").With("how", "refuses").With("for_ms", 10 * kSecond);
  }

  void ManyAttached() {
    Queue("corner-attached");
    Node("corner-attached", 16'000, "zone-c");
    At(0, "csi-node").With("name", "corner-attached").With("count", 3);
    At(0, "storage-class")
        .With("name", "corner-attached")
        .With("where", "zone")
        .With("zones", "zone-c");
    Job(2 * kSecond, "corner-attached", "corner-attached")
        .With("pods", random_.Between(6, 12))
        .With("cpu", 200)
        .With("grouping", "none")
        .With("volume", OneIn(2) ? "own" : "both")
        .With("volume_class", "corner-attached")
        .With("run", random_.Between(3, 10));
  }

  std::vector<std::string> nodes_, queues_, jobs_;
};

}  // namespace

bool DrawsVolumes(uint64_t seed) { return Random(seed * kVolumeSalt + 29).Below(5) == 0; }

void AddVolumeWork(uint64_t seed, bool corners, Plan& plan) {
  VolumeWork work(seed, plan);
  work.Add();
  if (corners) work.AddCorners();
}

}  // namespace fairlead::sim::world
