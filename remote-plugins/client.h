// Calls plugins in other programs over gRPC (proto/fairlead/plugin/v1). One channel a plugin; calls
// of one are multiplexed on it. A call that cannot be sent at once fails: the caller repeats it, or
// not (scheduler/plugins/remote_plugin.h).
//
// Ownership: the client owns its channels. Its destructor cancels open calls and waits for their
// answers. Thread-safety: any thread; answers come on a thread of the client, must not block, and
// must not destroy the client. Complexity: O(bytes of the message) per call.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/model/remote_plugin.h"

namespace fairlead::remote_plugins {

struct Answer {
  // OK: the program answered. Otherwise gRPC's code, with the plugin and its address in the text:
  // Unimplemented if it does not serve the method, DeadlineExceeded after the time-out, Unavailable
  // without a connection. NotFound: there is no plugin of that name. Cancelled: the client is gone.
  absl::Status status;
  std::string refusal = {};  // of Permit and PreBind; empty: yes
  std::shared_ptr<const model::NodeJudgements> judgements = {};  // of EvaluateNodes
};

// What the program calls plugins with.
class Caller {
 public:
  using Done = std::function<void(Answer)>;
  virtual ~Caller() = default;
  // `done` is called once, perhaps on another thread.
  virtual void Call(const model::RemoteCall& call, Done done) = 0;
};

class Client final : public Caller {
 public:
  // InvalidArgument, with the plugin's position ("remotePlugins[1]: caFile: .."), for a file of
  // certificates that cannot be read. Connects to nothing yet.
  static absl::StatusOr<std::unique_ptr<Client>> Make(
      const std::vector<model::RemotePluginConfig>& plugins);
  ~Client() override;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void Call(const model::RemoteCall& call, Done done) override;
  [[nodiscard]] size_t open() const;

 private:
  struct Impl;
  Client();
  std::unique_ptr<Impl> impl_;
};

}  // namespace fairlead::remote_plugins
