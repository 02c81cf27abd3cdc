// Groups from which no machine can be removed by name: the controller, or the cloud, chooses which
// machine goes when the size is lowered. It is lowered only if every machine of the group is to go:
// then none that is needed can be chosen.
//
// The machines that are to go are remembered until they are gone; what is asked once is not taken
// back. Thread-safety: none. Complexity: O(n log n) in the machines of one group.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace fairlead::hook {

class LeaveTogether {
 public:
  // `instance` is to go. `listed`: ids of all machines of the group; `target`: its size now;
  // `why`: why none can be removed by name. OK: all are to go, and the size may be lowered to 0, or
  // is 0 already.
  absl::Status Ask(const std::string& group, const std::string& instance,
                   const std::set<std::string>& listed, int64_t target, int64_t min_size,
                   const std::string& why) {
    std::set<std::string>& asked = asked_[group];
    std::erase_if(asked, [&](const std::string& id) { return !listed.contains(id); });
    asked.insert(instance);
    if (target == 0) return absl::OkStatus();
    const auto leaving = static_cast<int64_t>(asked.size());
    const auto all = std::max(static_cast<int64_t>(listed.size()), target);
    if (min_size == 0 && leaving == all && target == leaving) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("group ", group, ": ", why,
                     ", so its size is lowered only if all of its machines are to go",
                     min_size > 0 ? absl::StrCat(", and its minimum is ", min_size) : "",
                     "; machines: ", all, ", to go: ", leaving));
  }

 private:
  std::map<std::string, std::set<std::string>> asked_;  // ids, by group
};

}  // namespace fairlead::hook
