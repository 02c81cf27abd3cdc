#include "autoscale-hook/machines/interruption.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/string_view.h"

namespace fairlead::hook {
namespace {

constexpr absl::string_view kKeys[] = {
    "aws-node-termination-handler/asg-lifecycle-termination",
    "aws-node-termination-handler/scheduled-maintenance",
    "aws-node-termination-handler/spot-itn",
    "cloud.google.com/impending-node-termination",
};

}  // namespace

bool IsInterruptionTaint(const model::Taint& taint) {
  return taint.effect != model::TaintEffect::kPreferNoSchedule &&
         std::find(std::begin(kKeys), std::end(kKeys), taint.key) != std::end(kKeys);
}

}  // namespace fairlead::hook
