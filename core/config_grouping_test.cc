// Field `grouping` of FairleadConfiguration. Lines of errors:
// cmd/fairlead/settings/config_file_test.cc.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/configuration.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::core {
namespace {

using ::testing::StartsWith;

absl::StatusOr<Configuration> ReadGroupingOf(const std::string& grouping) {
  return ReadConfiguration(
      {absl::StrCat(R"({"apiVersion":"config.fairlead.dev/v1alpha1",)",
                    R"("kind":"FairleadConfiguration","grouping":)", grouping, "}")});
}

TEST(ConfigGroupingTest, ItIsOffUnlessItIsTurnedOn) {
  const auto none = ReadConfiguration({});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_FALSE(none->options.grouping.enabled);
  const auto on = ReadGroupingOf(R"({"enabled":true,"ownerReadsPerSecond":7})");
  ASSERT_TRUE(on.ok()) << on.status();
  EXPECT_TRUE(on->options.grouping.enabled);
  EXPECT_EQ(on->options.grouping.reads_per_second, 7);
  EXPECT_TRUE(on->options.grouping.suspend);
  const auto evicts = ReadGroupingOf(R"({"enabled":true,"suspend":false})");
  ASSERT_TRUE(evicts.ok()) << evicts.status();
  EXPECT_FALSE(evicts->options.grouping.suspend);
  EXPECT_EQ(on->options.grouping.table->rows().size(),
            grouping::KindTable::BuiltIn().rows().size());
}

TEST(ConfigGroupingTest, RowsOfUsersComeFirst) {
  const auto read = ReadGroupingOf(
      R"({"enabled":true,"kinds":[{"group":"example.com","kind":"Simulation","per":"pod"}]})");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->options.grouping.table->rows().front().kind, "Simulation");
  EXPECT_EQ(read->options.grouping.table->rows().size(),
            grouping::KindTable::BuiltIn().rows().size() + 1);
}

TEST(ConfigGroupingTest, WhatIsWrongIsNamedWithItsField) {
  const std::pair<std::string, std::string> cases[] = {
      {R"({"enabled":"yes"})", "grouping.enabled: "},
      {R"({"suspend":1})", "grouping.suspend: "},
      {R"({"ownerReadsPerSecond":0})", "grouping.ownerReadsPerSecond: "},
      {R"({"kind":[]})", "grouping.kind: is not a known field"},
      {R"({"kinds":{}})", "grouping.kinds: "},
      {R"({"kinds":[{"group":"g","kind":"K","minMembers":1}]})", "grouping.kinds[0].minMembers: "},
      {R"({"kinds":[{"group":"g","kind":"K"},{"group":"g"}]})", "grouping.kinds[1]"},
  };
  for (const auto& [grouping, begin] : cases) {
    const auto read = ReadGroupingOf(grouping);
    ASSERT_FALSE(read.ok()) << grouping;
    EXPECT_THAT(std::string(read.status().message()), StartsWith(begin)) << grouping;
    ASSERT_TRUE(FieldPlaceOf(read.status()).has_value()) << grouping;
    EXPECT_THAT(FieldPlaceOf(read.status())->path + ": ", StartsWith(begin.substr(0, 13)));
  }
}

}  // namespace
}  // namespace fairlead::core
