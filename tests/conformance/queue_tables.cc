#include "tests/conformance/queue_tables.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "queues/fair_share.h"
#include "queues/limits.h"
#include "queues/reclaim.h"

namespace fairlead::conformance {
namespace {

using model::ResourceIndex;
using Differences = std::vector<std::string>;

constexpr std::pair<const char*, ResourceIndex> kResources[] = {
    {"cpu", model::kCpu}, {"memory", model::kMemory}, {"gpu", model::kGpu}};

int64_t Round(const JsonView& value, double scale) {
  const double number = value.Number() * scale;
  if (std::fabs(number) < 9e18) return std::llround(number);
  value.Fault("is out of range");
  return 0;
}

int64_t ScaleOf(ResourceIndex r) { return r == model::kGpu ? 1000 : 1; }

int64_t Amount(ResourceIndex r, const JsonView& value) {
  return Round(value, static_cast<double>(ScaleOf(r)));
}

// -1 stays -1.
int64_t Bound(ResourceIndex r, const JsonView& value) {
  return value.Number() < 0 ? model::kUnlimited : Amount(r, value);
}

int64_t Micro(const JsonView& value) { return Round(value, 1e6); }

int32_t Priority(const JsonView& value) {
  const int64_t priority = value.Integer();
  if (priority != static_cast<int32_t>(priority)) value.Fault("is out of range");
  return static_cast<int32_t>(priority);
}

// {"cpu": amount, ...}
model::Resources Amounts(const JsonView& object) {
  model::Resources amounts;
  for (const auto& [name, r] : kResources) amounts.Set(r, Amount(r, object.At(name)));
  return amounts;
}

// {"cpu": {field: amount, ...}, ...}
model::Resources Totals(const JsonView& row, absl::string_view field) {
  model::Resources totals;
  for (const auto& [name, r] : kResources) totals.Set(r, Amount(r, row.At(name).At(field)));
  return totals;
}

model::QueueResource ReadBounds(const JsonView& bounds, ResourceIndex r) {
  return {Bound(r, bounds.At("quota")), Bound(r, bounds.At("limit")),
          Micro(bounds.At("overQuotaWeight"))};
}

std::string Show(ResourceIndex r, int64_t amount) {
  return absl::StrCat(static_cast<double>(amount) / static_cast<double>(ScaleOf(r)));
}

void Compare(absl::string_view what, ResourceIndex r, int64_t expected, int64_t got,
             Differences& out) {
  if (expected == got) return;
  out.push_back(absl::StrCat(what, ": expected ", Show(r, expected), ", got ", Show(r, got)));
}

// The "queues" of a tree, reclaim or capacity case.
struct QueueWorld {
  model::ResourceNames names;
  queues::QueueTree tree{names};
  queues::QueueLedger ledger{tree};
  queues::FairShares shares;

  explicit QueueWorld(const JsonView& rows) {
    for (const auto& [name, row] : rows.Members()) {
      model::Queue queue;
      queue.meta.name = name;
      queue.meta.creation = absl::UnixEpoch() + absl::Minutes(row.At("creationOrder").Integer());
      queue.parent = row.At("parent").Text();
      queue.priority = Priority(row.At("priority"));
      queue.cpu = ReadBounds(row.At("cpu"), model::kCpu);
      queue.memory = ReadBounds(row.At("memory"), model::kMemory);
      queue.gpu = ReadBounds(row.At("gpu"), model::kGpu);
      tree.Upsert(queue);
    }
    ledger.Rebuild(tree);
    shares = queues::FairShares(tree);
    for (const auto& [name, row] : rows.Members()) {
      const queues::QueueId id = *tree.Find(name);
      ledger.OverrideTotals(id, Totals(row, "allocated"), Totals(row, "allocatedNonPreemptible"),
                            Totals(row, "request"));
      const model::Resources fair_share = Totals(row, "fairShare");
      for (const auto& [unused, r] : kResources) shares.Set(id, r, fair_share[r]);
    }
  }

