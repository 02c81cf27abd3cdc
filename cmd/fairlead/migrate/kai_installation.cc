#include "cmd/fairlead/migrate/kai_installation.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cmd/fairlead/settings/config_file.h"
#include "kube/codec/codec.h"
#include "kube/transport/http.h"
#include "scheduler/model/api_names.h"

namespace fairlead::cmd {
namespace {

constexpr char kFairleadLabel[] = "app.kubernetes.io/name";

std::string MetaName(const Json& object) { return object.TextAt({"metadata", "name"}); }
std::string MetaNamespace(const Json& object) { return object.TextAt({"metadata", "namespace"}); }

const std::vector<Json>& ItemsAt(const Json& object,
                                 std::initializer_list<absl::string_view> path) {
  static const auto* const kNothing = new std::vector<Json>();
  const Json* const found = object.At(path);
  return found == nullptr ? *kNothing : found->items();
}

bool HasField(const Json& object, std::initializer_list<absl::string_view> path) {
  const Json* const found = object.At(path);
  return found != nullptr && !found->is_null() && (found->is_text() || !found->fields().empty());
}

int64_t ReplicasOf(const Json& deployment) {
  int64_t replicas = 1;
  return absl::SimpleAtoi(deployment.TextAt({"spec", "replicas"}), &replicas) ? replicas : 1;
}

// "binder" of "ghcr.io/kai-scheduler/kai-scheduler/binder:v0.17.0@sha256:..".
std::string ProgramOf(const std::string& image) {
  const std::string bare = std::vector<std::string>(absl::StrSplit(image, '@')).front();
  const std::string last = std::vector<std::string>(absl::StrSplit(bare, '/')).back();
  return std::vector<std::string>(absl::StrSplit(last, ':')).front();
}

KaiComponent ComponentOf(std::string program) {
  std::erase(program, '-');
  static const auto* const kPrograms = new std::map<std::string, KaiComponent>{
      {"operator", KaiComponent::kOperator},
      {"kaioperator", KaiComponent::kOperator},
      {"scheduler", KaiComponent::kScheduler},
      {"binder", KaiComponent::kBinder},
      {"admission", KaiComponent::kAdmission},
      {"podgrouper", KaiComponent::kPodGrouper},
      {"podgroupcontroller", KaiComponent::kPodGroupController},
      {"queuecontroller", KaiComponent::kQueueController},
      {"nodescaleadjuster", KaiComponent::kNodeScaleAdjuster}};
  const auto found = kPrograms->find(program);
  return found == kPrograms->end() ? KaiComponent::kOther : found->second;
}

std::string PodSelectorOf(const Json& deployment) {
  const Json* const labels = deployment.At({"spec", "selector", "matchLabels"});
  std::vector<std::string> terms;
  for (const auto& [key, value] :
       labels == nullptr ? std::vector<Json::Field>() : labels->fields()) {
    terms.push_back(absl::StrCat(key, "=", value.text()));
  }
  return absl::StrJoin(terms, ",");
}

std::string KeeperOf(const Json& object) {
  if (HasField(object, {"metadata", "annotations", "argocd.argoproj.io/tracking-id"}) ||
      HasField(object, {"metadata", "labels", "argocd.argoproj.io/instance"})) {
    return "Argo CD";
  }
  if (HasField(object, {"metadata", "labels", "kustomize.toolkit.fluxcd.io/name"}) ||
      HasField(object, {"metadata", "labels", "helm.toolkit.fluxcd.io/name"})) {
    return "Flux";
  }
  if (HasField(object, {"metadata", "annotations", "meta.helm.sh/release-name"})) return "Helm";
  return "";
}

// None if the Deployment is not KAI's.
std::optional<KaiDeployment> ReadDeployment(const Json& object, const KaiInstallation& kai) {
  KaiDeployment deployment;
  deployment.ns = MetaNamespace(object);
  deployment.name = MetaName(object);
  std::string image;
  for (const Json& container : ItemsAt(object, {"spec", "template", "spec", "containers"})) {
    if (image.empty()) image = container.TextAt({"image"});
  }
  const bool by_image = absl::StrContains(image, "/kai-scheduler/");
  if (deployment.ns != kai.ns && !by_image) return std::nullopt;
  deployment.component = ComponentOf(ProgramOf(image));
  if (deployment.component == KaiComponent::kOther) {
    deployment.component = ComponentOf(deployment.name);
  }
  if (deployment.component == KaiComponent::kOther &&
      absl::StartsWith(deployment.name, absl::StrCat(kai.scheduler_name, "-"))) {
    deployment.component = KaiComponent::kScheduler;
  }
  if (deployment.component == KaiComponent::kOther && !by_image) return std::nullopt;
  deployment.replicas = ReplicasOf(object);
  deployment.selector = PodSelectorOf(object);
  deployment.kept_by = KeeperOf(object);
  return deployment;
}

KaiShard ReadShard(const Json& object) {
  KaiShard shard;
  shard.name = MetaName(object);
  const Json* const spec = object.Find("spec");
  if (spec == nullptr) return shard;
  shard.partition = spec->TextAt({"partitionLabelValue"});
  shard.spreads_gpu = spec->TextAt({"placementStrategy", "gpu"}) == "spread";
  shard.spreads_cpu = spec->TextAt({"placementStrategy", "cpu"}) == "spread";
  for (const auto& [field, value] : spec->fields()) {
    if (field == "partitionLabelValue" || field == "placementStrategy") continue;
    if (value.is_text() || !value.fields().empty()) shard.settings.push_back(field);
  }
  std::sort(shard.settings.begin(), shard.settings.end());
  return shard;
}

void ReadConfig(const Json& config, KaiInstallation& out) {
  const auto set = [](std::string& to, std::string text) {
    if (!text.empty()) to = std::move(text);
  };
  set(out.ns, config.TextAt({"spec", "namespace"}));
  const std::string label = config.TextAt({"spec", "global", "queueLabelKey"});
  if (label != model::kQueueLabel) out.queue_label = label;
  const std::string pool = config.TextAt({"spec", "global", "nodePoolLabelKey"});
  if (!pool.empty() && pool != model::kNodePoolLabel) {
    out.selectors.push_back("global.nodePoolLabelKey");
  }
  for (const char* field : {"namespaceLabelSelector", "podLabelSelector"}) {
    if (HasField(config, {"spec", "global", field})) {
      out.selectors.push_back(absl::StrCat("global.", field));
    }
  }
}

void AddWebhooks(const std::vector<Json>& configurations, bool validating, KaiInstallation& out) {
  for (const Json& configuration : configurations) {
    const std::vector<Json>& hooks = ItemsAt(configuration, {"webhooks"});
    for (size_t i = 0; i < hooks.size(); ++i) {
      const Json& hook = hooks[i];
      const std::string ns = hook.TextAt({"clientConfig", "service", "namespace"});
      if (ns != out.ns) continue;
      out.webhooks.push_back({validating, MetaName(configuration), hook.TextAt({"name"}), i, ns,
                              hook.TextAt({"clientConfig", "service", "name"}),
                              hook.TextAt({"failurePolicy"}) != "Ignore"});
    }
  }
}

// Annotations of pods that we treat otherwise than KAI, or not at all (docs/compatibility.md).
constexpr const char* kPodFeatures[] = {"kai.scheduler/topology",
                                        "kai.scheduler/topology-required-placement",
                                        "kai.scheduler/topology-preferred-placement",
                                        "mps",
                                        "gpu-fraction",
                                        "gpu-memory"};

void CountPods(const std::vector<Json>& pods, KaiInstallation& out) {
  for (const Json& pod : pods) {
    const std::string phase = pod.TextAt({"status", "phase"});
    if (phase == "Succeeded" || phase == "Failed") continue;
    ++(pod.TextAt({"spec", "nodeName"}).empty() ? out.waiting_pods : out.running_pods);
    for (const char* feature : kPodFeatures) {
      if (HasField(pod, {"metadata", "annotations", feature})) ++out.pod_features[feature];
    }
  }
}

template <typename T>
void Decode(model::Kind kind, const std::vector<Json>& objects, std::vector<T>& out) {
  for (const Json& json : objects) {
    absl::StatusOr<kube::Object> object = kube::DecodeObject(kind, kube::kJson, json.Compact());
    if (object.ok()) out.push_back(std::get<T>(*std::move(object)));
  }
  std::sort(out.begin(), out.end(), [](const T& a, const T& b) {
    return std::tie(a.meta.ns, a.meta.name) < std::tie(b.meta.ns, b.meta.name);
  });
}

void ReadDefinitions(const std::vector<Json>& definitions, KaiInstallation& out) {
  int found = 0;
  for (const Json& definition : definitions) {
    const std::string name = MetaName(definition);
    if (name == "queues.scheduling.run.ai" || name == "podgroups.scheduling.run.ai") ++found;
    if (name != "podgroups.scheduling.run.ai") continue;
    for (const Json& version : ItemsAt(definition, {"spec", "versions"})) {
      const Json* const fields = version.At(
          {"schema", "openAPIV3Schema", "properties", "status", "properties", "schedulability"});
      if (fields != nullptr) out.stores_verdicts = true;
    }
  }
  out.has_definitions = found == 2;
}

void ReadFairleadFile(const Json& config_map, FairleadInstallation& out) {
  const Json* const data = config_map.Find("data");
  if (data == nullptr) return;
  for (const auto& [key, text] : data->fields()) {
    if (!out.key.empty() && key != out.key) continue;
    out.key = key;
    out.text = text.text();
    break;
  }
  // A change of the file is made in its text; the catalogue that it names is not needed for that.
  const absl::StatusOr<core::Configuration> read = ParseConfiguration(out.text, out.key);
  if (!read.ok()) {
    out.problem = std::string(read.status().message());
    return;
  }
  out.scheduler_names = read->options.state.scheduler_names;
  out.grouping = read->options.grouping.enabled;
  out.kai_status = read->options.kai_status;
  // Flags go before it.
  const std::optional<core::Shard>& shard = read->options.shard;
  if (shard.has_value() && out.shards.empty()) out.shards.insert(shard->label_value);
}

std::vector<std::string> WordsOf(const Json& container) {
  std::vector<std::string> words;
  for (const char* list : {"command", "args"}) {
    for (const Json& word : ItemsAt(container, {list})) words.push_back(word.text());
  }
  return words;
}

// Of the flag, as "--flag=VALUE" or in two words.
void ReadShardFlags(const std::vector<std::string>& words, std::set<std::string>& shards) {
  static constexpr absl::string_view kFlag = "--partition-label-value";
  for (size_t i = 0; i < words.size(); ++i) {
    absl::string_view word = words[i];
    if (!absl::ConsumePrefix(&word, kFlag)) continue;
    if (absl::ConsumePrefix(&word, "=")) {
      shards.insert(std::string(word));
    } else if (word.empty() && i + 1 < words.size()) {
      shards.insert(words[i + 1]);
    }
  }
}

}  // namespace

const char* KaiComponentName(KaiComponent component) {
  switch (component) {
    case KaiComponent::kOperator:
      return "operator";
    case KaiComponent::kScheduler:
      return "scheduler";
    case KaiComponent::kBinder:
      return "binder";
    case KaiComponent::kAdmission:
      return "admission webhook";
    case KaiComponent::kPodGrouper:
      return "pod-grouper";
    case KaiComponent::kPodGroupController:
      return "podgroup-controller";
    case KaiComponent::kQueueController:
      return "queue-controller";
    case KaiComponent::kNodeScaleAdjuster:
      return "node-scale-adjuster";
    case KaiComponent::kOther:
      return "other";
  }
  return "?";
}

std::string KaiSchedulerNameOf(const std::vector<Json>& configs) {
  for (const Json& config : configs) {
    std::string name = config.TextAt({"spec", "global", "schedulerName"});
    if (!name.empty()) return name;
  }
  return model::kKaiSchedulerName;
}

FairleadInstallation FindFairlead(const std::vector<Json>& deployments) {
  FairleadInstallation found;
  for (const Json& deployment : deployments) {
    if (deployment.TextAt({"metadata", "labels", kFairleadLabel}) != "fairlead") continue;
    const bool first = found.name.empty();
    for (const Json& container : ItemsAt(deployment, {"spec", "template", "spec", "containers"})) {
      const std::vector<std::string> words = WordsOf(container);
      ReadShardFlags(words, found.shards);
      const auto flag = std::find(words.begin(), words.end(), "--config");
      if (!first || flag == words.end() || flag + 1 == words.end()) continue;
      found.key = std::vector<std::string>(absl::StrSplit(*(flag + 1), '/')).back();
    }
    if (!first) continue;
    found.ns = MetaNamespace(deployment);
    found.name = MetaName(deployment);
    for (const Json& volume : ItemsAt(deployment, {"spec", "template", "spec", "volumes"})) {
      if (volume.TextAt({"name"}) == "configuration") {
        found.config_map = volume.TextAt({"configMap", "name"});
      }
    }
  }
  return found;
}

KaiInstallation ReadKaiInstallation(const KaiObjects& objects) {
  KaiInstallation out;
  out.scheduler_name = KaiSchedulerNameOf(objects.configs);
  for (const Json& config : objects.configs) ReadConfig(config, out);
  for (const Json& object : objects.deployments) {
    std::optional<KaiDeployment> deployment = ReadDeployment(object, out);
    if (deployment.has_value()) out.deployments.push_back(*std::move(deployment));
  }
  std::sort(out.deployments.begin(), out.deployments.end(),
            [](const KaiDeployment& a, const KaiDeployment& b) {
              return std::tie(a.component, a.ns, a.name) < std::tie(b.component, b.ns, b.name);
            });
  for (const Json& shard : objects.shards) out.shards.push_back(ReadShard(shard));
  std::sort(out.shards.begin(), out.shards.end(),
            [](const KaiShard& a, const KaiShard& b) { return a.name < b.name; });
  AddWebhooks(objects.validating_webhooks, /*validating=*/true, out);
  AddWebhooks(objects.mutating_webhooks, /*validating=*/false, out);
  Decode(model::Kind::kQueue, objects.queues, out.queues);
  Decode(model::Kind::kPodGroup, objects.pod_groups, out.pod_groups);
  Decode(model::Kind::kTopology, objects.topologies, out.topologies);
  for (const Json& object : objects.priority_classes) {
    const std::string name = MetaName(object);
    for (const char* shipped : {"train", "build-preemptible", "build", "inference"}) {
      if (name == shipped) out.priority_classes.push_back(name);
    }
  }
  std::sort(out.priority_classes.begin(), out.priority_classes.end());
  for (const Json& request : objects.bind_requests) {
    const std::string phase = request.TextAt({"status", "phase"});
    if (phase == "Succeeded" || phase == "Failed") continue;
    out.open_bind_requests.push_back(absl::StrCat(MetaNamespace(request), "/", MetaName(request)));
  }
  CountPods(objects.pods, out);
  ReadDefinitions(objects.definitions, out);
  out.fairlead = FindFairlead(objects.deployments);
  ReadFairleadFile(objects.fairlead_configuration, out.fairlead);
  return out;
}

}  // namespace fairlead::cmd
