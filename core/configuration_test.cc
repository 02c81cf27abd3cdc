#include "core/configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace fairlead::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;

std::string Fairlead(absl::string_view fields) {
  return absl::StrCat(
      R"({"apiVersion":"config.fairlead.dev/v1alpha1","kind":"FairleadConfiguration")",
      fields.empty() ? "" : ",", fields, "}");
}
std::string Scheduler(absl::string_view fields) {
  return absl::StrCat(
      R"({"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"KubeSchedulerConfiguration")",
      fields.empty() ? "" : ",", fields, "}");
}

TEST(ConfigurationTest, NothingIsTheBuiltInConfiguration) {
  for (const std::vector<std::string>& documents :
       {std::vector<std::string>{}, {"null"}, {Fairlead("")}, {Scheduler("")}}) {
    absl::StatusOr<Configuration> read = ReadConfiguration(documents);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_THAT(read->options.state.scheduler_names, ElementsAre("fairlead", "kai-scheduler"));
    EXPECT_EQ(read->options.hook.cluster_gpu_limit, model::kUnlimited);
    EXPECT_TRUE(read->leader_election.enabled);
    EXPECT_EQ(read->leader_election.name, "fairlead");
    EXPECT_EQ(read->leader_election.ns, "fairlead") << "the lease of manifests/";
    EXPECT_FALSE(read->options.hook.enabled) << "nothing is bought unless a provider is named";
    EXPECT_EQ(read->options.hook.provider, "");
    EXPECT_EQ(read->metrics_bind_address, "");
  }
}

TEST(ConfigurationTest, AProviderIsNeverChosenByDefault) {
  const auto read = [](absl::string_view hook) {
    return ReadConfiguration({Fairlead(absl::StrCat(R"("hook":)", hook))});
  };
  const auto error = [&](absl::string_view hook) {
    return std::string(read(hook).status().message());
  };
  EXPECT_FALSE(read("{}")->options.hook.enabled);
  EXPECT_FALSE(read(R"({"clusterGPULimit":8})")->options.hook.enabled);
  EXPECT_TRUE(read(R"({"provider":"kwok"})")->options.hook.enabled);
  EXPECT_TRUE(read(R"({"enabled":true,"provider":"kwok"})")->options.hook.enabled);
  EXPECT_FALSE(read(R"({"enabled":false,"provider":"kwok"})")->options.hook.enabled);
  EXPECT_EQ(error(R"({"enabled":true})"),
            "hook.provider: must be set if the hook is enabled; known providers: kwok, karpenter, "
            "externalgrpc, cluster-api, scale-subresource, provisioning-request");
  EXPECT_EQ(error(R"({"provider":"aws"})"),
            "hook.provider: \"aws\" is not a known provider; known providers: kwok, karpenter, "
            "externalgrpc, cluster-api, scale-subresource, provisioning-request");
  EXPECT_EQ(error(R"({"enabled":false,"provider":"aws"})"),
            "hook.provider: \"aws\" is not a known provider; known providers: kwok, karpenter, "
            "externalgrpc, cluster-api, scale-subresource, provisioning-request");
}

TEST(ConfigurationTest, StalenessAndTheLeasesMarginHaveBounds) {
  EXPECT_EQ(ReadConfiguration({Fairlead(R"("staleAfter":"90s")")})->stale_after, absl::Seconds(90));
  EXPECT_THAT(std::string(ReadConfiguration({Fairlead(R"("staleAfter":"1s")")}).status().message()),
              HasSubstr("staleAfter: must be at least 5s"));
  EXPECT_THAT(
      std::string(
          ReadConfiguration(
              {Fairlead(R"("leaderElection":{"leaseDuration":"11s","renewDeadline":"10500ms"})")})
              .status()
              .message()),
      HasSubstr("leaderElection.leaseDuration: must be at least 1s more than renewDeadline"));
}

