// The scheduler as a process: events of the API server go into the decision loop, its decisions go
// to the API server and to the providers, on one thread that owns everything.
//
//   drain events -> DecisionLoop::Apply -> DecisionLoop::Step -> kube::Executor
//
// It wakes for an event, an answer, a timer of the loop (wake_at) or a tick of the observer.
//
// Leadership: only the leader decides; a standby applies events. A process that becomes the leader
// first reads every kind again (ClusterSource::Refresh), to learn everything that its predecessor
// wrote. It decides when that is complete; until then the predecessor's status of NodeRequests
// counts. A leader that lost its lease writes nothing more (the executor's fence) and Run returns
// Aborted: a fresh start is the simplest state that is certainly right. The lease is renewed only
// while the owner's thread answers (heartbeat.h), and no write is on the wire for longer than the
// lease is valid.
//
// Stale kinds: if the watch of a kind has been silent for `stale_after`, the loop is told
// (DecisionLoop::SetStale). It then evicts, provisions and removes nothing until the watch works
// again.
//
// Reconfigure: actions in flight are answered first; after drain_timeout only those on the wire,
// and the others are given up. Then loop, source and executor are created again with the new
// options, as after a restart, but the lease stays.
//
// Stop: there is no new decision, actions in flight are written (drain_timeout at most), then the
// lease is released, so that the next leader need not wait for its expiry. If a write has not been
// answered, the lease is not released but expires, after the last request has ended: no write
// outlives the lease.
//
// It needs only the thread that calls Turn: tests and simulations advance time by hand.
//
// Ownership: transport, timers, clock, catalogue, logger and observer outlive it. Thread-safety:
// Stop, Post, Look, Alive, GetStats, Collect and AskGuest from any thread; Run once, by the thread
// that becomes the owner of all decisions; the observer is called on that thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "autoscale-hook/providers/clusterapi/cluster_api_groups.h"
#include "autoscale-hook/providers/groups/cloud_groups.h"
#include "autoscale-hook/providers/karpenter/karpenter_provider.h"
#include "autoscale-hook/providers/kwok_provider.h"
#include "base/clock.h"
#include "cmd/fairlead/app/app_stats.h"
#include "cmd/fairlead/app/claim_api.h"
#include "cmd/fairlead/app/heartbeat.h"
#include "cmd/fairlead/app/node_api.h"
#include "cmd/fairlead/app/node_list_reader.h"
#include "cmd/fairlead/app/node_pods_reader.h"
#include "cmd/fairlead/app/object_api.h"
#include "cmd/fairlead/app/owner_reader.h"
#include "cmd/fairlead/app/suspender.h"
#include "cmd/fairlead/app/task_queue.h"
#include "cmd/fairlead/app/usage_reader.h"
#include "cmd/fairlead/logs/audit_log.h"
#include "cmd/fairlead/logs/logger.h"
#include "cmd/fairlead/logs/status_log.h"
#include "core/configuration.h"
#include "core/decision_loop.h"
#include "extenders/client.h"
#include "kube/leader/lease.h"
#include "kube/transport/http.h"
#include "kube/watch/event_queue.h"
#include "kube/watch/source.h"
#include "kube/write/executor.h"
#include "remote-plugins/client.h"
#include "usage-prometheus/fetcher.h"

