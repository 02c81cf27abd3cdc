// Plays records on a core::DecisionLoop, and compares its decisions with the recorded ones.
//
// Thread-safety: none. Complexity: that of the decisions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "autoscale-hook/catalog/catalog.h"
#include "core/decision_loop.h"
#include "core/options.h"
#include "journal/record.h"
#include "scheduler/framework/framework.h"

namespace fairlead::journal {

class Player {
 public:
  // Makes the options of a loop of what is recorded about them.
  using ReadOptions = std::function<absl::StatusOr<core::Options>(const Start&)>;
  explicit Player(ReadOptions read) : read_options_(std::move(read)) {}
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
  absl::Status Begin(const Start& start);
  void Step(const Stepped& recorded);

  const ReadOptions read_options_;
  std::deque<hook::Catalog> catalogs_;  // of the loops, which outlive none of them
  std::unique_ptr<core::DecisionLoop> loop_;
  std::string version_;
  std::optional<Difference> difference_;
  Totals totals_;
};

}  // namespace fairlead::journal
