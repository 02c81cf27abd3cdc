// The client of a server of cluster-autoscaler's protocol for external cloud providers
// (proto/external-grpc/cloud_provider.proto). One channel; calls are multiplexed on it, and none is
// repeated here.
//
// Errors have gRPC's codes, and texts like "NodeGroupNodes at HOST:PORT: no connection":
// DeadlineExceeded after the time-out, Unavailable without a connection, Cancelled at the client's
// end. An answer above kMostAnswerBytes is ResourceExhausted. A template that does not decode is
// InvalidArgument.
//
// Ownership: the client owns its channel. Its destructor cancels open calls and waits until their
// answers were posted. Thread-safety: any thread. Answers come as functions that are given to
// `post`, on a thread of the client; `post` must not block and must not end the client. Complexity:
// O(bytes of the message) per call.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "autoscale-hook/providers/groups/cloud_groups.h"
#include "external-grpc/messages.h"

namespace fairlead::external_grpc {

inline constexpr int kMostAnswerBytes = 16 << 20;

struct ClientOptions {
  std::string address;  // "HOST:PORT", "unix:///PATH"
  // PEM files; they are read once. No CA: the connection is not encrypted. Certificate and key,
  // both or none: the client shows them to the server.
  std::string ca_file, cert_file, key_file;
  std::string server_name;  // in the server's certificate; empty: that of the address
  absl::Duration timeout = absl::Seconds(5);  // of every call
};

class Client final : public hook::CloudGroups {
 public:
  using Post = std::function<void(std::function<void()> callback)>;

  // InvalidArgument with the field ("caFile: .."), for a file that cannot be read, for one of
  // certificate and key without the other, and for either without a CA. Connects to nothing yet.
  static absl::StatusOr<std::unique_ptr<Client>> Make(const ClientOptions& options, Post post);
  ~Client() override;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void Refresh(Done done) override;
  void Groups(Answer<std::vector<hook::CloudGroup>> answer) override;
  void GpuLabel(Answer<std::string> answer) override;
  void NodePrice(const hook::CloudNode& node, Answer<double> answer) override;
  void TargetSize(const std::string& group, Answer<int64_t> answer) override;
  void Nodes(const std::string& group, Answer<std::vector<hook::CloudInstance>> answer) override;
  void TemplateNode(const std::string& group, Answer<model::Node> answer) override;
  void IncreaseSize(const std::string& group, const hook::Increase& increase, Done done) override;
  void DecreaseTargetSize(const std::string& group, int64_t delta, Done done) override;
  void DeleteNodes(const std::string& group, const std::vector<hook::CloudNode>& nodes,
                   Done done) override;

  // What the provider does not need. An empty id: no group has the node.
  void GroupForNode(const hook::CloudNode& node, Answer<hook::CloudGroup> answer);
  void GpuTypes(Answer<std::vector<std::string>> answer);  // in their order
  void PodPrice(const std::string& pod_bytes, Answer<double> answer);
  void Options(const std::string& group, const GroupOptions& defaults, Answer<GroupOptions> answer);
  // Ends the server's resources: it serves nothing afterwards, to any client.
  void Cleanup(Done done);

  [[nodiscard]] size_t open() const;

 private:
  struct Impl;
  Client();
  std::unique_ptr<Impl> impl_;
};

}  // namespace fairlead::external_grpc
