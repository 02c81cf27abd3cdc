#include "sim/world/placement_facts.h"

#include <gtest/gtest.h>

#include "sim/world/objects.h"

namespace fairlead::sim::world {
namespace {

Operation Fields() {
  Operation fields;
  fields.With("ns", "team-a");
  return fields;
}

TEST(PlacementFactsTest, APodThatAsksForNothingMayRunAnywhere) {
  EXPECT_EQ(ReadPlacement(MakePod(Fields(), "p")), nullptr);
}

TEST(PlacementFactsTest, ReadsSelectorsAndNodeAffinity) {
  const Json pod =
      MakePod(Fields().With("select", "example.com/disk:ssd").With("zones", "a,b"), "p");
  const auto placement = ReadPlacement(pod);
  ASSERT_NE(placement, nullptr);
  EXPECT_FALSE(placement->unknown);
  EXPECT_FALSE(placement->names_pods());
  const std::string zone = "topology.kubernetes.io/zone", disk = "example.com/disk";
  EXPECT_TRUE(NodeMatches(*placement, {{disk, "ssd"}, {zone, "b"}}));
  EXPECT_FALSE(NodeMatches(*placement, {{disk, "hdd"}, {zone, "b"}}));
  EXPECT_FALSE(NodeMatches(*placement, {{disk, "ssd"}, {zone, "c"}}));
  EXPECT_FALSE(NodeMatches(*placement, {{zone, "a"}}));
}

TEST(PlacementFactsTest, ReadsWhichPodsMustBeNearAndApart) {
  const auto placement = ReadPlacement(
      MakePod(Fields().With("app", "web").With("near", "db").With("apart", "web"), "p"));
  ASSERT_NE(placement, nullptr);
  EXPECT_FALSE(placement->unknown);
  ASSERT_EQ(placement->near.size(), 1);
  EXPECT_EQ(placement->near[0].app, "db");
  ASSERT_EQ(placement->apart.size(), 1);
  EXPECT_EQ(placement->apart[0].topology_key, "kubernetes.io/hostname");
}

TEST(PlacementFactsTest, WhatSaysMoreIsUnknown) {
  const auto placement =
      ReadPlacement(MakePod(Fields().With("odd", "namespace-anti-affinity"), "p"));
  ASSERT_NE(placement, nullptr);
  EXPECT_TRUE(placement->unknown);
}

}  // namespace
}  // namespace fairlead::sim::world
