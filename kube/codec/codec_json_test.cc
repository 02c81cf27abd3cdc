// The custom kinds.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "kube/codec/codec.h"
#include "kube/transport/http.h"

namespace fairlead::kube {
namespace {

template <typename T>
T Decode(model::Kind kind, absl::string_view json) {
  absl::StatusOr<Object> object = DecodeObject(kind, kJson, json);
  EXPECT_TRUE(object.ok()) << object.status() << json;
  return object.ok() ? std::get<T>(*object) : T();
}

model::Queue Queue(absl::string_view json) {
  return Decode<model::Queue>(model::Kind::kQueue, json);
}

TEST(QueueJsonTest, UnitsAreConverted) {
  const model::Queue queue = Queue(R"({
    "apiVersion":"scheduling.run.ai/v2","kind":"Queue","metadata":{"name":"team-a","uid":"u"},
    "spec":{"displayName":"Team A","parentQueue":"dept","priority":200,
      "preemptMinRuntime":"1h30m","reclaimMinRuntime":"90s",
      "resources":{
        "gpu":{"quota":0.7,"limit":-1,"overQuotaWeight":1.5,"lendingLimit":0.5},
        "cpu":{"quota":1500,"limit":2000},
        "memory":{"quota":1024.5},
        "other":{"example.com/widget":{"quota":3,"limit":"1k","lendingLimit":-1},
                 "ephemeral-storage":{"quota":"10Gi","limit":-1,"overQuotaWeight":2}}}}})");
  EXPECT_EQ(queue.invalid, "");
  EXPECT_EQ(queue.display_name, "Team A");
  EXPECT_EQ(queue.parent, "dept");
  EXPECT_EQ(queue.priority, 200);
  EXPECT_EQ(queue.preempt_min_runtime, absl::Minutes(90));
  EXPECT_EQ(queue.reclaim_min_runtime, absl::Seconds(90));
  EXPECT_EQ(queue.gpu, (model::QueueResource{700, model::kUnlimited, 1500000, 500}));
  EXPECT_EQ(queue.cpu, (model::QueueResource{1500, 2000, 0}));
  EXPECT_EQ(queue.memory, (model::QueueResource{1024500000, 0, 0}));
  ASSERT_EQ(queue.other.size(), 2u);
  EXPECT_EQ(queue.other[0].first, "ephemeral-storage");
  EXPECT_EQ(queue.other[0].second, (model::QueueResource{10737418240, model::kUnlimited, 2000000}));
  EXPECT_EQ(queue.other[1].second, (model::QueueResource{3, 1000, 0}));
}

TEST(QueueJsonTest, OmittedNumbersAreZeroAndDefaultsHold) {
  const model::Queue queue =
      Queue(R"({"metadata":{"name":"q"},"spec":{"priority":null,"resources":{}}})");
  EXPECT_EQ(queue.invalid, "");
  EXPECT_EQ(queue.priority, 100);
  EXPECT_EQ(queue.gpu, model::QueueResource());
  EXPECT_FALSE(queue.preempt_min_runtime.has_value());
}

TEST(QueueJsonTest, ExactDecimals) {
  struct Case {
    const char* token;
    int64_t milli;
  };
  for (const Case& c : {Case{"0.1", 100},
                        {"0.3", 300},
                        {"1e0", 1000},
                        {"0.0005", 1},
                        {"-1.0", -1},
                        {"9007199254740993", 9007199254740993000},
                        {"1e40", INT64_MAX}}) {
    const model::Queue queue =
        Queue(std::string(R"({"spec":{"resources":{"gpu":{"quota":)") + c.token + "}}}}");
    EXPECT_EQ(queue.invalid, "");
    EXPECT_EQ(queue.gpu.quota, c.milli) << c.token;
  }
}

TEST(QueueJsonTest, InvalidNamesFieldAndValue) {
  struct Case {
    const char *spec, *want;
  };
  const Case cases[] = {
      {"{}", "spec.resources: must be specified"},
      {R"({"resources":null})", "spec.resources: must be specified"},
      {R"({"resources":{"gpu":{"quota":-2}}})",
       "spec.resources.gpu.quota: \"-2\" must not be negative, -1 (unlimited) excepted"},
      {R"({"resources":{"gpu":{"limit":"4"}}})",
       "spec.resources.gpu.limit: must be a number, not a string"},
      {R"({"resources":{"cpu":{"overQuotaWeight":-0.5}}})",
       "spec.resources.cpu.overQuotaWeight: must not be negative"},
      {R"({"resources":{"other":{"x":{"quota":"many"}}}})",
       "spec.resources.other[x].quota: \"many\" is not an amount"},
      {R"({"resources":{},"preemptMinRuntime":"soon"})",
       "spec.preemptMinRuntime: \"soon\" is not a duration (like 90s or 1h30m)"},
      {R"({"resources":{},"reclaimMinRuntime":"inf"})",
       "spec.reclaimMinRuntime: \"inf\" is not a duration (like 90s or 1h30m)"},
      {R"({"resources":{},"priority":1.5})", "spec.priority: \"1.5\" is not an integer of 32 bits"},
      {R"({"resources":[]})", "spec.resources: must be an object, not a list"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Queue(std::string(R"({"spec":)") + c.spec + "}").invalid, c.want) << c.spec;
  }
  EXPECT_EQ(Queue(R"({"metadata":{"name":"q"}})").invalid, "spec.resources: must be specified");
}

TEST(QueueJsonTest, OneBadQueueLeavesTheListAlone) {
  absl::StatusOr<ListPage> page = DecodeList(model::Kind::kQueue, kJson, R"({"kind":"QueueList",
    "metadata":{"resourceVersion":"5","continue":""},
    "items":[{"metadata":{"name":"bad"},"spec":{"resources":7}},
             {"metadata":{"name":"good"},"spec":{"resources":{}}}]})");
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->items.size(), 2u);
  EXPECT_NE(std::get<model::Queue>(page->items[0]).invalid, "");
  EXPECT_EQ(std::get<model::Queue>(page->items[1]).invalid, "");
}

