// A hook with thousands of machines that it has provisioned itself, and the world around it: what
// the API server, the provider and the kubelets would answer. There is no engine: which nodes are
// needed is said here.
//
// Ownership: owns all but the options' catalogue. Thread-safety: none. Errors end the benchmark
// (Require).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "autoscale-hook/hook.h"
#include "autoscale-hook/hook_testing.h"
#include "base/testing/random.h"

namespace fairlead::bench {

// Pods that may go or not, by the name of their node, and that have no room elsewhere.
class FullElsewhere final : public hook::Evacuation {
 public:
  [[nodiscard]] hook::Occupants OccupantsOf(const std::string& node) override;
  [[nodiscard]] bool FindRoom(const std::vector<std::string>& nodes) override;
  [[nodiscard]] model::ResourceList RequestsOf(const std::vector<std::string>&) override {
    return {};
  }
  [[nodiscard]] bool FitOn(const std::vector<std::string>&, const model::Node&) override {
    return false;
  }
  int64_t nodes_asked = 0, rooms_asked = 0;
};

class MachineWorld {
 public:
  struct Shape {
    int64_t machines = 10'000;
    int64_t empty_per_cent = 5;
    int64_t coming_per_cent = 4;  // launched; a quarter of them is registered and not ready
    model::ConsolidationPolicy policy = model::ConsolidationPolicy::kWhenEmpty;
  };
  // Provisions the machines, and lets them boot.
  explicit MachineWorld(const Shape& shape);

  // The hook's step alone, as the core calls it.
  hook::StepOutput Step(const hook::Demand& demand = {});
  // What the step made the others do. Writes and launches succeed.
  void Answer(const hook::StepOutput& out);
  void Advance(absl::Duration by) { now_ += by; }
  // Three nodes lose their last pods, three empty ones get some, and four machines that were coming
  // have their node.
  void ChangeTen();
  // A single pod that no cap has room for.
  static hook::Demand OneThatWaits();
  FullElsewhere& evacuation() { return evacuation_; }
  [[nodiscard]] size_t coming() const { return coming_.size(); }

 private:
  class Members;
  static hook::DemandItem PodOf(size_t pool, absl::string_view name);
  void MakePools();
  void SetOptions();
  void Provision();
  void Boot();
  hook::NodeUse& Change(const std::string& node);
  void SetNeeded(const std::string& node, bool needed);
  // The node of the request registers.
  void Register(const std::string& request, bool ready);
  void Show(const model::NodeRequest& request);
  // The input of the next step.
  void ListUses();

  struct Node {
    hook::NodeUse use;
    uint64_t version = 0;
  };
  Shape shape_;
  hook::HookOptions options_;
  hook::Catalog catalog_;
  fairlead::testing::Random random_;
  std::vector<model::NodePool> pools_;
  std::vector<hook::QueueCap> queue_caps_;
  std::unique_ptr<hook::Hook> hook_;
  hook::testing::ArithmeticPlacement placement_;
  FullElsewhere evacuation_;
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  std::map<std::string, model::NodeRequest> requests_;  // by name
  std::map<std::string, Node> nodes_;                   // by name, with those that are coming
  uint64_t last_version_ = 0;
  std::vector<hook::NodeUse> uses_;
  std::vector<uint64_t> versions_;
  bool uses_stale_ = true;
  std::vector<std::string> busy_, empty_, coming_;  // nodes; of `coming_` their requests
  int64_t registered_ = 0;
};

}  // namespace fairlead::bench
