#include "scheduler/state/gang_sets.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/state/state_testing.h"
#include "scheduler/state/transaction.h"

namespace fairlead::state {
namespace {

using model::testing::At;
using model::testing::MakeGroup;
using model::testing::MakeNode;
using model::testing::PodBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::OurPods;

constexpr std::nullopt_t kAbsent = std::nullopt;

model::PodGroup Group(std::optional<int32_t> min_member, std::optional<int32_t> min_sub_group,
                      std::vector<model::SubGroup> sub_groups) {
  model::PodGroup group = MakeGroup("ns", "g", "q", 0);
  group.min_member = min_member;
  group.min_sub_group = min_sub_group;
  group.sub_groups = std::move(sub_groups);
  return group;
}

struct BadCase {
  const char* title;
  std::optional<int32_t> min_member, min_sub_group;
  std::vector<model::SubGroup> sub_groups;
  const char* problem;
};

TEST(ReadGangSetsTest, TreesThatAreNoneAreProblemsThatNameObjectAndField) {
  const BadCase cases[] = {
      {"no name",
       1,
       kAbsent,
       {{"", "", 1, kAbsent, {}}},
       "PodGroup ns/g: spec.subGroups[0].name: must be specified"},
      {"twice",
       1,
       kAbsent,
       {{"a", "", 1, kAbsent, {}}, {"b", "", 1, kAbsent, {}}, {"a", "b", 1, kAbsent, {}}},
       "PodGroup ns/g: spec.subGroups[2].name: \"a\" is there twice"},
      {"unknown parent",
       1,
       kAbsent,
       {{"a", "", 1, kAbsent, {}}, {"b", "x", 1, kAbsent, {}}},
       "PodGroup ns/g: spec.subGroups[1].parent: \"x\" is no sub-group"},
      {"its own parent",
       1,
       kAbsent,
       {{"a", "a", 1, kAbsent, {}}},
       "PodGroup ns/g: spec.subGroups[0].parent: \"a\" makes a cycle"},
      // "below" hangs on the cycle of a and b without being part of it.
      {"cycle",
       1,
       kAbsent,
       {{"below", "a", 1, kAbsent, {}}, {"a", "b", 1, kAbsent, {}}, {"b", "a", 1, kAbsent, {}}},
       "makes a cycle"},
      {"more children than there are",
       1,
       3,
       {{"a", "", 1, kAbsent, {}}, {"b", "", 1, kAbsent, {}}},
       "PodGroup ns/g: spec.minSubGroup: 3 is more than the 2 sub-groups below it"},
      {"minSubGroup of a leaf",
       1,
       kAbsent,
       {{"a", "", kAbsent, 1, {}}},
       "PodGroup ns/g: spec.subGroups[0].minSubGroup: 1 is more than the 0 sub-groups below it"},
  };
  for (const BadCase& c : cases) {
    SCOPED_TRACE(c.title);
    const GangSets read = ReadGangSets(Group(c.min_member, c.min_sub_group, c.sub_groups));
    EXPECT_THAT(read.problem, HasSubstr(c.problem));
    EXPECT_EQ(read.problem.find("subGroups[0]") != std::string::npos,
              std::string(c.problem).find("subGroups[0]") != std::string::npos);
    ASSERT_EQ(read.sets.size(), 1u);
    EXPECT_EQ(read.sets[0].min_member, 1);
    EXPECT_TRUE(read.sets[0].children.empty());
  }
}

TEST(ReadGangSetsTest, MinimumsOfLeavesAndInnerSets) {
  // Without sub-groups.
  EXPECT_EQ(ReadGangSets(Group(kAbsent, kAbsent, {})).sets[0].min_member, 1);
  EXPECT_EQ(ReadGangSets(Group(0, kAbsent, {})).sets[0].min_member, 0);
  EXPECT_EQ(ReadGangSets(Group(-4, kAbsent, {})).sets[0].min_member, 0);
  EXPECT_EQ(ReadGangSets(Group(7, kAbsent, {})).sets[0].min_member, 7);
  // With: v0.13's minMember of the group is the sum of the leaves and asks for nothing more.
  const GangSets read = ReadGangSets(Group(5, kAbsent,
                                           {{"c", "", 1, kAbsent, {}},
                                            {"ab", "", kAbsent, kAbsent, {"t", "r", "p"}},
                                            {"a", "ab", 2, kAbsent, {}},
                                            {"b", "ab", kAbsent, kAbsent, {}},
                                            {"mixed", "", 2, kAbsent, {}},
                                            {"m", "mixed", 0, kAbsent, {}}}));
  ASSERT_EQ(read.problem, "");
  ASSERT_EQ(read.warning, "");
  ASSERT_EQ(read.sets.size(), 7u);
  EXPECT_EQ(read.sets[0].min_member, 0);
  EXPECT_THAT(read.sets[0].children, ElementsAre(1, 2, 5));
  EXPECT_THAT(read.sets[2].children, ElementsAre(3, 4));
  EXPECT_EQ(read.sets[2].min_member, 0);
  EXPECT_EQ(read.sets[2].min_sub_group, kAbsent);
  EXPECT_EQ(read.sets[2].topology.required_level, "r");
  EXPECT_EQ(read.sets[3].min_member, 2);
  EXPECT_EQ(read.sets[3].parent, 2);
  EXPECT_EQ(read.sets[4].min_member, 1);
  EXPECT_EQ(read.sets[5].min_member, 2);
  EXPECT_EQ(read.sets[6].min_member, 0);
}

TEST(ReadGangSetsTest, BothMinimumsOnOneSetAreAWarning) {
  const GangSets inner =
      ReadGangSets(Group(4, 1, {{"a", "", 2, kAbsent, {}}, {"b", "", 2, kAbsent, {}}}));
  EXPECT_EQ(inner.problem, "");
  EXPECT_EQ(inner.warning,
            "PodGroup ns/g: spec.minMember: excludes minSubGroup; minMember is ignored");
  EXPECT_EQ(inner.sets[0].min_sub_group, 1);
  EXPECT_EQ(inner.sets[0].min_member, 0);
  const GangSets leaf = ReadGangSets(Group(kAbsent, kAbsent, {{"a", "", 2, 0, {}}}));
  EXPECT_EQ(leaf.warning,
            "PodGroup ns/g: spec.subGroups[0].minMember: excludes minSubGroup; minSubGroup is "
            "ignored");
  EXPECT_EQ(leaf.sets[1].min_member, 2);
}

class GangStateTest : public ::testing::Test {
 protected:
  GangStateTest() : state_(OurPods()) {}
  void TearDown() override { EXPECT_EQ(state_.CheckConsistency(), ""); }
  const PodRecord& Pod(absl::string_view name) { return state_.pod(state_.FindPod("ns", name)); }
  const Workload& W() { return state_.workload(state_.FindGroup("ns", "g")); }
  void AddPod(absl::string_view name, absl::string_view set, bool runs = false) {
    PodBuilder pod("ns", name);
    pod.Group("g");
    if (!set.empty()) pod.Label(model::kSubGroupLabel, set);
    if (runs) pod.On("n1");
    state_.UpsertPod(pod);
  }
  ClusterState state_;
};

TEST_F(GangStateTest, ALabelWithoutASetRefusesOnlyThatPod) {
  state_.UpsertPodGroup(Group(2, kAbsent, {{"a", "", 1, kAbsent, {}}, {"b", "", 1, kAbsent, {}}}));
  AddPod("p1", "b", true);
  AddPod("p2", "x", true);
  AddPod("p3", "");
  EXPECT_EQ(Pod("p1").set, 2);
  EXPECT_EQ(Pod("p1").details->invalid, "");
  EXPECT_EQ(Pod("p2").set, kNoSet);
  EXPECT_EQ(Pod("p2").details->invalid,
            "pod ns/p2: label kai.scheduler/subgroup-name: \"x\" is no sub-group of PodGroup g");
  EXPECT_EQ(Pod("p3").set, 0);
  EXPECT_EQ(W().details->invalid, "");
  EXPECT_EQ(W().active[2], 1);
  EXPECT_EQ(W().active[0], 0);
  // The set appears, and goes again.
  state_.UpsertPodGroup(Group(2, kAbsent, {{"x", "", 1, kAbsent, {}}}));
  EXPECT_EQ(Pod("p2").set, 1);
  EXPECT_EQ(Pod("p2").details->invalid, "");
  EXPECT_EQ(Pod("p1").set, kNoSet);
  EXPECT_NE(Pod("p1").details->invalid, "");
  EXPECT_EQ(W().active[1], 1);
  // Without the object the sets are unknown.
  state_.RemovePodGroup("ns", "g", "");
  EXPECT_EQ(Pod("p1").set, 0);
  EXPECT_EQ(Pod("p1").details->invalid, "");
  EXPECT_EQ(W().sets.size(), 1u);
  EXPECT_EQ(W().active[0], 2);
}

TEST_F(GangStateTest, AProblemOfThePodItselfOutlivesItsSet) {
  state_.UpsertPodGroup(Group(1, kAbsent, {{"a", "", 1, kAbsent, {}}}));
  model::Pod pod = PodBuilder("ns", "p").Group("g").Label(model::kSubGroupLabel, "x");
  pod.invalid = "bad fraction";
  state_.UpsertPod(pod);
  EXPECT_EQ(Pod("p").set, kNoSet);
  EXPECT_EQ(Pod("p").details->invalid, "bad fraction");
  state_.UpsertPodGroup(Group(1, kAbsent, {{"x", "", 1, kAbsent, {}}}));
  EXPECT_EQ(Pod("p").details->invalid, "bad fraction");
}

TEST_F(GangStateTest, PodsThatChangeTheirLabelOrGroupMoveWithTheirCounts) {
  state_.UpsertPodGroup(Group(2, kAbsent, {{"a", "", 1, kAbsent, {}}, {"b", "", 1, kAbsent, {}}}));
  AddPod("p", "a", true);
  EXPECT_EQ(W().active[1], 1);
  const uint64_t version = W().version;
  AddPod("p", "b", true);
  EXPECT_EQ(W().active[1], 0);
  EXPECT_EQ(W().active[2], 1);
  EXPECT_GT(W().version, version);
  state_.UpsertPod(PodBuilder("ns", "p").On("n1"));  // out of the group
  EXPECT_EQ(W().active[2], 0);
  EXPECT_EQ(Pod("p").set, 0);
  EXPECT_EQ(state_.workload(Pod("p").workload).active[0], 1);
  AddPod("p", "a", true);
  EXPECT_EQ(W().active[1], 1);
  state_.RemovePod("ns", "p", "");
  EXPECT_EQ(W().active[1], 0);
}

TEST_F(GangStateTest, ATreeThatIsNoneRefusesTheGroupAndNotItsPods) {
  state_.UpsertPodGroup(Group(2, kAbsent, {{"a", "a", 1, kAbsent, {}}}));
  AddPod("p", "a");
  EXPECT_THAT(W().details->invalid, HasSubstr("spec.subGroups[0].parent"));
  EXPECT_EQ(Pod("p").set, 0);
  EXPECT_EQ(Pod("p").details->invalid, "");
  state_.UpsertPodGroup(Group(2, kAbsent, {{"a", "", 1, kAbsent, {}}}));
  EXPECT_EQ(W().details->invalid, "");
  EXPECT_EQ(Pod("p").set, 1);
}

TEST_F(GangStateTest, StaleSinceSurvivesARestartAndFollowsItsAnnotation) {
  model::PodGroup group = Group(2, kAbsent, {});
  group.meta.annotations.Set(model::kStaleSinceAnnotation, "yesterday");
  state_.UpsertPodGroup(group);
  EXPECT_EQ(W().details->stale_since, absl::InfiniteFuture());
  EXPECT_EQ(W().details->warning,
            "PodGroup ns/g: annotation kai.scheduler/stale-podgroup-timestamp: \"yesterday\" is "
            "no RFC 3339 time; it is ignored");
  EXPECT_EQ(W().details->invalid, "");
  group.meta.annotations.Set(model::kStaleSinceAnnotation, "2023-11-14T22:13:20Z");
  EXPECT_TRUE(state_.UpsertPodGroup(group).workloads);
  EXPECT_EQ(W().details->stale_since, At(0));
  EXPECT_EQ(W().details->warning, "");
  EXPECT_FALSE(state_.UpsertPodGroup(group).Any());
  // What is decided stands until the annotation says something else.
  state_.SetStaleSince(W().id, absl::InfiniteFuture());
  EXPECT_FALSE(state_.UpsertPodGroup(group).Any());
  EXPECT_EQ(W().details->stale_since, absl::InfiniteFuture());
  state_.SetStaleSince(W().id, At(60));
  group.meta.annotations.Set(model::kStaleSinceAnnotation, "2023-11-14T22:14:20Z");
  EXPECT_FALSE(state_.UpsertPodGroup(group).Any()) << "the echo of its own decision";
  group.meta.annotations.Erase(model::kStaleSinceAnnotation);
  EXPECT_TRUE(state_.UpsertPodGroup(group).workloads);
  EXPECT_EQ(W().details->stale_since, absl::InfiniteFuture());
}

TEST_F(GangStateTest, StalenessGraceIsTheGroupsOrElseTheFirstPods) {
  model::PodGroup group = Group(2, kAbsent, {});
  state_.UpsertPodGroup(group);
  EXPECT_EQ(W().details->staleness_grace, kAbsent);
  PodBuilder pod("ns", "p");
  pod.Group("g").Annotation(model::kStalenessGraceAnnotation, "soon");
  state_.UpsertPod(pod);
  EXPECT_EQ(W().details->staleness_grace, kAbsent);
  EXPECT_EQ(W().details->warning,
            "pod ns/p: annotation kai.scheduler/staleness-grace-period: \"soon\" is no duration; "
            "it is ignored");
  state_.UpsertPod(pod.Annotation(model::kStalenessGraceAnnotation, "-1s"));
  EXPECT_EQ(W().details->staleness_grace, absl::Seconds(-1));
  EXPECT_EQ(W().details->warning, "");
  group.staleness_grace_period = absl::Minutes(5);
  state_.UpsertPodGroup(group);
  EXPECT_EQ(W().details->staleness_grace, absl::Minutes(5));
}

// A group whose sub-groups, some wrong, change under its pods.
model::PodGroup RandomGroup(std::mt19937_64& random) {
  std::vector<model::SubGroup> sub_groups;
  const uint64_t count = random() % 4;
  const std::string names[] = {"a", "b", "c", "d"};
  for (uint64_t i = 0; i < count; ++i) {
    sub_groups.push_back({names[random() % 8 == 0 ? 0 : i],
                          random() % 2 == 0 ? "" : names[random() % count],
                          static_cast<int32_t>(random() % 3),
                          kAbsent,
                          {}});
  }
  return Group(static_cast<int32_t>(random() % 4), kAbsent, std::move(sub_groups));
}

// A chain of sub-groups, or all of them below the group itself.
model::PodGroup ManySubGroups(size_t count, bool chain) {
  std::vector<model::SubGroup> sub_groups;
  for (size_t i = 0; i < count; ++i) {
    const std::string parent = chain && i > 0 ? absl::StrCat("s", i - 1) : "";
    sub_groups.push_back({absl::StrCat("s", i), parent, kAbsent, kAbsent, {}});
  }
  return Group(1, kAbsent, std::move(sub_groups));
}

TEST(GangSetsTest, OneObjectCannotHoldUpAllOthers) {
  EXPECT_EQ(ReadGangSets(ManySubGroups(kMaxSubGroups, false)).problem, "");
  EXPECT_EQ(ReadGangSets(ManySubGroups(kMaxSubGroups + 1, false)).problem,
            "PodGroup ns/g: spec.subGroups: 1025 items, at most 1024 are allowed");
  EXPECT_EQ(ReadGangSets(ManySubGroups(kMaxSubGroupLevels, true)).problem, "");
  EXPECT_EQ(
      ReadGangSets(ManySubGroups(kMaxSubGroupLevels + 1, true)).problem,
      "PodGroup ns/g: spec.subGroups[32].parent: at most 32 levels of sub-groups are allowed, "
      "and this is one more");
}

TEST(GangStateProperty, SetsStayExactUnderEventsAndUndo) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    ClusterState state(OurPods());
    state.UpsertNode(MakeNode("n1", 8));
    for (int step = 0; step < 40; ++step) {
      const std::string name = absl::StrCat("p", random() % 6);
      switch (random() % 5) {
        case 0:
          state.UpsertPodGroup(RandomGroup(random));
          break;
        case 1:
          state.RemovePodGroup("ns", "g", "");
          break;
        case 2:
          state.RemovePod("ns", name, "");
          break;
        default: {
          PodBuilder pod("ns", name);
          if (random() % 8 != 0) pod.Group("g");
          const char* labels[] = {"", "a", "b", "c", "x"};
          pod.Label(model::kSubGroupLabel, labels[random() % 5]);
          if (random() % 2 == 0) pod.On("n1");
          state.UpsertPod(pod);
        }
      }
      ASSERT_EQ(state.CheckConsistency(), "");
      const std::string before = state.Dump();
      {
        Transaction txn(state);
        for (int i = 0; i < 6; ++i) {
          const PodId id = state.FindPod("ns", absl::StrCat("p", i));
          if (id == kNoId || random() % 3 == 0) continue;
          if (state.pod(id).status == PodStatus::kPending) {
            txn.Allocate(id, state.FindNode("n1"));
          } else if (HoldsNode(state.pod(id).status) &&
                     state.pod(id).status != PodStatus::kReleasing) {
            txn.Evict(id);
          }
          ASSERT_EQ(state.CheckConsistency(), "");
        }
      }
      ASSERT_EQ(state.Dump(), before);
    }
  }
}

}  // namespace
}  // namespace fairlead::state
