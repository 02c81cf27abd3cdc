// KAI's own fair-share, reclaim and capacity tables (tests/conformance/queue_tables.h), and the
// fair shares that KAI computed at the start of each of its scheduling cases, through the real
// functions of this module.
//
// The data lies outside the repository: FAIRLEAD_SHARED names the folder that has
// conformance/kai/*.json, by default ../shared. Without it these tests skip and say so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "absl/time/time.h"
#include "base/strings.h"
#include "queues/fair_share.h"
#include "tests/conformance/json.h"
#include "tests/conformance/queue_tables.h"

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

int64_t BaseUnits(ResourceIndex r, double amount) {
  return std::llround(r == model::kGpu ? amount * 1000 : amount);
}

// -1 stays -1.
int64_t BoundInBaseUnits(ResourceIndex r, double amount) {
  return amount < 0 ? model::kUnlimited : BaseUnits(r, amount);
}

model::Resources ReadAmounts(const element& object) {
  model::Resources amounts;
  for (const auto& [name, r] : kResources) amounts.Set(r, BaseUnits(r, Number(object, name)));
  return amounts;
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

using RunTableCase = absl::StatusOr<std::vector<std::string>> (*)(const conformance::Json&);

// Runs every case of a file with the code of the conformance program.
void RunTable(const std::filesystem::path& file, RunTableCase run, size_t cases) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  const absl::StatusOr<conformance::Json> table = conformance::ParseJson(text.str());
  ASSERT_TRUE(table.ok()) << file << ": " << table.status();
  EXPECT_EQ(table->items.size(), cases);
  for (const conformance::Json& test : table->items) {
    const absl::StatusOr<std::vector<std::string>> differences = run(test);
    ASSERT_TRUE(differences.ok()) << test.TextAt({"name"}) << ": " << differences.status();
    EXPECT_THAT(*differences, ::testing::IsEmpty()) << test.TextAt({"name"});
  }
}

TEST_F(ConformanceTest, FairShareTables) {
  RunTable(DataFolder() / "fairshare.json", conformance::RunFairShareCase, 99);
}

TEST_F(ConformanceTest, ReclaimTables) {
  RunTable(DataFolder() / "reclaimable_checks.json", conformance::RunQueueCheckCase, 34);
}

TEST_F(ConformanceTest, CapacityTables) {
  RunTable(DataFolder() / "capacity_checks.json", conformance::RunQueueCheckCase, 6);
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
