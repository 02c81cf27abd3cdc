// A side of a head-to-head run: which programs schedule and provision, on a control plane of their
// own. kwok plays all kubelets. The instance types, their prices and the time until a node
// registers are the same for all.
//
// Thread-safety: one thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/head-to-head/scenario.h"
#include "tests/integration/api.h"
#include "tests/integration/child_process.h"
#include "tests/integration/plane.h"
#include "tests/integration/sold_types.h"

namespace fairlead::head_to_head {

struct SideKind {
  std::string name;
  bool fairlead = false;           // schedules; else the real kube-scheduler
  std::string provider;            // of Fairlead's hook; empty: off
  bool karpenter = false;          // runs
  bool karpenter_decides = false;  // has a NodePool of its own
};
const std::vector<SideKind>& SideKinds();

const std::vector<integration::SoldType>& SoldTypes();

inline constexpr int kEmptySeconds = 10;    // an empty node stays for so long
inline constexpr int kRegisterSeconds = 5;  // from launched to registered
// After a stock-out: how long Karpenter plans without the type, and Fairlead's first back-off.
inline constexpr int kUnavailableSeconds = 10;

class Side {
 public:
  // Starts the control plane and the programs, with the scenario's cap and stock-out. Null: it
  // cannot be had here, `why_not` says why. `scenario` outlives the side.
  static std::unique_ptr<Side> Start(const SideKind& kind, const Scenario& scenario,
                                     std::string& why_not);
  ~Side();
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  [[nodiscard]] const SideKind& kind() const { return kind_; }
  [[nodiscard]] integration::Api& api() { return *api_; }
  [[nodiscard]] std::string scheduler_name() const {
    return kind_.fairlead ? "fairlead" : "default-scheduler";
  }
  // From now on exactly these instance types cannot be had.
  void SetOutOfStock(const std::vector<std::string>& types);
  // CPU seconds that the programs which schedule and provision have used.
  [[nodiscard]] std::map<std::string, double> CpuSeconds() const;

 private:
  Side(SideKind kind, const Scenario& scenario) : kind_(std::move(kind)), scenario_(scenario) {}
  bool Run(std::string& why_not);
  void RunKarpenter(integration::Plane& plane);
  void RunFairlead(integration::Plane& plane);
  void RunKubeScheduler(integration::Plane& plane);
  void Add(const std::string& name, std::vector<std::string> command, integration::Plane& plane);

  SideKind kind_;
  const Scenario& scenario_;
  std::string out_of_stock_file_;  // empty: the scenario has no stock-out
  std::unique_ptr<integration::Api> api_;
  std::map<std::string, std::unique_ptr<integration::ChildProcess>> programs_;
};

}  // namespace fairlead::head_to_head
