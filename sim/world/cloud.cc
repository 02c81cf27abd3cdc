#include "sim/world/cloud.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/failure.h"
#include "scheduler/model/resources.h"
#include "sim/world/facts.h"
#include "sim/world/objects.h"

namespace fairlead::sim::world {
namespace {

constexpr char kActor[] = "cloud";
constexpr absl::Duration kBoot = absl::Seconds(20), kReady = absl::Seconds(5);
constexpr absl::Duration kTermination = absl::Seconds(5), kBeat = absl::Seconds(7);
constexpr int64_t kLateFactor = 10;
constexpr const char* kLieNames[kLies] = {"smaller",  "larger",    "late",      "never",
                                          "twice",    "after-end", "own-names", "forbidden",
                                          "no-stock", "unanswered"};

const char* EffectText(model::TaintEffect effect) {
  if (effect == model::TaintEffect::kNoExecute) return "NoExecute";
  return effect == model::TaintEffect::kNoSchedule ? "NoSchedule" : "PreferNoSchedule";
}

Json MapJson(const model::StringMap& map) {
  Json out = Json::object();
  for (const auto& [key, value] : map) out[std::string(key)] = std::string(value);
  return out;
}

}  // namespace

const char* LieName(Lie lie) { return kLieNames[static_cast<size_t>(lie)]; }

Cloud::Cloud(EventQueue* time, ApiServer* server, const hook::Catalog* catalog, uint64_t seed)
    : time_(time), server_(server), catalog_(catalog), random_(seed) {
  BeHonest();
  server->Listen([this](const ApiServer::Commit& commit) {
    if (commit.type != ResourceType::kPods || commit.after == nullptr) return;
    const std::string node = TextAt(*commit.after, {"spec", "nodeName"});
    if (node.empty()) return;
    for (Machine& machine : machines_) {
      if (machine.node == node) machine.ran_a_pod = true;
    }
  });
}

void Cloud::BeHonest() { lies_.fill(absl::InfinitePast()); }

bool Cloud::Lying(Lie lie) const { return time_->now() < lies_[static_cast<size_t>(lie)]; }

int64_t Cloud::live_count() const {
  return std::count_if(machines_.begin(), machines_.end(),
                       [](const Machine& m) { return m.ended == absl::InfiniteFuture(); });
}

int64_t Cloud::live_gpus() const {
  int64_t gpus = 0;
  for (const Machine& machine : machines_) {
    const hook::InstanceType* type = catalog_->Find(machine.type);
    if (machine.ended != absl::InfiniteFuture() || machine.uninvited) continue;
    if (type != nullptr) gpus += type->gpu_count;
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
  if (Lying(Lie::kForbidden)) return answer(absl::PermissionDeniedError("403: not authorized"));
  const bool there = std::any_of(machines_.begin(), machines_.end(), [&](const Machine& machine) {
    return machine.request == request && machine.uid == launch.request->meta.uid &&
           machine.ended == absl::InfiniteFuture();
  });
  if (!there && Lying(Lie::kNoStock)) {
    return answer(absl::ResourceExhaustedError("no capacity of that type"));
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
  machine.started = time_->now();
  // A second machine for one request cannot have the same name.
  const bool second = std::any_of(machines_.begin(), machines_.end() - 1, [&](const Machine& m) {
    return m.node == launch.node->meta.name && m.ended == absl::InfiniteFuture();
  });
  machine.node =
      second || Lying(Lie::kOwnNames) ? absl::StrCat("ip-10-0-0-", index) : launch.node->meta.name;
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
  const Machine& machine = machines_[index];
  if (machine.ended != absl::InfiniteFuture() && !Lying(Lie::kAfterEnd)) return;
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
  Json node = {{"apiVersion", "v1"},
               {"kind", "Node"},
               {"metadata",
                {{"name", machine.node},
                 {"labels", labels},
                 {"annotations", MapJson(promised.meta.annotations)}}},
               {"spec", {{"providerID", absl::StrCat("sim://", machine.id)}, {"taints", taints}}},
               {"status", {{"capacity", amounts}, {"allocatable", amounts}}}};
  SetNodeReady(node, false);
  if (!server_->Create(ResourceType::kNodes, std::move(node), kActor).ok()) return;
  time_->After(kReady, [this, name = machine.node] {
    server_
        ->Modify(
            ResourceType::kNodes, "", name,
            [](Json& changed) {
              SetNodeReady(changed, true);
              return absl::OkStatus();
            },
            kActor)
        .IgnoreError();
  });
}

void Cloud::End(size_t index) {
  Machine& machine = machines_[index];
  if (machine.ended != absl::InfiniteFuture()) return;
  machine.ended = time_->now();
  const std::string node = machine.node, id = absl::StrCat("sim://", machine.id);
  time_->After(kTermination, [this, node, id] {
    const Json* object = server_->Find(ResourceType::kNodes, "", node);
    if (object == nullptr || ReadNode(*object).provider_id != id) return;
    server_->RemoveNow(ResourceType::kNodes, "", node, kActor).IgnoreError();
  });
}

void Cloud::Terminate(const model::TerminateNode& terminate,
                      const std::function<void(absl::Status)>& answer) {
  if (Lying(Lie::kForbidden)) return answer(absl::PermissionDeniedError("403: not authorized"));
  for (size_t i = 0; i < machines_.size(); ++i) {
    Machine& machine = machines_[i];
    if (machine.ended != absl::InfiniteFuture()) continue;
    const bool meant = terminate.provider_id.empty()
                           ? machine.request == terminate.request_name
                           : absl::StrCat("sim://", machine.id) == terminate.provider_id;
    if (!meant) continue;
    if (on_terminate_) on_terminate_(machine.node);
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
    server_
        ->Modify(
            ResourceType::kNodes, "", name,
            [&](Json& node) {
              node["metadata"]["annotations"]["sim/heartbeat"] = absl::StrCat(beats_);
              return absl::OkStatus();
            },
            "agent")
        .IgnoreError();
  }
  time_->After(kBeat, [this] { Beat(); });
}

void CloudProvider::Travel(std::function<void()> what) {
  time_->After(absl::Milliseconds(random_.Between(5, 300)), std::move(what));
}

std::function<void(absl::Status)> CloudProvider::Back(Answer answer) {
  return [time = time_, delay = absl::Milliseconds(random_.Between(5, 300)),
          alive = std::weak_ptr<bool>(alive_), answer = std::move(answer)](absl::Status status) {
    time->After(delay, [alive, answer, status] {
      if (alive.lock() != nullptr) answer(status);
    });
  };
}

void CloudProvider::Launch(const model::LaunchNode& launch, Answer answer) {
  Travel([cloud = cloud_, launch, back = Back(std::move(answer))] { cloud->Launch(launch, back); });
}

void CloudProvider::Terminate(const model::TerminateNode& terminate, Answer answer) {
  Travel([cloud = cloud_, terminate, back = Back(std::move(answer))] {
    cloud->Terminate(terminate, back);
  });
}

}  // namespace fairlead::sim::world
