#include "cmd/gpu-index/device.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace fairlead::gpu_index {
namespace {

// NVML's C interface, which is stable: nvmlReturn_t is an int with 0 for success, nvmlDevice_t a
// pointer.
using Result = int;
using Device = void*;

class LoadedNvml final : public Nvml {
 public:
  static absl::StatusOr<std::unique_ptr<Nvml>> Load(const std::string& library) {
    std::unique_ptr<LoadedNvml> nvml(new LoadedNvml());
    nvml->handle_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (nvml->handle_ == nullptr) {
      const char* why = dlerror();
      return absl::NotFoundError(absl::StrCat(
          "NVML cannot be loaded: ", why == nullptr ? library.c_str() : why,
          "; the NVIDIA container runtime puts it into containers with a GPU (runtimeClassName "
          "nvidia, or the runtime as the node's default)"));
    }
    FAIRLEAD_RETURN_IF_ERROR(nvml->Find("nvmlInit_v2", nvml->init_));
    FAIRLEAD_RETURN_IF_ERROR(nvml->Find("nvmlShutdown", nvml->shutdown_));
    FAIRLEAD_RETURN_IF_ERROR(nvml->Find("nvmlErrorString", nvml->error_string_));
    FAIRLEAD_RETURN_IF_ERROR(nvml->Find("nvmlDeviceGetCount_v2", nvml->count_));
    FAIRLEAD_RETURN_IF_ERROR(nvml->Find("nvmlDeviceGetHandleByIndex_v2", nvml->by_index_));
    FAIRLEAD_RETURN_IF_ERROR(nvml->Find("nvmlDeviceGetUUID", nvml->uuid_));
    return nvml;
  }
  ~LoadedNvml() override {
    if (handle_ != nullptr) dlclose(handle_);
  }
  LoadedNvml(const LoadedNvml&) = delete;
  LoadedNvml& operator=(const LoadedNvml&) = delete;

  absl::StatusOr<std::vector<std::string>> Uuids() override {
    FAIRLEAD_RETURN_IF_ERROR(Check("nvmlInit_v2", init_()));
    absl::StatusOr<std::vector<std::string>> uuids = Read();
    shutdown_();  // its result does not matter: no call follows
    return uuids;
  }

 private:
  LoadedNvml() = default;

  template <typename Function>
  absl::Status Find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle_, name));
    if (function != nullptr) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("NVML has no function ", name, ": its driver is too old"));
  }

  absl::Status Check(const char* what, Result result) const {
    if (result == 0) return absl::OkStatus();
    const char* text = error_string_(result);
    return absl::UnavailableError(
        absl::StrCat("NVML: ", what, ": ", text == nullptr ? "error " : text, " (", result, ")"));
  }

  absl::StatusOr<std::vector<std::string>> Read() {
    unsigned int count = 0;
    FAIRLEAD_RETURN_IF_ERROR(Check("nvmlDeviceGetCount_v2", count_(&count)));
    std::vector<std::string> uuids;
    for (unsigned int i = 0; i < count; ++i) {
      Device device = nullptr;
      FAIRLEAD_RETURN_IF_ERROR(Check("nvmlDeviceGetHandleByIndex_v2", by_index_(i, &device)));
      std::array<char, 96> text{};  // NVML_DEVICE_UUID_V2_BUFFER_SIZE
      FAIRLEAD_RETURN_IF_ERROR(Check("nvmlDeviceGetUUID", uuid_(device, text.data(), text.size())));
      text.back() = '\0';
      uuids.emplace_back(text.data());
    }
    return uuids;
  }

  void* handle_ = nullptr;
  Result (*init_)() = nullptr;
  Result (*shutdown_)() = nullptr;
  const char* (*error_string_)(Result) = nullptr;
  Result (*count_)(unsigned int*) = nullptr;
  Result (*by_index_)(unsigned int, Device*) = nullptr;
  Result (*uuid_)(Device, char*, unsigned int) = nullptr;
};

bool IsUuid(absl::string_view text) { return absl::StartsWith(text, "GPU-"); }

absl::Status Unclear(absl::string_view why, absl::string_view visible) {
  return absl::FailedPreconditionError(absl::StrCat(why, " (NVIDIA_VISIBLE_DEVICES is ",
                                                    visible.empty() ? "not set" : visible, ")"));
}

// Without NVML only a UUID identifies the GPU.
absl::StatusOr<std::string> FromVariable(absl::string_view visible, const absl::Status& why_not) {
  if (IsUuid(visible) && !absl::StrContains(visible, ',')) return std::string(visible);
  return Unclear(why_not.message(), visible);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Nvml>> LoadNvml(const std::string& library) {
  return LoadedNvml::Load(library);
}

absl::StatusOr<std::string> ChooseDevice(absl::string_view visible,
                                         const absl::StatusOr<std::vector<std::string>>& seen) {
  if (absl::StartsWith(visible, "MIG-")) {
    return Unclear("a slice of a GPU (MIG) is not shared any further", visible);
  }
  if (!seen.ok()) return FromVariable(visible, seen.status());
  if (seen->empty()) return Unclear("NVML sees no GPU", visible);
  if (IsUuid(visible) && !absl::StrContains(visible, ',')) {
    if (std::find(seen->begin(), seen->end(), visible) != seen->end()) return std::string(visible);
    return Unclear(absl::StrCat("NVML does not see that GPU, but ", absl::StrJoin(*seen, ", ")),
                   visible);
  }
  if (seen->size() == 1) return seen->front();
  // A (privileged) container that sees more GPUs than it was given: then numbers are the node's.
  size_t number = 0;
  if (absl::SimpleAtoi(visible, &number) && number < seen->size()) return (*seen)[number];
  return Unclear(absl::StrCat("NVML sees ", seen->size(), " GPUs, and nothing says which is meant"),
                 visible);
}

}  // namespace fairlead::gpu_index