TEST(PodGroupJsonTest, AllFields) {
  const auto group = Decode<model::PodGroup>(model::Kind::kPodGroup, R"({
    "metadata":{"name":"pg","namespace":"ns"},
    "spec":{"minMember":3,"minSubGroup":2,"queue":"team-a","priorityClassName":"train",
      "preemptibility":"non-preemptible","markUnschedulable":false,"schedulingBackoff":1,
      "topologyConstraint":{"topology":"t","requiredTopologyLevel":"rack","preferredTopologyLevel":"host"},
      "preemptionDelay":"5m","stalenessGracePeriod":"-1s",
      "subGroups":[{"name":"a","minMember":1},
                   {"name":"b","parent":"a","minSubGroup":0,"topologyConstraint":{"topology":"t2"}},
                   {"name":"c","parent":null}]},
    "status":{"schedulability":{"hash":"abc","code":"QueueLimitReached"}}})");
  EXPECT_EQ(group.invalid, "");
  EXPECT_EQ(group.min_member, 3);
  EXPECT_EQ(group.min_sub_group, 2);
  EXPECT_EQ(group.queue, "team-a");
  EXPECT_EQ(group.priority_class_name, "train");
  EXPECT_EQ(group.preemptibility, model::Preemptibility::kNonPreemptible);
  EXPECT_FALSE(group.mark_unschedulable);
  EXPECT_EQ(group.scheduling_backoff, 1);
  EXPECT_EQ(group.topology, (model::TopologyConstraint{"t", "rack", "host"}));
  EXPECT_EQ(group.preemption_delay, absl::Minutes(5));
  EXPECT_EQ(group.staleness_grace_period, -absl::Seconds(1));
  ASSERT_EQ(group.sub_groups.size(), 3u);
  EXPECT_EQ(group.sub_groups[0], (model::SubGroup{"a", "", 1, std::nullopt, {}}));
  EXPECT_EQ(group.sub_groups[1], (model::SubGroup{"b", "a", std::nullopt, 0, {"t2", "", ""}}));
  EXPECT_EQ(group.schedulability_hash, "abc");
  const auto bare = Decode<model::PodGroup>(model::Kind::kPodGroup, R"({"spec":{}})");
  EXPECT_FALSE(bare.min_member.has_value());
  EXPECT_TRUE(bare.mark_unschedulable);
  EXPECT_EQ(bare.scheduling_backoff, -1);
}

