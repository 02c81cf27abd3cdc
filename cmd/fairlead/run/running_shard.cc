#include "cmd/fairlead/run/running_shard.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "cmd/fairlead/cluster/version.h"
#include "cmd/fairlead/run/guest_handlers.h"
#include "core/config_shard.h"
#include "extenders/connection.h"
#include "external-grpc/client.h"
#include "remote-plugins/client.h"

namespace fairlead::cmd {
namespace {

absl::StatusOr<std::unique_ptr<remote_plugins::Caller>> ConnectPlugins(
    const std::vector<model::RemotePluginConfig>& plugins) {
  return remote_plugins::Client::Make(plugins);
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

// How logs, metrics and folders name it.
Logger LoggerFor(const Logger& logger, const RunningShard::LabelValue& label_value) {
  if (!label_value.has_value()) return logger.With({});
  return logger.With({{"shard", *label_value}});
}

}  // namespace

void ApplyFlags(const RunFlags& flags, const RunningShard::LabelValue& label_value,
                core::Configuration& configuration) {
  if (!flags.scheduler_names.empty()) {
    core::SetSchedulerNames(flags.scheduler_names, configuration.options.state);
  }
  if (label_value.has_value()) {
    core::SetShard(core::Shard{*label_value}, configuration.leader_election.name,
                   configuration.options);
  }
  if (flags.leader_elect_given) configuration.leader_election.enabled = flags.leader_elect;
  if (!flags.metrics_bind_address.empty()) {
    configuration.metrics_bind_address = flags.metrics_bind_address;
  }
}

absl::StatusOr<std::unique_ptr<RunningShard>> RunningShard::Make(const Host& host,
                                                                 const LabelValue& label_value) {
  const CommonFlags& files = host.flags->common;
  SettingsWatch watch(files.configuration, files.catalog, ReadTextFile, LoadWith(files.plugins));
  FAIRLEAD_ASSIGN_OR_RETURN(Settings settings, watch.Load());
  ApplyFlags(*host.flags, label_value, settings.configuration);
  if (settings.configuration.options.shard.has_value()) {
    FAIRLEAD_RETURN_IF_ERROR(core::CheckShard(settings.configuration.options));
  }
  std::unique_ptr<RunningShard> made(
      new RunningShard(host, label_value, std::move(watch), std::move(settings)));
  FAIRLEAD_RETURN_IF_ERROR(made->Open());
  return made;
}

RunningShard::RunningShard(const Host& host, const LabelValue& label_value, SettingsWatch watch,
                           Settings settings)
    : host_(host),
      label_value_(label_value),
      settings_(std::move(settings)),
      logger_(LoggerFor(*host.logger, label_value)),
      watch_(std::move(watch)) {}

RunningShard::~RunningShard() = default;

absl::Status RunningShard::Open() {
  const Clock& clock = host_.connection->clock();
  FAIRLEAD_RETURN_IF_ERROR(OpenJournal());
  const AppOptions options = OptionsFor();
  LogStart(options);
  FAIRLEAD_ASSIGN_OR_RETURN(
      traces_, Traces::Open(settings_.configuration.tracing, options.identity, clock, logger_));
  if (host_.events != nullptr) observers_.Add(host_.events);
  if (host_.has_dashboard) observers_.Add(&live_view_);
  if (traces_ != nullptr) observers_.Add(traces_->observer());
  application_ =
      std::make_unique<Application>(PortsFor(), options, &settings_.catalog, &logger_, &observers_);
  reloader_ = std::make_unique<Reloader>(
      std::move(watch_), application_.get(), &logger_, [this](core::Options& changed) {
        if (!host_.flags->scheduler_names.empty()) {
          core::SetSchedulerNames(host_.flags->scheduler_names, changed.state);
        }
        // The Lease stays, so the shard does.
        const core::Configuration& first = settings_.configuration;
        core::SetShard(first.options.shard, first.leader_election.name, changed);
      });
  return absl::OkStatus();
}

// A journal is one loop's, so each of several shards has a folder.
absl::Status RunningShard::OpenJournal() {
  std::string folder = host_.flags->journal;
  if (folder.empty()) return absl::OkStatus();
  if (label_value_.has_value() && !label_value_->empty()) {
    absl::StrAppend(&folder, "/", *label_value_);
  }
  absl::StatusOr<std::unique_ptr<JournalFile>> file = JournalFile::Create(
      folder, host_.connection->clock().Now(), JournalOptions(), [this](const std::string& why) {
        logger_.Warning("the journal ends; everything else goes on", {{"why", why}});
      });
  if (!file.ok()) {
    return absl::Status(file.status().code(), absl::StrCat("--journal ", file.status().message()));
  }
  journal_file_ = *std::move(file);
  recorder_ = std::make_unique<journal::Recorder>(
      kVersion, [to = journal_file_.get()](std::string record) { to->Add(std::move(record)); });
  logger_.Info("recording a journal", {{"file", journal_file_->path()}});
  return absl::OkStatus();
}

AppOptions RunningShard::OptionsFor() const {
  const core::Configuration& configuration = settings_.configuration;
  AppOptions options;
  options.core = configuration.options;
  options.leader_election = configuration.leader_election;
  if (const std::optional<core::Shard>& shard = configuration.options.shard; shard.has_value()) {
    options.leader_election.name = core::LeaseNameOf(configuration.leader_election.name, *shard);
  }
  options.identity = host_.identity;
  options.kwok.boot_delay = configuration.kwok_boot_delay;
  options.kwok.out_of_stock = OutOfStock(configuration.kwok_out_of_stock_file);
  options.karpenter.node_class = configuration.karpenter_node_class;
  options.cluster_api = {configuration.cluster_api.ns, configuration.cluster_api.cluster_name};
  options.scale_groups = configuration.scale_groups;
  options.provisioning = configuration.provisioning;
  if (options.provisioning.ns.empty()) options.provisioning.ns = configuration.leader_election.ns;
  options.stale_after = configuration.stale_after;
  if (host_.usage_database != nullptr) options.usage_queries = host_.usage_database->queries();
  options.usage_wait_timeout = configuration.usage_database.wait_timeout;
  return options;
}

Application::Ports RunningShard::PortsFor() {
  Connection& connection = *host_.connection;
  return {&connection.transport(),
          &connection.transport(),
          &connection.clock(),
          host_.usage_database == nullptr ? nullptr : &host_.usage_database->transport(),
          [clock = &connection.clock()](const model::ExtenderConfig& extender) {
            return extenders::NewTransport(extender, *clock);
          },
          ConnectPlugins,
          [this] { ServeGuests(); },
          [this](const std::vector<core::GuestGrant>& grants) {
            if (guests_ != nullptr) guests_->Publish(grants);
          },
          ConnectCloud(settings_.configuration.external_grpc),
          host_.management_cluster,
          host_.audit == nullptr
              ? AuditLog::Sink(nullptr)
              : [audit = host_.audit](absl::string_view line) { audit->Write(line); },
          recorder_.get()};
}

// The leader alone listens: a connection that a standby refuses finds the leader in the end.
void RunningShard::ServeGuests() {
  absl::StatusOr<std::unique_ptr<guests::Service>> served =
      cmd::ServeGuests(settings_.configuration.guests_bind_address, *application_);
  if (!served.ok()) {
    logger_.Error("guests cannot ask over gRPC", {{"problem", served.status().message()}});
  } else if (*served != nullptr) {
    guests_ = *std::move(served);
    logger_.Info("serving guests", {{"port", guests_->port()}});
  }
}

void RunningShard::LogStart(const AppOptions& options) {
  logger_.Info("starting",
               {{"version", kVersion},
                {"cluster", host_.connection->Describe()},
                {"identity", options.identity},
                {"scheduler_names", absl::StrJoin(options.core.state.scheduler_names, ",")},
                {"hook", options.core.hook.enabled ? options.core.hook.provider : "off"},
                {"leader_election", options.leader_election.enabled ? "on" : "off"}});
  const std::optional<core::Shard>& shard = options.core.shard;
  if (shard.has_value()) {
    logger_.Info("scheduling one shard of the cluster",
                 {{"node_pool", shard->label_value}, {"lease", options.leader_election.name}});
  }
}

absl::Status RunningShard::ServeDashboard(const std::optional<DashboardSettings>& settings) {
  if (!settings.has_value()) return absl::OkStatus();
  Connection& connection = *host_.connection;
  FAIRLEAD_ASSIGN_OR_RETURN(
      page_, DashboardServer::Start(*settings, {application_.get(), &live_view_,
                                                &connection.transport(), &connection.clock()}));
  logger_.Info("serving the dashboard",
               {{"port", page_->port()}, {"auth", settings->needs_token ? "token" : "none"}});
  if (!settings->needs_token && !server::IsLoopback(settings->address)) {
    logger_.Warning("whoever reaches the dashboard may read it: --dashboard-auth=none");
  }
  return absl::OkStatus();
}

absl::Status RunningShard::Run() {
  const absl::Status ran = application_->Run();
  guests_.reset();
  if (traces_ != nullptr) traces_->Stop();
  return ran;
}

}  // namespace fairlead::cmd
