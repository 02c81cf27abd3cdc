#include "tests/differential/random_owners.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/differential/random_terms.h"

namespace fairlead::differential {
namespace {

constexpr struct {
  const char* kind;
  const char* api_version;
  const char* list;
} kKinds[] = {{"ReplicationController", "v1", "replicationControllers"},
              {"ReplicaSet", "apps/v1", "replicaSets"},
              {"StatefulSet", "apps/v1", "statefulSets"}};

}  // namespace

RandomOwners::RandomOwners(Dice& dice, const std::vector<std::string>& namespaces) : dice_(dice) {
  const int64_t services = dice_.Between(0, 6);
  for (int i = 0; i < services; ++i) services_.push_back(Service(i, dice_.Pick(namespaces)));
  const int64_t controllers = dice_.Between(0, 8);
  for (int i = 0; i < controllers; ++i) {
    controllers_.push_back(Controller(i, dice_.Pick(namespaces)));
  }
}

Json RandomOwners::Labels() {
  Json labels = Json::object();
  if (!dice_.OneIn(4)) labels["app"] = dice_.Pick(kApps);
  if (dice_.OneIn(3)) labels["tier"] = dice_.Pick(kTiers);
  return labels;
}

Json RandomOwners::Service(int number, const std::string& ns) {
  const std::string name = absl::StrCat("service-", number);
  Json spec = Json::object();
  if (!dice_.OneIn(8)) spec["selector"] = Labels();
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", {{"name", name}, {"namespace", ns}, {"uid", name}}},
          {"spec", spec}};
}

Json RandomOwners::Controller(int number, const std::string& ns) {
  const auto& kind = kKinds[dice_.Between(0, 2)];
  // Several kinds may have one name.
  const std::string name = absl::StrCat("controller-", number / 2);
  Json spec = Json::object();
  if (dice_.OneIn(8)) {
    // No selector at all.
  } else if (kind.api_version == std::string("v1")) {
    spec["selector"] = Labels();
  } else {
    Json selector = Json::object();
    const Json labels = Labels();
    if (!labels.empty()) selector["matchLabels"] = labels;
    if (dice_.OneIn(3)) {
      selector["matchExpressions"].push_back({{"key", "tier"},
                                              {"operator", dice_.Pick({"In", "NotIn"})},
                                              {"values", {dice_.Pick(kTiers)}}});
    }
    if (dice_.OneIn(4)) {
      selector["matchExpressions"].push_back(
          {{"key", dice_.Pick({"tier", "app"})},
           {"operator", dice_.Pick({"Exists", "DoesNotExist"})}});
    }
    spec["selector"] = selector;
  }
  return {{"apiVersion", kind.api_version},
          {"kind", kind.kind},
          {"metadata", {{"name", name}, {"namespace", ns}, {"uid", absl::StrCat(name, kind.kind)}}},
          {"spec", spec}};
}

void RandomOwners::AddOwner(Json& pod) {
  if (dice_.OneIn(3)) return;
  Json owner;
  if (controllers_.empty() || dice_.OneIn(6)) {
    owner = {{"apiVersion", dice_.Pick({"apps/v1", "batch/v1", "v1"})},
             {"kind", dice_.Pick({"ReplicaSet", "Job", "ReplicationController"})},
             {"name", absl::StrCat("controller-", dice_.Between(0, 4))},
             {"uid", "other"}};
  } else {
    const auto at =
        static_cast<size_t>(dice_.Between(0, static_cast<int64_t>(controllers_.size()) - 1));
    const Json& controller = controllers_[at];
    // Mostly in its namespace.
    if (!dice_.OneIn(8)) pod["metadata"]["namespace"] = controller["metadata"]["namespace"];
    owner = {{"apiVersion", controller["apiVersion"]},
             {"kind", controller["kind"]},
             {"name", controller["metadata"]["name"]},
             {"uid", controller["metadata"]["uid"]}};
  }
  Json& owners = pod["metadata"]["ownerReferences"];
  if (dice_.OneIn(6)) {
    owners.push_back(
        {{"apiVersion", "apps/v1"}, {"kind", "ReplicaSet"}, {"name", "plain"}, {"uid", "plain"}});
  }
  if (!dice_.OneIn(8)) owner["controller"] = true;
  owners.push_back(std::move(owner));
}

void RandomOwners::MoveInto(Json& world) {
  world["services"] = std::move(services_);
  for (const auto& kind : kKinds) {
    Json& list = world[kind.list] = Json::array();
    for (const Json& controller : controllers_) {
      if (controller["kind"] == kind.kind) list.push_back(controller);
    }
  }
}

}  // namespace fairlead::differential
