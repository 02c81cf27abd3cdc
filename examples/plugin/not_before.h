// NotBefore: a pod that says when it may start is placed at once, holds its place, and is bound at
// that time. Pods without the label are bound as ever.
//
// Thread-safety: stateless.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "scheduler/framework/binding_points.h"
#include "scheduler/plugins/args.h"

namespace example {

class NotBefore final : public fairlead::framework::PermitPlugin {
 public:
  static constexpr char kName[] = "NotBefore";
  static constexpr char kLabel[] = "example.com/not-before";  // seconds since 1970

  static absl::StatusOr<std::unique_ptr<fairlead::framework::Plugin>> Make(
      absl::string_view args_json) {
    const absl::Status read = fairlead::plugins::ReadArgs(kName, args_json, {});
    if (!read.ok()) return read;
    return std::make_unique<NotBefore>();
  }
  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] std::vector<std::string> PodLabels() const override { return {kLabel}; }
  [[nodiscard]] bool BindingApplies(const fairlead::state::PodClass& pod_class) const override {
    return pod_class.spec->labels_for_plugins.Has(kLabel);
  }

  fairlead::framework::Progress Permit(const fairlead::framework::Placement& placement) override {
    using fairlead::framework::Progress;
    const auto& pod_class = placement.state.pod_class(placement.pod.pod_class);
    const absl::string_view text = pod_class.spec->labels_for_plugins.Get(kLabel);
    int64_t seconds = 0;
    if (!absl::SimpleAtoi(text, &seconds)) {
      return Progress::Failed(
          absl::StrCat("metadata.labels[", kLabel, "]: \"", text, "\" is no number of seconds"));
    }
    const absl::Time start = absl::FromUnixSeconds(seconds);
    return placement.now < start ? Progress::WaitUntil(start) : Progress::Done();
  }
};

}  // namespace example
