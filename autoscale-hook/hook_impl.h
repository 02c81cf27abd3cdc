// The inside of Hook: hook.cc has the step and the answers, provisioning.cc turns demand into
// requests, trial.cc asks about demand that is held. Not for other files.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "autoscale-hook/catalog/catalogs.h"
#include "autoscale-hook/hook.h"
#include "autoscale-hook/machines/boot_times.h"
#include "autoscale-hook/machines/emptying.h"
#include "autoscale-hook/machines/machine_reports.h"
#include "autoscale-hook/machines/nodes_by_row.h"
#include "autoscale-hook/machines/observed_shapes.h"
#include "autoscale-hook/machines/removal.h"
#include "autoscale-hook/machines/replacement.h"
#include "autoscale-hook/machines/step_context.h"
#include "autoscale-hook/planner/caps.h"
#include "autoscale-hook/planner/planner.h"
#include "autoscale-hook/provisioning/gathering.h"
#include "autoscale-hook/provisioning/provisioning_guard.h"
#include "autoscale-hook/provisioning/provisioning_rate.h"

namespace fairlead::hook {

class Hook::Impl {
 public:
  Impl(HookOptions options, const Catalog* catalog, const Hook& hook);

  const std::set<Gathering::Key>& Gather(const DemandChanges& changes, absl::Time now) {
    gathering_.Update(changes, now);
    return gathering_.held();
  }
  StepOutput Step(const StepInput& input, Placement& placement);
  absl::StatusOr<model::Node> ExpectedNode(const model::NodeRequest& request,
                                           const std::vector<const model::NodePool*>& pools,
                                           bool registered) const;
  [[nodiscard]] absl::Duration ExpectedBoot(const model::NodeRequest& request) const {
    return boot_times_.Expect(request.instance_type, request.pool, options_.expected_boot);
  }
  // Null: it has none that the catalogue knows.
  [[nodiscard]] const Reservation* ReservationOf(const model::NodeRequest& request) const {
    const InstanceType* type = catalogs_.Of(request).Find(request.instance_type);
    return type == nullptr ? nullptr : type->FindReservation(request.reservation);
  }
  std::shared_ptr<const model::NodeDevices> DeclaredDevicesOf(
      const model::NodeRequest& request) const {
    const InstanceType* type = catalogs_.Of(request).Find(request.instance_type);
    if (type == nullptr) return nullptr;
    const auto pool = pools_.find(request.pool);
    return DeclaredDevices(*type, pool == pools_.end() ? nullptr : &pool->second);
  }
  int64_t GpusOf(const model::NodeRequest& request) const {
    return hook::GpusOf(request, catalogs_.Of(request));
  }
  std::vector<model::OfferedNode> NodesOnOffer(std::vector<const model::NodePool*> pools) const;
  std::vector<std::vector<std::string>> LabelsOnOffer(
      std::vector<const model::NodePool*> pools) const;
  Estimate EstimateFor(const DemandItem& item, std::vector<const model::NodePool*> pools,
                       Placement& placement, absl::Time now) const;
  void OnProviderResult(const ProviderCall& call, const absl::Status& status, absl::Time now,
                        const std::string& machine_id);
  void OnCreateResult(const std::string& name, const absl::Status& status, absl::Time now);
  void OnNodesListed(uint64_t number, const absl::Status& status,
                     const std::vector<ListedNode>& unseen, absl::Time now) {
    node_lists_.Answered(number, status, unseen, ledger_, now);
  }
  void OnMachineReport(const MachineReport& report, absl::Time now) {
    reports_.Take(report, ledger_, now);
  }
  void OnOffers(absl::string_view provider, std::shared_ptr<const Catalog> offers) {
    catalogs_.Set(provider, std::move(offers));
    OffersChanged();
  }
  MachineLedger& ledger() { return ledger_; }
  [[nodiscard]] bool enabled() const { return options_.enabled; }
  [[nodiscard]] uint64_t offers_version() const { return offers_version_; }
  void Continue(Impl& former);

 private:
  struct Orphan {
    absl::Time since;
    int64_t attempts = 0;
  };
  // ---- pools (hook.cc)
  std::vector<const model::NodePool*> TakePools(const StepInput& input);
  [[nodiscard]] CapsLeft CapsLeftBeside(const CapUsage& usage,
                                        const std::vector<const model::NodePool*>& pools) const;
  [[nodiscard]] bool IsKnownProvider(const std::string& provider) const;