TEST(PodGroupJsonTest, ABackoffThatKaiDoesNotKnowIsRefusedByName) {
  for (const char* value : {"-1", "1", "null"}) {
    const auto group = Decode<model::PodGroup>(
        model::Kind::kPodGroup, absl::StrCat(R"({"spec":{"schedulingBackoff":)", value, "}}"));
    EXPECT_EQ(group.invalid, "") << value;
  }
  for (const char* value : {"0", "2", "-2"}) {
    const auto group = Decode<model::PodGroup>(
        model::Kind::kPodGroup, absl::StrCat(R"({"spec":{"schedulingBackoff":)", value, "}}"));
    EXPECT_EQ(group.scheduling_backoff, -1) << value;
    EXPECT_EQ(group.invalid,
              absl::StrCat("spec.schedulingBackoff: ", value,
                           " is none of -1 (try for ever), 1 (stop after one failed attempt in a "
                           "node pool)"));
  }
}

TEST(PodGroupJsonTest, WhatASchedulingConditionSaysIsReadInBothForms) {
  const auto group = Decode<model::PodGroup>(model::Kind::kPodGroup, R"({
    "status": {"schedulingConditions": [
      {"reason": "Unschedulable", "message": "OverLimit: all of it.",
       "reasons": [{"message": "all of it", "reason": "OverLimit"}, {"reason": "second"}]},
      {"reason": "Unschedulable", "message": "old form"},
      {"reason": "Unschedulable", "message": "m", "reasons": []},
      {"reason": 7, "message": "m", "reasons": "none"}]},
    "spec": {"queue": "q"}})");
  EXPECT_EQ(group.invalid, "");
  EXPECT_EQ(group.queue, "q");
  std::vector<std::string> said;
  for (const auto& condition : group.scheduling_conditions) {
    said.push_back(absl::StrCat(condition.reason, "|", condition.message));
  }
  EXPECT_EQ(said, (std::vector<std::string>{"OverLimit|all of it", "Unschedulable|old form",
                                            "Unschedulable|m", "|m"}));
}

TEST(PodGroupJsonTest, SchedulingConditionsAreKeptAsTheyStand) {
  const auto group = Decode<model::PodGroup>(model::Kind::kPodGroup, R"({
    "status": {"schedulingConditions": [
      {"type": "UnschedulableOnNodePool", "nodePool": "a", "transitionID": "7",
       "reasons": [{"details": {"queueDetails": {"name": "q", "x": [1, {}]}}, "message": "a \"b\" ]}"}]} ,
      {"transitionID": 8, "nodePool": null}, {}, null],
     "schedulability": {"hash": "h"}},
    "spec": {"queue": "q"}})");
  EXPECT_EQ(group.invalid, "");
  EXPECT_EQ(group.queue, "q");
  EXPECT_EQ(group.schedulability_hash, "h");
  ASSERT_EQ(group.scheduling_conditions.size(), 4u);
  const model::SchedulingCondition& first = group.scheduling_conditions[0];
  EXPECT_EQ(first.node_pool, "a");
  EXPECT_EQ(first.transition_id, "7");
  EXPECT_TRUE(absl::StartsWith(first.json, R"({"type": "UnschedulableOnNodePool")")) << first.json;
  EXPECT_TRUE(absl::EndsWith(first.json, R"("a \"b\" ]}"}]})")) << first.json;
  EXPECT_EQ(group.scheduling_conditions[1].json, R"({"transitionID": 8, "nodePool": null})");
  EXPECT_EQ(group.scheduling_conditions[2].json, "{}");
  EXPECT_EQ(group.scheduling_conditions[3].json, "null");
}

