// Observes a day: the record, the bill and the expectations, all in the scenario's time, and the
// display on the terminal.
//
// Thread-safety: the observer's methods on the application's thread; Note, failures and MakeReport
// from any.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cmd/fairlead/app/app.h"
#include "core/bill.h"
#include "demo/day_clock.h"
#include "demo/screen.h"
#include "sim/expectation.h"
#include "sim/recorder.h"
#include "sim/report.h"
#include "sim/scenario.h"

namespace fairlead::demo {

class DayWatcher final : public cmd::AppObserver {
 public:
  // Draws on the screen if there is one, otherwise writes the log to `log` as it grows. Both may be
  // null. `expectation` may be null.
  DayWatcher(const sim::Scenario& scenario, const hook::Catalog* catalog,
             absl::Duration unneeded_after, const sim::Expectation* expectation, Screen* screen,
             std::ostream* log);

  // True if the scheduler has made its first decision: it leads and knows the cluster.
  [[nodiscard]] bool Decided() const;
  // Starts recording; earlier events are not part of the day.
  void Start(const DayClock& clock);

  void OnEvent(const model::ClusterEvent& event) override;
  void OnStep(const core::DecisionLoop& loop, const core::StepResult& result,
              absl::Time now) override;
  void OnTick(const core::DecisionLoop& loop, absl::Time now) override;
  [[nodiscard]] absl::Duration tick() const override { return absl::Milliseconds(100); }

  // Records an action of the day itself.
  void Note(absl::Time real, const std::string& text);
  // Ends the day at this scenario time.
  void Finish(absl::Time scenario_now);

  [[nodiscard]] sim::Report MakeReport() const;
  // Checks of the expectation that never held, as times since the start. They are no failure: a
  // real cluster decides which of several equal pods it creates first, which changes the moments in
  // the middle of the day.
  [[nodiscard]] std::vector<absl::Duration> MomentsNotSeen() const;
  // The conditions on the whole day that did not hold, one sentence each.
  [[nodiscard]] std::vector<std::string> Unmet() const;

 private:
  void Check(const core::View& view);
  void Draw(const core::View& view);

  const sim::Scenario& scenario_;
  const sim::Expectation* expectation_;
  Screen* screen_;
  std::ostream* log_;

  mutable std::mutex mutex_;  // guards everything below
  DayClock clock_;
  bool started_ = false;
  sim::Recorder recorder_;
  core::Bill bill_;
  core::View view_;
  core::DecisionLoop::Stats stats_;
  std::string note_;
  size_t logged_ = 0;
  std::map<std::string, model::Node> nodes_;
  std::map<uint64_t, model::Action> under_way_;
  std::vector<bool> met_;  // by check of the expectation
};

// How far from its time a check may hold, in real time: a real cluster is not accelerated.
inline constexpr absl::Duration kMomentTolerance = absl::Seconds(3);

bool Holds(const sim::MomentCheck& check, const core::View& view);

}  // namespace fairlead::demo
