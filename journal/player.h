// Plays records on a core::DecisionLoop, and compares its decisions with the recorded ones.
//
// Thread-safety: none. Complexity: that of the decisions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "journal/loop_driver.h"
#include "journal/record.h"
#include "scheduler/framework/framework.h"

namespace fairlead::journal {

class Player {
 public:
  using ReadOptions = journal::ReadOptions;
  explicit Player(ReadOptions read) : driver_(std::move(read), derived_) {}
  // core::ReadConfiguration() of the documents. `plugins`: those of the program that recorded.
  static ReadOptions FromDocuments(framework::RegistryPtr plugins);

  // The first step that decides otherwise.
  struct Difference {
    int64_t step = 0;  // from 1
    absl::Time now;
    size_t recorded = 0, decided = 0;  // numbers of actions
    size_t action = 0;                 // the first that differs, from 0; it may be there only once
    std::optional<model::Action> here;
  };
  struct Totals {
    int64_t records = 0, steps = 0, decisions = 0, actions = 0;
    absl::Time first = absl::InfiniteFuture(), last = absl::InfinitePast();
  };

  // InvalidArgument: it is no record, not in its place, of a program with other declarations, or of
  // a configuration that this one refuses. Nothing is played after a difference.
  absl::Status Play(absl::string_view record);

  [[nodiscard]] const std::optional<Difference>& difference() const { return difference_; }
  [[nodiscard]] const Totals& totals() const { return totals_; }
  // Of the first record; empty before it.
  [[nodiscard]] const std::string& version() const { return version_; }

 private:
  void Step(const Stepped& recorded);

  const std::shared_ptr<DerivedTable> derived_ = std::make_shared<DerivedTable>();
  LoopDriver driver_;
  std::string version_;
  std::optional<Difference> difference_;
  Totals totals_;
};

}  // namespace fairlead::journal
