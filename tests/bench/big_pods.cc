#include "tests/bench/big_pods.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/json_writer.h"
#include "kube/codec/testing/core_subset.pb.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/kind.h"
#include "tests/bench/cluster.h"

namespace fairlead::bench {
namespace {

namespace wire = kube::testing::core;

constexpr int64_t kPodsOfAJob = 4;
constexpr int64_t kPodsOnANode = 20;

std::string Uid(absl::string_view kind, int64_t number) {
  const std::string digits = absl::StrCat(100'000'000'000 + number);
  return absl::StrCat(kind == "pod" ? "7f3c1d20" : "a91be044", "-5d1e-4c6b-9a57-", digits);
}

void SetQuantity(google::protobuf::Map<std::string, wire::Quantity>& map, const char* name,
                 const std::string& amount) {
  map[name].set_string(amount);
}

void FillMeta(wire::ObjectMeta& meta, absl::string_view kind, const std::string& name,
              int64_t number) {
  meta.set_name(name);
  meta.set_uid(Uid(kind, number));
  meta.set_resourceversion(absl::StrCat(1'000'000 + number));
  meta.set_generation(1);
  meta.mutable_creationtimestamp()->set_seconds(1'700'000'000 + number / 100);
  wire::ManagedFieldsEntry& manager = *meta.add_managedfields();
  manager.set_manager("kube-controller-manager");
  // Field paths of a pod template with its environment are about this long.
  manager.set_fieldsv1(std::string(650, 'f'));
  wire::ManagedFieldsEntry& kubelet = *meta.add_managedfields();
  kubelet.set_manager("kubelet");
  kubelet.set_fieldsv1(std::string(350, 'k'));
}

void FillContainer(wire::Container& container, int64_t number) {
  container.set_name("trainer");
  container.set_image("registry.example.com/research/trainer:2026.11.1");
  for (const char* word : {"python", "-m", "trainer", "--config=/etc/trainer/config.yaml"}) {
    container.add_command(word);
  }
  for (int i = 0; i < 8; ++i) {
    wire::EnvVar& variable = *container.add_env();
    variable.set_name(absl::StrCat("TRAINER_OPTION_", i));
    variable.set_value(absl::StrCat("value-of-option-", i, "-of-job-", number / kPodsOfAJob));
  }
  SetQuantity(*container.mutable_resources()->mutable_requests(), "cpu", "4");
  SetQuantity(*container.mutable_resources()->mutable_requests(), "memory", "16Gi");
  if (number % 5 < 2) {
    SetQuantity(*container.mutable_resources()->mutable_requests(), "nvidia.com/gpu", "1");
    SetQuantity(*container.mutable_resources()->mutable_limits(), "nvidia.com/gpu", "1");
  }
}

std::string GroupOf(int64_t number) { return absl::StrCat("pg-", Numbered("trainer", number)); }

std::string NamespaceOf(int64_t number) { return absl::StrCat("team-", number / kPodsOfAJob % 20); }

wire::Pod BigPod(int64_t number, bool groups) {
  const int64_t job = number / kPodsOfAJob;
  wire::Pod pod;
  wire::ObjectMeta& meta = *pod.mutable_metadata();
  FillMeta(meta, "pod", Numbered("trainer", number), number);
  meta.set_generatename("trainer-");
  meta.set_namespace_(NamespaceOf(number));
  auto& labels = *meta.mutable_labels();
  labels["app.kubernetes.io/name"] = "trainer";
  labels["batch.kubernetes.io/job-name"] = absl::StrCat("trainer-", job);
  labels["batch.kubernetes.io/controller-uid"] = Uid("job", job);
  labels["kai.scheduler/queue"] = absl::StrCat("team-", job % 20);
  auto& annotations = *meta.mutable_annotations();
  annotations["prometheus.io/scrape"] = "true";
  annotations["batch.kubernetes.io/job-completion-index"] = absl::StrCat(number % kPodsOfAJob);
  if (groups) annotations[model::kPodGroupAnnotation] = GroupOf(number);
  wire::OwnerReference& owner = *meta.add_ownerreferences();
  owner.set_apiversion("batch/v1");
  owner.set_kind("Job");
  owner.set_name(absl::StrCat("trainer-", job));
  owner.set_uid(Uid("job", job));
  owner.set_controller(true);

  wire::PodSpec& spec = *pod.mutable_spec();
  FillContainer(*spec.add_containers(), number);
  spec.set_schedulername("fairlead");
  spec.set_restartpolicy("Never");
  // Five per cent wait.
  if (number % 100 < 95) spec.set_nodename(Numbered("node", number / kPodsOnANode));
  (*spec.mutable_nodeselector())["kubernetes.io/arch"] = "amd64";
  wire::Volume& volume = *spec.add_volumes();
  volume.set_name("kube-api-access");
  volume.mutable_volumesource()
      ->mutable_projected()
      ->add_sources()
      ->mutable_configmap()
      ->mutable_localobjectreference()
      ->set_name("kube-root-ca.crt");
  for (const char* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    wire::Toleration& toleration = *spec.add_tolerations();
    toleration.set_key(key);
    toleration.set_operator_("Exists");
    toleration.set_effect("NoExecute");
    toleration.set_tolerationseconds(300);
  }
  wire::PodStatus& status = *pod.mutable_status();
  const bool runs = !spec.nodename().empty();
  status.set_phase(runs ? "Running" : "Pending");
  for (const char* type : {"PodScheduled", "Initialized", "ContainersReady", "Ready"}) {
    wire::PodCondition& condition = *status.add_conditions();
    condition.set_type(type);
    condition.set_status(runs ? "True" : "False");
    if (!runs) break;
  }
  return pod;
}

wire::Node BigNode(int64_t number) {
  wire::Node node;
  wire::ObjectMeta& meta = *node.mutable_metadata();
  const std::string name = Numbered("node", number);
  FillMeta(meta, "node", name, number);
  auto& labels = *meta.mutable_labels();
  labels["kubernetes.io/hostname"] = name;
  labels["kubernetes.io/arch"] = "amd64";
  labels["kubernetes.io/os"] = "linux";
  labels["topology.kubernetes.io/zone"] = absl::StrCat("zone-", number % 3);
  labels["node.kubernetes.io/instance-type"] = "p5.48xlarge";
  labels["nvidia.com/gpu.product"] = "NVIDIA-H100-80GB-HBM3";
  labels["nvidia.com/gpu.memory"] = "81559";
  labels["nvidia.com/gpu.count"] = "8";
  // Labels of feature discovery, most of which no pod selects.
  for (int i = 0; i < 40; ++i) {
    labels[absl::StrCat("feature.node.kubernetes.io/cpu-cpuid.FEATURE", i)] = "true";
  }
  (*meta.mutable_annotations())["volumes.kubernetes.io/controller-managed-attach-detach"] = "true";
  node.mutable_spec()->set_providerid(absl::StrCat("aws:///zone/i-0", number));
  wire::NodeStatus& status = *node.mutable_status();
  for (auto* amounts : {status.mutable_capacity(), status.mutable_allocatable()}) {
    SetQuantity(*amounts, "cpu", "192");
    SetQuantity(*amounts, "memory", "2097152Mi");
    SetQuantity(*amounts, "pods", "110");
    SetQuantity(*amounts, "ephemeral-storage", "3500Gi");
    SetQuantity(*amounts, "nvidia.com/gpu", "8");
  }
  for (const char* type : {"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"}) {
    wire::NodeCondition& condition = *status.add_conditions();
    condition.set_type(type);
    condition.set_status(std::string(type) == "Ready" ? "True" : "False");
  }
  return node;
}

// A repeated message field: key, length, bytes.
void AppendItem(std::string& to, const std::string& message) {
  to.push_back('\x12');  // field 2, length-delimited
  for (size_t length = message.size(); true; length >>= 7) {
    if (length < 0x80) {
      to.push_back(static_cast<char>(length));
      break;
    }
    to.push_back(static_cast<char>((length & 0x7f) | 0x80));
  }
  to.append(message);
}

std::string ListBody(const char* kind, const std::string& items) {
  wire::ListMeta list;
  list.set_resourceversion("2000000");
  wire::Unknown envelope;
  envelope.mutable_typemeta()->set_apiversion("v1");
  envelope.mutable_typemeta()->set_kind(kind);
  std::string& raw = *envelope.mutable_raw();
  const std::string meta = list.SerializeAsString();
  raw.reserve(items.size() + meta.size() + 2);
  raw.push_back('\x0a');  // field 1, length-delimited
  raw.push_back(static_cast<char>(meta.size()));
  raw.append(meta);
  raw.append(items);
  return std::string("k8s\0", 4) + envelope.SerializeAsString();
}

}  // namespace

std::string PodItems(int64_t first, int64_t count, bool groups) {
  std::string items;
  for (int64_t i = first; i < first + count; ++i) {
    AppendItem(items, BigPod(i, groups).SerializeAsString());
  }
  return items;
}

std::string NodeItems(int64_t first, int64_t count) {
  std::string items;
  for (int64_t i = first; i < first + count; ++i) AppendItem(items, BigNode(i).SerializeAsString());
  return items;
}

std::string PodListBody(const std::string& items) { return ListBody("PodList", items); }
std::string NodeListBody(const std::string& items) { return ListBody("NodeList", items); }

// As KAI's pod-grouper writes them, and its scheduler their status.
std::string PodGroupListBody(int64_t first, int64_t count) {
  const model::KindTraits& traits = model::TraitsOf(model::Kind::kPodGroup);
  JsonWriter json;
  json.BeginObject().Field("apiVersion", traits.api_version).Field("kind", "PodGroupList");
  json.Key("metadata").BeginObject().Field("resourceVersion", "2000000").EndObject();
  json.Key("items").BeginArray();
  for (int64_t i = first; i < first + count; ++i) {
    const std::string job = absl::StrCat("trainer-", i / kPodsOfAJob);
    json.BeginObject().Field("apiVersion", traits.api_version).Field("kind", traits.name);
    json.Key("metadata").BeginObject().Field("name", GroupOf(i)).Field("namespace", NamespaceOf(i));
    json.Field("uid", Uid("group", i)).Field("resourceVersion", absl::StrCat(1'500'000 + i));
    json.Key("generation").Int(1).Field("creationTimestamp", "2023-11-14T22:13:20Z");
    json.Key("labels").BeginObject().Field(model::kQueueLabel, NamespaceOf(i));
    json.Field("app.kubernetes.io/name", "trainer").EndObject();
    json.Key("annotations")
        .BeginObject()
        .Field("kai.scheduler/top-owner-metadata", job)
        .EndObject();
    json.Key("ownerReferences").BeginArray().BeginObject().Field("apiVersion", "batch/v1");
    json.Field("kind", "Job").Field("name", job).Field("uid", Uid("job", i / kPodsOfAJob));
    json.EndObject().EndArray().Key("managedFields").BeginArray().BeginObject();
    json.Field("manager", "podgrouper").Field("fieldsV1", std::string(300, 'f'));
    json.EndObject().EndArray().EndObject();
    json.Key("spec").BeginObject().Key("minMember").Int(1).Field("queue", NamespaceOf(i));
    json.Field("priorityClassName", "train").EndObject();
    json.Key("status").BeginObject().EndObject().EndObject();
  }
  json.EndArray().EndObject();
  return json.Take();
}

}  // namespace fairlead::bench