  [[nodiscard]] queues::QueueId Id(const std::string& name, const JsonView& at) const {
    const std::optional<queues::QueueId> id = tree.Find(name);
    if (!id.has_value()) at.Fault(absl::StrCat("there is no queue ", name));
    return id.value_or(0);
  }
};

struct LevelRow {
  int64_t age = 0;
  std::string uid;
  queues::LevelQueue queue;
  int64_t expected = 0;
};

LevelRow ReadLevelRow(const std::string& uid, const JsonView& row, ResourceIndex r) {
  LevelRow out;
  out.age = row.At("creationOrder").Integer();
  out.uid = uid;
  out.queue.priority = Priority(row.At("priority"));
  out.queue.quota = Bound(r, row.At("quota"));
  out.queue.limit = Bound(r, row.At("limit"));
  out.queue.weight_micro = Micro(row.At("overQuotaWeight"));
  out.queue.requested = Amount(r, row.At("request"));
  out.queue.usage_nano = Round(row.At("usage"), 1e9);
  out.queue.fair_share = Amount(r, row.At("initialFairShare"));
  out.expected = Amount(r, row.Need("expectedFairShare"));
  return out;
}

void RunLevel(const JsonView& test, bool full, const absl::Status& error, Differences& out) {
  const JsonView resource = test.Need("resource");
  const std::string wanted = resource.Text();
  const auto* named = std::find_if(std::begin(kResources), std::end(kResources),
                                   [&](const auto& known) { return known.first == wanted; });
  if (named == std::end(kResources)) return resource.Fault("must be gpu, cpu or memory");
  const ResourceIndex r = named->second;
  std::vector<LevelRow> rows;
  for (const auto& [uid, row] : test.Need("queues").Members()) {
    rows.push_back(ReadLevelRow(uid, row, r));
  }
  std::sort(rows.begin(), rows.end(), [](const LevelRow& a, const LevelRow& b) {
    return std::tie(a.age, a.uid) < std::tie(b.age, b.uid);
  });
  std::vector<queues::LevelQueue> level;
  for (LevelRow& row : rows) {
    row.queue.age_rank = static_cast<uint32_t>(level.size());
    level.push_back(row.queue);
  }
  const int64_t total = Amount(r, test.Need("total"));
  const int64_t k_micro = Micro(test.At("kValue"));
  if (!error.ok()) return;
  const int64_t left = queues::DivideLevel(
      total, ScaleOf(r), k_micro,
      full ? queues::DivideMode::kFull : queues::DivideMode::kOverQuotaOnly, absl::MakeSpan(level));
  Compare("remaining", r, Amount(r, test.At("expectedRemaining")), left, out);
  for (size_t i = 0; i < rows.size(); ++i) {
    Compare(absl::StrCat("fair share of ", rows[i].uid), r, rows[i].expected, level[i].fair_share,
            out);
  }
}

void RunTree(const JsonView& test, const absl::Status& error, Differences& out) {
  const QueueWorld world(test.Need("queues"));
  const model::Resources total = Amounts(test.Need("total"));
  const int64_t k_micro = Micro(test.At("kValue"));
  if (!error.ok()) return;
  const queues::FairShares shares =
      queues::ComputeFairShare(world.tree, world.ledger, total, {.k_micro = k_micro, .usage = {}});
  for (const auto& [name, row] : test.At("queues").Members()) {
    const model::Resources expected = Amounts(row.Need("expectedFairShare"));
    for (const auto& [resource, r] : kResources) {
      Compare(absl::StrCat("fair share of ", name, " in ", resource), r, expected[r],
              shares.Get(world.Id(name, row), r), out);
    }
  }
}

void CompareAnswer(const JsonView& test, bool allowed, absl::string_view why, Differences& out) {
  const bool expected = test.Need("expected").Flag();
  if (expected == allowed) return;
  out.push_back(absl::StrCat("expected ", expected ? "yes" : "no", ", got ", allowed ? "yes" : "no",
                             why.empty() ? "" : ": ", why));
}

std::string Explain(const QueueWorld& world, const queues::ReclaimAnswer& answer) {
  if (answer.allowed()) return "";
  return absl::StrCat("refusal ", static_cast<int>(answer.refusal), " at queue ",
                      world.tree.Name(answer.queue), ", resource ", answer.resource);
}

void RunReclaim(const JsonView& test, bool whole, const absl::Status& error, Differences& out) {
  const QueueWorld world(test.Need("queues"));
  const JsonView multiplier = test.At("saturationMultiplier");
  const queues::ReclaimContext context{world.tree, world.ledger, world.shares,
                                       multiplier.present() ? Micro(multiplier) : queues::kMicro};
  const JsonView row = test.Need("reclaimer");
  const queues::Reclaimer reclaimer{world.Id(row.Need("queue").Text(), row),
                                    Amounts(row.Need("required")), row.At("preemptible").Flag()};
  std::vector<queues::VictimQueue> victims;
  if (whole) {
    for (const auto& [name, pieces] : test.Need("victimResourcesByQueue").Members()) {
      queues::VictimQueue& victim = victims.emplace_back();
      victim.leaf = world.Id(name, pieces);
      for (const JsonView& piece : pieces.Items()) victim.pieces.push_back(Amounts(piece));
    }
  }
  if (!error.ok()) return;
  if (!whole) {
    const queues::ReclaimAnswer answer = queues::CanReclaim(context, reclaimer);
    return CompareAnswer(test, answer.allowed(), Explain(world, answer), out);
  }
  const queues::ReclaimAnswer answer = queues::Reclaimable(context, reclaimer, victims);
  CompareAnswer(test, answer.allowed(), Explain(world, answer), out);
  // The table's order of victims comes from a map, so it must not matter.
  std::reverse(victims.begin(), victims.end());
  if (queues::Reclaimable(context, reclaimer, victims).allowed() != answer.allowed()) {
    out.push_back("the answer depends on the order of the victims' queues");
  }
}

void CompareViolation(const JsonView& test, const QueueWorld& world,
                      const queues::LimitViolation& violation, Differences& out) {
  const std::string expected = test.At("reason").Text();
  const absl::string_view got =
      violation.kind == queues::LimitKind::kLimit ? "OverLimit" : "NonPreemptibleOverQuota";
  if (!expected.empty() && expected != got) {
    out.push_back(absl::StrCat("reason: expected ", expected, ", got ", got));
  }
  // The texts are KAI's; their queue and amounts must be ours as well.
  const std::string message = test.At("message").Text();
  const auto named = [&](absl::string_view what) {
    if (message.empty() || absl::StrContains(message, what)) return;
    out.push_back(absl::StrCat("expected what KAI says: ", message, "; got ", what));
  };
  named(world.tree.Name(violation.queue));
  if (violation.resource != model::kGpu) return;
  const bool limit = violation.kind == queues::LimitKind::kLimit;
  named(absl::StrCat(limit ? "Limit is " : "quota is ", Show(model::kGpu, violation.limit), " "));
  named(absl::StrCat(limit ? "currently " : "while ", Show(model::kGpu, violation.used), " "));
  named(absl::StrCat("requested ", Show(model::kGpu, violation.requested), " "));
}

void RunLimits(const JsonView& test, const absl::Status& error, Differences& out) {
  const QueueWorld world(test.Need("queues"));
  const JsonView job = test.Need("job");
  const queues::QueueId leaf = world.Id(job.Need("queue").Text(), job);
  const model::Resources requested = Amounts(test.Need("requested"));
  if (!error.ok()) return;
  const std::optional<queues::LimitViolation> violation =
      queues::CheckLimits(world.tree, world.ledger, leaf, requested, job.At("preemptible").Flag());
  CompareAnswer(test, !violation.has_value(), "", out);
  if (violation.has_value()) CompareViolation(test, world, *violation, out);
}

}  // namespace

bool IsFairShareCase(const Json& test) { return test.Find("operation") != nullptr; }
bool IsQueueCheckCase(const Json& test) { return test.Find("check") != nullptr; }

absl::StatusOr<Differences> RunFairShareCase(const Json& test) {
  absl::Status error;
  Differences differences;
  const JsonView root(&test, "", &error);
  const JsonView operation = root.Need("operation");
  const std::string text = operation.Text();
  if (text == "tree") {
    RunTree(root, error, differences);
  } else if (text == "full" || text == "overQuotaOnly") {
    RunLevel(root, text == "full", error, differences);
  } else {
    operation.Fault("must be full, overQuotaOnly or tree");
  }
  if (!error.ok()) return error;
  return differences;
}

absl::StatusOr<Differences> RunQueueCheckCase(const Json& test) {
  absl::Status error;
  Differences differences;
  const JsonView root(&test, "", &error);
  const std::string check = root.Need("check").Text();
  if (check == "reclaimable" || check == "canReclaimResources") {
    RunReclaim(root, check == "reclaimable", error, differences);
  } else {
    RunLimits(root, error, differences);
  }
  if (!error.ok()) return error;
  return differences;
}

}  // namespace fairlead::conformance
