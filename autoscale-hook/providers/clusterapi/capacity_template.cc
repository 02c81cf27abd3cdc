#include "autoscale-hook/providers/clusterapi/capacity_template.h"

#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "autoscale-hook/providers/clusterapi/machine_objects.h"
#include "autoscale-hook/providers/groups/node_labels.h"
#include "base/status_macros.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/node_devices.h"
#include "scheduler/model/pool_devices.h"
#include "scheduler/model/qualified_name.h"
#include "scheduler/model/quantity.h"

namespace fairlead::hook {
namespace {

constexpr char kPrefix[] = "capacity.cluster-autoscaler.kubernetes.io/";
// More of a machine is an error of the annotation, and sums of many must not overflow.
constexpr int64_t kMostCpuMilli = 10'000'000;
constexpr int64_t kMostBytes = int64_t{1} << 50;
constexpr int64_t kMostCount = 100'000;
constexpr size_t kLongestList = 16'384;

absl::Status WrongCapacity(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", what));
}

const Json* AnnotationOf(const Json& object, absl::string_view name) {
  return object.At({"metadata", "annotations", absl::StrCat(kPrefix, name)});
}
std::string FieldOf(absl::string_view name) {
  return absl::StrCat("metadata.annotations[", kPrefix, name, "]");
}

int64_t MostOf(absl::string_view resource) {
  if (resource == model::kCpuName) return kMostCpuMilli;
  if (resource == model::kMemoryName || resource == model::kEphemeralStorageName) return kMostBytes;
  return kMostCount * model::BaseUnitsPerUnit(resource);
}

absl::Status SetAmount(absl::string_view resource, const Json& value, absl::string_view field,
                       model::Node& node) {
  const absl::string_view text = absl::StripAsciiWhitespace(value.text());
  if (!value.is_text() || text.size() > 40) return WrongCapacity(field, "not a quantity");
  const absl::StatusOr<int64_t> amount = model::ParseResourceQuantity(resource, text);
  if (!amount.ok()) return WrongCapacity(field, amount.status().message());
  if (*amount < 0) return WrongCapacity(field, absl::StrCat(text, " is negative"));
  if (*amount > MostOf(resource)) {
    return WrongCapacity(field, absl::StrCat(text, " is too large for one machine"));
  }
  model::Set(node.allocatable, resource, *amount);
  return absl::OkStatus();
}

absl::Status SetCount(absl::string_view resource, absl::string_view name, const Json& object,
                      model::Node& node) {
  const Json* const value = AnnotationOf(object, name);
  if (value == nullptr) return absl::OkStatus();
  int64_t count = 0;
  if (!value->is_text() || !absl::SimpleAtoi(value->text(), &count)) {
    return WrongCapacity(
        FieldOf(name), absl::StrCat("\"", value->text().substr(0, 40), "\" is not a whole number"));
  }
  return SetAmount(resource, *value, FieldOf(name), node);
}

absl::Status ReadStatusCapacity(const Json& infrastructure, model::Node& node) {
  const Json* const capacity = infrastructure.At({"status", "capacity"});
  if (capacity == nullptr || capacity->is_null()) return absl::OkStatus();
  const std::string field =
      absl::StrCat(infrastructure.TextAt({"kind"}), " ",
                   infrastructure.TextAt({"metadata", "name"}), ": status.capacity");
  if (!capacity->is_object()) return WrongCapacity(field, "not an object");
  for (const auto& [name, value] : capacity->fields()) {
    FAIRLEAD_RETURN_IF_ERROR(SetAmount(name, value, absl::StrCat(field, ".", name), node));
  }
  const std::string architecture = infrastructure.TextAt({"status", "nodeInfo", "architecture"});
  if (!architecture.empty() && CheckLabelValue(architecture).ok()) {
    node.meta.labels.Set(model::kArchLabel, architecture);
  }
  return absl::OkStatus();
}

// The GPUs are devices of a DRA driver, with the one attribute that cluster-autoscaler gives them.
absl::Status ReadDriver(const Json& object, const std::string& gpu_type, model::Node& node) {
  const Json* const told = AnnotationOf(object, "dra-driver");
  if (told == nullptr) return absl::OkStatus();
  const std::string& driver = told->text();
  if (!told->is_text() || driver.size() > 63 || !model::IsDnsSubdomain(driver)) {
    return WrongCapacity(FieldOf("dra-driver"), "not the name of a DRA driver");
  }
  const int64_t count = model::Get(node.allocatable, gpu_type) / model::BaseUnitsPerUnit(gpu_type);
  if (count == 0) return absl::OkStatus();
  if (count > model::kMostDeclaredDevices) {
    return WrongCapacity(
        FieldOf("gpu-count"),
        absl::StrCat("a machine has ", model::kMostDeclaredDevices, " devices at most"));
  }
  model::Device device;
  device.attributes["type"].value = std::string("gpu");
  auto devices = std::make_shared<model::NodeDevices>();
  model::AddDevices(driver, device, count, *devices);
  node.devices = std::move(devices);
  std::erase_if(node.allocatable, [&](const auto& entry) { return entry.first == gpu_type; });
  return absl::OkStatus();
}

absl::Status ReadAmounts(const Json& object, model::Node& node) {
  constexpr std::array<std::pair<const char*, const char*>, 3> kQuantities = {
      {{"cpu", model::kCpuName},
       {"memory", model::kMemoryName},
       {"ephemeral-disk", model::kEphemeralStorageName}}};
  for (const auto& [name, resource] : kQuantities) {
    if (const Json* value = AnnotationOf(object, name)) {
      FAIRLEAD_RETURN_IF_ERROR(SetAmount(resource, *value, FieldOf(name), node));
    }
  }
  FAIRLEAD_RETURN_IF_ERROR(SetCount(model::kPodsName, "maxPods", object, node));
  std::string gpu_type = model::kGpuName;
  if (const Json* told = AnnotationOf(object, "gpu-type")) gpu_type = told->text();
  if (const absl::Status status = CheckLabelKey(gpu_type); !status.ok()) {
    return WrongCapacity(FieldOf("gpu-type"),
                         absl::StrCat("\"", gpu_type.substr(0, 40), "\" is not a resource name"));
  }
  FAIRLEAD_RETURN_IF_ERROR(SetCount(gpu_type, "gpu-count", object, node));
  return ReadDriver(object, gpu_type, node);
}

bool IsPropagated(absl::string_view key) {
  const size_t slash = key.find('/');
  if (slash == absl::string_view::npos) return false;
  const absl::string_view domain = key.substr(0, slash);
  for (const absl::string_view own :
       {"node-role.kubernetes.io", "node-restriction.kubernetes.io", "node.cluster.x-k8s.io"}) {
    if (domain == own) return true;
  }
  return absl::EndsWith(domain, ".node-restriction.kubernetes.io") ||
         absl::EndsWith(domain, ".node.cluster.x-k8s.io");
}

absl::Status SetLabel(absl::string_view key, absl::string_view value, absl::string_view field,
                      model::Node& node) {
  absl::Status status = CheckLabelKey(key);
  if (status.ok()) status = CheckLabelValue(value);
  if (!status.ok()) return WrongCapacity(field, status.message());
  node.meta.labels.Set(key, value);
  return absl::OkStatus();
}

// The parts of "a,b,c" of an annotation; without spaces around them.
absl::StatusOr<std::vector<absl::string_view>> PartsOf(const Json& value, absl::string_view name) {
  if (value.type() != Json::Type::kString || value.text().size() > kLongestList) {
    return WrongCapacity(FieldOf(name), "not a list of parts with commas between them");
  }
  std::vector<absl::string_view> parts;
  for (const absl::string_view part : absl::StrSplit(value.text(), ',', absl::SkipWhitespace())) {
    parts.push_back(absl::StripAsciiWhitespace(part));
  }
  return parts;
}

absl::Status ReadLabels(const Json& object, model::Node& node) {
  const Json* const labels = object.At({"spec", "template", "metadata", "labels"});
  if (labels != nullptr && labels->is_object()) {
    for (const auto& [key, value] : labels->fields()) {
      if (!IsPropagated(key)) continue;
      FAIRLEAD_RETURN_IF_ERROR(SetLabel(key, value.text(), "spec.template.metadata.labels", node));
    }
  }
  const Json* const more = AnnotationOf(object, "labels");
  if (more == nullptr) return absl::OkStatus();
  FAIRLEAD_ASSIGN_OR_RETURN(const std::vector<absl::string_view> parts, PartsOf(*more, "labels"));
  for (const absl::string_view part : parts) {
    const std::pair<absl::string_view, absl::string_view> entry =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (part.find('=') == absl::string_view::npos) {
      return WrongCapacity(FieldOf("labels"),
                           absl::StrCat("\"", part.substr(0, 80), "\" is not key=value"));
    }
    FAIRLEAD_RETURN_IF_ERROR(SetLabel(entry.first, entry.second, FieldOf("labels"), node));
  }
  return absl::OkStatus();
}

void AddTaint(model::Taint taint, model::Node& node) {
  for (model::Taint& had : node.taints) {
    if (had.key != taint.key || had.effect != taint.effect) continue;
    had.value = std::move(taint.value);
    return;
  }
  node.taints.push_back(std::move(taint));
}

absl::Status ReadTaints(const Json& object, model::Node& node) {
  const Json* const taints = object.At({"spec", "template", "spec", "taints"});
  if (taints != nullptr && taints->is_array()) {
    for (const Json& item : taints->items()) {
      // The others disappear while the node starts.
      if (item.TextAt({"propagation"}) != "Always") continue;
      absl::StatusOr<model::Taint> taint =
          MakeTaint(item.TextAt({"key"}), item.TextAt({"value"}), item.TextAt({"effect"}));
      if (!taint.ok()) {
        return WrongCapacity("spec.template.spec.taints", taint.status().message());
      }
      AddTaint(*std::move(taint), node);
    }
  }
  const Json* const more = AnnotationOf(object, "taints");
  if (more == nullptr) return absl::OkStatus();
  FAIRLEAD_ASSIGN_OR_RETURN(const std::vector<absl::string_view> parts, PartsOf(*more, "taints"));
  for (const absl::string_view part : parts) {
    absl::StatusOr<model::Taint> taint = ParseTaint(part);
    if (!taint.ok()) return WrongCapacity(FieldOf("taints"), taint.status().message());
    AddTaint(*std::move(taint), node);
  }
  return absl::OkStatus();
}

// Of a MachinePool: that of the machines if there is one alone.
std::string FailureDomainOf(const Json& object) {
  std::string domain = object.TextAt({"spec", "template", "spec", "failureDomain"});
  const Json* const domains = object.At({"spec", "failureDomains"});
  if (domains != nullptr && domains->is_array() && !domains->items().empty()) {
    domain = domains->items().size() == 1 ? domains->items()[0].text() : "";
  }
  return domain;
}

}  // namespace

std::string CapacityInputs(const Json& object) {
  Json inputs = Json::Array();
  if (const Json* annotations = object.At({"metadata", "annotations"})) {
    for (const auto& [key, value] : annotations->fields()) {
      if (!absl::StartsWith(key, kPrefix) && key != kPriceAnnotation) continue;
      inputs.Add(Json::String(key)).Add(value);
    }
  }
  for (const auto& path :
       {std::initializer_list<absl::string_view>{"spec", "template", "metadata", "labels"},
        {"spec", "template", "spec", "taints"},
        {"spec", "template", "spec", "infrastructureRef"},
        {"spec", "template", "spec", "failureDomain"},
        {"spec", "failureDomains"}}) {
    const Json* const part = object.At(path);
    inputs.Add(part == nullptr ? Json() : *part);
  }
  return inputs.Compact();
}

std::optional<InfrastructureRef> NeededInfrastructure(const Json& object) {
  if (AnnotationOf(object, "cpu") != nullptr && AnnotationOf(object, "memory") != nullptr) {
    return std::nullopt;
  }
  const Json* const ref = object.At({"spec", "template", "spec", "infrastructureRef"});
  if (ref == nullptr) return std::nullopt;
  InfrastructureRef needed{ref->TextAt({"apiGroup"}), "", ref->TextAt({"kind"}),
                           ref->TextAt({"namespace"}), ref->TextAt({"name"})};
  if (needed.group.empty()) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(ref->TextAt({"apiVersion"}), absl::MaxSplits('/', 1));
    needed.group = parts.first;
    needed.version = parts.second;
  }
  if (needed.ns.empty()) needed.ns = object.TextAt({"metadata", "namespace"});
  // A MachinePool names one object for all its machines, which tells no capacity.
  if (!absl::EndsWith(needed.kind, "Template") || needed.group.empty() || needed.name.empty()) {
    return std::nullopt;
  }
  return needed;
}

