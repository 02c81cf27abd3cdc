// A provider without machines: it creates Node objects, for which kwok's controller may act as
// kubelet. A node is created `boot_delay` after its launch and made ready `ready_delay` later.
//
// Nodes have the annotation kwok.x-k8s.io/node: fake and the label fairlead.dev/node-request, so a
// restart finds the nodes of its former life. Creating a node that exists counts as success; a node
// that was launched but not yet created is launched again by the hook. So it reports the machines
// of this process alone. Terminate waits for a creation that is under way.
//
// Ownership: does not own its ports; they outlive it. Callbacks that arrive after its destruction
// are ignored. Thread-safety: none; ports call back on the same thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "autoscale-hook/providers/provider.h"
#include "autoscale-hook/providers/scheduler_port.h"
#include "autoscale-hook/provisioning/failure.h"
#include "scheduler/model/node.h"

namespace fairlead::hook {

// The API server, as far as this provider writes to it.
class NodeApi {
 public:
  using Done = std::function<void(const absl::Status&)>;
  virtual ~NodeApi() = default;
  // Creates the Node with its status (capacity and allocatable as given), condition Ready False.
  virtual void CreateNode(const model::Node& node, Done done) = 0;
  // Sets condition Ready True; our startup taints stay.
  virtual void SetNodeReady(const model::Node& node, Done done) = 0;
  virtual void DeleteNode(const std::string& name, Done done) = 0;
};

struct KwokOptions {
  absl::Duration boot_delay = absl::Seconds(10);
  std::map<std::string, absl::Duration> boot_delay_by_type;
  absl::Duration ready_delay = absl::Seconds(1);
  // After a failed API call; doubles up to retry_max. A node whose first creation the API server
  // rejects for good (403, 422) is reported as gone.
  absl::Duration retry_delay = absl::Seconds(2), retry_max = absl::Minutes(1);
  // Asked at each launch; a type that is out of stock fails with Stockout. Null: none is.
  std::function<bool(absl::string_view instance_type)> out_of_stock = nullptr;
};

class KwokProvider final : public Provider {
 public:
  KwokProvider(KwokOptions options, Scheduler* scheduler, NodeApi* api);
  ~KwokProvider() override;

  [[nodiscard]] absl::string_view name() const override { return "kwok"; }
  void Start(ProviderListener* listener) override;
  void ReportAll() override;
  void Launch(std::vector<LaunchOrder> orders) override;
  void Terminate(const model::TerminateNode& terminate, Answer answer) override;

  // Fault injection: launches of the type fail with the class until it is cleared.
  void RefuseType(const std::string& instance_type, FailureClass failure);
  void AcceptType(const std::string& instance_type);

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace fairlead::hook
