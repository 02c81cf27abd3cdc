// The port of the providers cluster-api, scale-subresource and provisioning-request to an API
// server, over HTTP. Answers come on the owner's thread.
//
// Ownership: the transport outlives it; no answer comes after its end. Thread-safety: the owner's
// thread. Errors: as hook::ObjectApi says; a write is Unavailable, and not sent, if `time_left`
// (the fence of leadership, and the bound of each request's time-out) is zero.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "autoscale-hook/providers/groups/object_api.h"
#include "cmd/fairlead/app/owner_calls.h"
#include "kube/transport/http.h"

namespace fairlead::cmd {

class KubeObjectApi final : public hook::ObjectApi {
 public:
  static constexpr int kPageSize = 500;
  // A list of more items is refused.
  static constexpr size_t kMostItems = 100'000;
  static constexpr absl::Duration kTimeout = absl::Seconds(10);  // of each request

  KubeObjectApi(kube::HttpTransport* transport, std::shared_ptr<TaskQueue> tasks,
                std::function<absl::Duration()> time_left)
      : calls_(transport, std::move(tasks)), time_left_(std::move(time_left)) {}

  void Get(const std::string& path, JsonDone done) override;
  void List(const std::string& path, const std::string& label_selector, JsonDone done) override;
  void Patch(const std::string& path, std::string body, JsonDone done) override;
  void Create(const std::string& path, std::string body, JsonDone done) override;
  void Delete(const std::string& path, const std::string& uid, const std::string& resource_version,
              Done done) override;

 private:
  // Pages follow one another; `items` has those that were read.
  void ListPage(const std::string& first_page, const std::string& continuation,
                const std::shared_ptr<Json>& items, JsonDone done);
  // `conflict`: what 409 means.
  void Write(kube::HttpRequest request, absl::StatusCode conflict, JsonDone done);

  OwnerCalls calls_;
  std::function<absl::Duration()> time_left_;
};

}  // namespace fairlead::cmd
