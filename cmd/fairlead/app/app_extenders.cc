// Scheduler extenders of Application: asks, and bindings that an extender makes.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cmd/fairlead/app/app.h"

namespace fairlead::cmd {

absl::StatusOr<std::unique_ptr<extenders::Client>> Application::ConnectExtenders(
    const std::vector<model::ExtenderConfig>& configs) const {
  if (configs.empty()) return std::unique_ptr<extenders::Client>();
  if (!ports_.connect_extender) {
    return absl::InvalidArgumentError("extenders: there is no connection to any here");
  }
  std::vector<extenders::Extender> connected;
  for (size_t i = 0; i < configs.size(); ++i) {
    absl::StatusOr<std::unique_ptr<kube::HttpTransport>> transport =
        ports_.connect_extender(configs[i]);
    if (!transport.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("extenders[", i, "]: ", transport.status().message()));
    }
    connected.push_back({configs[i], *std::move(transport)});
  }
  return std::make_unique<extenders::Client>(std::move(connected), ports_.transport, ports_.clock);
}

// Answers come on I/O threads, perhaps after the client's end; only the owner's thread reads what
// they are taken by.
std::function<void(model::ActionResult)> Application::TakeLater(bool bound) {
  return [this, tasks = tasks_, epoch = epoch_, bound](model::ActionResult result) {
    tasks->Post([this, result = std::move(result), epoch, bound] {
      if (bound) --open_binds_;
      if (epoch == epoch_) Feed(result);
    });
  };
}

// The loop asks, and lets bind, those alone with which it was made.
void Application::AskExtenders(const model::Action& action) {
  extenders_->Ask(std::get<model::AskExtenders>(action.what),
                  [take = TakeLater(/*bound=*/false), id = action.id](extenders::Answer said) {
                    model::ActionResult result{id, std::move(said.status)};
                    result.node_answers = std::move(said.answers);
                    result.extender = said.failed;
                    take(std::move(result));
                  });
}

void Application::BindByExtender(const model::Action& action) {
  ++open_binds_;
  const auto& bind = std::get<model::BindPod>(action.what);
  const bool ignorable = options_.core.extenders[static_cast<size_t>(bind.extender)].ignorable;
  extenders_->Bind(bind, [this, tasks = tasks_, epoch = epoch_, ignorable,
                          take = TakeLater(/*bound=*/true), action](const absl::Status& status) {
    if (status.ok() || !ignorable) return take({action.id, status});
    // As upstream. If the extender has bound the pod all the same, the API server refuses this.
    tasks->Post([this, epoch, own = action]() mutable {
      --open_binds_;
      if (epoch != epoch_) return;
      std::get<model::BindPod>(own.what).extender = -1;
      executor_->Submit(own);
    });
  });
}

bool Application::WritesAreIdle() const { return executor_->Idle() && open_binds_ == 0; }

}  // namespace fairlead::cmd