namespace fairlead::cmd {

// When a decision began, was made, and had all its actions handed on; of the steady clock.
struct StepTimes {
  absl::Duration began, decided, handed_on;
};

class AppObserver {
 public:
  virtual ~AppObserver() = default;
  // Before it is applied.
  virtual void OnEvent(const model::ClusterEvent& /*event*/) {}
  // After each decision, before its actions are carried out.
  virtual void OnStep(const core::DecisionLoop& /*loop*/, const core::StepResult& /*result*/,
                      absl::Time /*now*/) {}
  // After each decision, once its actions are handed on. None of them is answered yet.
  virtual void OnHandedOn(const core::DecisionLoop& /*loop*/, const core::StepResult& /*result*/,
                          const StepTimes& /*times*/) {}
  // For each action that is answered; also while the application ends.
  virtual void OnAnswer(const model::ActionResult& /*result*/) {}
  // No action is under way any more, whatever became of them: another configuration takes effect.
  virtual void OnGivenUp() {}
  // About every tick() while it runs.
  virtual void OnTick(const core::DecisionLoop& /*loop*/, absl::Time /*now*/) {}
  [[nodiscard]] virtual absl::Duration tick() const { return absl::InfiniteDuration(); }
};

struct AppOptions {
  core::Options core;
  core::LeaderElectionSettings leader_election;
  std::string identity;  // unique per process: for the lease, events and jitter
  hook::KwokOptions kwok;
  hook::KarpenterOptions karpenter;
  hook::ClusterApiScope cluster_api;
  std::vector<model::ScaleGroup> scale_groups;
  model::ProvisioningSettings provisioning;           // with a namespace
  absl::Duration drain_timeout = absl::Seconds(20);   // for writing the actions in flight
  absl::Duration release_timeout = absl::Seconds(5);  // for releasing the lease
  // If a kind's watch has been silent for longer than this, nothing is evicted, provisioned or
  // removed.
  absl::Duration stale_after = absl::Seconds(60);
  // An owner's thread that does not answer for longer than this counts as hung. It exceeds the
  // longest decision: the first one of 100,000 nodes takes seconds.
  absl::Duration hang_limit = absl::Seconds(30);
  // Set if usage is reported (queues::UsageOptions::reported): the queries, and how long decisions
  // wait for the first answer.
  std::optional<prometheus::Queries> usage_queries;
  absl::Duration usage_wait_timeout = absl::Minutes(1);
};

class Application final : private hook::ProviderListener {
 public:
  struct Ports {
    kube::HttpTransport* transport;
    kube::Timers* timers;
    const Clock* clock;
    kube::HttpTransport* usage_database = nullptr;  // of usage_queries
    // A connection to a scheduler extender; without, a configuration with extenders cannot be run.
    std::function<absl::StatusOr<std::unique_ptr<kube::HttpTransport>>(
        const model::ExtenderConfig&)>
        connect_extender = nullptr;
    // Without it no plugin in another program may be configured.
    std::function<absl::StatusOr<std::unique_ptr<remote_plugins::Caller>>(
        const std::vector<model::RemotePluginConfig>&)>
        connect_plugins = nullptr;
    // Told on the owner's thread that this process leads from now on, and what guests are granted.
    std::function<void()> tell_leads = nullptr;
    std::function<void(const std::vector<core::GuestGrant>&)> tell_grants = nullptr;
    // The server of the provider externalgrpc; its answers go to `post`. Without it the provider
    // cannot be configured.
    std::function<absl::StatusOr<std::unique_ptr<hook::CloudGroups>>(
        std::function<void(std::function<void()>)> post)>
        connect_cloud = nullptr;
    // The management cluster of the provider cluster-api; null: this one.
    kube::HttpTransport* management_cluster = nullptr;
    // Takes the lines of the audit log; null: there is none.
    AuditLog::Sink audit = nullptr;
    // Told of all that decisions depend on (a journal); null: nothing is.
    core::InputLog* inputs = nullptr;
  };
  // `wrap` may decorate the provider kwok (fault injection); null: nothing.
  using WrapProvider = std::function<std::unique_ptr<hook::Provider>(
      std::unique_ptr<hook::Provider>, hook::Scheduler*)>;

  Application(const Ports& ports, AppOptions options, const hook::Catalog* catalog, Logger* logger,
              AppObserver* observer = nullptr, const WrapProvider& wrap = nullptr);
  ~Application() override;
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  // Returns after Stop (OK), for a configuration that cannot be run (InvalidArgument) or after the
  // loss of leadership (Aborted).
  absl::Status Run();
  void Stop();

  // The parts of Run: Begin, then Turn until it returns false, then End.
  absl::Status Begin();
  // Waits for work, at most `max_wait`, and does it. False: stopped, or leadership lost.
  bool Turn(absl::Duration max_wait);
  // How long after Turn, by the steady clock, there is no work unless an event comes; for callers
  // that advance time by hand.
  [[nodiscard]] absl::Duration UntilWake() const;
  absl::Status End();
  // The parts of End: EndTurn until it returns false. Waits for the answers to what was written,
  // and for the release of the lease, at most `max_wait`.
  bool EndTurn(absl::Duration max_wait);

  // Runs a task on the owner's thread, between two decisions. Any thread.
  void Post(std::function<void()> task) { tasks_->Post(std::move(task)); }

  // Lets the task look at the decisions on the owner's thread, between two of them, once Begin is
  // done. Any thread. After the end it is dropped.
  void Look(std::function<void(const core::DecisionLoop& loop, absl::Time now)> task) {
    tasks_->Post([this, task = std::move(task)] { task(*loop_, Now()); });
  }

  // Runs with these options from now on. On the owner's thread, between Begin and End. The lease,
  // the identity and the providers stay; a null catalogue keeps the current one. InvalidArgument if
  // the options cannot be run; then nothing changes.
  absl::Status Reconfigure(const core::Options& options,
                           std::shared_ptr<const hook::Catalog> catalog);

