// A core::DecisionLoop that is told what records say. Player and Redaction compare what it decides.
//
// Ownership: owns its loops; shares the port. Thread-safety: none. Complexity: that of the
// decisions.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autoscale-hook/catalog/catalog.h"
#include "base/derived_names.h"
#include "core/decision_loop.h"
#include "core/options.h"
#include "journal/record.h"

namespace fairlead::journal {

// Makes the options of a loop of what is recorded about them.
using ReadOptions = std::function<absl::StatusOr<core::Options>(const Start&)>;

// What `Derived` records say. Names that they do not have stay.
class DerivedTable final : public DerivedNames {
 public:
  void Add(const Derived& record);
  std::string Name(const std::string& derived) override;
  uint64_t Seed(uint64_t derived) override;

 private:
  absl::flat_hash_map<std::string, std::string> names_;
  absl::flat_hash_map<uint64_t, uint64_t> seeds_;
};

class LoopDriver {
 public:
  LoopDriver(ReadOptions read, std::shared_ptr<DerivedNames> names)
      : read_options_(std::move(read)), names_(std::move(names)) {}

  // A record of any kind but Stepped and Derived. InvalidArgument: it is not in its place, of a
  // program with other declarations, or of a configuration that this one refuses.
  absl::Status Tell(const Record& record);
  // After a Start.
  core::StepResult Step(absl::Time now) { return loop_->Step(now); }
  [[nodiscard]] bool has_started() const { return loop_ != nullptr; }

 private:
  absl::Status Begin(const Start& start);

  const ReadOptions read_options_;
  const std::shared_ptr<DerivedNames> names_;
  std::deque<hook::Catalog> catalogs_;  // of the loops, which outlive none of them
  std::unique_ptr<core::DecisionLoop> loop_;
};

}  // namespace fairlead::journal
