#include "sim/world/device_driver.h"

#include <utility>

#include "sim/world/api_json.h"
#include "sim/world/device_objects.h"

namespace fairlead::sim::world {
namespace {

constexpr char kDeviceDriverActor[] = "device-driver";
constexpr char kEveryNode[] = "*";

}  // namespace

DeviceDriver::DeviceDriver(EventQueue* time, ApiServer* server, uint64_t seed)
    : time_(time), server_(server), random_(seed) {
  server->Listen([this](const ApiServer::Commit& commit) {
    if (commit.type == ResourceType::kNodes && !devices_.empty()) OnNode(commit);
  });
}

void DeviceDriver::SetDevices(const std::string& node, int64_t count,
                              std::vector<std::string> models) {
  devices_[node] = Devices{count, std::move(models)};
  server_->ForEach(ResourceType::kNodes, [&](const Json& object) {
    const std::string name = TextAt(object, {"metadata", "name"});
    if (name != node && node != kEveryNode) return;
    Wake(name, absl::Milliseconds(random_.Between(10, 1500)));
  });
}

const DeviceDriver::Devices* DeviceDriver::DevicesOf(const std::string& node) const {
  auto found = devices_.find(node);
  if (found == devices_.end()) found = devices_.find(kEveryNode);
  return found == devices_.end() ? nullptr : &found->second;
}

void DeviceDriver::OnNode(const ApiServer::Commit& commit) {
  if (commit.before != nullptr && commit.after != nullptr) return;
  const Json& object = commit.after != nullptr ? *commit.after : *commit.before;
  Wake(TextAt(object, {"metadata", "name"}), absl::Milliseconds(random_.Between(100, 3000)));
}

void DeviceDriver::Wake(const std::string& node, absl::Duration delay) {
  time_->After(delay, [this, node] { Publish(node); });
}

void DeviceDriver::Publish(const std::string& node) {
  const Json* const object = server_->Find(ResourceType::kNodes, "", node);
  const Devices* const devices = DevicesOf(node);
  const std::string name = TextAt(MakeSlice(node, "", 0, 0, {}), {"metadata", "name"});
  if (object == nullptr || devices == nullptr) {
    server_->Remove(ResourceType::kResourceSlices, "", name, kDeviceDriverActor).IgnoreError();
    return;
  }
  int64_t& generation = generations_[node];
  const std::string uid = TextAt(*object, {"metadata", "uid"});
  Json slice = MakeSlice(node, uid, generation, devices->count, devices->models);
  const Json* const former = server_->Find(ResourceType::kResourceSlices, "", name);
  if (former != nullptr && (*former)["spec"] == slice["spec"]) return;
  slice["spec"]["pool"]["generation"] = ++generation;
  if (former == nullptr) {
    server_->Create(ResourceType::kResourceSlices, std::move(slice), kDeviceDriverActor)
        .IgnoreError();
    return;
  }
  const auto change = [&](Json& changed) {
    changed["spec"] = slice["spec"];
    changed["metadata"]["ownerReferences"] = slice["metadata"]["ownerReferences"];
    return absl::OkStatus();
  };
  server_->Modify(ResourceType::kResourceSlices, "", name, change, kDeviceDriverActor)
      .IgnoreError();
}

}  // namespace fairlead::sim::world
