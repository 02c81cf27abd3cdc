#include <algorithm>

#include "sim/world/plan_draft.h"

namespace fairlead::sim::world {

void PlanTenants::Tenants() {
  Times(3, 12, [&] {
    const int64_t at = Sometime();
    const std::string& job = Any(jobs_);
    switch (random_.Below(6)) {
      case 0:
        At(at, "delete-job").With("name", job);
        break;
      case 1:
        At(at, "scale-job").With("name", job).With("pods", random_.Between(0, 6));
        break;
      case 2:
        At(at, "delete-pods").With("job", job);
        break;
      case 3:
        At(at, "delete-pods").With("job", job).With("first", 1);
        break;
      case 4:
        At(at, "label-pods")
            .With("job", job)
            .With("key", "kai.scheduler/queue")
            .With("value", OneIn(4) ? "no-such-queue" : Any(queues_));
        break;
      default:
        At(at, "label-pods")
            .With("job", job)
            .With("key", "priorityClassName")
            .With("value", Any(classes_));
    }
  });
}

void PlanTenants::QueueChanges() {
  Times(2, 7, [&] {
    const int64_t at = Sometime();
    const std::string name = Any(queues_);
    switch (random_.Below(6)) {
      case 5:  // a root of its own is deleted and made again
        At(at, "change-queue").With("name", name).With("gpu_limit", random_.Between(4, 16));
        At(at + 2 * kSecond, "delete-queue").With("name", name);
        At(at + random_.Between(2001, 20'000), "queue")
            .With("name", name)
            .With("gpu_limit", random_.Between(4, 16));
        break;
      case 0:
        Queue(At(at, "change-queue"), name);
        break;
      case 1:  // deleted and made again
        At(at, "delete-queue").With("name", name);
        Queue(At(at + random_.Between(1, 20'000), "queue"), name);
        break;
      case 2:  // its quota is above its limit
        At(at, "change-queue")
            .With("name", name)
            .With("parent", "root")
            .With("gpu_quota", 12)
            .With("gpu_limit", 4);
        break;
      case 3:  // a root of its own
        At(at, "change-queue").With("name", name).With("gpu_limit", random_.Between(4, 16));
        break;
      default:
        At(at, "change-queue").With("name", name).With("parent", OneIn(2) ? name : "no-such-queue");
        Queue(At(at + random_.Between(1000, 30'000), "change-queue"), name);
    }
  });
}

void PlanTenants::Groups() {
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
      At(at, "delete-group").With("ns", ns).With("name", jobs_[index]);
      if (OneIn(2)) {
        At(at + random_.Between(1, 15'000), "group")
            .With("ns", ns)
            .With("name", jobs_[index])
            .With("queue", Any(queues_))
            .With("min", random_.Between(1, 5));
      }
    } else {
      At(at, "change-group")
          .With("ns", ns)
          .With("name", jobs_[index])
          .With("queue", Any(queues_))
          .With("min", random_.Between(1, 6));
    }
  });
}

void PlanTenants::Hostile() {
  static const std::vector<std::string> kAmounts = {"9223372036854775807", "-1", "0", "1e30",
                                                    "4611686018427387904"};
  Times(1, 4, [&] {
    const std::string name = absl::StrCat("h", jobs_.size(), "-", plan_.operations.size());
    Operation& pod = At(Sometime(), "pod");
    pod.With("name", name).With("ns", "team-a").With("queue", Any(queues_));
    pod.With("scheduler", OneIn(2) ? "default-scheduler" : "fairlead");
    pod.With("gpu", Any(kAmounts)).With("run", 10);
  });
  Times(1, 3, [&] {
    At(Sometime(), "annotate-pods")
        .With("job", Any(jobs_))
        .With("key", Any(std::vector<std::string>{"pod-group-name", "gpu-fraction", "gpu-memory",
                                                  "kai.scheduler/staleness-grace-period"}))
        .With("value",
              Any(std::vector<std::string>{"0.5", "no such group", "-1", "x/../y", "1e9"}));
  });
  Times(0, 2, [&] {
    At(Sometime(), "queue")
        .With("name", absl::StrCat("odd", plan_.operations.size()))
        .With("parent", "root")
        .With("gpu_limit", Any(std::vector<std::string>{"1e30", "-7", "0"}))
        .With("gpu_quota", Any(std::vector<std::string>{"1e30", "-7", "9223372036854775807"}));
  });
}

void PlanTenants::Odd() {
  static const std::vector<std::string> kOdd = {"selector", "volume", "gated", "namespace-affinity",
                                                "namespace-anti-affinity"};
  Times(1, 4, [&] {
    Operation& job = Job(Sometime());
    job.With("pods", random_.Between(1, 3)).With("min", 1).With("gpu", random_.Between(0, 2));
    job.With("grouping", OneIn(2) ? "none" : "own").With("odd", Any(kOdd)).With("run", 10);
  });
}

void PlanTenants::Shares() {
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
    At(at + random_.Between(1000, 15'000), "annotate-pods")
        .With("job", name)
        .With("key", "pod-group-name")
        .With("value", OneIn(2) ? name : Any(jobs_));
  });
}

void PlanTenants::Budgets() {
  Times(1, 3, [&] {
    const int64_t at = Sometime();
    const std::string job = Any(jobs_);
    // What else there is to decide, the time decides: a draw more would change all that follows.
    At(at, "budget")
        .With("name", job)
        .With("min", random_.Between(0, 2))
        .With("unhealthy", at % 2 == 0 ? "AlwaysAllow" : "IfHealthyBudget");
    At(std::min(at + at % (30 * kSecond), plan_.end_ms - kSecond), "unready")
        .With("name", job)
        .With("for_ms", 20 * kSecond);
  });
}

}  // namespace fairlead::sim::world
