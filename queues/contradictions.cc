#include "queues/contradictions.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fairlead::queues {
namespace {

// More than any cluster has: 10^12 devices, CPU cores or MB, in base units of at most 10^6 each.
constexpr int64_t kAbsurd = 1'000'000'000'000'000'000;

// A resource of a queue: for people, its name, and its place in the spec.
struct Named {
  std::string noun, resource, field;
};

void CheckAmounts(const Named& named, const model::QueueResource& bounds,
                  std::vector<Contradiction>& out) {
  const std::pair<const char*, int64_t> amounts[] = {{"quota", bounds.quota},
                                                     {"limit", bounds.limit}};
  for (const auto& [what, amount] : amounts) {
    if (amount < kAbsurd) continue;
    out.push_back({absl::StrCat(named.field, ".", what),
                   absl::StrCat(named.noun, " ", what, " is larger than any cluster")});
  }
  if (bounds.quota == model::kUnlimited || bounds.limit == model::kUnlimited) return;
  if (bounds.quota > bounds.limit) {
    out.push_back(
        {absl::StrCat(named.field, ".quota"),
         absl::StrCat(named.noun, " quota ", model::FormatAmount(named.resource, bounds.quota),
                      " is above its limit ", model::FormatAmount(named.resource, bounds.limit))});
  }
}

}  // namespace

std::vector<Contradiction> ContradictionsOf(const model::Queue& queue) {
  std::vector<Contradiction> found;
  if (!queue.parent.empty() && queue.parent == queue.meta.name) {
    found.push_back({"spec.parentQueue", "it names itself as its parent"});
  }
  CheckAmounts({"GPU", model::kGpuName, "spec.resources.gpu"}, queue.gpu, found);
  CheckAmounts({"CPU", model::kCpuName, "spec.resources.cpu"}, queue.cpu, found);
  CheckAmounts({"memory", model::kMemoryName, "spec.resources.memory"}, queue.memory, found);
  for (const auto& [name, bounds] : queue.other) {
    CheckAmounts({name, name, absl::StrCat("spec.resources.other[", name, "]")}, bounds, found);
  }
  return found;
}

std::string ContradictionOf(const model::Queue& queue) {
  return absl::StrJoin(ContradictionsOf(queue), "; ",
                       [](std::string* out, const Contradiction& one) { *out += one.what; });
}

}  // namespace fairlead::queues
