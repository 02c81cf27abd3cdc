#include "core/configuration.h"

#include <simdjson.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "core/config_fields.h"
#include "core/config_grouping.h"
#include "core/config_groups.h"
#include "core/config_provisioning.h"
#include "core/config_remote_plugins.h"
#include "core/config_shard.h"
#include "core/config_tracing.h"
#include "core/config_usage.h"
#include "core/queue_provisioning.h"
#include "scheduler/framework/config.h"

namespace fairlead::core {
namespace {

namespace dom = simdjson::dom;

constexpr char kFairleadVersion[] = "config.fairlead.dev/v1alpha1";
constexpr char kFairleadKind[] = "FairleadConfiguration";
constexpr char kSchedulerVersion[] = "kubescheduler.config.k8s.io/v1";
constexpr char kSchedulerKind[] = "KubeSchedulerConfiguration";
constexpr char kPlacePayload[] = "fairlead.dev/field-place";

absl::Status ReadGpuLimits(const dom::element& value, const std::string& path,
                           hook::HookOptions& hook) {
  return ReadMapping(
      value, path, [&](const std::string& name, const dom::element& limit, const std::string& at) {
        if (hook.gpu_limit_by_model.contains(name)) return Bad(at, "is given twice");
        return Count(&hook.gpu_limit_by_model[name], 0)(limit, at);
      });
}

// How much later than `staleAfter` a silent watch may be noticed.
constexpr absl::Duration kWatchDelay = absl::Seconds(30);

// Of this version, in the order in which they are told.
constexpr const char* kProviders[] = {"kwok",        "karpenter",         "externalgrpc",
                                      "cluster-api", "scale-subresource", "provisioning-request"};

absl::Status ReadNodeClass(const dom::element& value, const std::string& path,
                           model::NodeClassRef& out) {
  FAIRLEAD_RETURN_IF_ERROR(ReadObject(
      value, path,
      {{"group", Text(&out.group)}, {"kind", Text(&out.kind)}, {"name", Text(&out.name)}}));
  for (const auto& [field, text] :
       {std::pair("group", &out.group), {"kind", &out.kind}, {"name", &out.name}}) {
    if (text->empty()) return Bad(absl::StrCat(path, ".", field), "must be set");
  }
  return absl::OkStatus();
}

absl::Status ReadCloudServer(const dom::element& value, const std::string& path,
                             CloudServerSettings& out) {
  FAIRLEAD_RETURN_IF_ERROR(ReadObject(value, path,
                                      {{"address", Text(&out.address)},
                                       {"caFile", Text(&out.ca_file)},
                                       {"certFile", Text(&out.cert_file)},
                                       {"keyFile", Text(&out.key_file)},
                                       {"serverName", Text(&out.server_name)},
                                       {"timeout", Span(&out.timeout)}}));
  if (out.address.empty()) return Bad(absl::StrCat(path, ".address"), "must be set");
  if (out.timeout <= absl::ZeroDuration()) {
    return Bad(absl::StrCat(path, ".timeout"), "must be more than zero");
  }
  return absl::OkStatus();
}

absl::Status ReadConsolidation(const dom::element& value, const std::string& path,
                               model::Disruption& out) {
  std::string text;
  FAIRLEAD_RETURN_IF_ERROR(Text(&text)(value, path));
  out.consolidation = model::ParseConsolidationPolicy(text);
  if (!out.consolidation.has_value()) {
    return Bad(path, absl::StrCat("\"", text, "\" must be ", model::kConsolidationPolicies));
  }
  return absl::OkStatus();
}

absl::Status ReadOverQuota(const dom::element& value, const std::string& path,
                           engine::OverQuota& policy) {
  std::string text;
  FAIRLEAD_RETURN_IF_ERROR(Text(&text)(value, path));
  const std::optional<engine::OverQuota> read = ParseOverQuota(text);
  if (!read.has_value()) {
    return Bad(path, absl::StrCat("\"", text, "\" must be ", kOverQuotaValues));
  }
  policy = *read;
  return absl::OkStatus();
}

absl::Status ReadHook(const dom::element& value, const std::string& path,
                      Configuration& configuration) {
  hook::HookOptions& hook = configuration.options.hook;
  bool enabled_given = false;
  FAIRLEAD_RETURN_IF_ERROR(ReadObject(
      value, path,
      {{"enabled",
        [&](const dom::element& flag, const std::string& at) {
          enabled_given = true;
          return Flag(&hook.enabled)(flag, at);
        }},
       {"provider", Text(&hook.provider)},
       {"catalogFile", Text(&configuration.catalog_file)},
       {"clusterGPULimit", Count(&hook.cluster_gpu_limit, 0)},
       {"gpuLimits", [&hook](const dom::element& limits,
                             const std::string& at) { return ReadGpuLimits(limits, at, hook); }},
       {"costLimitPerHour", Dollars(&hook.cost_limit_micro_usd_per_hour)},
       {"unneededAfter", Span(&hook.unneeded_after)},
       {"minimumLifetime", Span(&hook.minimum_lifetime)},
       {"billingPeriod", Span(&hook.billing_period)},
       {"consolidationPolicy",
        [&hook](const dom::element& policy, const std::string& at) {
          return ReadConsolidation(policy, at, hook.disruption);
        }},
       {"consolidationHorizon", Span(&hook.consolidation_horizon)},
       {"removalsPerMinute", Count(&hook.removals_per_minute, 1)},
       {"launchTimeout", Span(&hook.launch_timeout)},
       {"readyTimeout", Span(&hook.ready_timeout)},
       {"backoffInitial", Span(&hook.backoff_initial)},
       {"backoffMax", Span(&hook.backoff_max)},
       {"expectedBoot", Span(&hook.expected_boot)},
       {"maxNodes", Count(&hook.max_nodes, 0)},
       {"gatheringQuiet", Span(&hook.gathering_quiet)},
       {"gatheringMax", Span(&hook.gathering_max)},
       {"provisioningBurst", Count(&hook.guard.burst, 1)},
       {"provisioningPerMinute", Count(&hook.guard.per_minute, 1)},
       {"totalProvisioningBurst", Count(&hook.guard.total_burst, 1)},
       {"totalProvisioningPerMinute", Count(&hook.guard.total_per_minute, 1)},
       {"overQuota",
        [&configuration](const dom::element& policy, const std::string& at) {
          return ReadOverQuota(policy, at, configuration.options.capacity.over_quota);
        }},
       {"capacityBuffers", Flag(&configuration.options.capacity.buffers)},
       {"provisioningRequests", Flag(&configuration.options.capacity.provisioning_requests)},
       {"bookingTime", Span(&configuration.options.capacity.booking)},
       {"maxNewRequestsPerStep", Count(&hook.max_new_requests_per_step, 1)}}));
  hook.known_providers.assign(std::begin(kProviders), std::end(kProviders));
  // A provider spends money, or makes nodes without machines: none is chosen by default.
  if (!enabled_given) hook.enabled = !hook.provider.empty();
  FAIRLEAD_RETURN_IF_ERROR(hook::CheckProvider(hook, absl::StrCat(path, ".provider")));
  const std::pair<const char*, absl::Duration> positive[] = {
      {"launchTimeout", hook.launch_timeout},
      {"readyTimeout", hook.ready_timeout},
      {"backoffInitial", hook.backoff_initial}};
  for (const auto& [name, duration] : positive) {
    if (duration <= absl::ZeroDuration()) {
      return Bad(absl::StrCat(path, ".", name), "must be more than zero");
    }
  }
  if (hook.gathering_max < hook.gathering_quiet) {
    return Bad(absl::StrCat(path, ".gatheringMax"), "must not be less than gatheringQuiet");
  }
  if (hook.backoff_max < hook.backoff_initial) {
    return Bad(absl::StrCat(path, ".backoffMax"), "must not be less than backoffInitial");
  }
  return absl::OkStatus();
}

absl::Status ReadLeaderElection(const dom::element& value, const std::string& path,
                                LeaderElectionSettings& settings) {
  std::string lock = "leases";
  FAIRLEAD_RETURN_IF_ERROR(ReadObject(value, path,
                                      {{"leaderElect", Flag(&settings.enabled)},
                                       {"leaseDuration", Span(&settings.times.lease_duration)},
                                       {"renewDeadline", Span(&settings.times.renew_deadline)},
                                       {"retryPeriod", Span(&settings.times.retry_period)},
                                       {"resourceLock", Text(&lock)},
                                       {"resourceName", Text(&settings.name)},
                                       {"resourceNamespace", Text(&settings.ns)}}));
  // As upstream: an election that is off may say anything.
  if (!settings.enabled) return absl::OkStatus();
  if (lock != "leases") return Bad(absl::StrCat(path, ".resourceLock"), "must be leases");
  const absl::Status times = CheckLeaseTimes(settings.times);
  if (times.ok()) return times;
  return absl::InvalidArgumentError(absl::StrCat(path, ".", times.message()));
}

absl::Status ReadGuests(const dom::element& value, const std::string& path,
                        Configuration& configuration) {
  Options& options = configuration.options;
  std::string& address = configuration.guests_bind_address;
  FAIRLEAD_RETURN_IF_ERROR(
      ReadObject(value, path,
                 {{"schedulerNames",
                   [&options](const dom::element& names, const std::string& at) {
                     return ReadNames(names, at, options.state.guest_schedulers);
                   }},
                  {"bindTimeout", Span(&options.guest_bind_timeout)},
                  {"bindAddress", Text(&address)}}));
  if (options.guest_bind_timeout >= absl::Seconds(1)) return absl::OkStatus();
  return Bad(absl::StrCat(path, ".bindTimeout"), "must be at least 1s");
}

absl::Status ReadGpuSharing(const dom::element& value, const std::string& path, Options& options) {
  GpuSharingOptions& sharing = options.gpu_sharing;
  FAIRLEAD_RETURN_IF_ERROR(
      ReadObject(value, path,
                 {{"enabled", Flag(&options.state.place_gpu_shares)},
                  {"namespace", Text(&options.state.reservation_namespace)},
                  {"image", Text(&sharing.image)},
                  {"command",
                   [&sharing](const dom::element& names, const std::string& at) {
                     return ReadNames(names, at, sharing.command);
                   }},
                  {"serviceAccountName", Text(&sharing.service_account)},
                  {"runtimeClassName", Text(&sharing.runtime_class)},
                  {"indexTimeout", Span(&sharing.index_timeout)},
                  {"idleGracePeriod", Span(&sharing.idle_grace)}}));
  if (sharing.index_timeout > absl::ZeroDuration()) return absl::OkStatus();
  return Bad(absl::StrCat(path, ".indexTimeout"), "must be more than zero");
}

absl::Status ReadEvictions(const dom::element& value, const std::string& path,
                           EvictionOptions& evictions) {
  FAIRLEAD_RETURN_IF_ERROR(ReadObject(value, path,
                                      {{"maxInFlight", Count(&evictions.max_in_flight, -1)},
                                       {"perSecond", Count(&evictions.per_second, 0)},
                                       {"burst", Count(&evictions.burst, 0)}}));
  if (evictions.max_in_flight != 0) return absl::OkStatus();
  return Bad(absl::StrCat(path, ".maxInFlight"), "must not be 0: no eviction would ever be sent");
}

absl::Status ReadJobOrder(const dom::element& value, const std::string& path,
                          state::JobOrder& order) {
  FAIRLEAD_RETURN_IF_ERROR(ReadObject(value, path,
                                      {{"durationWeight", Count(&order.duration_weight, 0)},
                                       {"assumedDuration", Span(&order.assumed_duration)}}));
  if (order.duration_weight <= state::JobOrder::kMaxDurationWeight) return absl::OkStatus();
  return Bad(absl::StrCat(path, ".durationWeight"),
             absl::StrCat("must be at most ", state::JobOrder::kMaxDurationWeight));
}

// Whether a reclaim may lift a queue above its fair share by a part of a gang.
absl::Status ReadReclaimRounding(const dom::element& value, const std::string& path,
                                 engine::EngineOptions& engine) {
  std::string rounding;
  FAIRLEAD_RETURN_IF_ERROR(Text(&rounding)(value, path));
  if (rounding != "nearest" && rounding != "down") {
    return Bad(path, absl::StrCat("'", rounding, "' is not nearest or down"));
  }
  engine.round_to_gang = rounding == "nearest";
  return absl::OkStatus();
}

absl::Status ReadAdmission(const dom::element& value, const std::string& path,
                           AdmissionSettings& admission) {
  std::string policy = "Ignore";
  FAIRLEAD_RETURN_IF_ERROR(ReadObject(value, path,
                                      {{"queueAuthorization", Flag(&admission.queue_authorization)},
                                       {"authorizationFailurePolicy", Text(&policy)}}));
  admission.authorization_fails_closed = policy == "Fail";
  if (policy == "Fail" || policy == "Ignore") return absl::OkStatus();
  return Bad(absl::StrCat(path, ".authorizationFailurePolicy"),
             absl::StrCat("'", policy, "' is not Ignore or Fail"));
}

absl::Status ReadActions(const dom::element& value, const std::string& path,
                         engine::EngineOptions& engine) {
  return ReadObject(value, path,
                    {{"consolidation", Flag(&engine.consolidation)},
                     {"reclaim", Flag(&engine.reclaim)},
                     {"preempt", Flag(&engine.preempt)},
                     {"staleGangEviction", Flag(&engine.stale_gangs)}});
}

absl::Status ReadQueueDepth(const dom::element& value, const std::string& path,
                            engine::EngineOptions& engine) {
  return ReadObject(value, path,
                    {{"allocate", Count(&engine.allocate_depth, 1)},
                     {"consolidation", Count(&engine.consolidation_depth, 1)},
                     {"reclaim", Count(&engine.reclaim_depth, 1)},
                     {"preempt", Count(&engine.preempt_depth, 1)}});
}

absl::Status ReadGangReservations(const dom::element& value, const std::string& path,
                                  engine::ReservationOptions& reservations) {
  return ReadObject(value, path,
                    {{"enabled", Flag(&reservations.on)},
                     {"reserveAfter", Span(&reservations.reserve_after)},
                     {"minGPUs", Count(&reservations.reserve_min_devices, 1)},
                     {"maxReservations", Count(&reservations.max_reservations, 1)}});
}

absl::Status ReadReclaimMethod(const dom::element& value, const std::string& path,
                               engine::EngineOptions& engine) {
  std::string method;
  FAIRLEAD_RETURN_IF_ERROR(Text(&method)(value, path));
  const absl::StatusOr<queues::ReclaimResolveMethod> parsed =
      queues::ParseReclaimResolveMethod(method);
  if (!parsed.ok()) return Bad(path, parsed.status().message());
  engine.reclaim_resolve = *parsed;
  return absl::OkStatus();
}

absl::Status ReadStaleAfter(const dom::element& value, const std::string& path,
                            absl::Duration& stale_after) {
  FAIRLEAD_RETURN_IF_ERROR(Span(&stale_after)(value, path));
  if (stale_after >= absl::Seconds(5)) return absl::OkStatus();
  return Bad(path, "must be at least 5s");
}

// Before a machine ends because its node is missing, the watch of nodes must have been heard.
absl::Status CheckReadyTimeout(const Configuration& configuration) {
  const hook::HookOptions& hook = configuration.options.hook;
  const absl::Duration least = configuration.stale_after + kWatchDelay;
  if (!hook.enabled || hook.ready_timeout >= least) return absl::OkStatus();
  return Bad("hook.readyTimeout",
             absl::StrCat("must be at least staleAfter and ", absl::FormatDuration(kWatchDelay),
                          ": ", absl::FormatDuration(least)));
}

// A handler that calls `read` with what it fills, which outlives it.
template <typename Read, typename Filled>
Handler By(Read read, Filled& filled) {
  return [read, &filled](const dom::element& value, const std::string& path) {
    return read(value, path, filled);
  };
}

// The values of a document that do not go directly into the Configuration.
struct Seen {
  std::set<std::string> providers;  // that have a section of their own
  bool scheduler = false, fairlead = false, names = false, election = false;
  std::vector<std::string> profile_names;
  framework::ProfileBases bases;
  size_t fairlead_document = 0;
};

// {scheduler name: Fairlead | Upstream}
absl::Status ReadBases(const dom::element& value, const std::string& path,
                       framework::ProfileBases& bases) {
  dom::object object;
  if (value.get(object) != simdjson::SUCCESS) return Bad(path, "must be an object");
  for (const auto& [key, entry] : object) {
    const std::string at = absl::StrCat(path, ".", ToAbsl(key));
    std::string_view text;
    if (entry.get(text) != simdjson::SUCCESS || (text != "Fairlead" && text != "Upstream")) {
      return Bad(at, "must be Fairlead or Upstream");
    }
    const auto base =
        text == "Fairlead" ? framework::ProfileBase::kFairlead : framework::ProfileBase::kUpstream;
    if (!bases.emplace(std::string(key), base).second) return Bad(at, "is given twice");
  }
  return absl::OkStatus();
}

absl::Status ReadFairlead(const dom::element& root, Configuration& configuration, Seen& seen) {
  if (std::exchange(seen.fairlead, true)) {
    return Bad("kind", absl::StrCat("the file has another ", kFairleadKind));
  }
  Options& options = configuration.options;
  engine::EngineOptions& engine = options.engine;
  std::string ignored;
  FAIRLEAD_RETURN_IF_ERROR(ReadObject(
      root, "",
      {{"apiVersion", Text(&ignored)},
       {"kind", Text(&ignored)},
       {"schedulerNames",
        [&](const dom::element& value, const std::string& path) {
          seen.names = true;
          return ReadNames(value, path, options.state.scheduler_names);
        }},
       {"defaultPlugins", By(ReadBases, seen.bases)},
       {"defaultQueue", Text(&options.state.default_queue)},
       {"builtinDefaultQueue", Flag(&options.builtin_default_queue)},
       {"usage",
        [&](const dom::element& value, const std::string& path) {
          return ReadUsage(value, path, engine, configuration.usage_database);
        }},
       {"actions", By(ReadActions, engine)},
       {"maxConsolidationWorkloads", Count(&engine.max_consolidation_workloads, -1)},
       {"consolidationMinRuntime", Span(&engine.consolidation_min_runtime)},
       {"consolidatingReclaim", Flag(&engine.consolidating_reclaim)},
       {"stalenessGracePeriod", Span(&engine.staleness_grace)},
       {"stuckInReleasingThreshold", Span(&engine.stuck_in_releasing_threshold)},
       {"preemptMinRuntime", Span(&engine.preempt_min_runtime)},
       {"reclaimMinRuntime", Span(&engine.reclaim_min_runtime)},
       {"reclaimResolveMethod", By(ReadReclaimMethod, engine)},
       {"reclaimRounding", By(ReadReclaimRounding, engine)},
       {"shard", By(ReadShard, options.shard)},
       {"jobOrder", By(ReadJobOrder, options.state.job_order)},
       {"gangReservations", By(ReadGangReservations, engine.reservations)},
       {"queueDepth", By(ReadQueueDepth, engine)},
       {"hook", By(ReadHook, configuration)},
       {"kwok",
        [&](const dom::element& value, const std::string& path) {
          seen.providers.insert(path);
          return ReadObject(value, path,
                            {{"bootDelay", Span(&configuration.kwok_boot_delay)},
                             {"outOfStockFile", Text(&configuration.kwok_out_of_stock_file)}});
        }},
       {"karpenter",
        [&](const dom::element& value, const std::string& path) {
          seen.providers.insert(path);
          return ReadObject(
              value, path,
              {{"nodeClassRef", By(ReadNodeClass, configuration.karpenter_node_class)}});
        }},
       {"externalgrpc",
        [&](const dom::element& value, const std::string& path) {
          seen.providers.insert(path);
          return ReadCloudServer(value, path, configuration.external_grpc);
        }},
       {"clusterApi",
        [&](const dom::element& value, const std::string& path) {
          seen.providers.insert("cluster-api");
          return ReadClusterApi(value, path, configuration.cluster_api);
        }},
       {"scaleSubresource",
        [&](const dom::element& value, const std::string& path) {
          seen.providers.insert("scale-subresource");
          return ReadScaleSubresource(value, path, configuration.scale_groups);
        }},
       {"provisioningRequest",
        [&](const dom::element& value, const std::string& path) {
          seen.providers.insert(model::kProvisioningRequestProvider);
          return ReadProvisioningRequest(value, path, configuration.provisioning);
        }},
       {"admission", By(ReadAdmission, configuration.admission)},
       {"guests", By(ReadGuests, configuration)},
       {"gpuSharing", By(ReadGpuSharing, options)},
       {"remotePlugins", By(ReadRemotePlugins, options)},
       {"evictions", By(ReadEvictions, options.evictions)},
       {"gangBindingGrace", Span(&options.gang_refusals.grace)},
       {"podGroupSettle", Span(&options.group_settle.wait)},
       {"grouping", By(ReadGrouping, options.grouping)},
       {"events", Flag(&options.emit_events)},
       {"kaiStatus", Flag(&options.kai_status)},
       {"staleAfter", By(ReadStaleAfter, configuration.stale_after)},
       {"metricsBindAddress", Text(&configuration.metrics_bind_address)},
       {"tracing", By(ReadTracing, configuration.tracing)},
       {"leaderElection", [&](const dom::element& value, const std::string& path) -> absl::Status {
          if (std::exchange(seen.election, true)) {
            return Bad(path, absl::StrCat("is set in ", kSchedulerKind, " too"));
          }
          return ReadLeaderElection(value, path, configuration.leader_election);
        }}}));
  std::vector<std::string>& known = options.hook.known_providers;
  std::erase_if(known, [&](const std::string& name) {
    return name != options.hook.provider && !seen.providers.contains(name);
  });
  if (options.hook.provider == "externalgrpc" && configuration.external_grpc.address.empty()) {
    return Bad("externalgrpc.address", "must be set, because hook.provider is externalgrpc");
  }
  if (options.hook.provider == "scale-subresource" && configuration.scale_groups.empty()) {
    return Bad("scaleSubresource.groups",
               "must have at least one, because hook.provider is scale-subresource");
  }
  if (options.hook.provider == model::kProvisioningRequestProvider &&
      configuration.provisioning.groups.empty()) {
    return Bad("provisioningRequest.groups",
               "must have at least one, because hook.provider is provisioning-request");
  }
  return CheckReadyTimeout(configuration);
}

// Reads it as if the field were in the document itself, so that errors have equal paths.
absl::Status ReadElectionJson(const std::string& json, Configuration& configuration, Seen& seen) {
  if (json.empty()) return absl::OkStatus();
  if (std::exchange(seen.election, true)) {
    return Bad("leaderElection", absl::StrCat("is set in ", kFairleadKind, " too"));
  }
  dom::parser parser;
  dom::element value;
  if (parser.parse(json).get(value) != simdjson::SUCCESS) {
    return Bad("leaderElection", "cannot be read");
  }
  return ReadLeaderElection(value, "leaderElection", configuration.leader_election);
}

// Reads what it may say, of which nothing has an effect.
absl::Status CheckClientConnection(const std::string& json) {
  constexpr char kPath[] = "clientConnection";
  dom::parser parser;
  dom::element value;
  if (parser.parse(json).get(value) != simdjson::SUCCESS) return Bad(kPath, "cannot be read");
  std::string text;
  return ReadObject(value, kPath,
                    {{"kubeconfig", framework::IntoString(&text)},
                     {"acceptContentTypes", framework::IntoString(&text)},
                     {"contentType", framework::IntoString(&text)},
                     {"qps",
                      [](const dom::element& v, const std::string& path) {
                        return v.is_number() ? absl::OkStatus() : Bad(path, "must be a number");
                      }},
                     {"burst", [](const dom::element& v, const std::string& path) -> absl::Status {
                        int64_t burst = 0;
                        if (v.get(burst) != simdjson::SUCCESS)
                          return Bad(path, "must be a whole number");
                        return burst < 0 ? Bad(path, "must not be negative") : absl::OkStatus();
                      }}});
}

absl::Status ReadScheduler(const std::string& json, Configuration& configuration, Seen& seen) {
  if (std::exchange(seen.scheduler, true)) {
    return Bad("kind", absl::StrCat("the file has another ", kSchedulerKind));
  }
  const framework::Registry& registry = *configuration.options.plugins;
  FAIRLEAD_ASSIGN_OR_RETURN(framework::SchedulerConfiguration read,
                            framework::ReadSchedulerConfiguration(json, registry, seen.bases));
  // Plugin arguments are checked by the plugins.
  for (size_t i = 0; i < read.profiles.size(); ++i) {
    const auto made = framework::Framework::Make(read.profiles[i], registry);
    if (made.ok()) continue;
    return Bad(absl::StrCat("profiles[", i, "].pluginConfig"), made.status().message());
  }
  const bool explicit_profiles = json.find("\"profiles\"") != std::string::npos;
  if (explicit_profiles) {
    for (const framework::Profile& profile : read.profiles) {
      seen.profile_names.push_back(profile.scheduler_name);
    }
  }
  configuration.options.profiles = std::move(read.profiles);
  configuration.options.extenders = std::move(read.extenders);
  if (read.pod_backoff_initial.has_value() || read.pod_backoff_max.has_value()) {
    engine::EngineOptions& engine = configuration.options.engine;
    engine.bind_backoff_initial = read.pod_backoff_initial.value_or(engine.bind_backoff_initial);
    engine.bind_backoff_max = read.pod_backoff_max.value_or(
        std::max(engine.bind_backoff_initial, engine.bind_backoff_max));
  }
  FAIRLEAD_RETURN_IF_ERROR(ReadElectionJson(read.leader_election_json, configuration, seen));
  if (!read.client_connection_json.empty()) {
    FAIRLEAD_RETURN_IF_ERROR(CheckClientConnection(read.client_connection_json));
    read.ignored.push_back("clientConnection");
  }
  for (const std::string& path : read.ignored) {
    configuration.warnings.push_back(
        absl::StrCat(kSchedulerKind, ": ", path, " has no effect in Fairlead"));
  }
  return absl::OkStatus();
}

absl::Status ReadDocument(const std::string& json, Configuration& configuration, Seen& seen) {
  dom::parser parser;
  dom::element root;
  if (parser.parse(json).get(root) != simdjson::SUCCESS) return Bad("", "is not readable");
  if (!root.is_object()) return Bad("", "must be a mapping with apiVersion and kind");
  std::string_view version;
  std::string_view kind;
  if (root["kind"].get(kind) != simdjson::SUCCESS) return Bad("kind", "is missing");
  if (root["apiVersion"].get(version) != simdjson::SUCCESS) return Bad("apiVersion", "is missing");
  if (ToAbsl(kind) == kFairleadKind) {
    if (ToAbsl(version) != kFairleadVersion) {
      return Bad("apiVersion", absl::StrCat("must be ", kFairleadVersion));
    }
    return ReadFairlead(root, configuration, seen);
  }
  if (ToAbsl(kind) == kSchedulerKind) {
    if (ToAbsl(version) != kSchedulerVersion) {
      return Bad("apiVersion", absl::StrCat("must be ", kSchedulerVersion));
    }
    return ReadScheduler(json, configuration, seen);
  }
  return Bad("kind", absl::StrCat("must be ", kSchedulerKind, " or ", kFairleadKind));
}

// Empty if it cannot be read.
std::string KindOf(const std::string& json) {
  dom::parser parser;
  dom::element root;
  std::string_view kind;
  if (parser.parse(json).get(root) != simdjson::SUCCESS) return "";
  return root["kind"].get(kind) == simdjson::SUCCESS ? std::string(kind) : "";
}

// The path at the start of a message, in the format of framework::ReadSchedulerConfiguration.
std::string LeadingPath(absl::string_view message) {
  const std::vector<std::string> parts = absl::StrSplit(message, absl::MaxSplits(": ", 1));
  if (parts.size() < 2 || parts[0] == "document" || parts[0].find(' ') != std::string::npos) {
    return "";
  }
  return parts[0];
}

absl::Status WithPlace(const absl::Status& error, size_t document) {
  absl::Status placed = error;
  placed.SetPayload(kPlacePayload,
                    absl::Cord(absl::StrCat(document, " ", LeadingPath(error.message()))));
  return placed;
}

// The scheduler names of profiles that no guest has; those of before if there are none.
std::vector<std::string> OwnOf(const Seen& seen, const state::StateOptions& state) {
  std::vector<std::string> own;
  for (const std::string& name : seen.profile_names) {
    const std::vector<std::string>& guests = state.guest_schedulers;
    if (std::find(guests.begin(), guests.end(), name) == guests.end()) own.push_back(name);
  }
  return own.empty() ? state.scheduler_names : own;
}

}  // namespace

void SetSchedulerNames(std::vector<std::string> own, state::StateOptions& state) {
  state.scheduler_names = std::move(own);
  for (const std::string& guest : state.guest_schedulers) state.scheduler_names.push_back(guest);
}

Options OptionsWithoutHook() {
  Options options = KwokOptions();
  options.hook.enabled = false;
  options.hook.provider.clear();
  return options;
}

absl::StatusOr<Configuration> ReadConfiguration(const std::vector<std::string>& documents,
                                                const framework::RegistryPtr& plugins) {
  Configuration configuration;
  configuration.options.plugins = plugins;
  configuration.options.documents = documents;
  Seen seen;
  size_t scheduler_document = 0;
  // What FairleadConfiguration says of profiles decides how they are read.
  std::vector<size_t> order(documents.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_partition(order.begin(), order.end(),
                        [&](size_t i) { return KindOf(documents[i]) != kSchedulerKind; });
  for (const size_t i : order) {
    if (documents[i] == "null") continue;
    const bool had_scheduler = seen.scheduler, had_fairlead = seen.fairlead;
    if (absl::Status read = ReadDocument(documents[i], configuration, seen); !read.ok()) {
      return WithPlace(read, i);
    }
    if (seen.scheduler && !had_scheduler) scheduler_document = i;
    if (seen.fairlead && !had_fairlead) seen.fairlead_document = i;
  }
  const state::StateOptions& state = configuration.options.state;
  std::vector<std::string> own = seen.names ? state.scheduler_names : OwnOf(seen, state);
  for (size_t i = 0; i < state.guest_schedulers.size(); ++i) {
    const std::string& guest = state.guest_schedulers[i];
    if (std::find(own.begin(), own.end(), guest) == own.end()) continue;
    return WithPlace(Bad(absl::StrCat("guests.schedulerNames[", i, "]"),
                         absl::StrCat("\"", guest, "\" is among schedulerNames, too")),
                     seen.fairlead_document);
  }
  SetSchedulerNames(std::move(own), configuration.options.state);
  const std::vector<std::string>& names = state.scheduler_names;
  for (size_t i = 0; i < seen.profile_names.size(); ++i) {
    if (std::find(names.begin(), names.end(), seen.profile_names[i]) != names.end()) continue;
    return WithPlace(
        Bad(absl::StrCat("profiles[", i, "].schedulerName"),
            absl::StrCat("\"", seen.profile_names[i], "\" is not among schedulerNames (",
                         absl::StrJoin(names, ", "), ") of ", kFairleadKind)),
        scheduler_document);
  }
  // Next to the lease, which the same rights permit.
  configuration.options.usage_store.ns = configuration.leader_election.ns;
  if (configuration.options.shard.has_value()) {
    FAIRLEAD_RETURN_IF_ERROR(WithPlace(CheckShard(configuration.options), seen.fairlead_document));
  }
  SetShard(configuration.options.shard, configuration.leader_election.name, configuration.options);
  return configuration;
}

std::optional<FieldPlace> FieldPlaceOf(const absl::Status& error) {
  const absl::optional<absl::Cord> payload = error.GetPayload(kPlacePayload);
  if (!payload.has_value()) return std::nullopt;
  const std::string text(*payload);
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits(' ', 1));
  FieldPlace place;
  if (!absl::SimpleAtoi(parts.first, &place.document)) return std::nullopt;
  place.path = parts.second;
  return place;
}

}  // namespace fairlead::core
