// Makes a trace of each decision that asks for something: as an observer of the application, from
// what that measures anyway.
//
//   step          the whole: the number of the decision, what it asked for, how much waits
//   ├ decide      DecisionLoop::Step: how many cycles and autoscaler steps it ran
//   ├ submit      handing the actions on
//   ├ bind        one for each action, by the names of fairlead_actions_total: from the end of the
//   └ evict, ..   decision until the deciding thread has the answer
//
// A pod's binding so leads to the decision that sent it, and from there to all else that decision
// did. A span about a pod links to the last one before about the same pod, one about a NodeRequest
// to the last one about that: what several decisions have asked for can be followed back.
// Kubernetes Events are left out, and a decision that asks for nothing else has no trace. A span is
// given to the sink when it ends: those of actions may come long after their root.
//
// Ids: a random prefix of the process, and a counter that is mixed. They are no input of any
// decision. The id decides alone whether a trace is kept (tracing/sampling.h); one that is not
// costs a few additions.
//
// Ownership: of the sink; borrows the clock. Thread-safety: the owner's thread; dropped() from any.
// Complexity: O(actions) per decision, and once a second O(rows of waiting workloads + nodes) to
// count these. Keeps a span for each action under way, kOpenMax at most.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "cmd/fairlead/app/app.h"
#include "cmd/fairlead/traces/last_spans.h"
#include "tracing/sampling.h"
#include "tracing/span.h"

namespace fairlead::cmd {

struct StepTracerOptions {
  int64_t sampling_rate_per_million = tracing::kSampleAll;
  uint64_t prefix = 1;  // of trace ids; random
  uint64_t seed = 0;    // of the rest of the ids; random
};

class StepTracer final : public AppObserver {
 public:
  static constexpr size_t kOpenMax = 16'384;
  static constexpr size_t kSubjectsMax = 16'384;  // that are remembered for links
  using Sink = std::function<void(tracing::Span)>;

  StepTracer(const Clock* clock, StepTracerOptions options, Sink sink);

  void OnHandedOn(const core::DecisionLoop& loop, const core::StepResult& result,
                  const StepTimes& times) override;
  void OnAnswer(const model::ActionResult& result) override;
  // Ends the spans of all actions under way, as errors. Also for the end of the program.
  void OnGivenUp() override;

  // Spans of actions that were not made because kOpenMax are under way.
  [[nodiscard]] int64_t dropped() const { return dropped_; }

 private:
  struct Open {
    tracing::Span span;
    absl::Duration since;  // steady
  };
  // What the loop has counted since the last call.
  struct Progress {
    int64_t cycles = 0, hook_steps = 0;
  };

  tracing::TraceId NextTrace();
  uint64_t NextSpan();
  Progress Since(const core::DecisionLoop::Stats& stats);
  void AddCounts(const core::DecisionLoop& loop, const core::StepResult& result,
                 const StepTimes& times, tracing::Span& root);
  void Begin(const model::Action& action, tracing::Span span, absl::Duration since);
  void Finish(Open open, const absl::Status& status);

  const Clock* const clock_;
  const StepTracerOptions options_;
  const Sink sink_;
  uint64_t traces_ = 0, spans_ = 0;                      // so many ids were given
  uint64_t cycles_ = 0, hook_steps_ = 0;                 // of the loop, after the last step
  absl::Duration count_at_ = -absl::InfiniteDuration();  // steady: when what waits is counted again
  absl::flat_hash_map<uint64_t, Open> open_;             // by the action
  LastSpans last_{kSubjectsMax};
  std::atomic<int64_t> dropped_ = 0;
};

}  // namespace fairlead::cmd