// NodePools may name the providers that are configured, and no others.
TEST(ConfigurationTest, ProvidersThatAreConfigured) {
  const auto known = [](const std::string& fields) {
    const absl::StatusOr<Configuration> read = ReadConfiguration({Fairlead(fields)});
    EXPECT_TRUE(read.ok()) << read.status();
    return read.ok() ? read->options.hook.known_providers : std::vector<std::string>();
  };
  EXPECT_THAT(known(R"("hook":{"provider":"kwok"})"), ElementsAre("kwok"));
  EXPECT_THAT(known(R"("hook":{"provider":"karpenter"})"), ElementsAre("karpenter"));
  EXPECT_THAT(known(R"("hook":{"provider":"karpenter"},"kwok":{})"),
              ElementsAre("kwok", "karpenter"));
  EXPECT_THAT(known(R"("kwok":{},"hook":{"provider":"karpenter"})"),
              ElementsAre("kwok", "karpenter"));
  EXPECT_THAT(
      ReadConfiguration({Fairlead(R"("hook":{"provider":"aws"})")}).status().message(),
      HasSubstr(R"("aws" is not a known provider; known providers: kwok, karpenter, externalgrpc, )"
                "cluster-api, scale-subresource, provisioning-request"));
  EXPECT_THAT(ReadConfiguration({Fairlead(R"("karpenter":{"nodeClassRef":{"kind":"k"}})")})
                  .status()
                  .message(),
              HasSubstr("karpenter.nodeClassRef.group: must be set"));
  EXPECT_THAT(
      ReadConfiguration({Fairlead(R"("hook":{"provider":"externalgrpc"})")}).status().message(),
      HasSubstr("externalgrpc.address: must be set, because hook.provider is externalgrpc"));
  EXPECT_THAT(ReadConfiguration({Fairlead(R"("externalgrpc":{"address":"a:1","timeout":"0s"})")})
                  .status()
                  .message(),
              HasSubstr("externalgrpc.timeout: must be more than zero"));
}

