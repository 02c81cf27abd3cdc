#include "core/managed_nodes.h"

#include <algorithm>
#include <utility>

#include "autoscale-hook/machines/interruption.h"
#include "autoscale-hook/machines/startup_taints.h"
#include "autoscale-hook/planner/caps.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/device_names.h"
#include "scheduler/model/resource_version.h"

namespace fairlead::core {
namespace {

using model::VersionOrder;

bool IsOurTaint(const model::Taint& taint) { return taint.key == model::kRemovalTaint; }

// What is announced for a machine that is not usable yet.
struct Announcement {
  // Devices and other extended resources of device plugins; CPU and memory may be less.
  model::ResourceList resources;
  // Of DRA drivers, by driver.
  std::map<std::string, int64_t> devices;
};

Announcement AnnouncementOf(const hook::Hook& hook, const hook::Machine& machine) {
  Announcement announced;
  model::ResourceList& resources = announced.resources;
  const absl::StatusOr<model::Node> expected =
      hook.ExpectedNode(machine.desired, {}, /*registered=*/true);
  if (expected.ok()) {
    for (const auto& [name, amount] : expected->allocatable) {
      if (name.find('/') != std::string::npos && amount > 0) model::Set(resources, name, amount);
    }
    if (expected->devices != nullptr) announced.devices = model::CountByDriver(*expected->devices);
  }
  // Where the catalogue does not say what else there is (GPUs may come as MIG instances).
  const int64_t gpus = hook::OrderedGpus(machine.desired).value_or(0);
  const bool by_claim =
      std::any_of(announced.devices.begin(), announced.devices.end(),
                  [](const auto& devices) { return model::IsGpuDriver(devices.first); });
  if (gpus > 0 && resources.empty() && !by_claim) {
    model::Set(resources, model::kGpuName, gpus * 1000);
  }
  return announced;
}

int64_t CountOf(const std::map<std::string, int64_t>& devices, const std::string& driver) {
  const auto found = devices.find(driver);
  return found == devices.end() ? 0 : found->second;
}

}  // namespace

std::string ManagedNodes::RequestOf(const std::string& provider_id, absl::string_view label) const {
  if (!provider_id.empty()) {
    std::string request = hook_.machines().FindByProviderId(provider_id);
    if (!request.empty()) return request;
  }
  return std::string(label);
}

std::vector<hook::ListedNode> ManagedNodes::Unseen(
    const std::vector<hook::ListedNode>& listed) const {
  std::vector<hook::ListedNode> unseen;
  for (const hook::ListedNode& node : listed) {
    const std::string request = RequestOf(node.provider_id, node.node_request);
    if (request.empty()) continue;
    const auto seen = managed_.find(node.name);
    if (seen == managed_.end() || seen->second.raw.meta.uid != node.uid ||
        seen->second.request != request) {
      unseen.push_back(node);
    }
  }
  return unseen;
}

void ManagedNodes::Unlink(const std::string& name) {
  auto it = managed_.find(name);
  if (it == managed_.end()) return;
  list_stale_ = true;
  auto nodes = by_request_.find(it->second.request);
  nodes->second.erase(name);
  if (nodes->second.empty()) by_request_.erase(nodes);
  unsettled_.erase(name);
  managed_.erase(it);
}

bool ManagedNodes::IsBehindTaint(const Managed& node, absl::string_view version) {
  const VersionOrder order = model::CompareVersions(version, node.taint_version);
  return order == VersionOrder::kEqual || order == VersionOrder::kNewer;
}

void ManagedNodes::NoteTaint(Managed& node) {
  const bool tainted = std::any_of(node.raw.taints.begin(), node.raw.taints.end(), IsOurTaint);
  if (tainted == node.tainted) return;
  node.tainted = tainted;
  node.taint_version = node.raw.meta.resource_version;
  node.taint_seen = absl::InfiniteFuture();
  node.pods_settled = tainted && IsBehindTaint(node, pods_version_);
  if (tainted && !node.pods_settled) {
    unsettled_.insert(node.raw.meta.name);
  } else {
    unsettled_.erase(node.raw.meta.name);
  }
}

void ManagedNodes::NoteReadiness(Managed& node) const {
  node.ready = node.usable_in_part = false;
  const model::Node& raw = node.raw;
  const hook::Machine* machine = hook_.machines().Find(node.request);
  // Without its request the announced devices are unknown: the node waits for the request.
  if (machine == nullptr || !raw.ready || !raw.invalid.empty()) return;
  if (machine->desired.phase == model::NodeRequestPhase::kReady) {
    node.ready = true;
    return;
  }
  static const std::vector<model::Taint> kNone;
  const auto pool = startup_taints_.find(machine->desired.pool);
  const std::vector<model::Taint>& of_pool = pool == startup_taints_.end() ? kNone : pool->second;
  if (std::any_of(raw.taints.begin(), raw.taints.end(), [&](const model::Taint& taint) {
        return hook::IsStartupTaint(taint, of_pool);
      })) {
    return;
  }
  node.ready = node.usable_in_part = true;
  const Announcement announced = AnnouncementOf(hook_, *machine);
  for (const auto& [name, amount] : announced.resources) {
    int64_t there = model::Get(raw.allocatable, name);
    // A driver may give what a device plugin was expected to.
    if (name == model::kGpuName && node.devices != nullptr) {
      there = std::max(there, 1000 * model::CountGpus(*node.devices));
    }
    node.ready = node.ready && there >= amount;
    node.usable_in_part = node.usable_in_part && there > 0;
  }
  if (announced.devices.empty()) return;
  const std::map<std::string, int64_t> published = node.devices == nullptr
                                                       ? std::map<std::string, int64_t>()
                                                       : model::CountByDriver(*node.devices);
  const auto declared = hook_.DeclaredDevicesOf(machine->desired);
  const std::map<std::string, int64_t> by_catalogue =
      declared == nullptr ? std::map<std::string, int64_t>() : model::CountByDriver(*declared);
  for (const auto& [driver, count] : announced.devices) {
    const int64_t there = CountOf(published, driver);
    node.ready = node.ready && there >= count;
    // What only other nodes have taught is worth waiting for, and no reason to give a node up.
    node.usable_in_part = node.usable_in_part && (there > 0 || CountOf(by_catalogue, driver) == 0);
  }
}

// True if it is otherwise than before.
bool ManagedNodes::NoteDevices(Managed& node) {
  std::shared_ptr<const model::NodeDevices> published =
      state_.devices().inventory().Published(node.raw.meta.name);
  if (model::SameDevices(published, node.devices)) return false;
  // Equal ones are one object, which nodes of one kind share.
  const auto known =
      std::find_if(device_kinds_.begin(), device_kinds_.end(),
                   [&](const auto& kind) { return published != nullptr && *kind == *published; });
  if (known != device_kinds_.end()) {
    published = *known;
  } else if (published != nullptr) {
    std::erase_if(device_kinds_, [](const auto& kind) { return kind.use_count() == 1; });
    device_kinds_.push_back(published);
  }
  node.devices = std::move(published);
  return true;
}

state::Change ManagedNodes::DevicesChanged(const std::string& name) {
  state::Change change;
  const auto found = managed_.find(name);
  if (found == managed_.end() || !NoteDevices(found->second)) return change;
  list_stale_ = true;
  Managed& node = found->second;
  NoteReadiness(node);
  change |= Show(name, {});
  change.capacity = true;
  return change;
}

state::Change ManagedNodes::Show(const std::string& name,
                                 const std::vector<const model::NodePool*>& pools) {
  const Managed& node = managed_.at(name);
  const hook::Machine* machine = hook_.machines().Find(node.request);
  model::Node shown = node.raw;
  shown.meta.labels.Set(model::kNodeRequestLabel, node.request);
  shown.taints.erase(std::remove_if(shown.taints.begin(), shown.taints.end(), IsOurTaint),
                     shown.taints.end());
  const bool surplus = node.tainted && by_request_.at(node.request).size() > 1;
  const bool closed =
      machine != nullptr && (!machine->Promises() || surplus || machine->emptying.has_value());
  if (closed) shown.unschedulable = true;
  state::Change change;
  // It replaces the ordered node of its request.
  if (name != node.request) change |= state_.RemoveOrderedNode(node.request);
  change |= state_.UpsertNode(shown);
  const state::NodeId id = state_.FindNode(name);
  if (id == state::kNoId || state_.node(id).usable) return change;
  // A node that is removed before it was ever usable is shown as it is, so that no pod is pipelined
  // to it any more.
  if (node.ready || closed) return change |= state_.SetNodeUsable(id, true);
  if (machine == nullptr) return change;
  absl::StatusOr<model::Node> expected =
      hook_.ExpectedNode(machine->desired, pools, /*registered=*/true);
  if (!expected.ok()) return change;
  expected->meta.name = name;
  expected->meta.labels.Set(model::kNodeRequestLabel, node.request);
  const absl::string_view host = node.raw.meta.labels.Get(model::kHostnameLabel);
  expected->meta.labels.Set(model::kHostnameLabel, host.empty() ? name : host);
  return change |=
         state_.UpsertOrderedNode(*expected, node.request, machine->desired.reason_workloads);
}

void ManagedNodes::TakePools(const std::vector<const model::NodePool*>& pools) {
  startup_taints_.clear();
  for (const model::NodePool* pool : pools) {
    startup_taints_[pool->meta.name] = pool->startup_taints;
  }
}

state::Change ManagedNodes::Upsert(const model::Node& object) {
  const std::string& name = object.meta.name;
  if (!object.provider_id.empty()) by_provider_id_[object.provider_id] = name;
  const std::string request =
      RequestOf(object.provider_id, object.meta.labels.Get(model::kNodeRequestLabel));
  auto known = managed_.find(name);
  if (known != managed_.end() &&
      (known->second.request != request || known->second.raw.meta.uid != object.meta.uid)) {
    Unlink(name);
  }
  if (request.empty()) return state_.UpsertNode(object);
  list_stale_ = true;
  Managed& node = managed_[name];
  node.request = request;
  node.raw = object;
  if (!state_.options().keep_images) node.raw.images.clear();  // not read
  by_request_[request].insert(name);
  const bool was_tainted = node.tainted, was_ready = node.ready, was_in_part = node.usable_in_part;
  NoteTaint(node);
  NoteDevices(node);
  NoteReadiness(node);
  state::Change change = Show(name, {});
  change.capacity |=
      was_tainted != node.tainted || was_ready != node.ready || was_in_part != node.usable_in_part;
  return change;
}

state::Change ManagedNodes::Remove(const std::string& name, const std::string& uid) {
  auto it = managed_.find(name);
  const bool managed = it != managed_.end() && (uid.empty() || it->second.raw.meta.uid == uid);
  if (managed) {
    by_provider_id_.erase(it->second.raw.provider_id);
    Unlink(name);
  } else if (const state::NodeId id = state_.FindNode(name); id != state::kNoId) {
    auto by_id = by_provider_id_.find(state_.node(id).object.provider_id);
    if (by_id != by_provider_id_.end() && by_id->second == name) by_provider_id_.erase(by_id);
  }
  state::Change change = state_.RemoveNode(name, uid);
  change.capacity |= managed;  // its request must learn that it is gone
  return change;
}

state::Change ManagedNodes::RequestChanged(const std::string& request_name,
                                           const std::vector<const model::NodePool*>& pools) {
  list_stale_ = true;
  state::Change change;
  const hook::Machine* machine = hook_.machines().Find(request_name);
  // The provider may have told the machine's id after the node had come.
  for (const std::string& provider_id : hook_.machines().ProviderIdsOf(request_name)) {
    const auto by_id = by_provider_id_.find(provider_id);
    if (by_id == by_provider_id_.end() || managed_.contains(by_id->second)) continue;
    const state::NodeId id = state_.FindNode(by_id->second);
    if (id != state::kNoId && state_.node(id).exists) {
      change |= Upsert(model::Node(state_.node(id).object));
    }
  }
  const auto nodes = by_request_.find(request_name);
  const bool registered = nodes != by_request_.end();
  const bool coming = machine != nullptr && machine->Promises() && !registered &&
                      (machine->desired.phase == model::NodeRequestPhase::kPending ||
                       machine->desired.phase == model::NodeRequestPhase::kLaunched);
  absl::StatusOr<model::Node> expected = absl::NotFoundError("");
  if (coming) expected = hook_.ExpectedNode(machine->desired, pools);
  if (expected.ok()) {
    expected->meta.labels.Set(model::kNodeRequestLabel, request_name);
    change |= state_.UpsertOrderedNode(*expected, request_name, machine->desired.reason_workloads);
  } else {
    change |= state_.RemoveOrderedNode(request_name);
  }
  if (!registered) return change;
  for (const std::string& name : std::set<std::string>(nodes->second)) {
    Managed& node = managed_.at(name);
    const bool was_ready = node.ready;
    NoteReadiness(node);
    change |= Show(name, pools);
    change.capacity |= was_ready != node.ready;
  }
  return change;
}

bool ManagedNodes::PodsSeen(absl::string_view version) {
  if (version.empty()) return false;
  if (!pods_version_.empty() &&
      model::CompareVersions(version, pods_version_) != VersionOrder::kNewer) {
    return false;
  }
  pods_version_ = std::string(version);
  bool settled = false;
  for (auto it = unsettled_.begin(); it != unsettled_.end();) {
    Managed& node = managed_.at(*it);
    if (!IsBehindTaint(node, pods_version_)) {
      ++it;
      continue;
    }
    node.pods_settled = settled = true;
    it = unsettled_.erase(it);
  }
  list_stale_ = list_stale_ || settled;
  return settled;
}

bool ManagedNodes::PodsListed(const std::string& name, absl::string_view version,
                              const std::vector<model::Pod>& pods) {
  const auto waits = unsettled_.find(name);
  if (waits == unsettled_.end()) return false;
  Managed& node = managed_.at(name);
  if (!IsBehindTaint(node, version)) return false;
  const bool all_known = std::all_of(pods.begin(), pods.end(), [&](const model::Pod& pod) {
    const state::PodId id = state_.FindPod(pod.meta.ns, pod.meta.name);
    if (id == state::kNoId || state_.pod(id).uid != pod.meta.uid) return false;
    const state::NodeId on = state_.pod(id).node;
    return on != state::kNoId && state_.node(on).name() == name;
  });
  if (!all_known) return false;  // the watch will show them
  node.pods_settled = list_stale_ = true;
  unsettled_.erase(waits);
  return true;
}

void ManagedNodes::SettleByTime(absl::Time now) {
  settles_at_ = absl::InfiniteFuture();
  for (auto it = unsettled_.begin(); it != unsettled_.end();) {
    Managed& node = managed_.at(*it);
    const VersionOrder order = model::CompareVersions(pods_version_, node.taint_version);
    if (order == VersionOrder::kUnknown) {
      node.taint_seen = std::min(node.taint_seen, now);
      if (now >= node.taint_seen + kSettleTime) {
        node.pods_settled = list_stale_ = true;
        it = unsettled_.erase(it);
        continue;
      }
      settles_at_ = std::min(settles_at_, node.taint_seen + kSettleTime);
    }
    ++it;
  }
}

hook::NodeUse ManagedNodes::UseOf(const Managed& node) const {
  const model::Node& raw = node.raw;
  const model::StringMap& labels = raw.meta.labels;
  hook::NodeUse use;
  use.name = raw.meta.name;
  use.uid = raw.meta.uid;
  use.node_request = node.request;
  use.registered = true;
  use.ready = node.ready;
  use.usable_in_part = node.usable_in_part;
  use.removal_tainted = node.tainted;
  use.pods_settled = node.pods_settled;
  use.interrupted = std::any_of(raw.taints.begin(), raw.taints.end(), hook::IsInterruptionTaint);
  use.provider_id = raw.provider_id;
  use.allocatable = raw.allocatable;
  use.devices = node.devices;
  // A node that we launched has both labels.
  if (labels.Has(model::kCapacityTypeLabel)) {
    use.instance_type = std::string(labels.Get(model::kInstanceTypeLabel));
  }
  use.pool = std::string(labels.Get(model::kPoolLabel));
  use.zone = std::string(labels.Get(model::kZoneLabel));
  use.spot = labels.Get(model::kCapacityTypeLabel) == "spot";
  use.reservation = std::string(labels.Get(model::kReservationLabel));
  return use;
}

ManagedNodes::CachedUse ManagedNodes::LookUp(const std::string& name,
                                             const std::set<state::NodeId>& promised) const {
  CachedUse cached;
  cached.node = state_.FindNode(name);
  if (cached.node == state::kNoId) return cached;
  cached.version = state_.node(cached.node).version;
  cached.promised = promised.contains(cached.node);
  return cached;
}

ManagedNodes::Need ManagedNodes::NeedOf(const std::string& name, const CachedUse& cached) const {
  if (cached.promised) return {true, false};
  auto node = managed_.find(name);
  if (node != managed_.end()) {
    const model::StringMap& annotations = node->second.raw.meta.annotations;
    if (annotations.Get(model::kDoNotRemoveAnnotation) == "true" ||
        annotations.Get("cluster-autoscaler.kubernetes.io/scale-down-disabled") == "true") {
      return {true, false};
    }
  }
  if (cached.node == state::kNoId) return {};
  const std::vector<state::PodId>& pods = state_.node(cached.node).pods;
  const bool has_pods = std::any_of(pods.begin(), pods.end(),
                                    [&](state::PodId pod) { return !state_.pod(pod).daemon; });
  return {has_pods, has_pods};
}

// Looks at the pods of nodes that have changed.
const model::ResourceList& ManagedNodes::DaemonRequestsOn(const std::string& name,
                                                          const CachedUse& cached) {
  static const model::ResourceList kNone;
  const auto known = managed_.find(name);
  if (known == managed_.end() || cached.node == state::kNoId) return kNone;
  Managed& node = known->second;
  if (std::exchange(node.daemons_version, cached.version) == cached.version) {
    return node.daemon_requests;
  }
  model::Resources sum;
  for (const state::PodId pod : state_.node(cached.node).pods) {
    if (state_.pod(pod).daemon) sum += state_.class_of(pod).requests;
  }
  node.daemon_requests.clear();
  for (size_t i = 0; i < sum.size(); ++i) {
    const auto r = static_cast<model::ResourceIndex>(i);
    if (sum[r] > 0) model::Set(node.daemon_requests, state_.resource_names().Name(r), sum[r]);
  }
  return node.daemon_requests;
}

// True if something of it was otherwise.
bool ManagedNodes::TellNeed(const CachedUse& cached, hook::NodeUse& use) {
  const Need need = NeedOf(use.name, cached);
  const model::ResourceList& daemons = DaemonRequestsOn(use.name, cached);
  const bool same = need.needed == use.needed && need.by_pods_alone == use.needed_by_pods_alone &&
                    daemons == use.daemon_requests;
  if (same) return false;
  use.needed = need.needed;
  use.needed_by_pods_alone = need.by_pods_alone;
  use.daemon_requests = daemons;
  return true;
}

void ManagedNodes::ListUses(const std::set<state::NodeId>& promised) {
  std::vector<hook::NodeUse> uses;
  for (const auto& [key, machine] : hook_.machines().rows()) {
    if (machine.lost || by_request_.contains(machine.name())) continue;
    hook::NodeUse use;
    use.name = use.node_request = machine.name();
    uses.push_back(std::move(use));
  }
  for (const auto& [name, node] : managed_) uses.push_back(UseOf(node));
  std::sort(uses.begin(), uses.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  cached_.clear();
  cached_.reserve(uses.size());
  for (hook::NodeUse& use : uses) {
    cached_.push_back(LookUp(use.name, promised));
    TellNeed(cached_.back(), use);
  }
  TakeUses(std::move(uses));
  list_stale_ = false;
}

// An entry that is as it was keeps its version.
void ManagedNodes::TakeUses(std::vector<hook::NodeUse> uses) {
  bool same = uses.size() == uses_.size();
  std::vector<uint64_t> versions;
  versions.reserve(uses.size());
  size_t known = 0;
  for (const hook::NodeUse& use : uses) {
    while (known < uses_.size() && uses_[known].name < use.name) ++known;
    if (known < uses_.size() && uses_[known] == use) {
      versions.push_back(use_versions_[known++]);
    } else {
      versions.push_back(++last_use_version_);
      same = false;
    }
  }
  if (same) return;
  uses_ = std::move(uses);
  use_versions_ = std::move(versions);
  ++uses_version_;
}

const std::vector<hook::NodeUse>& ManagedNodes::Uses(const std::set<state::NodeId>& promised,
                                                     absl::Time now) {
  SettleByTime(now);
  if (list_stale_) {
    ListUses(promised);
    return uses_;
  }
  bool changed = false;
  for (size_t i = 0; i < uses_.size(); ++i) {
    hook::NodeUse& use = uses_[i];
    CachedUse& cached = cached_[i];
    // Rows are reused: the name identifies the node.
    const bool same = cached.node != state::kNoId &&
                      state_.node(cached.node).version == cached.version &&
                      cached.promised == promised.contains(cached.node) &&
                      state_.node(cached.node).name() == use.name;
    if (same) continue;
    cached = LookUp(use.name, promised);
    if (!TellNeed(cached, use)) continue;
    use_versions_[i] = ++last_use_version_;
    changed = true;
  }
  if (changed) ++uses_version_;
  return uses_;
}

}  // namespace fairlead::core
