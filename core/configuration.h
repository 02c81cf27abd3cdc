// The configuration file's documents, checked and turned into what the core and the adapters take.
//
// A file holds at most one document of each of two kinds (docs/configuration.md):
//   kubescheduler.config.k8s.io/v1 KubeSchedulerConfiguration   profiles, plugins, leaderElection
//   config.fairlead.dev/v1alpha1   FairleadConfiguration        everything that upstream has not
//
//   apiVersion: config.fairlead.dev/v1alpha1
//   kind: FairleadConfiguration
//   schedulerNames: [fairlead, kai-scheduler]
//   defaultPlugins: {my-scheduler: Fairlead}   # or Upstream; what its profile starts from
//   defaultQueue: default-queue
//   builtinDefaultQueue: true        # it exists without an object
//   actions: {reclaim: true, preempt: true}
//   reclaimRounding: nearest         # or down
//   jobOrder: {durationWeight: 0, assumedDuration: 24h}
//   hook:
//     enabled: true                  # left out: if a provider is named
//     provider: kwok                 # no default
//     catalogFile: catalog.yaml      # relative to the configuration file
//     clusterGPULimit: 64            # devices
//     gpuLimits: {NVIDIA-H100-80GB-HBM3: 32}
//     costLimitPerHour: "250.00"     # dollars, a string so that it is exact
//     unneededAfter: 5m              # also launchTimeout, readyTimeout, backoffInitial,
//     maxNewRequestsPerStep: 1000    # backoffMax, expectedBoot
//     consolidationPolicy: WhenEmpty # or WhenEmptyOrUnderutilized; of pools that do not say
//     consolidationHorizon: 1h       # also minimumLifetime, billingPeriod
//     removalsPerMinute: 100
//     overQuota: Evict               # or BuyNodes, Weigh; of queues that do not say
//     capacityBuffers: true          # also provisioningRequests, bookingTime (10m)
//   kwok: {bootDelay: 30s,           # a section makes a provider known to NodePools
//          outOfStockFile: out-of-stock.txt}   # relative to the configuration file
//   externalgrpc: {address: "cloud.example:8086", caFile: ca.pem, certFile: tls.crt,
//                  keyFile: tls.key, serverName: cloud.example, timeout: 5s}
//   clusterApi: {kubeconfig: management.kubeconfig, namespace: default, clusterName: prod}
//   scaleSubresource: {groups: [{apiVersion: machine.openshift.io/v1beta1, kind: MachineSet,
//     namespace: openshift-machine-api, name: workers, minSize: 0, maxSize: 8, zone: us-east-1a,
//     instanceType: g6.4xlarge, nodeSelector: {pool: workers},   # or template: {cpu, memory, ..}
//     deleteAnnotation: {key: example.com/delete}}]}
//   provisioningRequest: {namespace: fairlead, parameters: {ValidUntilSeconds: "600"},
//     className: best-effort-atomic-scale-up.autoscaling.x-k8s.io, capacityWait: 0s,
//     arrivalTimeout: 20m, groups: [{name: h100, maxSize: 16, zone: us-east-1a,
//     instanceType: p5.48xlarge, nodeSelector: {pool: h100}}]}
//   karpenter: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
//   usage: {kValue: "1", halfLifePeriod: 24h, windowSize: 168h, windowType: sliding,
//           tumblingWindowStartTime: "2026-01-05T00:00:00Z", cronString: "0 0 * * 1",
//           fetchInterval: 1m, stalenessPeriod: 5m,   # left out: history does not count
//           clientType: prometheus, connectionString: "http://prometheus.monitoring:9090",
//           waitTimeout: 1m, extraParams: {queryResolution: 1m, gpuCapacityMetric: "sum(gpus)"}}
//   gpuSharing: {enabled: true, namespace: kai-resource-reservation, image: fairlead,
//                command: [fairlead-gpu-index], serviceAccountName: fairlead-gpu-index,
//                runtimeClassName: nvidia, indexTimeout: 40s, idleGracePeriod: 10s}
//   remotePlugins: [{name: Licences, address: "licences.example:7070", caFile: ca.pem, timeout: 5s,
//                    permitTimeout: 60s, ignorable: false, podLabels: [example.com/licence]}]
//   evictions: {maxInFlight: 256, perSecond: 0, burst: 0}   # -1 and 0: any number
//   gangReservations: {enabled: false, reserveAfter: 5m, minGPUs: 8, maxReservations: 8}
//   gangBindingGrace: 60s
//   podGroupSettle: 1s
//   shard: {partitionLabelValue: gpu-a}   # "": objects without the label; left out: all
//   grouping: {enabled: false, kinds: [{group: example.com, kind: Simulation, per: pod}]}
//   events: true
//   staleAfter: 60s
//   admission: {queueAuthorization: false, authorizationFailurePolicy: Ignore}   # or Fail
//   metricsBindAddress: ":8080"      # left out: no HTTP
//   tracing: {endpoint: "http://collector:4318", samplingRatePerMillion: 1000000, timeout: 10s,
//             caFile: ca.pem, bearerTokenFile: token}   # left out: no traces
//   leaderElection: {leaderElect: true, leaseDuration: 15s, renewDeadline: 10s, retryPeriod: 2s,
//                    resourceNamespace: fairlead, resourceName: fairlead}
//
// Strict: unknown, repeated and ill-typed fields are InvalidArgument, named by path; upstream
// features that Fairlead lacks are Unimplemented. FieldPlaceOf tells the document and the path of
// an error, so that the caller can name its line and column.
//
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/lease_times.h"
#include "core/options.h"
#include "scheduler/model/provisioning_group.h"
#include "scheduler/model/scale_group.h"

