// The karpenter provider's port to the world: NodeClaims through the API server. Answers come on
// the owner's thread.
//
// Ownership: the transport outlives it; no answer comes after its end. Thread-safety: the owner's
// thread. Errors: as ClaimApi says; a write is Unavailable, and not sent, if `time_left` (the fence
// of leadership, and the bound of each request's time-out) is zero.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "autoscale-hook/providers/karpenter/claim_api.h"
#include "cmd/fairlead/app/owner_calls.h"
#include "kube/transport/http.h"

namespace fairlead::cmd {

class KubeClaimApi final : public hook::ClaimApi {
 public:
  static constexpr int kPageSize = 500;
  // A failure is told without its reason after that.
  static constexpr absl::Duration kEventTimeout = absl::Seconds(5);

  KubeClaimApi(kube::HttpTransport* transport, std::shared_ptr<TaskQueue> tasks,
               std::function<absl::Duration()> time_left)
      : calls_(transport, std::move(tasks)), time_left_(std::move(time_left)) {}

  void Create(const std::string& name, std::string body, Done done) override;
  void Delete(const std::string& name, const std::string& uid, Done done) override;
  void List(const std::string& continuation, PageDone done) override;
  void LastWarning(const std::string& name, const std::string& uid, TextDone done) override;

 private:
  void Write(kube::HttpRequest request, const std::string& what, absl::StatusCode conflict,
             Done done);

  OwnerCalls calls_;
  std::function<absl::Duration()> time_left_;
};

}  // namespace fairlead::cmd
