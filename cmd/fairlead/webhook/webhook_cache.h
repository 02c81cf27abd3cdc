// What admission reads of the cluster: queues and the default queues of namespaces, as the watches
// show them. The owner's thread fills it, the webhook's threads read it.
//
// Nothing is known before queues and namespaces were listed. While a new configuration makes the
// program list everything again, what was known before stays.
//
// Thread-safety: the observer's methods on the owner's thread, Get on any. Complexity: an event
// O(log objects); the first Get after a change O(objects).
#pragma once

#include <memory>
#include <mutex>

#include "admission/cluster.h"
#include "cmd/fairlead/app/app.h"

namespace fairlead::cmd {

class WebhookCache final : public AppObserver {
 public:
  void OnEvent(const model::ClusterEvent& event) override;
  void OnTick(const core::DecisionLoop& loop, absl::Time now) override;

  // Null until it is known.
  [[nodiscard]] std::shared_ptr<const admission::Cluster> Get() const;

 private:
  void Apply(const model::Object& object);
  void Forget(const model::Delete& event);

  mutable std::mutex mutex_;  // guards all but loop_
  admission::Cluster seen_;
  bool has_queues_ = false, has_namespaces_ = false;
  mutable bool changed_ = false;  // `given_` is not what is seen
  mutable std::shared_ptr<const admission::Cluster> given_;
  const core::DecisionLoop* loop_ = nullptr;  // whose events these are
};

}  // namespace fairlead::cmd
