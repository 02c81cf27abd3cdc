#include "core/request_book.h"

namespace fairlead::core {

using model::NodeRequestPhase;

bool RequestBook::Promises(const model::NodeRequest& request) {
  return request.phase == NodeRequestPhase::kPending ||
         request.phase == NodeRequestPhase::kLaunched ||
         request.phase == NodeRequestPhase::kRegistered || request.phase == NodeRequestPhase::kReady;
}

bool RequestBook::Upsert(const model::NodeRequest& request) {
  auto [it, added] = requests_.try_emplace(request.meta.name, request);
  if (added) return true;
  model::NodeRequest& known = it->second;
  if (!known.meta.uid.empty() && known.meta.uid != request.meta.uid) {
    known = request;
    return true;
  }
  const bool confirmed = known.meta.uid.empty();
  known.meta = request.meta;
  return confirmed;
}

bool RequestBook::Remove(const std::string& name, const std::string& uid) {
  auto it = requests_.find(name);
  if (it == requests_.end() || (!it->second.meta.uid.empty() && it->second.meta.uid != uid)) {
    return false;
  }
  requests_.erase(it);
  return true;
}

void RequestBook::Created(const model::NodeRequest& request) {
  requests_.try_emplace(request.meta.name, request);
}

void RequestBook::StatusWritten(const model::NodeRequest& request) {
  auto it = requests_.find(request.meta.name);
  if (it == requests_.end()) return;
  const model::ObjectMeta meta = it->second.meta;
  it->second = request;
  it->second.meta = meta;
}

void RequestBook::Forget(const std::string& name) { requests_.erase(name); }

const model::NodeRequest* RequestBook::Find(const std::string& name) const {
  auto it = requests_.find(name);
  return it == requests_.end() ? nullptr : &it->second;
}

std::vector<const model::NodeRequest*> RequestBook::All() const {
  std::vector<const model::NodeRequest*> all;
  all.reserve(requests_.size());
  for (const auto& [name, request] : requests_) all.push_back(&request);
  return all;
}

}  // namespace fairlead::core