  // ---- machines (hook_machines.cc)
  // Gives lost machines to the requests that take them over; the nodes by row after that.
  NodesByRow SettleRows(const StepInput& input);
  void TakeMachines(StepContext& context);
  void CountFound(const Machine& machine, absl::Time now);
  void AdvanceLostRows(StepContext& context);
  void AdvanceUnseen(StepContext& context);
  // At the begin of a step: machines that wait are looked at if they are due, or may be.
  void EndWaits(const std::vector<const model::NodePool*>& pools, absl::Time now);
  // Of a machine that may be steady and that nothing needs; none: it does not wait.
  [[nodiscard]] std::optional<absl::Time> WaitsUntil(const MachineView& view, absl::Time now) const;
  // At the end of a step: the next ones do not look at machines that have become steady.
  void NoteSteady(StepContext& context);
  void LearnShapes(StepContext& context);
  void LearnDevices(const StepContext& context);
  void LearnOverhead(const StepContext& context);
  void CountReserved(const StepContext& context);
  // What was found with the offers before is found out again.
  void OffersChanged() {
    ++offers_version_;
    tried_.clear();
  }
  void ScaleDown(const Demand& demand, Evacuation* evacuation, StepContext& context);
  // Requests cheaper machines for nodes that have pods (provisioning/replacing.cc).
  void ReplaceNodes(DisruptionBudgets& budgets, Evacuation* evacuation, StepContext& context);
  // Nodes that one machine may take the place of.
  using Leaving = std::vector<NodeEmptying::Candidate>;
  // The cheapest offer that is worth it; null: there is none. `offers`: by price of choice.
  const Offer* FindReplacement(const Leaving& leaving, const std::vector<Offer>& offers,
                               const CapsLeft& caps, Evacuation& evacuation) const;
  struct ReplacementLook {
    DisruptionBudgets& budgets;
    Evacuation& evacuation;
    size_t requested = 0;
    // What may be had for queues with these caps, by price of choice; none: not known yet.
    std::vector<const QueueCap*> queue_caps = {};
    std::optional<PlanInput> input = {};
  };
  // True if the nodes could be replaced; requests the machine when they are due.
  bool ReplaceTogether(const Leaving& leaving, ReplacementLook& look, StepContext& context);
  const PlanInput& InputFor(const std::string& queue, ReplacementLook& look, StepContext& context);
  void AdoptOrphans(StepContext& context);
  void AdoptNode(const NodeUse& node, const Machine* lost, StepContext& context,
                 std::map<std::string, Orphan>& seen);
  model::NodeRequest RequestOf(const NodeUse& orphan, const StepContext& context) const;
  // `queues`: of what was provisioned for them; null: of all.
  CapUsage UsageOf(const StepContext& context, const std::set<std::string>* queues = nullptr) const;

