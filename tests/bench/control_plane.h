// A real Kubernetes control plane for the benchmarks, and a small client besides the program's own
// adapters: creates, lists and deletes objects, many at a time.
//
// The control plane is `fairlead-control-plane up` (tests/control-plane): etcd and kube-apiserver
// on 127.0.0.1, ports of their own choice, in a temporary folder that is removed at the end. It
// ends with this process, however that ends.
//
// Thread-safety: none, but the transport's own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "kube/codec/codec.h"
#include "kube/credentials/client_config.h"
#include "kube/transport/curl_transport.h"

namespace fairlead::bench {

class ControlPlane {
 public:
  // `crds`: a folder of CRDs to install; empty: none. Waits until it is ready.
  static absl::StatusOr<std::unique_ptr<ControlPlane>> Start(const std::string& binary,
                                                             const std::string& crds);
  ~ControlPlane();
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;

  [[nodiscard]] const kube::ClientConfig& config() const { return config_; }

  // CPU time that etcd and the API server have used.
  [[nodiscard]] double CpuSeconds() const;
  // Waits until they are idle, so that a measurement does not include work of the previous one; at
  // most half a minute.
  void WaitUntilIdle() const;

 private:
  ControlPlane() = default;
  std::string folder_;
  pid_t process_ = -1;
  kube::ClientConfig config_;
};

class ApiClient {
 public:
  // Ends the benchmark if the configuration cannot be used.
  ApiClient(const kube::ClientConfig& config, int write_connections);

  kube::CurlTransport& transport() { return *transport_; }

  // Keeps `window` requests in flight until all are answered; returns the number of 2xx answers.
  // Prints the first other answer to stderr.
  int64_t SendAll(const std::vector<kube::EncodedWrite>& writes, int window);
  // The body of a 200, or the error.
  absl::StatusOr<std::string> Get(const std::string& path, const std::string& accept);
  // Every object of the kind, page by page.
  std::vector<kube::Object> List(model::Kind kind);
  // Returns when the API server has collected the garbage of its heap.
  void CollectServerGarbage();
  // Requests that changed or made pods, bindings, events and PodGroups, as the API server has
  // counted them.
  double WritesSoFar();

 private:
  RealClock clock_;
  std::unique_ptr<kube::CurlTransport> transport_;
};

}  // namespace fairlead::bench
