#include "scheduler/model/resource_version.h"

#include <gtest/gtest.h>

namespace fairlead::model {
namespace {

TEST(ResourceVersionTest, ComparesOnlyWhatIsComparable) {
  EXPECT_EQ(CompareVersions("9", "10"), VersionOrder::kOlder);
  EXPECT_EQ(CompareVersions("10", "9"), VersionOrder::kNewer);
  EXPECT_EQ(CompareVersions("10", "10"), VersionOrder::kEqual);
  EXPECT_EQ(CompareVersions("18446744073709551616", "18446744073709551615"), VersionOrder::kNewer);
  EXPECT_EQ(CompareVersions("a", "a"), VersionOrder::kEqual);
  for (const char* odd : {"", "a", "1a", "-1", "01", " 1"}) {
    EXPECT_EQ(CompareVersions(odd, "5"), VersionOrder::kUnknown) << odd;
    EXPECT_EQ(CompareVersions("5", odd), VersionOrder::kUnknown) << odd;
  }
  EXPECT_EQ(CompareVersions("", ""), VersionOrder::kUnknown);
  EXPECT_EQ(CompareVersions("0", "5"), VersionOrder::kOlder);
}

}  // namespace
}  // namespace fairlead::model
