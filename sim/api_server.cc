#include "sim/api_server.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace fairlead::sim {
void ApiServer::ForEach(model::Kind kind, const std::function<void(const Object&)>& fn) const {
  std::apply(
      [&](const auto&... tables) {
        const auto each = [&]<typename T>(const std::map<std::string, T>& table) {
          if (model::KindOf<T>() != kind) return;
          for (const auto& [key, object] : table) fn(Object(object));
        };
        (each(tables), ...);
      },
      tables_);
}

bool ApiServer::Remove(model::Kind kind, const std::string& key) {
  return std::apply(
      [&](const auto&... tables) {
        const auto remove = [&]<typename T>(const std::map<std::string, T>&) {
          return model::KindOf<T>() == kind && Remove<T>(key);
        };
        return (remove(tables) || ...);
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
    if (named == nullptr) return;
    pod.priority = named->value;
    pod.never_preempts = named->never_preempts;
    return;
  }
  for (const auto& [name, priority_class] : All<model::PriorityClass>()) {
    if (!priority_class.global_default) continue;
    pod.priority = priority_class.value;
    pod.never_preempts = priority_class.never_preempts;
  }
}

std::string ApiServer::version() const { return absl::StrCat(version_); }

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
