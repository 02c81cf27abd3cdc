// run: the Application with the parts that it lacks: signals, a log that does not block, HTTP, and
// reloading of the configuration.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "cmd/fairlead/app.h"
#include "cmd/fairlead/app_observers.h"
#include "cmd/fairlead/commands.h"
#include "cmd/fairlead/dashboard_server.h"
#include "cmd/fairlead/guest_handlers.h"
#include "cmd/fairlead/health.h"
#include "cmd/fairlead/journal_file.h"
#include "cmd/fairlead/live_view.h"
#include "cmd/fairlead/log_writer.h"
#include "cmd/fairlead/metrics.h"
#include "cmd/fairlead/reloader.h"
#include "cmd/fairlead/settings_watch.h"
#include "cmd/fairlead/signals.h"
#include "cmd/fairlead/traces.h"
#include "cmd/fairlead/usage_database.h"
#include "cmd/fairlead/version.h"
#include "cmd/fairlead/webhook.h"
#include "extenders/connection.h"
#include "external-grpc/client.h"
#include "guests/service.h"
#include "journal/recorder.h"
#include "remote-plugins/client.h"
#include "server/http_server.h"

namespace fairlead::cmd {
namespace {

// How long /metrics waits for the owner's thread.
constexpr absl::Duration kCollectWait = absl::Milliseconds(500);
// Of audit lines that wait to be written.
constexpr size_t kAuditBytes = size_t{64} << 20;

absl::StatusOr<std::unique_ptr<remote_plugins::Caller>> ConnectPlugins(
    const std::vector<model::RemotePluginConfig>& plugins) {
  return remote_plugins::Client::Make(plugins);
}

// Unique per process, as the lease requires.
std::string MakeIdentity() {
  char host[256] = "";
  if (gethostname(host, sizeof(host) - 1) != 0) host[0] = '\0';
  std::random_device device;
  return absl::StrCat(host[0] == '\0' ? "fairlead" : host, "_",
                      absl::StrFormat("%08x%08x", device(), device()));
}

// Signals may come before there is anything to stop.
class SignalTarget {
 public:
  void OnSignal(int number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (number == SIGHUP) {
      if (on_reload_) on_reload_();
    } else if (number != SIGWINCH) {
      asked_ = true;
      if (running_ != nullptr) running_->Stop();
    }
  }
  void Set(Application* running, std::function<void()> on_reload) {
    const std::lock_guard<std::mutex> lock(mutex_);
    running_ = running;
    on_reload_ = std::move(on_reload);
    if (asked_ && running_ != nullptr) running_->Stop();
  }

 private:
  std::mutex mutex_;
  bool asked_ = false;
  Application* running_ = nullptr;
  std::function<void()> on_reload_;
};

// A thread that checks the files periodically and on request.
class ReloadThread {
 public:
  explicit ReloadThread(Reloader* reloader) : reloader_(reloader) {
    thread_ = std::thread([this] { Run(); });
  }
  ~ReloadThread() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  ReloadThread(const ReloadThread&) = delete;
  ReloadThread& operator=(const ReloadThread&) = delete;

  void Trigger() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      triggered_ = true;
    }
    changed_.notify_one();
  }

 private:
  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait_for(lock, absl::ToChronoNanoseconds(kFilePoll),
                        [this] { return stopping_ || triggered_; });
      if (stopping_) return;
      const bool asked = std::exchange(triggered_, false);
      lock.unlock();
      reloader_->Check(asked);
      lock.lock();
    }
  }

  Reloader* const reloader_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false, triggered_ = false;
  std::thread thread_;
};

// What /metrics tells besides the application; null: there is none.
struct Told {
  const LogWriter* audit;
  const Webhook* webhook;
  const Traces* traces;
};

std::map<std::string, server::Handler> Handlers(Application& application, const Reloader& reloader,
                                                const LogWriter& log, const Told& told,
                                                const Clock& clock) {
  const server::Handler live = [&application](absl::string_view) {
    return LiveResponse(application.Alive(), application.GetStats());
  };
  return {{"/livez", live},
          {"/healthz", live},
          {"/readyz",
           [&application](absl::string_view) {
             return ReadyResponse(application.Alive(), application.GetStats());
           }},
          {"/metrics", [&, told](absl::string_view) {
             HostStats host;
             host.process = ProcessFacts::Read();
             host.log_lines_dropped = log.dropped();
             host.audit_lines_dropped = told.audit == nullptr ? 0 : told.audit->dropped();
             if (told.webhook != nullptr) host.webhook = told.webhook->GetStats();
             if (told.traces != nullptr) host.spans = told.traces->GetStats();
             host.version = kVersion;
             const ReloadStats reloads = reloader.GetStats();
             host.reloads_ok = reloads.ok;
             host.reloads_failed = reloads.failed;
             host.configuration_stale = reloads.stale;
             const OwnerStats owner = application.Collect(kCollectWait);
             server::Response response;
             response.content_type = server::kExpositionType;
             response.body =
                 server::Expose(MetricsOf(application.GetStats(), owner, host, clock.Now()));
             return response;
           }}};
}

