#include "kube/codec/effective_requests.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"

namespace fairlead::kube {
namespace {

using model::ResourceList;

bool Has(const ResourceList& list, absl::string_view name) {
  return std::any_of(list.begin(), list.end(), [&](const auto& e) { return e.first == name; });
}

bool IsHugePages(absl::string_view name) { return absl::StartsWith(name, "hugepages-"); }

bool IsPodLevelResource(absl::string_view name) {
  return name == model::kCpuName || name == model::kMemoryName || IsHugePages(name);
}

// The requests of one container; an absent request is the limit.
ResourceList TakeRequests(ContainerResources& container) {
  ResourceList requests = std::move(container.requests);
  for (const auto& [name, limit] : container.limits) {
    if (!Has(requests, name)) model::Set(requests, name, limit);
  }
  return requests;
}

ResourceList Aggregate(PodResources& resources) {
  ResourceList running;
  for (ContainerResources& container : resources.containers) {
    ResourceList requests = TakeRequests(container);
    if (running.empty()) {
      running = std::move(requests);
    } else {
      model::AddAll(running, requests);
    }
  }
  ResourceList sidecars;
  ResourceList starting;
  for (ContainerResources& container : resources.init_containers) {
    ResourceList requests = TakeRequests(container);
    if (container.sidecar) {
      model::AddAll(running, requests);
      model::AddAll(sidecars, requests);
      model::MaxAll(starting, sidecars);
    } else {
      model::AddAll(requests, sidecars);
      model::MaxAll(starting, requests);
    }
  }
  model::MaxAll(running, starting);
  return running;
}

void ApplyPodLevel(const PodResources& resources, ResourceList& total) {
  for (const auto& [name, limit] : resources.pod_limits) {
    if (!IsPodLevelResource(name) || Has(resources.pod_requests, name)) continue;
    // Hugepages cannot be overcommitted: their request is their limit.
    if (IsHugePages(name) || !Has(total, name)) model::Set(total, name, limit);
  }
  for (const auto& [name, request] : resources.pod_requests) {
    if (IsPodLevelResource(name)) model::Set(total, name, request);
  }
}

bool IsDevice(absl::string_view name) {
  return !IsPodLevelResource(name) && name != model::kEphemeralStorageName &&
         name != model::kPodsName;
}

bool RequestsDevice(const ContainerResources& container) {
  const auto is_device = [](const auto& entry) {
    return entry.second > 0 && IsDevice(entry.first);
  };
  return std::any_of(container.requests.begin(), container.requests.end(), is_device) ||
         std::any_of(container.limits.begin(), container.limits.end(), is_device);
}

}  // namespace

std::vector<model::ContainerRequests> AlignedContainers(const PodResources& resources,
                                                        bool guaranteed) {
  using Role = model::ContainerRequests::Role;
  std::vector<model::ContainerRequests> all;
  const bool alone = resources.containers.size() + resources.init_containers.size() <= 1 &&
                     resources.overhead.empty() && resources.pod_requests.empty() &&
                     resources.pod_limits.empty();
  if (alone) return all;
  const auto requests_device = [](const std::vector<ContainerResources>& containers) {
    return std::any_of(containers.begin(), containers.end(), RequestsDevice);
  };
  if (!guaranteed && !requests_device(resources.containers) &&
      !requests_device(resources.init_containers)) {
    return all;
  }
  const auto add = [&](Role role, ContainerResources container) {
    all.push_back({role, TakeRequests(container)});
  };
  for (const ContainerResources& container : resources.init_containers) {
    add(container.sidecar ? Role::kSidecar : Role::kInit, container);
  }
  for (const ContainerResources& container : resources.containers) add(Role::kMain, container);
  return all;
}

ResourceList EffectiveRequests(PodResources&& resources) {
  ResourceList total = Aggregate(resources);
  ApplyPodLevel(resources, total);
  model::AddAll(total, resources.overhead);
  total.erase(std::remove_if(total.begin(), total.end(),
                             [](const auto& entry) {
                               return entry.second == 0 || entry.first == model::kPodsName;
                             }),
              total.end());
  return total;
}

}  // namespace fairlead::kube
