// Objects with /scale and a controller that makes Nodes for them, over FakeObjects, in virtual
// time. Of nodes that are too many, those with the annotation go first, then the newest: the
// controller knows nothing of pods. Thread-safety: one thread.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autoscale-hook/providers/groups/fake_objects_testing.h"
#include "scheduler/model/scale_group.h"

namespace fairlead::hook {

class FakeScale {
 public:
  static constexpr char kRoot[] = "/apis/example.com/v1";
  static constexpr char kMark[] = "example.com/delete";

  struct Behaviour {
    absl::Duration reacts_after = absl::Milliseconds(500);
    absl::Duration node_after = absl::Seconds(40);
    absl::Duration ends_after = absl::Seconds(3);
    bool acts = true;
  };

  explicit FakeScale(VirtualTime* time) : objects(time), time_(time) {
    objects.objects[kRoot] = *Json::Parse(
        R"({"resources":[{"name":"pools/scale","kind":"Scale"},{"name":"pools","kind":"Pool"}]})");
    objects.on_change = [this](const std::string& path) {
      if (absl::StrContains(path, "/pools/")) ReconcileSoon(path.substr(path.rfind('/') + 1));
    };
  }

  FakeObjects objects;
  std::map<std::string, Behaviour> behaviours;  // by name of the pool

  static std::string PoolPath(const std::string& name) {
    return absl::StrCat(kRoot, "/namespaces/default/pools/", name);
  }
  static std::string NodePath(const std::string& name) {
    return absl::StrCat("/api/v1/nodes/", name);
  }
  static std::string IdOfNode(const std::string& name) { return absl::StrCat("cloud:///", name); }

  model::ScaleGroup AddPool(const std::string& name, int replicas = 0, int min_size = 0,
                            int max_size = 10, bool marks = true) {
    behaviours.try_emplace(name);
    objects.Put(PoolPath(name), absl::StrCat(R"({"spec":{"replicas":)", replicas, "}}"));
    model::ScaleGroup group;
    group.api_version = "example.com/v1";
    group.kind = "Pool";
    group.ns = "default";
    group.name = name;
    group.min_size = min_size;
    group.max_size = max_size;
    group.allocatable = {{"cpu", 4000}, {"memory", int64_t{16} << 30}};
    group.price_micro_usd_per_hour = 2'000'000;
    group.node_selector.Set("pool", name);
    if (marks) {
      group.mark.key = kMark;
      group.mark.value = "yes";
    }
    return group;
  }
  [[nodiscard]] int Replicas(const std::string& pool) const {
    int replicas = 0;
    if (!absl::SimpleAtoi(objects.TextOf(PoolPath(pool), {"spec", "replicas"}), &replicas)) {
      return -1;
    }
    return replicas;
  }
  // Names of its nodes that are not ending, in the order in which they were made.
  [[nodiscard]] std::vector<std::string> NodesOf(const std::string& pool) const {
    std::vector<std::string> names;
    for (const auto& [path, object] : objects.objects) {
      if (object.TextAt({"metadata", "labels", "pool"}) == pool && !ending_.contains(path)) {
        names.push_back(object.TextAt({"metadata", "name"}));
      }
    }
    return names;
  }
  [[nodiscard]] bool Has(const std::string& provider_id) const {
    for (const auto& [path, object] : objects.objects) {
      if (object.TextAt({"spec", "providerID"}) == provider_id) return true;
    }
    return false;
  }
  void AddNode(const std::string& pool, const std::string& name) {
    objects.Put(NodePath(name),
                absl::StrCat(R"({"metadata":{"labels":{"pool":")", pool,
                             R"("}},"spec":{"providerID":")", IdOfNode(name), R"("}})"));
  }
  // A machine is lost, with its node.
  void Lose(const std::string& node, const std::string& pool) {
    objects.Erase(NodePath(node));
    ReconcileSoon(pool);
  }

 private:
  void ReconcileSoon(const std::string& pool) {
    if (!due_.insert(pool).second) return;
    time_->After(behaviours[pool].reacts_after, [this, pool] {
      due_.erase(pool);
      Reconcile(pool);
    });
  }
  void Reconcile(const std::string& pool) {
    const Behaviour behaviour = behaviours[pool];
    const int replicas = Replicas(pool);
    if (!behaviour.acts || replicas < 0) return;
    // As controllers with a status tell it.
    Json& object = objects.objects[PoolPath(pool)];
    if (object.Find("status") == nullptr) object.Set("status", Json::Object());
    object.Find("status")->Set("observedGeneration", object.TextAt({"metadata", "generation"}));
    std::vector<std::string> nodes = NodesOf(pool);
    int surplus = static_cast<int>(nodes.size()) + starting_[pool] - replicas;
    std::stable_sort(nodes.begin(), nodes.end(), [this](const auto& a, const auto& b) {
      return std::pair(!IsMarked(a), b) < std::pair(!IsMarked(b), a);
    });
    for (const std::string& node : nodes) {
      if (surplus <= 0 || !IsMarked(node)) break;
      End(node, behaviour);
      --surplus;
    }
    for (; surplus > 0 && starting_[pool] > 0; --surplus) --starting_[pool];
    for (const std::string& node : NodesOf(pool)) {
      if (surplus <= 0) break;
      End(node, behaviour);
      --surplus;
    }
    for (; surplus < 0; ++surplus) Start(pool, behaviour);
    objects.objects[PoolPath(pool)].Find("status")->Set(
        "replicas", Json::Int(static_cast<int64_t>(NodesOf(pool).size()) + starting_[pool]));
  }
  bool IsMarked(const std::string& node) const {
    return !objects.TextOf(NodePath(node), {"metadata", "annotations", kMark}).empty();
  }
  void End(const std::string& node, const Behaviour& behaviour) {
    const std::string path = NodePath(node);
    if (!ending_.insert(path).second) return;
    time_->After(behaviour.ends_after, [this, path] {
      ending_.erase(path);
      objects.Erase(path);
    });
  }
  void Start(const std::string& pool, const Behaviour& behaviour) {
    ++starting_[pool];
    if (behaviour.node_after == absl::InfiniteDuration()) return;
    time_->After(behaviour.node_after, [this, pool] {
      if (starting_[pool] == 0) return;
      --starting_[pool];
      AddNode(pool, absl::StrFormat("%s-%04d", pool, ++last_node_));
    });
  }

  VirtualTime* time_;
  int last_node_ = 0;
  std::set<std::string> due_, ending_;
  std::map<std::string, int> starting_;  // machines without a node
};

}  // namespace fairlead::hook
