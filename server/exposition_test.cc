#include "server/exposition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace fairlead::server {
namespace {

TEST(ExpositionTest, WordsEachTypeAsPrometheusReadsIt) {
  Metric counter{"a_total", "What a counts.", MetricType::kCounter, {}};
  counter.samples.push_back({{{"kind", "Pod"}}, 7, {}, 0});
  Metric gauge{"g", "G.", MetricType::kGauge, {}};
  gauge.samples.push_back({{}, std::numeric_limits<double>::infinity(), {}, 0});
  Metric histogram{"h_seconds", "H.", MetricType::kHistogram, {}};
  histogram.samples.push_back(
      {{}, 0, {{0.5, 1}, {std::numeric_limits<double>::infinity(), 3}}, 2.5});
  const std::string text =
      Expose({counter, gauge, histogram, {"none", "N.", MetricType::kGauge, {}}});
  EXPECT_EQ(text,
            "# HELP a_total What a counts.\n# TYPE a_total counter\na_total{kind=\"Pod\"} 7\n"
            "# HELP g G.\n# TYPE g gauge\ng +Inf\n"
            "# HELP h_seconds H.\n# TYPE h_seconds histogram\nh_seconds_count 3\n"
            "h_seconds_sum 2.5\nh_seconds_bucket{le=\"0.5\"} 1\nh_seconds_bucket{le=\"+Inf\"} 3\n"
            "# HELP none N.\n# TYPE none gauge\n");
}

// Tenants choose names of queues, and servers write error texts.
TEST(ExpositionTest, LabelsMayHoldAnything) {
  Metric metric{"m", "M.", MetricType::kGauge, {}};
  metric.samples.push_back({{{"queue", "a\"b\\c\nd"}}, 1, {}, 0});
  EXPECT_THAT(Expose({metric}), ::testing::HasSubstr(R"(m{queue="a\"b\\c\nd"} 1)"));
}

}  // namespace
}  // namespace fairlead::server
