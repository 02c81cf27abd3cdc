#include "sim/world/cloud.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/provisioning/failure.h"
#include "scheduler/model/resources.h"
#include "sim/world/api_json.h"
#include "sim/world/facts.h"
#include "sim/world/objects.h"
#include "sim/world/pool_objects.h"

namespace fairlead::sim::world {
namespace {

constexpr char kCloudActor[] = "cloud", kNotReadyTaint[] = "node.kubernetes.io/not-ready";
constexpr absl::Duration kBoot = absl::Seconds(20), kReady = absl::Seconds(5);
constexpr absl::Duration kTermination = absl::Seconds(5), kBeat = absl::Seconds(7);
constexpr int64_t kLateFactor = 10;
constexpr int64_t kLarge = int64_t{200} << 30;  // bytes
constexpr const char* kLieNames[kLies] = {
    "smaller",   "larger",   "late",       "never",      "twice",   "after-end",   "own-names",
    "forbidden", "no-stock", "unanswered", "unreported", "tainted", "all-tainted", "part-stock"};

const char* EffectText(model::TaintEffect effect) {
  if (effect == model::TaintEffect::kNoExecute) return "NoExecute";
  return effect == model::TaintEffect::kNoSchedule ? "NoSchedule" : "PreferNoSchedule";
}

Json MapJson(const model::StringMap& map) {
  Json out = Json::object();
  for (const auto& [key, value] : map) out[std::string(key)] = std::string(value);
  return out;
}

// And that of its pool, which another agent takes off.
void TakeStartTaintsOff(Json& node) {
  const auto taints = node["spec"].find("taints");
  if (taints == node["spec"].end() || !taints->is_array()) return;
  std::erase_if(taints->get_ref<Json::array_t&>(), [](const Json& taint) {
    const std::string key = TextAt(taint, {"key"});
    return key == kNotReadyTaint || key == kStartupTaintKey;
  });
}

}  // namespace

const char* LieName(Lie lie) { return kLieNames[static_cast<size_t>(lie)]; }

Cloud::Cloud(EventQueue* time, ApiServer* server, uint64_t seed)
    : time_(time), server_(server), random_(seed) {
  lies_.fill(absl::InfinitePast());
  server->Listen([this](const ApiServer::Commit& commit) {
    if (commit.type != ResourceType::kPods || commit.after == nullptr) return;
    const std::string node = TextAt(*commit.after, {"spec", "nodeName"});
    if (node.empty()) return;
    for (Machine& machine : machines_) {
      if (machine.node != node || machine.ran_a_pod) continue;
      machine.ran_a_pod = !ReadPod(*commit.after).stays;
    }
  });
}

void Cloud::BeHonest() {
  for (absl::Time& until : lies_) {
    if (until != absl::InfiniteFuture()) until = absl::InfinitePast();
  }
}

bool Cloud::Lying(Lie lie) const { return time_->now() < lies_[static_cast<size_t>(lie)]; }

int64_t Cloud::live_count() const {
  return std::count_if(machines_.begin(), machines_.end(), [](const Machine& m) {
    return m.ended == absl::InfiniteFuture() && !m.uninvited;
  });
}

int64_t Cloud::live_gpus() const {
  int64_t gpus = 0;
  for (const Machine& machine : machines_) {
    if (machine.ended != absl::InfiniteFuture() || machine.uninvited) continue;
    gpus += machine.gpus;
  }
  return gpus;
}

int64_t Cloud::live_price() const {
  int64_t price = 0;
  for (const Machine& machine : machines_) {
    if (machine.ended != absl::InfiniteFuture() || machine.uninvited) continue;
    price += machine.price_micro_usd_per_hour;
  }
  return price;
}

void Cloud::Launch(const model::LaunchNode& launch,
                   const std::function<void(absl::Status)>& answer) {
  const std::string& request = launch.request->meta.name;
  if (on_call_) on_call_("launch", request, launch.request->meta.uid);
  if (Lying(Lie::kForbidden)) return answer(absl::PermissionDeniedError("403: not authorized"));
  const bool there = std::any_of(machines_.begin(), machines_.end(), [&](const Machine& machine) {
    return machine.request == request && machine.uid == launch.request->meta.uid &&
           machine.ended == absl::InfiniteFuture();
  });
  if (!there && Lying(Lie::kNoStock)) {
    return answer(absl::ResourceExhaustedError("no capacity of that type"));
  }
  if (!there && Lying(Lie::kPartStock) && ++asked_in_part_ % 2 == 0) {
    return answer(absl::ResourceExhaustedError("no more capacity of that type"));
  }
  if (!there) {
    Start(launch);
    if (Lying(Lie::kTwice)) {
      Start(launch);
      machines_.back().uninvited = true;
    }
  }
  if (!Lying(Lie::kUnanswered)) answer(absl::OkStatus());
}

void Cloud::Start(const model::LaunchNode& launch) {
  const size_t index = machines_.size();
  Machine& machine = machines_.emplace_back();
  machine.id = absl::StrCat("m-", index);
  machine.request = launch.request->meta.name;
  machine.uid = launch.request->meta.uid;
  machine.type = launch.request->instance_type;
  machine.price_micro_usd_per_hour = launch.request->price_micro_usd_per_hour;
  machine.gpus = model::Get(launch.node->allocatable, model::kGpuName) / 1000;
  machine.started = time_->now();
  // A second machine for one request cannot have the same name.
  const bool second = std::any_of(machines_.begin(), machines_.end() - 1, [&](const Machine& m) {
    return m.node == launch.node->meta.name && m.ended == absl::InfiniteFuture();
  });
  machine.node =
      second || Lying(Lie::kOwnNames) ? absl::StrCat("ip-10-0-0-", index) : launch.node->meta.name;
  Tell(index);
  if (Lying(Lie::kNever)) return;
  const int64_t factor = Lying(Lie::kLate) ? kLateFactor : 1;
  model::Node promised = launch.node;
  for (auto& [name, amount] : promised.allocatable) {
    if (name == model::kMemoryName && Lying(Lie::kSmaller)) amount = amount / 10 * 9;
    if (name == model::kMemoryName && Lying(Lie::kLarger)) amount = amount / 10 * 12;
  }
  time_->After(kBoot * factor + absl::Milliseconds(random_.Between(0, 5000)),
               [this, index, promised] { Register(index, promised); });
}

void Cloud::Register(size_t index, const model::Node& promised) {
  Machine& machine = machines_[index];
  if (machine.ended != absl::InfiniteFuture()) {
    if (!Lying(Lie::kAfterEnd)) return;
    // It was reported as ended, and runs until it is terminated once more.
    machine.ended = absl::InfiniteFuture();
    machine.uninvited = true;
    Tell(index);
  }
  // One that came back after its end may have the name.
  if (server_->Find(ResourceType::kNodes, "", machine.node) != nullptr) {
    machine.node = absl::StrCat("ip-10-0-0-", index);
  }
  Json amounts = Json::object();
  for (const auto& [name, amount] : promised.allocatable) {
    amounts[std::string(name)] = model::FormatQuantity(name, amount);
  }
  Json labels = MapJson(promised.meta.labels);
  labels["kubernetes.io/hostname"] = machine.node;
  labels["fairlead.dev/node-request"] = machine.request;
  Json taints = Json::array();
  for (const model::Taint& taint : promised.taints) {
    if (taint.key == "fairlead.dev/starting") continue;  // its agent has taken it off already
    taints.push_back(
        {{"key", taint.key}, {"value", taint.value}, {"effect", EffectText(taint.effect)}});
  }
  const bool large = model::Get(promised.allocatable, model::kMemoryName) >= kLarge;
  if (Lying(Lie::kAllTainted) || (Lying(Lie::kTainted) && large)) {
    taints.push_back({{"key", "example.com/quarantine"}, {"effect", "NoSchedule"}});
  }
  Json node = {{"apiVersion", "v1"},
               {"kind", "Node"},
               {"metadata",
                {{"name", machine.node},
                 {"labels", labels},
                 {"annotations", MapJson(promised.meta.annotations)}}},
               {"spec", {{"providerID", machine.provider_id()}, {"taints", taints}}},
               {"status", {{"capacity", amounts}, {"allocatable", amounts}}}};
  // The node lifecycle controller takes it off, a while after the node became ready.
  node["spec"]["taints"].push_back({{"key", kNotReadyTaint}, {"effect", "NoSchedule"}});
  SetNodeReady(node, false);
  if (!server_->Create(ResourceType::kNodes, std::move(node), kCloudActor).ok()) return;
  if (static_pods_) {
    server_
        ->Create(ResourceType::kPods, MakeStaticPod("kube-proxy-" + machine.node, machine.node),
                 "kubelet")
        .IgnoreError();
  }
  time_->After(kReady, [this, index, name = machine.node] {
    machines_[index].ready = time_->now();
    Change(name, kCloudActor, [](Json& changed) { SetNodeReady(changed, true); });
  });
  time_->After(kReady + absl::Milliseconds(random_.Between(100, 2000)),
               [this, name = machine.node] { Change(name, kCloudActor, TakeStartTaintsOff); });
}

void Cloud::Change(const std::string& node, const char* actor,
                   const std::function<void(Json&)>& change) {
  server_
      ->Modify(
          ResourceType::kNodes, "", node,
          [&](Json& object) {
            change(object);
            return absl::OkStatus();
          },
          actor)
      .IgnoreError();
}

void Cloud::Inherit(const std::string& name, int64_t gpus, int64_t price_micro_usd_per_hour) {
  const std::string id = absl::StrCat("m-", machines_.size()), old_type = "retired";
  const Json request = {
      {"apiVersion", "fairlead.dev/v1alpha1"},
      {"kind", "NodeRequest"},
      {"metadata", {{"name", name}, {"finalizers", {"fairlead.dev/machine"}}}},
      {"spec", {{"provider", "kwok"}, {"instanceType", old_type}, {"zone", "zone-a"}}},
      {"status",
       {{"phase", "Ready"}, {"nodeName", name}, {"providerID", absl::StrCat("sim://", id)}}}};
  if (!server_->Create(ResourceType::kNodeRequests, request, kCloudActor).ok()) return;
  const Json* const made = server_->Find(ResourceType::kNodeRequests, "", name);
  Machine& machine = machines_.emplace_back();
  machine.id = id;
  machine.request = machine.node = name;
  machine.uid = TextAt(*made, {"metadata", "uid"});
  machine.type = old_type;
  machine.gpus = gpus;
  machine.price_micro_usd_per_hour = price_micro_usd_per_hour;
  machine.started = machine.ready = time_->now();
  Operation fields;
  fields.With("name", name).With("cpu", 8'000 * std::max<int64_t>(1, gpus)).With("gpu", gpus);
  Json node = MakeNode(fields);
  node["metadata"]["labels"]["fairlead.dev/node-request"] = name;
  node["spec"]["providerID"] = machine.provider_id();
  server_->Create(ResourceType::kNodes, std::move(node), kCloudActor).IgnoreError();
}

void Cloud::End(size_t index) {
  Machine& machine = machines_[index];
  if (machine.ended != absl::InfiniteFuture()) return;
  machine.ended = time_->now();
  Tell(index);
  const std::string node = machine.node, id = machine.provider_id();
  time_->After(kTermination, [this, node, id] {
    const Json* object = server_->Find(ResourceType::kNodes, "", node);
    if (object == nullptr || ReadNode(*object).provider_id != id) return;
    server_->RemoveNow(ResourceType::kNodes, "", node, kCloudActor).IgnoreError();
  });
}

void Cloud::Tell(size_t index) {
  if (Lying(Lie::kUnreported)) return;
  std::erase_if(on_change_, [&](const auto& tell) { return !tell(machines_[index]); });
}

void Cloud::Terminate(const model::TerminateNode& terminate, absl::Time sent,
                      const std::function<void(absl::Status)>& answer) {
  if (on_call_) on_call_("terminate", terminate.request_name, terminate.provider_id);
  if (Lying(Lie::kForbidden)) return answer(absl::PermissionDeniedError("403: not authorized"));
  for (size_t i = 0; i < machines_.size(); ++i) {
    Machine& machine = machines_[i];
    if (machine.ended != absl::InfiniteFuture()) continue;
    const bool meant = terminate.provider_id.empty()
                           ? machine.request == terminate.request_name
                           : machine.provider_id() == terminate.provider_id;
    if (!meant) continue;
    if (on_terminate_) on_terminate_(machine, sent);
    End(i);
  }
  if (!Lying(Lie::kUnanswered)) answer(absl::OkStatus());
}

void Cloud::LoseOne() {
  std::vector<size_t> live;
  for (size_t i = 0; i < machines_.size(); ++i) {
    if (machines_[i].ended == absl::InfiniteFuture()) live.push_back(i);
  }
  if (!live.empty()) End(live[random_.Below(live.size())]);
}

void Cloud::TakeBack(int64_t pick, absl::Duration notice) {
  std::vector<size_t> live;
  for (size_t i = 0; i < machines_.size(); ++i) {
    const Machine& machine = machines_[i];
    const bool has_node = server_->Find(ResourceType::kNodes, "", machine.node) != nullptr;
    if (machine.ended == absl::InfiniteFuture() && has_node) live.push_back(i);
  }
  if (live.empty()) return;
  const size_t index = live[static_cast<size_t>(pick) % live.size()];
  server_
      ->Modify(
          ResourceType::kNodes, "", machines_[index].node,
          [](Json& node) {
            node["spec"]["taints"].push_back(
                {{"key", "aws-node-termination-handler/spot-itn"}, {"effect", "NoSchedule"}});
            return absl::OkStatus();
          },
          kCloudActor)
      .IgnoreError();
  time_->After(notice, [this, index] { End(index); });
}

void Cloud::BeatUntil(absl::Time until) {
  const bool beating = time_->now() < beat_until_;
  beat_until_ = std::max(beat_until_, until);
  if (!beating) Beat();
}

void Cloud::Beat() {
  if (time_->now() >= beat_until_) return;
  std::vector<std::string> names;
  server_->ForEach(ResourceType::kNodes,
                   [&](const Json& node) { names.push_back(TextAt(node, {"metadata", "name"})); });
  ++beats_;
  for (const std::string& name : names) {
    Change(name, "agent", [&](Json& node) {
      node["metadata"]["annotations"]["sim/heartbeat"] = absl::StrCat(beats_);
    });
  }
  time_->After(kBeat, [this] { Beat(); });
}

void CloudProvider::Travel(const char* call, std::function<void()> what) {
  time_->After(absl::Milliseconds(random_.Between(5, 300)),
               [this, call, alive = std::weak_ptr<bool>(alive_), what = std::move(what)] {
                 const auto knows = [&] { return alive.lock() != nullptr && witness_; };
                 if (knows() && !witness_(call, false)) return;
                 what();
                 if (knows()) witness_(call, true);
               });
}

std::function<void(absl::Status)> CloudProvider::Back(Answer answer) {
  return [time = time_, delay = absl::Milliseconds(random_.Between(5, 300)),
          alive = std::weak_ptr<bool>(alive_), answer = std::move(answer)](absl::Status status) {
    time->After(delay, [alive, answer, status] {
      if (alive.lock() != nullptr) answer(status);
    });
  };
}

void CloudProvider::Start(hook::ProviderListener* listener) {
  listener_ = listener;
  cloud_->OnChange([this, alive = std::weak_ptr<bool>(alive_)](const Cloud::Machine& machine) {
    if (alive.lock() == nullptr) return false;
    Report(machine);
    return true;
  });
  ReportAll();
}

void CloudProvider::ReportAll() {
  for (const Cloud::Machine& machine : cloud_->machines()) {
    if (machine.ended == absl::InfiniteFuture()) Report(machine);
  }
}

// In the order in which they became true.
void CloudProvider::Report(const Cloud::Machine& machine) {
  hook::MachineReport report{name_,
                             machine.request,
                             machine.uid,
                             machine.provider_id(),
                             hook::MachineState::kRunning,
                             absl::OkStatus()};
  if (machine.ended != absl::InfiniteFuture()) report.state = hook::MachineState::kGone;
  last_report_ = std::max(last_report_, time_->now() + absl::Milliseconds(random_.Between(5, 300)));
  time_->After(last_report_ - time_->now(),
               [this, report = std::move(report), alive = std::weak_ptr<bool>(alive_)] {
                 if (alive.lock() != nullptr) listener_->OnMachine(report);
               });
}

void CloudProvider::Launch(std::vector<hook::LaunchOrder> orders) {
  for (hook::LaunchOrder& order : orders) {
    Travel("launch", [cloud = cloud_, launch = std::move(order.launch),
                      back = Back(std::move(order.answer))] { cloud->Launch(launch, back); });
  }
}

void CloudProvider::Terminate(const model::TerminateNode& terminate, Answer answer) {
  Travel("terminate",
         [cloud = cloud_, terminate, sent = time_->now(), back = Back(std::move(answer))] {
           cloud->Terminate(terminate, sent, back);
         });
}

}  // namespace fairlead::sim::world
