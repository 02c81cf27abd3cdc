#include "sim/world/plan_draft.h"

namespace fairlead::sim::world {

void PlanWork::Cluster() {
  const int64_t nodes = random_.Between(plan_.hook ? 1 : 2, 5);
  for (int64_t i = 0; i < nodes; ++i) {
    nodes_.push_back(absl::StrCat("n", i));
    At(0, "node")
        .With("name", nodes_.back())
        .With("cpu", 16'000)
        .With("memory", 64 * kGiB)
        .With("gpu", OneIn(4) ? 0 : 8)
        .With("zone", OneIn(2) ? "zone-a" : "zone-b");
  }
}

void PlanWork::Bound(Operation& queue, const char* key, int64_t low, int64_t high,
                     uint64_t one_in) {
  if (OneIn(one_in)) queue.With(key, random_.Between(low, high));
}

void PlanWork::Queues() {
  Operation& root = At(0, "queue").With("name", "root");
  Bound(root, "gpu_limit", 8, 40, 3);
  for (int64_t i = random_.Between(2, 4); i > 0; --i) {
    queues_.push_back(absl::StrCat("q", i));
    Queue(At(0, "queue"), queues_.back());
  }
}

void PlanWork::Queue(Operation& queue, const std::string& name) {
  queue.With("name", name).With("parent", "root").With("gpu_quota", random_.Between(0, 8));
  Bound(queue, "gpu_limit", 8, 16, 3);
  Bound(queue, "cpu_limit", 20'000, 60'000, 5);
  if (OneIn(4)) queue.With("priority", random_.Between(1, 3) * 100);
}

// Fields that every job has.
Operation& PlanWork::Job(int64_t at_ms) {
  jobs_.push_back(absl::StrCat("j", jobs_.size()));
  return At(at_ms, "job")
      .With("name", jobs_.back())
      .With("ns", OneIn(2) ? "team-a" : "team-b")
      .With("queue", Any(queues_));
}

void PlanWork::Work() {
  Times(20, 45, [&] {
    const bool gang = OneIn(2);
    const int64_t pods = random_.Between(1, 5);
    Operation& job = Job(random_.Between(500, plan_.end_ms - 5 * kSecond));
    job.With("pods", pods).With("gpu", OneIn(4) ? 0 : random_.Between(1, 2));
    job.With("cpu", random_.Between(1, 4) * 500).With("memory", random_.Between(1, 4) * kGiB);
    // Most pods of a KAI cluster have a PodGroup.
    job.With("grouping", OneIn(5) ? "none" : "own").With("min", gang ? pods : 1);
    job.With("run", random_.Between(3, 25));
    if (!OneIn(4)) return;
    job.With("class", Any(classes_));
    if (OneIn(4)) job.With("class_in", "label");
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
void PlanWork::Burst() {
  Job(random_.Between(500, plan_.end_ms / 2))
      .With("pods", random_.Between(8, 16))
      .With("gpu", 1)
      .With("cpu", 500)
      .With("grouping", "none")
      .With("gap_ms", random_.Between(5, 60))
      .With("run", random_.Between(20, 60));
}

}  // namespace fairlead::sim::world
