// Groups of machines that another autoscaler buys for ProvisioningRequests
// (docs/providers/provisioning-request.md), behind the port of groups/. request_objects.h has the
// objects.
//
// Buying. An increase is one ProvisioningRequest for so many pods, each of which fills a machine of
// the group. The autoscaler makes the nodes for all of them or for none. Its name is made of the
// increase's token, so what is repeated after a lost answer, or by another process, is there
// already: that is no second purchase. Its owners are the NodeRequests, so the API server deletes
// it after the last of them.
//
// Machines. Every place of a request is listed as a placeholder until a node has come for it. Nodes
// with the group's labels come for the places of requests that are Provisioned, the oldest first,
// if they are younger than the request. Such a node gets, in one write, the name of its place and
// the annotation by which cluster-autoscaler keeps it; then the request records that the place is
// filled. Other nodes with these labels are of others, and are not listed.
//
// Ends.
//   - A machine: the autoscaler removes empty nodes itself, and no call makes it. So the annotation
//     that keeps the node is taken off, and the machine is listed as ending until its node is gone.
//     So it is if its NodeRequest is gone: a process that has ended may have left it. One node of
//     each group is checked in each round.
//   - A place of a request that is not Provisioned: the request is deleted, if none of its places
//     is wanted any more. It is whole, and its spec cannot be changed.
//   - A place of a request that is Provisioned: refused until a node has come for it, or until
//     `arrival_timeout` is over. The cloud has been asked, and no call takes that back.
//   - What the conditions say will not come is given up: all open places of the request at once.
// A request without open places whose machines are all gone or released is deleted in the next
// round, and with it its booking. If that fails it is tried again.
//
// Errors: as CloudGroups says. Those of one object concern its group alone, unless the API server
// does not answer or throttles: then the round fails. After a conflict (another program has changed
// the object) nothing was done, and the next round decides again. Times are counted by the process:
// a new one begins anew.
//
// Ownership: borrows the API and the scheduler; callbacks that arrive after its end are ignored.
// Thread-safety: none. Complexity: a round is O(groups) calls and one or two for each node that
// comes, O(n log n) in the nodes and places.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "autoscale-hook/providers/groups/cloud_groups.h"
#include "autoscale-hook/providers/groups/groups_provider.h"
#include "autoscale-hook/providers/groups/object_api.h"
#include "autoscale-hook/providers/groups/object_calls.h"
#include "autoscale-hook/providers/provisioningrequest/request_objects.h"
#include "autoscale-hook/providers/scheduler_port.h"
#include "scheduler/model/provisioning_group.h"

namespace fairlead::hook {

// The defaults of groups/, with the words of this provider, longer pauses (a list of nodes is
// long), and one increase for each set.
GroupsOptions ProvisioningRequestOptions();

class ProvisioningGroups final : public CloudGroups {
 public:
  // Nodes that are taken in one round; the others wait for the next one.
  static constexpr size_t kArrivalsPerRound = 100;

  // `settings`: with a namespace. `known_type`: of the configured catalogue; null: there is none.
  ProvisioningGroups(const model::ProvisioningSettings& settings, KnownType known_type,
                     ObjectApi* api, Scheduler* scheduler);
  ProvisioningGroups(const ProvisioningGroups&) = delete;
  ProvisioningGroups& operator=(const ProvisioningGroups&) = delete;

  void Refresh(Done done) override;
  void Groups(Answer<std::vector<CloudGroup>> answer) override;
  void GpuLabel(Answer<std::string> answer) override { answer(std::string()); }
  void NodePrice(const CloudNode& node, Answer<double> answer) override;
  void TargetSize(const std::string& group, Answer<int64_t> answer) override;
  void Nodes(const std::string& group, Answer<std::vector<CloudInstance>> answer) override;
  void TemplateNode(const std::string& group, Answer<model::Node> answer) override;
  void IncreaseSize(const std::string& group, const Increase& increase, Done done) override;
  void DecreaseTargetSize(const std::string& group, int64_t delta, Done done) override;
  void DeleteNodes(const std::string& group, const std::vector<CloudNode>& nodes,
                   Done done) override;

 private:
  struct ListedNode {
    std::string name, provider_id, resource_version;
    absl::Time creation;
    bool deleting = false;
    // The request and the place for which it has come; none: it is of others, or new.
    std::optional<std::pair<std::string, size_t>> came_for;
    std::string ordered_by;  // the NodeRequest
  };
  struct Group {
    model::ProvisioningGroup config;
    // Of the last Refresh. Not OK: the rest is of an earlier one.
    absl::Status read = absl::UnavailableError("not read yet");
    std::vector<ListedNode> nodes;                  // in the order in which they came
    std::map<std::string, BoughtRequest> requests;  // by name
    std::string checked;                            // the node that was checked last
  };
  // Since when a request says what it says: whether that has lasted for too long.
  struct Clock {
    RequestStage stage = RequestStage::kWaiting;
    uint64_t number = 0;
    bool over = false;
  };
  struct Arrival {
    std::string node, request;  // names
    size_t place = 0;
    std::string ordered_by;
  };
  struct Operation : GroupOperation {
    Increase increase;
    std::string pod_template;
  };
  using OperationPtr = std::shared_ptr<Operation>;
  using Then = std::function<void()>;

  // provisioning_groups.cc
  [[nodiscard]] std::string RequestPath(const std::string& name) const;
  Group* Find(const std::string& id);
  [[nodiscard]] absl::Status OfRound() const;
  void TakeRequests(const Json& list);
  void StartClocks();
  void ReadNodes(const std::string& id, Then then);
  [[nodiscard]] static std::vector<Arrival> ArrivalsOf(const Group& group);
  void TakeArrivals(const std::string& id, std::vector<Arrival> arrivals, Then then);
  static void TakePlaces(Group& group);
  void ForgetReleased();
  void RecordPlaces(const std::string& id, std::vector<std::string> requests, Then then);
  void DeleteFinished(const std::string& id, Then then);
  void CheckOneNode(const std::string& id, Then then);
  // Takes the annotation off by which the autoscaler keeps the node. Done before is done again.
  void LetGo(const std::string& node, const std::string& provider_id, Done done);
  // Returns the request's error, which all its open places have; an empty code: none.
  [[nodiscard]] CloudInstance ErrorOf(const BoughtRequest& request) const;
  [[nodiscard]] std::vector<CloudInstance> InstancesOf(const Group& group) const;

  // provisioning_writes.cc
  void Finish(const OperationPtr& op, const absl::Status& status);
  void CreateRequest(const OperationPtr& op);
  void CheckExisting(const OperationPtr& op, const absl::StatusOr<Json>& object);
  void TakeBackPlace(const OperationPtr& op, const std::string& name, size_t place);
  void DeleteRequest(const OperationPtr& op, const BoughtRequest& request);
  void GiveUpPlaces(const OperationPtr& op, const BoughtRequest& request);

  const model::ProvisioningSettings settings_;
  const KnownType known_type_;
  ObjectApi* const api_;
  Scheduler* const scheduler_;
  std::map<std::string, Group> groups_;               // by id
  std::map<std::string, Clock> clocks_;               // by uid of the request
  std::map<std::string, std::set<size_t>> unwanted_;  // places that are to go, by uid
  std::set<std::string> released_;                    // ids of machines that are to go
  uint64_t last_clock_ = 0;
  OwnedCallbacks callbacks_;
};

}  // namespace fairlead::hook
