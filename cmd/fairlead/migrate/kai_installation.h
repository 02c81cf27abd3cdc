// What is known of a KAI installation, and of the Fairlead beside it, from API objects: for
// `fairlead migrate`. Names and defaults are those of KAI v0.17 (its operator and chart).
//
// Errors: an object that cannot be read leaves out what it would have said; nothing fails.
// Thread-safety: pure functions, plain values. Complexity: linear in the objects.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "document/json.h"
#include "scheduler/model/workload_objects.h"

namespace fairlead::cmd {

inline constexpr char kKaiNamespace[] = "kai-scheduler";

// As the API server has them.
struct KaiObjects {
  std::vector<Json> deployments, configs, shards, queues, pod_groups, topologies, bind_requests;
  std::vector<Json> priority_classes, definitions;           // CustomResourceDefinitions
  std::vector<Json> validating_webhooks, mutating_webhooks;  // configurations
  std::vector<Json> pods;                                    // of KAI's scheduler name
  Json fairlead_configuration;                               // the ConfigMap; null: none is known
};

enum class KaiComponent : uint8_t {
  kOperator,
  kScheduler,
  kBinder,
  kAdmission,
  kPodGrouper,
  kPodGroupController,
  kQueueController,
  kNodeScaleAdjuster,
  kOther,
};
const char* KaiComponentName(KaiComponent component);

struct KaiDeployment {
  std::string ns, name;
  KaiComponent component = KaiComponent::kOther;
  int64_t replicas = 0;
  std::string selector;  // of its pods: "app=binder"
  std::string kept_by;   // what may undo a change of it: "Helm", "Argo CD"; empty: nothing known
};

struct KaiShard {
  std::string name, partition;  // value of the node pool label; empty: nodes without it
  bool spreads_gpu = false, spreads_cpu = false;
  std::vector<std::string> settings;  // other fields that it sets, by name
};

// A webhook of a configuration, with the service that answers it.
struct KaiWebhook {
  bool validating = true;
  std::string configuration, name;
  size_t index = 0;  // in the configuration
  std::string service_ns, service;
  bool fails = true;  // failurePolicy Fail: no answer refuses the request
};

// The Fairlead in the cluster.
struct FairleadInstallation {
  std::string ns, name;         // of the Deployment; no name: none was found
  std::string config_map, key;  // of its configuration file; empty: unknown
  std::string text;             // of the file
  std::string problem;          // why the file cannot be read
  std::vector<std::string> scheduler_names;
  bool grouping = false, kai_status = false;
  std::set<std::string> shards;  // label values (core::Shard); none: it has the whole cluster
};

struct KaiInstallation {
  std::string ns = kKaiNamespace;
  std::string scheduler_name = "kai-scheduler";
  std::string queue_label;                 // another one than kai.scheduler/queue; else empty
  std::vector<std::string> selectors;      // fields of the Config that bound which pods are KAI's
  std::vector<KaiDeployment> deployments;  // by component, then by name
  std::vector<KaiShard> shards;            // by name
  std::vector<KaiWebhook> webhooks;        // whose service is in KAI's namespace
  std::vector<model::Queue> queues;
  std::vector<model::PodGroup> pod_groups;
  std::vector<model::Topology> topologies;
  std::vector<std::string> priority_classes;    // of the four that KAI ships, those that exist
  std::vector<std::string> open_bind_requests;  // "ns/name", neither Succeeded nor Failed
  int64_t running_pods = 0, waiting_pods = 0;
  std::map<std::string, int64_t> pod_features;  // of waiting and running pods: annotation -> pods
  bool has_definitions = false;                 // of Queue and PodGroup
  bool stores_verdicts = false;  // status.schedulability is in the definition of PodGroup
  FairleadInstallation fairlead;
};

KaiInstallation ReadKaiInstallation(const KaiObjects& objects);

// Of the Fairlead among the Deployments, without what its ConfigMap says.
FairleadInstallation FindFairlead(const std::vector<Json>& deployments);
// The scheduler name of the Config object, or KAI's default.
std::string KaiSchedulerNameOf(const std::vector<Json>& configs);

}  // namespace fairlead::cmd
