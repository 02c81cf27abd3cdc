// Fills the dashboard from the decisions: as the observer of the application it records what was,
// and on request it takes what is.
//
// The owner's thread copies the view, nothing more; it is put into words and JSON on the thread
// that asks.
//
// Ownership: outlives the application that it observes. Thread-safety: OnStep and OnTick on the
// owner's thread; Snapshot and Timeline from any other one, one at a time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cmd/fairlead/app/app.h"
#include "core/view.h"
#include "dashboard/cached_text.h"
#include "dashboard/snapshot.h"
#include "dashboard/timeline.h"
#include "scheduler/model/workload_objects.h"

namespace fairlead::cmd {

// What the dashboard shows of a view. Pure.
dashboard::Snapshot SnapshotOf(const core::View& view,
                               const std::vector<model::NodeRequest>& requests);
// The same for the timeline.
dashboard::TimelinePoint PointOf(const core::View& view);

class LiveView final : public AppObserver {
 public:
  static constexpr absl::Duration kOwnerWait = absl::Seconds(2);
  explicit LiveView(absl::Duration owner_wait = kOwnerWait) : owner_wait_(owner_wait) {}

  // ---- the owner's thread
  void OnStep(const core::DecisionLoop& loop, const core::StepResult& result,
              absl::Time now) override;
  void OnTick(const core::DecisionLoop& loop, absl::Time now) override;
  // Often enough that no minute is left out.
  [[nodiscard]] absl::Duration tick() const override { return absl::Seconds(20); }

  // ---- the others
  // JSON of what is, and of what was. Unavailable if the owner's thread has not answered within
  // owner_wait: another question is not put before that one is answered.
  absl::StatusOr<dashboard::SourceText> Snapshot(Application& application);
  absl::StatusOr<dashboard::SourceText> Timeline(Application& application);

 private:
  void Note(const model::Action& action, absl::Time now);

  const absl::Duration owner_wait_;
  // The owner's.
  dashboard::Timeline timeline_;
  std::map<std::string, model::NodeRequestPhase> phases_;  // told last, by NodeRequest

  // What was asked of the owner's thread and not answered yet.
  template <typename T>
  struct Question;
  struct Present;
  std::shared_ptr<Question<Present>> present_;
  std::shared_ptr<Question<dashboard::Timeline>> past_;
};

}  // namespace fairlead::cmd
