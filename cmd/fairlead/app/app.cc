#include "cmd/fairlead/app/app.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/providers/externalgrpc/externalgrpc_options.h"
#include "autoscale-hook/providers/provisioningrequest/provisioning_groups.h"
#include "autoscale-hook/providers/scalesubresource/scale_groups.h"
#include "base/status_macros.h"
#include "cmd/fairlead/logs/action_words.h"

namespace fairlead::cmd {
namespace {

constexpr absl::Duration kLongestSleep = absl::Minutes(1);
// How often the process checks whether a read or a reconfiguration is complete.
constexpr absl::Duration kPoll = absl::Milliseconds(50);
// After each of so many decisions plugins are measured.
constexpr uint64_t kProbeEach = 10;

}  // namespace

Application::Application(const Ports& ports, AppOptions options, const hook::Catalog* catalog,
                         Logger* logger, AppObserver* observer, const WrapProvider& wrap)
    : ports_(ports),
      options_(std::move(options)),
      catalog_(catalog),
      logger_(logger),
      status_log_(logger, options_.stale_after),
      observer_(observer),
      heartbeat_(ports.clock, options_.hang_limit, [this] { queue_.Wake(); }),
      tasks_(std::make_shared<TaskQueue>([this] { queue_.Wake(); })),
      node_api_(ports.transport, tasks_, [this] { return TimeLeft(); }),
      claim_api_(ports.transport, tasks_, [this] { return TimeLeft(); }),
      object_api_(ports.transport, tasks_, [this] { return TimeLeft(); }),
      management_api_(
          ports.management_cluster == nullptr ? ports.transport : ports.management_cluster, tasks_,
          [this] { return TimeLeft(); }),
      scheduler_(ports.timers, tasks_),
      node_pods_(
          ports.transport, tasks_,
          [this](const std::string& node, const std::string& version,
                 const std::vector<model::Pod>& pods) { loop_->PodsListed(node, version, pods); },
          [this](const std::string& node, const absl::Status& why) {
            logger_->Warning("pods of a node to be removed could not be listed",
                             {{"node", node}, {"problem", why.message()}});
          }),
      node_list_(ports.transport, tasks_,
                 [this](uint64_t number, absl::StatusOr<std::vector<hook::ListedNode>> nodes) {
                   if (!nodes.ok()) {
                     logger_->Warning(
                         "nodes could not be listed; machines without a node are not ended",
                         {{"problem", nodes.status().message()}});
                   }
                   loop_->NodesListed(number, std::move(nodes));
                 }),
      collected_(NewCollected()) {
  MakeProviders(wrap);
}

// Those that are configured: each begins to read its machines when this process leads.
void Application::MakeProviders(const WrapProvider& wrap) {
  const auto add = [this](std::unique_ptr<hook::Provider> provider) {
    const std::string name(provider->name());
    providers_[name] = std::move(provider);
  };
  for (const std::string& name : options_.core.hook.known_providers) {
    if (name == "kwok") {
      std::unique_ptr<hook::Provider> kwok =
          std::make_unique<hook::KwokProvider>(options_.kwok, &scheduler_, &node_api_);
      add(wrap ? wrap(std::move(kwok), &scheduler_) : std::move(kwok));
    } else if (name == "karpenter") {
      add(std::make_unique<hook::KarpenterProvider>(options_.karpenter, &scheduler_, &claim_api_));
    } else if (name == hook::kClusterApiName) {
      cluster_api_groups_ = std::make_unique<hook::ClusterApiGroups>(options_.cluster_api,
                                                                     &management_api_, &scheduler_);
      AddGroups(hook::ClusterApiOptions(), cluster_api_groups_.get());
    } else if (name == hook::kScaleSubresourceName) {
      scale_groups_ = std::make_unique<hook::ScaleGroups>(
          options_.scale_groups, [this](absl::string_view type) { return catalog_->Find(type); },
          &object_api_, &scheduler_);
      AddGroups(hook::ScaleSubresourceOptions(), scale_groups_.get());
    } else if (name == model::kProvisioningRequestProvider) {
      provisioning_groups_ = std::make_unique<hook::ProvisioningGroups>(
          options_.provisioning, [this](absl::string_view type) { return catalog_->Find(type); },
          &object_api_, &scheduler_);
      AddGroups(hook::ProvisioningRequestOptions(), provisioning_groups_.get());
    }
  }
}

void Application::AddGroups(hook::GroupsOptions options, hook::CloudGroups* groups) {
  options.known_type = [this](absl::string_view name) { return catalog_->Find(name); };
  const std::string name = options.words.provider;
  providers_[name] =
      std::make_unique<hook::GroupsProvider>(std::move(options), &scheduler_, groups);
}

absl::Status Application::ConnectCloud() {
  const std::vector<std::string>& known = options_.core.hook.known_providers;
  if (std::find(known.begin(), known.end(), "externalgrpc") == known.end()) return absl::OkStatus();
  if (!ports_.connect_cloud) {
    return absl::InvalidArgumentError("externalgrpc: this program has no client for its server");
  }
  FAIRLEAD_ASSIGN_OR_RETURN(cloud_groups_,
                            ports_.connect_cloud([tasks = tasks_](std::function<void()> answer) {
                              tasks->Post(std::move(answer));
                            }));
  AddGroups(hook::ExternalGrpcOptions(), cloud_groups_.get());
  return absl::OkStatus();
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

absl::Duration Application::TimeLeft() const {
  return elector_ == nullptr ? absl::InfiniteDuration() : elector_->TimeLeft();
}

// Returns a time that always grows, whatever the machine's clock does. While the machine's clock is
// behind, this time advances at half the speed until the clock has caught up. So no timer waits for
// the whole jump, and written timestamps do not stay ahead.
absl::Time Application::Now() {
  const absl::Duration steady = ports_.clock->Steady();
  const absl::Time wall = ports_.clock->Now();
  last_now_ = std::max(last_now_ + (steady - last_steady_) / 2, wall);
  last_steady_ = steady;
  clock_behind_ = wall < last_now_;
  return last_now_;
}

void Application::StartElection() {
  const core::LeaderElectionSettings& settings = options_.leader_election;
  if (!settings.enabled) return;
  kube::LeaseOptions lease{settings.ns, settings.name, options_.identity, settings.times};
  kube::LeaseCallbacks callbacks;
  callbacks.on_gain = [this] { queue_.Wake(); };
  callbacks.on_loss = [this] {
    lost_ = true;
    queue_.Wake();
  };
  callbacks.alive = [this] { return heartbeat_.Ask(); };
  elector_ = std::make_unique<kube::LeaderElector>(*ports_.transport, *ports_.timers, *ports_.clock,
                                                   lease, callbacks);
}

absl::Status Application::Run() {
  FAIRLEAD_RETURN_IF_ERROR(Begin());
  while (Turn(kLongestSleep)) {
  }
  return End();
}

void Application::NameUsageStore(core::Options& options) const {
  core::UsageStoreOptions& store = options.usage_store;
  if (!store.name.empty()) return;
  store.ns = options_.leader_election.ns;
  store.name = absl::StrCat(options_.leader_election.name, "-usage");
}

void Application::LogInputs(bool continues) {
  if (ports_.inputs == nullptr) return;
  ports_.inputs->Started(options_.core, *catalog_, continues);
  loop_->SetInputLog(ports_.inputs);
}

absl::Status Application::Begin() {
  NameUsageStore(options_.core);
  FAIRLEAD_ASSIGN_OR_RETURN(loop_, core::DecisionLoop::Make(options_.core, catalog_));
  LogInputs(/*continues=*/false);
  FAIRLEAD_ASSIGN_OR_RETURN(extenders_, ConnectExtenders(options_.core.extenders));
  FAIRLEAD_ASSIGN_OR_RETURN(remote_plugins_, ConnectPlugins(options_.core.remote_plugins));
  FAIRLEAD_RETURN_IF_ERROR(ConnectCloud());
  StartElection();
  FAIRLEAD_RETURN_IF_ERROR(StartWork());
  if (elector_ != nullptr) elector_->Start();
  begun_ = true;
  return absl::OkStatus();
}

absl::Duration Application::UntilWake() const {
  const absl::Duration until = std::max(absl::ZeroDuration(), WakeAt() - last_now_);
  return clock_behind_ ? 2 * until : until;
}

absl::Time Application::WakeAt() const {
  if (heartbeat_.open()) return absl::InfinitePast();
  // Nothing is decided until the objects are read, or the new configuration is in effect.
  const bool polls = reading_ || next_.has_value();
  const absl::Time decision = polls ? absl::InfiniteFuture() : wake_at_;
  const absl::Time check = last_now_ + (next_check_ - ports_.clock->Steady());
  return std::min({decision, next_tick_, node_pods_.wake_at(), UsageWakeAt(),
                   was_synced_ ? check : next_sync_report_,
                   polls ? last_now_ + kPoll : absl::InfiniteFuture()});
}

void Application::Drain(absl::Duration max_wait) {
  events_.clear();
  // A caller that may not wait has a clock of its own.
  const absl::Duration gather =
      max_wait > absl::ZeroDuration() ? gather_until_ - ports_.clock->Steady() : max_wait;
  queue_.DrainInto(events_, std::min(UntilWake(), max_wait), gather);
  for (const model::ClusterEvent& event : events_) {
    Feed(event);
    // Many may have come at once, and what tenants write makes some of them slow: a thread that
    // goes on does not hang.
    heartbeat_.Answer();
  }
}

bool Application::Turn(absl::Duration max_wait) {
  if (stop_ || lost_) return false;
  Now();
  Drain(max_wait);
  heartbeat_.Answer();
  tasks_->RunAll();
  if (stop_ || lost_) return false;
  LogSync();
  if (!Lead()) return false;
  const absl::Time now = Now();
  CheckLease(now);
  CheckWatches();
  FinishReconfigure(now);
  const bool knows = KnowsUsage(now);
  if (was_leader_ && !next_.has_value() && HasRead() && knows) Decide(now);
  ReadAwaited(now);
  if (observer_ == nullptr) {
    next_tick_ = absl::InfiniteFuture();
  } else if (now >= next_tick_) {
    next_tick_ = now + observer_->tick();
    observer_->OnTick(*loop_, now);
  }
  return true;
}

bool Application::Lead() {
  const bool leader = IsLeader();
  // IsLeader may become false before the callback comes.
  if (!leader && was_leader_) lost_ = true;
  if (lost_) return false;
  if (leader && !was_leader_) {
    was_leader_ = true;
    logger_->Info("became leader", {{"identity", options_.identity}});
    if (ports_.tell_leads) ports_.tell_leads();
    for (const auto& [name, provider] : providers_) provider->Start(this);
    if (elector_ != nullptr) {
      reading_ = true;
      loop_->BecomeLeader();
      source_->Refresh();
    }
  }
  return true;
}

// The removal of a node waits for the watch of pods; a quiet watch shows nothing. The end of a
// machine without a node waits for a list of nodes: its watch may be dead.
void Application::ReadAwaited(absl::Time now) {
  static const std::set<std::string> kNone;
  const bool reads = was_leader_ && !reading_;
  node_pods_.Poll(reads ? loop_->AwaitedNodes() : kNone, now);
  if (reads) node_list_.Poll(loop_->AwaitedNodeList());
}

bool Application::HasRead() {
  if (!reading_) return true;
  if (!source_->Fresh()) return false;
  Drain(absl::ZeroDuration());  // the events of the read
  for (const kube::ReflectorStats& kind : source_->GetStats()) {
    loop_->Apply(model::Synced{kind.kind, kind.missing});
  }
  reading_ = false;
  LogSync();
  return true;
}

absl::Status Application::End() {
  const bool lost = lost_ && !stop_;
  const std::string holder = elector_ == nullptr ? "" : elector_->GetStats().holder;
  while (EndTurn(kLongestSleep)) {
  }
  if (!lost) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("leadership was lost",
                                         holder.empty() || holder == options_.identity
                                             ? ""
                                             : absl::StrCat(" (lease holder: ", holder, ")"),
                                         "; nothing more was written; start again to stand by"));
}

void Application::Feed(const model::ClusterEvent& event) {
  if (observer_ != nullptr) observer_->OnEvent(event);
  if (const auto* result = std::get_if<model::ActionResult>(&event)) LogResult(*result);
  const auto* upsert = std::get_if<model::Upsert>(&event);
  if ((!was_leader_ || reading_) && upsert != nullptr) {
    // A leader accepts only its own status of a request that it knows. Until this process decides,
    // its predecessor's status counts: each version is new to the loop.
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
  const absl::Duration end = ports_.clock->Steady();
  const absl::Duration took = end - start;
  gather_until_ = end + kube::GatherAfter(took);
  const std::vector<core::GuestGrant> grants = loop_->TakeGrants();
  if (ports_.tell_grants && !grants.empty()) ports_.tell_grants(grants);
  status_log_.LogHistory(loop_->history().problem);
  if (!result.decided && result.actions.empty()) return;
  if (observer_ != nullptr) observer_->OnStep(*loop_, result, now);
  LogDecision(result, took);
  for (const model::Action& action : result.actions) Submit(action);
  SendLaunches();
  if (observer_ != nullptr) {
    observer_->OnHandedOn(*loop_, result, {start, end, ports_.clock->Steady()});
  }
  if (!result.decided) return;
  counters_.decisions.Add(took);
  // Some microseconds, when all that was decided is on its way.
  if (++decided_ % kProbeEach == 0) {
    loop_->Probe(counters_.probe, [this] { return ports_.clock->Steady(); });
  }
}

void Application::Submit(const model::Action& action) {
  if (audit_.has_value()) audit_->Sent(action, loop_->stats().cycles, last_now_);
  if (!std::holds_alternative<model::EmitEvent>(action.what)) {
    under_way_[action.id] = {ActionName(action), Describe(action)};
  }
  executor_->Submit(action);
}

void Application::BeginDrain() {
  source_->Stop();
  executor_->BeginDrain();
  ending_ = Ending::kDraining;
  end_by_ = ports_.clock->Steady() + options_.drain_timeout;
}

void Application::BeginRelease() {
  if (!executor_->Drain(absl::ZeroDuration()) || open_binds_ > 0) {
    // The server may still do what it has not answered. The next leader must not read before that:
    // it waits until the lease expires, and no request is on the wire for longer.
    logger_->Warning("not every write was answered before the end; the lease is not released");
    elector_.reset();
  }
  ending_ = Ending::kReleasing;
  end_by_ = ports_.clock->Steady() + options_.release_timeout;
  released_ = std::make_shared<std::atomic<bool>>(elector_ == nullptr);
  if (elector_ == nullptr) return;
  elector_->Stop([released = released_, tasks = tasks_] {
    *released = true;
    tasks->Post([] {});  // wakes the owner
  });
}

bool Application::EndTurn(absl::Duration max_wait) {
  if (ending_ == Ending::kNot) BeginDrain();
  // Takes the answers that are there in any case: the last ones come with the end of the wait.
  const auto waits = [&](bool done) {
    const absl::Duration left = end_by_ - ports_.clock->Steady();
    const bool over = done || left <= absl::ZeroDuration();
    events_.clear();
    queue_.DrainInto(events_, over ? absl::ZeroDuration() : std::min({max_wait, left, kPoll}));
    for (const model::ClusterEvent& event : events_) {
      if (const auto* result = std::get_if<model::ActionResult>(&event)) LogResult(*result);
    }
    return !over;
  };
  if (ending_ == Ending::kDraining) {
    if (waits(WritesAreIdle() || lost_)) return true;
    BeginRelease();
  }
  if (ending_ == Ending::kReleasing) {
    if (waits(*released_)) return true;
    tasks_->Close();
    usage_.reset();
    usage_fetcher_.reset();
    extenders_.reset();
    remote_plugins_.reset();
    logger_->Info("stopped");
    ending_ = Ending::kOver;
  }
  return false;
}

}  // namespace fairlead::cmd
