// Puts faults of a scenario in front of a provider: types that are sold out, machines that never
// come or come late.
//
// Thread-safety: Launch, Terminate and the faults on the owner's thread.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "autoscale-hook/providers/kwok_provider.h"
#include "autoscale-hook/providers/provider.h"

namespace fairlead::demo {

class FaultyProvider final : public hook::Provider {
 public:
  // `now` and `boot_delay` are in real time.
  FaultyProvider(std::unique_ptr<hook::Provider> provider, hook::Scheduler* scheduler,
                 std::function<absl::Time()> now, absl::Duration boot_delay)
      : provider_(std::move(provider)),
        scheduler_(scheduler),
        now_(std::move(now)),
        boot_delay_(boot_delay) {}

  [[nodiscard]] absl::string_view name() const override { return provider_->name(); }
  void Start(hook::ProviderListener* listener) override { provider_->Start(listener); }
  void ReportAll() override { provider_->ReportAll(); }
  void Launch(std::vector<hook::LaunchOrder> orders) override;
  void Terminate(const model::TerminateNode& terminate, Answer answer) override;

  // The type is unavailable in the zone ("": in any) until then.
  void AddStockout(std::string instance_type, std::string zone, absl::Time until) {
    stockouts_.push_back({std::move(instance_type), std::move(zone), until});
  }
  void LoseNextLaunches(int64_t count) { lost_ += count; }
  void DelayNextLaunches(int64_t count, int64_t factor) {
    late_ += count;
    factor_ = factor;
  }

 private:
  void LaunchOne(hook::LaunchOrder order);

  struct Stockout {
    std::string instance_type, zone;
    absl::Time until;
  };
  std::unique_ptr<hook::Provider> provider_;
  hook::Scheduler* scheduler_;
  std::function<absl::Time()> now_;
  absl::Duration boot_delay_;
  std::vector<Stockout> stockouts_;
  int64_t lost_ = 0, late_ = 0, factor_ = 1;
  // Accepted and not passed on; a repeated launch gets the answer that they are on their way.
  std::set<std::string> swallowed_;
  // Timers hold it weakly: a timer that runs after the destructor finds it gone.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace fairlead::demo
