// Helpers for the tests of this module.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/testing/random.h"
#include "queues/ledger.h"
#include "queues/tree.h"

namespace fairlead::queues {

inline model::Resources Gpus(int64_t milli) {
  model::Resources r;
  r.Set(model::kGpu, milli);
  return r;
}

inline model::Resources Amounts(int64_t cpu, int64_t memory, int64_t gpu) {
  model::Resources r;
  r.Set(model::kCpu, cpu);
  r.Set(model::kMemory, memory);
  r.Set(model::kGpu, gpu);
  return r;
}

inline absl::Time Age(int64_t minutes) { return absl::UnixEpoch() + absl::Minutes(minutes); }

inline model::QueueResource Unbounded(int64_t weight_micro = 0) {
  return {model::kUnlimited, model::kUnlimited, weight_micro};
}

// A queue that nothing bounds.
inline model::Queue MakeQueue(std::string name, std::string parent = "", int64_t age = 0) {
  model::Queue queue;
  queue.meta.name = std::move(name);
  queue.meta.creation = Age(age);
  queue.parent = std::move(parent);
  queue.cpu = queue.memory = queue.gpu = Unbounded();
  return queue;
}

using fairlead::testing::Random;

// A random forest of up to `count` queues, three levels and more. Quotas, limits, weights and
// priorities are small enough to take effect. Names are q0, q1, ...
inline std::vector<model::Queue> RandomQueues(Random& random, int64_t count) {
  std::vector<model::Queue> queues;
  const auto bounds = [&random](int64_t unit) {
    model::QueueResource r;
    r.quota = random.OneIn(6) ? model::kUnlimited : random.Between(0, 12) * unit / 2;
    r.limit = random.OneIn(3) ? random.Between(0, 20) * unit / 2 : model::kUnlimited;
    r.over_quota_weight_micro = random.Between(0, 4) * 500'000;
    return r;
  };
  for (int64_t i = 0; i < count; ++i) {
    const std::string parent =
        i == 0 || random.OneIn(4) ? "" : absl::StrCat("q", random.Between(0, i - 1));
    model::Queue queue = MakeQueue(absl::StrCat("q", i), parent, random.Between(0, 3));
    queue.priority = static_cast<int32_t>(random.Between(1, 2) * 100);
    queue.gpu = bounds(1000);
    queue.cpu = bounds(10);
    queue.memory = bounds(10);
    queues.push_back(std::move(queue));
  }
  return queues;
}

}  // namespace fairlead::queues