TEST(ConfigurationTest, EveryFieldReachesItsOption) {
  absl::StatusOr<Configuration> read = ReadConfiguration({Fairlead(R"(
      "schedulerNames":["a","b"], "defaultQueue":"misc",
      "actions":{"reclaim":false,"preempt":false}, "reclaimRounding":"nearest",
      "consolidationMinRuntime":"90s",
      "jobOrder":{"durationWeight":100,"assumedDuration":"3h"},
      "hook":{"enabled":false,"provider":"kwok","catalogFile":"c.yaml","clusterGPULimit":64,
        "gpuLimits":{"A100":8},"costLimitPerHour":"12.50","unneededAfter":"1m",
        "launchTimeout":"2m","readyTimeout":"3m","backoffInitial":"4s","backoffMax":"5m",
        "expectedBoot":"6m","consolidationPolicy":"WhenEmptyOrUnderutilized",
        "consolidationHorizon":"2h","minimumLifetime":"7m","billingPeriod":"1h",
        "removalsPerMinute":11,"maxNewRequestsPerStep":7,"provisioningBurst":5,
        "provisioningPerMinute":4,"totalProvisioningBurst":9,"totalProvisioningPerMinute":8},
      "gpuSharing":{"enabled":false,"namespace":"res","image":"i:1","command":["c","d"],
        "serviceAccountName":"sa","runtimeClassName":"nvidia","indexTimeout":"11s",
        "idleGracePeriod":"12s"},
      "gangReservations":{"enabled":true,"reserveAfter":"7m","minGPUs":8,"maxReservations":3},
      "kwok":{"bootDelay":"8s","outOfStockFile":"f"},
      "karpenter":{"nodeClassRef":{"group":"g","kind":"k","name":"n"}},
      "externalgrpc":{"address":"a:1","caFile":"c","certFile":"d","keyFile":"k","serverName":"s",
        "timeout":"6s"}, "gangBindingGrace":"9s","podGroupSettle":"3s", "events":false,"kaiStatus":true,
      "leaderElection":{"leaderElect":false,"leaseDuration":"30s","renewDeadline":"20s",
        "retryPeriod":"5s","resourceName":"n","resourceNamespace":"ns"})")});
  ASSERT_TRUE(read.ok()) << read.status();
  const Options& options = read->options;
  EXPECT_THAT(options.state.scheduler_names, ElementsAre("a", "b"));
  EXPECT_EQ(options.state.default_queue, "misc");
  EXPECT_EQ(options.hook.guard.burst, 5);
  EXPECT_EQ(options.hook.guard.per_minute, 4);
  EXPECT_EQ(options.hook.guard.total_burst, 9);
  EXPECT_EQ(options.hook.guard.total_per_minute, 8);
  EXPECT_FALSE(options.engine.reclaim);
  EXPECT_FALSE(options.engine.preempt);
  EXPECT_TRUE(options.engine.round_to_gang);
  EXPECT_EQ(options.engine.consolidation_min_runtime, absl::Seconds(90));
  EXPECT_EQ(options.state.job_order.duration_weight, 100);
  EXPECT_EQ(options.state.job_order.assumed_duration, absl::Hours(3));
  EXPECT_FALSE(options.state.place_gpu_shares);
  EXPECT_EQ(options.state.reservation_namespace, "res");
  EXPECT_EQ(options.gpu_sharing.image, "i:1");
  EXPECT_THAT(options.gpu_sharing.command, ElementsAre("c", "d"));
  EXPECT_EQ(options.gpu_sharing.service_account, "sa");
  EXPECT_EQ(options.gpu_sharing.runtime_class, "nvidia");
  EXPECT_EQ(options.gpu_sharing.index_timeout, absl::Seconds(11));
  EXPECT_EQ(options.gpu_sharing.idle_grace, absl::Seconds(12));
  EXPECT_TRUE(options.engine.reservations.on);
  EXPECT_EQ(options.engine.reservations.reserve_after, absl::Minutes(7));
  EXPECT_EQ(options.engine.reservations.reserve_min_devices, 8);
  EXPECT_EQ(options.engine.reservations.max_reservations, 3);
  EXPECT_FALSE(options.hook.enabled);
  EXPECT_EQ(options.hook.provider, "kwok");
  EXPECT_EQ(read->catalog_file, "c.yaml");
  EXPECT_EQ(read->karpenter_node_class, (model::NodeClassRef{"g", "k", "n"}));
  EXPECT_EQ(read->external_grpc,
            (CloudServerSettings{"a:1", "c", "d", "k", "s", absl::Seconds(6)}));
  EXPECT_THAT(options.hook.known_providers, ElementsAre("kwok", "karpenter", "externalgrpc"));
  EXPECT_EQ(options.hook.cluster_gpu_limit, 64);
  EXPECT_EQ(options.hook.gpu_limit_by_model.at("A100"), 8);
  EXPECT_EQ(options.hook.cost_limit_micro_usd_per_hour, 12'500'000);
  EXPECT_EQ(options.hook.unneeded_after, absl::Minutes(1));
  EXPECT_EQ(options.hook.launch_timeout, absl::Minutes(2));
  EXPECT_EQ(options.hook.ready_timeout, absl::Minutes(3));
  EXPECT_EQ(options.hook.backoff_initial, absl::Seconds(4));
  EXPECT_EQ(options.hook.backoff_max, absl::Minutes(5));
  EXPECT_EQ(options.hook.expected_boot, absl::Minutes(6));
  EXPECT_EQ(options.hook.disruption.consolidation,
            model::ConsolidationPolicy::kWhenEmptyOrUnderutilized);
  EXPECT_EQ(options.hook.consolidation_horizon, absl::Hours(2));
  EXPECT_EQ(options.hook.minimum_lifetime, absl::Minutes(7));
  EXPECT_EQ(options.hook.billing_period, absl::Hours(1));
  EXPECT_EQ(options.hook.removals_per_minute, 11);
  EXPECT_EQ(options.hook.max_new_requests_per_step, 7);
  EXPECT_EQ(read->kwok_boot_delay, absl::Seconds(8));
  EXPECT_EQ(read->kwok_out_of_stock_file, "f");
  EXPECT_EQ(options.gang_refusals.grace, absl::Seconds(9));
  EXPECT_EQ(options.group_settle.wait, absl::Seconds(3));
  EXPECT_FALSE(options.emit_events);
  EXPECT_TRUE(options.kai_status);
  EXPECT_FALSE(read->leader_election.enabled);
  EXPECT_EQ(read->leader_election.times.lease_duration, absl::Seconds(30));
  EXPECT_EQ(read->leader_election.times.renew_deadline, absl::Seconds(20));
  EXPECT_EQ(read->leader_election.times.retry_period, absl::Seconds(5));
  EXPECT_EQ(read->leader_election.name, "n");
  EXPECT_EQ(read->leader_election.ns, "ns");
}

TEST(ConfigurationTest, ErrorsNameDocumentAndPath) {
  struct Case {
    std::vector<std::string> documents;
    size_t document;
    std::string path, message;
  };
  const std::vector<Case> cases = {
      {{"[]"}, 0, "", "must be a mapping"},
      {{R"({"kind":"FairleadConfiguration"})"}, 0, "apiVersion", "missing"},
      {{R"({"apiVersion":"v1","kind":"ConfigMap"})"}, 0, "kind", "must be Kube"},
      {{R"({"apiVersion":"v1","kind":"FairleadConfiguration"})"}, 0, "apiVersion", "must be"},
      {{Fairlead(R"("hok":{})")}, 0, "hok", "not a known field"},
      {{"null", Fairlead(R"("hook":{"gpuLimit":{}})")}, 1, "hook.gpuLimit", "not a known field"},
      {{Fairlead(R"("hook":[])")}, 0, "hook", "must be a mapping"},
      {{Fairlead(R"("gpuSharing":{"indexTimeout":"0s"})")}, 0, "gpuSharing.indexTimeout", "more"},
      {{Fairlead(R"("guests":{"bindTimeout":"1ms"})")}, 0, "guests.bindTimeout", "at least 1s"},
      {{Fairlead(R"("guests":{"names":["a"]})")}, 0, "guests.names", "not a known field"},
      {{"null", Fairlead(R"("guests":{"schedulerNames":["g","fairlead"]})")},
       1,
       "guests.schedulerNames[1]",
       "among schedulerNames, too"},
      {{Fairlead(R"("schedulerNames":["x"],"guests":{"schedulerNames":["x"]})")},
       0,
       "guests.schedulerNames[0]",
       "among schedulerNames, too"},
      {{Fairlead(R"("remotePlugins":[{"address":"h:1"}])")},
       0,
       "remotePlugins[0]",
       "name is missing"},
      {{Fairlead(R"("remotePlugins":[{"name":"A"}])")},
       0,
       "remotePlugins[0]",
       "address is missing"},
      {{Fairlead(R"("remotePlugins":[{"name":"A","address":"h:1","timeout":"0s"}])")},
       0,
       "remotePlugins[0].timeout",
       "must be more than zero"},
      {{Fairlead(R"("remotePlugins":[{"name":"A","address":"h:1","podLabels":["a b"]}])")},
       0,
       "remotePlugins[0].podLabels",
       "is no key of a label"},
      {{Fairlead(R"("remotePlugins":[{"name":"NodePorts","address":"h:1"}])")},
       0,
       "remotePlugins[0].name",
       "is a plugin of kube-scheduler"},
      {{Fairlead(R"("remotePlugins":[{"name":"GpuSharing","address":"h:1"}])")},
       0,
       "remotePlugins[0].name",
       "registered twice"},
      {{Fairlead(R"("remotePlugins":[{"name":"A","address":"h:1"},{"name":"A","address":"h:2"}])")},
       0,
       "remotePlugins[1].name",
       "registered twice"},
      {{Fairlead(R"("hook":{"enabled":"yes"})")}, 0, "hook.enabled", "true or false"},
      {{Fairlead(R"("hook":{"enabled":true,"enabled":true})")}, 0, "hook.enabled", "twice"},
      {{Fairlead(R"("hook":{"clusterGPULimit":-1})")}, 0, "hook.clusterGPULimit", "whole number"},
      {{Fairlead(R"("hook":{"clusterGPULimit":1.5})")}, 0, "hook.clusterGPULimit", "whole number"},
      {{Fairlead(R"("hook":{"gpuLimits":{"H100.x":"8"}})")}, 0, "hook.gpuLimits.H100.x", "whole"},
      {{Fairlead(R"("hook":{"costLimitPerHour":12.5})")}, 0, "hook.costLimitPerHour", "quoted"},
      {{Fairlead(R"("hook":{"costLimitPerHour":"-1"})")}, 0, "hook.costLimitPerHour", "dollars"},
      {{Fairlead(R"("hook":{"unneededAfter":300})")}, 0, "hook.unneededAfter", "duration"},
      {{Fairlead(R"("hook":{"unneededAfter":"-5m"})")}, 0, "hook.unneededAfter", "duration"},
      {{Fairlead(R"("hook":{"unneededAfter":"inf"})")}, 0, "hook.unneededAfter", "duration"},
      {{Fairlead(R"("hook":{"overQuota":"Buy"})")},
       0,
       "hook.overQuota",
       "must be Evict, BuyNodes or Weigh"},
      {{Fairlead(R"("hook":{"consolidationPolicy":"Always"})")},
       0,
       "hook.consolidationPolicy",
       "must be WhenEmpty or WhenEmptyOrUnderutilized"},
      {{Fairlead(R"("hook":{"removalsPerMinute":0})")}, 0, "hook.removalsPerMinute", "1"},
      {{Fairlead(R"("hook":{"launchTimeout":"0s"})")}, 0, "hook.launchTimeout", "more than zero"},
      {{Fairlead(R"("hook":{"backoffMax":"1s"})")}, 0, "hook.backoffMax", "less than"},
      {{Fairlead(R"("staleAfter":"2m","hook":{"provider":"kwok","readyTimeout":"149s"})")},
       0,
       "hook.readyTimeout",
       "at least staleAfter and 30s: 2m30s"},
      {{Fairlead(R"("reclaimRounding":"up")")},
       0,
       "reclaimRounding",
       "'up' is not nearest or down"},
      {{Fairlead(R"("jobOrder":{"durationWeight":1001})")},
       0,
       "jobOrder.durationWeight",
       "must be at most 1000"},
      {{Fairlead(R"("jobOrder":{"assumedDuration":"-1h"})")},
       0,
       "jobOrder.assumedDuration",
       "must be a duration"},
      {{Fairlead(R"("reclaimRounding":true)")}, 0, "reclaimRounding", "must be a string"},
      {{Fairlead(R"("schedulerNames":[])")}, 0, "schedulerNames", "at least one"},
      {{Fairlead(R"("schedulerNames":["a","a"])")}, 0, "schedulerNames[1]", "twice"},
      {{Fairlead(R"("schedulerNames":["a",""])")}, 0, "schedulerNames[1]", "empty"},
      {{Fairlead(R"("schedulerNames":[" "])")}, 0, "schedulerNames[0]", "empty"},
      {{Fairlead(R"("leaderElection":{"resourceLock":"endpoints"})")},
       0,
       "leaderElection.resourceLock",
       "leases"},
      {{Fairlead(R"("leaderElection":{"leaseDuration":"5s"})")},
       0,
       "leaderElection.leaseDuration",
       "more than renewDeadline"},
      {{Fairlead(R"("leaderElection":{"leaseDuration":"15500ms"})")},
       0,
       "leaderElection.leaseDuration",
       "whole seconds"},
      {{Fairlead(""), Fairlead("")}, 1, "kind", "another"},
      {{Scheduler(""), Scheduler("")}, 1, "kind", "another"},
      {{Scheduler(R"("leaderElection":{})"), Fairlead(R"("leaderElection":{})")},
       0,
       "leaderElection",
       "too"},
      {{Scheduler(R"("leaderElection":{"retryPeriod":"x"})")},
       0,
       "leaderElection.retryPeriod",
       "duration"},
      {{Scheduler(R"("profils":[])")}, 0, "profils", "not a known field"},
      {{Fairlead(R"("schedulerNames":["x"])"), Scheduler(R"("profiles":[{"schedulerName":"y"}])")},
       1,
       "profiles[0].schedulerName",
       "not among schedulerNames (x)"},
  };
  for (const Case& c : cases) {
    absl::StatusOr<Configuration> read = ReadConfiguration(c.documents);
    ASSERT_FALSE(read.ok()) << c.path;
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << read.status();
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(c.message));
    const std::optional<FieldPlace> place = FieldPlaceOf(read.status());
    ASSERT_TRUE(place.has_value()) << read.status();
    EXPECT_EQ(place->document, c.document) << read.status();
    EXPECT_EQ(place->path, c.path) << read.status();
  }
}

TEST(ConfigurationTest, ProfilesGiveTheNamesUnlessFairleadDoes) {
  const std::string two = Scheduler(R"("profiles":[{"schedulerName":"x"},{"schedulerName":"y"}])");
  absl::StatusOr<Configuration> read = ReadConfiguration({two});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->options.state.scheduler_names, ElementsAre("x", "y"));

  read = ReadConfiguration({two, Fairlead(R"("schedulerNames":["x","y","z"])")});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->options.state.scheduler_names, ElementsAre("x", "y", "z"));
}

