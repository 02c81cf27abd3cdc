#include "autoscale-hook/machines/launch_set.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/hash.h"

namespace fairlead::hook {

void MarkLaunchSet(const std::vector<model::NodeRequest*>& requests, bool atomic,
                   DerivedNames* names) {
  if (requests.size() < 2) return;
  StableHash hash;
  for (const model::NodeRequest* request : requests) hash.Add(request->meta.name);
  const std::string id = UsedName(names, absl::StrCat("set-", hash.Hex()));
  for (model::NodeRequest* request : requests) {
    request->meta.labels.Set(kLaunchSetLabel, id);
    request->meta.annotations.Set(kLaunchSetSizeAnnotation, absl::StrCat(requests.size()));
    if (atomic) request->meta.annotations.Set(kLaunchSetAtomicAnnotation, "true");
  }
}

std::optional<LaunchSet> LaunchSetOf(const model::NodeRequest& request) {
  LaunchSet set;
  set.id = std::string(request.meta.labels.Get(kLaunchSetLabel));
  const absl::string_view size = request.meta.annotations.Get(kLaunchSetSizeAnnotation);
  if (set.id.empty() || !absl::SimpleAtoi(size, &set.size) || set.size < 2) return std::nullopt;
  set.atomic = request.meta.annotations.Get(kLaunchSetAtomicAnnotation) == "true";
  return set;
}

void LeaveLaunchSet(model::NodeRequest& request) {
  request.meta.labels.Erase(kLaunchSetLabel);
  request.meta.annotations.Erase(kLaunchSetSizeAnnotation);
  request.meta.annotations.Erase(kLaunchSetAtomicAnnotation);
}

}  // namespace fairlead::hook