decltype(Application::Ports::connect_cloud) ConnectCloud(
    const core::CloudServerSettings& settings) {
  return
      [settings](
          external_grpc::Client::Post post) -> absl::StatusOr<std::unique_ptr<hook::CloudGroups>> {
        absl::StatusOr<std::unique_ptr<external_grpc::Client>> client =
            external_grpc::Client::Make({settings.address, settings.ca_file, settings.cert_file,
                                         settings.key_file, settings.server_name, settings.timeout},
                                        std::move(post));
        if (client.ok()) return *std::move(client);
        return absl::Status(client.status().code(),
                            absl::StrCat("externalgrpc: ", client.status().message()));
      };
}

AppOptions OptionsFor(const RunFlags& flags, const core::Configuration& configuration,
                      const UsageDatabase* usage_database) {
  AppOptions options;
  options.core = configuration.options;
  options.leader_election = configuration.leader_election;
  options.identity = flags.identity.empty() ? MakeIdentity() : flags.identity;
  options.kwok.boot_delay = configuration.kwok_boot_delay;
  options.karpenter.node_class = configuration.karpenter_node_class;
  options.cluster_api = {configuration.cluster_api.ns, configuration.cluster_api.cluster_name};
  options.scale_groups = configuration.scale_groups;
  options.provisioning = configuration.provisioning;
  if (options.provisioning.ns.empty()) options.provisioning.ns = configuration.leader_election.ns;
  options.stale_after = configuration.stale_after;
  if (usage_database != nullptr) options.usage_queries = usage_database->queries();
  options.usage_wait_timeout = configuration.usage_database.wait_timeout;
  return options;
}

// What the flags say goes before what the file says.
void ApplyFlags(const RunFlags& flags, core::Configuration& configuration) {
  if (!flags.scheduler_names.empty()) {
    core::SetSchedulerNames(flags.scheduler_names, configuration.options.state);
  }
  if (flags.leader_elect_given) configuration.leader_election.enabled = flags.leader_elect;
  if (!flags.metrics_bind_address.empty()) {
    configuration.metrics_bind_address = flags.metrics_bind_address;
  }
}

// Nothing for "" and "0": nothing is served.
absl::StatusOr<std::optional<server::BindAddress>> ServedAt(const std::string& address) {
  if (address.empty() || address == "0") return std::nullopt;
  FAIRLEAD_ASSIGN_OR_RETURN(server::BindAddress parsed, server::ParseBindAddress(address));
  return parsed;
}

// Appends to the file; null if none is named.
absl::StatusOr<std::unique_ptr<LogWriter>> OpenAuditLog(const std::string& file,
                                                        const Clock* clock) {
  if (file.empty()) return nullptr;
  int fd = STDOUT_FILENO;
  if (file != "-") {
    fd = open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR | S_IRGRP);
    if (fd < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--audit-log ", file, ": cannot be opened: ", std::strerror(errno)));
    }
  }
  return std::make_unique<LogWriter>(
      fd, clock, LogWriterOptions{.bytes_max = kAuditBytes, .format = LogFormat::kJson});
}

// A journal that is being recorded.
struct Journal {
  std::unique_ptr<JournalFile> file;
  std::unique_ptr<journal::Recorder> recorder;
};

// Nothing if no folder is named.
absl::StatusOr<Journal> OpenJournal(const std::string& folder, const Clock& clock, Logger& logger) {
  Journal opened;
  if (folder.empty()) return opened;
  absl::StatusOr<std::unique_ptr<JournalFile>> file =
      JournalFile::Create(folder, clock.Now(), JournalOptions(), [&logger](const std::string& why) {
        logger.Warning("the journal ends; everything else goes on", {{"why", why}});
      });
  if (!file.ok()) {
    return absl::Status(file.status().code(), absl::StrCat("--journal ", file.status().message()));
  }
  opened.file = *std::move(file);
  opened.recorder = std::make_unique<journal::Recorder>(
      kVersion, [file = opened.file.get()](std::string record) { file->Add(std::move(record)); });
  logger.Info("recording a journal", {{"file", opened.file->path()}});
  return opened;
}