TEST(QueueJsonTest, TheStatusIsReadAndItsFaultsHarmNothing) {
  const auto queue = Decode<model::Queue>(model::Kind::kQueue, R"({
    "spec": {"resources": {"gpu": {"quota": 1, "limit": -1}}},
    "status": {"childQueues": ["x"], "allocated": {"nvidia.com/gpu": "1500m", "cpu": "2", "memory": "1Gi"},
               "allocatedNonPreemptible": {"nvidia.com/gpu": 1, "cpu": "many"}, "requested": []}})");
  EXPECT_EQ(queue.invalid, "");
  ASSERT_TRUE(queue.status.has_value());
  EXPECT_EQ(model::Get(queue.status->allocated, model::kGpuName), 1500);
  EXPECT_EQ(model::Get(queue.status->allocated, "cpu"), 2000);
  EXPECT_EQ(model::Get(queue.status->allocated, "memory"), int64_t{1} << 30);
  EXPECT_EQ(model::Get(queue.status->allocated_non_preemptible, model::kGpuName), 1000);
  EXPECT_TRUE(queue.status->requested.empty());
  EXPECT_FALSE(Decode<model::Queue>(model::Kind::kQueue, R"({"spec":{"resources":{}},"status":{}})")
                   .status.has_value());
}

TEST(PodGroupJsonTest, Invalid) {
  struct Case {
    const char *spec, *want;
  };
  const Case cases[] = {
      {R"({"minMember":-1})", "spec.minMember: -1 must not be negative"},
      {R"({"preemptibility":"maybe"})",
       "spec.preemptibility: \"maybe\" is none of preemptible, non-preemptible"},
  };
  for (const Case& c : cases) {
    const auto group =
        Decode<model::PodGroup>(model::Kind::kPodGroup, std::string(R"({"spec":)") + c.spec + "}");
    EXPECT_EQ(group.invalid, c.want) << c.spec;
  }
}

TEST(TopologyJsonTest, LevelsAndTheirRules) {
  const auto topology = Decode<model::Topology>(model::Kind::kTopology, R"({"spec":{"levels":[
    {"nodeLabel":"example.com/rack","alias":"rack"},{"nodeLabel":"kubernetes.io/hostname"}]}})");
  EXPECT_EQ(topology.invalid, "");
  ASSERT_EQ(topology.levels.size(), 2u);
  EXPECT_EQ(topology.levels[0].alias, "rack");
  struct Case {
    const char *levels, *want;
  };
  const Case cases[] = {
      {"[]", "spec.levels: must have 1 to 16 levels"},
      {R"([{"nodeLabel":"a"},{"nodeLabel":"a"}])",
       "spec.levels[1].nodeLabel: \"a\" is there twice"},
      {R"([{"nodeLabel":"kubernetes.io/hostname"},{"nodeLabel":"a"}])",
       "spec.levels[0].nodeLabel: kubernetes.io/hostname can only be the last level"},
      {"[{}]", "spec.levels[0].nodeLabel: must be specified"},
  };
  for (const Case& c : cases) {
    const std::string json = std::string(R"({"spec":{"levels":)") + c.levels + "}}";
    EXPECT_EQ(Decode<model::Topology>(model::Kind::kTopology, json).invalid, c.want) << json;
  }
}

TEST(NodePoolJsonTest, FieldsAndBounds) {
  const auto pool = Decode<model::NodePool>(model::Kind::kNodePool, R"({"metadata":{"name":"p"},
    "spec":{"provider":"kwok","nodeClassRef":{"group":"g","kind":"k","name":"n"},"instanceTypes":["a","b"],"zones":["z1"],"allowSpot":true,
      "labels":{"x":"y"},"taints":[{"key":"k","effect":"NoSchedule"}],
      "startupTaints":[{"key":"s","value":"v","effect":"NoExecute"}],"weight":5,"maxNodes":7}})");
  EXPECT_EQ(pool.invalid, "");
  EXPECT_EQ(pool.provider, "kwok");
  EXPECT_EQ(pool.node_class, (model::NodeClassRef{"g", "k", "n"}));
  EXPECT_EQ(pool.instance_types, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(pool.zones, (std::vector<std::string>{"z1"}));
  EXPECT_TRUE(pool.allow_spot);
  EXPECT_EQ(pool.labels.Get("x"), "y");
  ASSERT_EQ(pool.taints.size(), 1u);
  ASSERT_EQ(pool.startup_taints.size(), 1u);
  EXPECT_EQ(pool.startup_taints[0].effect, model::TaintEffect::kNoExecute);
  EXPECT_EQ(pool.weight, 5);
  EXPECT_EQ(pool.max_nodes, 7);
  EXPECT_EQ(Decode<model::NodePool>(model::Kind::kNodePool, R"({"spec":{}})").max_nodes,
            model::kUnlimited);
  EXPECT_EQ(Decode<model::NodePool>(model::Kind::kNodePool, R"({"spec":{"maxNodes":-2}})").invalid,
            "spec.maxNodes: -2 must not be negative, -1 (unlimited) excepted");
  EXPECT_EQ(Decode<model::NodePool>(model::Kind::kNodePool,
                                    R"({"spec":{"nodeClassRef":{"group":"g","name":"n"}}})")
                .invalid,
            "spec.nodeClassRef.kind: must be set");
}

