#include "sim/world/plan_shards.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sim/world/facts.h"
#include "sim/world/plan_dice.h"

namespace fairlead::sim::world {
namespace {

constexpr uint64_t kShardDice = 0x736861726473ULL;

class Shards : PlanDice {
 public:
  Shards(uint64_t seed, Plan& plan) : PlanDice(seed ^ kShardDice, plan) {}

  void Draw() {
    for (const std::string& node : kNodes) Node(node);
    Theirs(At(0, "queue")).With("name", "other-root").With("gpu_quota", 16);
    Theirs(At(0, "queue")).With("name", "other-leaf").With("parent", "other-root");
    // Its parent is of the program's shard: it is a queue of that shard no more for it.
    Theirs(At(0, "queue")).With("name", "other-stray").With("parent", "root");
    for (int64_t j = random_.Between(3, 7); j > 0; --j) TheirJob(absl::StrCat("other", j));
    for (int64_t j = random_.Between(1, 3); j > 0; --j) LostJob(absl::StrCat("lost", j));
    for (int64_t j = random_.Between(1, 3); j > 0; --j) MovedJob(absl::StrCat("moves", j));
    Times(0, 3, [&] { MoveNode(); });
  }

 private:
  const std::vector<std::string> kNodes = {"o0", "o1"};

  static Operation& Theirs(Operation& operation) { return operation.With("shard", kOtherShard); }
  void Node(const std::string& name) {
    Theirs(At(0, "node")).With("name", name).With("cpu", 16'000).With("memory", 64 * kGiB);
    plan_.operations.back().With("gpu", 8).With("zone", OneIn(2) ? "zone-a" : "zone-b");
  }
  Operation& Job(const std::string& name) {
    Operation& job = At(random_.Between(500, plan_.end_ms - 20 * kSecond), "job");
    job.With("name", name).With("ns", OneIn(2) ? "team-a" : "team-b");
    job.With("pods", random_.Between(1, 4)).With("min", 1).With("gpu", random_.Between(0, 2));
    return job.With("cpu", random_.Between(1, 4) * 500).With("memory", kGiB);
  }

  // Half of them run: their pods are bound when they are made.
  void TheirJob(const std::string& name) {
    static const std::vector<const char*> kQueues = {"other-leaf", "other-stray", "q1"};
    Operation& job = Theirs(Job(name)).With("queue", Any(kQueues));
    job.With("grouping", OneIn(2) ? "none" : "own").With("class", OneIn(2) ? "train" : "build");
    job.With("run", OneIn(2) ? kForever : random_.Between(5, 40));
    if (OneIn(2)) job.With("node", OneIn(2) ? "n0" : Any(kNodes));
  }

  // Of the program's shard, in a queue of the other: there is none for it.
  void LostJob(const std::string& name) {
    Job(name).With("queue", "other-leaf").With("grouping", OneIn(2) ? "none" : "own");
  }

  void Relabel(int64_t at_ms, const char* verb, const char* field, const std::string& name,
               const char* shard) {
    At(at_ms, verb).With(field, name).With("key", kShardLabel).With("value", shard);
  }
  // To the other shard, and perhaps back.
  void MovedJob(const std::string& name) {
    Operation& job = Job(name).With("queue", "q1").With("grouping", "none").With("run", kForever);
    Away(job.at_ms, "label-pods", "job", name);
  }
  void MoveNode() {
    if (OneIn(2)) return Away(0, "label-node", "name", OneIn(2) ? "n0" : "n1");
    Relabel(Sometime(), "label-node", "name", Any(kNodes), "");
  }
  void Away(int64_t from_ms, const char* verb, const char* field, const std::string& name) {
    const int64_t at = random_.Between(from_ms + 5 * kSecond, plan_.end_ms - kSecond);
    Relabel(at, verb, field, name, kOtherShard);
    if (!OneIn(3)) Relabel(at + random_.Between(100, 30 * kSecond), verb, field, name, "");
  }
};

}  // namespace

bool DrawsShards(uint64_t seed) { return Random(seed ^ kShardDice).Below(8) == 0; }

void AddShards(uint64_t seed, Plan& plan) {
  plan.sharded = true;
  Shards(seed, plan).Draw();
}

}  // namespace fairlead::sim::world
