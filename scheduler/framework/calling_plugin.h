// A plugin that asks another program. It puts down its calls; the loop that runs the plugins sends
// them, and brings the answers as events, so that a recorded journal has them.
//
// Thread-safety: the thread that owns the state.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "scheduler/framework/framework.h"
#include "scheduler/model/remote_plugin.h"

namespace fairlead::framework {

class CallingPlugin : public virtual Plugin {
 public:
  // What is to be sent now. Each call is answered once.
  virtual std::vector<model::RemoteCall> TakeCalls(absl::Time now) = 0;
  // When TakeCalls has something although nothing else happens.
  [[nodiscard]] virtual absl::Time wake_at() const = 0;
  // `refusal`: the program's answer is no; `judgements`: of nodes, null if it has none. Both only
  // with OK.
  struct Answer {
    absl::Status status;
    std::string refusal = {};
    std::shared_ptr<const model::NodeJudgements> judgements = {};
  };
  virtual void Answered(uint64_t number, const Answer& answer, absl::Time now) = 0;
};

}  // namespace fairlead::framework
