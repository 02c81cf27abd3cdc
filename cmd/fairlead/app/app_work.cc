// The parts with which Application decides: loop, executor and source, created at the start and
// again with each new configuration; usage of queues; providers; and their statistics.
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "cmd/fairlead/app/app.h"

namespace fairlead::cmd {
namespace {

uint64_t SeedOf(const std::string& identity) {
  StableHash hash;
  hash.Add(identity);
  return hash.value();
}

}  // namespace

// The last answer of the owner's thread, and whether another request is open.
struct Application::Collected {
  std::mutex mutex;
  std::condition_variable changed;
  bool asked = false;
  OwnerStats last;
};

std::shared_ptr<Application::Collected> Application::NewCollected() {
  return std::make_shared<Collected>();
}

// Expects loop_.
absl::Status Application::StartWork() {
  FAIRLEAD_RETURN_IF_ERROR(StartUsage());
  kube::ExecutorOptions executor;
  executor.identity.host = options_.identity;
  if (elector_ != nullptr) executor.time_left = [this] { return elector_->TimeLeft(); };
  kube::SourceOptions source;
  source.seed = SeedOf(options_.identity);
  for (const model::Kind kind : model::kAllKinds) {
    if (!core::Reads(options_.core, kind)) source.unread.push_back(kind);
  }
  const std::lock_guard<std::mutex> lock(work_mutex_);
  executor_ = std::make_unique<kube::Executor>(
      *ports_.transport, *ports_.timers, *ports_.clock, queue_, executor,
      [this](const model::Action& action) { Provide(action); }, [this] { return IsLeader(); });
  source_ = std::make_unique<kube::ClusterSource>(*ports_.transport, *ports_.timers, *ports_.clock,
                                                  queue_, source);
  source_->Start();
  return absl::OkStatus();
}

absl::Status Application::Reconfigure(const core::Options& options,
                                      std::shared_ptr<const hook::Catalog> catalog) {
  const std::optional<queues::UsageOptions>& usage = options.engine.usage;
  if (usage.has_value() && usage->reported && !options_.usage_queries.has_value()) {
    return absl::InvalidArgumentError("usage.clientType: cannot be changed while running");
  }
  for (const std::string& provider : options.hook.known_providers) {
    if (providers_.contains(provider)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("hook.provider: the provider ", provider, " can be added by a restart only"));
  }
  Next next{nullptr, options, std::move(catalog), nullptr, nullptr};
  FAIRLEAD_ASSIGN_OR_RETURN(next.extenders, ConnectExtenders(options.extenders));
  FAIRLEAD_ASSIGN_OR_RETURN(next.remote_plugins, ConnectPlugins(options.remote_plugins));
  NameUsageStore(next.options);
  const hook::Catalog* const used = next.catalog == nullptr ? catalog_ : next.catalog.get();
  FAIRLEAD_ASSIGN_OR_RETURN(next.loop, core::DecisionLoop::Make(next.options, used));
  next_ = std::move(next);
  reconfigure_by_ = Now() + options_.drain_timeout;
  return absl::OkStatus();
}

// Starts as after a restart, but for what the hook has learned, once all actions in flight have
// been answered. A request on the wire is always waited for: what is read before it is done would
// be decided upon without it.
void Application::FinishReconfigure(absl::Time now) {
  if (!next_.has_value()) return;
  if (!WritesAreIdle() && now >= reconfigure_by_) {
    logger_->Warning("writes were given up because the new configuration takes effect");
    reconfigure_by_ = absl::InfiniteFuture();
    executor_->Abandon();
  }
  if (!WritesAreIdle()) return;
  source_->Stop();
  events_.clear();
  queue_.DrainInto(events_, absl::ZeroDuration());
  for (const model::ClusterEvent& event : events_) {
    if (const auto* result = std::get_if<model::ActionResult>(&event)) LogResult(*result);
  }
  ++epoch_;
  under_way_.clear();
  if (audit_.has_value()) audit_->GiveUp();
  if (observer_ != nullptr) observer_->OnGivenUp();
  status_log_.Restart();
  was_synced_ = false;
  next_sync_report_ = absl::InfinitePast();
  next_check_ = -absl::InfiniteDuration();
  wake_at_ = absl::InfiniteFuture();
  next_tick_ = absl::InfinitePast();  // the observer hears of the new loop in this turn
  usage_.reset();
  usage_fetcher_.reset();
  extenders_ = std::move(next_->extenders);
  remote_plugins_ = std::move(next_->remote_plugins);
  next_->loop->Continue(*loop_);
  loop_ = std::move(next_->loop);
  options_.core = std::move(next_->options);
  if (next_->catalog != nullptr) {
    own_catalog_ = std::move(next_->catalog);
    catalog_ = own_catalog_.get();
  }
  LogInputs(/*continues=*/true);
  next_.reset();
  reading_ = was_leader_;
  ++counters_.reconfigurations;
  if (const absl::Status started = StartWork(); !started.ok()) {
    // Reconfigure has ruled this out.
    logger_->Error("the new configuration cannot be run", {{"problem", started.message()}});
    stop_ = true;
    return;
  }
  if (was_leader_) {
    for (const auto& [name, provider] : providers_) provider->ReportAll();
  }
  logger_->Info("new configuration in effect");
}

absl::Status Application::StartUsage() {
  const std::optional<queues::UsageOptions>& usage = options_.core.engine.usage;
  if (!usage.has_value()) return absl::OkStatus();
  if (usage->reported) return StartUsageFetcher();
  StartUsageReader();
  return absl::OkStatus();
}

// Next to the lease, which the same Role permits.
void Application::StartUsageReader() {
  const core::UsageStoreOptions& store = options_.core.usage_store;
  usage_ = std::make_unique<UsageReader>(
      ports_.transport, tasks_, kube::UsageMapPath(store.ns, store.name),
      [this](const absl::StatusOr<std::string>& text) {
        const absl::Status restored = text.ok() ? loop_->RestoreUsage(*text) : text.status();
        if (!text.ok()) loop_->RestoreUsage("").IgnoreError();  // cannot fail: nothing is read
        if (restored.ok()) {
          logger_->Info("usage of queues", {{"history", text->empty() ? "none yet" : "read"}});
        } else {
          logger_->Warning("usage of queues could not be read; recording starts again",
                           {{"problem", restored.message()}});
        }
      },
      [this](const absl::Status& why) {
        logger_->Warning("deciding without the usage of queues; it will be read again",
                         {{"problem", why.message()}});
      });
}

absl::Status Application::StartUsageFetcher() {
  if (ports_.usage_database == nullptr || !options_.usage_queries.has_value()) {
    return absl::InvalidArgumentError("usage is to be reported, but no database is configured");
  }
  usage_fetcher_ = std::make_unique<prometheus::UsageFetcher>(
      ports_.usage_database, *options_.usage_queries, options_.usage_wait_timeout,
      [tasks = tasks_](std::function<void()> task) { tasks->Post(std::move(task)); },
      [this](absl::StatusOr<prometheus::Usage> usage) { TakeUsage(std::move(usage)); });
  return absl::OkStatus();
}

// A standby asks too, so that it has the answer when it starts to lead.
bool Application::KnowsUsage(absl::Time now) {
  if (usage_fetcher_ != nullptr) return usage_fetcher_->Poll(now);
  return usage_ == nullptr || !was_leader_ || usage_->Poll(now);
}

absl::Time Application::UsageWakeAt() const {
  if (usage_fetcher_ != nullptr) return usage_fetcher_->wake_at();
  return usage_ != nullptr && was_leader_ ? usage_->wake_at() : absl::InfiniteFuture();
}

void Application::TakeUsage(absl::StatusOr<prometheus::Usage> usage) {
  if (!usage.ok()) {
    logger_->Warning("usage of queues could not be fetched",
                     {{"problem", usage.status().message()}});
    return;
  }
  for (const std::string& warning : usage->warnings) {
    logger_->Warning("usage of queues", {{"warning", warning}});
  }
  logger_->Debug("usage of queues", {{"history", "reported"},
                                     {"parts", static_cast<int64_t>(usage->report.parts.size())}});
  Feed(std::move(usage->report));
}

std::function<void(const absl::StatusOr<Json>&)> Application::PushObject(uint64_t action_id) {
  return [this, action_id, epoch = epoch_](const absl::StatusOr<Json>& object) {
    if (epoch != epoch_) return;
    model::ActionResult result{action_id, object.status()};
    if (object.ok()) result.object = std::make_shared<const std::string>(object->Compact());
    queue_.Push(std::move(result));
  };
}

void Application::SetSuspended(const model::Action& action) {
  suspender_.Set(std::get<model::SetSuspended>(action.what),
                 [this, id = action.id, epoch = epoch_](const absl::Status& status) {
                   if (epoch == epoch_) queue_.Push(model::ActionResult{id, status});
                 });
}

void Application::Provide(const model::Action& action) {
  if (std::holds_alternative<model::SetSuspended>(action.what)) return SetSuspended(action);
  if (const auto* list = std::get_if<model::ListSuspended>(&action.what)) {
    return suspender_.List(*list, PushObject(action.id));
  }
  if (const auto* read = std::get_if<model::ReadObject>(&action.what)) {
    return owners_.Read(*read, PushObject(action.id));
  }
  if (std::holds_alternative<model::AskExtenders>(action.what)) return AskExtenders(action);
  if (std::holds_alternative<model::BindPod>(action.what)) return BindByExtender(action);
  if (std::holds_alternative<model::CallPlugin>(action.what)) return CallPlugin(action);
  const uint64_t id = action.id;
  const auto answer = [this, id, epoch = epoch_](const hook::ProviderAnswer& said) {
    if (epoch == epoch_) queue_.Push(model::ActionResult{id, said.status, "", said.machine_id});
  };
  const auto* launch = std::get_if<model::LaunchNode>(&action.what);
  const auto* terminate = std::get_if<model::TerminateNode>(&action.what);
  const std::string& name = launch != nullptr ? launch->request->provider : terminate->provider;
  const auto provider = providers_.find(name);
  if (provider == providers_.end()) {
    answer(absl::UnimplementedError(absl::StrCat("there is no provider \"", name, "\"")));
  } else if (launch != nullptr) {
    launches_[name].push_back({*launch, answer});
  } else {
    provider->second->Terminate(*terminate, answer);
  }
}

void Application::SendLaunches() {
  for (auto& [name, orders] : std::exchange(launches_, {})) {
    providers_.at(name)->Launch(std::move(orders));
  }
}

void Application::OnMachine(const hook::MachineReport& report) {
  logger_->Debug("machine reported", {{"provider", report.provider},
                                      {"noderequest", report.request_name},
                                      {"machine", report.machine_id},
                                      {"state", hook::MachineStateName(report.state)},
                                      {"why", report.why.message()}});
  loop_->MachineReported(report);
  queue_.Wake();
}

void Application::OnOffers(absl::string_view provider,
                           std::shared_ptr<const hook::Catalog> offers) {
  logger_->Info("offers of a provider",
                {{"provider", provider}, {"types", static_cast<int64_t>(offers->types().size())}});
  loop_->OffersChanged(provider, std::move(offers));
  queue_.Wake();
}

void Application::OnProblem(absl::string_view provider, const absl::Status& problem) {
  logger_->Warning("problem of a provider",
                   {{"provider", provider}, {"problem", problem.message()}});
}

AppStats Application::GetStats() const {
  AppStats stats;
  if (!begun_) return stats;
  stats.stale_after = options_.stale_after;
  stats.queue = queue_.GetStats();
  stats.leader = IsLeader();
  stats.owner_silent_for = heartbeat_.unanswered_for();
  stats.elects = elector_ != nullptr;
  if (elector_ != nullptr) stats.lease = elector_->GetStats();
  const std::lock_guard<std::mutex> lock(work_mutex_);
  if (source_ != nullptr) stats.kinds = source_->GetStats();
  if (executor_ != nullptr) stats.writes = executor_->GetStats();
  return stats;
}

OwnerStats Application::Measure() {
  OwnerStats stats;
  stats.known = true;
  stats.at = Now();
  stats.synced = loop_->synced();
  stats.reading = reading_;
  stats.loop = loop_->stats();
  stats.counters = counters_;
  stats.totals = loop_->Count();
  stats.kai_status = options_.core.kai_status;
  return stats;
}

OwnerStats Application::Collect(absl::Duration max_wait) {
  std::unique_lock<std::mutex> lock(collected_->mutex);
  if (!collected_->asked) {
    collected_->asked = true;
    lock.unlock();
    Post([this, collected = collected_] {
      OwnerStats stats = Measure();
      const std::lock_guard<std::mutex> taken(collected->mutex);
      collected->last = std::move(stats);
      collected->asked = false;
      collected->changed.notify_all();
    });
    lock.lock();
  }
  collected_->changed.wait_for(lock, absl::ToChronoNanoseconds(max_wait),
                               [this] { return !collected_->asked; });
  return collected_->last;
}

}  // namespace fairlead::cmd
