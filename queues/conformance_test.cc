// KAI's own fair-share, reclaim and capacity tables, and the fair shares that KAI computed at the
// start of each of its scheduling cases, through the real functions of this module.
//
// The data lies outside the repository: FAIRLEAD_SHARED names the folder that has
// conformance/kai/*.json, by default ../shared. Without it these tests skip and say so.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>

#include "absl/time/time.h"
#include "base/strings.h"
#include "queues/fair_share.h"
#include "queues/limits.h"
#include "queues/reclaim.h"
#include "queues/test_support.h"

namespace fairlead::queues {
namespace {

using model::ResourceIndex;
using simdjson::dom::element;

constexpr std::pair<const char*, ResourceIndex> kResources[] = {
    {"cpu", model::kCpu}, {"memory", model::kMemory}, {"gpu", model::kGpu}};

std::filesystem::path DataFolder() {
  const char* shared = std::getenv("FAIRLEAD_SHARED");
  return std::filesystem::path(shared != nullptr ? shared : "../shared") / "conformance" / "kai";
}

class ConformanceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::filesystem::exists(DataFolder() / "fairshare.json")) return;
    std::cerr << "SKIPPED: no conformance data in " << DataFolder()
              << "; set FAIRLEAD_SHARED to the folder that has conformance/kai\n";
    GTEST_SKIP();
  }
  simdjson::dom::array Load(const std::filesystem::path& file) {
    return parser_.load(file.string()).get_array().value();
  }
  simdjson::dom::parser parser_;
};

std::string Text(const element& object, const char* key) {
  element value;
  if (object[key].get(value) != simdjson::SUCCESS || !value.is_string()) return "";
  return std::string(value.get_string().value());
}

double Number(const element& object, const char* key) {
  element value;
  return object[key].get(value) == simdjson::SUCCESS ? value.get_double().value() : 0;
}

bool Flag(const element& object, const char* key) { return object[key].get_bool().value(); }

int64_t BaseUnits(ResourceIndex r, double amount) {
  return std::llround(r == model::kGpu ? amount * 1000 : amount);
}

// -1 stays -1.
int64_t BoundInBaseUnits(ResourceIndex r, double amount) {
  return amount < 0 ? model::kUnlimited : BaseUnits(r, amount);
}

int64_t UnitOf(ResourceIndex r) { return r == model::kGpu ? 1000 : 1; }

model::Resources ReadAmounts(const element& object) {
  model::Resources amounts;
  for (const auto& [name, r] : kResources) amounts.Set(r, BaseUnits(r, Number(object, name)));
  return amounts;
}

model::QueueResource ReadBounds(const element& row, const char* name, ResourceIndex r) {
  element bounds;
  if (row[name].get(bounds) != simdjson::SUCCESS) return {};
  return {BoundInBaseUnits(r, Number(bounds, "quota")),
          BoundInBaseUnits(r, Number(bounds, "limit")),
          std::llround(Number(bounds, "overQuotaWeight") * 1e6)};
}

model::Resources ReadTotals(const element& row, const char* field) {
  model::Resources totals;
  for (const auto& [name, r] : kResources) {
    element bounds;
    if (row[name].get(bounds) == simdjson::SUCCESS) {
      totals.Set(r, BaseUnits(r, Number(bounds, field)));
    }
  }
  return totals;
}

// The "queues" object of a tree, reclaim or capacity case.
struct World {
  model::ResourceNames names;
  QueueTree tree{names};
  QueueLedger ledger{tree};
  FairShares shares;

  explicit World(const element& queues) {
    for (const auto& [name, row] : queues.get_object()) {
      model::Queue queue = MakeQueue(std::string(name), Text(row, "parent"));
      queue.priority = static_cast<int32_t>(Number(row, "priority"));
      queue.cpu = ReadBounds(row, "cpu", model::kCpu);
      queue.memory = ReadBounds(row, "memory", model::kMemory);
      queue.gpu = ReadBounds(row, "gpu", model::kGpu);
      tree.Upsert(queue);
    }
    ledger.Rebuild(tree);
    shares = FairShares(tree);
    for (const auto& [name, row] : queues.get_object()) {
      const QueueId id = Id(std::string(name));
      ledger.OverrideTotals(id, ReadTotals(row, "allocated"),
                            ReadTotals(row, "allocatedNonPreemptible"), ReadTotals(row, "request"));
      const model::Resources fair_share = ReadTotals(row, "fairShare");
      for (const auto& [unused, r] : kResources) shares.Set(id, r, fair_share[r]);
    }
  }
  [[nodiscard]] QueueId Id(const std::string& name) const { return *tree.Find(name); }
};