TEST(ConfigurationTest, GuestsAreSchedulerNamesToo) {
  absl::StatusOr<Configuration> read = ReadConfiguration(
      {Fairlead(R"("guests":{"schedulerNames":["g"],"bindTimeout":"5s","bindAddress":":1"})")});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->options.state.scheduler_names, ElementsAre("fairlead", "kai-scheduler", "g"));
  EXPECT_THAT(read->options.state.guest_schedulers, ElementsAre("g"));
  EXPECT_EQ(read->options.guest_bind_timeout, absl::Seconds(5));
  EXPECT_EQ(read->guests_bind_address, ":1");
  // A profile of a guest says how its pods are placed, and takes nothing from the others.
  read = ReadConfiguration({Fairlead(R"("guests":{"schedulerNames":["g"]})"),
                            Scheduler(R"("profiles":[{"schedulerName":"g"}])")});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->options.state.scheduler_names, ElementsAre("fairlead", "kai-scheduler", "g"));
}

TEST(ConfigurationTest, ProfilesMayDiffer) {
  const std::string two = Scheduler(
      R"("profiles":[{"schedulerName":"fairlead"},{"schedulerName":"y","plugins":{"multiPoint":
         {"disabled":[{"name":"NodePorts"}]}}}])");
  absl::StatusOr<Configuration> read = ReadConfiguration({two});
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->options.profiles.size(), 2u);
  EXPECT_FALSE(read->options.profiles[0].idle_first);
  EXPECT_TRUE(read->options.profiles[1].idle_first);
  const state::StateOptions state = StateOptionsFor(read->options);
  EXPECT_THAT(state.profiles, ElementsAre(Pair("fairlead", 0), Pair("y", 1)));
  EXPECT_TRUE(state.keep_images);
  EXPECT_TRUE(state.sum_scoring_requests);
  ASSERT_EQ(state.spread_defaults.size(), 2u);
  EXPECT_TRUE(state.spread_defaults[0].constraints.empty());
  EXPECT_EQ(state.spread_defaults[1].constraints.size(), 2u);

  // The other document comes first or last.
  for (const bool first : {false, true}) {
    std::vector<std::string> documents = {two, Fairlead(R"("defaultPlugins":{"y":"Fairlead"})")};
    if (first) std::swap(documents[0], documents[1]);
    read = ReadConfiguration(documents);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_FALSE(read->options.profiles[1].idle_first);
    EXPECT_FALSE(StateOptionsFor(read->options).keep_images);
    EXPECT_FALSE(StateOptionsFor(read->options).sum_scoring_requests);
    EXPECT_TRUE(StateOptionsFor(read->options).spread_defaults.empty());
  }
  read = ReadConfiguration({Fairlead(R"("defaultPlugins":{"y":"KAI"})")});
  EXPECT_EQ(FieldPlaceOf(read.status())->path, "defaultPlugins.y");
}