absl::StatusOr<model::Node> MakeCapacityTemplate(const Json& object, const Json* infrastructure) {
  model::Node node;
  if (infrastructure != nullptr) {
    FAIRLEAD_RETURN_IF_ERROR(ReadStatusCapacity(*infrastructure, node));
  }
  FAIRLEAD_RETURN_IF_ERROR(ReadAmounts(object, node));
  for (const auto& [name, resource] :
       {std::pair("cpu", model::kCpuName), {"memory", model::kMemoryName}}) {
    if (model::Get(node.allocatable, resource) > 0) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        FieldOf(name), ": missing, and the machine template has no status.capacity; set it"));
  }
  if (const std::string zone = FailureDomainOf(object); !zone.empty()) {
    FAIRLEAD_RETURN_IF_ERROR(SetLabel(model::kZoneLabel, zone, "failureDomain", node));
  }
  FAIRLEAD_RETURN_IF_ERROR(ReadLabels(object, node));
  FAIRLEAD_RETURN_IF_ERROR(ReadTaints(object, node));
  return node;
}

absl::StatusOr<std::optional<double>> PriceOf(const Json& object) {
  const Json* const value = object.At({"metadata", "annotations", kPriceAnnotation});
  if (value == nullptr) return std::nullopt;
  double price = 0;
  if (!value->is_text() || value->text().size() > 40 || !absl::SimpleAtod(value->text(), &price) ||
      !std::isfinite(price) || price < 0) {
    return WrongCapacity(
        absl::StrCat("metadata.annotations[", kPriceAnnotation, "]"),
        absl::StrCat("\"", value->text().substr(0, 40), "\" is not a number of dollars"));
  }
  return price;
}

}  // namespace fairlead::hook
