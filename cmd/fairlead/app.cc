#include "cmd/fairlead/app.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status_macros.h"

namespace fairlead::cmd {
namespace {

constexpr absl::Duration kLongestSleep = absl::Minutes(1);
constexpr absl::Duration kSyncReport = absl::Seconds(10);

uint64_t SeedOf(const std::string& identity) {
  StableHash hash;
  hash.Add(identity);
  return hash.value();
}

// "bind default/web to node-1"
std::string Describe(const model::Action& action) {
  return std::visit(
      []<typename T>(const T& what) -> std::string {
        if constexpr (std::is_same_v<T, model::BindPod>) {
          return absl::StrCat("bind ", what.ns, "/", what.name, " to ", what.node);
        } else if constexpr (std::is_same_v<T, model::EvictPod>) {
          return absl::StrCat("evict ", what.ns, "/", what.name);
        } else if constexpr (std::is_same_v<T, model::SetPodUnschedulable>) {
          return absl::StrCat("verdict of pod ", what.ns, "/", what.name);
        } else if constexpr (std::is_same_v<T, model::SetPodGroupSchedulability>) {
          return absl::StrCat("verdict of pod group ", what.ns, "/", what.name);
        } else if constexpr (std::is_same_v<T, model::SetPodGroupAnnotations>) {
          return absl::StrCat("annotations of pod group ", what.ns, "/", what.name);
        } else if constexpr (std::is_same_v<T, model::CreateNodeRequest>) {
          return absl::StrCat("create node request ", what.request.meta.name);
        } else if constexpr (std::is_same_v<T, model::UpdateNodeRequestStatus>) {
          return absl::StrCat("status of node request ", what.request.meta.name);
        } else if constexpr (std::is_same_v<T, model::DeleteNodeRequest>) {
          return absl::StrCat("delete node request ", what.name);
        } else if constexpr (std::is_same_v<T, model::SetNodeTaint>) {
          return absl::StrCat(what.present ? "taint node " : "untaint node ", what.node);
        } else if constexpr (std::is_same_v<T, model::LaunchNode>) {
          return absl::StrCat("launch ", what.request.meta.name, " (", what.request.instance_type,
                              ")");
        } else if constexpr (std::is_same_v<T, model::TerminateNode>) {
          return absl::StrCat("terminate ", what.request_name);
        } else if constexpr (std::is_same_v<T, model::CreateGpuReservation>) {
          return absl::StrCat("reserve a GPU of ", what.node, " by pod ", what.name);
        } else if constexpr (std::is_same_v<T, model::DeletePod>) {
          return absl::StrCat("delete pod ", what.ns, "/", what.name);
        } else if constexpr (std::is_same_v<T, model::ApplyConfigMap>) {
          return absl::StrCat("config map ", what.ns, "/", what.name);
        } else if constexpr (std::is_same_v<T, model::ReserveClaim>) {
          return absl::StrCat(what.allocate ? "allocate claim " : "reserve claim ", what.ns, "/",
                              what.name);
        } else if constexpr (std::is_same_v<T, model::DeallocateClaim>) {
          return absl::StrCat("deallocate claim ", what.ns, "/", what.name);
        } else if constexpr (std::is_same_v<T, model::StoreUsage>) {
          return absl::StrCat("store usage in config map ", what.ns, "/", what.name);
        } else {
          return absl::StrCat("event about ", what.name);
        }
      },
      action.what);
}

template <typename T>
int64_t CountOf(const std::vector<model::Action>& actions) {
  return std::count_if(actions.begin(), actions.end(), [](const model::Action& action) {
    return std::holds_alternative<T>(action.what);
  });
}

}  // namespace

Application::Application(Ports ports, AppOptions options, const hook::Catalog* catalog,
                         Logger* logger, AppObserver* observer, const WrapProvider& wrap)
    : ports_(ports),
      options_(std::move(options)),
      catalog_(catalog),
      logger_(logger),
      observer_(observer),
      tasks_(std::make_shared<TaskQueue>([this] { queue_.Wake(); })),
      node_api_(ports.transport, tasks_, [this] { return IsLeader(); }),
      scheduler_(ports.timers, tasks_) {
  std::unique_ptr<hook::Provider> kwok =
      std::make_unique<hook::KwokProvider>(options_.kwok, &scheduler_, &node_api_);
  if (wrap) kwok = wrap(std::move(kwok), &scheduler_);
  const std::string name(kwok->name());
  providers_[name] = std::move(kwok);
}

Application::~Application() {
  tasks_->Close();
  if (source_ != nullptr) source_->Stop();
}

void Application::Stop() {
  stop_ = true;
  queue_.Wake();
}

bool Application::IsLeader() const { return elector_ == nullptr || elector_->IsLeader(); }

// Decisions never see time go back, whatever the machine's clock does.
absl::Time Application::Now() {
  last_now_ = std::max(last_now_, ports_.clock->Now());
  return last_now_;
}

void Application::StartElection() {
  const core::LeaderElectionSettings& settings = options_.leader_election;
  if (!settings.enabled) return;
  kube::LeaseOptions lease{settings.ns,
                           settings.name,
                           options_.identity,
                           settings.lease_duration,
                           settings.renew_deadline,
                           settings.retry_period};
  kube::LeaseCallbacks callbacks;
  callbacks.on_gain = [this] { queue_.Wake(); };
  callbacks.on_loss = [this] {
    lost_ = true;
    queue_.Wake();
  };
  elector_ = std::make_unique<kube::LeaderElector>(*ports_.transport, *ports_.timers, *ports_.clock,
                                                   lease, callbacks);
}

absl::Status Application::Run() {
  FAIRLEAD_RETURN_IF_ERROR(Begin());
  while (Turn(kLongestSleep)) {
  }
  return End();
}

absl::Status Application::StartUsage() {
  const std::optional<queues::UsageOptions>& usage = options_.core.engine.usage;
  if (!usage.has_value()) return absl::OkStatus();
  if (usage->reported) return StartUsageFetcher();
  StartUsageReader();
  return absl::OkStatus();
}

// Beside the lease, which the same Role allows.
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
          logger_->Warning("usage of queues is recorded anew", {{"problem", restored.message()}});
        }
      },
      [this](const absl::Status& why) {
        logger_->Warning("decisions without the usage of queues; it is asked for again",
                         {{"problem", why.message()}});
      });
}