TEST(ConfigurationTest, PausesOfPodsAreThoseAfterFailedBindings) {
  struct Case {
    const char* fields;
    int64_t initial, max;
  };
  for (const Case& c : {Case{R"("parallelism":16)", 1, 60},
                        {R"("podInitialBackoffSeconds":2,"podMaxBackoffSeconds":5)", 2, 5},
                        {R"("podMaxBackoffSeconds":30)", 1, 30},
                        {R"("podInitialBackoffSeconds":7)", 7, 60}}) {
    const auto read = ReadConfiguration({Scheduler(c.fields)});
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->options.engine.bind_backoff_initial, absl::Seconds(c.initial)) << c.fields;
    EXPECT_EQ(read->options.engine.bind_backoff_max, absl::Seconds(c.max)) << c.fields;
  }
}

TEST(ConfigurationTest, FieldsWithoutEffectAreWarnedOf) {
  absl::StatusOr<Configuration> read =
      ReadConfiguration({Scheduler(R"("parallelism":4,"clientConnection":{"qps":5})")});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->warnings, ElementsAre(HasSubstr("parallelism"), HasSubstr("clientConnection")));
}

TEST(ConfigurationTest, FieldsWithoutEffectAreCheckedAllTheSame) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("nonsense":3)", "clientConnection.nonsense"},
      {R"("burst":-1)", "clientConnection.burst: must not be negative"},
      {R"("burst":1.5)", "clientConnection.burst: must be a whole number"},
      {R"("qps":"x")", "clientConnection.qps: must be a number"}};
  for (const auto& [field, want] : cases) {
    const auto read =
        ReadConfiguration({Scheduler(absl::StrCat(R"("clientConnection":{)", field, "}"))});
    EXPECT_THAT(std::string(read.status().message()), StartsWith(want)) << field;
  }
}

