#include "core/queue_caps.h"

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "scheduler/model/quantity.h"

namespace fairlead::core {
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

bool QueueCaps::Upsert(const model::Queue& queue) {
  const std::string* gpus = queue.meta.annotations.Find(kProvisionedGpuLimit);
  const std::string* cost = queue.meta.annotations.Find(kProvisionedCostLimit);
  if (gpus == nullptr && cost == nullptr) return Remove(queue.meta.name);
  const auto known = rows_.find(queue.meta.name);
  const bool same_object = known != rows_.end() && known->second.uid == queue.meta.uid;
  const Row before = same_object ? known->second : Row{queue.meta.uid, "", 0, 0};
  Row row{queue.meta.uid, "", model::kUnlimited, model::kUnlimited};
  const auto read = [&row](const char* name, const std::string* text, auto reader,
                           const char* wanted, int64_t old, int64_t& out) {
    if (text == nullptr) return;
    const std::optional<int64_t> value = reader(*text);
    out = value.value_or(old);
    if (value.has_value()) return;
    absl::StrAppend(&row.fault, row.fault.empty() ? "" : "; ", "metadata.annotations[", name,
                    "]: \"", text->substr(0, 50), "\" must be ", wanted);
  };
  read(kProvisionedGpuLimit, gpus, ReadGpus, "a number of GPUs", before.gpus, row.gpus);
  read(kProvisionedCostLimit, cost, ReadDollars, "dollars, such as \"50.00\"",
       before.micro_usd_per_hour, row.micro_usd_per_hour);
  const bool same = same_object && before.fault == row.fault && before.gpus == row.gpus &&
                    before.micro_usd_per_hour == row.micro_usd_per_hour;
  if (!row.fault.empty() && (!same_object || before.fault != row.fault)) {
    events_.push_back(
        {model::Kind::kQueue, "", queue.meta.name, queue.meta.uid, true, "QueueCapRefused",
         absl::StrCat(row.fault, same_object ? "; the last right cap stays in force"
                                             : "; nothing is provisioned for the queue")});
  }
  rows_[queue.meta.name] = std::move(row);
  return !same;
}

std::vector<hook::QueueCap> QueueCaps::InForce(const queues::QueueTree& tree) const {
  std::vector<hook::QueueCap> caps;
  for (const auto& [name, row] : rows_) {
    hook::QueueCap& cap = caps.emplace_back();
    cap.queue = name;
    cap.gpus = row.gpus;
    cap.micro_usd_per_hour = row.micro_usd_per_hour;
    cap.queues.insert(name);
    const std::optional<queues::QueueId> id = tree.Find(name);
    if (!id.has_value()) continue;
    for (const queues::QueueId child : tree.Children(*id)) {
      AddWithAllBelow(tree, child, cap.queues);
    }
  }
  return caps;
}

}  // namespace fairlead::core
