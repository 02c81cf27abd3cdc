#include "sim/world/plan_devices.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sim/world/device_facts.h"
#include "sim/world/plan_dice.h"

namespace fairlead::sim::world {
namespace {

constexpr uint64_t kDeviceSalt = 0xe7037ed1a0b428dbULL;
// Above the number of any device: selectors that differ, and match the same devices.
constexpr int64_t kFirstLot = 1000;
// Of devices that only a corner uses.
constexpr char kCornerModel[] = "c";

class Devices : PlanDice {
 public:
  Devices(uint64_t seed, Plan& plan) : PlanDice(seed * kDeviceSalt + 17, plan) {
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
    Times(5, 12, [&] { Work(); });
    Times(1, 4, [&] { NewGeneration(); });
    Times(0, 3, [&] { At(Sometime(), "delete-claims").With("job", Any(jobs_)); });
    Times(0, 2, [&] { GroupGoes(); });
    if (OneIn(3)) RefusedClaim();
    if (OneIn(4)) {
      const int64_t at = Sometime();
      At(at, "delete-device-class").With("name", "sim-a");
      At(at + random_.Between(1, 20'000), "device-class").With("name", "sim-a").With("model", "a");
    }
    if (OneIn(3)) Answers();
    if (OneIn(3)) Crashes();
  }

  // Jobs whose pods request an extended resource that a class gives.
  void AddExtended() {
    if (OneIn(2)) return;
    Times(1, 4, [&] { ExtendedWork(); });
    if (!OneIn(3)) return;
    const int64_t at = Sometime();
    At(at, "delete-device-class").With("name", kExtendedClass);
    SetExtendedClass(at + random_.Between(1, 20'000));
  }

  void AddCorners() {
    // So many selectors take their time: only some worlds have them.
    if (plan_.seed % 6 == 3) ManySelectors();
    if (plan_.seed % 3 == 1) GroupGone();
    if (plan_.seed % 3 == 2) RefusedGang();
  }

 private:
  void Cluster() {
    SetExtendedClass(0);
    At(0, "device-class").With("name", "sim-a").With("model", "a");
    for (const std::string& node : nodes_) SetDevices(0, node);
    if (OneIn(2)) SetDevices(0, "*");
  }

  // The class of every device but the corners', which gives the extended resource.
  void SetExtendedClass(int64_t at) {
    At(at, "device-class")
        .With("name", kExtendedClass)
        .With("but", kCornerModel)
        .With("gives", kExtendedResource);
  }

  void SetDevices(int64_t at, const std::string& node) {
    static const std::vector<std::string> kModels = {"a", "a,b", "b"};
    At(at, "devices")
        .With("node", node)
        .With("count", random_.Between(1, 6))
        .With("models", Any(kModels));
  }

  void NewGeneration() { SetDevices(Sometime(), Any(nodes_)); }

  Operation& Job(int64_t at, const std::string& name, const std::string& queue) {
    return At(at, "job").With("name", name).With("ns", "team-a").With("queue", queue);
  }

  // A job of the family: its selector is its own.
  Operation& NextJob(int64_t at) {
    jobs_.push_back(absl::StrCat("d", jobs_.size()));
    Operation& job = Job(at, jobs_.back(), Any(queues_));
    job.With("cpu", random_.Between(1, 4) * 500);
    job.With("device_class", OneIn(3) ? "sim-a" : "sim-any");
    if (OneIn(4)) job.With("device_model", OneIn(2) ? "a" : "b");
    // One in five asks for another device than the first of each node.
    const auto number = static_cast<int64_t>(jobs_.size());
    return job.With("device_lot", OneIn(5) ? 0 : kFirstLot + number);
  }

  // How many pods it has, as what, for how long and how urgent.
  void Shape(Operation& job, int64_t pods) {
    job.With("pods", pods).With("grouping", OneIn(4) ? "none" : "own");
    job.With("min", OneIn(2) ? pods : 1);
    if (OneIn(6)) {
      job.With("kind", "deployment");
    } else {
      job.With("run", random_.Between(3, 25));
    }
    if (OneIn(4)) job.With("class", OneIn(2) ? "train" : "high");
  }

  void Work() {
    const int64_t pods = random_.Between(1, 4);
    Operation& job = NextJob(random_.Between(500, plan_.end_ms - 5 * kSecond));
    const uint64_t kind = random_.Below(6);
    job.With("claim", kind < 4 ? "own" : kind == 4 ? "shared" : "both");
    job.With("devices", random_.Between(1, 2));
    Shape(job, pods);
  }

  void ExtendedWork() {
    const int64_t pods = random_.Between(1, 4);
    jobs_.push_back(absl::StrCat("x", jobs_.size()));
    Operation& job =
        Job(random_.Between(500, plan_.end_ms - 5 * kSecond), jobs_.back(), Any(queues_));
    job.With("cpu", random_.Between(1, 4) * 500).With("extended", random_.Between(1, 2));
    Shape(job, pods);
  }

  // It may come back, with another minimum.
  void GroupGoes() {
    const int64_t at = Sometime();
    const std::string job = Any(jobs_);
    At(at, "delete-group").With("ns", "team-a").With("name", job);
    if (!OneIn(2)) return;
    At(at + random_.Between(1, 15'000), "group")
        .With("ns", "team-a")
        .With("name", job)
        .With("queue", Any(queues_))
        .With("min", random_.Between(1, 3));
  }

  // A webhook does not let the claim of one pod of a gang be allocated.
  void RefusedClaim() {
    const int64_t pods = random_.Between(2, 4);
    Operation& job = NextJob(Sometime()).With("claim", "own").With("pods", pods);
    job.With("min", pods).With("grouping", "own").With("run", kForever);
    At(0, "refuse-claims")
        .With("prefix", absl::StrCat(jobs_.back(), "-", random_.Below(pods), "-"));
  }

  const char* ClaimWrite() {
    return OneIn(3) ? "patch-resourceclaims" : "patch-resourceclaims/status";
  }

  void Answers() {
    static const std::vector<int64_t> kStatus = {404, 409, 422, 429, 500, 503, 504, 0};
    Times(1, 3, [&] {
      const int64_t status = Any(kStatus);
      Operation& answer = At(Sometime(), "answer");
      answer.With("replica", "leader").With("write", ClaimWrite()).With("status", status);
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
          .With("write", ClaimWrite())
          .With("when", OneIn(2) ? "before" : "after")
          .With("count", random_.Between(1, 4))
          .With("down_ms", random_.Between(10, 10'000));
    });
  }

  // ---- corners

  // A tree of its own, so that limits of others do not decide.
  void Queue(const std::string& name, int64_t gpu_quota = 0) {
    At(0, "queue").With("name", name).With("gpu_quota", gpu_quota);
  }
  void Node(const std::string& name, int64_t devices, const char* model = "a") {
    At(0, "node").With("name", name).With("cpu", 16'000).With("memory", 64 * kGiB);
    At(0, "devices").With("node", name).With("count", devices).With("models", model);
  }

  void ManySelectors() {
    Queue("corner-lots");
    Node("corner-lots", 24, kCornerModel);
    At(0, "device-class").With("name", "corner-lots").With("model", kCornerModel);
    Job(kSecond, "corner-lots", "corner-lots")
        .With("pods", 290)
        .With("gap_ms", 600)
        .With("cpu", 200)
        .With("grouping", "none")
        .With("claim", "own")
        .With("device_class", "corner-lots")
        .With("device_lot", "each")
        .With("run", 1);
  }

  // The claim's label names the queue of the pod's own label.
  void GroupGone() {
    Queue("corner-of-pod", 4);
    Queue("corner-of-group");
    Node("corner-gone", 2);
    At(0, "device-class").With("name", "gpu.nvidia.com");
    const int64_t at = random_.Between(2 * kSecond, plan_.end_ms / 2);
    At(at, "group")
        .With("ns", "team-a")
        .With("name", "corner-gone")
        .With("queue", "corner-of-group")
        .With("min", 1);
    Job(at + 10, "corner-gone", "corner-of-pod")
        .With("pods", 1)
        .With("cpu", 500)
        .With("group", "corner-gone")
        .With("claim", "shared")
        .With("claim_queue", "corner-of-pod")
        .With("device_class", "gpu.nvidia.com")
        .With("run", kForever);
    const int64_t gone = at + random_.Between(5, 30) * kSecond;
    At(gone, "delete-group").With("ns", "team-a").With("name", "corner-gone");
    At(gone + random_.Between(1, 10) * kSecond, "group")
        .With("ns", "team-a")
        .With("name", "corner-gone")
        .With("queue", "corner-of-pod")
        .With("min", 1);
  }

  void RefusedGang() {
    Queue("corner-refused");
    Node("corner-refused", 3);
    const int64_t at = random_.Between(2 * kSecond, plan_.end_ms / 2);
    Job(at, "corner-refused", "corner-refused")
        .With("pods", 3)
        .With("min", 3)
        .With("cpu", 500)
        .With("grouping", "own")
        .With("claim", "own")
        .With("device_lot", kFirstLot)
        .With("run", kForever);
    At(0, "refuse-claims").With("prefix", "corner-refused-2-");
    Job(at + random_.Between(5, 30) * kSecond, "corner-beside", "corner-refused")
        .With("pods", 2)
        .With("cpu", 500)
        .With("grouping", "none")
        .With("claim", "own")
        .With("device_lot", kFirstLot)
        .With("run", 20);
  }

  std::vector<std::string> nodes_, queues_, jobs_;
};

}  // namespace

bool DrawsDevices(uint64_t seed) { return Random(seed * kDeviceSalt + 19).Below(4) == 0; }

void AddDevices(uint64_t seed, bool corners, Plan& plan) {
  Devices devices(seed, plan);
  devices.Add();
  if (corners) devices.AddCorners();
  devices.AddExtended();
}

}  // namespace fairlead::sim::world
