#include "scheduler/model/instance_wishes.h"

#include <random>
#include <string>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/pod.h"

namespace fairlead::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Read {
  InstanceWishes wishes;
  std::vector<std::string> problems;
};

Read Parse(const StringMap& annotations) {
  std::vector<WishProblem> problems;
  Read read{ParseInstanceWishes(annotations, problems), {}};
  for (const WishProblem& problem : problems) {
    read.problems.push_back(absl::StrCat(problem.key, ": ", problem.what));
  }
  return read;
}

TEST(InstanceWishes, ReadsEveryAnnotationUnderBothNames) {
  for (const char* prefix : {"fairlead.dev/", "node.elotl.co/"}) {
    const auto with = [&](const char* wish, const char* value) {
      const Read read = Parse({{absl::StrCat(prefix, wish), value}});
      EXPECT_THAT(read.problems, IsEmpty()) << wish;
      EXPECT_TRUE(read.wishes.Any()) << wish;
      return read.wishes;
    };
    EXPECT_THAT(with("instance-family-inclusions", "m5, C5,m5").families, ElementsAre("c5", "m5"));
    EXPECT_THAT(with("instance-family-exclusions", "t3,t4g").other_families,
                ElementsAre("t3", "t4g"));
    EXPECT_EQ(with("instance-type-regexp", "^m5\\.").type.text(), "^m5\\.");
    EXPECT_THAT(with("instance-gpu-skus", "L4,A10G, a10 ,v100,L4").gpu_models,
                ElementsAre("L4", "A10G", "A10", "V100"));
    EXPECT_EQ(with("instance-max-cost", "2.50").max_micro_usd_per_hour, 2'500'000);
    EXPECT_EQ(with("instance-max-cost", "0").max_micro_usd_per_hour, 0);
    EXPECT_EQ(with("instance-max-cost", " .000001").max_micro_usd_per_hour, 1);
    EXPECT_EQ(with("instance-max-gpus", "0").max_gpus, 0);
    EXPECT_EQ(with("instance-max-gpus", "8").max_gpus, 8);
    EXPECT_TRUE(with("instance-offerings", "spot").spot);
    EXPECT_FALSE(with("instance-offerings", "spot").on_demand);
    const InstanceWishes both = with("instance-offerings", "on-demand, spot");
    EXPECT_TRUE(both.spot && both.on_demand);
    EXPECT_FALSE(both.ReadsOffering());
    const InstanceWishes paid = with("instance-offerings", "reserved");
    EXPECT_TRUE(paid.reserved && paid.ReadsOffering());
    EXPECT_FALSE(paid.spot || paid.on_demand);
  }
}

TEST(InstanceWishes, OtherAnnotationsSayNothing) {
  const Read read = Parse({{"node.elotl.co/else", "x"},
                           {"fairlead.dev/expected-duration", "1h"},
                           {"instance-max-gpus", "x"}});
  EXPECT_FALSE(read.wishes.Any());
  EXPECT_THAT(read.problems, IsEmpty());
}