// Null without an address.
absl::StatusOr<std::unique_ptr<Webhook>> ServeWebhooks(const RunFlags& flags,
                                                       const core::Configuration& configuration,
                                                       const WebhookHandlers::Ports& ports) {
  FAIRLEAD_ASSIGN_OR_RETURN(const std::optional<server::BindAddress> address,
                            ServedAt(flags.webhook_bind_address));
  if (!address.has_value()) return nullptr;
  const state::StateOptions& state = configuration.options.state;
  WebhookOptions options;
  options.address = *address;
  options.certificate_dir = flags.webhook_certificate_dir;
  options.ns = configuration.leader_election.ns;
  admission::Policy& policy = options.policy;
  policy.guests = state.guest_schedulers;
  for (const std::string& name : state.scheduler_names) {
    const bool guest = absl::c_linear_search(policy.guests, name);
    if (!guest) policy.scheduler_names.push_back(name);
  }
  policy.default_queue = state.default_queue;
  policy.builtin_default_queue = configuration.options.builtin_default_queue;
  policy.queue_authorization = configuration.admission.queue_authorization;
  policy.authorization_fails_closed = configuration.admission.authorization_fails_closed;
  FAIRLEAD_ASSIGN_OR_RETURN(std::unique_ptr<Webhook> webhook, Webhook::Start(ports, options));
  ports.logger->Info("serving webhooks", {{"port", webhook->port()}});
  return webhook;
}

// Null without settings.
absl::StatusOr<std::unique_ptr<DashboardServer>> ServeDashboard(
    const std::optional<DashboardSettings>& settings, const DashboardServer::Ports& ports,
    Logger& logger) {
  if (!settings.has_value()) return nullptr;
  FAIRLEAD_ASSIGN_OR_RETURN(std::unique_ptr<DashboardServer> page,
                            DashboardServer::Start(*settings, ports));
  logger.Info("serving the dashboard",
              {{"port", page->port()}, {"auth", settings->needs_token ? "token" : "none"}});
  if (!settings->needs_token && !server::IsLoopback(settings->address)) {
    logger.Warning("whoever reaches the dashboard may read it: --dashboard-auth=none");
  }
  return page;
}

void LogStart(const Connection& connection, const AppOptions& options, Logger& logger) {
  logger.Info("starting",
              {{"version", kVersion},
               {"cluster", connection.Describe()},
               {"identity", options.identity},
               {"scheduler_names", absl::StrJoin(options.core.state.scheduler_names, ",")},
               {"hook", options.core.hook.enabled ? options.core.hook.provider : "off"},
               {"leader_election", options.leader_election.enabled ? "on" : "off"}});
}

}  // namespace

