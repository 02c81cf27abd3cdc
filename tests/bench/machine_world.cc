#include "tests/bench/machine_world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/cron.h"
#include "scheduler/model/api_names.h"
#include "tests/bench/harness.h"

namespace fairlead::bench {
namespace {

using hook::testing::kDollar;
using hook::testing::kGiB;

// The pools, the type of each, and its part of the machines.
struct PoolOfOneType {
  const char *pool, *type;
  int64_t cpus, gib, gpus, price, per_cent;
};
constexpr PoolOfOneType kPools[] = {
    {"batch", "c.16", 16, 64, 0, kDollar / 2, 40},
    {"services", "c.64", 64, 256, 0, 2 * kDollar, 20},
    {"inference", "g.1", 16, 64, 1, 3 * kDollar, 15},
    {"training", "g.8", 128, 1024, 8, 30 * kDollar, 25},
};

}  // namespace

hook::Occupants FullElsewhere::OccupantsOf(const std::string& node) {
  ++nodes_asked;
  hook::Occupants occupants;
  const auto digit = static_cast<int64_t>(node[node.size() / 2] % 8);
  occupants.staying = 3;
  occupants.lost_work = absl::Minutes(2) * digit;
  if (digit > 4) occupants.blocked_by = "a gang would have less than its minimum";
  return occupants;
}

bool FullElsewhere::FindRoom(const std::vector<std::string>& /*nodes*/) {
  ++rooms_asked;
  return false;
}

class MachineWorld::Members final : public hook::DemandMembers {
 public:
  [[nodiscard]] std::vector<std::string> Names(size_t item, int64_t count) const override {
    std::vector<std::string> names;
    for (int64_t i = 0; i < count; ++i) {
      names.push_back(absl::StrCat("team/job-", item, "-", i));
    }
    return names;
  }
  [[nodiscard]] std::optional<size_t> Find(bool /*is_group*/,
                                           const std::string& /*workload*/) const override {
    return std::nullopt;
  }
};

MachineWorld::MachineWorld(const Shape& shape) : shape_(shape), random_(1) {
  MakePools();
  SetOptions();
  hook_ = std::make_unique<hook::Hook>(options_, &catalog_);
  Provision();
  Boot();
  for (int i = 0; i < 3; ++i) {
    Advance(absl::Seconds(1));
    Answer(Step());
  }
}

void MachineWorld::MakePools() {
  std::vector<hook::InstanceType> types;
  for (const PoolOfOneType& one : kPools) {
    types.push_back(hook::testing::Type(one.type, one.cpus, one.gib, one.gpus, one.price));
    model::NodePool& pool = pools_.emplace_back();
    pool.meta.name = one.pool;
    pool.instance_types = {one.type};
    pool.disruption.consolidation = shape_.policy;
  }
  catalog_ = hook::Catalog::FromTypes(std::move(types));
  std::sort(pools_.begin(), pools_.end(),
            [](const auto& a, const auto& b) { return a.meta.name < b.meta.name; });
  // Two pools have budgets of their own, the others those of the configuration.
  model::DisruptionBudget few, by_day;
  few.nodes = 5;
  by_day.schedule = CronSchedule::Parse("0 8 * * mon-fri").value();
  by_day.duration = absl::Hours(10);
  by_day.for_underutilized = true;
  pools_[0].disruption.budgets = {few};
  pools_[1].disruption.budgets = {few, by_day};
}

void MachineWorld::SetOptions() {
  model::DisruptionBudget tenth;
  tenth.nodes = 10;
  tenth.percent = true;
  options_.disruption.budgets = {tenth};
  options_.provider = "kwok";
  options_.max_nodes = shape_.machines;
  options_.cluster_gpu_limit = 40 * shape_.machines;
  options_.max_new_requests_per_step = shape_.machines;
  options_.guard.burst = options_.guard.total_burst = 2 * shape_.machines;
  hook::QueueCap cap;
  cap.queue = "team";
  cap.queues = {"team", "team-a"};
  cap.gpus = 4 * shape_.machines;
  queue_caps_ = {cap};
}

void MachineWorld::ListUses() {
  uses_.clear();
  versions_.clear();
  for (const auto& [name, node] : nodes_) {
    uses_.push_back(node.use);
    versions_.push_back(node.version);
  }
  uses_stale_ = false;
}

hook::StepOutput MachineWorld::Step(const hook::Demand& demand) {
  static const Members kMembers;
  hook::StepInput input;
  input.now = now_;
  input.demand = &demand;
  input.members = &kMembers;
  input.gathered = true;
  for (const model::NodePool& pool : pools_) input.pools.push_back(&pool);
  input.nodes = &uses_;
  input.node_versions = &versions_;
  input.queue_caps = &queue_caps_;
  input.evacuation = &evacuation_;
  return hook_->Step(input, placement_);
}

// A workload that takes a whole node.
hook::DemandItem MachineWorld::PodOf(size_t pool, absl::string_view name) {
  const PoolOfOneType& one = kPools[pool];
  hook::DemandItem item = hook::testing::Item(
      absl::StrCat("team/", name),
      hook::testing::Spec(one.cpus * 1000, 1, one.gpus, {{model::kPoolLabel, one.pool}}), 1);
  item.queue = pool % 2 == 0 ? "team-a" : "team-b";
  return item;
}

hook::Demand MachineWorld::OneThatWaits() { return {PodOf(3, "waits")}; }

void MachineWorld::Provision() {
  hook::Demand demand;
  int64_t left = shape_.machines;
  for (size_t pool = 0; pool < std::size(kPools); ++pool) {
    hook::DemandItem item = PodOf(pool, absl::StrCat("job-", pool, "-0"));
    const bool last = pool + 1 == std::size(kPools);
    item.members = last ? left : shape_.machines * kPools[pool].per_cent / 100;
    left -= item.members;
    demand.push_back(std::move(item));
  }
  const hook::StepOutput out = Step(demand);
  Require(static_cast<int64_t>(out.created.size()) == shape_.machines, "machines are missing");
  Answer(out);
}

void MachineWorld::Boot() {
  for (int i = 0; i < 2; ++i) {  // launches, and their answers
    Advance(absl::Seconds(1));
    Answer(Step());
  }
  std::vector<std::string> names;
  for (const auto& [name, request] : requests_) names.push_back(name);
  std::shuffle(names.begin(), names.end(), random_.engine());
  const auto coming = static_cast<size_t>(shape_.machines * shape_.coming_per_cent / 100);
  const auto empty = static_cast<size_t>(shape_.machines * shape_.empty_per_cent / 100);
  for (size_t i = 0; i < names.size(); ++i) {
    if (i < coming * 3 / 4) {
      coming_.push_back(names[i]);
    } else {
      Register(names[i], /*ready=*/i >= coming);
    }
  }
  Advance(absl::Seconds(1));
  Answer(Step());
  for (size_t i = 0; i < empty; ++i) {
    SetNeeded(busy_.back(), false);
    empty_.push_back(busy_.back());
    busy_.pop_back();
  }
}

void MachineWorld::Answer(const hook::StepOutput& out) {
  for (const model::Action& action : out.actions) {
    if (const auto* create = std::get_if<model::CreateNodeRequest>(&action.what)) {
      model::NodeRequest request = create->request;
      request.meta.uid = absl::StrFormat("%016x-%016x", random_.engine()(), random_.engine()());
      request.meta.creation = now_;
      hook_->OnCreateResult(request.meta.name, absl::OkStatus(), now_);
      Show(request);
    } else if (const auto* update = std::get_if<model::UpdateNodeRequestStatus>(&action.what)) {
      hook_->OnStatusResult(update->request, absl::OkStatus(), now_);
      Show(update->request);
    } else if (const auto* launch = std::get_if<model::LaunchNode>(&action.what)) {
      const model::ObjectMeta& request = launch->request->meta;
      hook_->OnProviderResult({request.name, request.uid, "", true}, absl::OkStatus(), now_,
                              absl::StrCat("aws:///zone-a/i-", request.name));
    } else {
      Require(false, "the step does something else than what the benchmark is about");
    }
  }
  for (const hook::StepOutput::NewNode& created : out.created) {
    const std::string& name = created.request.meta.name;
    hook::NodeUse& use = Change(name);
    use.name = use.node_request = name;
    use.needed = true;
  }
  if (uses_stale_) ListUses();
}

void MachineWorld::Show(const model::NodeRequest& request) {
  requests_[request.meta.name] = request;
  hook_->Observe(request);
}

hook::NodeUse& MachineWorld::Change(const std::string& name) {
  Node& node = nodes_[name];
  node.version = ++last_version_;
  uses_stale_ = true;
  return node.use;
}

void MachineWorld::SetNeeded(const std::string& node, bool needed) {
  hook::NodeUse& use = Change(node);
  use.needed = use.needed_by_pods_alone = needed;
}

void MachineWorld::Register(const std::string& request_name, bool ready) {
  const model::NodeRequest& request = requests_.at(request_name);
  ++registered_;
  const std::string name = absl::StrCat("ip-10-", random_.Between(0, 255), "-", registered_ / 256,
                                        "-", registered_ % 256, ".compute.internal");
  nodes_.erase(request_name);  // the ordered node
  hook::NodeUse& use = Change(name);
  use.name = name;
  use.uid = absl::StrFormat("%016x-%016x", random_.engine()(), random_.engine()());
  use.node_request = request_name;
  use.registered = true;
  use.ready = ready;
  use.needed = use.needed_by_pods_alone = true;
  use.provider_id = absl::StrCat("aws:///zone-a/i-", request_name);
  const auto* const one =
      std::find_if(std::begin(kPools), std::end(kPools),
                   [&](const PoolOfOneType& pool) { return request.pool == pool.pool; });
  use.allocatable = {{model::kCpuName, one->cpus * 1000},
                     {model::kEphemeralStorageName, 100 * kGiB},
                     {model::kMemoryName, one->gib * kGiB},
                     {model::kPodsName, 110}};
  if (one->gpus > 0) model::Set(use.allocatable, model::kGpuName, one->gpus * 1000);
  use.daemon_requests = {
      {model::kCpuName, 350}, {model::kMemoryName, kGiB / 2}, {model::kPodsName, 5}};
  use.instance_type = request.instance_type;
  use.pool = request.pool;
  use.zone = request.zone;
  if (ready) busy_.push_back(use.name);
}

void MachineWorld::ChangeTen() {
  for (size_t i = 0; i < 3; ++i) {
    const auto last = static_cast<int64_t>(busy_.size()) - 1;
    std::string& busy = busy_[static_cast<size_t>(random_.Between(0, last))];
    std::string& empty = empty_[i];
    SetNeeded(busy, false);
    SetNeeded(empty, true);
    std::swap(busy, empty);
  }
  std::rotate(empty_.begin(), empty_.begin() + 3, empty_.end());  // the next time others
  for (int i = 0; i < 4; ++i) {
    Require(!coming_.empty(), "no machine is coming any more");
    Register(coming_.back(), /*ready=*/true);
    coming_.pop_back();
  }
  ListUses();
}

}  // namespace fairlead::bench