TEST(InstanceWishes, WrongValuesAreNamedWithWhatIsAllowed) {
  struct Row {
    const char *wish, *value, *says;
  };
  constexpr Row kRows[] = {
      {"instance-family-inclusions", "", "must be a comma-separated list of instance families"},
      {"instance-family-inclusions", "m5,,c5", "must be a comma-separated list"},
      {"instance-family-exclusions", "m5;c5", "must be a comma-separated list"},
      {"instance-gpu-skus", "", "must be a comma-separated list of GPU models"},
      {"instance-gpu-skus", "L4,--", "\"--\" is no GPU model"},
      {"instance-gpu-skus", "L4,\x01", "\"L4,?\" must be a comma-separated list"},
      {"instance-offerings", "fargate",
       "\"fargate\" is no offering: allowed are spot, on-demand and reserved"},
      {"instance-offerings", "Spot", "is no offering"},
      {"instance-type-regexp", "", "must be a regular expression"},
      {"instance-type-regexp", "m5(", "is not a regular expression of RE2: \"missing )"},
      {"instance-type-regexp", "(?=m5)", "is not a regular expression of RE2"},
      {"instance-max-cost", "", "must be dollars per hour"},
      {"instance-max-cost", "-1", "must be dollars per hour"},
      {"instance-max-cost", "$2", "must be dollars per hour"},
      {"instance-max-cost", "1e3", "must be dollars per hour"},
      {"instance-max-cost", "nan", "must be dollars per hour"},
      {"instance-max-cost", "1.2.3", "must be dollars per hour"},
      {"instance-max-cost", ".", "must be dollars per hour"},
      {"instance-max-cost", "1000000.01", "at most 1000000"},
      {"instance-max-cost", "99999999999999999999", "at most 1000000"},
      {"instance-max-gpus", "", "must be a whole number from 0 to"},
      {"instance-max-gpus", "-1", "must be a whole number"},
      {"instance-max-gpus", "1.5", "must be a whole number"},
      {"instance-max-gpus", "1000001", "must be a whole number"},
      {"instance-max-gpus", "99999999999999999999999", "must be a whole number"},
  };
  for (const Row& row : kRows) {
    for (const char* prefix : {"fairlead.dev/", "node.elotl.co/"}) {
      const std::string key = absl::StrCat(prefix, row.wish);
      const Read read = Parse({{key, row.value}});
      ASSERT_EQ(read.problems.size(), 1) << key << " " << row.value;
      EXPECT_TRUE(absl::StartsWith(read.problems[0], key + ": ")) << read.problems[0];
      EXPECT_THAT(read.problems[0], HasSubstr(row.says));
      EXPECT_FALSE(read.wishes.Any()) << key << " " << row.value;
    }
  }
}

TEST(InstanceWishes, BoundsHold) {
  const std::string longest(kLongestWish, 'a');
  EXPECT_THAT(Parse({{kFamilyInclusionsAnnotation, longest}}).problems, IsEmpty());
  EXPECT_EQ(Parse({{kFamilyInclusionsAnnotation, longest + "a"}}).problems.size(), 1);
  std::vector<std::string> many;
  for (size_t i = 0; i < kMostWishes; ++i) many.push_back(absl::StrCat("m", i));
  EXPECT_EQ(Parse({{kGpuSkusAnnotation, absl::StrJoin(many, ",")}}).wishes.gpu_models.size(),
            kMostWishes);
  many.emplace_back("one-more");
  EXPECT_THAT(Parse({{kGpuSkusAnnotation, absl::StrJoin(many, ",")}}).problems,
              ElementsAre(HasSubstr("33 entries are more than the 32")));
  const std::string megabyte(1 << 20, ',');
  const Read huge = Parse({{kGpuSkusAnnotation, megabyte},
                           {kTypeRegexpAnnotation, megabyte},
                           {kMaxCostAnnotation, megabyte},
                           {kMaxGpusAnnotation, megabyte},
                           {kOfferingsAnnotation, megabyte}});
  EXPECT_EQ(huge.problems.size(), 5);
  for (const std::string& problem : huge.problems) EXPECT_LT(problem.size(), 300) << problem;
}

