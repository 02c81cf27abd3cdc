#include "kube/codec/effective_requests.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"

namespace fairlead::kube {
namespace {

using model::ResourceList;
using model::ScoringRequests;

const int64_t* Find(const ResourceList& list, absl::string_view name) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const auto& e) { return e.first == name; });
  return found == list.end() ? nullptr : &found->second;
}

bool Has(const ResourceList& list, absl::string_view name) { return Find(list, name) != nullptr; }

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

// What counts of `spec` during a resize.
ResourceList DuringResize(const ResourceList& spec, const StatusResources& status,
                          bool infeasible) {
  ResourceList most;
  if (!infeasible) most = spec;
  model::MaxAll(most, status.in_force);
  model::MaxAll(most, status.allocated);
  return most;
}

void ApplyStatuses(PodResources& resources) {
  const auto apply = [&](ContainerResources& container) {
    const auto status = std::find_if(
        resources.statuses.rbegin(), resources.statuses.rend(),
        [&](const StatusResources& candidate) { return candidate.name == container.name; });
    if (status == resources.statuses.rend()) return;
    container.requests =
        DuringResize(TakeRequests(container), *status, resources.resize_infeasible);
    container.limits.clear();
  };
  for (ContainerResources& container : resources.containers) apply(container);
  for (ContainerResources& container : resources.init_containers) {
    if (container.sidecar) apply(container);
  }
}

int64_t RequestFor(const ContainerResources& container, absl::string_view name,
                   int64_t unrequested) {
  const int64_t* request = Find(container.requests, name);
  if (request == nullptr) request = Find(container.limits, name);
  return request == nullptr ? unrequested : *request;
}

ScoringRequests ScoringOf(const ContainerResources& container) {
  return {RequestFor(container, model::kCpuName, kUnrequested.cpu_milli),
          RequestFor(container, model::kMemoryName, kUnrequested.memory_bytes)};
}

// Two kinds of amounts are aggregated, by the same rules.
void Add(ResourceList& to, ResourceList&& amounts) {
  if (to.empty()) {
    to = std::move(amounts);
  } else {
    model::AddAll(to, amounts);
  }
}
void Add(ResourceList& to, const ResourceList& amounts) { model::AddAll(to, amounts); }
void Max(ResourceList& to, const ResourceList& amounts) { model::MaxAll(to, amounts); }
void Add(ScoringRequests& to, const ScoringRequests& amounts) {
  to.cpu_milli = model::SaturatingAdd(to.cpu_milli, amounts.cpu_milli);
  to.memory_bytes = model::SaturatingAdd(to.memory_bytes, amounts.memory_bytes);
}
void Max(ScoringRequests& to, const ScoringRequests& amounts) {
  to.cpu_milli = std::max(to.cpu_milli, amounts.cpu_milli);
  to.memory_bytes = std::max(to.memory_bytes, amounts.memory_bytes);
}

// `of`: the amounts of one container.
template <typename Amounts, typename Of>
Amounts Aggregate(PodResources& resources, Of of) {
  Amounts running{};
  for (ContainerResources& container : resources.containers) Add(running, of(container));
  Amounts sidecars{};
  Amounts starting{};
  for (ContainerResources& container : resources.init_containers) {
    Amounts requests = of(container);
    if (container.sidecar) {
      Add(running, requests);
      Add(sidecars, requests);
      Max(starting, sidecars);
    } else {
      Add(requests, sidecars);
      Max(starting, requests);
    }
  }
  Max(running, starting);
  return running;
}

void ApplyPodLevel(const PodResources& resources, ResourceList& total) {
  for (const auto& [name, limit] : resources.pod_limits) {
    if (!IsPodLevelResource(name) || Has(resources.pod_requests, name)) continue;
    // Hugepages cannot be overcommitted: their request is their limit.
    if (IsHugePages(name) || !Has(total, name)) model::Set(total, name, limit);
  }
  const StatusResources& status = resources.pod_status;
  const ResourceList counted =
      status.reported ? DuringResize(resources.pod_requests, status, resources.resize_infeasible)
                      : resources.pod_requests;
  for (const auto& [name, request] : resources.pod_requests) {
    if (IsPodLevelResource(name)) model::Set(total, name, model::Get(counted, name));
  }
}

bool HasPodLevel(const ResourceList& list) {
  return std::any_of(list.begin(), list.end(),
                     [](const auto& entry) { return IsPodLevelResource(entry.first); });
}

// `total` is complete; `scoring` is the sum of the containers.
void FinishScoring(const PodResources& resources, const ResourceList& total,
                   ScoringRequests& scoring) {
  const bool pod_level = HasPodLevel(resources.pod_requests) || HasPodLevel(resources.pod_limits);
  const auto finish = [&](absl::string_view name, int64_t& amount, int64_t& waiting) {
    amount = model::SaturatingAdd(amount, model::Get(resources.overhead, name));
    if (!pod_level || !Has(total, name) || model::Get(total, name) == amount) return;
    waiting = amount;
    amount = model::Get(total, name);
  };
  finish(model::kCpuName, scoring.cpu_milli, scoring.waiting_cpu_milli);
  finish(model::kMemoryName, scoring.memory_bytes, scoring.waiting_memory_bytes);
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

PodRequests EffectiveRequests(PodResources&& resources) {
  PodRequests effective;
  if (!resources.statuses.empty()) ApplyStatuses(resources);
  // First: the lists are consumed after it.
  effective.scoring = Aggregate<ScoringRequests>(resources, ScoringOf);
  ResourceList& total = effective.requests;
  total = Aggregate<ResourceList>(resources, TakeRequests);
  ApplyPodLevel(resources, total);
  model::AddAll(total, resources.overhead);
  FinishScoring(resources, total, effective.scoring);
  total.erase(std::remove_if(total.begin(), total.end(),
                             [](const auto& entry) {
                               return entry.second == 0 || entry.first == model::kPodsName;
                             }),
              total.end());
  return effective;
}

}  // namespace fairlead::kube
