#include "kube/codec/testing/random_core.h"

#include "kube/codec/testing/amounts.h"

namespace fairlead::kube::testing {
namespace {

template <size_t N>
std::string Pick(Random& random, const char* const (&choices)[N]) {
  return choices[random.Below(N)];
}

constexpr const char* kKeys[] = {"app", "team", "topology.kubernetes.io/zone", "gpu-model", "x"};
constexpr const char* kValues[] = {"", "a", "b", "a-longer-value-than-fits-in-place", "\xC3\xA4"};
constexpr const char* kImages[] = {"registry.example/image:1",
                                   "nginx",
                                   "localhost:5000/nginx",
                                   "localhost:5000/nginx:2",
                                   "app@sha256:0123456789abcdef",
                                   "a/b:c/d",
                                   ""};
constexpr const char* kEffects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute"};

void FillMeta(Random& random, core::ObjectMeta& meta) {
  meta.set_name("object-" + std::to_string(random.Below(1000)));
  meta.set_uid("3c5e1f0a-0000-4000-8000-" + std::to_string(random.Below(1000000)));
  meta.set_resourceversion(std::to_string(random.Below(1u << 30)));
  meta.set_generation(static_cast<int64_t>(random.Below(5)));
  meta.mutable_creationtimestamp()->set_seconds(1760000000 + static_cast<int64_t>(random.Below(9)));
  if (random.OneIn(4)) meta.mutable_deletiontimestamp()->set_seconds(1760000100);
  for (size_t i = random.Below(4); i > 0; --i) {
    (*meta.mutable_labels())[Pick(random, kKeys)] = Pick(random, kValues);
  }
  if (random.OneIn(2)) (*meta.mutable_annotations())["kai.scheduler/topology"] = "t1";
  if (random.OneIn(2))
    (*meta.mutable_annotations())["unrelated.example/long"] = std::string(300, 'x');
  if (random.OneIn(2)) {
    core::OwnerReference* owner = meta.add_ownerreferences();
    owner->set_apiversion("batch/v1");
    owner->set_kind("Job");
    owner->set_name("train");
    owner->set_uid("u-1");
    if (random.OneIn(2)) owner->set_controller(true);
  }
  if (random.OneIn(2)) {
    core::ManagedFieldsEntry* entry = meta.add_managedfields();
    entry->set_manager("kubelet");
    entry->set_fieldsv1("{\"f:status\":{}}");
  }
  if (random.OneIn(3)) meta.set_future64(77);
  if (random.OneIn(3)) meta.set_future32(78);
}

using QuantityMap = google::protobuf::Map<std::string, core::Quantity>;

void FillAmounts(Random& random, size_t one_in, QuantityMap& map) {
  for (const Amount& amount : kAmounts) {
    if (random.OneIn(one_in)) map[amount.resource].set_string(amount.text);
  }
}

void FillSelector(Random& random, core::LabelSelector& selector) {
  for (size_t i = random.Below(3); i > 0; --i) {
    (*selector.mutable_matchlabels())[Pick(random, kKeys)] = Pick(random, kValues);
  }
  if (random.OneIn(2)) {
    core::LabelSelectorRequirement* requirement = selector.add_matchexpressions();
    requirement->set_key(Pick(random, kKeys));
    requirement->set_operator_(Pick(random, {"In", "NotIn", "Exists", "DoesNotExist"}));
    for (size_t i = random.Below(3); i > 0; --i) requirement->add_values(Pick(random, kValues));
  }
}

void FillNodeTerm(Random& random, core::NodeSelectorTerm& term) {
  for (size_t i = random.Below(3); i > 0; --i) {
    core::NodeSelectorRequirement* requirement = term.add_matchexpressions();
    requirement->set_key(Pick(random, kKeys));
    requirement->set_operator_(Pick(random, {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"}));
    requirement->add_values("5");
  }
  if (random.OneIn(3)) {
    core::NodeSelectorRequirement* requirement = term.add_matchfields();
    requirement->set_key("metadata.name");
    requirement->set_operator_("In");
    requirement->add_values("node-1");
  }
}

void FillPodTerm(Random& random, core::PodAffinityTerm& term) {
  if (!random.OneIn(5)) FillSelector(random, *term.mutable_labelselector());
  if (random.OneIn(3)) term.add_namespaces("other");
  term.set_topologykey("topology.kubernetes.io/zone");
  if (random.OneIn(3)) FillSelector(random, *term.mutable_namespaceselector());
  if (random.OneIn(3)) term.add_matchlabelkeys(Pick(random, kKeys));
  if (random.OneIn(3)) term.add_mismatchlabelkeys(Pick(random, kKeys));
}

void FillPodAffinity(Random& random, core::PodAffinity& affinity) {
  for (size_t i = random.Below(3); i > 0; --i) FillPodTerm(random, *affinity.add_required());
  for (size_t i = random.Below(3); i > 0; --i) {
    core::WeightedPodAffinityTerm* weighted = affinity.add_preferred();
    weighted->set_weight(1 + static_cast<int32_t>(random.Below(100)));
    FillPodTerm(random, *weighted->mutable_podaffinityterm());
  }
}

void FillAffinity(Random& random, core::Affinity& affinity) {
  if (random.OneIn(2)) {
    core::NodeAffinity* node = affinity.mutable_nodeaffinity();
    if (random.OneIn(2)) {
      for (size_t i = random.Below(3); i > 0; --i) {
        FillNodeTerm(random, *node->mutable_required()->add_nodeselectorterms());
      }
    }
    for (size_t i = random.Below(2); i > 0; --i) {
      core::PreferredSchedulingTerm* term = node->add_preferred();
      term->set_weight(1 + static_cast<int32_t>(random.Below(100)));
      FillNodeTerm(random, *term->mutable_preference());
    }
  }
  if (random.OneIn(2)) FillPodAffinity(random, *affinity.mutable_podaffinity());
  if (random.OneIn(2)) FillPodAffinity(random, *affinity.mutable_podantiaffinity());
}

void FillSpread(Random& random, core::TopologySpreadConstraint& constraint) {
  constraint.set_maxskew(1 + static_cast<int32_t>(random.Below(3)));
  constraint.set_topologykey("topology.kubernetes.io/zone");
  constraint.set_whenunsatisfiable(Pick(random, {"DoNotSchedule", "ScheduleAnyway"}));
  if (!random.OneIn(4)) FillSelector(random, *constraint.mutable_labelselector());
  if (random.OneIn(3)) constraint.set_mindomains(2);
  if (random.OneIn(3)) constraint.set_nodeaffinitypolicy(Pick(random, {"Honor", "Ignore"}));
  if (random.OneIn(3)) constraint.set_nodetaintspolicy(Pick(random, {"Honor", "Ignore"}));
  if (random.OneIn(3)) constraint.add_matchlabelkeys(Pick(random, kKeys));
}

template <typename Reference>
void FillReference(Random& random, Reference& reference) {
  reference.mutable_localobjectreference()->set_name("map-" + std::to_string(random.Below(4)));
  if (random.OneIn(2)) reference.set_optional(random.OneIn(2));
}

void FillContainer(Random& random, bool init, core::Container& container) {
  container.set_name("main");
  if (!random.OneIn(8)) container.set_image(Pick(random, kImages));
  container.add_command("run");
  FillAmounts(random, 6, *container.mutable_resources()->mutable_requests());
  FillAmounts(random, 8, *container.mutable_resources()->mutable_limits());
  if (init && random.OneIn(2)) container.set_restartpolicy(random.OneIn(4) ? "Never" : "Always");
  if (random.OneIn(5)) {
    container.add_restartpolicyrules()->set_action(random.OneIn(2) ? "Restart"
                                                                   : "RestartAllContainers");
  }
  if (random.OneIn(3)) {
    core::ContainerPort* port = container.add_ports();
    port->set_containerport(8080);
    if (random.OneIn(2)) port->set_hostport(9000 + static_cast<int32_t>(random.Below(3)));
    if (random.OneIn(2)) port->set_protocol(Pick(random, {"TCP", "UDP"}));
    if (random.OneIn(3)) port->set_hostip("10.0.0.1");
  }
  if (random.OneIn(3)) {
    core::EnvVar* env = container.add_env();
    env->set_name("A");
    if (random.OneIn(2)) {
      env->set_value("1");
    } else {
      FillReference(random, *env->mutable_valuefrom()->mutable_configmapkeyref());
    }
  }
  if (random.OneIn(4)) FillReference(random, *container.add_envfrom()->mutable_configmapref());
}

// Fields that no decoder reads have values of a kind that another message reads.
void FillDisk(Random& random, core::VolumeSource& source) {
  const std::string name = "disk-" + std::to_string(random.Below(3));
  const bool read_only = random.OneIn(2);
  switch (random.Below(4)) {
    case 0:
      source.mutable_gcepersistentdisk()->set_pdname(name);
      if (random.OneIn(2)) source.mutable_gcepersistentdisk()->set_partition(1);
      if (read_only) source.mutable_gcepersistentdisk()->set_readonly(true);
      break;
    case 1:
      source.mutable_awselasticblockstore()->set_volumeid(name);
      if (random.OneIn(2)) source.mutable_awselasticblockstore()->set_fstype("ext4");
      if (random.OneIn(2)) source.mutable_awselasticblockstore()->set_readonly(read_only);
      break;
    case 2:
      source.mutable_iscsi()->set_targetportal("10.0.0.1");
      source.mutable_iscsi()->set_iqn(name);
      if (random.OneIn(2)) source.mutable_iscsi()->set_lun(4);
      if (random.OneIn(2)) source.mutable_iscsi()->add_portals("10.0.0.2");
      if (read_only) source.mutable_iscsi()->set_readonly(true);
      break;
    default:
      for (size_t i = random.Below(4); i > 0; --i) {
        source.mutable_rbd()->add_monitors("m-" + std::to_string(random.Below(3)));
      }
      source.mutable_rbd()->set_image(name);
      if (random.OneIn(2)) source.mutable_rbd()->set_pool(Pick(random, {"", "rbd", "fast"}));
      if (random.OneIn(2)) source.mutable_rbd()->set_user("admin");
      if (random.OneIn(2)) source.mutable_rbd()->mutable_secretref()->set_name("s");
      if (read_only) source.mutable_rbd()->set_readonly(true);
  }
}

void FillVolumes(Random& random, core::PodSpec& spec) {
  for (size_t i = random.Below(6); i > 0; --i) {
    core::Volume* volume = spec.add_volumes();
    volume->set_name("claim-" + std::to_string(random.Below(6)));
    core::VolumeSource* source = volume->mutable_volumesource();
    if (random.OneIn(3)) {
      source->mutable_persistentvolumeclaim()->set_claimname("claim-" +
                                                             std::to_string(random.Below(3)));
    } else if (random.OneIn(3)) {
      source->mutable_ephemeral();
    } else if (random.OneIn(4)) {
      source->mutable_image()->set_pullpolicy("Always");
      if (!random.OneIn(4)) source->mutable_image()->set_reference(Pick(random, kImages));
    } else if (random.OneIn(2)) {
      FillDisk(random, *source);
    } else if (random.OneIn(2)) {
      FillReference(random, *source->mutable_configmap());
    } else {
      FillReference(random, *source->mutable_projected()->add_sources()->mutable_configmap());
    }
  }
}

void FillToleration(Random& random, core::Toleration& toleration) {
  if (!random.OneIn(4)) toleration.set_key(Pick(random, kKeys));
  if (!toleration.has_key() || random.OneIn(2)) {
    toleration.set_operator_("Exists");
  } else {
    if (random.OneIn(2)) toleration.set_operator_("Equal");
    toleration.set_value(Pick(random, kValues));
  }
  if (random.OneIn(2)) toleration.set_effect(Pick(random, kEffects));
  if (random.OneIn(4)) toleration.set_tolerationseconds(300);
}

void FillPodSpec(Random& random, core::PodSpec& spec) {
  for (size_t i = 1 + random.Below(3); i > 0; --i) {
    FillContainer(random, /*init=*/false, *spec.add_containers());
  }
  for (size_t i = random.Below(4); i > 0; --i) {
    FillContainer(random, /*init=*/true, *spec.add_initcontainers());
  }
  FillVolumes(random, spec);
  for (size_t i = random.Below(3); i > 0; --i) {
    (*spec.mutable_nodeselector())[Pick(random, kKeys)] = Pick(random, kValues);
  }
  if (random.OneIn(4)) spec.set_activedeadlineseconds(static_cast<int64_t>(random.Below(90'000)));
  if (random.OneIn(2)) spec.set_nodename("node-7");
  if (random.OneIn(4)) spec.set_hostnetwork(true);
  if (random.OneIn(3)) spec.set_hostusers(random.OneIn(3));
  if (random.OneIn(2)) FillAffinity(random, *spec.mutable_affinity());
  if (!random.OneIn(4)) spec.set_schedulername("fairlead");
  for (size_t i = random.Below(3); i > 0; --i) FillToleration(random, *spec.add_tolerations());
  if (random.OneIn(2)) spec.set_priorityclassname("train");
  if (random.OneIn(2)) spec.set_priority(static_cast<int32_t>(random.Below(200)) - 100);
  if (random.OneIn(2)) {
    spec.set_preemptionpolicy(Pick(random, {"Never", "PreemptLowerPriority"}));
  }
  if (random.OneIn(3)) FillAmounts(random, 6, *spec.mutable_overhead());
  for (size_t i = random.Below(3); i > 0; --i) {
    FillSpread(random, *spec.add_topologyspreadconstraints());
  }
  if (random.OneIn(4)) spec.add_schedulinggates()->set_name("example.com/wait");
  if (random.OneIn(4)) {
    core::PodResourceClaim* claim = spec.add_resourceclaims();
    claim->set_name("gpu");
    if (random.OneIn(2)) {
      claim->set_resourceclaimname("claim");
    } else {
      claim->set_resourceclaimtemplatename("template");
    }
  }
  if (random.OneIn(3)) {
    FillAmounts(random, 5, *spec.mutable_resources()->mutable_requests());
    FillAmounts(random, 5, *spec.mutable_resources()->mutable_limits());
  }
  if (random.OneIn(4)) spec.mutable_schedulinggroup()->set_podgroupname("group");
}

}  // namespace

core::Pod RandomPod(Random& random) {
  core::Pod pod;
  FillMeta(random, *pod.mutable_metadata());
  pod.mutable_metadata()->set_namespace_("team-a");
  FillPodSpec(random, *pod.mutable_spec());
  core::PodStatus* status = pod.mutable_status();
  if (!random.OneIn(4)) {
    status->set_phase(Pick(random, {"Pending", "Running", "Succeeded", "Failed", "Unknown"}));
  }
  if (random.OneIn(2)) {
    core::PodCondition* ready = status->add_conditions();
    ready->set_type("Ready");
    ready->set_status(Pick(random, {"True", "False", ""}));
    core::PodCondition* condition = status->add_conditions();
    condition->set_type("PodScheduled");
    condition->set_status("False");
    condition->set_reason("Unschedulable");
    condition->set_message("0/3 nodes");
  }
  if (random.OneIn(4)) status->set_nominatednodename("node-9");
  if (random.OneIn(2)) status->mutable_starttime()->set_seconds(1760000050);
  if (random.OneIn(2))
    status->set_qosclass(Pick(random, {"Guaranteed", "Burstable", "BestEffort"}));
  return pod;
}

core::Node RandomNode(Random& random) {
  core::Node node;
  FillMeta(random, *node.mutable_metadata());
  core::NodeSpec* spec = node.mutable_spec();
  if (random.OneIn(2)) spec->set_providerid("kwok://node");
  if (random.OneIn(3)) spec->set_unschedulable(true);
  for (size_t i = random.Below(3); i > 0; --i) {
    core::Taint* taint = spec->add_taints();
    taint->set_key(Pick(random, kKeys));
    if (random.OneIn(2)) taint->set_value(Pick(random, kValues));
    taint->set_effect(Pick(random, kEffects));
  }
  core::NodeStatus* status = node.mutable_status();
  FillAmounts(random, 2, *status->mutable_capacity());
  if (!random.OneIn(3)) FillAmounts(random, 2, *status->mutable_allocatable());
  for (const char* type : {"Ready", "PIDPressure", "MemoryPressure", "Other"}) {
    if (random.OneIn(3)) continue;
    core::NodeCondition* condition = status->add_conditions();
    condition->set_type(type);
    condition->set_status(Pick(random, {"True", "False", "Unknown"}));
  }
  for (size_t i = random.Below(4); i > 0; --i) {
    status->add_declaredfeatures(random.OneIn(3)   ? "RestartAllContainersOnContainerExits"
                                 : random.OneIn(2) ? "UserNamespacesHostNetworkSupport"
                                                   : "SomethingElse");
    core::ContainerImage* image = status->add_images();
    for (size_t name = random.Below(3); name > 0; --name) image->add_names(Pick(random, kImages));
    if (!random.OneIn(4)) image->set_sizebytes(static_cast<int64_t>(random.Below(1u << 30)));
  }
  return node;
}

std::string Envelope(const std::string& api_version, const std::string& kind,
                     const std::string& raw) {
  core::Unknown unknown;
  unknown.mutable_typemeta()->set_apiversion(api_version);
  unknown.mutable_typemeta()->set_kind(kind);
  unknown.set_raw(raw);
  unknown.set_contentencoding("");
  unknown.set_contenttype("");
  return std::string("k8s\0", 4) + unknown.SerializeAsString();
}

std::string Frame(const std::string& type, const std::string& enveloped) {
  core::WatchEvent event;
  event.set_type(type);
  event.mutable_object()->set_raw(enveloped);
  const std::string body = event.SerializeAsString();
  std::string frame;
  for (int shift = 24; shift >= 0; shift -= 8) {
    frame += static_cast<char>(body.size() >> shift & 0xFF);
  }
  return frame + body;
}

}  // namespace fairlead::kube::testing