TEST(InstanceWishes, ExpressionsThatNeedMuchMemoryAreRefused) {
  EXPECT_TRUE(TypePattern::Make(std::string(kLongestPattern, 'a')).ok());
  EXPECT_FALSE(TypePattern::Make(std::string(kLongestPattern + 1, 'a')).ok());
  EXPECT_FALSE(TypePattern::Make("((a{100}){100}){100}").ok());
  EXPECT_FALSE(TypePattern::Make("(\\pL{900}|\\pN{900})").ok());
  // Within RE2's own bounds, but not within kPatternMemory.
  EXPECT_TRUE(TypePattern::Make("\\pL{5}").ok());
  EXPECT_FALSE(TypePattern::Make("\\pL{200}").ok());
  // No backtracking: a name cannot make it slow.
  const auto slow = TypePattern::Make("(a*)*(a*)*(a*)*b$");
  ASSERT_TRUE(slow.ok());
  EXPECT_FALSE(slow->Matches(std::string(100'000, 'a')));
}

TEST(InstanceWishes, PatternsMatchAnyPartOfTheName) {
  const auto pattern = TypePattern::Make("5\\.(x?)large$");
  ASSERT_TRUE(pattern.ok());
  EXPECT_TRUE(pattern->Matches("m5.large"));
  EXPECT_FALSE(pattern->Matches("m5.2xlarge"));
  EXPECT_FALSE(pattern->Matches("m5.large.x"));
  EXPECT_TRUE(TypePattern().Matches("anything"));
}

TEST(InstanceWishes, EqualTextsAreEqualPatternsBeyondWhatIsRemembered) {
  const auto first = TypePattern::Make("m5");
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(TypePattern::Make(absl::StrCat("c", i)).ok());
  const auto again = TypePattern::Make("m5");
  EXPECT_EQ(*first, *again);
  EXPECT_EQ(absl::HashOf(*first), absl::HashOf(*again));
  EXPECT_FALSE(*first == *TypePattern::Make("m6"));
  EXPECT_FALSE(*first == TypePattern());
}

TEST(InstanceWishes, BothNamesMaySayTheSameAndNothingElse) {
  const Read same = Parse({{kGpuSkusAnnotation, "L4, A10G"}, {kLunaGpuSkusAnnotation, "l4,A10G"}});
  EXPECT_THAT(same.problems, IsEmpty());
  EXPECT_THAT(same.wishes.gpu_models, ElementsAre("L4", "A10G"));
  const Read other = Parse({{kGpuSkusAnnotation, "A10G,L4"}, {kLunaGpuSkusAnnotation, "L4,A10G"}});
  EXPECT_THAT(other.problems, ElementsAre("fairlead.dev/instance-gpu-skus: contradicts "
                                          "node.elotl.co/instance-gpu-skus: remove one of them"));
  EXPECT_FALSE(other.wishes.Any());
  EXPECT_THAT(
      Parse({{kLunaFamilyInclusionsAnnotation, "m5,c5"}, {kFamilyExclusionsAnnotation, "t3,M5"}})
          .problems,
      ElementsAre("node.elotl.co/instance-family-inclusions: contradicts "
                  "fairlead.dev/instance-family-exclusions: remove one of them"));
  EXPECT_THAT(
      Parse({{kDoNotEvictAnnotation, "false"}, {kLunaDoNotEvictAnnotation, "true"}}).problems,
      ElementsAre(HasSubstr("fairlead.dev/do-not-evict: contradicts "
                            "pod.elotl.co/do-not-evict")));
}

TEST(InstanceWishes, ValuesThatAreYesOrNo) {
  for (const char* key : {kDoNotEvictAnnotation, kLunaDoNotEvictAnnotation, kEstimateAnnotation}) {
    EXPECT_THAT(Parse({{key, "true"}}).problems, IsEmpty());
    EXPECT_THAT(Parse({{key, "false"}}).problems, IsEmpty());
    EXPECT_THAT(Parse({{key, "yes"}}).problems,
                ElementsAre(absl::StrCat(key, ": \"yes\" must be \"true\" or \"false\"")));
  }
  EXPECT_TRUE(WantsEstimate({{kEstimateAnnotation, "true"}}));
  EXPECT_FALSE(WantsEstimate({{kEstimateAnnotation, "yes"}}));
  EXPECT_FALSE(WantsEstimate({}));
}

TEST(InstanceWishes, APodStaysIfAnyAnnotationSaysSoAndInDoubt) {
  EXPECT_FALSE(MustStay({}));
  EXPECT_TRUE(MustStay({{kDoNotEvictAnnotation, "true"}}));
  EXPECT_TRUE(MustStay({{kLunaDoNotEvictAnnotation, "true"}}));
  EXPECT_TRUE(MustStay({{kLunaDoNotEvictAnnotation, "yes"}}));
  EXPECT_FALSE(MustStay({{kLunaDoNotEvictAnnotation, "false"}}));
  EXPECT_TRUE(MustStay({{kSafeToEvictAnnotation, "false"}}));
  EXPECT_FALSE(MustStay({{kSafeToEvictAnnotation, "true"}}));
  EXPECT_TRUE(MustStay({{kKarpenterDoNotDisruptAnnotation, "true"}}));
  EXPECT_TRUE(MustStay({{kDoNotRemoveAnnotation, "true"}}));
  EXPECT_TRUE(MustStay({{kDoNotEvictAnnotation, "false"}, {kSafeToEvictAnnotation, "false"}}));
}

InstanceWishes Wishes(const char* key, const char* value) {
  const Read read = Parse({{key, value}});
  EXPECT_THAT(read.problems, IsEmpty());
  return read.wishes;
}

TEST(UnmetWish, LooksAtTheLabelsOfTheNode) {
  const StringMap g5 = {{"node.kubernetes.io/instance-type", "g5.xlarge"},
                        {"nvidia.com/gpu.product", "NVIDIA-A10G"},
                        {"karpenter.sh/capacity-type", "spot"}};
  const auto unmet = [&](const char* key, const char* value, const StringMap& labels,
                         int64_t gpus = 1) {
    return std::string(UnmetWish(Wishes(key, value), labels, gpus));
  };
  EXPECT_EQ(unmet(kFamilyInclusionsAnnotation, "p5,G5", g5), "");
  EXPECT_EQ(unmet(kFamilyInclusionsAnnotation, "p5,g4dn", g5), "instance-family-inclusions");
  EXPECT_EQ(unmet(kFamilyExclusionsAnnotation, "g5", g5), "instance-family-exclusions");
  EXPECT_EQ(unmet(kFamilyExclusionsAnnotation, "g5g", g5), "");
  EXPECT_EQ(unmet(kTypeRegexpAnnotation, "^g[45]", g5), "");
  EXPECT_EQ(unmet(kTypeRegexpAnnotation, "^p", g5), "instance-type-regexp");
  EXPECT_EQ(unmet(kGpuSkusAnnotation, "H100,A10G", g5), "");
  EXPECT_EQ(unmet(kGpuSkusAnnotation, "A10", g5), "instance-gpu-skus");
  EXPECT_EQ(unmet(kOfferingsAnnotation, "spot", g5), "");
  EXPECT_EQ(unmet(kOfferingsAnnotation, "spot,on-demand", g5), "");
  EXPECT_EQ(unmet(kOfferingsAnnotation, "on-demand", g5), "instance-offerings");
  EXPECT_EQ(unmet(kOfferingsAnnotation, "reserved", g5), "instance-offerings");
  EXPECT_EQ(unmet(kOfferingsAnnotation, "spot,reserved", g5), "");
  for (const char* key : {"karpenter.sh/capacity-type", "fairlead.dev/capacity-type"}) {
    const StringMap paid = {{key, "reserved"}};
    EXPECT_EQ(unmet(kOfferingsAnnotation, "reserved", paid), "");
    EXPECT_EQ(unmet(kOfferingsAnnotation, "on-demand", paid), "") << "no cloud takes it back";
    EXPECT_EQ(unmet(kOfferingsAnnotation, "spot", paid), "instance-offerings");
    EXPECT_EQ(unmet(kOfferingsAnnotation, "spot,on-demand", paid), "");
  }
  EXPECT_EQ(unmet(kMaxGpusAnnotation, "1", g5), "");
  EXPECT_EQ(unmet(kMaxGpusAnnotation, "1", g5, 2), "instance-max-gpus");
  EXPECT_EQ(unmet(kMaxGpusAnnotation, "0", g5, 0), "");
  EXPECT_EQ(unmet(kMaxCostAnnotation, "0", g5), "");
  // A node that says nothing of itself is of no family, no type, no GPU, and not spot.
  EXPECT_EQ(unmet(kFamilyInclusionsAnnotation, "g5", {}), "instance-family-inclusions");
  EXPECT_EQ(unmet(kFamilyExclusionsAnnotation, "g5", {}), "");
  EXPECT_EQ(unmet(kTypeRegexpAnnotation, ".*", {}), "instance-type-regexp");
  EXPECT_EQ(unmet(kGpuSkusAnnotation, "T4", {}), "instance-gpu-skus");
  EXPECT_EQ(unmet(kOfferingsAnnotation, "spot", {}), "instance-offerings");
  EXPECT_EQ(unmet(kOfferingsAnnotation, "on-demand", {}), "");
  EXPECT_EQ(unmet(kOfferingsAnnotation, "reserved", {}), "instance-offerings");
}

TEST(InstanceWishes, ArePartOfWhatMakesPodsEqual) {
  PodSpec plain, wishing, same;
  wishing.wishes = Wishes(kGpuSkusAnnotation, "H100,A100");
  same.wishes = Wishes(kLunaGpuSkusAnnotation, "h100, a100");
  EXPECT_EQ(wishing, same);
  EXPECT_EQ(absl::HashOf(wishing), absl::HashOf(same));
  std::vector<PodSpec> different(7, plain);
  different[0].wishes = Wishes(kGpuSkusAnnotation, "A100,H100");
  different[1].wishes = Wishes(kFamilyInclusionsAnnotation, "m5");
  different[2].wishes = Wishes(kFamilyExclusionsAnnotation, "m5");
  different[3].wishes = Wishes(kTypeRegexpAnnotation, "m5");
  different[4].wishes = Wishes(kOfferingsAnnotation, "spot");
  different[5].wishes = Wishes(kMaxCostAnnotation, "0");
  different[6].wishes = Wishes(kMaxGpusAnnotation, "0");
  different.push_back(plain);
  different.push_back(wishing);
  for (size_t a = 0; a < different.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      EXPECT_FALSE(different[a] == different[b]) << a << " " << b;
      EXPECT_NE(absl::HashOf(different[a]), absl::HashOf(different[b])) << a << " " << b;
    }
  }
}

// Whatever bytes the values are: no crash, and a value is either a wish or a problem.
TEST(InstanceWishes, AnyBytesAreReadOrRefused) {
  constexpr const char* kKeys[] = {kFamilyInclusionsAnnotation, kFamilyExclusionsAnnotation,
                                   kGpuSkusAnnotation,          kTypeRegexpAnnotation,
                                   kOfferingsAnnotation,        kMaxCostAnnotation,
                                   kMaxGpusAnnotation};
  constexpr absl::string_view kPieces[] = {"m5",        ",", "(",        ")",  "*",  "spot",
                                           "on-demand", "1", ".",        "-",  "\\", "[",
                                           "{9}",       " ", "\x00\xff", "L4", "^",  "?"};
  std::mt19937 random(20261127);  // NOLINT(cert-msc51-cpp): the same each time
  for (int i = 0; i < 20'000; ++i) {
    std::string value;
    for (uint32_t n = random() % 8; n > 0; --n) {
      absl::StrAppend(&value, kPieces[random() % std::size(kPieces)]);
    }
    const char* key = kKeys[random() % std::size(kKeys)];
    const Read read = Parse({{key, value}});
    EXPECT_EQ(read.wishes.Any(), read.problems.empty()) << key << " " << value;
    if (read.wishes.Any()) {
      static_cast<void>(UnmetWish(read.wishes, {{"node.kubernetes.io/instance-type", value}}, 1));
    }
  }
}

}  // namespace
}  // namespace fairlead::model
