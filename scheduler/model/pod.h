// A pod as the scheduler sees it.
//
// PodSpec has everything that decides where a pod may run and what it uses there. Two pods with
// equal specs are interchangeable for placement, and ClusterState keeps one copy of the spec for
// all of them (a pod class). What differs between pods is in Pod.
//
// Sources: k8s.io/api/core/v1; effective requests as in k8s.io/component-helpers/resource
// (PodRequests): max(init containers, sum of containers and sidecars) + overhead; an absent request
// is its limit; pod-level resources override if set.
//
// Thread-safety: plain values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/shared.h"
#include "scheduler/model/instance_wishes.h"
#include "scheduler/model/node_answers.h"
#include "scheduler/model/node_features.h"
#include "scheduler/model/node_topology.h"
#include "scheduler/model/object_meta.h"
#include "scheduler/model/resources.h"
#include "scheduler/model/selector.h"
#include "scheduler/model/volumes.h"

namespace fairlead::model {

// Debian's Abseil hashes its own optional only, not the standard one.
template <typename H, typename T>
H HashOptional(H h, const std::optional<T>& value) {
  h = H::combine(std::move(h), value.has_value());
  return value.has_value() ? H::combine(std::move(h), *value) : std::move(h);
}

enum class TaintEffect : uint8_t { kNoSchedule, kPreferNoSchedule, kNoExecute };

struct Taint {
  std::string key, value;
  TaintEffect effect = TaintEffect::kNoSchedule;
  friend bool operator==(const Taint&, const Taint&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Taint& t) {
    return H::combine(std::move(h), t.key, t.value, t.effect);
  }
};

struct Toleration {
  std::string key;      // empty with kExists: tolerates every taint
  bool exists = false;  // operator Exists; otherwise Equal
  std::string value;
  std::optional<TaintEffect> effect;  // absent: every effect
  [[nodiscard]] bool Tolerates(const Taint& taint) const;
  friend bool operator==(const Toleration&, const Toleration&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Toleration& t) {
    return HashOptional(H::combine(std::move(h), t.key, t.exists, t.value), t.effect);
  }
};

struct PreferredNodeTerm {
  int32_t weight = 0;  // 1..100
  NodeSelectorTerm term;
  friend bool operator==(const PreferredNodeTerm&, const PreferredNodeTerm&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const PreferredNodeTerm& t) {
    return H::combine(std::move(h), t.weight, t.term);
  }
};

// Names of namespaces. Copies have one list in common: a selector may select thousands, and a class
// of pods has a copy.
class NamespaceNames {
 public:
  explicit NamespaceNames(std::vector<std::string> sorted) : names_(std::move(sorted)) {}
  [[nodiscard]] bool Has(const std::string& name) const {
    return std::binary_search(names_->begin(), names_->end(), name);
  }
  [[nodiscard]] bool IsEmpty() const { return names_->empty(); }
  friend bool operator==(const NamespaceNames& a, const NamespaceNames& b) {
    return a.names_.IsSameAs(b.names_) || *a.names_ == *b.names_;
  }
  template <typename H>
  friend H AbslHashValue(H h, const NamespaceNames& n) {
    if (n.names_->empty()) return H::combine(std::move(h), 0);
    return H::combine(std::move(h), n.names_->size(), n.names_->front(), n.names_->back());
  }

