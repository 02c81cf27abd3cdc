// Several observers of an application as one. Ownership: borrows them. Thread-safety: as
// AppObserver; all are added before the application runs.
#pragma once

#include <algorithm>
#include <vector>

#include "absl/time/time.h"
#include "cmd/fairlead/app/app.h"

namespace fairlead::cmd {

class AppObservers final : public AppObserver {
 public:
  void Add(AppObserver* observer) { observers_.push_back(observer); }

  void OnEvent(const model::ClusterEvent& event) override {
    for (AppObserver* each : observers_) each->OnEvent(event);
  }
  void OnStep(const core::DecisionLoop& loop, const core::StepResult& result,
              absl::Time now) override {
    for (AppObserver* each : observers_) each->OnStep(loop, result, now);
  }
  void OnHandedOn(const core::DecisionLoop& loop, const core::StepResult& result,
                  const StepTimes& times) override {
    for (AppObserver* each : observers_) each->OnHandedOn(loop, result, times);
  }
  void OnAnswer(const model::ActionResult& result) override {
    for (AppObserver* each : observers_) each->OnAnswer(result);
  }
  void OnGivenUp() override {
    for (AppObserver* each : observers_) each->OnGivenUp();
  }
  void OnTick(const core::DecisionLoop& loop, absl::Time now) override {
    for (AppObserver* each : observers_) each->OnTick(loop, now);
  }
  // The shortest: some are asked more often than they want.
  [[nodiscard]] absl::Duration tick() const override {
    absl::Duration shortest = absl::InfiniteDuration();
    for (const AppObserver* each : observers_) shortest = std::min(shortest, each->tick());
    return shortest;
  }

 private:
  std::vector<AppObserver*> observers_;
};

}  // namespace fairlead::cmd