void CheckLevel(const element& test) {
  const ResourceIndex r = std::find_if(std::begin(kResources), std::end(kResources), [&](auto& x) {
                            return x.first == Text(test, "resource");
                          })->second;
  std::vector<std::pair<std::pair<int64_t, std::string>, LevelQueue>> rows;
  std::vector<int64_t> expected;
  for (const auto& [uid, row] : test["queues"].get_object()) {
    LevelQueue queue;
    queue.priority = static_cast<int32_t>(Number(row, "priority"));
    queue.quota = BoundInBaseUnits(r, Number(row, "quota"));
    queue.limit = BoundInBaseUnits(r, Number(row, "limit"));
    queue.weight_micro = std::llround(Number(row, "overQuotaWeight") * 1e6);
    queue.requested = BaseUnits(r, Number(row, "request"));
    queue.usage_nano = std::llround(Number(row, "usage") * 1e9);
    queue.fair_share = BaseUnits(r, Number(row, "initialFairShare"));
    rows.push_back({{std::llround(Number(row, "creationOrder")), std::string(uid)}, queue});
  }
  std::sort(rows.begin(), rows.end(), [](auto& a, auto& b) { return a.first < b.first; });
  std::vector<LevelQueue> level;
  for (auto& [key, queue] : rows) {
    queue.age_rank = static_cast<uint32_t>(level.size());
    level.push_back(queue);
  }
  const DivideMode mode =
      Text(test, "operation") == "full" ? DivideMode::kFull : DivideMode::kOverQuotaOnly;
  const int64_t left =
      DivideLevel(BaseUnits(r, Number(test, "total")), UnitOf(r),
                  std::llround(Number(test, "kValue") * 1e6), mode, absl::MakeSpan(level));
  EXPECT_EQ(left, BaseUnits(r, Number(test, "expectedRemaining")));
  for (size_t i = 0; i < level.size(); ++i) {
    const std::string& uid = rows[i].first.second;
    const element row = test["queues"][uid].value();
    EXPECT_EQ(level[i].fair_share, BaseUnits(r, Number(row, "expectedFairShare"))) << uid;
  }
}

void CheckTree(const element& test) {
  World world(test["queues"].value());
  const FairShares shares =
      ComputeFairShare(world.tree, world.ledger, ReadAmounts(test["total"].value()),
                       {.k_micro = std::llround(Number(test, "kValue") * 1e6), .usage = {}});
  for (const auto& [name, row] : test["queues"].get_object()) {
    const QueueId id = world.Id(std::string(name));
    EXPECT_EQ(shares.Of(id), ReadAmounts(row["expectedFairShare"].value())) << name;
  }
}

TEST_F(ConformanceTest, FairShareTables) {
  size_t count = 0;
  for (const element test : Load(DataFolder() / "fairshare.json")) {
    SCOPED_TRACE(Text(test, "name") + " (" + Text(test, "resource") + ")");
    if (Text(test, "operation") == "tree") {
      CheckTree(test);
    } else {
      CheckLevel(test);
    }
    ++count;
  }
  EXPECT_EQ(count, 99);
}

TEST_F(ConformanceTest, ReclaimTables) {
  size_t count = 0;
  for (const element test : Load(DataFolder() / "reclaimable_checks.json")) {
    SCOPED_TRACE(Text(test, "name"));
    World world(test["queues"].value());
    const ReclaimContext context{world.tree, world.ledger, world.shares,
                                 std::llround(Number(test, "saturationMultiplier") * 1e6)};
    const element row = test["reclaimer"].value();
    const Reclaimer reclaimer{world.Id(Text(row, "queue")), ReadAmounts(row["required"].value()),
                              Flag(row, "preemptible")};
    ReclaimAnswer answer;
    if (Text(test, "check") == "canReclaimResources") {
      answer = CanReclaim(context, reclaimer);
    } else {
      std::vector<VictimQueue> victims;
      for (const auto& [name, pieces] : test["victimResourcesByQueue"].get_object()) {
        VictimQueue& victim = victims.emplace_back();
        victim.leaf = world.Id(std::string(name));
        for (const element piece : pieces.get_array()) victim.pieces.push_back(ReadAmounts(piece));
      }
      answer = Reclaimable(context, reclaimer, victims);
      std::reverse(victims.begin(), victims.end());
      EXPECT_EQ(Reclaimable(context, reclaimer, victims).allowed(), answer.allowed());
    }
    EXPECT_EQ(answer.allowed(), Flag(test, "expected"))
        << "refusal " << static_cast<int>(answer.refusal) << " at " << world.tree.Name(answer.queue)
        << ", resource " << answer.resource;
    ++count;
  }
  EXPECT_EQ(count, 34);
}

