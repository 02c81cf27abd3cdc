#include "usage-prometheus/query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "usage-prometheus/testing.h"

namespace fairlead::prometheus {
namespace {

using ::testing::HasSubstr;
using testing::ParamOf;

absl::Time Now() { return absl::FromUnixSeconds(1'767'268'800); }  // 2026-01-01 12:00, a Thursday

std::vector<Question> Ask(const QueryOptions& options, absl::Time now = Now()) {
  const auto queries = Queries::Create(options);
  EXPECT_TRUE(queries.ok()) << queries.status();
  return queries.ok() ? queries->At(now) : std::vector<Question>();
}
std::string FirstQuery(const QueryOptions& options, absl::Time now = Now()) {
  return ParamOf(Ask(options, now).at(0).path, "query");
}

TEST(QueryTest, OptionsThatMakeNoSenseAreNamed) {
  QueryOptions options;
  options.resolution = absl::Milliseconds(1500);
  EXPECT_THAT(Queries::Create(options).status().message(), HasSubstr("queryResolution"));
  options.resolution = absl::ZeroDuration();
  EXPECT_THAT(Queries::Create(options).status().message(), HasSubstr("queryResolution"));
  options = {};
  options.timeout = absl::ZeroDuration();
  EXPECT_THAT(Queries::Create(options).status().message(), HasSubstr("usageQueryTimeout"));
  options = {};
  options.usage.window = absl::Seconds(1);
  EXPECT_THAT(Queries::Create(options).status().message(), HasSubstr("windowSize"));
  options = {};
  options.usage.window_type = queues::WindowType::kCron;
  options.usage.cron = "never";
  EXPECT_FALSE(Queries::Create(options).ok());
}

TEST(QueryTest, TheDefaultsAreKaisMetricsOverAWeek) {
  const std::vector<Question> questions = Ask({});
  ASSERT_EQ(questions.size(), 6u);
  const std::pair<size_t, const char*> expected[] = {
      {0, "sum_over_time((max by (queue_name) (kai_queue_allocated_gpus))[604800s:60s])"},
      {0,
       "sum_over_time(((sum(kube_node_status_capacity{resource=\"nvidia_com_gpu\"})))"
       "[604800s:60s])"},
      {1, "sum_over_time((max by (queue_name) (kai_queue_allocated_cpu_cores))[604800s:60s])"},
      {1, "sum_over_time(((sum(kube_node_status_capacity{resource=\"cpu\"})))[604800s:60s])"},
      {2, "sum_over_time((max by (queue_name) (kai_queue_allocated_memory_bytes))[604800s:60s])"},
      {2, "sum_over_time(((sum(kube_node_status_capacity{resource=\"memory\"})))[604800s:60s])"},
  };
  for (size_t i = 0; i < questions.size(); ++i) {
    EXPECT_EQ(questions[i].metric, expected[i].first);
    EXPECT_EQ(questions[i].capacity, i % 2 == 1);
    EXPECT_EQ(ParamOf(questions[i].path, "query"), expected[i].second);
    EXPECT_EQ(ParamOf(questions[i].path, "time"), "1767268800");
    EXPECT_EQ(ParamOf(questions[i].path, "timeout"), "10000ms");
    EXPECT_EQ(questions[i].path.rfind("/api/v1/query?", 0), 0u);
  }
}

TEST(QueryTest, HalfLifeIsAFactorOfBoth) {
  QueryOptions options;
  options.usage.half_life = absl::Milliseconds(86'400'500);
  options.metrics = {{"gpu", "nvidia.com/gpu", "held{a=\"b\"}", "vector(8)"}};
  const std::vector<Question> questions = Ask(options);
  EXPECT_EQ(ParamOf(questions.at(0).path, "query"),
            "sum_over_time((max by (queue_name) (held{a=\"b\"}) * "
            "0.5^((1767268800 - time()) / 86400.500))[604800s:60s])");
  EXPECT_EQ(ParamOf(questions.at(1).path, "query"),
            "sum_over_time(((vector(8)) * 0.5^((1767268800 - time()) / 86400.500))[604800s:60s])");
  // Queries ignore fractions of a second.
  EXPECT_EQ(Ask(options, Now() + absl::Milliseconds(900)).at(0).path, questions.at(0).path);
}

TEST(QueryTest, AWindowReachesBackToItsBeginning) {
  QueryOptions options;
  options.resolution = absl::Seconds(30);
  options.usage.window_type = queues::WindowType::kTumbling;
  options.usage.window = absl::Hours(24);
  EXPECT_THAT(FirstQuery(options), HasSubstr("[43200s:30s]"));
  // At the boundary the new window has one step.
  EXPECT_THAT(FirstQuery(options, Now() + absl::Hours(12)), HasSubstr("[30s:30s]"));
  EXPECT_THAT(FirstQuery(options, Now() + absl::Hours(12) + absl::Seconds(31)),
              HasSubstr("[31s:30s]"));
  options.usage.window_type = queues::WindowType::kCron;
  options.usage.cron = "0 0 * * 1";
  EXPECT_THAT(FirstQuery(options), HasSubstr(absl::StrCat("[", (3 * 24 + 12) * 3600, "s:30s]")));
  options.usage.window_type = queues::WindowType::kSliding;
  options.usage.window = absl::Milliseconds(60'001);
  options.usage.staleness = absl::Minutes(1);
  EXPECT_THAT(FirstQuery(options), HasSubstr("[61s:30s]"));
}

}  // namespace
}  // namespace fairlead::prometheus
