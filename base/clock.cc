#include "base/clock.h"

#include <chrono>

namespace fairlead {

absl::Duration RealClock::Steady() const {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace fairlead