 private:
  Shared<std::vector<std::string>> names_;
};

struct PodAffinityTerm {
  LabelSelector selector;
  std::vector<std::string> namespaces;  // empty together with no selector: the pod's own
  std::optional<LabelSelector> namespace_selector;
  std::string topology_key;
  int32_t weight = 0;  // 0: required; otherwise a preference
  // Those that namespace_selector selects, if it reads labels. Set by ClusterState, not by
  // decoders; absent: not known.
  std::optional<NamespaceNames> selected_namespaces = std::nullopt;
  friend bool operator==(const PodAffinityTerm&, const PodAffinityTerm&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const PodAffinityTerm& t) {
    h = HashOptional(std::move(h), t.namespace_selector);
    h = HashOptional(std::move(h), t.selected_namespaces);
    return H::combine(std::move(h), t.selector, t.namespaces, t.topology_key, t.weight);
  }
};

struct TopologySpreadConstraint {
  int32_t max_skew = 1;
  std::string topology_key;
  bool do_not_schedule = true;
  LabelSelector selector;
  int32_t min_domains = 1;
  bool honor_node_affinity = true;
  bool honor_node_taints = false;
  friend bool operator==(const TopologySpreadConstraint&,
                         const TopologySpreadConstraint&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const TopologySpreadConstraint& c) {
    return H::combine(std::move(h), c.max_skew, c.topology_key, c.do_not_schedule, c.selector,
                      c.min_domains, c.honor_node_affinity, c.honor_node_taints);
  }
};

// Where the constraints of a pod come from.
enum class SpreadOrigin : uint8_t {
  kOwn,     // its spec, or it has none
  kListed,  // defaultConstraints of its profile (defaultingType List)
  kSystem,  // kube-scheduler's own defaults (defaultingType System)
};

struct HostPort {
  int32_t port = 0;
  std::string protocol = "TCP";
  std::string host_ip;
  friend bool operator==(const HostPort&, const HostPort&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const HostPort& p) {
    return H::combine(std::move(h), p.port, p.protocol, p.host_ip);
  }
};

// A share of one or several GPUs, by KAI's annotations gpu-fraction, gpu-memory and
// gpu-fraction-num-devices. At most one of fraction_milli and memory_mib is set.
struct GpuShare {
  int64_t fraction_milli = 0;  // 1..999, of each device
  int64_t memory_mib = 0;      // of each device
  int64_t devices = 1;
  [[nodiscard]] bool IsSet() const { return fraction_milli != 0 || memory_mib != 0; }
  friend bool operator==(const GpuShare&, const GpuShare&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const GpuShare& s) {
    return H::combine(std::move(h), s.fraction_milli, s.memory_mib, s.devices);
  }
};

// What one container requests; an absent request is its limit.
struct ContainerRequests {
  enum class Role : uint8_t { kMain, kInit, kSidecar };
  Role role = Role::kMain;
  ResourceList requests;
  friend bool operator==(const ContainerRequests&, const ContainerRequests&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ContainerRequests& c) {
    return H::combine(std::move(h), c.role, c.requests);
  }
};

// The images of a pod's containers, init containers and volumes.
struct PodImages {
  std::vector<std::string> names;  // as nodes list them ("nginx:latest"), in order; may repeat
  int64_t containers = 0;          // and init containers
  friend bool operator==(const PodImages&, const PodImages&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const PodImages& i) {
    return H::combine(std::move(h), i.names, i.containers);
  }
};

// What a pod requests of CPU and memory, if each container that requests none counted 100m and
// 200Mi: upstream's NonZeroRequested. Scores use it, so that pods without requests spread.
struct ScoringRequests {
  int64_t cpu_milli = 0, memory_bytes = 0;  // while it is on a node
  // While it waits, if that is something else: upstream leaves pod-level requests out then. Below
  // 0: the same.
  int64_t waiting_cpu_milli = -1, waiting_memory_bytes = -1;
  [[nodiscard]] int64_t WaitingCpu() const {
    return waiting_cpu_milli < 0 ? cpu_milli : waiting_cpu_milli;
  }
  [[nodiscard]] int64_t WaitingMemory() const {
    return waiting_memory_bytes < 0 ? memory_bytes : waiting_memory_bytes;
  }
  friend bool operator==(const ScoringRequests&, const ScoringRequests&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ScoringRequests& r) {
    return H::combine(std::move(h), r.cpu_milli, r.memory_bytes, r.waiting_cpu_milli,
                      r.waiting_memory_bytes);
  }
};

// Extended resources of a pod that device classes give (KEP-5004): a node that has no device plugin
// for them gives devices of the classes instead, by a claim that is the pod's own.
struct ExtendedDevices {
  std::vector<std::string> resources;  // by name
  ResourceList demands;                // what the claim asks for, as scheduler/model/device_names.h
  [[nodiscard]] bool Any() const { return !resources.empty(); }
  friend bool operator==(const ExtendedDevices&, const ExtendedDevices&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ExtendedDevices& e) {
    return H::combine(std::move(h), e.resources, e.demands);
  }
};

struct PodSpec {
  std::string ns;         // part of the class: affinity terms and spread count within namespaces
  ResourceList requests;  // effective, without "pods"
  ScoringRequests scoring_requests;
  // QoS class Guaranteed, by status.qosClass: the kubelet may align its CPUs and memory to NUMA
  // nodes, and not its devices alone.
  bool guaranteed = false;
  // Its containers in order, init containers first, if something of it can be aligned and
  // `requests` alone does not say what: several containers, overhead or pod-level resources.
  std::vector<ContainerRequests> containers;
  GpuShare gpu_share;
  // MIG instances that the pod requests by annotation (KAI's legacy form). They use capacity where
  // the pod runs, but such a pod is not placed.
  ResourceList legacy_mig;
  NodeFeatures required_features = 0;
  Boxed<InstanceWishes> wishes;  // what its annotations say about the machine
  StringMap node_selector;
  bool has_required_node_affinity = false;
  std::vector<NodeSelectorTerm> required_node_terms;  // any of them
  std::vector<PreferredNodeTerm> preferred_node_terms;
  std::vector<Toleration> tolerations;
  std::vector<PodAffinityTerm> pod_affinity;
  std::vector<PodAffinityTerm> pod_anti_affinity;
  std::vector<TopologySpreadConstraint> topology_spread;
  std::vector<HostPort> host_ports;
  // Claims that its volumes name, sorted. Empty in the spec of a class, which has `volume_needs`.
  std::vector<VolumeClaimRef> volume_claims;
  std::vector<InlineDisk> inline_disks;       // sorted
  std::vector<std::string> config_map_names;  // required (not optional) ones
  std::vector<std::string> resource_claims;   // names of ResourceClaims
  std::vector<std::string> claim_templates;   // names of ResourceClaimTemplates, one per claim
  // The labels that affinity reads. With terms of its own (HasAllLabels) all labels of the pod;
  // else some keys of them: those that its default constraints read, and those that affinity terms
  // of other pods read, if one of these selects it (`selected_by_others`) or it has default
  // constraints.
  StringMap labels_for_affinity;
  bool selected_by_others = false;  // set by ClusterState, not by decoders
  // Set by ClusterState too: whether topology_spread is the pod's own.
  SpreadOrigin spread_origin = SpreadOrigin::kOwn;
  // The labels of the pod that plugins of its program read (StateOptions::plugin_labels). Set by
  // ClusterState, not by decoders.
  StringMap labels_for_plugins;
  // Set by ClusterState too: the position of the profile that the pod is placed by
  // (StateOptions::profiles), and its images, if scores read them.
  uint16_t profile = 0;
  Boxed<PodImages> images;
  // Set by ClusterState too; devices that the claims bring are in `requests`.
  std::string claim_problem;                // why its claims keep it from every node
  std::string missing_claim;                // the missing object, if that is the reason
  std::vector<std::string> claims_to_join;  // "ns/name": it must run where these are
  Boxed<ExtendedDevices> extended;          // in `requests` by the names of the resources alone
  Boxed<VolumeNeeds> volume_needs;          // what its volumes ask of its node
  NodeAnswers node_answers;                 // of extenders, about this pod (SetNodeAnswers)

