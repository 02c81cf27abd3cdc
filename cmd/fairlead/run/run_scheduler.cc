// run: the Applications of the process's shards with what they share: signals, a log that does not
// block, the connection, HTTP, and the thread that reloads the configuration.
#include "cmd/fairlead/run/run_scheduler.h"

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
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "cmd/fairlead/app/app.h"
#include "cmd/fairlead/cluster/usage_database.h"
#include "cmd/fairlead/cluster/version.h"
#include "cmd/fairlead/logs/log_writer.h"
#include "cmd/fairlead/run/dashboard_server.h"
#include "cmd/fairlead/run/guest_handlers.h"
#include "cmd/fairlead/run/health.h"
#include "cmd/fairlead/run/metrics.h"
#include "cmd/fairlead/run/profiles.h"
#include "cmd/fairlead/run/reloader.h"
#include "cmd/fairlead/run/running_shard.h"
#include "cmd/fairlead/run/signals.h"
#include "cmd/fairlead/settings/settings_watch.h"
#include "cmd/fairlead/webhook/webhook.h"
#include "server/http_server.h"

namespace fairlead::cmd {
namespace {

// How long /metrics waits for the owner's thread.
constexpr absl::Duration kCollectWait = absl::Milliseconds(500);
// Of audit lines that wait to be written.
constexpr size_t kAuditBytes = size_t{64} << 20;

// Unique per process, as the lease requires.
std::string MakeIdentity() {
  char host[256] = "";
  if (gethostname(host, sizeof(host) - 1) != 0) host[0] = '\0';
  std::random_device device;
  return absl::StrCat(host[0] == '\0' ? "fairlead" : host, "_",
                      absl::StrFormat("%08x%08x", device(), device()));
}

using Shards = std::vector<std::unique_ptr<RunningShard>>;

// Signals may come before there is anything to stop.
class SignalTarget {
 public:
  void OnSignal(int number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (number == SIGHUP) {
      if (on_reload_) on_reload_();
    } else if (number != SIGWINCH) {
      asked_ = true;
      Stop();
    }
  }
  // Null: there is nothing to stop any more.
  void Set(const Shards* running, std::function<void()> on_reload) {
    const std::lock_guard<std::mutex> lock(mutex_);
    running_ = running;
    on_reload_ = std::move(on_reload);
    if (asked_) Stop();
  }

 private:
  void Stop() {
    if (running_ == nullptr) return;
    for (const auto& shard : *running_) shard->application().Stop();
  }

  std::mutex mutex_;
  bool asked_ = false;
  const Shards* running_ = nullptr;
  std::function<void()> on_reload_;
};

// A thread that checks the files periodically and on request.
class ReloadThread {
 public:
  explicit ReloadThread(const Shards* shards) : shards_(shards) {
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
      for (const auto& shard : *shards_) shard->reloader().Check(asked);
      lock.lock();
    }
  }