TEST_F(ConformanceTest, CapacityTables) {
  size_t count = 0;
  for (const element test : Load(DataFolder() / "capacity_checks.json")) {
    SCOPED_TRACE(Text(test, "name"));
    World world(test["queues"].value());
    const element job = test["job"].value();
    const auto violation =
        CheckLimits(world.tree, world.ledger, world.Id(Text(job, "queue")),
                    ReadAmounts(test["requested"].value()), Flag(job, "preemptible"));
    EXPECT_EQ(!violation.has_value(), Flag(test, "expected"));
    if (violation) {
      EXPECT_EQ(violation->kind == LimitKind::kLimit ? "OverLimit" : "NonPreemptibleOverQuota",
                Text(test, "reason"));
      EXPECT_NE(Text(test, "message").find(world.tree.Name(violation->queue)), std::string::npos);
      EXPECT_EQ(violation->limit, 3000);
      EXPECT_EQ(violation->used, 3000);
      EXPECT_EQ(violation->requested, 1000);
    }
    ++count;
  }
  EXPECT_EQ(count, 6);
}

// --- fair shares that KAI had at the start of its scheduling cases ------------------------------

model::QueueResource ReadSpecBounds(const element& spec, const char* name, ResourceIndex r) {
  const element bounds = spec["resources"][name].value();
  const double scale = r == model::kMemory ? 1e6 : 1;
  const auto bound = [&](const char* field) {
    const double amount = Number(bounds, field);
    return BoundInBaseUnits(r, amount < 0 ? -1 : amount * scale);
  };
  return {bound("quota"), bound("limit"), std::llround(Number(bounds, "overQuotaWeight") * 1e6)};
}

std::optional<model::Queue> ReadQueueObject(const element& object) {
  if (Text(object, "kind") != "Queue") return std::nullopt;
  const element meta = object["metadata"].value();
  const element spec = object["spec"].value();
  model::Queue queue;
  queue.meta.name = Text(meta, "name");
  std::string error;
  absl::ParseTime(absl::RFC3339_full, Text(meta, "creationTimestamp"), &queue.meta.creation,
                  &error);
  queue.parent = Text(spec, "parentQueue");
  element priority;
  if (spec["priority"].get(priority) == simdjson::SUCCESS) {
    queue.priority = static_cast<int32_t>(priority.get_int64().value());
  }
  queue.cpu = ReadSpecBounds(spec, "cpu", model::kCpu);
  queue.memory = ReadSpecBounds(spec, "memory", model::kMemory);
  queue.gpu = ReadSpecBounds(spec, "gpu", model::kGpu);
  return queue;
}

// True if the case records queues.
bool CheckObservedCase(const element& test) {
  element recorded, total;
  if (test["observed"]["queuesAtStart"].get(recorded) != simdjson::SUCCESS) return false;
  if (test["observed"]["totalResources"].get(total) != simdjson::SUCCESS) return false;
  model::ResourceNames names;
  QueueTree tree(names);
  for (const element object : test["objects"].get_array()) {
    if (const auto queue = ReadQueueObject(object)) tree.Upsert(*queue);
  }
  QueueLedger ledger(tree);
  const auto read = [](const element& row, const char* field) { return ReadTotals(row, field); };
  for (const auto& [name, row] : recorded.get_object()) {
    const auto id = tree.Find(ToAbsl(name));
    if (!id) return false;
    ledger.OverrideTotals(*id, read(row, "allocated"), {}, read(row, "request"));
  }
  const FairShares shares = ComputeFairShare(tree, ledger, ReadAmounts(total));
  for (const auto& [name, row] : recorded.get_object()) {
    const QueueId id = *tree.Find(ToAbsl(name));
    EXPECT_EQ(shares.Of(id), read(row, "fairShare"))
        << name << ": gpu " << shares.Get(id, model::kGpu) << " cpu " << shares.Get(id, model::kCpu)
        << " memory " << shares.Get(id, model::kMemory);
  }
  return true;
}

TEST_F(ConformanceTest, FairSharesObservedInSchedulingCases) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(DataFolder())) {
    if (entry.path().filename().string().rfind("actions__", 0) == 0) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  size_t checked = 0;
  for (const auto& file : files) {
    for (const element test : Load(file)) {
      SCOPED_TRACE(file.filename().string() + ": " + Text(test, "name"));
      if (CheckObservedCase(test)) ++checked;
    }
  }
  std::cerr << "checked the fair shares of " << checked << " scheduling cases\n";
  EXPECT_GT(checked, 300);
}

}  // namespace
}  // namespace fairlead::queues
