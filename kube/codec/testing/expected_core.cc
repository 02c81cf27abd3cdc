// The model values that the random messages mean.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "kube/codec/testing/amounts.h"
#include "kube/codec/testing/random_core.h"

namespace fairlead::kube::testing {
namespace {

using Amounts = std::map<std::string, int64_t>;
using QuantityMap = google::protobuf::Map<std::string, core::Quantity>;

int64_t Value(const std::string& resource, const std::string& text) {
  for (const Amount& amount : kAmounts) {
    if (resource == amount.resource && text == amount.text) return amount.base_units;
  }
  ADD_FAILURE() << "no amount " << resource << " " << text;
  return -1;
}

Amounts ToAmounts(const QuantityMap& map) {
  Amounts amounts;
  for (const auto& [name, quantity] : map) amounts[name] = Value(name, quantity.string());
  return amounts;
}

Amounts ContainerAmounts(const core::Container& container) {
  Amounts amounts = ToAmounts(container.resources().limits());
  for (const auto& [name, amount] : ToAmounts(container.resources().requests())) {
    amounts[name] = amount;
  }
  return amounts;
}

int64_t At(const Amounts& amounts, const std::string& name) {
  auto it = amounts.find(name);
  return it == amounts.end() ? 0 : it->second;
}

// For one resource at a time: the most that runs at once, over the pod's life. `unnamed`: what a
// container has of it that does not name it; `named`: whether one does.
int64_t Peak(const core::PodSpec& spec, const std::string& name, int64_t unnamed, bool& named) {
  int64_t sidecars = 0;
  int64_t peak = 0;
  named = false;
  const auto amount_of = [&](const core::Container& c) {
    const Amounts amounts = ContainerAmounts(c);
    if (amounts.count(name) == 0) return unnamed;
    named = true;
    return amounts.at(name);
  };
  for (const core::Container& c : spec.initcontainers()) {
    const int64_t amount = amount_of(c);
    peak = std::max(peak, sidecars + amount);
    if (c.restartpolicy() == "Always") sidecars += amount;
  }
  int64_t running = sidecars;
  for (const core::Container& c : spec.containers()) running += amount_of(c);
  return std::max(peak, running);
}

// Of a pod that waits: what its containers say, and what upstream assumes of those that say
// nothing.
int64_t ExpectedWaiting(const core::PodSpec& spec, const std::string& name, int64_t unnamed) {
  bool named = false;
  return Peak(spec, name, unnamed, named) + At(ToAmounts(spec.overhead()), name);
}

// Of a pod on a node. In upstream's order: the server writes its defaults into the pod, and the
// scheduler its own into what is left open then.
int64_t ExpectedHeld(const core::PodSpec& spec, const std::string& name, int64_t unnamed) {
  const Amounts limits = ToAmounts(spec.resources().limits());
  Amounts requests = ToAmounts(spec.resources().requests());
  const auto pod_level = [](const Amounts& amounts) {
    return std::any_of(amounts.begin(), amounts.end(), [](const auto& amount) {
      return amount.first == "cpu" || amount.first == "memory" ||
             absl::StartsWith(amount.first, "hugepages-");
    });
  };
  if (!pod_level(limits) && !pod_level(requests)) return ExpectedWaiting(spec, name, unnamed);
  bool named = false;
  const int64_t peak = Peak(spec, name, 0, named);
  if (!limits.empty() && requests.count(name) == 0) {
    if (named) {
      requests[name] = peak;
    } else if (limits.count(name) > 0) {
      requests[name] = limits.at(name);
    }
  }
  const Amounts overhead = ToAmounts(spec.overhead());
  if (requests.count(name) > 0) return requests.at(name) + At(overhead, name);
  if (named || overhead.count(name) > 0) return peak + At(overhead, name);
  return ExpectedWaiting(spec, name, unnamed);
}

model::ResourceList ExpectedRequests(const core::PodSpec& spec) {
  std::set<std::string> names;
  for (const Amount& amount : kAmounts) names.insert(amount.resource);
  model::ResourceList list;
  for (const std::string& name : names) {
    bool named = false;
    int64_t total = Peak(spec, name, 0, named);
    const bool hugepages = absl::StartsWith(name, "hugepages-");
    if (hugepages || name == "cpu" || name == "memory") {
      const Amounts requests = ToAmounts(spec.resources().requests());
      const Amounts limits = ToAmounts(spec.resources().limits());
      if (requests.count(name) > 0) {
        total = requests.at(name);
      } else if (limits.count(name) > 0 && (hugepages || !named)) {
        total = limits.at(name);
      }
    }
    total += At(ToAmounts(spec.overhead()), name);
    if (total != 0) list.emplace_back(name, total);
  }
  return list;
}

// Devices can be aligned to NUMA nodes for every pod, the rest for guaranteed ones.
std::vector<model::ContainerRequests> ExpectedContainers(const core::Pod& pod) {
  using Role = model::ContainerRequests::Role;
  const core::PodSpec& spec = pod.spec();
  bool devices = false;
  std::vector<model::ContainerRequests> all;
  const auto add = [&](const core::Container& c, Role role) {
    model::ContainerRequests& container = all.emplace_back();
    container.role = role;
    const std::set<std::string> others = {"cpu", "memory", "ephemeral-storage", "pods"};
    for (const auto& [name, amount] : ContainerAmounts(c)) {
      container.requests.emplace_back(name, amount);
      const bool device = others.count(name) == 0 && !absl::StartsWith(name, "hugepages-");
      devices = devices || (device && amount > 0);
    }
  };
  for (const core::Container& c : spec.initcontainers()) {
    add(c, c.restartpolicy() == "Always" ? Role::kSidecar : Role::kInit);
  }
  for (const core::Container& c : spec.containers()) add(c, Role::kMain);
  const bool sum_says_it = all.size() <= 1 && spec.overhead().empty() &&
                           spec.resources().requests().empty() && spec.resources().limits().empty();
  if (sum_says_it || (!devices && pod.status().qosclass() != "Guaranteed")) all.clear();
  return all;
}

model::SelectorOperator Operator(const std::string& text) {
  const std::map<std::string, model::SelectorOperator> table = {
      {"In", model::SelectorOperator::kIn},
      {"NotIn", model::SelectorOperator::kNotIn},
      {"Exists", model::SelectorOperator::kExists},
      {"DoesNotExist", model::SelectorOperator::kDoesNotExist},
      {"Gt", model::SelectorOperator::kGt},
      {"Lt", model::SelectorOperator::kLt}};
  return table.at(text);
}

template <typename Message>
model::SelectorRequirement ToRequirement(const Message& message) {
  return {message.key(),
          Operator(message.operator_()),
          {message.values().begin(), message.values().end()}};
}

model::StringMap ToMap(const google::protobuf::Map<std::string, std::string>& map) {
  model::StringMap out;
  for (const auto& [key, value] : map) out.Set(key, value);
  return out;
}

model::LabelSelector ToSelector(const core::LabelSelector& selector) {
  model::LabelSelector out;
  out.none = false;
  for (const auto& [key, value] : ToMap(selector.matchlabels())) {
    out.requirements.push_back({key, model::SelectorOperator::kIn, {value}});
  }
  for (const auto& r : selector.matchexpressions()) out.requirements.push_back(ToRequirement(r));
  return out;
}

void AddKeys(const google::protobuf::RepeatedPtrField<std::string>& keys,
             model::SelectorOperator op, const model::StringMap& labels,
             model::LabelSelector& selector) {
  if (selector.none) return;
  for (const std::string& key : keys) {
    if (!labels.Has(key)) continue;
    const model::SelectorRequirement requirement{key, op, {std::string(labels.Get(key))}};
    auto& all = selector.requirements;
    if (std::count(all.begin(), all.end(), requirement) == 0) all.push_back(requirement);
  }
}

model::PodAffinityTerm ToTerm(const core::PodAffinityTerm& term, int32_t weight,
                              const model::StringMap& labels) {
  model::PodAffinityTerm out;
  if (term.has_labelselector()) out.selector = ToSelector(term.labelselector());
  AddKeys(term.matchlabelkeys(), model::SelectorOperator::kIn, labels, out.selector);
  AddKeys(term.mismatchlabelkeys(), model::SelectorOperator::kNotIn, labels, out.selector);
  out.namespaces = {term.namespaces().begin(), term.namespaces().end()};
  if (term.has_namespaceselector()) out.namespace_selector = ToSelector(term.namespaceselector());
  out.topology_key = term.topologykey();
  out.weight = weight;
  return out;
}

std::vector<model::PodAffinityTerm> ToTerms(const core::PodAffinity& affinity,
                                            const model::StringMap& labels) {
  std::vector<model::PodAffinityTerm> out;
  for (const auto& term : affinity.required()) out.push_back(ToTerm(term, 0, labels));
  for (const auto& weighted : affinity.preferred()) {
    out.push_back(ToTerm(weighted.podaffinityterm(), weighted.weight(), labels));
  }
  return out;
}

model::NodeSelectorTerm ToNodeTerm(const core::NodeSelectorTerm& term) {
  model::NodeSelectorTerm out;
  for (const auto& r : term.matchexpressions()) out.match_expressions.push_back(ToRequirement(r));
  for (const auto& r : term.matchfields()) out.match_fields.push_back(ToRequirement(r));
  return out;
}

model::TaintEffect Effect(const std::string& text) {
  return text == "NoExecute"          ? model::TaintEffect::kNoExecute
         : text == "PreferNoSchedule" ? model::TaintEffect::kPreferNoSchedule
                                      : model::TaintEffect::kNoSchedule;
}

template <typename Set, typename Reference>
void AddConfigMap(const Reference& reference, Set& out) {
  if (!reference.optional() && !reference.localobjectreference().name().empty()) {
    out.insert(reference.localobjectreference().name());
  }
}

void AddPortsAndMaps(const core::Container& container, bool holds_ports, bool host_network,
                     std::set<std::tuple<int, std::string, std::string>>& ports,
                     std::set<std::string>& maps) {
  for (const auto& port : container.ports()) {
    int number = port.hostport();
    if (number == 0 && host_network) number = port.containerport();
    if (number != 0 && holds_ports) {
      ports.emplace(number, port.has_protocol() ? port.protocol() : "TCP", port.hostip());
    }
  }
  for (const auto& env : container.env()) {
    if (env.has_valuefrom()) AddConfigMap(env.valuefrom().configmapkeyref(), maps);
  }
  for (const auto& from : container.envfrom()) AddConfigMap(from.configmapref(), maps);
}

using Kind = model::InlineDisk::Kind;
using Disk = std::tuple<Kind, std::string, std::vector<std::string>, bool>;

void AddDisk(const core::VolumeSource& source, std::set<Disk>& disks) {
  if (source.has_gcepersistentdisk()) {
    const auto& disk = source.gcepersistentdisk();
    disks.emplace(Kind::kGcePersistentDisk, disk.pdname(), std::vector<std::string>(),
                  disk.readonly());
  }
  if (source.has_awselasticblockstore()) {
    const auto& disk = source.awselasticblockstore();
    disks.emplace(Kind::kAwsElasticBlockStore, disk.volumeid(), std::vector<std::string>(),
                  disk.readonly());
  }
  if (source.has_iscsi()) {
    disks.emplace(Kind::kIscsi, source.iscsi().iqn(), std::vector<std::string>(),
                  source.iscsi().readonly());
  }
  if (source.has_rbd()) {
    const core::RBDVolumeSource& rbd = source.rbd();
    const std::set<std::string> monitors(rbd.monitors().begin(), rbd.monitors().end());
    disks.emplace(Kind::kRbd, (rbd.pool() == "" ? "rbd" : rbd.pool()) + "/" + rbd.image(),
                  std::vector<std::string>(monitors.begin(), monitors.end()), rbd.readonly());
  }
}

void AddImage(const std::string& image, std::vector<std::string>& out) {
  if (image.empty()) return;
  const auto last = [&](char c) { return static_cast<int64_t>(image.rfind(c)); };  // -1: none
  out.push_back(last(':') <= last('/') ? image + ":latest" : image);
}

model::PodImages ExpectedImages(const core::PodSpec& spec) {
  model::PodImages out;
  for (const auto& c : spec.initcontainers()) AddImage(c.image(), out.names);
  for (const auto& c : spec.containers()) AddImage(c.image(), out.names);
  for (const auto& v : spec.volumes()) AddImage(v.volumesource().image().reference(), out.names);
  out.containers = spec.initcontainers_size() + spec.containers_size();
  return out;
}

void SetVolumes(const core::PodSpec& spec, model::PodSpec& out) {
  std::set<std::pair<std::string, bool>> claims;  // with whether they are ephemeral
  std::set<Disk> disks;
  for (const auto& volume : spec.volumes()) {
    const core::VolumeSource& source = volume.volumesource();
    if (source.has_persistentvolumeclaim()) {
      claims.emplace(source.persistentvolumeclaim().claimname(), false);
    }
    if (source.has_ephemeral()) claims.emplace(volume.name(), true);
    AddDisk(source, disks);
  }
  for (const auto& [name, ephemeral] : claims) out.volume_claims.push_back({name, ephemeral});
  for (const auto& [kind, id, monitors, read_only] : disks) {
    out.inline_disks.push_back({kind, id, monitors, read_only});
  }
}

void SetSets(const core::PodSpec& spec, model::PodSpec& out) {
  std::set<std::tuple<int, std::string, std::string>> ports;
  std::set<std::string> maps;
  for (const auto& c : spec.containers()) AddPortsAndMaps(c, true, spec.hostnetwork(), ports, maps);
  for (const auto& c : spec.initcontainers()) {
    AddPortsAndMaps(c, c.restartpolicy() == "Always", spec.hostnetwork(), ports, maps);
  }
  for (const auto& volume : spec.volumes()) {
    const core::VolumeSource& source = volume.volumesource();
    if (source.has_configmap()) AddConfigMap(source.configmap(), maps);
    for (const auto& s : source.projected().sources()) AddConfigMap(s.configmap(), maps);
  }
  for (const auto& [number, protocol, ip] : ports) out.host_ports.push_back({number, protocol, ip});
  out.config_map_names = {maps.begin(), maps.end()};
  for (const auto& claim : spec.resourceclaims()) {
    if (claim.has_resourceclaimname()) {
      out.resource_claims.push_back(claim.resourceclaimname());
    } else {
      out.claim_templates.push_back(claim.resourceclaimtemplatename());
    }
  }
}

model::ObjectMeta ToMeta(const core::ObjectMeta& meta) {
  model::ObjectMeta out;
  out.ns = meta.namespace_();
  out.name = meta.name();
  out.uid = meta.uid();
  out.resource_version = meta.resourceversion();
  out.generation = meta.generation();
  out.creation = absl::FromUnixSeconds(meta.creationtimestamp().seconds());
  if (meta.has_deletiontimestamp()) {
    out.deletion = absl::FromUnixSeconds(meta.deletiontimestamp().seconds());
  }
  out.labels = ToMap(meta.labels());
  for (const auto& [key, value] : ToMap(meta.annotations())) {
    if (absl::StartsWith(key, "kai.scheduler/")) out.annotations.Set(key, value);
  }
  for (const auto& o : meta.ownerreferences()) {
    out.owners.push_back({o.apiversion(), o.kind(), o.name(), o.uid(), o.controller()});
  }
  return out;
}

void SetAffinity(const core::Pod& pod, const model::StringMap& labels, model::PodSpec& out) {
  const core::Affinity& affinity = pod.spec().affinity();
  out.has_required_node_affinity = affinity.nodeaffinity().has_required();
  for (const auto& term : affinity.nodeaffinity().required().nodeselectorterms()) {
    out.required_node_terms.push_back(ToNodeTerm(term));
  }
  for (const auto& term : affinity.nodeaffinity().preferred()) {
    out.preferred_node_terms.push_back({term.weight(), ToNodeTerm(term.preference())});
  }
  out.pod_affinity = ToTerms(affinity.podaffinity(), labels);
  out.pod_anti_affinity = ToTerms(affinity.podantiaffinity(), labels);
  for (const auto& c : pod.spec().topologyspreadconstraints()) {
    model::TopologySpreadConstraint& constraint = out.topology_spread.emplace_back();
    constraint.max_skew = c.maxskew();
    constraint.topology_key = c.topologykey();
    constraint.do_not_schedule = c.whenunsatisfiable() == "DoNotSchedule";
    if (c.has_labelselector()) constraint.selector = ToSelector(c.labelselector());
    AddKeys(c.matchlabelkeys(), model::SelectorOperator::kIn, labels, constraint.selector);
    if (c.has_mindomains()) constraint.min_domains = c.mindomains();
    constraint.honor_node_affinity = c.nodeaffinitypolicy() != "Ignore";
    constraint.honor_node_taints = c.nodetaintspolicy() == "Honor";
  }
  const bool sees =
      !out.pod_affinity.empty() || !out.pod_anti_affinity.empty() || !out.topology_spread.empty();
  if (sees) out.labels_for_affinity = labels;
}

}  // namespace

namespace {

template <typename Containers>
bool RestartsAll(const Containers& containers) {
  for (const core::Container& container : containers) {
    for (const core::ContainerRestartRule& rule : container.restartpolicyrules()) {
      if (rule.action() == "RestartAllContainers") return true;
    }
  }
  return false;
}

}  // namespace

model::Pod ExpectedPod(const core::Pod& pod) {
  model::Pod out;
  out.meta = ToMeta(pod.metadata());
  const core::PodSpec& spec = pod.spec();
  out.spec.ns = out.meta.ns;
  out.spec.requests = ExpectedRequests(spec);
  const int64_t mib = int64_t{1} << 20;
  const int64_t waiting[] = {ExpectedWaiting(spec, "cpu", 100),
                             ExpectedWaiting(spec, "memory", 200 * mib)};
  const int64_t held[] = {ExpectedHeld(spec, "cpu", 100), ExpectedHeld(spec, "memory", 200 * mib)};
  out.spec.scoring_requests = {held[0], held[1], waiting[0] == held[0] ? -1 : waiting[0],
                               waiting[1] == held[1] ? -1 : waiting[1]};
  out.images = ExpectedImages(spec);
  out.spec.guaranteed = pod.status().qosclass() == "Guaranteed";
  out.spec.containers = ExpectedContainers(pod);
  const bool apart = spec.hostnetwork() && spec.has_hostusers() && !spec.hostusers();
  out.spec.required_features =
      (RestartsAll(spec.containers()) || RestartsAll(spec.initcontainers()) ? 1 : 0) |
      (apart ? 2 : 0);
  out.spec.node_selector = ToMap(spec.nodeselector());
  SetAffinity(pod, out.meta.labels, out.spec);
  SetSets(spec, out.spec);
  SetVolumes(spec, out.spec);
  for (const auto& t : spec.tolerations()) {
    model::Toleration& toleration = out.spec.tolerations.emplace_back();
    toleration.key = t.key();
    toleration.exists = t.operator_() == "Exists";
    toleration.value = t.value();
    if (t.has_effect()) toleration.effect = Effect(t.effect());
  }
  out.scheduler_name = spec.has_schedulername() ? spec.schedulername() : "default-scheduler";
  out.node_name = spec.nodename();
  out.priority_class_name = spec.priorityclassname();
  if (spec.has_priority()) out.priority = spec.priority();
  out.never_preempts = spec.preemptionpolicy() == "Never";
  out.active_deadline_s = spec.activedeadlineseconds();
  out.runs_to_end = spec.restartpolicy() == "OnFailure" || spec.restartpolicy() == "Never";
  for (const auto& gate : spec.schedulinggates()) out.scheduling_gates.push_back(gate.name());
  out.scheduling_group = spec.schedulinggroup().podgroupname();
  const std::map<std::string, model::PodPhase> phases = {
      {"", model::PodPhase::kPending},        {"Pending", model::PodPhase::kPending},
      {"Running", model::PodPhase::kRunning}, {"Succeeded", model::PodPhase::kSucceeded},
      {"Failed", model::PodPhase::kFailed},   {"Unknown", model::PodPhase::kUnknown}};
  out.phase = phases.at(pod.status().phase());
  for (const auto& c : pod.status().conditions()) {
    if (c.type() == "PodScheduled") out.scheduled = {c.status(), c.reason()};
    if (c.type() == "Ready") out.ready = c.status() == "True";
  }
  out.nominated_node_name = pod.status().nominatednodename();
  if (pod.status().has_starttime()) {
    out.start_time = absl::FromUnixSeconds(pod.status().starttime().seconds());
  }
  return out;
}

model::Node ExpectedNode(const core::Node& node) {
  model::Node out;
  out.meta = ToMeta(node.metadata());
  out.provider_id = node.spec().providerid();
  out.unschedulable = node.spec().unschedulable();
  for (const auto& t : node.spec().taints()) {
    out.taints.push_back({t.key(), t.value(), Effect(t.effect())});
  }
  const bool own = node.status().allocatable_size() > 0;
  for (const auto& [name, amount] :
       ToAmounts(own ? node.status().allocatable() : node.status().capacity())) {
    out.allocatable.emplace_back(name, amount);
  }
  out.ready = node.status().conditions_size() == 0;
  for (const auto& c : node.status().conditions()) {
    if (c.type() == "Ready" && c.status() == "True") out.ready = true;
    if (absl::EndsWith(c.type(), "Pressure") && c.status() == "True") {
      out.bad_conditions.push_back(c.type());
    }
  }
  std::sort(out.bad_conditions.begin(), out.bad_conditions.end());
  for (const std::string& feature : node.status().declaredfeatures()) {
    if (feature == "RestartAllContainersOnContainerExits") out.declared_features |= 1;
    if (feature == "UserNamespacesHostNetworkSupport") out.declared_features |= 2;
  }
  std::map<std::string, int64_t> images;
  for (const auto& image : node.status().images()) {
    for (const std::string& name : image.names()) images.emplace(name, image.sizebytes());
  }
  images.erase("");
  for (const auto& [name, size] : images) out.images.push_back({name, size});
  return out;
}

namespace {

void ExpectSameMeta(const model::ObjectMeta& got, const model::ObjectMeta& want) {
  EXPECT_EQ(got.ns, want.ns);
  EXPECT_EQ(got.name, want.name);
  EXPECT_EQ(got.uid, want.uid);
  EXPECT_EQ(got.resource_version, want.resource_version);
  EXPECT_EQ(got.generation, want.generation);
  EXPECT_EQ(got.creation, want.creation);
  EXPECT_EQ(got.deletion, want.deletion);
  EXPECT_TRUE(got.labels == want.labels);
  EXPECT_TRUE(got.annotations == want.annotations);
  EXPECT_TRUE(got.owners == want.owners);
}

}  // namespace

void ExpectSamePod(const model::Pod& got, const model::Pod& want) {
  ExpectSameMeta(got.meta, want.meta);
  const model::PodSpec& a = got.spec;
  const model::PodSpec& b = want.spec;
  EXPECT_EQ(a.requests, b.requests);
  EXPECT_EQ(a.scoring_requests.cpu_milli, b.scoring_requests.cpu_milli);
  EXPECT_EQ(a.scoring_requests.memory_bytes, b.scoring_requests.memory_bytes);
  EXPECT_EQ(a.scoring_requests.WaitingCpu(), b.scoring_requests.WaitingCpu());
  EXPECT_EQ(a.scoring_requests.WaitingMemory(), b.scoring_requests.WaitingMemory());
  EXPECT_EQ(a.guaranteed, b.guaranteed);
  EXPECT_TRUE(a.containers == b.containers);
  EXPECT_TRUE(a.node_selector == b.node_selector);
  EXPECT_EQ(a.has_required_node_affinity, b.has_required_node_affinity);
  EXPECT_TRUE(a.required_node_terms == b.required_node_terms);
  EXPECT_TRUE(a.preferred_node_terms == b.preferred_node_terms);
  EXPECT_TRUE(a.tolerations == b.tolerations);
  EXPECT_TRUE(a.pod_affinity == b.pod_affinity);
  EXPECT_TRUE(a.pod_anti_affinity == b.pod_anti_affinity);
  EXPECT_TRUE(a.topology_spread == b.topology_spread);
  EXPECT_TRUE(a.host_ports == b.host_ports);
  EXPECT_EQ(int{a.required_features}, int{b.required_features});
  EXPECT_TRUE(a.volume_claims == b.volume_claims);
  EXPECT_TRUE(a.inline_disks == b.inline_disks);
  EXPECT_EQ(a.config_map_names, b.config_map_names);
  EXPECT_EQ(a.resource_claims, b.resource_claims);
  EXPECT_EQ(a.claim_templates, b.claim_templates);
  EXPECT_TRUE(a.labels_for_affinity == b.labels_for_affinity);
  EXPECT_TRUE(a == b);
  EXPECT_EQ(got.images.names, want.images.names);
  EXPECT_EQ(got.images.containers, want.images.containers);
  EXPECT_EQ(got.scheduler_name, want.scheduler_name);
  EXPECT_EQ(got.node_name, want.node_name);
  EXPECT_EQ(got.nominated_node_name, want.nominated_node_name);
  EXPECT_EQ(got.priority_class_name, want.priority_class_name);
  EXPECT_EQ(got.priority, want.priority);
  EXPECT_EQ(got.never_preempts, want.never_preempts);
  EXPECT_EQ(got.start_time, want.start_time);
  EXPECT_EQ(got.scheduling_gates, want.scheduling_gates);
  EXPECT_EQ(got.scheduling_group, want.scheduling_group);
  EXPECT_EQ(got.active_deadline_s, want.active_deadline_s);
  EXPECT_EQ(got.runs_to_end, want.runs_to_end);
  EXPECT_EQ(got.ready, want.ready);
  EXPECT_EQ(got.phase, want.phase);
  EXPECT_EQ(got.scheduled.status, want.scheduled.status);
  EXPECT_EQ(got.scheduled.reason, want.scheduled.reason);
  EXPECT_EQ(got.invalid, want.invalid);
}

void ExpectSameNode(const model::Node& got, const model::Node& want) {
  ExpectSameMeta(got.meta, want.meta);
  EXPECT_EQ(got.provider_id, want.provider_id);
  EXPECT_EQ(got.allocatable, want.allocatable);
  EXPECT_TRUE(got.taints == want.taints);
  EXPECT_EQ(got.unschedulable, want.unschedulable);
  EXPECT_EQ(got.ready, want.ready);
  EXPECT_EQ(got.bad_conditions, want.bad_conditions);
  EXPECT_EQ(int{got.declared_features}, int{want.declared_features});
  EXPECT_TRUE(got.images == want.images);
  EXPECT_EQ(got.invalid, want.invalid);
}

}  // namespace fairlead::kube::testing
