// One replica of the program: a process that may die at any instant and comes back as a new one.
// Each life is a real cmd::Application on a Network and a VirtualClock of its own.
//
// A life that is stopped ends as the program does: it drains and gives its lease back. One that is
// killed ends without End(). Each life reads the files as they are when it begins; if they cannot
// be used, it does not begin, and the next one is tried a little later. The Network of a former
// life stays until the replica goes, because requests that it sent may still be on their way.
//
// Ownership: borrows time, server and cloud. Thread-safety: none, one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cmd/fairlead/app/app.h"
#include "cmd/fairlead/logs/logger.h"
#include "cmd/fairlead/run/reloader.h"
#include "cmd/simtest/settings_files.h"
#include "sim/event_queue.h"
#include "sim/world/api_server.h"
#include "sim/world/cloud.h"
#include "sim/world/guest_scheduler.h"
#include "sim/world/network.h"
#include "sim/world/plan.h"
#include "sim/world/virtual_clock.h"

namespace fairlead::simtest {

class Replica final : public cmd::AppObserver {
 public:
  struct World {
    sim::EventQueue* time;
    sim::world::ApiServer* server;
    sim::world::Cloud* cloud;
    absl::Time start;
    const sim::world::Plan* plan;
    const SettingsFiles* files;
  };
  // Where a process dies: at the n-th write of a kind (sim::world::WriteKindOf; "launch",
  // "terminate": calls of the cloud), before the server has it or right after.
  struct CrashPoint {
    std::string kind;
    bool after = false;
    int64_t writes_left = 0;  // 0: nowhere
    absl::Duration down;
  };
  // Called when a life ends at its crash point, before it does.
  using CrashListener = std::function<void(absl::Duration down)>;
  using StepListener = std::function<void(const std::string& identity, const core::DecisionLoop&,
                                          const core::StepResult&)>;
  // `log`: gets each line of its log; null: none is made.
  Replica(const World& world, std::string name, cmd::AppOptions options, uint64_t seed,
          StepListener on_step, cmd::Logger::Sink log);
  ~Replica() override;

  // Begins a life. Does nothing while one lasts.
  absl::Status Start();
  // Ends it now; `restart_at`: when the next one begins.
  void Kill(absl::Time restart_at);
  // SIGTERM: it ends when it has drained; `down`: how long after that the next one begins.
  void Stop(absl::Duration down);
  void CrashAt(CrashPoint point, CrashListener listener);
  // Its look at the files. `asked`: SIGHUP.
  void CheckFiles(bool asked);
  // Called with each write that is repeated too early.
  void OnEarlyRetry(std::function<void(const std::string&)> listener) {
    on_early_retry_ = std::move(listener);
  }
  // Called when a process begins to end that was not told to stop, and has not lost the lease.
  void OnEndByItself(std::function<void(const std::string&)> listener) {
    on_end_by_itself_ = std::move(listener);
  }
  // Called when a life cannot begin with the files as they are; with the time of the next attempt.
  void OnKeptDown(std::function<void(absl::Time)> listener) { on_kept_down_ = std::move(listener); }
  // Its machine has no network until then, whatever becomes of the process.
  void Partition(absl::Time until);
  // The process stands still until then, with its network.
  void Pause(absl::Time until);
  // Its deciding thread stands still until then; its others go on.
  void Hang(absl::Time until) {
    not_before_ = std::max(not_before_, until);
    frozen_until_ = std::max(frozen_until_, until);
  }

  // Asks it for a guest where the pod may go (`reserved_on` as core::DecisionLoop::AskGuest):
  // `done` gets the answer in a later turn of this life; never, if there is none.
  void AskGuest(const model::Pod& pod, const std::string& reserved_on,
                std::function<void(const sim::world::GuestScheduler::Say&)> done);

  // One turn of the owner's thread, if it is due: something happened in the world, or the program
  // asked to be woken. Begins a new life when that is due. True if there was a turn.
  absl::StatusOr<bool> TurnIfDue(bool world_changed);
  // When TurnIfDue has something to do although nothing happens.
  [[nodiscard]] absl::Time wake_at() const;
  [[nodiscard]] absl::Time began() const { return began_; }  // its present life

  [[nodiscard]] const std::string& name() const { return name_; }          // "a"
  [[nodiscard]] const std::string& identity() const { return identity_; }  // "fairlead-a.1"
  [[nodiscard]] bool alive() const { return app_ != nullptr; }
  // It was told to stop, or has lost the lease, and drains.
  [[nodiscard]] bool ending() const { return ending_; }
  [[nodiscard]] bool frozen() const { return world_.time->now() < frozen_until_; }
  [[nodiscard]] absl::Time frozen_until() const { return frozen_until_; }
  // Of this life; null: not alive.
  [[nodiscard]] const cmd::Application* application() const { return app_.get(); }
  [[nodiscard]] const cmd::Reloader* reloader() const { return reloader_.get(); }
  [[nodiscard]] sim::world::Network* network() { return network_.get(); }  // null: not alive
  [[nodiscard]] sim::world::VirtualClock& clock() { return clock_; }
  // Of this life; null before its first turn.
  [[nodiscard]] const core::DecisionLoop* loop() const { return loop_; }
  [[nodiscard]] int64_t turns() const { return turns_; }
  // Turns in a row after which it asked to be woken in the past.
  [[nodiscard]] int64_t spins() const { return spins_; }

  void OnStep(const core::DecisionLoop& loop, const core::StepResult& result,
              absl::Time now) override;
  void OnTick(const core::DecisionLoop& loop, absl::Time now) override;

 private:
  bool Witness(const std::string& kind, bool done);
  bool TurnOrEnd();

  World world_;
  std::string name_, identity_;
  cmd::AppOptions options_;
  sim::Random random_;
  StepListener on_step_;
  sim::world::VirtualClock clock_;
  cmd::Logger logger_;
  std::vector<std::unique_ptr<sim::world::Network>> former_;
  std::unique_ptr<sim::world::Network> network_;
  std::unique_ptr<cmd::Settings> settings_;  // that this life began with
  std::unique_ptr<cmd::Application> app_;
  std::unique_ptr<cmd::Reloader> reloader_;
  CrashPoint crash_;
  CrashListener on_crash_;
  std::function<void(const std::string&)> on_early_retry_, on_end_by_itself_;
  std::function<void(absl::Time)> on_kept_down_;
  bool told_to_stop_ = false, ending_ = false;
  absl::Duration down_;  // after an orderly end
  absl::Time frozen_until_ = absl::InfinitePast();
  const core::DecisionLoop* loop_ = nullptr;
  absl::Time partition_until_ = absl::InfinitePast();
  absl::Time began_ = absl::InfinitePast();
  absl::Time restart_at_, not_before_ = absl::InfinitePast();
  absl::Duration reaction_;  // between an event and the turn that takes it, at most
  bool dirty_ = false;
  int64_t lives_ = 0, turns_ = 0, spins_ = 0;
  absl::Time asked_ = absl::InfinitePast();  // wake_at of the last turn, in the world's time
};

}  // namespace fairlead::simtest
