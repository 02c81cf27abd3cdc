#include "kube/codec/pod_draft.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kube/codec/node_topology_json.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/quantity.h"

namespace fairlead::kube {
namespace {

constexpr char kUpstreamSchedulerName[] = "default-scheduler";
constexpr char kDefaultRbdPool[] = "rbd";  // the API server's default
constexpr int64_t kNanoPerOne = 1000 * 1000 * 1000;
constexpr int64_t kMaxDevices = 10000;
constexpr int64_t kMaxMemoryMib = int64_t{1} << 40;

template <typename T>
void SortUnique(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

// Digits only: no sign, no space, no exponent.
bool ParseCount(absl::string_view text, int64_t max, int64_t& out) {
  if (text.empty() || text.find_first_not_of("0123456789") != absl::string_view::npos) return false;
  return absl::SimpleAtoi(text, &out) && out >= 1 && out <= max;
}

void AddHostPorts(PodDraft& draft) {
  std::vector<model::HostPort>& out = draft.pod.spec.host_ports;
  for (PortDraft& port : draft.ports) {
    // Ordinary init containers end before the pod uses its ports.
    if (port.of_init_container && !draft.resources.init_containers[port.container].sidecar)
      continue;
    int32_t number = port.host_port;
    if (number == 0 && draft.host_network) number = port.container_port;
    if (number == 0) continue;
    if (port.protocol.empty()) port.protocol = "TCP";
    out.push_back({number, std::move(port.protocol), std::move(port.host_ip)});
  }
  if (out.size() < 2) return;
  std::sort(out.begin(), out.end(), [](const model::HostPort& a, const model::HostPort& b) {
    return std::tie(a.port, a.protocol, a.host_ip) < std::tie(b.port, b.protocol, b.host_ip);
  });
  out.erase(std::unique(out.begin(), out.end()), out.end());
}

void SetImages(const PodDraft& draft, model::PodImages& out) {
  const ImagesDraft& images = draft.images;
  out.containers = static_cast<int64_t>(draft.resources.containers.size() +
                                        draft.resources.init_containers.size());
  out.names.reserve(images.containers.size() + images.init_containers.size() +
                    images.volumes.size());
  for (const auto* part : {&images.init_containers, &images.containers, &images.volumes}) {
    for (const absl::string_view image : *part) out.names.push_back(NormalizedImage(image));
  }
}

model::LabelSelector& SelectorOf(const LabelKeysDraft& keys, model::PodSpec& spec) {
  switch (keys.of) {
    case LabelKeysDraft::Of::kAffinity:
      return spec.pod_affinity[keys.index].selector;
    case LabelKeysDraft::Of::kAntiAffinity:
      return spec.pod_anti_affinity[keys.index].selector;
    case LabelKeysDraft::Of::kSpread:
      break;
  }
  return spec.topology_spread[keys.index].selector;
}

// The server merges the keys into the selector when a pod is created. This does it for a pod that
// was never on a server (a manifest in the simulator) and for older servers.
void MergeLabelKeys(const LabelKeysDraft& keys, model::Pod& pod) {
  model::LabelSelector& selector = SelectorOf(keys, pod.spec);
  if (selector.none) return;
  const auto merge = [&](const std::vector<std::string>& names, model::SelectorOperator op) {
    for (const std::string& name : names) {
      const std::string* value = pod.meta.labels.Find(name);
      if (value == nullptr) continue;
      model::SelectorRequirement requirement{name, op, {*value}};
      auto& all = selector.requirements;
      if (std::find(all.begin(), all.end(), requirement) == all.end()) {
        all.push_back(std::move(requirement));
      }
    }
  };
  merge(keys.match, model::SelectorOperator::kIn);
  merge(keys.mismatch, model::SelectorOperator::kNotIn);
}

void SetFraction(absl::string_view text, const FieldPath& path, Problems& problems,
                 model::GpuShare& share) {
  const absl::StatusOr<int64_t> nano = text.size() > 64 ? absl::InvalidArgumentError("too long")
                                                        : model::ParseDecimal(text, kNanoPerOne);
  if (!nano.ok() || *nano <= 0 || *nano >= kNanoPerOne) {
    problems.Add(path, absl::StrCat(Quoted(text), " must be a number above 0 and below 1"));
    return;
  }
  const int64_t nano_per_milli = kNanoPerOne / 1000;
  share.fraction_milli = std::clamp<int64_t>((*nano + nano_per_milli / 2) / nano_per_milli, 1, 999);
}

}  // namespace

model::InlineDisk ToDisk(RbdDraft rbd) {
  SortUnique(rbd.monitors);
  return {model::InlineDisk::Kind::kRbd,
          absl::StrCat(rbd.pool.empty() ? kDefaultRbdPool : rbd.pool, "/", rbd.image),
          std::move(rbd.monitors), rbd.read_only};
}

std::string NormalizedImage(absl::string_view image) {
  // The last ':' begins a tag or a digest unless it is part of a registry's address.
  const auto last =
      std::find_if(image.rbegin(), image.rend(), [](char c) { return c == ':' || c == '/'; });
  if (last != image.rend() && *last == ':') return std::string(image);
  return absl::StrCat(image, ":latest");
}

model::GpuShare ParseGpuShare(const model::StringMap& annotations,
                              const model::ResourceList& requests, Problems& problems) {
  model::GpuShare share;
  const std::string* fraction = annotations.Find(model::kGpuFractionAnnotation);
  const std::string* memory = annotations.Find(model::kGpuMemoryAnnotation);
  const std::string* devices = annotations.Find(model::kGpuDevicesAnnotation);
  if (fraction == nullptr && memory == nullptr && devices == nullptr) return share;
  const FieldPath root;
  const FieldPath metadata = root.Field("metadata");
  const FieldPath path = metadata.Field("annotations");
  if (fraction != nullptr && memory != nullptr) {
    problems.Add(path.Key(model::kGpuFractionAnnotation),
                 absl::StrCat("cannot be combined with ", model::kGpuMemoryAnnotation));
    return share;
  }
  const char* key =
      fraction != nullptr ? model::kGpuFractionAnnotation : model::kGpuMemoryAnnotation;
  if (fraction != nullptr) {
    SetFraction(*fraction, path.Key(key), problems, share);
  } else if (memory != nullptr) {
    if (!ParseCount(*memory, kMaxMemoryMib, share.memory_mib)) {
      share.memory_mib = 0;
      problems.Add(path.Key(key),
                   absl::StrCat(Quoted(*memory), " must be a whole number of MiB above 0"));
    }
  } else {
    problems.Add(
        path.Key(model::kGpuDevicesAnnotation),
        absl::StrCat("needs ", model::kGpuFractionAnnotation, " or ", model::kGpuMemoryAnnotation));
    return share;
  }
  if (devices != nullptr && !ParseCount(*devices, kMaxDevices, share.devices)) {
    share.devices = 1;
    problems.Add(path.Key(model::kGpuDevicesAnnotation),
                 absl::StrCat(Quoted(*devices), " must be a whole number above 0"));
  }
  for (const auto& [name, amount] : requests) {
    const bool gpu = name == model::kGpuName || name == model::kAmdGpuName ||
                     absl::StartsWith(name, model::kMigPrefix);
    if (!gpu || amount <= 0) continue;
    problems.Add(path.Key(key), absl::StrCat("cannot be combined with a request for ", name));
    share = {};  // what a running pod has is what it requests
  }
  return share;
}

model::ResourceList ParseLegacyMig(const model::StringMap& annotations, Problems& problems) {
  constexpr int64_t kMaxInstances = 1000;
  model::ResourceList mig;
  for (const auto& [key, value] : annotations) {
    if (!absl::StartsWith(key, model::kMigPrefix)) continue;
    int64_t count = 0;
    if (!ParseCount(value, kMaxInstances, count)) {
      problems.Add(FieldPath().Field("metadata").Field("annotations").Key(key),
                   absl::StrCat(Quoted(value), " must be a whole number above 0"));
      continue;
    }
    model::Set(mig, key, count);
  }
  return mig;
}

namespace {

void ReadWishes(PodDraft& draft) {
  std::vector<model::WishProblem> problems;
  draft.pod.spec.wishes.Set(model::ParseInstanceWishes(draft.pod.meta.annotations, problems));
  for (const model::WishProblem& problem : problems) {
    const FieldPath root;
    const FieldPath metadata = root.Field("metadata");
    draft.problems.Add(metadata.Field("annotations").Key(problem.key), problem.what);
  }
}

// In the order of the spec.
void AddAwaitedClaims(PodDraft& draft) {
  for (const auto& [name, from_template] : draft.template_claims) {
    if (std::find(draft.made_claims.begin(), draft.made_claims.end(), name) ==
        draft.made_claims.end()) {
      draft.pod.awaited_claims.push_back(absl::StrCat(name, " of template ", from_template));
    }
  }
}

}  // namespace

void FinishPod(PodDraft& draft) {
  model::Pod& pod = draft.pod;
  AddHostPorts(draft);
  if (draft.restarts_all_containers) {
    draft.pod.spec.required_features |= model::kRestartAllContainersOnContainerExits;
  }
  if (draft.host_network && !draft.host_users) {
    draft.pod.spec.required_features |= model::kUserNamespacesHostNetworkSupport;
  }
  pod.spec.ns = pod.meta.ns;
  pod.spec.containers = AlignedContainers(draft.resources, pod.spec.guaranteed);
  SetImages(draft, pod.images);
  PodRequests requests = EffectiveRequests(std::move(draft.resources));
  pod.spec.requests = std::move(requests.requests);
  pod.spec.scoring_requests = requests.scoring;
  pod.spec.gpu_share = ParseGpuShare(pod.meta.annotations, pod.spec.requests, draft.problems);
  pod.numa_zones = ReadNumaZones(pod.meta.annotations);
  pod.spec.legacy_mig = ParseLegacyMig(pod.meta.annotations, draft.problems);
  ReadWishes(draft);
  for (const LabelKeysDraft& keys : draft.label_keys) MergeLabelKeys(keys, pod);
  if (!pod.spec.pod_affinity.empty() || !pod.spec.pod_anti_affinity.empty() ||
      !pod.spec.topology_spread.empty()) {
    pod.spec.labels_for_affinity = pod.meta.labels;
  }
  SortUnique(pod.spec.volume_claims);
  SortUnique(pod.spec.inline_disks);
  SortUnique(pod.spec.config_map_names);
  SortUnique(pod.spec.resource_claims);
  std::sort(pod.spec.claim_templates.begin(), pod.spec.claim_templates.end());
  std::sort(pod.generated_claims.begin(), pod.generated_claims.end());
  AddAwaitedClaims(draft);
  if (pod.scheduler_name.empty()) pod.scheduler_name = kUpstreamSchedulerName;
  if (!draft.problems.empty()) pod.invalid = draft.problems.Text();
}

}  // namespace fairlead::kube
