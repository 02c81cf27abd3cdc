#include "extenders/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace fairlead::extenders {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class WireTest : public ::testing::Test {
 protected:
  // "a b- c!": admitted, refused, unresolvable; or the error.
  std::string Filtered(absl::string_view body, bool node_cache_capable = true) {
    const auto verdicts = ReadFilterResult(body, node_cache_capable, nodes_);
    if (!verdicts.ok()) return std::string(verdicts.status().message());
    std::string out;
    for (size_t i = 0; i < verdicts->size(); ++i) {
      const NodeVerdict& verdict = (*verdicts)[i];
      absl::StrAppend(&out, i == 0 ? "" : " ", names_[i],
                      verdict.admitted       ? ""
                      : verdict.unresolvable ? "!"
                                             : "-",
                      verdict.reason);
    }
    return out;
  }
  std::vector<int64_t> Scores(absl::string_view body, int64_t weight = 1) {
    const auto points = ReadScores(body, weight, nodes_);
    EXPECT_TRUE(points.ok()) << points.status();
    return points.value_or(std::vector<int64_t>());
  }

  const std::vector<std::string> names_ = {"a", "b", "c"};
  AskedNodes nodes_{names_};
};

TEST_F(WireTest, KeysMayHaveAnyCase) {
  EXPECT_EQ(Filtered(R"({"nodenames":["a"],"failednodes":{"b":"x"},)"
                     R"("failedAndUnresolvableNodes":{"c":"y"},"error":""})"),
            "a b-x c!y");
  EXPECT_EQ(Filtered(R"({"nodes":{"Items":[{"Metadata":{"Name":"b"}}]}})"), "a- b c-");
  EXPECT_EQ(Filtered(R"({"eRROR":"no"})"), "no");
  EXPECT_THAT(Scores(R"([{"host":"b","SCORE":3}])"), ElementsAre(0, 30, 0));
  EXPECT_EQ(ReadBindingResult(R"({"error":"no"})").value(), "no");
}

TEST_F(WireTest, NamesCountForAnExtenderWithCacheAlone) {
  EXPECT_EQ(Filtered(R"({"NodeNames":["a"],"Nodes":{"items":[{"metadata":{"name":"b"}}]}})"),
            "a b- c-");
  EXPECT_EQ(Filtered(R"({"NodeNames":["a"],"Nodes":{"items":[{"metadata":{"name":"b"}}]}})", false),
            "a- b c-");
  EXPECT_EQ(Filtered(R"({"NodeNames":null,"Nodes":{"items":[{"metadata":{"name":"b"}}]}})"),
            "a- b c-");
  EXPECT_EQ(Filtered(R"({"NodeNames":["a"]})", false), "a- b- c-");
  EXPECT_EQ(Filtered("null"), "a- b- c-") << "Go's decoder reads null as nothing";
}

TEST_F(WireTest, AStrangerInTheListThatDoesNotCountIsNoError) {
  EXPECT_EQ(Filtered(R"({"NodeNames":["z"],"Nodes":{"items":[]}})", false), "a- b- c-");
}

TEST_F(WireTest, TheListOfNodesDecidesAlone) {
  EXPECT_EQ(Filtered(R"({"NodeNames":["a"],"FailedNodes":{"a":"x","b":"y"}})"), "a b-y c-");
}

TEST_F(WireTest, OfTwoEqualKeysTheLastCounts) {
  EXPECT_EQ(Filtered(R"({"NodeNames":["z"],"NodeNames":["b","b"]})"), "a- b c-");
  EXPECT_EQ(Filtered(R"({"FailedNodes":{"a":"x","a":"y"},"FailedNodes":{"b":"z"}})"), "a-y b-z c-");
}

TEST_F(WireTest, WhatIsUnknownIsSkippedHoweverDeep) {
  const std::string deep = std::string(2000, '[') + std::string(2000, ']');
  EXPECT_EQ(Filtered(absl::StrCat(R"({"More":)", deep, R"(,"NodeNames":["a"]})")), "a b- c-");
}