absl::Status Application::StartUsageFetcher() {
  if (ports_.usage_database == nullptr || !options_.usage_queries.has_value()) {
    return absl::InvalidArgumentError("usage is to be reported, but there is nobody to ask");
  }
  usage_fetcher_ = std::make_unique<prometheus::UsageFetcher>(
      ports_.usage_database, *options_.usage_queries, options_.usage_wait_timeout,
      [tasks = tasks_](std::function<void()> task) { tasks->Post(std::move(task)); },
      [this](absl::StatusOr<prometheus::Usage> usage) { TakeUsage(std::move(usage)); });
  return absl::OkStatus();
}

// A standby asks too, so that it knows as soon as it leads.
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

void Application::LogHistory() {
  std::string problem = loop_->history().problem;
  // The age of a report is another one each time.
  if (problem.empty() == history_problem_.empty()) return;
  history_problem_ = std::move(problem);
  if (history_problem_.empty()) {
    logger_->Info("fair shares are divided with history again");
  } else {
    logger_->Warning("fair shares are divided without history", {{"problem", history_problem_}});
  }
}

absl::Status Application::Begin() {
  core::UsageStoreOptions& store = options_.core.usage_store;
  if (store.name.empty()) {
    store.ns = options_.leader_election.ns;
    store.name = absl::StrCat(options_.leader_election.name, "-usage");
  }
  FAIRLEAD_ASSIGN_OR_RETURN(loop_, core::DecisionLoop::Make(options_.core, catalog_));
  FAIRLEAD_RETURN_IF_ERROR(StartUsage());
  StartElection();
  kube::ExecutorOptions executor;
  executor.identity.host = options_.identity;
  executor_ = std::make_unique<kube::Executor>(
      *ports_.transport, *ports_.timers, *ports_.clock, queue_, executor,
      [this](const model::Action& action) { Provide(action); }, [this] { return IsLeader(); });
  kube::SourceOptions source;
  source.seed = SeedOf(options_.identity);
  source_ = std::make_unique<kube::ClusterSource>(*ports_.transport, *ports_.timers, *ports_.clock,
                                                  queue_, source);
  source_->Start();
  if (elector_ != nullptr) elector_->Start();
  return absl::OkStatus();
}