// As upstream, which checks nothing else then.
TEST(ConfigurationTest, AnElectionThatIsOffMaySayAnything) {
  const auto read = ReadConfiguration(
      {Scheduler(R"("leaderElection":{"leaderElect":false,"resourceLock":"endpoints",)"
                 R"("leaseDuration":"1s"})")});
  EXPECT_TRUE(read.ok()) << read.status();
}

// The place is that of the argument, whichever plugin reads it.
TEST(ConfigurationTest, AWrongArgumentHasItsPlace) {
  const auto read = ReadConfiguration(
      {Scheduler(R"("profiles":[{"pluginConfig":[{"name":"NodeAffinity"},{"name":)"
                 R"("NodeResourcesFit","args":{"scoringStrategy":{"typ":"x"}}}]}])")});
  ASSERT_FALSE(read.ok());
  ASSERT_TRUE(FieldPlaceOf(read.status()).has_value());
  EXPECT_EQ(FieldPlaceOf(read.status())->path,
            "profiles[0].pluginConfig[1].args.scoringStrategy.typ");
}

TEST(ConfigurationTest, OtherErrorsHaveNoPlace) {
  EXPECT_FALSE(FieldPlaceOf(absl::InvalidArgumentError("a: b")).has_value());
}

TEST(ConfigurationTest, AdmissionAsksAboutRightsIfItIsConfigured) {
  const auto read = [](absl::string_view fields) {
    return ReadConfiguration({Fairlead(absl::StrCat(R"("admission":)", fields))});
  };
  EXPECT_EQ(ReadConfiguration({})->admission, AdmissionSettings());
  EXPECT_EQ(read("{}")->admission, AdmissionSettings());
  EXPECT_TRUE(read(R"({"queueAuthorization":true})")->admission.queue_authorization);
  EXPECT_TRUE(
      read(R"({"authorizationFailurePolicy":"Fail"})")->admission.authorization_fails_closed);
  EXPECT_FALSE(
      read(R"({"authorizationFailurePolicy":"Ignore"})")->admission.authorization_fails_closed);
  EXPECT_EQ(read(R"({"authorizationFailurePolicy":"Open"})").status().message(),
            "admission.authorizationFailurePolicy: 'Open' is not Ignore or Fail");
  EXPECT_THAT(std::string(read(R"({"queueAuthorization":1})").status().message()),
              StartsWith("admission.queueAuthorization: "));
}

