// A real cluster at one moment, from manifests, for tests of what takes it over.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/check.h"
#include "sim/manifests.h"
#include "sim/simulator.h"

namespace fairlead::sim::testing {

inline absl::Time PresentTime() { return absl::FromUnixSeconds(1'772'409'600); }

// Each object has a uid, a version and an age, as a server gives them.
inline Present PresentOf(const std::string& yaml) {
  absl::StatusOr<Manifest> manifest = ReadManifest(yaml, "present.yaml");
  FAIRLEAD_CHECK(manifest.ok(), std::string(manifest.status().message()));
  Present present;
  present.objects = std::move(manifest->objects);
  int64_t number = 100;
  for (Object& object : present.objects) {
    std::visit(
        [&number](auto& typed) {
          typed.meta.uid = absl::StrCat("uid-", ++number);
          typed.meta.resource_version = absl::StrCat(number);
          typed.meta.generation = 1;
          typed.meta.creation = PresentTime() - absl::Hours(1) + absl::Seconds(number);
        },
        object);
  }
  return present;
}

// A pod of queue `queue` with one GPU, of ReplicaSet "set" unless `bare`; on `node` it runs.
inline std::string PodYaml(const std::string& name, const std::string& queue,
                           const std::string& node, bool bare = false) {
  return absl::StrCat(
      "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: ", name,
      "\n  namespace: team\n  labels: {kai.scheduler/queue: ", queue, ", app: ", name, "}\n",
      bare ? ""
           : "  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: set, uid: "
             "rs-1, controller: true}]\n",
      "spec:\n  schedulerName: fairlead\n", node.empty() ? "" : absl::StrCat("  nodeName: ", node),
      "\n  containers:\n  - name: c\n    image: i\n    resources: {requests: {cpu: '1'}, limits: "
      "{nvidia.com/gpu: 1}}\nstatus:\n",
      node.empty() ? "  phase: Pending\n"
                   : "  phase: Running\n  conditions: [{type: Ready, status: 'True'}]\n");
}

// Ready, with `gpus`; not of the hook.
inline std::string NodeYaml(const std::string& name, int gpus) {
  return absl::StrCat("---\napiVersion: v1\nkind: Node\nmetadata:\n  name: ", name,
                      "\n  labels: {kubernetes.io/hostname: ", name,
                      "}\nstatus:\n  allocatable: {cpu: '16', memory: 64Gi, pods: '50', "
                      "nvidia.com/gpu: '",
                      gpus, "'}\n  conditions: [{type: Ready, status: 'True'}]\n");
}

inline std::string QueueYaml(const std::string& name, int quota, int limit) {
  return absl::StrCat("---\napiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: ", name,
                      "}\nspec:\n  resources:\n    gpu: {quota: ", quota, ", limit: ", limit,
                      ", overQuotaWeight: 1}\n    cpu: {quota: -1, limit: -1}\n    memory: {quota: "
                      "-1, limit: -1}\n");
}

}  // namespace fairlead::sim::testing