absl::Time Application::WakeAt() const {
  return std::min({wake_at_, next_tick_, UsageWakeAt(),
                   was_synced_ ? absl::InfiniteFuture() : next_sync_report_});
}

bool Application::Turn(absl::Duration max_wait) {
  if (stop_ || lost_) return false;
  const absl::Time before = Now();
  const absl::Time wake = std::min(WakeAt(), before + max_wait);
  events_.clear();
  queue_.DrainInto(events_, std::max(absl::ZeroDuration(), wake - before));
  for (const model::ClusterEvent& event : events_) Feed(event);
  tasks_->RunAll();
  if (stop_ || lost_) return false;
  LogSync();
  const bool leader = IsLeader();
  if (leader && !was_leader_) logger_->Info("leading", {{"identity", options_.identity}});
  // IsLeader may say no before the callback comes.
  if (!leader && was_leader_) lost_ = true;
  was_leader_ = leader;
  if (lost_) return false;
  const absl::Time now = Now();
  const bool knows = KnowsUsage(now);
  if (leader && knows) Decide(now);
  if (observer_ == nullptr) {
    next_tick_ = absl::InfiniteFuture();
  } else if (now >= next_tick_) {
    next_tick_ = now + observer_->tick();
    observer_->OnTick(*loop_, now);
  }
  return true;
}

absl::Status Application::End() {
  const bool lost = lost_ && !stop_;
  const std::string holder = elector_ == nullptr ? "" : elector_->GetStats().holder;
  Shutdown();
  if (!lost) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("leadership was lost",
                                         holder.empty() || holder == options_.identity
                                             ? ""
                                             : absl::StrCat(" (the lease is now of ", holder, ")"),
                                         "; nothing more was written; start again to stand by"));
}

void Application::Feed(const model::ClusterEvent& event) {
  if (observer_ != nullptr) observer_->OnEvent(event);
  if (const auto* result = std::get_if<model::ActionResult>(&event)) LogResult(*result);
  const auto* upsert = std::get_if<model::Upsert>(&event);
  if (!was_leader_ && upsert != nullptr) {
    // A leader takes only its own word for the status of a request that it knows. Until we lead it
    // is somebody else's word that counts: each version is as new to the loop.
    if (const auto* request = std::get_if<model::NodeRequest>(&upsert->object)) {
      loop_->Apply(
          model::Delete{model::Kind::kNodeRequest, "", request->meta.name, request->meta.uid});
    }
  }
  loop_->Apply(event);
}

void Application::Decide(absl::Time now) {
  const absl::Duration start = ports_.clock->Steady();
  core::StepResult result = loop_->Step(now);
  wake_at_ = result.wake_at;
  LogHistory();
  if (!result.decided && result.actions.empty()) return;
  const absl::Duration took = ports_.clock->Steady() - start;
  if (observer_ != nullptr) observer_->OnStep(*loop_, result, now);
  LogDecision(result, took);
  for (model::Action& action : result.actions) Submit(std::move(action));
}

void Application::Submit(model::Action action) {
  if (!std::holds_alternative<model::EmitEvent>(action.what)) {
    under_way_[action.id] = Describe(action);
  }
  executor_->Submit(std::move(action));
}

