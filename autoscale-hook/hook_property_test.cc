// The invariants of the hook in small worlds with faults (property_world.h).
//
// FAIRLEAD_HOOK_SEEDS sets the number of worlds.
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/property_world.h"
#include "base/testing/environment.h"

namespace fairlead::hook {
namespace {

using fairlead::testing::FromEnvironment;
using testing::PropertyWorld;

TEST(HookPropertyTest, InvariantsHoldInAFaultyWorld) {
  constexpr uint64_t kFirstSeed = 1;
  const uint64_t seeds = FromEnvironment("FAIRLEAD_HOOK_SEEDS", 6);
  int bought = 0, crashes = 0, removed = 0, refused = 0, whole = 0;
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + seeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    PropertyWorld world(seed, seed % 2 == 0);
    world.Run(150);
    world.Calm();
    if (seed % 2 == 1) world.ExpectAllRunning();
    world.EndAllJobs();
    world.Calm();
    world.ExpectNothingLeft();
    world.ExpectQuiet();
    bought += world.bought;
    crashes += world.crashes;
    removed += world.removed;
    refused += world.refused;
    whole += world.whole;
    if (::testing::Test::HasFailure()) break;
  }
  std::cout << "seeds " << kFirstSeed << ".." << kFirstSeed + seeds - 1 << ": " << bought
            << " nodes bought, " << whole << " orders for gangs, " << removed << " terminated, "
            << refused << " refused, " << crashes << " restarts\n";
  // The worlds do provision nodes.
  EXPECT_GT(bought, 3 * static_cast<int>(seeds));
  EXPECT_GT(crashes, static_cast<int>(seeds));
  EXPECT_GT(refused, static_cast<int>(seeds) / 2);
  EXPECT_GT(whole, static_cast<int>(seeds) / 2);
}

TEST(HookPropertyTest, InvariantsHoldWhilePodsAreMoved) {
  constexpr uint64_t kFirstSeed = 1001;
  const uint64_t seeds = FromEnvironment("FAIRLEAD_HOOK_SEEDS", 6);
  int replacing = 0, moved = 0;
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + seeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    PropertyWorld world(seed, seed % 2 == 0, /*moves=*/true);
    world.Run(100);
    world.Lull(300);
    world.Calm();
    world.EndAllJobs();
    world.Calm();
    world.ExpectNothingLeft();
    world.ExpectQuiet();
    replacing += world.replacing;
    moved += world.moved;
    if (::testing::Test::HasFailure()) break;
  }
  std::cout << "seeds " << kFirstSeed << ".." << kFirstSeed + seeds - 1 << ": " << replacing
            << " machines to replace others, pods of " << moved << " jobs moved\n";
  EXPECT_GT(replacing, 0);
  EXPECT_GT(moved, static_cast<int>(seeds) / 2);
}

}  // namespace
}  // namespace fairlead::hook