  // labels_for_affinity are all labels of the pod, because terms of its own read them.
  [[nodiscard]] bool HasAllLabels() const {
    return !pod_affinity.empty() || !pod_anti_affinity.empty() ||
           (!topology_spread.empty() && spread_origin == SpreadOrigin::kOwn);
  }
  friend bool operator==(const PodSpec&, const PodSpec&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const PodSpec& s) {
    return H::combine(std::move(h), s.ns, s.requests, s.gpu_share, s.node_selector,
                      s.has_required_node_affinity, s.required_node_terms, s.preferred_node_terms,
                      s.tolerations, s.pod_affinity, s.pod_anti_affinity, s.topology_spread,
                      s.host_ports, s.volume_claims, s.inline_disks, s.config_map_names,
                      s.resource_claims, s.labels_for_affinity, s.selected_by_others, s.legacy_mig,
                      s.claim_templates, s.claim_problem, s.missing_claim, s.claims_to_join,
                      *s.extended, *s.volume_needs, s.guaranteed, s.containers, s.scoring_requests,
                      s.profile, *s.images, s.spread_origin, s.node_answers, s.labels_for_plugins,
                      s.required_features, *s.wishes);
  }
};

// Whether a pod of the class brings the devices of the claim along ("ns/name"), which others join:
// it names the claim, which holds no devices, and is the first to do so.
bool BringsClaim(const PodSpec& spec, absl::string_view claim);

enum class PodPhase : uint8_t { kPending, kRunning, kSucceeded, kFailed, kUnknown };

// The pod's condition PodScheduled, as the API server has it.
struct PodScheduledCondition {
  std::string status;  // "True", "False", "Unknown"; empty if the condition is absent
  std::string reason;
};

struct Pod {
  ObjectMeta meta;
  PodSpec spec;
  std::string scheduler_name;
  std::string node_name;            // empty: not bound
  std::string nominated_node_name;  // status
  std::string priority_class_name;
  std::optional<int32_t> priority;
  bool never_preempts = false;    // spec.preemptionPolicy is Never
  int64_t active_deadline_s = 0;  // spec.activeDeadlineSeconds; 0: none
  // spec.restartPolicy is not Always: it works towards an end, and begins anew if it is evicted.
  bool runs_to_end = false;
  std::vector<std::string> scheduling_gates;
  // What holds it back as gates do (core/held_back.h); not of the API server.
  std::string held_by;
  // status.resourceClaimStatuses: the claims made from its templates so far; "" if none is needed.
  std::vector<std::string> generated_claims;
  // Claims from templates that generated_claims does not have yet: "NAME of template TEMPLATE".
  std::vector<std::string> awaited_claims;
  // status.extendedResourceClaimStatus: the claim that gives its extended resources; empty: none.
  std::string extended_claim;
  // What it has of the NUMA nodes of its machine, as annotated: observed before predicted. Empty:
  // not known.
  std::vector<ZoneAmounts> numa_zones;
  PodImages images;
  std::string scheduling_group;  // spec.schedulingGroup.podGroupName (scheduling.k8s.io), or empty
  PodPhase phase = PodPhase::kPending;
  bool ready = false;                              // condition Ready is True
  absl::Time start_time = absl::InfiniteFuture();  // status.startTime; infinite future: none
  PodScheduledCondition scheduled;
  // What is wrong with an annotation, a quantity or a field that we must understand; empty if
  // nothing. Such a pod is not scheduled: its verdict is InvalidRequest with this text.
  std::string invalid;
};

}  // namespace fairlead::model
