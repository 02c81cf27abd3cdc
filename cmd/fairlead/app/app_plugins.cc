// Plugins in other programs of Application: the connection to them, and calls.
#include <utility>

#include "absl/strings/str_cat.h"
#include "cmd/fairlead/app/app.h"

namespace fairlead::cmd {

absl::StatusOr<std::unique_ptr<remote_plugins::Caller>> Application::ConnectPlugins(
    const std::vector<model::RemotePluginConfig>& configs) const {
  if (configs.empty()) return std::unique_ptr<remote_plugins::Caller>();
  if (!ports_.connect_plugins) {
    return absl::InvalidArgumentError("remotePlugins: there is no connection to any here");
  }
  return ports_.connect_plugins(configs);
}

void Application::CallPlugin(const model::Action& action) {
  const model::RemoteCall& call = *std::get<model::CallPlugin>(action.what).call;
  const auto answer = [take = TakeLater(/*bound=*/false),
                       id = action.id](remote_plugins::Answer said) {
    model::ActionResult result{id, std::move(said.status)};
    result.refusal = std::move(said.refusal);
    result.judgements = std::move(said.judgements);
    take(std::move(result));
  };
  if (remote_plugins_ == nullptr) {
    answer({absl::NotFoundError(absl::StrCat("there is no remote plugin ", call.plugin))});
    return;
  }
  remote_plugins_->Call(call, answer);
}

}  // namespace fairlead::cmd
