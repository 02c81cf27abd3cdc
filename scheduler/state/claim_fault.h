// The first thing that is wrong with the claims of a pod. Thread-safety: plain value.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "scheduler/state/device_allocator.h"

namespace fairlead::state {

struct ClaimFault {
  std::string problem, missing;

  template <typename... Text>
  void Refuse(const Text&... text) {
    if (problem.empty()) problem = absl::StrCat(text...);
  }
  // `about` is told before it, where that is not the same.
  void Lacks(absl::string_view about, absl::string_view what) {
    if (!problem.empty()) return;
    problem = absl::StrCat(about, what, kDoesNotExist);
    missing = std::string(what);
  }
};

}  // namespace fairlead::state
