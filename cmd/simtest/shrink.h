// Makes a failing plan small: leaves out operations as long as it still fails the same way.
//
// Delta debugging (Zeller, Hildebrandt: Simplifying and isolating failure-inducing input, 2002),
// on complements only: every try leaves one piece out.
//
// Thread-safety: pure, but for what `fails` does.
#pragma once

#include <cstdint>
#include <functional>

#include "sim/world/plan.h"

namespace fairlead::simtest {

// `fails`: whether this plan still fails as the first one did. `goes_on` is asked before each try,
// with the number of tries so far; the smallest failing plan so far is returned.
sim::world::Plan Shrink(sim::world::Plan plan,
                        const std::function<bool(const sim::world::Plan&)>& fails,
                        const std::function<bool(int64_t tries)>& goes_on);

}  // namespace fairlead::simtest
