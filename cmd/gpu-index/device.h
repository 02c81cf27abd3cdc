// Which GPU this container was given, by its UUID.
//
// The device plugin may name it in NVIDIA_VISIBLE_DEVICES. It may also set "void", "all" or a path,
// depending on how it passes devices. NVML sees exactly the GPUs that the container may open.
// Numbers do not help: NVML counts visible GPUs, so a container with one GPU always has number 0,
// whichever it is on the node. UUIDs are equal inside and outside, and NVIDIA_VISIBLE_DEVICES of
// another container accepts them. (KAI uses UUIDs too.)
//
// Source: NVIDIA's NVML API reference and container toolkit documentation. Thread-safety: none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fairlead::gpu_index {

// The part of NVML that is used.
class Nvml {
 public:
  virtual ~Nvml() = default;
  // The UUIDs of all GPUs that this process can open, in NVML's order. Unavailable with NVML's own
  // message.
  virtual absl::StatusOr<std::vector<std::string>> Uuids() = 0;
};

// Loads the library at run time, so that building and starting need no CUDA. NotFound if it is
// missing, FailedPrecondition if it lacks a function: the message says what to do.
absl::StatusOr<std::unique_ptr<Nvml>> LoadNvml(const std::string& library);
inline constexpr char kNvmlLibrary[] = "libnvidia-ml.so.1";

// `visible`: NVIDIA_VISIBLE_DEVICES, empty if it is not set. `seen`: the GPUs that NVML sees, or
// its error. FailedPrecondition if that leaves several candidates or none.
absl::StatusOr<std::string> ChooseDevice(absl::string_view visible,
                                         const absl::StatusOr<std::vector<std::string>>& seen);

}  // namespace fairlead::gpu_index