  // What a scheduler is told that is a guest, and asks about a pod of its own
  // (core::DecisionLoop::AskGuest). Waits at most
  // `max_wait` for a decision about it. Unavailable: this process does not lead, or does not answer
  // in time. Any thread but the owner's.
  absl::StatusOr<core::GuestAnswer> AskGuest(const model::Pod& pod, const std::string& reserved_on,
                                             absl::Duration max_wait);
  // The same on the owner's thread, as it is now.
  absl::StatusOr<core::GuestAnswer> AnswerGuest(const model::Pod& pod,
                                                const std::string& reserved_on);
  // The nodes that pods of guests are granted now. Likewise; any thread but the owner's.
  absl::StatusOr<std::vector<core::GuestGrant>> Grants();

  // False: the owner's thread hangs.
  bool Alive() { return heartbeat_.Ask(); }
  // The statistics that do not need the owner's thread.
  [[nodiscard]] AppStats GetStats() const;
  // The statistics of the owner's thread, at most `max_wait` from now; the last known if it does
  // not answer in time. O(everything). Not on the owner's thread.
  OwnerStats Collect(absl::Duration max_wait);

 private:
  struct Collected;
  // Of Reconfigure.
  struct Next {
    std::unique_ptr<core::DecisionLoop> loop;
    core::Options options;
    std::shared_ptr<const hook::Catalog> catalog;  // null: as before
    std::unique_ptr<extenders::Client> extenders;
    std::unique_ptr<remote_plugins::Caller> remote_plugins;
  };
  enum class Ending : uint8_t { kNot, kDraining, kReleasing, kOver };

  // OK: it leads, and what it knows is true.
  [[nodiscard]] absl::Status MayAnswer() const;
  // What `ask` says on the owner's thread, between two decisions of the leader.
  template <typename T>
  absl::StatusOr<T> AskLeader(std::function<T()> ask);
  void MakeProviders(const WrapProvider& wrap);
  // Tells ports_.inputs that loop_ begins, and has it told of everything.
  void LogInputs(bool continues);
  void AddGroups(hook::GroupsOptions options, hook::CloudGroups* groups);
  absl::Status ConnectCloud();
  void StartElection();
  // Creates loop, executor and source from options_ and catalog_.
  absl::Status StartWork();
  // Null: there are none. InvalidArgument if a connection to one cannot be made.
  [[nodiscard]] absl::StatusOr<std::unique_ptr<extenders::Client>> ConnectExtenders(
      const std::vector<model::ExtenderConfig>& configs) const;
  // The same for plugins in other programs.
  [[nodiscard]] absl::StatusOr<std::unique_ptr<remote_plugins::Caller>> ConnectPlugins(
      const std::vector<model::RemotePluginConfig>& configs) const;
  absl::Status StartUsage();
  void StartUsageReader();
  absl::Status StartUsageFetcher();
  // True if decisions may be made: the former usage was read or reported, or its wait is over.
  bool KnowsUsage(absl::Time now);
  [[nodiscard]] absl::Time UsageWakeAt() const;
  void TakeUsage(absl::StatusOr<prometheus::Usage> usage);
  void Drain(absl::Duration max_wait);
  void Feed(const model::ClusterEvent& event);
  // True while this process leads. Starts the read when leadership begins.
  bool Lead();
  void ReadAwaited(absl::Time now);
  // True if everything written before this process led is known.
  bool HasRead();
  void CheckWatches();
  void CheckLease(absl::Time now);
  void FinishReconfigure(absl::Time now);
  void Decide(absl::Time now);
  void Submit(const model::Action& action);
  void Provide(const model::Action& action);
  // Gives each provider the machines that one step orders.
  void SendLaunches();
  void OnMachine(const hook::MachineReport& report) override;
  void OnOffers(absl::string_view provider, std::shared_ptr<const hook::Catalog> offers) override;
  void OnProblem(absl::string_view provider, const absl::Status& problem) override;
  void AskExtenders(const model::Action& action);
  void BindByExtender(const model::Action& action);
  void CallPlugin(const model::Action& action);
  void SetSuspended(const model::Action& action);
  // Answers the action with what was read, unless a new configuration is in effect by then.
  std::function<void(const absl::StatusOr<Json>&)> PushObject(uint64_t action_id);
  // Takes an answer of now, given on any thread, on the owner's thread, unless a new configuration
  // is in effect by then. `bound`: to a binding.
  std::function<void(model::ActionResult)> TakeLater(bool bound);
  // No write is on its way, ours or an extender's for us.
  [[nodiscard]] bool WritesAreIdle() const;
  void LogDecision(const core::StepResult& result, absl::Duration took);
  void LogResult(const model::ActionResult& result);
  void LogSync();
  void BeginDrain();
  void BeginRelease();
  [[nodiscard]] bool IsLeader() const;
  // The time-out for a write that is sent now; zero unless this process leads.
  [[nodiscard]] absl::Duration TimeLeft() const;
  absl::Time Now();
  [[nodiscard]] absl::Time WakeAt() const;
  [[nodiscard]] OwnerStats Measure();
  static std::shared_ptr<Collected> NewCollected();
  // Next to the lease, which the same Role permits.
  void NameUsageStore(core::Options& options) const;

