// Groups of equal machines, as a port of groups_provider.h. Its calls are those of
// cluster-autoscaler's protocol for external cloud providers: external-grpc/client.h calls a server
// of it, clusterapi/, scalesubresource/ and provisioningrequest/ do the same with objects of the
// API server, tests have a fake.
//
// Every function answers once, at the latest after the implementation's deadline, possibly before
// it returns. Errors have gRPC's codes, and say where they are from. Of a call that writes,
// DeadlineExceeded, Unavailable and Aborted mean that the outcome is unknown. Unimplemented: there
// is no such call. What is read may be as old as the last Refresh.
//
// What is answered is not checked here, apart from its form (GroupReader does it).
//
// Thread-safety: one thread, the owner's; answers come on it too.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autoscale-hook/provisioning/failure.h"
#include "scheduler/model/node.h"

namespace fairlead::hook {

struct CloudGroup {
  std::string id;
  int64_t min_size = 0, max_size = 0;
  // Changes when the template does; else for people.
  std::string debug = {};
  // Not OK: the group is there, and the rest cannot be read; the last good value counts.
  absl::Status wrong = absl::OkStatus();
  friend bool operator==(const CloudGroup&, const CloudGroup&) = default;
};

enum class InstanceState : uint8_t { kUnspecified, kRunning, kCreating, kDeleting };

struct CloudInstance {
  std::string id;  // Node.spec.providerID of its node, or of a placeholder
  InstanceState state = InstanceState::kUnspecified;
  // Why it cannot be created; an empty code: no error.
  std::string error_code = {}, error_message = {};
  int32_t error_class = 0;  // kOutOfResources, or another
  // A place for a machine that has no id yet: its machine will have another.
  bool placeholder = false;
  // The id under which the machine was listed as a placeholder; empty: unknown.
  std::string former_id = {};
  // The port knows for certain that Fairlead has ordered it.
  bool ordered = false;
  // The class of the error, of a port that knows more than `error_class`, in whose place it counts.
  std::optional<FailureClass> failure = {};
  friend bool operator==(const CloudInstance&, const CloudInstance&) = default;
};
inline constexpr int32_t kOutOfResources = 1;

// Machines that are ordered in one operation. Ports without names and tokens use the number alone.
struct Increase {
  struct For {
    std::string name, uid;  // of a NodeRequest
  };
  int64_t delta = 0;  // > 0, as many as there are requests
  // The same for the same requests, in every process: a repeated operation has it again.
  std::string token = {};
  std::vector<For> requests = {};
};

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
  virtual void IncreaseSize(const std::string& group, const Increase& increase, Done done) = 0;
  // Lowers the target size by `delta` > 0. Machines that exist stay.
  virtual void DecreaseTargetSize(const std::string& group, int64_t delta, Done done) = 0;
  // Ends the machines and lowers the target size by their number.
  virtual void DeleteNodes(const std::string& group, const std::vector<CloudNode>& nodes,
                           Done done) = 0;
};

}  // namespace fairlead::hook
