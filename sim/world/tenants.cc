#include "sim/world/tenants.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sim/world/api_json.h"
#include "sim/world/objects.h"

namespace fairlead::sim::world {
const std::vector<std::string>& TenantVerbs() {
  static const auto* const kVerbs = new std::vector<std::string>{"node",
                                                                 "shrink-node",
                                                                 "cordon-node",
                                                                 "taint-node",
                                                                 "kill-node",
                                                                 "node-ready",
                                                                 "job",
                                                                 "delete-job",
                                                                 "scale-job",
                                                                 "suspend-job",
                                                                 "budget",
                                                                 "queue",
                                                                 "change-queue",
                                                                 "delete-queue",
                                                                 "group",
                                                                 "change-group",
                                                                 "delete-group",
                                                                 "label-pods",
                                                                 "annotate-pods",
                                                                 "delete-pods",
                                                                 "pod",
                                                                 "mirror-pod",
                                                                 "cloud",
                                                                 "lose-machine",
                                                                 "take-back",
                                                                 "heartbeats",
                                                                 "stuck-kubelet",
                                                                 "foreign-lag",
                                                                 "foreign-race",
                                                                 "old-machine",
                                                                 "static-pods",
                                                                 "delete-request",
                                                                 "refuse-binding",
                                                                 "unready",
                                                                 "node-gpus",
                                                                 "label-node",
                                                                 "class",
                                                                 "delete-class",
                                                                 "device-class",
                                                                 "delete-device-class",
                                                                 "devices",
                                                                 "delete-claims",
                                                                 "refuse-claims",
                                                                 "storage-class",
                                                                 "volume",
                                                                 "csi-node",
                                                                 "delete-volume-claims",
                                                                 "delete-volumes",
                                                                 "provisioner",
                                                                 "capacity-template",
                                                                 "capacity-buffer",
                                                                 "provisioning-request",
                                                                 "delete-capacity",
                                                                 "pool",
                                                                 "delete-pool",
                                                                 "overwrite-status"};
  return *kVerbs;
}

absl::Time Tenants::Until(const Operation& operation) const {
  return parts_.time->now() + absl::Milliseconds(operation.Number("for_ms", 10'000));
}

bool Tenants::Do(const Operation& operation) {
  return DoWorkload(operation) || DoPods(operation) || DoPolicy(operation) || DoNode(operation) ||
         DoMachines(operation) || DoDevices(operation) || DoVolumes(operation) ||
         DoCapacity(operation) || DoPools(operation) || DoKai(operation);
}

bool Tenants::DoWorkload(const Operation& operation) {
  const std::string& verb = operation.verb;
  if (verb == "job") {
    parts_.controllers->AddJob(operation);
  } else if (verb == "delete-job") {
    parts_.controllers->DeleteJob(operation.Text("name"));
  } else if (verb == "scale-job") {
    parts_.controllers->Scale(operation.Text("name"), operation.Number("pods"));
  } else if (verb == "suspend-job") {
    parts_.controllers->Suspend(operation.Text("name"),
                                absl::Milliseconds(operation.Number("for_ms", 10'000)));
  } else if (verb == "budget") {
    parts_.controllers->AddBudget(operation.Text("name"), operation.Number("min"),
                                  operation.Text("unhealthy"));
  } else {
    return false;
  }
  return true;
}

std::vector<std::pair<std::string, std::string>> Tenants::PodsOf(const Operation& operation) const {
  std::vector<std::pair<std::string, std::string>> out;
  const std::string job = JobLabel(operation.Text("job"));
  parts_.server->ForEach(ResourceType::kPods, [&](const Json& object) {
    if (TextAt(object, {"metadata", "labels", "sim/job"}) != job) return;
    out.emplace_back(TextAt(object, {"metadata", "namespace"}),
                     TextAt(object, {"metadata", "name"}));
  });
  if (!operation.Text("first").empty()) {
    out.resize(std::min(out.size(), static_cast<size_t>(operation.Number("first"))));
  }
  if (!operation.Text("last").empty()) {
    const size_t last = std::min(out.size(), static_cast<size_t>(operation.Number("last")));
    out.erase(out.begin(), out.end() - static_cast<ptrdiff_t>(last));
  }
  return out;
}

bool Tenants::DoPods(const Operation& operation) {
  const std::string& verb = operation.verb;
  ApiServer& server = *parts_.server;
  if (verb == "pod") {
    server.Create(ResourceType::kPods, MakePod(operation, operation.Text("name")), kTenantActor)
        .IgnoreError();
    return true;
  }
  if (verb == "mirror-pod") {  // as a kubelet shows a static pod: bound from the beginning
    if (server.Find(ResourceType::kNodes, "", operation.Text("node")) == nullptr) return true;
    server
        .Create(ResourceType::kPods, MakeStaticPod(operation.Text("name"), operation.Text("node")),
                "kubelet")
        .IgnoreError();
    return true;
  }
  if (verb != "label-pods" && verb != "annotate-pods" && verb != "delete-pods") return false;
  for (const auto& [ns, name] : PodsOf(operation)) {
    if (verb == "delete-pods") {
      server.Remove(ResourceType::kPods, ns, name, kTenantActor).IgnoreError();
      continue;
    }
    const char* field = verb == "label-pods" ? "labels" : "annotations";
    server
        .Modify(
            ResourceType::kPods, ns, name,
            [&](Json& pod) {
              if (operation.Text("value").empty()) {
                pod["metadata"][field].erase(operation.Text("key"));
              } else {
                pod["metadata"][field][operation.Text("key")] = operation.Text("value");
              }
              return absl::OkStatus();
            },
            kTenantActor)
        .IgnoreError();
  }
  return true;
}

bool Tenants::DoPolicy(const Operation& operation) {
  const std::string& verb = operation.verb;
  ApiServer& server = *parts_.server;
  const std::string name = operation.Text("name"), ns = operation.Text("ns");
  const auto replace_spec = [&](ResourceType type, const Json& wanted) {
    server
        .Modify(
            type, ns, name,
            [&](Json& object) {
              object["spec"] = wanted["spec"];
              return absl::OkStatus();
            },
            kTenantActor)
        .IgnoreError();
  };
  if (verb == "queue") {
    server.Create(ResourceType::kQueues, MakeQueue(operation), kTenantActor).IgnoreError();
  } else if (verb == "change-queue") {
    replace_spec(ResourceType::kQueues, MakeQueue(operation));
  } else if (verb == "delete-queue") {
    server.Remove(ResourceType::kQueues, "", name, kTenantActor).IgnoreError();
  } else if (verb == "group") {
    server.Create(ResourceType::kPodGroups, MakeGroup(operation), kTenantActor).IgnoreError();
  } else if (verb == "change-group") {
    replace_spec(ResourceType::kPodGroups, MakeGroup(operation));
  } else if (verb == "class") {
    server.Remove(ResourceType::kPriorityClasses, "", name, kTenantActor).IgnoreError();
    server
        .Create(ResourceType::kPriorityClasses, MakePriorityClass(name, operation.Number("value")),
                kTenantActor)
        .IgnoreError();
  } else if (verb == "delete-class") {
    server.Remove(ResourceType::kPriorityClasses, "", name, kTenantActor).IgnoreError();
  } else if (verb == "delete-group") {
    server.Remove(ResourceType::kPodGroups, ns, name, kTenantActor).IgnoreError();
  } else {
    return false;
  }
  return true;
}

bool Tenants::DoNode(const Operation& operation) {
  const std::string& verb = operation.verb;
  ApiServer& server = *parts_.server;
  const std::string name = operation.Text("name");
  std::function<void(Json&)> change;
  if (verb == "node") {
    server.Create(ResourceType::kNodes, MakeNode(operation), kTenantActor).IgnoreError();
    return true;
  }
  if (verb == "kill-node") {
    server.RemoveNow(ResourceType::kNodes, "", name, kTenantActor).IgnoreError();
    return true;
  }
  if (verb == "shrink-node") {
    change = [&](Json& node) {
      node["status"]["allocatable"]["cpu"] = absl::StrCat(operation.Number("cpu"), "m");
    };
  } else if (verb == "node-gpus") {  // devices that fail, and come back
    change = [&](Json& node) {
      node["status"]["allocatable"]["nvidia.com/gpu"] = absl::StrCat(operation.Number("gpu"));
    };
  } else if (verb == "label-node") {
    change = [&](Json& node) {
      Json& labels = node["metadata"]["labels"];
      if (operation.Text("value").empty()) {
        labels.erase(operation.Text("key"));
      } else {
        labels[operation.Text("key")] = operation.Text("value");
      }
    };
  } else if (verb == "cordon-node") {
    change = [&](Json& node) { node["spec"]["unschedulable"] = operation.Number("on") != 0; };
  } else if (verb == "taint-node") {
    change = [&](Json& node) {
      Json& taints = node["spec"]["taints"];
      taints = Json::array();
      if (operation.Number("on") == 0) return;
      taints.push_back(
          {{"key", "example.com/maintenance"},
           {"effect", operation.Number("soft") != 0 ? "PreferNoSchedule" : "NoSchedule"}});
    };
  } else if (verb == "node-ready") {
    change = [&](Json& node) { SetNodeReady(node, operation.Number("on") != 0); };
  } else {
    return false;
  }
  server
      .Modify(
          ResourceType::kNodes, "", name,
          [&](Json& node) {
            change(node);
            return absl::OkStatus();
          },
          kTenantActor)
      .IgnoreError();
  return true;
}

// One of those whose nodes have not come, if there is any; by force: also if it has a finalizer.
void Tenants::DeleteRequest(int64_t pick, bool force) {
  std::vector<std::string> booting;
  parts_.server->ForEach(ResourceType::kNodeRequests, [&](const Json& request) {
    const std::string phase = TextAt(request, {"status", "phase"});
    if (phase.empty() || phase == "Pending" || phase == "Launched") {
      booting.push_back(TextAt(request, {"metadata", "name"}));
    }
  });
  if (booting.empty()) return;
  const std::string& name = booting[static_cast<size_t>(pick) % booting.size()];
  ApiServer& server = *parts_.server;
  (force ? server.RemoveNow(ResourceType::kNodeRequests, "", name, kTenantActor)
         : server.Remove(ResourceType::kNodeRequests, "", name, kTenantActor))
      .IgnoreError();
}

bool Tenants::DoMachines(const Operation& operation) {
  const std::string& verb = operation.verb;
  if (verb == "cloud") {
    for (size_t i = 0; i < kLies; ++i) {
      const Lie lie = static_cast<Lie>(i);
      const absl::Time until =
          operation.Text("for_ms") == "always" ? absl::InfiniteFuture() : Until(operation);
      if (operation.Text("lie") == LieName(lie)) parts_.cloud->LieUntil(lie, until);
    }
  } else if (verb == "lose-machine") {
    parts_.cloud->LoseOne();
  } else if (verb == "take-back") {
    parts_.cloud->TakeBack(operation.Number("pick"),
                           absl::Milliseconds(operation.Number("notice_ms")));
  } else if (verb == "old-machine") {
    parts_.cloud->Inherit(operation.Text("name"), operation.Number("gpu"),
                          operation.Number("price"));
  } else if (verb == "refuse-binding") {
    parts_.server->RefuseBinding(operation.Text("name"));
  } else if (verb == "static-pods") {
    parts_.cloud->RunStaticPods();
  } else if (verb == "delete-request") {
    DeleteRequest(operation.Number("pick"), operation.Number("force") == 1);
  } else if (verb == "foreign-race") {
    parts_.foreign->RaceUntil(Until(operation));
  } else if (verb == "heartbeats") {
    parts_.cloud->BeatUntil(Until(operation));
  } else if (verb == "stuck-kubelet") {
    const std::string job = operation.Text("job");
    if (job.empty()) {
      parts_.kubelets->StickUntil(Until(operation));
    } else {
      parts_.kubelets->StickUntil(JobLabel(job), Until(operation));
    }
  } else if (verb == "unready") {
    parts_.kubelets->FailProbes(operation.Text("name"), Until(operation) - parts_.time->now());
  } else if (verb == "foreign-lag") {
    parts_.foreign->SetLag(absl::Milliseconds(operation.Number("ms")));
  } else {
    return false;
  }
  return true;
}

}  // namespace fairlead::sim::world
