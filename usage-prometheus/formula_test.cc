// The usage computed by Prometheus equals the usage of the program's own record. Both see the same
// queues hold the same GPUs: one as samples of its ledger, the other as series in a Prometheus of
// the tests, which evaluates the queries in floating point.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <regex>
#include <vector>

#include "absl/strings/str_format.h"
#include "kube/transport/fake_transport.h"
#include "queues/ledger.h"
#include "queues/reported_usage.h"
#include "queues/usage_record.h"
#include "usage-prometheus/fetcher.h"
#include "usage-prometheus/testing.h"

namespace fairlead::prometheus {
namespace {

using kube::FakeTransport;
using model::kGpu;

// The GPUs held from a time on, and the GPUs of the cluster.
struct Period {
  int64_t from_s;
  std::map<std::string, double> held;
  double capacity;
};

// Evaluates the queries of query.h and no other PromQL.
class SmallPrometheus {
 public:
  explicit SmallPrometheus(std::vector<Period> periods) : periods_(std::move(periods)) {}

  std::string Answer(const std::string& path) const {
    static const std::regex kShape(
        R"(sum_over_time\(\((max by \(queue_name\) \(held\)|\(capacity\)))"
        R"((?: \* 0\.5\^\(\((\d+) - time\(\)\) / ([0-9.]+)\))?\)\[(\d+)s:(\d+)s\]\))");
    const std::string query = testing::ParamOf(path, "query");
    const int64_t at = std::stoll(testing::ParamOf(path, "time"));
    std::smatch match;
    if (!std::regex_match(query, match, kShape)) {
      ADD_FAILURE() << "not understood: " << query;
      return R"({"status":"error","error":"parse error"})";
    }
    const int64_t length = std::stoll(match[4]);
    const int64_t step = std::stoll(match[5]);
    std::map<std::string, double> sums;
    // Steps are the multiples of their length after the window's start, up to now.
    for (int64_t t = (at - length) / step * step + step; t <= at; t += step) {
      const double weight =
          match[3].matched
              ? std::pow(0.5, (std::stod(match[2]) - static_cast<double>(t)) / std::stod(match[3]))
              : 1;
      const Period* period = At(t);
      if (period == nullptr) continue;
      if (match[1] == "(capacity)") {
        sums[""] += weight * period->capacity;
      } else {
        for (const auto& [queue, held] : period->held) sums[queue] += weight * held;
      }
    }
    std::vector<std::pair<std::string, std::string>> samples;
    for (const auto& [queue, sum] : sums)
      samples.emplace_back(queue, absl::StrFormat("%.17g", sum));
    return testing::Vector(samples);
  }

 private:
  const Period* At(int64_t t) const {
    const Period* found = nullptr;
    for (const Period& period : periods_) {
      if (period.from_s <= t) found = &period;
    }
    return found;
  }
  std::vector<Period> periods_;
};

class FormulaTest : public ::testing::Test {
 protected:
  static constexpr int64_t kEnd = 1'767'268'800;  // 2026-01-01 12:00, a Thursday

