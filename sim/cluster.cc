#include "sim/cluster.h"

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "sim/adopted_machines.h"
#include "sim/api_writes.h"

namespace fairlead::sim {
namespace {

// Controllers have no kind of their own: the program does not read them.
constexpr const char* kControllers[] = {"Deployment", "Job"};

// Whether its objects are in namespaces; null if the simulator has no such kind.
std::optional<bool> IsNamespaced(absl::string_view kind) {
  for (const char* controller : kControllers) {
    if (kind == controller) return true;
  }
  for (const model::KindTraits& traits : model::kKindTraits) {
    if (kind == traits.name) return traits.is_namespaced;
  }
  return std::nullopt;
}

// Fields that the manifest does not set stay: identity, and the status written by others.
template <typename T>
void Replace(T& stored, const T& wanted) {
  const model::ObjectMeta before = stored.meta;
  std::string hash;
  if constexpr (std::is_same_v<T, model::PodGroup>) hash = stored.schedulability_hash;
  stored = wanted;
  stored.meta.uid = before.uid;
  stored.meta.creation = before.creation;
  stored.meta.generation = before.generation + 1;
  if constexpr (std::is_same_v<T, model::PodGroup>) stored.schedulability_hash = hash;
}

}  // namespace

absl::StatusOr<ObjectRef> ParseObjectRef(absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '/');
  const std::optional<bool> is_namespaced = IsNamespaced(parts.front());
  if (!is_namespaced.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\": the simulator has no kind ", parts.front()));
  }
  if (parts.size() != (*is_namespaced ? 3 : 2)) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" must be ", parts[0],
                                                   *is_namespaced ? "/namespace/name" : "/name"));
  }
  return ObjectRef{parts[0], *is_namespaced ? absl::StrCat(parts[1], "/", parts[2]) : parts[1]};
}

Cluster::Cluster(const ClusterOptions& options, absl::Time start)
    : queue_(start),
      faults_(options.faults),
      server_(&queue_),
      controllers_(&queue_, &server_, options.controller_delay),
      kubelets_(&queue_, &server_, options.kubelet),
      successors_(&queue_, &server_, options.controller_delay),
      cloud_(&queue_, &server_, &faults_, options.cloud),
      watch_(&queue_, &server_, &faults_, options.watch_delay),
      executor_(&queue_, &server_, &cloud_, &faults_, &watch_, options.executor) {}

absl::Status Cluster::Adopt(std::vector<Object> objects) {
  AdoptedMachines machines(queue_.now(), objects);
  // Nodes come before the pods that are on them.
  for (const model::Kind kind : model::kAllKinds) {
    for (Object& object : objects) {
      if (KindOf(object) != kind || !machines.Keep(object)) continue;
      if (auto* pod = std::get_if<model::Pod>(&object)) {
        pod->meta.annotations.Erase(kRunSecondsAnnotation);
        kubelets_.Adopt(*pod);
        successors_.Adopt(*pod);
      }
      FAIRLEAD_RETURN_IF_ERROR(
          std::visit([this](auto& typed) { return server_.Adopt(std::move(typed)); }, object));
    }
  }
  for (const AdoptedMachines::Machine& machine : machines.machines()) {
    cloud_.Adopt(machine.request, machine.instance_type, machine.node);
  }
  return absl::OkStatus();
}

absl::Status Cluster::ApplyObject(const Object& object) {
  return std::visit(
      [this]<typename T>(const T& wanted) -> absl::Status {
        const std::string key = model::Key(wanted.meta);
        if constexpr (!std::is_same_v<T, model::Pod> && !std::is_same_v<T, model::Node>) {
          if (server_.Modify<T>(key, [&](T& stored) { Replace(stored, wanted); })) {
            return absl::OkStatus();
          }
        }
        return server_.Create(wanted);
      },
      object);
}

absl::Status Cluster::Apply(const Manifest& manifest) {
  for (const Object& object : manifest.objects) FAIRLEAD_RETURN_IF_ERROR(ApplyObject(object));
  for (const ControllerSpec& spec : manifest.controllers) controllers_.Apply(spec);
  return absl::OkStatus();
}

absl::Status Cluster::Delete(const ObjectRef& ref) {
  if (ref.kind == "Deployment") return controllers_.Delete(ControllerKind::kDeployment, ref.key);
  if (ref.kind == "Job") return controllers_.Delete(ControllerKind::kJob, ref.key);
  if (ref.kind == "Pod") return DeletePod(server_, ref.key);
  if (ref.kind == "Node") return cloud_.Kill(ref.key);
  for (const model::KindTraits& traits : model::kKindTraits) {
    if (ref.kind == traits.name && server_.Remove(traits.kind, ref.key)) return absl::OkStatus();
  }
  return absl::NotFoundError(absl::StrCat(ref.kind, " ", ref.key, " does not exist"));
}

absl::Status Cluster::Scale(const ObjectRef& ref, int64_t replicas) {
  if (ref.kind == "Deployment") {
    return controllers_.Scale(ControllerKind::kDeployment, ref.key, replicas);
  }
  if (ref.kind == "Job") return controllers_.Scale(ControllerKind::kJob, ref.key, replicas);
  return absl::InvalidArgumentError(absl::StrCat(ref.kind, " ", ref.key, " cannot be scaled"));
}

void Cluster::Connect(Watch::Sink sink) {
  Disconnect();
  watch_.Start(std::move(sink));
}

void Cluster::Disconnect() {
  executor_.Abandon();
  watch_.Stop();
}

}  // namespace fairlead::sim
