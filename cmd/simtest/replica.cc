#include "cmd/simtest/replica.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cmd/simtest/catalogue.h"

namespace fairlead::simtest {
namespace {

constexpr absl::Duration kRestart = absl::Seconds(2);
// A program that asks for a turn that is over gets it this much later: time has to go on.
constexpr absl::Duration kSpinPause = absl::Milliseconds(20);

}  // namespace

Replica::Replica(const World& world, std::string name, cmd::AppOptions options, uint64_t seed,
                 StepListener on_step, cmd::Logger::Sink log)
    : world_(world),
      name_(std::move(name)),
      options_(std::move(options)),
      random_(seed),
      on_step_(std::move(on_step)),
      clock_(world.time, world.start),
      logger_(
          &clock_, log ? cmd::LogLevel::kInfo : cmd::LogLevel::kOff,
          log ? std::move(log) : [](absl::string_view) {}),
      restart_at_(world.start) {}

Replica::~Replica() {
  if (network_ != nullptr) network_->Die();
}

absl::Status Replica::Start() {
  if (app_ != nullptr) return absl::OkStatus();
  identity_ = absl::StrCat("fairlead-", name_, ".", ++lives_);
  options_.identity = identity_;
  reaction_ = absl::Milliseconds(random_.Between(1, 12));
  if (network_ != nullptr) former_.push_back(std::move(network_));
  network_ =
      std::make_unique<sim::world::Network>(world_.time, world_.server, identity_, random_.Next());
  network_->Partition(partition_until_);
  const uint64_t seed = random_.Next();
  app_ = std::make_unique<cmd::Application>(
      cmd::Application::Ports{network_.get(), network_.get(), &clock_}, options_,
      &WorldCatalog(*world_.catalogue), &logger_, this,
      [&](std::unique_ptr<hook::Provider> own, hook::Scheduler*) {
        return std::make_unique<sim::world::CloudProvider>(world_.time, world_.cloud,
                                                           std::string(own->name()), seed);
      });
  not_before_ = began_ = world_.time->now();
  dirty_ = true;
  asked_ = absl::InfiniteFuture();
  spins_ = 0;
  return app_->Begin();
}

void Replica::Kill(absl::Time restart_at) {
  restart_at_ = std::max(restart_at_, restart_at);
  if (app_ == nullptr) return;
  network_->Die();
  app_.reset();
  loop_ = nullptr;
}

void Replica::Partition(absl::Time until) {
  partition_until_ = std::max(partition_until_, until);
  if (network_ != nullptr) network_->Partition(partition_until_);
}

void Replica::Pause(absl::Time until) {
  if (app_ == nullptr) return;
  network_->Partition(std::max(partition_until_, until));
  not_before_ = std::max(not_before_, until);
}

absl::Time Replica::wake_at() const {
  if (app_ == nullptr) return restart_at_;
  return dirty_ ? not_before_ : std::max(not_before_, asked_);
}

absl::StatusOr<bool> Replica::TurnIfDue(bool world_changed) {
  const absl::Time now = world_.time->now();
  if (app_ == nullptr) {
    if (now < restart_at_) return false;
    const absl::Status begun = Start();
    if (!begun.ok()) return begun;
  }
  // Its loop goes round a moment after something came: what came meanwhile is taken together.
  if (world_changed && !dirty_) {
    dirty_ = true;
    not_before_ = std::max(not_before_, now + reaction_);
  }
  if (now < wake_at()) return false;
  dirty_ = false;
  ++turns_;
  if (!app_->Turn(absl::ZeroDuration())) {
    Kill(now + kRestart);
    return true;
  }
  asked_ = now + app_->UntilWake();
  spins_ = asked_ <= now ? spins_ + 1 : 0;
  not_before_ = std::max(not_before_, asked_ <= now ? now + kSpinPause : now);
  return true;
}

void Replica::OnStep(const core::DecisionLoop& loop, const core::StepResult& result,
                     absl::Time /*now*/) {
  loop_ = &loop;
  on_step_(identity_, loop, result);
}

void Replica::OnTick(const core::DecisionLoop& loop, absl::Time /*now*/) { loop_ = &loop; }

}  // namespace fairlead::simtest