model::NodePool PoolWith(const std::string& field) {
  return Decode<model::NodePool>(model::Kind::kNodePool, R"({"spec":{)" + field + "}}");
}

TEST(NodePoolJsonTest, ReservationsAreAllNoneOrSome) {
  EXPECT_EQ(PoolWith(R"("weight":1)").reservations, std::nullopt);
  EXPECT_EQ(PoolWith(R"("reservations":[])").reservations, std::vector<std::string>());
  EXPECT_EQ(PoolWith(R"("reservations":["cr-1","cr-2"])").reservations,
            (std::vector<std::string>{"cr-1", "cr-2"}));
  for (const std::string wrong : {R"("cr-1")", "[1]", "{}", "true"}) {
    EXPECT_TRUE(
        absl::StartsWith(PoolWith(R"("reservations":)" + wrong).invalid, "spec.reservations"))
        << wrong;
  }
}

TEST(NodePoolJsonTest, LabelsThatEachNodeHasOfItsOwnAreRefused) {
  const auto with = [](const std::string& key, const std::string& more = "") {
    return PoolWith(R"("labels":{")" + key + R"(":"a"})" + more).invalid;
  };
  for (const std::string key :
       {"kubernetes.io/hostname", "fairlead.dev/node-request", "fairlead.dev/node-pool"}) {
    EXPECT_EQ(with(key), "spec.labels[" + key + "]: is set by Fairlead, for each node of the pool");
  }
  const std::string zone = "topology.kubernetes.io/zone";
  EXPECT_EQ(with(zone), "");
  EXPECT_EQ(with(zone, R"(,"zones":["a"])"), "");
  for (const char* zones : {R"(,"zones":["b"])", R"(,"zones":["a","b"])"}) {
    EXPECT_EQ(with(zone, zones), "spec.labels[" + zone + "]: contradicts spec.zones") << zones;
  }
}

TEST(NodePoolJsonTest, Disruption) {
  const model::Disruption got =
      PoolWith(R"("disruption":{"consolidationPolicy":"WhenEmptyOrUnderutilized",
        "consolidateAfter":"90s","budgets":[{"nodes":"10%"},{"nodes":5,"schedule":"0 8 * * mon-fri",
        "duration":"10h","reasons":["Underutilized"]}]})")
          .disruption;
  EXPECT_EQ(got.consolidation, model::ConsolidationPolicy::kWhenEmptyOrUnderutilized);
  EXPECT_EQ(got.consolidate_after, absl::Seconds(90));
  ASSERT_EQ(got.budgets.size(), 2u);
  EXPECT_TRUE(got.budgets[0].percent);
  EXPECT_EQ(got.budgets[0].nodes, 10);
  EXPECT_TRUE(got.budgets[0].HoldsFor(model::DisruptionReason::kEmpty));
  EXPECT_EQ(got.budgets[1].nodes, 5);
  EXPECT_EQ(got.budgets[1].duration, absl::Hours(10));
  ASSERT_TRUE(got.budgets[1].schedule.has_value());
  EXPECT_FALSE(got.budgets[1].HoldsFor(model::DisruptionReason::kEmpty));
  EXPECT_EQ(PoolWith(R"("disruption":{"consolidateAfter":"Never"})").disruption.consolidate_after,
            absl::InfiniteDuration());
  EXPECT_FALSE(PoolWith(R"("weight":1)").disruption.consolidation.has_value());
}

