#include "demo/day_cloud.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/provisioning/failure.h"

namespace fairlead::demo {

void FaultyProvider::Launch(std::vector<hook::LaunchOrder> orders) {
  for (hook::LaunchOrder& order : orders) LaunchOne(std::move(order));
}

void FaultyProvider::LaunchOne(hook::LaunchOrder order) {
  const model::LaunchNode& launch = order.launch;
  const Answer& answer = order.answer;
  const std::string& name = launch.request->meta.name;
  if (swallowed_.contains(name)) return answer(absl::OkStatus());
  for (const Stockout& stockout : stockouts_) {
    const bool here = stockout.instance_type == launch.request->instance_type &&
                      (stockout.zone.empty() || stockout.zone == launch.request->zone);
    if (!here || now_() >= stockout.until) continue;
    return answer(hook::FailureStatus(
        hook::FailureClass::kStockout,
        absl::StrCat(launch.request->instance_type, " is sold out in ", launch.request->zone)));
  }
  if (lost_ > 0) {
    --lost_;
    swallowed_.insert(name);
    return answer(absl::OkStatus());
  }
  if (late_ == 0) return provider_->Launch({std::move(order)});
  --late_;
  swallowed_.insert(name);
  answer(absl::OkStatus());
  const std::weak_ptr<bool> alive = alive_;
  scheduler_->After(boot_delay_ * (factor_ - 1), [this, alive, launch] {
    if (alive.expired() || swallowed_.erase(launch.request->meta.name) == 0) return;
    provider_->Launch({{launch, [](const absl::Status&) {}}});
  });
}

void FaultyProvider::Terminate(const model::TerminateNode& terminate, Answer answer) {
  swallowed_.erase(terminate.request_name);
  provider_->Terminate(terminate, std::move(answer));
}

}  // namespace fairlead::demo
