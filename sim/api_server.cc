#include "sim/api_server.h"

#include "absl/strings/str_format.h"

namespace fairlead::sim {
namespace {

template <typename T>
constexpr model::Kind TypeKind();
template <>
constexpr model::Kind TypeKind<model::Pod>() {
  return model::Kind::kPod;
}
template <>
constexpr model::Kind TypeKind<model::Node>() {
  return model::Kind::kNode;
}
template <>
constexpr model::Kind TypeKind<model::Queue>() {
  return model::Kind::kQueue;
}
template <>
constexpr model::Kind TypeKind<model::PodGroup>() {
  return model::Kind::kPodGroup;
}
template <>
constexpr model::Kind TypeKind<model::PriorityClass>() {
  return model::Kind::kPriorityClass;
}
template <>
constexpr model::Kind TypeKind<model::Topology>() {
  return model::Kind::kTopology;
}
template <>
constexpr model::Kind TypeKind<model::NodeRequest>() {
  return model::Kind::kNodeRequest;
}
template <>
constexpr model::Kind TypeKind<model::NodePool>() {
  return model::Kind::kNodePool;
}
template <>
constexpr model::Kind TypeKind<model::PodDisruptionBudget>() {
  return model::Kind::kPodDisruptionBudget;
}

template <>
constexpr model::Kind TypeKind<model::DeviceClass>() {
  return model::Kind::kDeviceClass;
}
template <>
constexpr model::Kind TypeKind<model::ResourceSlice>() {
  return model::Kind::kResourceSlice;
}
template <>
constexpr model::Kind TypeKind<model::ResourceClaim>() {
  return model::Kind::kResourceClaim;
}

}  // namespace

model::Kind KindOf(const Object& object) {
  return std::visit([]<typename T>(const T&) { return TypeKind<T>(); }, object);
}

const model::ObjectMeta& MetaOf(const Object& object) {
  return std::visit([](const auto& typed) -> const model::ObjectMeta& { return typed.meta; },
                    object);
}

void ApiServer::ForEach(model::Kind kind, const std::function<void(const Object&)>& fn) const {
  std::apply(
      [&](const auto&... tables) {
        const auto each = [&]<typename T>(const std::map<std::string, T>& table) {
          if (TypeKind<T>() != kind) return;
          for (const auto& [key, object] : table) fn(Object(object));
        };
        (each(tables), ...);
      },
      tables_);
}

std::string ApiServer::NewUid() {
  return absl::StrFormat("00000000-0000-4000-8000-%012d", ++uids_);
}

void ApiServer::Admit(model::Pod& pod) const {
  if (pod.priority.has_value()) return;
  if (!pod.priority_class_name.empty()) {
    const auto* named = Find<model::PriorityClass>(pod.priority_class_name);
    if (named != nullptr) pod.priority = named->value;
    return;
  }
  for (const auto& [name, priority_class] : All<model::PriorityClass>()) {
    if (priority_class.global_default) pod.priority = priority_class.value;
  }
}

void ApiServer::Stamp(model::ObjectMeta& meta, bool created) {
  meta.resource_version = absl::StrCat(++version_);
  if (!created) return;
  meta.uid = NewUid();
  meta.creation = queue_->now();
  meta.generation = 1;
}

void ApiServer::Tell(ChangeType type, Object object) {
  for (const Listener& listener : listeners_) listener(type, object);
}

}  // namespace fairlead::sim
