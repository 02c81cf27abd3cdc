// Why no instance type serves pods with device claims: what those types bring on which the pods
// would fit but for their claims.
#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autoscale-hook/hook_impl.h"
#include "scheduler/model/device_names.h"

namespace fairlead::hook {
namespace {

bool AsksForDevices(const model::PodSpec& spec) {
  return !spec.resource_claims.empty() || !spec.claim_templates.empty() || spec.extended->Any();
}

std::shared_ptr<const model::PodSpec> WithoutDevices(const model::PodSpec& spec) {
  auto bare = std::make_shared<model::PodSpec>(spec);
  const std::vector<std::string>& backed = spec.extended->resources;
  std::erase_if(bare->requests, [&](const auto& request) {
    return absl::StartsWith(request.first, model::kDemandPrefix) ||
           absl::StartsWith(request.first, model::kShapePrefix) ||
           std::find(backed.begin(), backed.end(), request.first) != backed.end();
  });
  bare->resource_claims.clear();
  bare->claim_templates.clear();
  bare->claims_to_join.clear();
  bare->extended = {};
  return bare;
}

std::string BroughtBy(const model::Node& node) {
  if (node.devices == nullptr) return "no devices known";
  std::string text = model::DescribeDevices(*node.devices);
  for (const std::string& pool : node.devices->shared_pools) {
    absl::StrAppend(&text, "; those of pool ", pool, " are not of one node, and are not counted");
  }
  return text;
}

}  // namespace

void Hook::Impl::ExplainDevices(const DemandItem& item, const PlanInput& input,
                                Placement& placement, DemandOutcome& outcome) {
  constexpr size_t kMaxTypes = 3;
  for (const verdict::DemandClass& pods : item.classes) {
    if (pods.spec == nullptr || pods.count <= 0 || !AsksForDevices(*pods.spec)) continue;
    if (!pods.spec->claims_to_join.empty()) {
      outcome.details.push_back(absl::StrCat("ResourceClaim ", pods.spec->claims_to_join.front(),
                                             " is held on a node, or another pod brings it along: "
                                             "a new node alone has no part of it"));
      return;
    }
    if (explained_devices_++ >= kMaxExplainedDevices) return;
    const std::shared_ptr<const model::PodSpec> bare = WithoutDevices(*pods.spec);
    std::set<std::pair<std::string, std::string>> seen;  // type, pool
    std::vector<std::string> types;
    for (const Offer& offer : input.offers) {
      if (types.size() > kMaxTypes) break;
      if (!seen.insert({offer.type->name, offer.pool->meta.name}).second) continue;
      model::Node node = UsableNode(offer, "");
      shapes_.Apply(node);
      if (placement.CountThatFit(node, {}, pods.spec, 1) > 0) continue;
      if (placement.CountThatFit(node, {}, bare, 1) == 0) continue;
      types.push_back(absl::StrCat(offer.type->name, " (", BroughtBy(node), ")"));
    }
    if (types.empty()) continue;
    std::string text = "nodes would suit it but for the devices that they bring: ";
    for (size_t t = 0; t < types.size() && t < kMaxTypes; ++t) {
      absl::StrAppend(&text, t == 0 ? "" : ", ", types[t]);
    }
    if (types.size() > kMaxTypes) absl::StrAppend(&text, " and others");
    outcome.details.push_back(std::move(text));
    return;
  }
}

}  // namespace fairlead::hook
