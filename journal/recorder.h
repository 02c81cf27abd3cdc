// Makes records of what a core::DecisionLoop is told and decides.
//
// Ownership: owns the sink. Thread-safety: the owner's thread. Complexity: O(size of the input); an
// action costs its hash.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/input_log.h"

namespace fairlead::journal {

class Recorder : public core::InputLog {
 public:
  // Takes one encoded record. It does not block.
  using Sink = std::function<void(std::string record)>;
  // `version`: of the program.
  Recorder(std::string version, Sink sink) : version_(std::move(version)), sink_(std::move(sink)) {}

  void Started(const core::Options& options, const hook::Catalog& catalog, bool continues) override;
  void Applied(const model::ClusterEvent& event) override;
  void BecameLeader() override;
  void PodsListed(const std::string& node, absl::string_view version,
                  const std::vector<model::Pod>& pods) override;
  void MachineReported(const hook::MachineReport& report) override;
  void OffersChanged(absl::string_view provider, const hook::Catalog* offers) override;
  void NodesListed(uint64_t number,
                   const absl::StatusOr<std::vector<hook::ListedNode>>& nodes) override;
  void UsageRestored(absl::string_view text) override;
  void SetStale(const std::vector<model::Kind>& kinds) override;
  void GuestAsked(const model::Pod& pod, absl::string_view reserved_on, absl::Time now) override;
  void Stepped(absl::Time now, const core::StepResult& result) override;

 private:
  const std::string version_;
  const Sink sink_;
};

}  // namespace fairlead::journal
