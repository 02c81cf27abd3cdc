// A pod while it is being decoded. Both decoders fill a draft, and one function makes a model::Pod
// of it, so that protobuf and JSON cannot disagree.
//
// Thread-safety: a plain value. Ownership: the pod belongs to the caller; it is filled in place,
// since moving a pod costs as much as decoding half of one.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "kube/codec/effective_requests.h"
#include "kube/codec/field_problems.h"
#include "scheduler/model/pod.h"

namespace fairlead::kube {

// status.qosClass of a pod whose containers have limits of CPU and memory equal to their requests.
inline constexpr char kGuaranteed[] = "Guaranteed";

struct PortDraft {
  bool of_init_container = false;
  size_t container = 0;  // index within its list
  int32_t host_port = 0, container_port = 0;
  std::string protocol, host_ip;
};

// matchLabelKeys and mismatchLabelKeys of the term or constraint that is last in its list when they
// are read. They become requirements once the pod's labels are known.
struct LabelKeysDraft {
  enum class Of : uint8_t { kAffinity, kAntiAffinity, kSpread } of = Of::kAffinity;
  size_t index = 0;
  std::vector<std::string> match, mismatch;
};

// core.v1.RBDVolumeSource.
struct RbdDraft {
  std::vector<std::string> monitors;
  std::string pool, image;
  bool read_only = false;
};
model::InlineDisk ToDisk(RbdDraft rbd);

// The images of a pod as written, empty ones left out; views into the message.
struct ImagesDraft {
  using Images = absl::InlinedVector<absl::string_view, 2>;
  Images containers, init_containers, volumes;
};

// The condition of a pod whose resize has not begun, and the reason of one that never will.
inline constexpr char kPodResizePending[] = "PodResizePending";
inline constexpr char kResizeInfeasible[] = "Infeasible";

// The action of a rule for a container's restart that all kubelets may not know.
inline constexpr char kRestartAllContainers[] = "RestartAllContainers";

struct PodDraft {
  explicit PodDraft(model::Pod& target) : pod(target) {}

  model::Pod& pod;
  PodResources resources;
  std::vector<PortDraft> ports;
  ImagesDraft images;
  std::vector<LabelKeysDraft> label_keys;
  bool host_network = false;
  bool host_users = true;
  bool restarts_all_containers = false;  // a rule of a container says so
  // Claims of the pod that come from templates: their names within the pod, and the templates'
  // names; and the names of the claims that the status mentions.
  std::vector<std::pair<std::string, std::string>> template_claims;
  std::vector<std::string> made_claims;
  Problems problems;
};

// An image as nodes list it: with the tag ":latest" if it has neither tag nor digest (upstream's
// normalizedImageName).
std::string NormalizedImage(absl::string_view image);

// Completes draft.pod; the draft must not be used afterwards.
void FinishPod(PodDraft& draft);

// The annotations of KAI's GPU sharing (facts of KAI's admission: a fraction is strictly between 0
// and 1, memory is whole MiB, devices at least 1; fraction and memory exclude each other and a
// request for whole GPUs).
// MIG instances asked for by annotations nvidia.com/mig-PROFILE: "COUNT" (KAI's legacy form).
model::ResourceList ParseLegacyMig(const model::StringMap& annotations, Problems& problems);
model::GpuShare ParseGpuShare(const model::StringMap& annotations,
                              const model::ResourceList& requests, Problems& problems);

}  // namespace fairlead::kube
