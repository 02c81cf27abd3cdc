#include "cmd/fairlead/app/node_api.h"

#include <algorithm>

#include "cmd/fairlead/cluster/api_client.h"

namespace fairlead::cmd {

void KubeNodeApi::Send(kube::EncodedWrite write, Done done) {
  const absl::Duration time_left = time_left_ ? time_left_() : absl::InfiniteDuration();
  if (time_left <= absl::ZeroDuration()) {
    tasks_->Post([done = std::move(done)] { done(absl::AbortedError("not the leader")); });
    return;
  }
  kube::HttpRequest request;
  request.method = std::move(write.method);
  request.path = std::move(write.path);
  request.content_type = std::move(write.content_type);
  request.body = std::move(write.body);
  request.traffic = kube::TrafficClass::kWrite;
  request.timeout = std::min(request.timeout, time_left);
  transport_->Send(std::move(request), [tasks = tasks_, done = std::move(done)](
                                           const absl::StatusOr<kube::HttpResponse>& answer) {
    tasks->Post([done, status = StatusOfAnswer(answer)] { done(status); });
  });
}

void KubeNodeApi::CreateNode(const model::Node& node, Done done) {
  Send(kube::EncodeCreateNode(node), std::move(done));
}

void KubeNodeApi::SetNodeReady(const model::Node& node, Done done) {
  Send(kube::EncodeNodeStatus(node), std::move(done));
}

void KubeNodeApi::DeleteNode(const std::string& name, Done done) {
  Send(kube::EncodeDeleteNode(name, ""), std::move(done));
}

void TimerScheduler::After(absl::Duration delay, std::function<void()> callback) {
  timers_->After(delay,
                 [tasks = tasks_, callback = std::move(callback)] { tasks->Post(callback); });
}

}  // namespace fairlead::cmd