void Application::Provide(const model::Action& action) {
  const uint64_t id = action.id;
  const auto answer = [this, id](const hook::ProviderAnswer& said) {
    queue_.Push(model::ActionResult{id, said.status, "", said.machine_id});
  };
  const auto* launch = std::get_if<model::LaunchNode>(&action.what);
  const auto* terminate = std::get_if<model::TerminateNode>(&action.what);
  const std::string& name = launch != nullptr ? launch->request.provider : terminate->provider;
  const auto provider = providers_.find(name);
  if (provider == providers_.end()) {
    answer(absl::UnimplementedError(absl::StrCat("there is no provider \"", name, "\"")));
  } else if (launch != nullptr) {
    provider->second->Launch(*launch, answer);
  } else {
    provider->second->Terminate(*terminate, answer);
  }
}

void Application::LogDecision(const core::StepResult& result, absl::Duration took) {
  const std::vector<model::Action>& actions = result.actions;
  const LogLevel level = actions.empty() ? LogLevel::kDebug : LogLevel::kInfo;
  if (!logger_->Enabled(level)) return;
  const int64_t verdicts = CountOf<model::SetPodUnschedulable>(actions) +
                           CountOf<model::SetPodGroupSchedulability>(actions);
  logger_->Log(
      level, "decision",
      {{"cycle", static_cast<int64_t>(loop_->stats().cycles)},
       {"bound", CountOf<model::BindPod>(actions)},
       {"evicted", CountOf<model::EvictPod>(actions)},
       {"verdicts", verdicts},
       {"nodes_requested", CountOf<model::CreateNodeRequest>(actions)},
       {"nodes_terminated", CountOf<model::TerminateNode>(actions)},
       {"actions", static_cast<int64_t>(actions.size())},
       {"took_us", absl::ToInt64Microseconds(took)},
       {"next_ms", result.wake_at == absl::InfiniteFuture()
                       ? Logger::Value("never")
                       : Logger::Value(absl::ToInt64Milliseconds(result.wake_at - last_now_))}});
}

void Application::LogResult(const model::ActionResult& result) {
  const auto found = under_way_.find(result.action_id);
  if (found == under_way_.end()) return;
  if (!result.status.ok()) {
    // A definite no is the world moving on between decision and write; the rest wants attention.
    const bool stale = absl::IsNotFound(result.status) || absl::IsAlreadyExists(result.status) ||
                       absl::IsFailedPrecondition(result.status);
    logger_->Log(stale ? LogLevel::kInfo : LogLevel::kWarning, "not done",
                 {{"action", found->second},
                  {"code", absl::StatusCodeToString(result.status.code())},
                  {"error", result.status.message()}});
  }
  under_way_.erase(found);
}

void Application::LogSync() {
  if (was_synced_) return;
  const absl::Time now = last_now_;
  if (loop_->synced()) {
    was_synced_ = true;
    logger_->Info("synced", {{"events", loop_->stats().events}});
    for (const kube::ReflectorStats& stats : source_->GetStats()) {
      if (!stats.missing) continue;
      logger_->Warning("kind is not installed", {{"kind", model::KindName(stats.kind)}});
    }
    return;
  }
  if (now < next_sync_report_) return;
  if (next_sync_report_ != absl::InfinitePast()) {
    logger_->Warning("waiting for the cluster",
                     {{"problem", source_->Health(absl::Minutes(10)).message()}});
  }
  next_sync_report_ = now + kSyncReport;
}

void Application::Shutdown() {
  source_->Stop();
  if (!executor_->Drain(lost_ ? absl::ZeroDuration() : options_.drain_timeout)) {
    logger_->Warning("not every write was answered before the end");
  }
  if (elector_ != nullptr) {
    // Shared: the answer may come when nobody waits any more.
    struct Released {
      std::mutex mutex;
      std::condition_variable changed;
      bool done = false;
    };
    auto released = std::make_shared<Released>();
    elector_->Stop([released] {
      const std::lock_guard<std::mutex> lock(released->mutex);
      released->done = true;
      released->changed.notify_all();
    });
    std::unique_lock<std::mutex> lock(released->mutex);
    released->changed.wait_for(lock, absl::ToChronoMilliseconds(options_.release_timeout),
                               [&] { return released->done; });
  }
  tasks_->Close();
  usage_.reset();
  usage_fetcher_.reset();
  logger_->Info("stopped");
}

}  // namespace fairlead::cmd
