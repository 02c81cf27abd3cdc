#include "core/node_pools.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fairlead::core {

NodePools::NodePools(std::vector<std::string> providers) : providers_(std::move(providers)) {
  none_.invalid = "no NodePool is in force";
}

std::string NodePools::FaultOf(const model::NodePool& object) const {
  if (!object.invalid.empty()) return object.invalid;
  const std::string& named = object.provider;
  const bool known = named.empty() || providers_.empty() ||
                     std::find(providers_.begin(), providers_.end(), named) != providers_.end();
  if (known) return "";
  return absl::StrCat("spec.provider: \"", named, "\" is not configured; configured providers: ",
                      absl::StrJoin(providers_, ", "));
}

bool NodePools::Upsert(const model::NodePool& object) {
  Row& row = rows_[object.meta.name];
  if (row.uid != object.meta.uid) row = {object.meta.uid, "", std::nullopt};
  const std::string fault = FaultOf(object);
  if (fault.empty()) {
    row.fault.clear();
    row.in_force = object;
    return true;
  }
  if (std::exchange(row.fault, fault) == fault) return false;
  events_.push_back(
      {model::Kind::kNodePool, "", object.meta.name, object.meta.uid, true, "NodePoolRefused",
       absl::StrCat(fault, row.in_force.has_value() ? "; the last right version stays in force"
                                                    : "; nothing is provisioned from it")});
  return true;
}

bool NodePools::Remove(const std::string& name) { return rows_.erase(name) > 0; }

std::vector<const model::NodePool*> NodePools::InForce() const {
  std::vector<const model::NodePool*> pools;
  for (const auto& [name, row] : rows_) {
    if (row.in_force.has_value()) pools.push_back(&*row.in_force);
  }
  return pools;
}

std::vector<const model::NodePool*> NodePools::OnOffer() const {
  std::vector<const model::NodePool*> pools = InForce();
  if (pools.empty() && !rows_.empty()) pools.push_back(&none_);
  return pools;
}

std::vector<std::string> NodePools::Problems() const {
  std::vector<std::string> problems;
  for (const auto& [name, row] : rows_) {
    if (!row.fault.empty()) problems.push_back(absl::StrCat("NodePool ", name, ": ", row.fault));
  }
  return problems;
}

}  // namespace fairlead::core
