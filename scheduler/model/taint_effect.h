// Kubernetes' words for the effects of taints. Thread-safety: pure functions.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "scheduler/model/pod.h"

namespace fairlead::model {

inline constexpr char kTaintEffects[] = "NoSchedule, PreferNoSchedule, NoExecute";

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

inline std::optional<TaintEffect> ParseTaintEffect(absl::string_view name) {
  for (const TaintEffect effect :
       {TaintEffect::kNoSchedule, TaintEffect::kPreferNoSchedule, TaintEffect::kNoExecute}) {
    if (name == TaintEffectName(effect)) return effect;
  }
  return std::nullopt;
}

}  // namespace fairlead::model
