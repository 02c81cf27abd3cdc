#include "core/request_book.h"

namespace fairlead::core {

using model::NodeRequestPhase;

bool RequestBook::Promises(const model::NodeRequest& request) {
  return request.phase == NodeRequestPhase::kPending ||
         request.phase == NodeRequestPhase::kLaunched ||
         request.phase == NodeRequestPhase::kRegistered ||
         request.phase == NodeRequestPhase::kReady;
}

bool RequestBook::Upsert(const model::NodeRequest& request) {
  ++version_;
  auto [it, added] = requests_.try_emplace(request.meta.name, Entry{request, true});
  if (added) return true;
  Entry& known = it->second;
  if (!known.seen || known.request.meta.uid != request.meta.uid) {
    // Ours, confirmed; or another object of the same name: then its status counts, not our memory.
    known = {request, true};
    return true;
  }
  const bool to_be_deleted =
      request.meta.deletion.has_value() && !known.request.meta.deletion.has_value();
  known.request.meta = request.meta;
  return to_be_deleted;
}

bool RequestBook::Remove(const std::string& name, const std::string& uid) {
  auto it = requests_.find(name);
  // One that is not seen yet is another one than the one that went.
  if (it == requests_.end() || !it->second.seen) return false;
  if (it->second.request.meta.uid != uid) return false;
  requests_.erase(it);
  ++version_;
  return true;
}

void RequestBook::Created(const model::NodeRequest& request) {
  requests_.try_emplace(request.meta.name, Entry{request, false});
  ++version_;
}

void RequestBook::StatusWritten(const model::NodeRequest& request) {
  auto it = requests_.find(request.meta.name);
  if (it == requests_.end()) return;
  const model::ObjectMeta meta = it->second.request.meta;
  it->second.request = request;
  it->second.request.meta = meta;
  ++version_;
}

void RequestBook::Forget(const std::string& name) {
  requests_.erase(name);
  ++version_;
}

const model::NodeRequest* RequestBook::Find(const std::string& name) const {
  auto it = requests_.find(name);
  return it == requests_.end() ? nullptr : &it->second.request;
}

bool RequestBook::Seen(const std::string& name) const {
  auto it = requests_.find(name);
  return it != requests_.end() && it->second.seen;
}

std::vector<const model::NodeRequest*> RequestBook::AllSeen() const {
  std::vector<const model::NodeRequest*> all;
  all.reserve(requests_.size());
  for (const auto& [name, entry] : requests_) {
    if (entry.seen) all.push_back(&entry.request);
  }
  return all;
}

}  // namespace fairlead::core