  FormulaTest() {
    for (const char* name : {"a", "b", "c"}) {
      model::Queue queue;
      queue.meta.name = name;
      tree_.Upsert(queue);
    }
  }
  // Half an hour each, over a hundred hours. All periods differ, and the cluster grows and shrinks.
  static std::vector<Period> History() {
    std::mt19937_64 random(7);
    std::vector<Period> periods;
    for (int64_t i = 200; i > 0; --i) {
      Period period;
      period.from_s = kEnd - i * 1800;
      period.capacity = static_cast<double>(8 + random() % 25);
      period.held["a"] = static_cast<double>(random() % 5);
      period.held["b"] = i > 100 ? 4 : 0;
      if (i < 20) period.held["c"] = 0.5;
      periods.push_back(period);
    }
    return periods;
  }
  std::vector<model::Resources> Recorded(const queues::UsageOptions& options) const {
    auto record = queues::UsageRecord::Create(options);
    EXPECT_TRUE(record.ok()) << record.status();
    const std::vector<Period> periods = History();
    size_t next = 0;
    queues::QueueLedger ledger(tree_);
    model::Resources capacity;
    for (int64_t t = periods.front().from_s; t <= kEnd; t += 60) {
      if (next < periods.size() && periods[next].from_s <= t) {
        ledger = queues::QueueLedger(tree_);
        for (const auto& [queue, held] : periods[next].held) {
          model::Resources amount;
          amount.Set(kGpu, std::llround(held * 1000));
          ledger.Charge(*tree_.Find(queue), amount, true);
        }
        capacity.Set(kGpu, std::llround(periods[next].capacity * 1000));
        ++next;
      }
      record->Record(absl::FromUnixSeconds(t), tree_, ledger, capacity);
    }
    auto usage = record->UsageOf(tree_, absl::FromUnixSeconds(kEnd));
    EXPECT_TRUE(usage.ok()) << usage.status();
    return usage.ok() ? *usage : std::vector<model::Resources>();
  }
  std::vector<model::Resources> Reported(const queues::UsageOptions& options) const {
    QueryOptions queries;
    queries.usage = options;
    queries.metrics = {{"gpu", model::kGpuName, "held", "capacity"}};
    FakeClock clock{absl::FromUnixSeconds(kEnd)};
    FakeTransport transport(clock);
    const SmallPrometheus prometheus(History());
    transport.On("GET", "/api/v1/query", [&prometheus](const kube::HttpRequest& request) {
      return FakeTransport::Reply::Json(200, prometheus.Answer(request.path));
    });
    const auto fetched = FetchNow(transport, *Queries::Create(queries), clock.Now());
    EXPECT_TRUE(fetched.ok()) << fetched.status();
    if (!fetched.ok()) return {};
    queues::ReportedUsage reported(options.staleness);
    reported.Take(fetched->report);
    auto usage = reported.UsageOf(tree_, clock.Now());
    EXPECT_TRUE(usage.ok()) << usage.status();
    return usage.ok() ? *usage : std::vector<model::Resources>();
  }

  model::ResourceNames names_;
  queues::QueueTree tree_{names_};
};

TEST_F(FormulaTest, BothSourcesSayTheSame) {
  struct Case {
    const char* what;
    queues::UsageOptions options;
    double tolerance;  // of the cluster; the record decays by buckets of 1/168 of its window
  };
  Case cases[4];
  cases[0].what = "sliding";
  cases[0].options.window = absl::Hours(84);
  cases[0].tolerance = 0.002;
  cases[1].what = "sliding, with decay";
  cases[1].options.window = absl::Hours(84);
  cases[1].options.half_life = absl::Hours(12);
  cases[1].tolerance = 0.01;
  cases[2].what = "tumbling";
  cases[2].options.window_type = queues::WindowType::kTumbling;
  cases[2].options.window = absl::Hours(72);
  cases[2].options.tumbling_start = absl::FromUnixSeconds(kEnd) - absl::Hours(3 * 72 + 60);
  cases[2].tolerance = 0.002;
  cases[3].what = "cron";
  cases[3].options.window_type = queues::WindowType::kCron;
  cases[3].options.cron = "0 0 * * 2";
  cases[3].tolerance = 0.002;
  for (const Case& c : cases) {
    const std::vector<model::Resources> recorded = Recorded(c.options);
    const std::vector<model::Resources> reported = Reported(c.options);
    ASSERT_EQ(recorded.size(), reported.size()) << c.what;
    for (const char* queue : {"a", "b", "c"}) {
      const queues::QueueId id = *tree_.Find(queue);
      EXPECT_GT(reported[id][kGpu] + recorded[id][kGpu], 0)
          << c.what << ", " << queue << ": otherwise this shows nothing";
      EXPECT_NEAR(static_cast<double>(reported[id][kGpu]) / 1e9,
                  static_cast<double>(recorded[id][kGpu]) / 1e9, c.tolerance)
          << c.what << ", " << queue;
    }
  }
}

}  // namespace
}  // namespace fairlead::prometheus
