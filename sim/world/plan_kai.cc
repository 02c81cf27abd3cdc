#include "sim/world/plan_kai.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sim/world/plan_dice.h"

namespace fairlead::sim::world {
namespace {

constexpr uint64_t kKaiDice = 0x6b61695f737461ULL;
// How late a successor of the same name may come.
constexpr int64_t kSoon = 3 * kSecond;

class KaiWork : PlanDice {
 public:
  KaiWork(uint64_t seed, Plan& plan) : PlanDice(seed ^ kKaiDice, plan) {}

  void Draw() {
    for (const std::string& queue : kQueues) Queue(0, "queue", queue);
    for (int64_t j = random_.Between(4, 8); j > 0; --j) Job(absl::StrCat("kai", j));
    Times(2, 5, [&] { ChangeQueue(); });
    Times(1, 4, [&] { Overwrite(); });
    Times(1, 4, [&] { Answer(); });
    if (OneIn(2)) Crash();
    if (OneIn(2)) RefusedStart();
  }

 private:
  const std::vector<std::string> kQueues = {"k1", "k2", "k3"};

  // At any depth, but never under itself.
  void Queue(int64_t at_ms, const char* verb, const std::string& name) {
    std::vector<std::string> parents = {"", "root"};
    for (const std::string& other : kQueues) {
      if (other < name) parents.push_back(other);
    }
    At(at_ms, verb).With("name", name).With("parent", Any(parents)).With("gpu_quota", 4);
  }

  void ChangeQueue() {
    const int64_t at = Sometime();
    const std::string& name = Any(kQueues);
    if (OneIn(2)) return Queue(at, "change-queue", name);
    At(at, "delete-queue").With("name", name);
    Queue(at + random_.Between(0, kSoon), "queue", name);
  }

  void Job(const std::string& name) {
    Operation& job = At(random_.Between(500, plan_.end_ms - 20 * kSecond), "job");
    job.With("name", name).With("ns", OneIn(2) ? "team-a" : "team-b").With("queue", Any(kQueues));
    job.With("pods", random_.Between(1, 4)).With("min", 1).With("gpu", random_.Between(0, 2));
    job.With("cpu", random_.Between(1, 4) * 500).With("memory", random_.Between(1, 4) * kGiB);
    job.With("grouping", OneIn(4) ? "none" : "own");
    job.With("run", OneIn(3) ? kForever : random_.Between(5, 40));
    if (OneIn(3)) job.With("class", OneIn(2) ? "build" : "high");
    if (job.Text("grouping") == "own" && OneIn(2)) ChangeGroup(Operation(job));
  }

  // To another queue, or made again under its name.
  void ChangeGroup(const Operation& job) {
    const int64_t at = random_.Between(job.at_ms, plan_.end_ms - kSecond);
    const bool anew = OneIn(2);
    const auto of_group = [&](int64_t at_ms, const char* verb) -> Operation& {
      return At(at_ms, verb).With("name", job.Text("name")).With("ns", job.Text("ns"));
    };
    if (anew) of_group(at, "delete-group");
    Operation& group =
        of_group(anew ? at + random_.Between(0, kSoon) : at, anew ? "group" : "change-group");
    group.With("queue", Any(kQueues)).With("min", 1);
    if (!job.Text("class").empty()) group.With("class", job.Text("class"));
  }

  void Overwrite() {
    Operation& write = At(Sometime(), "overwrite-status");
    if (OneIn(2)) {
      write.With("kind", "queue").With("name", OneIn(3) ? "root" : Any(kQueues));
    } else {
      const int64_t number = random_.Between(1, 4);
      write.With("kind", "group").With("name", absl::StrCat("kai", number));
      write.With("ns", OneIn(2) ? "team-a" : "team-b");
    }
    if (OneIn(3)) write.With("drop", 1);
  }

  void Answer() {
    static const std::vector<int64_t> kStatus = {403, 404, 409, 422, 429, 500, 503, 504, 0};
    static const std::vector<const char*> kKinds = {"patch-queues/status",
                                                    "patch-podgroups/status"};
    const int64_t status = Any(kStatus);
    Operation& answer = At(Sometime(), "answer").With("replica", "leader");
    answer.With("write", Any(kKinds)).With("status", status);
    answer.With("for_ms", random_.Between(2, 15) * kSecond);
    answer.With("chance", random_.Between(300, 1000));
    if ((status >= 500 || status == 0) && OneIn(2)) answer.With("served", 1);
    if (status == 429) answer.With("retry_after_ms", random_.Between(1, 8) * kSecond);
  }

  // Its counts change once, while they may not be written; what was refused has to be repeated.
  void RefusedStart() {
    static const std::vector<int64_t> kStatus = {403, 409, 500, 503, 0};
    const int64_t at = random_.Between(plan_.end_ms / 2, plan_.end_ms - 10 * kSecond);
    At(0, "queue").With("name", "k4").With("gpu_quota", 4);
    At(at, "answer")
        .With("replica", "leader")
        .With("write", OneIn(2) ? "patch-queues/status" : "patch-podgroups/status")
        .With("status", Any(kStatus))
        .With("for_ms", 8 * kSecond);
    At(at + 100, "job")
        .With("name", "refused")
        .With("ns", "team-a")
        .With("queue", "k4")
        .With("pods", 2)
        .With("min", 1)
        .With("cpu", 500)
        .With("grouping", "own")
        .With("run", kForever);
  }

  void Crash() {
    At(Sometime(), "crash-at")
        .With("replica", "leader")
        .With("write", "patch-queues/status")
        .With("when", OneIn(2) ? "before" : "after")
        .With("count", random_.Between(1, 4))
        .With("down_ms", random_.Between(10, 10'000));
  }
};

}  // namespace

bool DrawsKaiStatus(uint64_t seed) { return Random(seed ^ kKaiDice).Below(5) == 0; }

void AddKaiStatus(uint64_t seed, bool corners, Plan& plan) {
  plan.kai_status = true;
  if (corners) KaiWork(seed, plan).Draw();
}

}  // namespace fairlead::sim::world
