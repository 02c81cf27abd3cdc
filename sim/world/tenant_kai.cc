// The verb of Tenants about the counts that KAI's controllers write: another writer of them.
#include "sim/world/tenants.h"

namespace fairlead::sim::world {
namespace {

void Overwrite(bool of_queue, bool drop, Json& object) {
  if (drop && of_queue) {
    object.erase("status");
  } else if (drop) {
    object["status"].erase("resourcesStatus");
  } else if (of_queue) {
    object["status"] = {{"allocated", {{"cpu", "7"}}}, {"childQueues", {"no-such-queue"}}};
  } else {
    object["status"]["resourcesStatus"] = {{"requested", {{"nvidia.com/gpu", "9"}}}};
  }
}

}  // namespace

bool Tenants::DoKai(const Operation& operation) {
  if (operation.verb != "overwrite-status") return false;
  const bool of_queue = operation.Text("kind") == "queue";
  parts_.server
      ->Modify(
          of_queue ? ResourceType::kQueues : ResourceType::kPodGroups, operation.Text("ns"),
          operation.Text("name"),
          [&](Json& object) {
            Overwrite(of_queue, operation.Number("drop") != 0, object);
            return absl::OkStatus();
          },
          kTenantActor)
      .IgnoreError();
  return true;
}

}  // namespace fairlead::sim::world
