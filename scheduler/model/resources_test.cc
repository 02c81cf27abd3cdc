#include "scheduler/model/resources.h"

#include <limits>

#include "gtest/gtest.h"

namespace fairlead::model {
namespace {

TEST(ResourcesTest, FitsComparesOnlyWhatIsAskedFor) {
  Resources want;
  want.Set(kGpu, 1000);
  Resources have;
  have.Set(kCpu, -5);
  have.Set(kGpu, 1000);
  EXPECT_TRUE(want.FitsIn(have));
  want.Set(kCpu, 1);
  EXPECT_FALSE(want.FitsIn(have));
}

TEST(ResourcesTest, EqualityAndHashIgnoreTrailingZeros) {
  Resources a;
  a.Set(kCpu, 1);
  Resources b = a;
  b.Set(9, 7);
  b -= b;
  b.Set(kCpu, 1);
  EXPECT_TRUE(a == b);
  EXPECT_EQ(absl::HashOf(a), absl::HashOf(b));
}

TEST(ResourcesTest, Saturates) {
  Resources a;
  a.Set(kMemory, std::numeric_limits<int64_t>::max());
  a += a;
  EXPECT_EQ(a[kMemory], std::numeric_limits<int64_t>::max());
  EXPECT_EQ(a.Times(-2)[kMemory], std::numeric_limits<int64_t>::min());
}

TEST(ResourcesTest, NamesRoundTrip) {
  ResourceNames names;
  ResourceList list = {{"cpu", 500}, {"example.com/fpga", 2}};
  Resources r = Resources::From(list, names);
  EXPECT_EQ(r[kCpu], 500);
  EXPECT_EQ(r.ToList(names), list);
}

TEST(ResourceListTest, StaysSorted) {
  ResourceList list;
  Set(list, "memory", 1);
  Add(list, "cpu", 2);
  Add(list, "cpu", 3);
  MaxAll(list, {{"cpu", 4}, {"memory", 9}});
  EXPECT_EQ(list, (ResourceList{{"cpu", 5}, {"memory", 9}}));
}

TEST(FormatTest, ForPeopleAndForKubernetes) {
  EXPECT_EQ(FormatAmount("cpu", 1500), "1.5");
  EXPECT_EQ(FormatAmount("nvidia.com/gpu", -250), "-0.25");
  EXPECT_EQ(FormatAmount("memory", int64_t{80} << 30), "80Gi");
  EXPECT_EQ(FormatAmount("memory", (int64_t{3} << 29)), "1.5Gi");
  EXPECT_EQ(FormatAmount("example.com/fpga", 3), "3");
  EXPECT_EQ(FormatQuantity("cpu", 1500), "1500m");
  EXPECT_EQ(FormatQuantity("cpu", 2000), "2");
  EXPECT_EQ(FormatQuantity("memory", 1024), "1024");
}

}  // namespace
}  // namespace fairlead::model
