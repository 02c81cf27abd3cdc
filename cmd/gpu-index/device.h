// Which GPU this container was given, by its UUID.
//
// The device plugin says it in NVIDIA_VISIBLE_DEVICES, or it does not ("void", "all", a path: that
// depends on how it hands devices over), and NVML sees exactly the GPUs that the container may
// open. Numbers are of no use: NVML counts what it sees, so that a container with one GPU always
// has number 0, whichever it is on the node. UUIDs are the same inside and outside, and
// NVIDIA_VISIBLE_DEVICES of another container takes them. (KAI does the same.)
//
// Source: NVIDIA's NVML API reference and container toolkit documentation.
// Thread-safety: none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fairlead::gpu_index {

// The one thing that is asked of NVML.
class Nvml {
 public:
  virtual ~Nvml() = default;
  // Of all GPUs that this process can open, in NVML's order. Unavailable with NVML's own words.
  virtual absl::StatusOr<std::vector<std::string>> Uuids() = 0;
};

// Loads the library at run time, so that nothing of CUDA is needed to build or to start. NotFound
// where it is missing, FailedPrecondition where it lacks a function: the message says what to do.
absl::StatusOr<std::unique_ptr<Nvml>> LoadNvml(const std::string& library);
inline constexpr char kNvmlLibrary[] = "libnvidia-ml.so.1";

// `visible`: NVIDIA_VISIBLE_DEVICES, empty if it is not set. `seen`: what NVML sees, or why it
// cannot be asked. FailedPrecondition if that leaves more than one possibility or none.
absl::StatusOr<std::string> ChooseDevice(absl::string_view visible,
                                         const absl::StatusOr<std::vector<std::string>>& seen);

}  // namespace fairlead::gpu_index