absl::Status RunScheduler(const RunFlags& flags) {
  FAIRLEAD_ASSIGN_OR_RETURN(const LogLevel level, ParseLogLevel(flags.log_level));
  FAIRLEAD_ASSIGN_OR_RETURN(const LogFormat format, ParseLogFormat(flags.log_format));
  SettingsWatch watch(flags.common.configuration, flags.common.catalog, ReadTextFile,
                      LoadWith(flags.common.plugins));
  FAIRLEAD_ASSIGN_OR_RETURN(Settings settings, watch.Load());
  core::Configuration& configuration = settings.configuration;
  ApplyFlags(flags, configuration);
  FAIRLEAD_ASSIGN_OR_RETURN(const std::optional<server::BindAddress> address,
                            ServedAt(configuration.metrics_bind_address));
  FAIRLEAD_RETURN_IF_ERROR(ServedAt(configuration.guests_bind_address).status());
  FAIRLEAD_ASSIGN_OR_RETURN(const auto webhook_address, ServedAt(flags.webhook_bind_address));
  FAIRLEAD_ASSIGN_OR_RETURN(
      const std::optional<DashboardSettings> dashboard,
      ParseDashboardFlags(flags.dashboard_bind_address, flags.dashboard_auth));

  // Before the first thread starts, so that all threads leave the signals to the watcher.
  SignalTarget target;
  SignalWatcher signals([&target](int number) { target.OnSignal(number); }, nullptr);

  FAIRLEAD_ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection,
                            Connection::Open(flags.common.cluster));
  FAIRLEAD_ASSIGN_OR_RETURN(const std::unique_ptr<UsageDatabase> usage_database,
                            UsageDatabase::Open(configuration, connection->clock()));
  std::unique_ptr<Connection> management;  // of the provider cluster-api
  if (!configuration.cluster_api.kubeconfig.empty()) {
    FAIRLEAD_ASSIGN_OR_RETURN(management,
                              Connection::Open({configuration.cluster_api.kubeconfig, ""}));
  }
  LogWriter log(STDERR_FILENO, &connection->clock(), {.format = format});
  FAIRLEAD_ASSIGN_OR_RETURN(const std::unique_ptr<LogWriter> audit,
                            OpenAuditLog(flags.audit_log, &connection->clock()));
  Logger logger(
      &connection->clock(), level, [&log](absl::string_view line) { log.Write(line); }, format);
  for (const std::string& warning : configuration.warnings) logger.Warning(warning);
  FAIRLEAD_ASSIGN_OR_RETURN(const Journal journal,
                            OpenJournal(flags.journal, connection->clock(), logger));
  const AppOptions options = OptionsFor(flags, configuration, usage_database.get());
  LogStart(*connection, options, logger);
  FAIRLEAD_ASSIGN_OR_RETURN(
      const std::unique_ptr<Traces> traces,
      Traces::Open(configuration.tracing, options.identity, connection->clock(), logger));
  // Ends before the application, which answers.
  std::unique_ptr<guests::Service> guests;
  std::function<void()> serve_guests;
  WebhookCache webhook_cache;
  LiveView live_view;
  AppObservers observers;
  if (webhook_address.has_value()) observers.Add(&webhook_cache);
  if (dashboard.has_value()) observers.Add(&live_view);
  if (traces != nullptr) observers.Add(traces->observer());
  Application application(
      {&connection->transport(), &connection->transport(), &connection->clock(),
       usage_database == nullptr ? nullptr : &usage_database->transport(),
       [clock = &connection->clock()](const model::ExtenderConfig& extender) {
         return extenders::NewTransport(extender, *clock);
       },
       ConnectPlugins, [&serve_guests] { serve_guests(); },
       [&guests](const std::vector<core::GuestGrant>& grants) {
         if (guests != nullptr) guests->Publish(grants);
       },
       ConnectCloud(configuration.external_grpc),
       management == nullptr ? nullptr : &management->transport(),
       audit == nullptr ? AuditLog::Sink(nullptr)
                        : [&audit](absl::string_view line) { audit->Write(line); },
       journal.recorder.get()},
      options, &settings.catalog, &logger, &observers);
  Reloader reloader(std::move(watch), &application, &logger, [&flags](core::Options& changed) {
    if (!flags.scheduler_names.empty()) {
      core::SetSchedulerNames(flags.scheduler_names, changed.state);
    }
  });
  ReloadThread reloads(&reloader);
  FAIRLEAD_ASSIGN_OR_RETURN(
      const std::unique_ptr<Webhook> webhook,
      ServeWebhooks(flags, configuration,
                    {&webhook_cache, &connection->transport(), &connection->clock(), &logger}));
  std::unique_ptr<server::HttpServer> http;
  if (address.has_value()) {
    FAIRLEAD_ASSIGN_OR_RETURN(
        http, server::HttpServer::Start(
                  *address,
                  Handlers(application, reloader, log, {audit.get(), webhook.get(), traces.get()},
                           connection->clock()),
                  {.slow_paths = {"/metrics"}, .posts = GuestHandlers(application)}));
    logger.Info("serving /livez, /readyz and /metrics", {{"port", http->port()}});
  }
  FAIRLEAD_ASSIGN_OR_RETURN(
      const std::unique_ptr<DashboardServer> page,
      ServeDashboard(dashboard,
                     {&application, &live_view, &connection->transport(), &connection->clock()},
                     logger));
  // The leader alone listens: a connection that a standby refuses finds the leader in the end.
  serve_guests = [&] {
    absl::StatusOr<std::unique_ptr<guests::Service>> served =
        ServeGuests(configuration.guests_bind_address, application);
    if (!served.ok()) {
      logger.Error("guests cannot ask over gRPC", {{"problem", served.status().message()}});
    } else if (*served != nullptr) {
      guests = *std::move(served);
      logger.Info("serving guests", {{"port", guests->port()}});
    }
  };
  target.Set(&application, [&reloads] { reloads.Trigger(); });
  const absl::Status ran = application.Run();
  target.Set(nullptr, nullptr);
  guests.reset();
  if (traces != nullptr) traces->Stop();
  return ran;
}

}  // namespace fairlead::cmd