TEST(ConfigurationTest, ReclaimRoundsDownUnlessItIsConfigured) {
  for (const char* fields : {"", R"("reclaimRounding":null)", R"("reclaimRounding":"down")"}) {
    const auto read = ReadConfiguration({Fairlead(fields)});
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_FALSE(read->options.engine.round_to_gang) << fields;
  }
}

TEST(ConfigurationTest, HistoryIsOffUnlessItIsConfigured) {
  EXPECT_FALSE(ReadConfiguration({Fairlead("")})->options.engine.usage.has_value());
  EXPECT_FALSE(ReadConfiguration({Fairlead(R"("usage":{"enabled":false,"windowSize":"24h"})")})
                   ->options.engine.usage.has_value());
  const auto defaults = ReadConfiguration({Fairlead(R"("usage":{})")});
  ASSERT_TRUE(defaults.ok()) << defaults.status();
  ASSERT_TRUE(defaults->options.engine.usage.has_value());
  EXPECT_EQ(defaults->options.engine.usage->window, absl::Hours(7 * 24));
  EXPECT_EQ(defaults->options.engine.k_micro, 1'000'000);
}

TEST(ConfigurationTest, EveryFieldOfUsageReachesItsOption) {
  const auto read = ReadConfiguration({Fairlead(R"("builtinDefaultQueue":false,"usage":{
      "kValue":"0.5","halfLifePeriod":"12h","windowSize":"48h","windowType":"tumbling",
      "tumblingWindowStartTime":"2026-01-05T00:00:00Z","fetchInterval":"30s",
      "stalenessPeriod":"10m"})")});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->options.builtin_default_queue);
  EXPECT_EQ(read->options.engine.k_micro, 500'000);
  const queues::UsageOptions& usage = *read->options.engine.usage;
  EXPECT_EQ(usage.half_life, absl::Hours(12));
  EXPECT_EQ(usage.window, absl::Hours(48));
  EXPECT_EQ(usage.window_type, queues::WindowType::kTumbling);
  EXPECT_EQ(usage.tumbling_start,
            absl::FromCivil(absl::CivilSecond(2026, 1, 5), absl::UTCTimeZone()));
  EXPECT_EQ(usage.sample_interval, absl::Seconds(30));
  EXPECT_EQ(usage.staleness, absl::Minutes(10));
  const auto cron = ReadConfiguration(
      {Fairlead(R"("usage":{"windowType":"cron","cronString":"0 0 * * 1","kValue":3})")});
  ASSERT_TRUE(cron.ok()) << cron.status();
  EXPECT_EQ(cron->options.engine.usage->cron, "0 0 * * 1");
  EXPECT_EQ(cron->options.engine.k_micro, 3'000'000);
}

TEST(ConfigurationTest, UsageThatMakesNoSenseIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("usage":7)", "usage: must be a mapping"},
      {R"("usage":{"window":"1h"})", "usage.window: is not a known field"},
      {R"("usage":{"windowType":"round"})", "usage.windowType"},
      {R"("usage":{"windowType":"cron","cronString":"often"})", "usage"},
      {R"("usage":{"windowType":"cron"})", "usage"},
      {R"("usage":{"kValue":-1})", "usage.kValue"},
      {R"("usage":{"kValue":"1001"})", "usage.kValue"},
      {R"("usage":{"kValue":0.5})", "usage.kValue"},
      {R"("usage":{"windowSize":"1s"})", "windowSize"},
      {R"("usage":{"fetchInterval":"1h"})", "fetchInterval"},
      {R"("usage":{"tumblingWindowStartTime":"monday"})", "usage.tumblingWindowStartTime"},
      {R"("builtinDefaultQueue":"yes")", "builtinDefaultQueue: must be true or false"},
  };
  for (const auto& [fields, message] : cases) {
    const absl::Status status = ReadConfiguration({Fairlead(fields)}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << fields;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << fields;
  }
}

}  // namespace
}  // namespace fairlead::core
