#include "sim/world/api_store.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace fairlead::sim::world {

const ObjectPtr& Change::Gone() const {
  if (gone_ == nullptr) {
    Json json = before->json();
    json["metadata"]["resourceVersion"] = absl::StrCat(version);
    gone_ = std::make_shared<const ApiObject>(before->row(), std::move(json), version);
  }
  return gone_;
}

ApiStore::ApiStore() {
  DefaultStatus(ResourceType::kPodGroups, true);
  DefaultStatus(ResourceType::kNodeRequests, true);
}

ObjectPtr ApiStore::Find(ResourceType type, absl::string_view key) const {
  const Objects& objects = TableOf(type).objects;
  const auto found = objects.find(std::string(key));
  return found == objects.end() ? nullptr : found->second;
}

ObjectPtr ApiStore::Put(ResourceType type, Json object, absl::string_view actor) {
  const ResourceRow& row = RowOf(type);
  const uint64_t version = ++version_;
  std::string key = ObjectKey(row, object);
  object["metadata"]["resourceVersion"] = absl::StrCat(version);
  ObjectPtr made = std::make_shared<const ApiObject>(row, std::move(object), version);
  ObjectPtr& slot = TableOf(type).objects[std::move(key)];
  Change change;
  change.type = type;
  change.version = version;
  change.before = std::exchange(slot, made);
  change.after = made;
  Record(std::move(change), actor);
  return made;
}

void ApiStore::Erase(ResourceType type, absl::string_view key, absl::string_view actor) {
  Objects& objects = TableOf(type).objects;
  const auto found = objects.find(std::string(key));
  if (found == objects.end()) return;
  Change change;
  change.type = type;
  change.version = ++version_;
  change.before = std::move(found->second);
  objects.erase(found);
  Record(std::move(change), actor);
}

void ApiStore::Drop(ResourceType type, absl::string_view key) {
  TableOf(type).objects.erase(std::string(key));
}

void ApiStore::Record(Change change, absl::string_view actor) {
  Table& table = TableOf(change.type);
  table.history.push_back(change);
  if (table.history.size() > kMaxHistory) {
    table.oldest_start = table.history.front().version;
    table.history.pop_front();
  }
  for (const Listener& listener : listeners_) listener(table.history.back(), actor);
}

void ApiStore::Forget() {
  ++compactions_;
  for (Table& table : tables_) {
    table.history.clear();
    table.oldest_start = version_;
  }
}

}  // namespace fairlead::sim::world