namespace fairlead::core {

struct LeaderElectionSettings {
  bool enabled = true;
  // Of the Lease: the names in manifests/, so that a program started by hand never leads beside
  // them. A shard's Lease is LeaseNameOf (core/shard.h).
  std::string ns = "fairlead", name = "fairlead";
  LeaseTimes times;
  friend bool operator==(const LeaderElectionSettings&, const LeaderElectionSettings&) = default;
};

// The source of usage reports, if usage is not the program's own record
// (queues::UsageOptions::reported; KAI's usageDBConfig). Prometheus is the only supported kind.
struct UsageDatabaseSettings {
  std::string connection_string;          // http(s)://host[:port][/prefix]
  std::string connection_string_env_var;  // the variable that has it
  std::string ca_file, bearer_token_file;
  absl::Duration wait_timeout = absl::Minutes(1);  // how long the first decision waits for the
                                                   // first report
  absl::Duration query_timeout = absl::Seconds(10);
  absl::Duration query_resolution = absl::Minutes(1);
  // PromQL; empty: KAI's.
  struct Metric {
    std::string allocation, capacity;
    friend bool operator==(const Metric&, const Metric&) = default;
  };
  Metric gpu, cpu, memory;
  friend bool operator==(const UsageDatabaseSettings&, const UsageDatabaseSettings&) = default;
};

// A server of cluster-autoscaler's protocol for external cloud providers: the provider
// externalgrpc.
struct CloudServerSettings {
  std::string address;  // "HOST:PORT", "unix:///PATH"; empty: there is none
  std::string ca_file, cert_file, key_file;
  std::string server_name;                    // in its certificate; empty: that of the address
  absl::Duration timeout = absl::Seconds(5);  // of each call
  friend bool operator==(const CloudServerSettings&, const CloudServerSettings&) = default;
};

// The provider cluster-api: where its objects are.
struct ClusterApiSettings {
  std::string kubeconfig;        // of the management cluster; empty: this cluster
  std::string ns, cluster_name;  // empty: all of them
  friend bool operator==(const ClusterApiSettings&, const ClusterApiSettings&) = default;
};

// The webhooks (admission::Policy).
struct AdmissionSettings {
  bool queue_authorization = false;         // of every queue; else of restricted ones
  bool authorization_fails_closed = false;  // without an answer about rights
  friend bool operator==(const AdmissionSettings&, const AdmissionSettings&) = default;
};

// Where traces of decisions are sent (OTLP over HTTP).
struct TracingSettings {
  std::string endpoint;  // http(s)://host[:port][/prefix], before /v1/traces; empty: no traces
  int64_t sampling_rate_per_million = 1'000'000;  // of all decisions, how many are traced
  std::string ca_file, bearer_token_file;
  absl::Duration timeout = absl::Seconds(10);  // of a request
  friend bool operator==(const TracingSettings&, const TracingSettings&) = default;
};

// `own` and the guests of `state` are the scheduler names that count.
void SetSchedulerNames(std::vector<std::string> own, state::StateOptions& state);

// KwokOptions with the hook off and no provider: the result of a file without a hook section.
Options OptionsWithoutHook();

struct Configuration {
  Options options = OptionsWithoutHook();
  std::string catalog_file;  // as written; empty: the built-in catalogue
  LeaderElectionSettings leader_election;
  UsageDatabaseSettings usage_database;  // where options.engine.usage is reported
  absl::Duration kwok_boot_delay = absl::Seconds(30);
  std::string kwok_out_of_stock_file;        // as written; empty: every type can be had
  model::NodeClassRef karpenter_node_class;  // of NodePools that name none; no name: there is none
  CloudServerSettings external_grpc;
  ClusterApiSettings cluster_api;
  std::vector<model::ScaleGroup> scale_groups;  // of the provider scale-subresource
  model::ProvisioningSettings provisioning;     // of the provider provisioning-request
  // If a kind's watch has been silent for longer, nothing is evicted, provisioned or removed.
  absl::Duration stale_after = absl::Seconds(60);
  AdmissionSettings admission;
  std::string metrics_bind_address;  // empty: no HTTP is served
  std::string guests_bind_address;   // of gRPC; empty: none is served
  TracingSettings tracing;
  // Valid settings without effect; one sentence each, for the log.
  std::vector<std::string> warnings;
};

// One JSON text per document, in the order of the file; "null" documents are skipped. Without
// documents the result is the built-in configuration. Profiles may name the given plugins, and
// the options have them.
absl::StatusOr<Configuration> ReadConfiguration(
    const std::vector<std::string>& documents,
    const framework::RegistryPtr& plugins = plugins::BuiltIn());

// The place of an error of ReadConfiguration.
struct FieldPlace {
  size_t document = 0;  // index into the given documents
  std::string path;     // "hook.gpuLimits.A100", "profiles[0].plugins"; empty: the document
};
std::optional<FieldPlace> FieldPlaceOf(const absl::Status& error);

}  // namespace fairlead::core
