#include "scheduler/model/pod.h"

namespace fairlead::model {

bool Toleration::Tolerates(const Taint& taint) const {
  if (effect.has_value() && *effect != taint.effect) return false;
  if (!key.empty() && key != taint.key) return false;
  if (exists) return true;
  // Without a key only Exists is valid; Equal then matches nothing.
  return !key.empty() && value == taint.value;
}

}  // namespace fairlead::model
