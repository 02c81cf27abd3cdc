#include "sim/adopted_machines.h"

#include <utility>

#include "scheduler/model/api_names.h"

namespace fairlead::sim {
namespace {

using Phase = model::NodeRequestPhase;

bool IsUnderWay(Phase phase) { return phase == Phase::kLaunched || phase == Phase::kRegistered; }

}  // namespace

AdoptedMachines::AdoptedMachines(absl::Time now, const std::vector<model::Object>& objects)
    : now_(now) {
  std::map<std::string, const model::Node*> node_of;  // by request
  std::map<std::string, const model::NodeRequest*> requests;
  for (const model::Object& object : objects) {
    if (const auto* node = std::get_if<model::Node>(&object)) {
      const std::string request(node->meta.labels.Get(model::kNodeRequestLabel));
      if (!request.empty()) node_of[request] = node;
    } else if (const auto* request = std::get_if<model::NodeRequest>(&object)) {
      requests[request->meta.name] = request;
    }
  }
  for (const auto& [name, request] : requests) {
    const auto found = node_of.find(name);
    const model::Node* node = found == node_of.end() ? nullptr : found->second;
    if (IsUnderWay(request->phase) && (node == nullptr || !node->ready)) {
      reordered_.insert(name);
      if (node != nullptr) left_out_.insert(node->meta.name);
    } else if (node != nullptr && request->phase != Phase::kGone) {
      machines_.push_back({name, request->instance_type, node->meta.name});
    }
  }
}

bool AdoptedMachines::Keep(model::Object& object) const {
  if (const auto* node = std::get_if<model::Node>(&object)) {
    return !left_out_.contains(node->meta.name);
  }
  auto* request = std::get_if<model::NodeRequest>(&object);
  if (request == nullptr || !reordered_.contains(request->meta.name)) return true;
  request->phase = Phase::kPending;
  request->meta.creation = now_;
  request->node_name.clear();
  request->provider_id.clear();
  request->launched_at.reset();
  request->registered_at.reset();
  return true;
}

}  // namespace fairlead::sim