  const Ports ports_;
  AppOptions options_;  // only Begin and Reconfigure change it
  const hook::Catalog* catalog_;
  std::shared_ptr<const hook::Catalog> own_catalog_;  // of Reconfigure: the catalogue that catalog_
                                                      // points to
  Logger* logger_;
  StatusLog status_log_;
  AppObserver* observer_;

  std::atomic<bool> stop_{false}, lost_{false}, begun_{false};
  kube::EventQueue queue_;
  Heartbeat heartbeat_;  // wakes queue_
  std::shared_ptr<TaskQueue> tasks_;
  std::unique_ptr<kube::LeaderElector> elector_;
  KubeNodeApi node_api_;
  KubeClaimApi claim_api_;
  KubeObjectApi object_api_, management_api_;
  KindPaths kinds_{&object_api_};
  OwnerReader owners_{&object_api_, &kinds_};
  Suspender suspender_{&object_api_, &kinds_};
  TimerScheduler scheduler_;
  // They outlive their providers; null: there are none.
  std::unique_ptr<hook::CloudGroups> cloud_groups_, cluster_api_groups_, scale_groups_,
      provisioning_groups_;
  std::map<std::string, std::unique_ptr<hook::Provider>, std::less<>> providers_;
  std::map<std::string, std::vector<hook::LaunchOrder>> launches_;  // by provider, of a decision
  std::unique_ptr<core::DecisionLoop> loop_;
  mutable std::mutex work_mutex_;  // guards the two pointers: the owner changes them, other threads
                                   // read
  std::unique_ptr<kube::ClusterSource> source_;
  std::unique_ptr<kube::Executor> executor_;
  std::unique_ptr<extenders::Client> extenders_;            // null: there are none
  std::unique_ptr<remote_plugins::Caller> remote_plugins_;  // null: there are none
  size_t open_binds_ = 0;                                   // that an extender was told to make
  // At most one of them is set, if history counts: recorded, or reported.
  std::unique_ptr<UsageReader> usage_;
  std::unique_ptr<prometheus::UsageFetcher> usage_fetcher_;

  NodePodsReader node_pods_;
  NodeListReader node_list_;
  std::vector<model::ClusterEvent> events_;
  // Steady: until then events are gathered for the next decision.
  absl::Duration gather_until_;
  absl::Time last_now_ = absl::InfinitePast();
  absl::Duration last_steady_;  // when that was read
  bool clock_behind_ = false;   // the machine's clock is before last_now_
  absl::Time wake_at_ = absl::InfiniteFuture(), next_tick_ = absl::InfinitePast();
  absl::Time next_sync_report_ = absl::InfinitePast();
  // Steady: setting back the wall clock must not stop it.
  absl::Duration next_check_ = -absl::InfiniteDuration();
  bool was_leader_ = false, was_synced_ = false;
  bool reading_ = false;  // leads, and has not read yet everything that its predecessor wrote
  absl::Time next_lease_report_ = absl::InfinitePast();
  // Action -> its name and description, for the log.
  absl::flat_hash_map<uint64_t, std::pair<const char*, std::string>> under_way_;
  std::optional<AuditLog> audit_ =
      ports_.audit == nullptr ? std::nullopt : std::make_optional<AuditLog>(ports_.audit);
  // Answers of providers to actions of a former loop are dropped.
  uint64_t epoch_ = 0;
  std::optional<Next> next_;  // waits for actions in flight
  absl::Time reconfigure_by_ = absl::InfiniteFuture();
  AppCounters counters_;  // the owner's
  uint64_t decided_ = 0;  // steps
  std::shared_ptr<Collected> collected_;
  Ending ending_ = Ending::kNot;
  absl::Duration end_by_;  // steady: of the present part of the end
  // The lease was released, or could not be; shared: the answer may come after the end.
  std::shared_ptr<std::atomic<bool>> released_;
};

}  // namespace fairlead::cmd