TEST(NodePoolJsonTest, WrongDisruptionIsRefusedWithTheField) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"consolidationPolicy":"Always"})", "spec.disruption.consolidationPolicy"},
      {R"({"consolidateAfter":"-1m"})", "spec.disruption.consolidateAfter"},
      {R"({"consolidateAfter":"inf"})", "spec.disruption.consolidateAfter"},
      {R"({"budgets":[{}]})", "spec.disruption.budgets[0].nodes: must be set"},
      {R"({"budgets":[{"nodes":"101%"}]})", "spec.disruption.budgets[0].nodes"},
      {R"({"budgets":[{"nodes":"-1"}]})", "spec.disruption.budgets[0].nodes"},
      {R"({"budgets":[{"nodes":"1"},{"nodes":"1","schedule":"@daily"}]})",
       "spec.disruption.budgets[1]: schedule and duration must be set together"},
      {R"({"budgets":[{"nodes":"1","schedule":"99 * * * *","duration":"1h"}]})",
       "spec.disruption.budgets[0].schedule: cron field minute"},
      {R"({"budgets":[{"nodes":"1","schedule":"@daily","duration":"2000h"}]})",
       "spec.disruption.budgets[0].duration"},
      {R"({"budgets":[{"nodes":"1","reasons":["Drifted"]}]})",
       "spec.disruption.budgets[0].reasons[0]"},
  };
  for (const auto& [json, part] : cases) {
    const std::string invalid = PoolWith(R"("disruption":)" + std::string(json)).invalid;
    EXPECT_NE(invalid.find(part), std::string::npos) << json << ": " << invalid;
  }
}

TEST(NodePoolJsonTest, GpuSharing) {
  using Strategy = model::GpuPartition::Strategy;
  const auto of = [](const std::string& json) {
    const model::NodePool pool = PoolWith(R"("gpuSharing":)" + json);
    EXPECT_EQ(pool.invalid, "") << json;
    return pool.gpu_sharing;
  };
  EXPECT_EQ(of(R"({"strategy":"TimeSlicing","replicas":4})").CountOfEach(), 4);
  EXPECT_EQ(of(R"({"strategy":"MPS","replicas":4,"renameByDefault":true})").CountOfEach(), 0);
  EXPECT_EQ(of(R"({"strategy":"MIGSingle","migDevices":{"1g.5gb":7}})").CountOfEach(), 7);
  const model::GpuPartition mixed =
      of(R"({"strategy":"MIGMixed","migDevices":{"2g.10gb":2,"1g.5gb":3}})");
  EXPECT_EQ(mixed.strategy, Strategy::kMigMixed);
  EXPECT_EQ(mixed.instances,
            (std::vector<std::pair<std::string, int64_t>>{{"1g.5gb", 3}, {"2g.10gb", 2}}));
  const std::pair<const char*, const char*> cases[] = {
      {R"({})", "spec.gpuSharing.strategy"},
      {R"({"strategy":"Half"})", "spec.gpuSharing.strategy"},
      {R"({"strategy":"TimeSlicing"})", "spec.gpuSharing.replicas"},
      {R"({"strategy":"MPS","replicas":1})", "spec.gpuSharing.replicas"},
      {R"({"strategy":"MPS","replicas":100000})", "spec.gpuSharing.replicas"},
      {R"({"strategy":"MIGSingle"})", "spec.gpuSharing.migDevices: must be set"},
      {R"({"strategy":"MIGSingle","migDevices":{"1g.5gb":3,"2g.10gb":2}})", "must be one profile"},
      {R"({"strategy":"MIGMixed","replicas":2,"migDevices":{"1g.5gb":3}})",
       "spec.gpuSharing.replicas"},
      {R"({"strategy":"MIGMixed","migDevices":{"1g.5gb":8}})", "from 1 to 7"},
      {R"({"strategy":"MIGMixed","migDevices":{"../x":1}})", "is no MIG profile"},
      {R"({"strategy":"MIGMixed","migDevices":{"":1}})", "is no MIG profile"},
  };
  for (const auto& [json, part] : cases) {
    const std::string invalid = PoolWith(R"("gpuSharing":)" + std::string(json)).invalid;
    EXPECT_NE(invalid.find(part), std::string::npos) << json << ": " << invalid;
  }
}