TEST_F(WireTest, ANodeThatIsNotLeftIsAStranger) {
  nodes_.Remove(1);
  nodes_.Remove(1);
  EXPECT_EQ(nodes_.count_left(), 2u);
  EXPECT_THAT(Filtered(R"({"NodeNames":["b"]})"), HasSubstr("\"b\" was not asked about"));
  EXPECT_THAT(Scores(R"([{"Host":"b","Score":3}])"), ElementsAre(0, 0, 0));
}

TEST_F(WireTest, OfTwoEqualNamesTheFirstIsAskedAbout) {
  const std::vector<std::string> names = {"a", "a"};
  const AskedNodes nodes(names);
  EXPECT_EQ(nodes.count_left(), 1u);
  EXPECT_EQ(ArgsWithNames("{}", nodes), R"({"Pod":{},"Nodes":null,"NodeNames":["a"]})");
}

TEST_F(WireTest, ScoresAreClampedAndUnknownHostsIgnored) {
  EXPECT_THAT(Scores(R"([{"Host":"a","Score":11},{"Host":"b","Score":-1},{"Host":"z","Score":5},
                        {"Score":5},{"Host":"c"}])"),
              ElementsAre(100, 0, 0));
}

TEST_F(WireTest, AHostThatIsListedTwiceGetsBothScoresAsUpstream) {
  EXPECT_THAT(Scores(R"([{"Host":"a","Score":3},{"Host":"a","Score":4}])"), ElementsAre(70, 0, 0));
}

TEST_F(WireTest, PointsDoNotOverflow) {
  const int64_t huge = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(Scores(R"([{"Host":"a","Score":10},{"Host":"a","Score":10}])", huge),
              ElementsAre(kPointsMax, 0, 0));
  EXPECT_THAT(Scores(R"([{"Host":"a","Score":10}])", -5), ElementsAre(0, 0, 0));
  EXPECT_EQ(AddPoints(kPointsMax, kPointsMax), kPointsMax);
  EXPECT_EQ(AddPoints(huge, huge), kPointsMax);
  EXPECT_EQ(AddPoints(2, 3), 5);
}

TEST_F(WireTest, TextsAreEscaped) {
  EXPECT_EQ(BindingArgs("ns", "p\"", "u", "n"),
            R"({"PodName":"p\"","PodNamespace":"ns","PodUID":"u","Node":"n"})");
}

TEST_F(WireTest, ABindingResultIsItsError) {
  EXPECT_EQ(ReadBindingResult(R"({"Error":""})").value(), "");
  EXPECT_EQ(ReadBindingResult("{}").value(), "");
  EXPECT_EQ(ReadBindingResult("{\"Error\":\"\xff\"}").value(), "\xef\xbf\xbd");
  EXPECT_EQ(
      ReadBindingResult(absl::StrCat(R"({"Error":")", std::string(999, 'x'), "\"}")).value().size(),
      kTextBytes);
  for (const char* bad : {"", "[]", "{", "no", R"({"Error":1})", "{} {}", "\"\"", "7"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ReadBindingResult(bad).status())) << bad;
  }
}

TEST_F(WireTest, ItemsAreCutOutAsTheyAreWritten) {
  std::vector<std::pair<std::string, std::string>> items;
  const auto item = [&](absl::string_view name, std::string text) {
    items.emplace_back(name, std::move(text));
  };
  EXPECT_EQ(ReadItems(R"({"items":[ {"metadata":{"name":"a"},"v": 1.0e1,"s":"]}"} ,
                         {"spec":{}},{"spec":{"metadata":{"name":"no"}},"metadata":{"name":"b"}}]})",
                      item),
            absl::OkStatus());
  EXPECT_THAT(
      items,
      ElementsAre(Pair("a", R"({"metadata":{"name":"a"},"v": 1.0e1,"s":"]}"})"),
                  Pair("b", R"({"spec":{"metadata":{"name":"no"}},"metadata":{"name":"b"}})")));
  EXPECT_FALSE(ReadItems(R"({"items":[{"metadata":{"name":"a"}})", item).ok());
}

}  // namespace
}  // namespace fairlead::extenders
