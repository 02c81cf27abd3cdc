#include "cmd/main/gperftools.h"

#include <gperftools/malloc_extension.h>
#include <gperftools/profiler.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace fairlead::cmd {
namespace {

// A file without a folder: the container's file system may be read-only.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("fairlead-profile", MFD_CLOEXEC)) {}
  ~MemoryFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] std::string path() const { return absl::StrCat("/proc/self/fd/", fd_); }
  [[nodiscard]] std::string Text() const {
    std::string text;
    char buffer[65536];
    off_t at = 0;
    for (ssize_t got = 0; (got = ::pread(fd_, buffer, sizeof(buffer), at)) > 0; at += got) {
      text.append(buffer, static_cast<size_t>(got));
    }
    return text;
  }

 private:
  const int fd_;
};

absl::StatusOr<std::string> CpuProfile(absl::Duration duration) {
  const MemoryFile file;
  if (ProfilerStart(file.path().c_str()) == 0) {
    return absl::UnavailableError("the profiler does not start: another one is at work");
  }
  absl::SleepFor(duration);
  ProfilerStop();
  return file.Text();
}

absl::StatusOr<std::string> HeapProfile() {
  const char* const interval = std::getenv("TCMALLOC_SAMPLE_PARAMETER");
  int64_t bytes = 0;
  if (interval == nullptr || !absl::SimpleAtoi(interval, &bytes) || bytes <= 0) {
    return absl::FailedPreconditionError(
        "allocations are not sampled; start the program with TCMALLOC_SAMPLE_PARAMETER=524288 in "
        "its environment");
  }
  MallocExtensionWriter text;
  MallocExtension::instance()->GetHeapSample(&text);
  return text;
}

}  // namespace

Profiler GperftoolsProfiler() { return {CpuProfile, HeapProfile}; }

}  // namespace fairlead::cmd
