#include "sim/world/plan_owners.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sim/world/plan_dice.h"

namespace fairlead::sim::world {
namespace {

constexpr uint64_t kOwnersDice = 0x6f776e657273ULL;
constexpr char kJobsPath[] = "/apis/batch/v1";
// Nodes for more pods of one group are bought at once whatever the rate (docs/known-issues.md).
constexpr int64_t kMostPods = 6;

void Replace(Operation& operation, const std::string& key, const std::string& value) {
  std::erase_if(operation.arguments, [&](const auto& argument) { return argument.first == key; });
  operation.With(key, value);
}

class OwnersWork : PlanDice {
 public:
  OwnersWork(uint64_t seed, Plan& plan) : PlanDice(seed ^ kOwnersDice, plan) {}

  void Draw(bool corners) {
    GiveOwners();
    const int64_t more = corners ? random_.Between(4, 8) : random_.Between(1, 3);
    for (int64_t j = 0; j < more; ++j) Job(absl::StrCat("owned", j), "train");
    for (int64_t j = random_.Between(1, 3); j > 0; --j) Job(absl::StrCat("urgent", j), "high");
    Times(0, 2, [&] { Suspend(); });
    if (!corners) return;
    if (OneIn(2)) Refuse();
    if (OneIn(2)) Crash();
  }

 private:
  // Pods of sub-groups are told apart by what nothing of a Job says.
  void GiveOwners() {
    for (Operation& operation : plan_.operations) {
      if (operation.verb != "job" || operation.Number("sub_groups") > 0) continue;
      const std::string grouping = operation.Text("grouping");
      if (grouping == "own" && OneIn(3)) continue;
      const bool deploys =
          operation.Text("kind") == "deployment" || operation.Text("kind") == "stateful";
      if (deploys && grouping == "own") continue;
      if (grouping == "none" || grouping.empty() || deploys) Replace(operation, "min", "1");
      Replace(operation, "grouping", "owners");
      if (operation.Number("pods", 1) > kMostPods) {
        Replace(operation, "pods", absl::StrCat(kMostPods));
      }
      Slow(operation);
    }
  }

  void Slow(Operation& job) {
    if (OneIn(8)) job.With("suspend", "ignored");
    if (OneIn(4)) job.With("suspend_ms", random_.Between(100, 40 * kSecond));
  }

  void Job(const std::string& name, const char* priority_class) {
    const int64_t pods = random_.Between(1, 4);
    Operation& job = At(random_.Between(500, plan_.end_ms - 20 * kSecond), "job");
    job.With("name", name).With("ns", OneIn(2) ? "team-a" : "team-b").With("queue", Queue());
    job.With("pods", pods).With("min", OneIn(3) ? 1 : pods).With("gpu", random_.Between(1, 2));
    job.With("cpu", 500).With("memory", kGiB).With("class", priority_class);
    job.With("run", OneIn(3) ? kForever : random_.Between(10, 60)).With("grouping", "owners");
    Slow(job);
  }

  void Suspend() {
    std::vector<std::string> jobs;
    for (const Operation& operation : plan_.operations) {
      if (operation.verb == "job" && operation.Text("grouping") == "owners") {
        jobs.push_back(operation.Text("name"));
      }
    }
    const std::string& name = Any(jobs);
    At(Sometime(), "suspend-job")
        .With("name", name)
        .With("for_ms", random_.Between(1, 60) * kSecond);
  }

  // One without queues below it.
  std::string Queue() {
    std::set<std::string> parents;
    for (const Operation& operation : plan_.operations) {
      if (operation.verb == "queue") parents.insert(operation.Text("parent"));
    }
    std::vector<std::string> leaves;
    for (const Operation& operation : plan_.operations) {
      const std::string name = operation.Text("name");
      if (operation.verb == "queue" && !parents.contains(name)) leaves.push_back(name);
    }
    return leaves.empty() ? "default-queue" : Any(leaves);
  }

  void Refuse() {
    static const std::vector<int64_t> kStatus = {403, 500, 404, 0};
    At(Sometime(), "refuse")
        .With("replica", OneIn(2) ? "a" : "b")
        .With("method", OneIn(2) ? "PATCH" : "GET")
        .With("prefix", kJobsPath)
        .With("status", Any(kStatus))
        .With("for_ms", random_.Between(5, 60) * kSecond);
  }

  void Crash() {
    At(Sometime(), "crash")
        .With("replica", "leader")
        .With("down_ms", random_.Between(10, 5000))
        .With("at_write", random_.Between(1, 10));
  }
};

}  // namespace

bool DrawsOwners(uint64_t seed) { return Random(seed ^ kOwnersDice).Below(6) == 0; }

void AddOwners(uint64_t seed, bool corners, Plan& plan) {
  OwnersWork(seed * 0x9e3779b97f4a7c15ULL + 7, plan).Draw(corners);
}

}  // namespace fairlead::sim::world
