#include "sim/world/facts.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "sim/world/api_json.h"
#include "sim/world/pool_objects.h"

namespace fairlead::sim::world {
namespace {

int64_t Cut(double value) {
  if (std::isnan(value)) return 0;
  const double huge = static_cast<double>(kHuge);
  return static_cast<int64_t>(std::clamp(value, -huge, huge));
}

struct Suffix {
  const char* text;
  double factor;
};
constexpr Suffix kSuffixes[] = {
    {"Ki", 1024.0}, {"Mi", 1048576.0}, {"Gi", 1073741824.0}, {"Ti", 1099511627776.0},
    {"u", 1e-6},    {"m", 0.001},      {"k", 1e3},           {"M", 1e6},
    {"G", 1e9},     {"T", 1e12},       {"P", 1e15},          {"E", 1e18}};

// A request that is absent is its limit.
Amounts RequestsOf(const Json* spec) {
  Amounts sum;
  const Json* containers = At(spec, "containers");
  if (containers == nullptr) return sum;
  for (const Json& container : *containers) {
    const Json* resources = At(&container, "resources");
    const Json* requests = At(resources, "requests");
    const Json* limits = At(resources, "limits");
    Amounts one = ReadAmounts(limits);
    const Amounts asked = ReadAmounts(requests);
    if (At(requests, "cpu") != nullptr) one.cpu = asked.cpu;
    if (At(requests, "memory") != nullptr) one.memory = asked.memory;
    if (At(requests, "nvidia.com/gpu") != nullptr) one.gpu = asked.gpu;
    sum += one;
  }
  return sum;
}

// A resource that no node of these worlds has.
bool AsksForTheUnknown(const Json* spec) {
  const Json* containers = At(spec, "containers");
  if (containers == nullptr) return false;
  for (const Json& container : *containers) {
    const Json* requests = At(At(&container, "resources"), "requests");
    if (requests == nullptr) continue;
    for (auto it = requests->begin(); it != requests->end(); ++it) {
      if (absl::StartsWith(it.key(), kUnknownResource)) return true;
    }
  }
  return false;
}

// One GPU is named by the value, several by a key each.
std::vector<std::string> GpuGroups(const Json* labels) {
  std::vector<std::string> out;
  if (labels == nullptr || !labels->is_object()) return out;
  for (auto it = labels->begin(); it != labels->end(); ++it) {
    const bool one = it.key() == "runai-gpu-group";
    if (one || absl::StartsWith(it.key(), "runai-gpu-group/")) out.push_back(Text(&*it));
  }
  return out;
}

bool StaysOnItsNode(const Json* metadata) {
  if (At(At(metadata, "annotations"), "kubernetes.io/config.mirror") != nullptr) return true;
  const Json* owners = At(metadata, "ownerReferences");
  if (owners == nullptr) return false;
  return std::any_of(owners->begin(), owners->end(), [](const Json& owner) {
    return Text(At(&owner, "kind")) == "DaemonSet" || Text(At(&owner, "kind")) == "Node";
  });
}

int64_t ReadBound(const Json* resource, absl::string_view field, double unit, bool& odd) {
  const Json* value = At(resource, field);
  if (value == nullptr || !value->is_number()) return 0;
  const double number = value->get<double>();
  if (number == -1) return kNoLimit;
  if (number < 0 || number > 1e12) odd = true;
  return Cut(number * unit);
}

}  // namespace

Amounts& Amounts::operator+=(const Amounts& other) {
  cpu = std::min(cpu + other.cpu, kHuge);
  memory = std::min(memory + other.memory, kHuge);
  gpu = std::min(gpu + other.gpu, kHuge);
  return *this;
}

Amounts& Amounts::operator-=(const Amounts& other) {
  cpu -= other.cpu;
  memory -= other.memory;
  gpu -= other.gpu;
  return *this;
}

bool Amounts::FitsIn(const Amounts& other) const {
  const auto fits = [](int64_t need, int64_t has) { return need <= 0 || need <= has; };
  return fits(cpu, other.cpu) && fits(memory, other.memory) && fits(gpu, other.gpu);
}

std::string Amounts::Text() const {
  return absl::StrCat(cpu, "m CPU, ", memory, " bytes, ", gpu, " milli-GPU");
}

int64_t ReadAmount(const Json& value, bool milli) {
  const double unit = milli ? 1000.0 : 1.0;
  if (value.is_number()) return Cut(value.get<double>() * unit);
  if (!value.is_string()) return 0;
  absl::string_view text = value.get_ref<const std::string&>();
  double factor = 1;
  for (const Suffix& suffix : kSuffixes) {
    if (!absl::EndsWith(text, suffix.text)) continue;
    text.remove_suffix(absl::string_view(suffix.text).size());
    factor = suffix.factor;
    break;
  }
  double number = 0;
  if (!absl::SimpleAtod(text, &number)) return 0;
  // What is less than one unit is rounded up; a thousandth of it is the noise of the arithmetic.
  return Cut(std::ceil(number * factor * unit - 1e-3));
}

Amounts ReadAmounts(const Json* list) {
  Amounts out;
  if (list == nullptr) return out;
  if (const Json* cpu = At(list, "cpu")) out.cpu = ReadAmount(*cpu, true);
  if (const Json* memory = At(list, "memory")) out.memory = ReadAmount(*memory, false);
  if (const Json* gpu = At(list, "nvidia.com/gpu")) out.gpu = ReadAmount(*gpu, true);
  return out;
}

namespace {

// No namespace of the world has the label that such a pod asks to be near to.
bool IsNearNoNamespace(const Json* affinity) {
  const Json* terms =
      At(At(affinity, "podAffinity"), "requiredDuringSchedulingIgnoredDuringExecution");
  if (terms == nullptr) return false;
  return std::any_of(terms->begin(), terms->end(),
                     [](const Json& term) { return At(&term, "namespaceSelector") != nullptr; });
}

}  // namespace

bool IsOfOtherShard(const Json& object) {
  return !TextAt(object, {"metadata", "labels", kShardLabel}).empty();
}

PodLife ReadPodLife(const Json& pod) {
  PodLife out;
  out.node = TextAt(pod, {"spec", "nodeName"});
  const std::string phase = TextAt(pod, {"status", "phase"});
  out.succeeded = phase == "Succeeded";
  out.terminal = out.succeeded || phase == "Failed";
  out.running = phase == "Running";
  out.terminating = At(pod, {"metadata", "deletionTimestamp"}) != nullptr;
  return out;
}

PodFacts ReadPod(const Json& pod) {
  PodFacts out;
  static_cast<PodLife&>(out) = ReadPodLife(pod);
  const Json* metadata = At(&pod, "metadata");
  const Json* spec = At(&pod, "spec");
  const Json* status = At(&pod, "status");
  const Json* annotations = At(metadata, "annotations");
  const Json* labels = At(metadata, "labels");
  out.ns = Text(At(metadata, "namespace"));
  out.name = Text(At(metadata, "name"));
  out.uid = Text(At(metadata, "uid"));
  out.scheduler = Text(At(spec, "schedulerName"));
  out.ours = (out.scheduler == "fairlead" || out.scheduler == "kai-scheduler" || out.guest()) &&
             !IsOfOtherShard(pod);
  out.group = Text(At(annotations, "pod-group-name"));
  out.queue_label = Text(At(labels, "kai.scheduler/queue"));
  out.sub_group = Text(At(labels, "kai.scheduler/subgroup-name"));
  out.job = Text(At(labels, "sim/job"));
  out.app = Text(At(labels, "app"));
  out.requests = RequestsOf(spec);
  const Json* fraction = At(annotations, "gpu-fraction");
  out.shares_gpu = fraction != nullptr || At(annotations, "gpu-memory") != nullptr;
  double part = 0;
  if (absl::SimpleAtod(Text(fraction), &part)) out.share = Cut(std::round(part * 1000));
  out.gpu_groups = GpuGroups(labels);
  out.gated = HasItems(At(spec, "schedulingGates"));
  out.stays = StaysOnItsNode(metadata);
  const Json* selector = At(spec, "nodeSelector");
  out.impossible = At(selector, "no-such-label") != nullptr || AsksForTheUnknown(spec);
  if (const Json* const tolerations = At(spec, "tolerations")) {
    for (const Json& each : *tolerations) out.tolerates.push_back(Text(At(&each, "key")));
  }
  const bool has_volumes = HasItems(At(spec, "volumes"));
  out.hopeless = (has_volumes && LacksVolumeClaim(pod)) || IsNearNoNamespace(At(spec, "affinity"));
  out.placement = ReadPlacement(pod);
  out.ordinary = (out.placement == nullptr || !out.placement->unknown) && !out.impossible &&
                 !out.hopeless && !out.shares_gpu && !out.gated && out.requests.cpu >= 0 &&
                 out.requests.memory >= 0 && out.requests.gpu >= 0 && out.requests.gpu % 1000 == 0;
  out.claims = ReadPodClaims(pod);
  if (has_volumes) out.volumes = ReadPodVolumes(pod);
  out.plain = out.ordinary && out.placement == nullptr && out.claims.empty() && out.volumes.empty();
  std::string priority_class = Text(At(labels, "priorityClassName"));
  if (priority_class.empty()) priority_class = Text(At(spec, "priorityClassName"));
  out.priority_class = priority_class;
  if (const Json* priority = At(spec, "priority"); priority != nullptr && priority->is_number()) {
    out.priority = priority->get<int64_t>();
  }
  int32_t task_priority = 0;
  out.has_task_priority =
      absl::SimpleAtoi(Text(At(labels, "kai.scheduler/task-priority")), &task_priority);
  out.task_priority = out.has_task_priority ? task_priority : 0;
  out.odd_amounts = out.requests.cpu < 0 || out.requests.memory < 0 || out.requests.gpu < 0 ||
                    out.requests.cpu >= kHuge || out.requests.memory >= kHuge ||
                    out.requests.gpu >= kHuge;
  out.verdict = Text(At(annotations, "fairlead.dev/verdict"));
  if (const Json* conditions = At(status, "conditions")) {
    for (const Json& condition : *conditions) {
      const std::string type = Text(At(&condition, "type"));
      const std::string value = Text(At(&condition, "status"));
      if (type == "Ready") out.ready = value == "True";
      if (type == "PodScheduled" && value == "False") {
        out.condition = Text(At(&condition, "reason"));
      }
    }
  }
  return out;
}

NodeFacts ReadNode(const Json& node) {
  NodeFacts out;
  const Json* metadata = At(&node, "metadata");
  const Json* spec = At(&node, "spec");
  const Json* status = At(&node, "status");
  out.name = Text(At(metadata, "name"));
  out.uid = Text(At(metadata, "uid"));
  if (const Json* const labels = At(metadata, "labels")) {
    for (auto it = labels->begin(); it != labels->end(); ++it) out.labels[it.key()] = Text(&*it);
  }
  out.request = Text(At(At(metadata, "labels"), "fairlead.dev/node-request"));
  out.provider_id = Text(At(spec, "providerID"));
  const Json* allocatable = At(status, "allocatable");
  out.allocatable = ReadAmounts(allocatable);
  const Json* pods = At(allocatable, "pods");
  out.pods = pods == nullptr ? 0 : ReadAmount(*pods, false);
  const Json* unschedulable = At(spec, "unschedulable");
  out.unschedulable =
      unschedulable != nullptr && unschedulable->is_boolean() && unschedulable->get<bool>();
  if (const Json* conditions = At(status, "conditions")) {
    for (const Json& condition : *conditions) {
      if (Text(At(&condition, "type")) == "Ready") {
        out.ready = Text(At(&condition, "status")) == "True";
      }
    }
  }
  if (const Json* taints = At(spec, "taints")) {
    for (const Json& taint : *taints) {
      const bool removing = Text(At(&taint, "key")) == "fairlead.dev/to-be-removed";
      if (removing) out.removing = true;
      if (Text(At(&taint, "effect")) == "PreferNoSchedule") continue;
      out.tainted = true;
      const bool of_pool = Text(At(&taint, "key")) == kPoolTaintKey;
      if (of_pool) out.kept_for_pool = true;
      if (!removing && !of_pool) out.tainted_by_others = true;
    }
  }
  out.of_other_shard = IsOfOtherShard(node);
  if (out.of_other_shard) out.tainted = out.tainted_by_others = true;
  return out;
}

QueueFacts ReadQueue(const Json& queue) {
  QueueFacts out;
  out.name = TextAt(queue, {"metadata", "name"});
  const Json* spec = At(&queue, "spec");
  out.parent = Text(At(spec, "parentQueue"));
  const Json* resources = At(spec, "resources");
  const Json* gpu = At(resources, "gpu");
  const Json* cpu = At(resources, "cpu");
  const Json* memory = At(resources, "memory");
  out.gpu_quota = ReadBound(gpu, "quota", 1000, out.odd);
  out.gpu_limit = ReadBound(gpu, "limit", 1000, out.odd);
  out.cpu_quota = ReadBound(cpu, "quota", 1, out.odd);
  out.cpu_limit = ReadBound(cpu, "limit", 1, out.odd);
  out.memory_quota = ReadBound(memory, "quota", 1e6, out.odd);
  out.memory_limit = ReadBound(memory, "limit", 1e6, out.odd);
  if (out.gpu_limit != kNoLimit && (out.gpu_quota == kNoLimit || out.gpu_quota > out.gpu_limit)) {
    out.odd = true;
  }
  const std::string over_quota =
      TextAt(queue, {"metadata", "annotations", "fairlead.dev/over-quota"});
  out.may_buy = !over_quota.empty() && over_quota != "Evict";
  return out;
}

GroupFacts ReadGroup(const Json& group) {
  GroupFacts out;
  out.ns = TextAt(group, {"metadata", "namespace"});
  out.name = TextAt(group, {"metadata", "name"});
  const Json* spec = At(&group, "spec");
  out.queue = Text(At(spec, "queue"));
  const Json* minimum = At(spec, "minMember");
  if (minimum != nullptr && minimum->is_number_integer()) {
    out.min_member = minimum->get<int64_t>();
    if (out.min_member < 1 || out.min_member > 1000) out.odd = true;
  }
  out.priority_class = Text(At(spec, "priorityClassName"));
  if (HasItems(At(spec, "subGroups")) || HasItems(At(spec, "topologyConstraint")) ||
      At(spec, "minSubGroup") != nullptr || At(spec, "schedulingBackoff") != nullptr) {
    out.odd = true;
  }
  if (const Json* parts = At(spec, "subGroups")) {
    for (const Json& part : *parts) {
      const Json* least = At(&part, "minMember");
      const bool is_number = least != nullptr && least->is_number_integer();
      out.parts[Text(At(&part, "name"))] = is_number ? least->get<int64_t>() : 1;
    }
  }
  out.verdict_code = TextAt(group, {"status", "schedulability", "code"});
  return out;
}

std::string DisruptionOf(const Json& pod) {
  const Json* conditions = At(At(&pod, "status"), "conditions");
  if (conditions == nullptr) return "";
  for (const Json& condition : *conditions) {
    if (Text(At(&condition, "type")) == "DisruptionTarget" &&
        Text(At(&condition, "reason")) == "PreemptionByScheduler") {
      return Text(At(&condition, "message"));
    }
  }
  return "";
}

}  // namespace fairlead::sim::world
