#include "core/queue_notes.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fairlead::core {
namespace {

// More than any cluster has: 10^12 devices, CPU cores or MB, in base units of at most 10^6 each.
constexpr int64_t kAbsurd = 1'000'000'000'000'000'000;

void Check(const std::string& noun, const std::string& resource, const model::QueueResource& bounds,
           std::vector<std::string>& notes) {
  const std::pair<const char*, int64_t> amounts[] = {{"quota", bounds.quota},
                                                     {"limit", bounds.limit}};
  for (const auto& [what, amount] : amounts) {
    if (amount >= kAbsurd)
      notes.push_back(absl::StrCat(noun, " ", what, " is larger than any cluster"));
  }
  if (bounds.quota == model::kUnlimited || bounds.limit == model::kUnlimited) return;
  if (bounds.quota > bounds.limit) {
    notes.push_back(absl::StrCat(noun, " quota ", model::FormatAmount(resource, bounds.quota),
                                 " is above its limit ",
                                 model::FormatAmount(resource, bounds.limit)));
  }
}

}  // namespace

std::string ContradictionOf(const model::Queue& queue) {
  std::vector<std::string> notes;
  if (!queue.parent.empty() && queue.parent == queue.meta.name) {
    notes.push_back("it names itself as its parent");
  }
  Check("GPU", model::kGpuName, queue.gpu, notes);
  Check("CPU", model::kCpuName, queue.cpu, notes);
  Check("memory", model::kMemoryName, queue.memory, notes);
  for (const auto& [name, bounds] : queue.other) Check(name, name, bounds, notes);
  return absl::StrJoin(notes, "; ");
}

}  // namespace fairlead::core