  // ---- demand (provisioning.cc)
  class GuardedPlacement;
  void Provision(const Demand& demand, const DemandMembers* members, Placement& placement,
                 StepContext& context);
  void JudgePurchases(const Demand& demand, const DemandMembers* members, StepContext& context);
  using Service = DemandOutcome::Service;
  struct Held {
    std::string why;  // empty: it is not
    Service service = Service::kOpen;
    std::optional<DemandOutcome> refused = {};  // instead: what TryHeld() has found
  };
  // Why the rate of provisioning, or former purchases, do not permit the item: then the hook is
  // woken when they do.
  Held WhyHeld(const DemandItem& item, StepContext& context);
  // Learns from requests of a former process.
  void RecallPurchases(const Demand& demand, const DemandMembers* members, StepContext& context);
  std::unique_ptr<Placement> Guarded(Placement& placement, absl::Time now) const;
  // Of these pools; those in back-off as resting.
  void AddOffers(const std::vector<const model::NodePool*>& pools, absl::Time now,
                 PlanInput& input) const;
  PlanInput MakePlanInput(const StepContext& context,
                          const std::vector<const QueueCap*>& queue_caps, CapUsage& usage);
  // Drops the nodes of workloads beyond the rate of provisioning.
  void KeepToRate(const Demand& demand, Plan& plan, StepContext& context);
  // `planned`: for each outcome of the plan, its workload as an item of its own; null if the plan
  // has no nodes for it.
  using Planned = std::vector<std::unique_ptr<DemandItem>>;
  // The plan for some items of the demand: charged or not, and below the same caps of queues. So
  // the nodes of queues with caps are planned for their pods alone.
  struct PartPlan {
    bool charged = true;
    std::vector<const QueueCap*> queue_caps;
    std::vector<size_t> items;       // indexes in the demand, ascending
    const Demand* demand = nullptr;  // those items
    Demand copy;                     // of them, if they are not all
    PlanInput input;
    CapUsage usage;
    Plan plan;
    Planned planned;
    size_t first_new = 0;                    // of its nodes in StepOutput::created
    size_t next_item = 0, next_outcome = 0;  // that are reported next
  };
  // Appends the items that may be planned now. Returns of each of the others why not.
  std::vector<Held> SelectItems(const Demand& demand, StepContext& context,
                                std::vector<size_t>& items);
  // Divides items into parts: first what is charged, each time in the order of their first items.
  static std::vector<PartPlan> DivideIntoParts(const Demand& demand,
                                               const std::vector<size_t>& items,
                                               const StepContext& context);
  // Finds out whether one workload of each held item could have nodes at all, so that nothing is
  // charged for what cannot be served while it is held (trial.cc).
  void TryHeld(const Demand& demand, Placement& placement, std::vector<Held>& held,
               StepContext& context);
  void MakePartPlan(const Demand& demand, Placement& placement, StepContext& context,
                    PartPlan& part);
  // Requests the nodes of the plan, as far as the rate allows.
  void OrderPlan(PartPlan& part, const DemandMembers* members, StepContext& context);
  // Appends the outcomes of the next item of the plan, which is `item`.
  void ReportItem(const DemandItem& item, PartPlan& part, Placement& placement,
                  StepContext& context);
  static Planned NamePlanned(const Plan& plan, const Demand& demand,
                             const std::vector<size_t>& indexes, const DemandMembers* members);
  void EmitPlan(const Plan& plan, const Planned& planned, StepContext& context);
  void ExplainGuard(const DemandItem& item, const PlanInput& input, Placement& placement,
                    DemandOutcome& outcome, StepContext& context);
  // The same, if the reason is devices that pods ask for by claims (device_reasons.cc).
  void ExplainDevices(const DemandItem& item, const PlanInput& input, Placement& placement,
                      DemandOutcome& outcome);
  model::NodeRequest RequestFor(const PlannedNode& node, const Planned& planned);
  // Of the offer; `first` is what it is for.
  model::NodeRequest NewRequest(const Offer& offer, const std::string& first);
  void Create(model::NodeRequest request, const Offer& offer, StepContext& context);
  // Of the plan's nodes, in their order, with the sets that they are ordered in.
  std::vector<model::NodeRequest> RequestsFor(const Plan& plan, const Planned& planned);

  // Each costs questions about every type on offer; the verdicts of others lack the detail.
  static constexpr int kMaxExplainedDevices = 32;

  HookOptions options_;
  Catalogs catalogs_;
  const Hook& hook_;
  MachineLedger ledger_;
  LaunchBackoff backoff_;
  ObservedShapes shapes_;
  BootTimes boot_times_;
  uint64_t offers_version_ = 0;
  Gathering gathering_;
  NodeLists node_lists_;
  MachineReports reports_;
  NodeEmptying emptying_;
  NodeReplacement replacement_;
  RemovalPace removal_pace_;
  ProvisioningRate rate_;
  ProvisioningGuard guard_;
  // What TryHeld() has found of workloads that are held still; nothing: they could be served. Never
  // iterated where order is seen.
  absl::flat_hash_map<Gathering::Key, std::optional<DemandOutcome>> tried_;
  model::NodePool default_pool_;
  std::map<std::string, model::NodePool> pools_;  // of the last step, for ExpectedNode
  std::map<std::string, absl::Duration> waits_;   // consolidate_after of pools, in the last step
  absl::Time stepped_at_ = absl::InfinitePast();
  std::vector<std::string> pool_problems_;   // for people
  int explained_devices_ = 0;                // in this step
  std::vector<std::string> never_written_;   // rejected creations, to be withdrawn
  absl::flat_hash_set<std::string> linked_;  // requests whose purchase the guard knows
  std::map<std::string, Orphan> orphans_;    // names of requests that nodes have, and that are gone
  // By type, pool, zone, spot, reservation and workload.
  std::map<std::tuple<std::string, std::string, std::string, bool, std::string, std::string>,
           int64_t>
      ordinals_;
  // Of each reservation, what no machine had in the last step.
  std::map<std::string, int64_t> reserved_left_;
};

// So that the request still counts against the caps when its type has left the catalogue.
void SetGpuLabels(const InstanceType& type, model::NodeRequest& request);

}  // namespace fairlead::hook
