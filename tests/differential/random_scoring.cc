#include "tests/differential/random_scoring.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fairlead::differential {
namespace {

constexpr char kDigest[] =
    "@sha256:7ad25c3bba4d2cd3dbd3a4e0fb0f8f4f3ab1e1e1b0d4f1e0d1b0c6ed3be8a5d1";

// Each under its names on nodes. An untagged name never meets a pod's, which means ":latest".
const std::vector<std::vector<std::string>> kImages = {
    {"docker.io/library/nginx:latest", absl::StrCat("docker.io/library/nginx", kDigest)},
    {"docker.io/library/nginx:1.25"},
    {"registry.local:5000/base:latest", absl::StrCat("registry.local:5000/base", kDigest)},
    {"registry.local:5000/team/train:v2", "ghcr.io/team/train:v2"},
    {absl::StrCat("ghcr.io/team/tools:1.0", kDigest)},
    {"busybox:latest"},
    {"redis"},
    {"quay.io/models/llama:7b"}};
const std::vector<std::string> kReferences = {"docker.io/library/nginx",
                                              "docker.io/library/nginx:latest",
                                              absl::StrCat("docker.io/library/nginx", kDigest),
                                              "docker.io/library/nginx:1.25",
                                              "registry.local:5000/base",
                                              absl::StrCat("registry.local:5000/base", kDigest),
                                              "registry.local:5000/team/train:v2",
                                              "registry.local:5000/team/train",
                                              "ghcr.io/team/train:v2",
                                              absl::StrCat("ghcr.io/team/tools:1.0", kDigest),
                                              "busybox",
                                              "busybox:latest",
                                              "redis",
                                              "quay.io/models/llama:7b",
                                              "nginx",
                                              "x"};
constexpr int64_t kMiB = 1024 * 1024;

const std::vector<std::string> kResources = {
    "cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "hugepages-2Mi", "example.com/dongle",
    "pods"};

// Some resources in any order. `weighted`: with weights, which else have to be 1.
Json Resources(Dice& dice, bool weighted) {
  std::vector<std::string> names = kResources;
  Json resources = Json::array();
  for (int64_t left = dice.Between(1, 4); left > 0; --left) {
    // CPU and memory, which nodes have, more often than the others.
    const std::string name = dice.OneIn(2) ? dice.Pick({"cpu", "memory"}) : dice.Pick(names);
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    names.erase(std::find(names.begin(), names.end(), name));
    Json resource = {{"name", name}};
    if (!dice.OneIn(4)) resource["weight"] = weighted ? dice.Between(1, 100) : 1;
    resources.push_back(std::move(resource));
  }
  return resources;
}

Json Shape(Dice& dice) {
  Json shape = Json::array();
  for (int64_t utilization = dice.Between(0, 60); utilization <= 100;
       utilization += dice.Between(1, 60)) {
    shape.push_back({{"utilization", utilization}, {"score", dice.Between(0, 10)}});
  }
  return shape;
}

Json ScoringStrategy(Dice& dice) {
  const std::string type =
      dice.Pick({"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"});
  Json strategy = {{"type", type}};
  if (!dice.OneIn(4)) strategy["resources"] = Resources(dice, true);
  if (type == "RequestedToCapacityRatio") {
    strategy["requestedToCapacityRatio"] = {{"shape", Shape(dice)}};
  }
  return strategy;
}

}  // namespace

RandomImages::RandomImages(Dice& dice) : dice_(dice), rarity_(dice.Between(1, 4)) {
  // Below, between and above what kube-scheduler counts: 23 MiB, and 1000 MiB for each container.
  for (size_t i = 0; i < kImages.size(); ++i) {
    switch (dice_.Between(0, 7)) {
      case 0:
        sizes_.push_back(0);
        break;
      case 1:
        sizes_.push_back(dice_.Between(1, 23 * kMiB));
        break;
      case 2:
        sizes_.push_back(dice_.Between(1000 * kMiB, 40'000 * kMiB));
        break;
      default:
        sizes_.push_back(dice_.Between(23 * kMiB, 2000 * kMiB));
    }
  }
}

Json RandomImages::OfNode() {
  Json images = Json::array();
  for (size_t i = 0; i < kImages.size(); ++i) {
    if (!dice_.OneIn(rarity_)) continue;
    Json names = Json::array();
    for (const std::string& name : kImages[i]) {
      if (names.empty() || !dice_.OneIn(4)) names.push_back(name);
    }
    if (names.size() > 1 && dice_.OneIn(4)) names.erase(0);
    Json image = {{"names", names}};
    if (sizes_[i] > 0) image["sizeBytes"] = sizes_[i];
    // Kubelets tell an image once; a second time must not count.
    if (dice_.OneIn(10)) images.push_back(image);
    images.push_back(std::move(image));
  }
  return images;
}

std::string RandomImages::Reference() { return dice_.Pick(kReferences); }

void RandomImages::AddVolumes(Json& spec) {
  while (dice_.OneIn(8)) {
    const size_t at = spec.contains("volumes") ? spec["volumes"].size() : 0;
    spec["volumes"].push_back(
        {{"name", absl::StrCat("image-", at)},
         {"image", {{"reference", Reference()}, {"pullPolicy", "IfNotPresent"}}}});
  }
}

namespace {

Json AddedTerm(Dice& dice) {
  Json term = {{"matchExpressions",
                {{{"key", "zone"}, {"operator", "In"}, {"values", {dice.Pick({"a", "b", "c"})}}}}}};
  if (dice.OneIn(3)) {
    term["matchExpressions"].push_back({{"key", "disk"}, {"operator", "Exists"}});
  }
  if (dice.OneIn(4)) {
    term["matchExpressions"].push_back(
        {{"key", "cores"}, {"operator", dice.Pick({"Gt", "Lt"})}, {"values", {"8"}}});
  }
  return term;
}

Json AddedAffinity(Dice& dice) {
  Json affinity = Json::object();
  if (dice.OneIn(2)) {
    Json terms = Json::array({AddedTerm(dice)});
    while (dice.OneIn(2)) terms.push_back(AddedTerm(dice));
    affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {{"nodeSelectorTerms", terms}};
  }
  while (dice.OneIn(2)) {
    affinity["preferredDuringSchedulingIgnoredDuringExecution"].push_back(
        {{"weight", dice.Between(1, 100)}, {"preference", AddedTerm(dice)}});
  }
  return affinity;
}

}  // namespace

Json RandomPluginConfig(Dice& dice) {
  Json config = Json::object();
  if (!dice.OneIn(4)) config["NodeResourcesFit"]["scoringStrategy"] = ScoringStrategy(dice);
  if (dice.OneIn(6)) config["NodeResourcesFit"]["ignoredResources"] = {"example.com/dongle"};
  if (dice.OneIn(6)) config["NodeResourcesFit"]["ignoredResourceGroups"] = {"nvidia.com"};
  if (!dice.OneIn(3)) {
    config["NodeResourcesBalancedAllocation"]["resources"] = Resources(dice, false);
  }
  if (dice.OneIn(2)) {
    config["InterPodAffinity"]["hardPodAffinityWeight"] = dice.Between(0, 4) * 25;
  }
  if (dice.OneIn(4)) config["InterPodAffinity"]["ignorePreferredTermsOfExistingPods"] = true;
  if (dice.OneIn(4)) config["NodeAffinity"]["addedAffinity"] = AddedAffinity(dice);
  return config;
}

}  // namespace fairlead::differential
