// A libnvidia-ml for tests: the GPUs that FAKE_NVML_GPUS lists, separated by commas. With "error"
// its initialisation fails.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

std::vector<std::string>& Gpus() {
  static std::vector<std::string> gpus;
  return gpus;
}

constexpr int kDriverNotLoaded = 9;

}  // namespace

extern "C" {

int nvmlInit_v2() {
  const char* const list = std::getenv("FAKE_NVML_GPUS");
  const std::string text = list == nullptr ? "" : list;
  if (text == "error") return kDriverNotLoaded;
  Gpus().clear();
  for (size_t from = 0; from < text.size();) {
    const size_t to = std::min(text.find(',', from), text.size());
    Gpus().push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return 0;
}

int nvmlShutdown() { return 0; }

const char* nvmlErrorString(int) { return "Driver Not Loaded"; }

int nvmlDeviceGetCount_v2(unsigned int* count) {
  *count = static_cast<unsigned int>(Gpus().size());
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
  *device = &Gpus().at(index);
  return 0;
}

int nvmlDeviceGetUUID(void* device, char* text, unsigned int length) {
  text[static_cast<std::string*>(device)->copy(text, length - 1)] = '\0';
  return 0;
}
}
