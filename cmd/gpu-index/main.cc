// fairlead-gpu-index: the program in a reservation pod. It finds out which GPU the pod was given,
// writes it to the pod's annotation run.ai/reserve_for_gpu_index, and waits for its end. It uses no
// GPU.
//
// Environment: POD_NAME, POD_NAMESPACE (by the downward API), NVIDIA_VISIBLE_DEVICES (by the device
// plugin), FAIRLEAD_NVML_LIBRARY (another libnvidia-ml.so.1), KUBECONFIG (outside of a cluster).
// Exit codes: 0 a signal ended it; 1 the GPU is unknown or the server refuses: the kubelet starts
// it again; 2 it was called with arguments.
#include <csignal>
#include <ctime>
#include <iostream>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "base/write_attempts.h"
#include "cmd/gpu-index/announce.h"
#include "cmd/gpu-index/device.h"
#include "kube/credentials/credentials.h"
#include "kube/credentials/kubeconfig.h"
#include "kube/transport/curl_transport.h"

namespace fairlead::gpu_index {
namespace {

constexpr char kUsage[] = R"(Usage: fairlead-gpu-index
The program in a reservation pod, without arguments: finds out which GPU the pod was given, writes
it to the pod's annotation run.ai/reserve_for_gpu_index, and waits for its end. Uses no GPU.

Environment:
  POD_NAME, POD_NAMESPACE   of this pod (downward API)
  NVIDIA_VISIBLE_DEVICES    set by the device plugin
  FAIRLEAD_NVML_LIBRARY     another libnvidia-ml.so.1
  KUBECONFIG                outside of a cluster
)";

void Say(absl::string_view level, absl::string_view message) {
  std::cerr << "level=" << level << " msg=\"" << message << "\"\n";
}

std::string Variable(const kube::Environment& environment, absl::string_view name) {
  return environment(name).value_or("");
}

absl::StatusOr<std::string> FindDevice(const kube::Environment& environment) {
  const std::string library = Variable(environment, "FAIRLEAD_NVML_LIBRARY");
  absl::StatusOr<std::vector<std::string>> seen;
  absl::StatusOr<std::unique_ptr<Nvml>> nvml = LoadNvml(library.empty() ? kNvmlLibrary : library);
  if (nvml.ok()) {
    seen = (*nvml)->Uuids();
  } else {
    seen = nvml.status();
  }
  return ChooseDevice(Variable(environment, "NVIDIA_VISIBLE_DEVICES"), seen);
}

// True if a signal asked the process to end meanwhile.
bool AskedToEnd(const sigset_t& signals, absl::Duration patience) {
  if (patience == absl::InfiniteDuration()) return sigwaitinfo(&signals, nullptr) > 0;
  const timespec limit = absl::ToTimespec(patience);
  return sigtimedwait(&signals, nullptr, &limit) > 0;
}

absl::Status Run(const sigset_t& signals) {
  const kube::Environment environment = kube::ProcessEnvironment();
  const OwnPod pod{Variable(environment, "POD_NAMESPACE"), Variable(environment, "POD_NAME")};
  if (pod.ns.empty() || pod.name.empty()) {
    return absl::FailedPreconditionError("POD_NAME and POD_NAMESPACE must name this pod");
  }
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string device, FindDevice(environment));
  Say("info", "found GPU " + device);

  const RealClock clock;
  FAIRLEAD_ASSIGN_OR_RETURN(const kube::ClientConfig config,
                            kube::LoadClientConfig("", "", environment));
  kube::CurlTransportOptions options;
  options.user_agent = "fairlead-gpu-index";
  FAIRLEAD_ASSIGN_OR_RETURN(
      const auto transport,
      kube::CurlTransport::Create(config.server, kube::NewCredentialSource(config, clock), clock,
                                  options));
  const Backoff backoff = {absl::Milliseconds(500), absl::Seconds(10)};
  for (int64_t attempts = 1;; ++attempts) {
    absl::Status said = Announce(*transport, pod, device);
    if (said.ok()) break;
    if (!absl::IsUnavailable(said)) return said;
    Say("warning", said.message());
    if (AskedToEnd(signals, backoff.Pause(attempts))) return absl::OkStatus();
  }
  Say("info", "announced it");
  while (!AskedToEnd(signals, absl::InfiniteDuration())) {
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace fairlead::gpu_index

int main(int argc, char** argv) {
  if (argc > 1) {
    const bool help = absl::string_view(argv[1]) == "--help" || absl::string_view(argv[1]) == "-h";
    (help ? std::cout : std::cerr) << fairlead::gpu_index::kUsage;
    return help ? 0 : 2;
  }
  // Before any thread starts, so that all threads leave these signals to AskedToEnd.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const absl::Status status = fairlead::gpu_index::Run(signals);
  if (status.ok()) return 0;
  fairlead::gpu_index::Say("error", status.message());
  return 1;
}
