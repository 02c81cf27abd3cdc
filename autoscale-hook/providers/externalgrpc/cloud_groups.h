// Groups of machines behind a server of cluster-autoscaler's protocol for external cloud providers,
// as a port: external-grpc/client.h implements it, tests have a fake.
//
// Every function answers once, at the latest after the implementation's deadline, possibly before
// it returns. Errors have gRPC's codes, and name the call and the server's address:
// DeadlineExceeded and Unavailable mean that the outcome is unknown, Unimplemented that the server
// does not have this call. Servers cache what the cloud has told them until Refresh.
//
// What a server answers is not checked here, apart from its form (GroupReader does it).
//
// Thread-safety: one thread, the owner's; answers come on it too.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/model/node.h"

namespace fairlead::hook {

struct CloudGroup {
  std::string id;
  int64_t min_size = 0, max_size = 0;
  std::string debug;
  friend bool operator==(const CloudGroup&, const CloudGroup&) = default;
};

enum class InstanceState : uint8_t { kUnspecified, kRunning, kCreating, kDeleting };

struct CloudInstance {
  std::string id;  // Node.spec.providerID of its node
  InstanceState state = InstanceState::kUnspecified;
  // Why it cannot be created; an empty code: no error.
  std::string error_code = {}, error_message = {};
  int32_t error_class = 0;  // kOutOfResources, or another
  friend bool operator==(const CloudInstance&, const CloudInstance&) = default;
};
inline constexpr int32_t kOutOfResources = 1;

// A node as the protocol describes it.
struct CloudNode {
  std::string provider_id, name;
  model::StringMap labels = {}, annotations = {};
};

class CloudGroups {
 public:
  template <typename T>
  using Answer = std::function<void(absl::StatusOr<T>)>;
  using Done = std::function<void(absl::Status)>;

  virtual ~CloudGroups() = default;
  virtual void Refresh(Done done) = 0;
  virtual void Groups(Answer<std::vector<CloudGroup>> answer) = 0;
  virtual void GpuLabel(Answer<std::string> answer) = 0;
  // Dollars for one hour from now.
  virtual void NodePrice(const CloudNode& node, Answer<double> answer) = 0;

  virtual void TargetSize(const std::string& group, Answer<int64_t> answer) = 0;
  virtual void Nodes(const std::string& group, Answer<std::vector<CloudInstance>> answer) = 0;
  virtual void TemplateNode(const std::string& group, Answer<model::Node> answer) = 0;
  virtual void IncreaseSize(const std::string& group, int64_t delta, Done done) = 0;
  // Lowers the target size by `delta` > 0. Machines that exist stay.
  virtual void DecreaseTargetSize(const std::string& group, int64_t delta, Done done) = 0;
  // Ends the machines and lowers the target size by their number.
  virtual void DeleteNodes(const std::string& group, const std::vector<CloudNode>& nodes,
                           Done done) = 0;
};

}  // namespace fairlead::hook
