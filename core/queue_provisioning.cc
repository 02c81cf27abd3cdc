#include "core/queue_provisioning.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "scheduler/model/quantity.h"

namespace fairlead::core {

using engine::OverQuota;

namespace {

constexpr int64_t kMostGpus = 1'000'000'000;  // more is a mistake

std::optional<int64_t> ReadGpus(const std::string& text) {
  int64_t gpus = 0;
  if (!absl::SimpleAtoi(text, &gpus) || gpus < 0 || gpus > kMostGpus) return std::nullopt;
  return gpus;
}

std::optional<int64_t> ReadDollars(const std::string& text) {
  const absl::StatusOr<int64_t> amount = model::ParseDollars(text);
  return amount.ok() ? std::optional(*amount) : std::nullopt;
}

void AddWithAllBelow(const queues::QueueTree& tree, queues::QueueId queue,
                     std::set<std::string>& names) {
  if (!names.insert(tree.Name(queue)).second) return;
  for (const queues::QueueId child : tree.Children(queue)) AddWithAllBelow(tree, child, names);
}

}  // namespace

std::optional<OverQuota> ParseOverQuota(absl::string_view text) {
  if (text == "BuyNodes") return OverQuota::kBuyNodes;
  if (text == "Evict") return OverQuota::kEvict;
  if (text == "Weigh") return OverQuota::kWeigh;
  return std::nullopt;
}

bool QueueProvisioning::Upsert(const model::Queue& queue) {
  const std::string* gpus = queue.meta.annotations.Find(kProvisionedGpuLimit);
  const std::string* cost = queue.meta.annotations.Find(kProvisionedCostLimit);
  const std::string* over_quota = queue.meta.annotations.Find(kOverQuota);
  if (gpus == nullptr && cost == nullptr && over_quota == nullptr) return Remove(queue.meta.name);
  const auto known = rows_.find(queue.meta.name);
  const bool same_object = known != rows_.end() && known->second.uid == queue.meta.uid;
  const Row before = same_object ? known->second : Row{queue.meta.uid, "", 0, 0, {}};
  Row row{queue.meta.uid, "", model::kUnlimited, model::kUnlimited, {}};
  const auto read = [&row](const char* name, const std::string* text, auto reader,
                           const std::string& wanted, const auto& old, auto& out) {
    if (text == nullptr) return;
    const auto value = reader(*text);
    if (value.has_value()) {
      out = *value;
      return;
    }
    out = old;
    absl::StrAppend(&row.fault, row.fault.empty() ? "" : "; ", "metadata.annotations[", name,
                    "]: \"", text->substr(0, 50), "\" must be ", wanted);
  };
  read(kProvisionedGpuLimit, gpus, ReadGpus, "a number of GPUs", before.gpus, row.gpus);
  read(kProvisionedCostLimit, cost, ReadDollars, "dollars, such as \"50.00\"",
       before.micro_usd_per_hour, row.micro_usd_per_hour);
  read(kOverQuota, over_quota, ParseOverQuota, kOverQuotaValues, before.over_quota, row.over_quota);
  const bool same = same_object && before.fault == row.fault && before.gpus == row.gpus &&
                    before.micro_usd_per_hour == row.micro_usd_per_hour &&
                    before.over_quota == row.over_quota;
  if (!row.fault.empty() && (!same_object || before.fault != row.fault)) {
    events_.push_back({model::Kind::kQueue, "", queue.meta.name, queue.meta.uid, true,
                       "QueueCapRefused",
                       absl::StrCat(row.fault, same_object ? "; the last right value stays in force"
                                               : row.gpus == 0 || row.micro_usd_per_hour == 0
                                                   ? "; nothing is provisioned for the queue"
                                                   : "; it is as if it were not there")});
  }
  rows_[queue.meta.name] = std::move(row);
  return !same;
}

std::vector<hook::QueueCap> QueueProvisioning::InForce(const queues::QueueTree& tree) const {
  std::vector<hook::QueueCap> caps;
  for (const auto& [name, row] : rows_) {
    if (row.gpus == model::kUnlimited && row.micro_usd_per_hour == model::kUnlimited) continue;
    hook::QueueCap& cap = caps.emplace_back();
    cap.queue = name;
    cap.gpus = row.gpus;
    cap.micro_usd_per_hour = row.micro_usd_per_hour;
    if (const std::optional<queues::QueueId> id = tree.Find(name)) {
      AddWithAllBelow(tree, *id, cap.queues);
    } else {
      cap.queues.insert(name);
    }
  }
  return caps;
}

std::map<std::string, OverQuota> QueueProvisioning::OverQuotaOfLeaves(const queues::QueueTree& tree,
                                                                      OverQuota configured) const {
  std::map<std::string, OverQuota> leaves;
  const bool any = std::any_of(rows_.begin(), rows_.end(), [](const auto& entry) {
    return entry.second.over_quota.value_or(OverQuota::kEvict) != OverQuota::kEvict;
  });
  if (!any && configured == OverQuota::kEvict) return leaves;
  for (const queues::QueueId root : tree.Roots()) AddLeaves(tree, root, configured, leaves);
  return leaves;
}

void QueueProvisioning::AddLeaves(const queues::QueueTree& tree, queues::QueueId queue,
                                  OverQuota inherited,
                                  std::map<std::string, OverQuota>& leaves) const {
  const auto row = rows_.find(tree.Name(queue));
  const OverQuota policy =
      row == rows_.end() ? inherited : row->second.over_quota.value_or(inherited);
  if (policy != OverQuota::kEvict && tree.Children(queue).empty()) {
    leaves[tree.Name(queue)] = policy;
  }
  for (const queues::QueueId child : tree.Children(queue)) AddLeaves(tree, child, policy, leaves);
}

}  // namespace fairlead::core
