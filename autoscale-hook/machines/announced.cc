#include "autoscale-hook/machines/announced.h"

#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace fairlead::hook {

void SetAnnounced(const model::ResourceList& allocatable, model::NodeRequest& request) {
  std::string text;
  for (const auto& [name, amount] : allocatable) {
    absl::StrAppend(&text, text.empty() ? "" : ",", name, "=", amount);
  }
  request.meta.annotations.Set(kAnnouncedAnnotation, text);
}

std::optional<model::ResourceList> Announced(const model::NodeRequest& request) {
  const absl::string_view text = request.meta.annotations.Get(kAnnouncedAnnotation);
  if (text.empty()) return std::nullopt;
  model::ResourceList resources;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<std::string, std::string> field = absl::StrSplit(part, absl::MaxSplits('=', 1));
    int64_t amount = 0;
    if (field.first.empty() || !absl::SimpleAtoi(field.second, &amount) || amount < 0) {
      return std::nullopt;
    }
    model::Set(resources, field.first, amount);
  }
  return resources;
}

}  // namespace fairlead::hook
