#include "cmd/simtest/replica.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fairlead::simtest {
namespace {

constexpr absl::Duration kRestart = absl::Seconds(2);
// A program that asks for a turn that is over gets it this much later: time has to go on.
constexpr absl::Duration kSpinPause = absl::Milliseconds(20);
// How often one that ends looks whether it may.
constexpr absl::Duration kEndPause = absl::Milliseconds(50);

cmd::Logger MakeLogger(const Clock* clock, cmd::Logger::Sink log) {
  if (!log) return cmd::Logger(clock, cmd::LogLevel::kOff, [](absl::string_view) {});
  return cmd::Logger(clock, cmd::LogLevel::kInfo, std::move(log));
}

}  // namespace

Replica::Replica(const World& world, std::string name, cmd::AppOptions options, uint64_t seed,
                 StepListener on_step, cmd::Logger::Sink log)
    : world_(world),
      name_(std::move(name)),
      options_(std::move(options)),
      random_(seed),
      on_step_(std::move(on_step)),
      clock_(world.time, world.start),
      logger_(MakeLogger(&clock_, std::move(log))),
      restart_at_(world.start) {}

Replica::~Replica() {
  if (network_ != nullptr) network_->Die();
}

absl::Status Replica::Start() {
  if (app_ != nullptr) return absl::OkStatus();
  cmd::SettingsWatch watch(kConfigurationFile, "", [files = world_.files](const std::string& path) {
    return files->Read(path);
  });
  absl::StatusOr<cmd::Settings> settings = watch.Load();
  if (world_.files->configuration() == "empty") {
    // It would run with the defaults, as a file of that content says.
    settings = absl::InvalidArgumentError("the file is being written");
  }
  if (!settings.ok()) {
    if (world_.files->usable()) return settings.status();
    restart_at_ = world_.time->now() + kRestart;
    on_kept_down_(restart_at_);
    return absl::OkStatus();
  }
  settings_ = std::make_unique<cmd::Settings>(*std::move(settings));
  const core::Configuration& configuration = settings_->configuration;
  options_.core = configuration.options;
  AdjustOptions(*world_.plan, options_.core);
  options_.leader_election = configuration.leader_election;
  options_.stale_after = configuration.stale_after;
  told_to_stop_ = ending_ = false;
  identity_ = absl::StrCat("fairlead-", name_, ".", ++lives_);
  options_.identity = identity_;
  reaction_ = absl::Milliseconds(random_.Between(1, 12));
  if (network_ != nullptr) former_.push_back(std::move(network_));
  network_ =
      std::make_unique<sim::world::Network>(world_.time, world_.server, identity_, random_.Next());
  network_->Partition(partition_until_);
  network_->OnWrite([this](const std::string& kind, bool done) { return Witness(kind, done); });
  network_->OnEarlyRetry(on_early_retry_);
  const uint64_t seed = random_.Next();
  app_ = std::make_unique<cmd::Application>(
      cmd::Application::Ports{network_.get(), network_.get(), &clock_}, options_,
      &settings_->catalog, &logger_, this,
      [&](std::unique_ptr<hook::Provider> own, hook::Scheduler*) {
        auto provider = std::make_unique<sim::world::CloudProvider>(world_.time, world_.cloud,
                                                                    std::string(own->name()), seed);
        provider->OnCall(
            [this](const std::string& call, bool done) { return Witness(call, done); });
        return provider;
      });
  reloader_ = std::make_unique<cmd::Reloader>(
      std::move(watch), app_.get(), &logger_,
      [plan = world_.plan](core::Options& changed) { AdjustOptions(*plan, changed); });
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
  reloader_.reset();
  loop_ = nullptr;
  ending_ = false;
}

void Replica::Stop(absl::Duration down) {
  if (app_ == nullptr) return;
  app_->Stop();
  told_to_stop_ = true;
  down_ = down;
  dirty_ = true;
}

