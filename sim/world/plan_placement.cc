// Labels and devices of nodes that change, pods that must be near or apart, and priority classes.
#include "sim/world/plan_draft.h"

namespace fairlead::sim::world {
namespace {

constexpr char kDisk[] = "example.com/disk";
constexpr char kZone[] = "topology.kubernetes.io/zone";
constexpr char kHost[] = "kubernetes.io/hostname";
// Longer than anything is unknown to the checks.
constexpr int64_t kNoticed = 12 * kSecond;

}  // namespace

Operation& PlanTenants::Few(const std::string& name, int64_t pods) {
  Operation& job = At(random_.Between(500, plan_.end_ms - 5 * kSecond), "job");
  job.With("name", name).With("ns", "team-a").With("queue", Any(queues_)).With("pods", pods);
  job.With("grouping", OneIn(2) ? "none" : "own").With("min", OneIn(3) ? pods : 1);
  return job.With("cpu", random_.Between(1, 4) * 500).With("gpu", OneIn(2) ? 0 : 1);
}

void PlanTenants::NodeChanges() {
  static const std::vector<std::string> kDisks = {"ssd", "hdd"};
  for (const std::string& node : nodes_) {
    At(0, "label-node").With("name", node).With("key", kDisk).With("value", Any(kDisks));
  }
  int64_t number = 0;
  Times(4, 10, [&] {
    Operation& job = Few(absl::StrCat("l", number++), random_.Between(1, 3));
    if (OneIn(2)) {
      job.With("select", absl::StrCat(kDisk, ":", Any(kDisks)));
    } else {
      job.With("zones", OneIn(2) ? "zone-a" : "zone-b,zone-c");
    }
    job.With("run", random_.Between(5, 30));
  });
  Times(2, 6, [&] {
    const bool zone = OneIn(3);
    Operation& change = At(Sometime(), "label-node").With("name", Any(nodes_));
    change.With("key", zone ? kZone : kDisk);
    if (!OneIn(4)) change.With("value", zone ? (OneIn(2) ? "zone-a" : "zone-c") : Any(kDisks));
  });
  Times(1, 3, [&] {  // a device is lost, and comes back
    const std::string node = Any(nodes_);
    const int64_t at = Sometime();
    At(at, "node-gpus").With("name", node).With("gpu", random_.Between(0, 7));
    At(at + random_.Between(kNoticed, 3 * kNoticed), "node-gpus").With("name", node).With("gpu", 8);
  });
}

void PlanTenants::BoundPods() {
  int64_t number = 0;
  const auto name = [&](const char* stem) { return absl::StrCat(stem, number++); };
  const auto topology = [&] { return OneIn(2) ? kHost : kZone; };
  Times(1, 3, [&] {  // others have to be near, or apart
    const std::string app = name("db");
    Few(app, 1).With("app", app).With("run", random_.Between(30, 90));
    Operation& near = Few(name("near"), random_.Between(1, 4)).With("app", "near");
    near.With("near", app).With("topology", topology()).With("run", random_.Between(5, 20));
    if (OneIn(2)) {
      Operation& far = Few(name("far"), random_.Between(1, 3)).With("app", "far");
      far.With("apart", app).With("topology", topology()).With("run", random_.Between(5, 40));
    }
  });
  Times(1, 3, [&] {  // each on a node or in a zone of its own
    const std::string app = name("solo");
    Operation& solo = Few(app, random_.Between(2, 5)).With("app", app).With("apart", app);
    solo.With("topology", topology()).With("run", random_.Between(5, 30));
  });
  Times(1, 3, [&] {
    const std::string app = name("spread");
    Operation& job = Few(app, random_.Between(2, 6)).With("app", app);
    job.With("spread", topology()).With("run", random_.Between(10, 40));
  });
}

void PlanTenants::Classes() {
  static const std::vector<int64_t> kValues = {20, 60, 90, 100, 125, -5, 1'000'000'000};
  static const std::vector<std::string> kNames = {"c0", "c1"};
  for (const std::string& each : kNames) {
    At(OneIn(2) ? 0 : Sometime(), "class").With("name", each).With("value", Any(kValues));
  }
  int64_t number = 0;
  Times(4, 10, [&] {
    Operation& job = Few(absl::StrCat("p", number++), random_.Between(1, 4));
    // A pod whose spec names a class that is not there is refused.
    job.With("class", Any(kNames)).With("class_in", "label").With("run", random_.Between(5, 40));
  });
  Times(2, 5, [&] {
    if (OneIn(3)) {
      At(Sometime(), "delete-class").With("name", Any(kNames));
    } else {
      At(Sometime(), "class").With("name", Any(kNames)).With("value", Any(kValues));
    }
  });
}

}  // namespace fairlead::sim::world
