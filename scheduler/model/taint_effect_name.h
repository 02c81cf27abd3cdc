// Kubernetes' word for the effect of a taint. Thread-safety: pure function.
#pragma once

#include "absl/strings/string_view.h"
#include "scheduler/model/pod.h"

namespace fairlead::model {

inline absl::string_view TaintEffectName(TaintEffect effect) {
  switch (effect) {
    case TaintEffect::kNoSchedule:
      return "NoSchedule";
    case TaintEffect::kPreferNoSchedule:
      return "PreferNoSchedule";
    case TaintEffect::kNoExecute:
      return "NoExecute";
  }
  return "NoSchedule";
}

}  // namespace fairlead::model