void Replica::CrashAt(CrashPoint point, CrashListener listener) {
  crash_ = std::move(point);
  on_crash_ = std::move(listener);
}

bool Replica::Witness(const std::string& kind, bool done) {
  if (crash_.writes_left == 0 || crash_.kind != kind || crash_.after != done) return true;
  if (--crash_.writes_left > 0) return true;
  on_crash_(crash_.down);
  // Not from within its own call.
  world_.time->At(world_.time->now(), [this, life = lives_, down = crash_.down] {
    if (life == lives_) Kill(world_.time->now() + down);
  });
  return false;
}

void Replica::CheckFiles(bool asked) {
  if (app_ == nullptr) return;
  reloader_->Check(asked);
  if (!dirty_) not_before_ = std::max(not_before_, world_.time->now());
  dirty_ = true;
}

void Replica::Partition(absl::Time until) {
  partition_until_ = std::max(partition_until_, until);
  if (network_ != nullptr) network_->Partition(partition_until_);
}

void Replica::Pause(absl::Time until) {
  if (app_ == nullptr) return;
  network_->Partition(std::max(partition_until_, until));
  Hang(until);
}

absl::Time Replica::wake_at() const {
  if (app_ == nullptr) return restart_at_;
  return dirty_ ? not_before_ : std::max(not_before_, asked_);
}

void Replica::AskGuest(const model::Pod& pod, const std::string& reserved_on,
                       std::function<void(const sim::world::GuestScheduler::Say&)> done) {
  if (app_ == nullptr || ending_ || frozen() || world_.time->now() < partition_until_) return;
  app_->Post([app = app_.get(), pod, reserved_on, done = std::move(done)] {
    const absl::StatusOr<core::GuestAnswer> answer = app->AnswerGuest(pod, reserved_on);
    if (!answer.ok()) return done({});
    const bool held = answer->kind == core::GuestAnswer::Kind::kHeld;
    const bool granted = answer->kind == core::GuestAnswer::Kind::kGranted;
    done({granted || held ? answer->node : "", held});
  });
}

absl::StatusOr<bool> Replica::TurnIfDue(bool world_changed) {
  const absl::Time now = world_.time->now();
  if (app_ == nullptr) {
    if (now < restart_at_) return false;
    const absl::Status begun = Start();
    if (!begun.ok()) return begun;
    if (app_ == nullptr) return false;
  }
  // Its loop goes round a moment after something came: what came meanwhile is taken together.
  if (world_changed && !dirty_) {
    dirty_ = true;
    not_before_ = std::max(not_before_, now + reaction_);
  }
  if (now < wake_at()) return false;
  dirty_ = false;
  ++turns_;
  if (!TurnOrEnd()) {
    Kill(now + std::max(kRestart, down_));
    down_ = absl::ZeroDuration();
    return true;
  }
  asked_ = now + (ending_ ? kEndPause : app_->UntilWake());
  spins_ = asked_ <= now ? spins_ + 1 : 0;
  not_before_ = std::max(not_before_, asked_ <= now ? now + kSpinPause : now);
  return true;
}

// False: its process has ended.
bool Replica::TurnOrEnd() {
  if (!ending_ && app_->Turn(absl::ZeroDuration())) return true;
  if (!ending_ && !told_to_stop_) {
    const cmd::AppStats stats = app_->GetStats();
    const bool lost = stats.lease.losses > 0 || (stats.lease.gains > 0 && !stats.leader);
    if (!lost) on_end_by_itself_(absl::StrCat(identity_, " ends by itself"));
  }
  ending_ = true;
  return app_->EndTurn(absl::ZeroDuration());
}

void Replica::OnStep(const core::DecisionLoop& loop, const core::StepResult& result,
                     absl::Time /*now*/) {
  loop_ = &loop;
  on_step_(identity_, loop, result);
}

void Replica::OnTick(const core::DecisionLoop& loop, absl::Time /*now*/) { loop_ = &loop; }

}  // namespace fairlead::simtest