TEST(NodePoolJsonTest, Devices) {
  const model::NodePool pool = PoolWith(
      R"("devices":[{"driver":"gpu.nvidia.com","attributes":{"productName":{"string":"H100"},)"
      R"("cuda":{"version":"9.0.0"}},"capacity":{"memory":"80Gi"}},)"
      R"({"driver":"nic.io","count":2,"attributes":{"x.io/speed":{"int":400},"up":{"bool":true}},)"
      R"("capacity":{"queues":8}}])");
  EXPECT_EQ(pool.invalid, "");
  ASSERT_EQ(pool.devices.size(), 2u);
  model::PoolDevices gpu{"gpu.nvidia.com", std::nullopt, {}, {{"memory", int64_t{80} << 30}}};
  gpu.attributes["productName"].value = std::string("H100");
  gpu.attributes["cuda"].value = model::DeviceVersion{"9.0.0"};
  EXPECT_EQ(pool.devices[0], gpu);
  model::PoolDevices nic{"nic.io", 2, {}, {{"queues", 8}}};
  nic.attributes["x.io/speed"].value = int64_t{400};
  nic.attributes["up"].value = true;
  EXPECT_EQ(pool.devices[1], nic);
  std::string many = "[";
  for (int i = 0; i < 17; ++i) {
    absl::StrAppend(&many, i == 0 ? "" : ",", R"({"driver":"d.io","count":1})");
  }
  many += "]";
  const std::pair<std::string, const char*> cases[] = {
      {R"([{"count":1}])", "spec.devices[0].driver: must be the name of a DRA driver"},
      {R"([{"driver":"NIC","count":1}])", "spec.devices[0].driver"},
      {R"([{"driver":"nic.io"}])", "spec.devices[0].count: must be set"},
      {R"([{"driver":"nic.io","count":0}])", "spec.devices[0].count: must be from 1 to 1024"},
      {R"([{"driver":"nic.io","count":1025}])", "spec.devices[0].count: must be from 1 to 1024"},
      {R"([{"driver":"gpu.amd.com","count":8}])", "spec.devices[0].count: must be left out"},
      {R"([{"driver":"n.io","count":1,"attributes":{"a":{}}}])", "must have one of string, int"},
      {R"([{"driver":"n.io","count":1,"attributes":{"a":{"int":1,"bool":true}}}])",
       "must have one"},
      {R"([{"driver":"n.io","count":1,"capacity":{"m":"lots"}}])", "must be a quantity"},
      {R"([{"driver":"n.io","count":1,"capacity":{"m":"-1"}}])", "must be a quantity"},
      {many, "spec.devices: must have 16 entries at most"},
      {R"([{"driver":"gpu.nvidia.com"}],"gpuSharing":{"strategy":"MPS","replicas":2})",
       "spec.gpuSharing: is of device plugins"},
  };
  for (const auto& [json, part] : cases) {
    const std::string invalid = PoolWith(R"("devices":)" + json).invalid;
    EXPECT_NE(invalid.find(part), std::string::npos) << json << ": " << invalid;
  }
}

// Every prefix and many single-byte changes of a valid object of each custom kind: the result is an
// error or an object, never a crash.
TEST(CustomKindsJsonTest, DamageNeverCrashes) {
  const std::string text =
      R"({"metadata":{"name":"n","labels":{"a":"b"}},"spec":{"resources":{"gpu":{"quota":0.5}},"subGroups":[{"name":"a"}],"levels":[{"nodeLabel":"x"}],"taints":[{"key":"k"}],"priceUsdPerHour":"3.9"},"status":{"phase":"Ready","readyAt":"2026-11-21T01:50:39Z"}})";
  for (model::Kind kind : model::kAllKinds) {
    ASSERT_TRUE(DecodeObject(kind, kJson, text).ok());
    for (size_t size = 0; size < text.size(); ++size) {
      EXPECT_FALSE(DecodeObject(kind, kJson, text.substr(0, size)).ok()) << size;
      for (char c : {'{', '}', '[', ']', '"', ',', '\\', '7', '\0', '\xFF'}) {
        std::string damaged = text;
        damaged[size] = c;
        const auto object = DecodeObject(kind, kJson, damaged);
        if (!object.ok()) {
          ASSERT_EQ(object.status().code(), absl::StatusCode::kInvalidArgument);
        }
      }
    }
  }
}

}  // namespace
}  // namespace fairlead::kube