  const Shards* const shards_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false, triggered_ = false;
  std::thread thread_;
};

// What /metrics tells besides the applications; null: there is none.
struct Told {
  const LogWriter* log;
  const LogWriter* audit;
  const Webhook* webhook;
};

HostStats HostStatsOf(const Shards& shards, const Told& told) {
  HostStats host;
  host.process = ProcessFacts::Read();
  host.log_lines_dropped = told.log->dropped();
  host.audit_lines_dropped = told.audit == nullptr ? 0 : told.audit->dropped();
  if (told.webhook != nullptr) host.webhook = told.webhook->GetStats();
  host.version = kVersion;
  // All read the same files.
  const ReloadStats reloads = shards.front()->reloader().GetStats();
  host.reloads_ok = reloads.ok;
  host.reloads_failed = reloads.failed;
  for (const auto& shard : shards) {
    host.configuration_stale |= shard->reloader().GetStats().stale;
    if (shard->traces() == nullptr) continue;
    const SpanStats spans = shard->traces()->GetStats();
    if (!host.spans.has_value()) host.spans.emplace();
    host.spans->sent += spans.sent;
    host.spans->failed += spans.failed;
    host.spans->dropped += spans.dropped;
  }
  return host;
}

server::Response MetricsResponse(const Shards& shards, const Told& told, absl::Time now) {
  const HostStats host = HostStatsOf(shards, told);
  std::vector<ShardStats> stats;
  for (const auto& shard : shards) {
    const OwnerStats owner = shard->application().Collect(kCollectWait);
    stats.push_back({shard->label_value(), shard->application().GetStats(), owner});
  }
  server::Response response;
  response.content_type = server::kExpositionType;
  response.body = server::Expose(MetricsOf(stats, host, now));
  return response;
}

std::map<std::string, server::Handler> Handlers(const Shards& shards, const Told& told,
                                                const Clock& clock) {
  const auto each = [&shards](server::Response (*say)(bool alive, const AppStats& stats)) {
    return [&shards, say](absl::string_view) {
      std::vector<ShardHealth> all;
      for (const auto& shard : shards) {
        Application& application = shard->application();
        all.push_back({shard->label_value(), say(application.Alive(), application.GetStats())});
      }
      return HealthOf(all);
    };
  };
  const server::Handler live = each(LiveResponse);
  return {{"/livez", live},
          {"/healthz", live},
          {"/readyz", each(ReadyResponse)},
          {"/metrics", [&shards, &clock, told](absl::string_view) {
             return MetricsResponse(shards, told, clock.Now());
           }}};
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

// One for each of the values; the one that is configured if there are none. The first uses the
// connection of the host, each other one of its own, into `connections`: a transport has room for
// the watches of one (kube::CurlTransportOptions::watch_connections_max).
absl::StatusOr<Shards> MakeShards(RunningShard::Host host, AppObserver* events,
                                  std::vector<std::unique_ptr<Connection>>& connections) {
  const std::vector<std::string>& values = host.flags->partition_label_values;
  std::vector<RunningShard::LabelValue> wanted(values.begin(), values.end());
  if (wanted.empty()) wanted.emplace_back();
  Shards shards;
  for (const RunningShard::LabelValue& value : wanted) {
    // Each sees the events of all objects.
    host.events = shards.empty() ? events : nullptr;
    if (!shards.empty()) {
      FAIRLEAD_ASSIGN_OR_RETURN(connections.emplace_back(),
                                Connection::Open(host.flags->common.cluster));
      host.connection = connections.back().get();
    }
    FAIRLEAD_ASSIGN_OR_RETURN(std::unique_ptr<RunningShard> made, RunningShard::Make(host, value));
    shards.push_back(std::move(made));
  }
  return shards;
}

// Until one ends, which ends all: what supervises the process starts them anew, and another replica
// leads meanwhile.
absl::Status RunAll(const Shards& shards) {
  std::vector<absl::Status> results(shards.size());
  const auto run = [&](size_t i) {
    results[i] = shards[i]->Run();
    for (const auto& other : shards) other->application().Stop();
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < shards.size(); ++i) others.emplace_back(run, i);
  run(0);
  for (std::thread& other : others) other.join();
  for (const absl::Status& result : results) FAIRLEAD_RETURN_IF_ERROR(result);
  return absl::OkStatus();
}

// The page of each shard has a port of its own, from that of the address on.
absl::Status ServeDashboards(const Shards& shards, std::optional<DashboardSettings> settings) {
  for (const auto& shard : shards) {
    FAIRLEAD_RETURN_IF_ERROR(shard->ServeDashboard(settings));
    if (settings.has_value() && settings->address.port != 0) ++settings->address.port;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunScheduler(const RunFlags& flags) {
  FAIRLEAD_ASSIGN_OR_RETURN(const LogLevel level, ParseLogLevel(flags.log_level));
  FAIRLEAD_ASSIGN_OR_RETURN(const LogFormat format, ParseLogFormat(flags.log_format));
  const std::vector<std::string>& values = flags.partition_label_values;
  if (std::set<std::string>(values.begin(), values.end()).size() != values.size()) {
    return absl::InvalidArgumentError("--partition-label-value: a value is given twice");
  }
  SettingsWatch watch(flags.common.configuration, flags.common.catalog, ReadTextFile,
                      LoadWith(flags.common.plugins));
  FAIRLEAD_ASSIGN_OR_RETURN(Settings settings, watch.Load());
  core::Configuration& configuration = settings.configuration;
  ApplyFlags(flags, std::nullopt, configuration);
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
  WebhookCache webhook_cache;
  std::vector<std::unique_ptr<Connection>> more_connections;
  FAIRLEAD_ASSIGN_OR_RETURN(
      const Shards shards,
      MakeShards(
          {&flags, connection.get(), flags.identity.empty() ? MakeIdentity() : flags.identity,
           &logger, management == nullptr ? nullptr : &management->transport(),
           usage_database.get(), audit.get(), nullptr, dashboard.has_value()},
          webhook_address.has_value() ? &webhook_cache : nullptr, more_connections));
  ReloadThread reloads(&shards);
  FAIRLEAD_ASSIGN_OR_RETURN(
      const std::unique_ptr<Webhook> webhook,
      ServeWebhooks(flags, configuration,
                    {&webhook_cache, &connection->transport(), &connection->clock(), &logger}));
  std::unique_ptr<server::HttpServer> http;
  if (address.has_value()) {
    FAIRLEAD_ASSIGN_OR_RETURN(
        http,
        server::HttpServer::Start(
            *address, Handlers(shards, {&log, audit.get(), webhook.get()}, connection->clock()),
            {.slow_paths = {"/metrics"}, .posts = GuestHandlers(shards.front()->application())}));
    logger.Info("serving /livez, /readyz and /metrics", {{"port", http->port()}});
  }
  FAIRLEAD_RETURN_IF_ERROR(ServeDashboards(shards, dashboard));
  std::unique_ptr<server::HttpServer> profiles;
  if (!flags.profile_bind_address.empty() && flags.profile_bind_address != "0") {
    FAIRLEAD_ASSIGN_OR_RETURN(profiles, ServeProfiles(flags.profile_bind_address, flags.profiler));
    logger.Info("serving profiles", {{"port", profiles->port()}});
  }
  target.Set(&shards, [&reloads] { reloads.Trigger(); });
  const absl::Status ran = RunAll(shards);
  target.Set(nullptr, nullptr);
  return ran;
}

}  // namespace fairlead::cmd
