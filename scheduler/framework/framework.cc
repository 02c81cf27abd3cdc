#include "scheduler/framework/framework.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "scheduler/model/api_names.h"

namespace fairlead::framework {
namespace {

constexpr char kGpuSharing[] = "GpuSharing";
constexpr char kNoShares[] = "shares of GPUs need plugin GpuSharing, which the profile leaves out";

}  // namespace

absl::Status Registry::Register(absl::string_view name, PluginFactory factory) {
  if (!factories_.emplace(std::string(name), std::move(factory)).second) {
    return absl::AlreadyExistsError(absl::StrCat("plugin ", name, " is registered twice"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Plugin>> Registry::Make(absl::string_view name,
                                                       absl::string_view args_json) const {
  auto it = factories_.find(name);
  if (it == factories_.end()) {
    return absl::NotFoundError(
        absl::StrCat("there is no plugin \"", name, "\"; known: ", absl::StrJoin(Names(), ", ")));
  }
  return it->second(args_json);
}

std::vector<std::string> Registry::Names() const {
  std::vector<std::string> names;
  names.reserve(factories_.size());
  for (const auto& [name, factory] : factories_) names.push_back(name);
  return names;
}

Profile DefaultProfile() {
  // First what no node can mend, so that it is what people read; then what a node is, then what is
  // on it, then what is elsewhere: from cheap to dear.
  Profile profile;
  profile.scheduler_name = model::kDefaultSchedulerName;
  profile.plugins = {{"GpuKind", 1},           {"NodeReady", 1},
                     {"NodeUnschedulable", 1}, {"NodeAffinity", 2},
                     {"TaintToleration", 3},   {"NodeResourcesFit", 1},
                     {"GpuSharing", 1},        {"DynamicResources", 1},
                     {"NodePorts", 1},         {"VolumeRestrictions", 1},
                     {"NodeVolumeLimits", 1},  {"VolumeBinding", 1},
                     {"VolumeZone", 1},        {"PodTopologySpread", 2},
                     {"InterPodAffinity", 2},  {"ResourceType", 1},
                     {"NodePlacement", 1}};
  return profile;
}

absl::StatusOr<std::unique_ptr<Framework>> Framework::Make(const Profile& profile,
                                                           const Registry& registry) {
  auto framework = std::make_unique<Framework>();
  std::set<std::string> seen;
  for (const ProfilePlugin& entry : profile.plugins) {
    const auto at = [&](absl::string_view what) {
      return absl::StrCat("profile ", profile.scheduler_name, ": plugin ", entry.name, ": ", what);
    };
    if (!seen.insert(entry.name).second) return absl::InvalidArgumentError(at("named twice"));
    if (entry.weight < 0 || entry.weight > kMaxWeight) {
      return absl::InvalidArgumentError(
          at(absl::StrCat("weight ", entry.weight, " is not between 0 and ", kMaxWeight)));
    }
    absl::StatusOr<std::unique_ptr<Plugin>> plugin = registry.Make(entry.name, entry.args_json);
    if (!plugin.ok()) {
      return absl::Status(plugin.status().code(), at(plugin.status().message()));
    }
    const auto* filter = dynamic_cast<const FilterPlugin*>(plugin->get());
    const auto* score = dynamic_cast<const ScorePlugin*>(plugin->get());
    if (filter == nullptr && score == nullptr) {
      return absl::InvalidArgumentError(at("it neither filters nor scores"));
    }
    const Depends depends = (*plugin)->DependsOn();
    const auto* domains = dynamic_cast<const DomainPlugin*>(plugin->get());
    if (filter != nullptr && entry.filter) {
      framework->filters_.push_back({filter, depends, domains});
      framework->knows_shares_ |= entry.name == kGpuSharing;
    }
    if (score != nullptr && entry.score && entry.weight > 0) {
      framework->scores_.push_back({score, entry.weight, depends, domains});
    }
    framework->plugins_.push_back(*std::move(plugin));
  }
  return framework;
}

bool Framework::RunFilter(const FilterPlugin& plugin, const Context& context,
                          const state::NodeInfo& node, Status* why) {
  if (!plugin.FilterApplies(context.pod_class) || plugin.Filter(context, node, why)) return true;
  if (why != nullptr) {
    why->plugin = plugin.Name();
    if (why->code == Code::kSuccess) why->code = Code::kUnschedulable;
  }
  return false;
}

bool Framework::RefusesShare(const Context& context, Status* why) const {
  if (knows_shares_ || !context.pod_class.spec->gpu_share.IsSet()) return false;
  if (why != nullptr) {
    why->plugin = kGpuSharing;
    why->code = Code::kUnschedulableAndUnresolvable;
    why->reason = kNoShares;
  }
  return true;
}

bool Framework::LeavesOut(const Context& context, const state::NodeInfo& node, Status* why) const {
  for (const bool all : {true, false}) {
    for (const Filterer& filter : filters_) {
      if (!filter.plugin->FilterApplies(context.pod_class)) continue;
      std::string reason = all ? filter.plugin->LeavesOutAll(context.pod_class)
                               : filter.plugin->LeavesOut(context.pod_class, node);
      if (reason.empty()) continue;
      why->plugin = filter.plugin->Name();
      why->code = Code::kUnschedulableAndUnresolvable;
      why->reason = std::move(reason);
      return true;
    }
  }
  return false;
}

bool Framework::Filter(const Context& context, const state::NodeInfo& node, Status* why) const {
  if (RefusesShare(context, why)) return false;
  // Without reasons the filters say the same.
  if (why != nullptr && LeavesOut(context, node, why)) return false;
  for (const Filterer& filter : filters_) {
    if (!RunFilter(*filter.plugin, context, node, why)) return false;
  }
  return true;
}

bool Framework::FilterNodeObject(const Context& context, const state::NodeInfo& node,
                                 Status* why) const {
  if (RefusesShare(context, why)) return false;
  if (why != nullptr && LeavesOut(context, node, why)) return false;
  for (const Filterer& filter : filters_) {
    if (filter.depends != Depends::kNodeObject) continue;
    if (!RunFilter(*filter.plugin, context, node, why)) return false;
  }
  return true;
}

bool Framework::FilterNodeUsage(const Context& context, const state::NodeInfo& node,
                                Status* why) const {
  for (const Filterer& filter : filters_) {
    if (filter.depends != Depends::kNodeUsage) continue;
    if (!RunFilter(*filter.plugin, context, node, why)) return false;
  }
  return true;
}

bool Framework::ChecksAmountOf(const state::ClusterState& state,
                               model::ResourceIndex resource) const {
  return std::any_of(filters_.begin(), filters_.end(), [&](const Filterer& filter) {
    return filter.plugin->ChecksAmountOf(state, resource);
  });
}

int64_t Framework::RunScores(const Context& context, const state::NodeInfo& node, bool node_alone,
                             bool rest) const {
  int64_t total = 0;
  for (const Scorer& score : scores_) {
    if (!(score.depends == Depends::kCluster ? rest : node_alone)) continue;
    if (!score.plugin->ScoreApplies(context.pod_class)) continue;
    total = model::SaturatingAdd(
        total, model::SaturatingMultiply(score.weight, score.plugin->Score(context, node)));
  }
  return total;
}

int64_t Framework::Score(const Context& context, const state::NodeInfo& node) const {
  return RunScores(context, node, /*node_alone=*/true, /*rest=*/true);
}

int64_t Framework::ScoreNode(const Context& context, const state::NodeInfo& node) const {
  return RunScores(context, node, /*node_alone=*/true, /*rest=*/false);
}

int64_t Framework::ScoreCluster(const Context& context, const state::NodeInfo& node) const {
  return RunScores(context, node, /*node_alone=*/false, /*rest=*/true);
}

std::string Framework::RefusesEverywhere(const state::PodClass& pod_class) const {
  if (!knows_shares_ && pod_class.spec->gpu_share.IsSet()) return kNoShares;
  for (const Filterer& filter : filters_) {
    if (!filter.plugin->FilterApplies(pod_class)) continue;
    std::string why = filter.plugin->RefusesEverywhere(pod_class);
    if (!why.empty()) return why;
  }
  return "";
}

bool Framework::NodeLocal(const state::PodClass& pod_class) const {
  for (const Filterer& filter : filters_) {
    if (filter.depends == Depends::kCluster && filter.plugin->FilterApplies(pod_class))
      return false;
  }
  for (const Scorer& score : scores_) {
    if (score.depends == Depends::kCluster && score.plugin->ScoreApplies(pod_class)) return false;
  }
  return true;
}

void Framework::Attach(DomainCounters* counters) {
  attached_ = counters != nullptr;
  subscribers_.clear();
  for (const std::unique_ptr<Plugin>& plugin : plugins_) {
    if (auto* domains = dynamic_cast<DomainPlugin*>(plugin.get())) domains->Attach(counters);
    auto* const following = dynamic_cast<FollowingPlugin*>(plugin.get());
    if (following == nullptr) continue;
    state::StateSubscriber* const subscriber =
        following->Follow(counters == nullptr ? nullptr : &counters->state());
    if (subscriber != nullptr) subscribers_.push_back(subscriber);
  }
}

std::string Framework::CheckConsistency() const {
  for (const std::unique_ptr<Plugin>& plugin : plugins_) {
    auto* const following = dynamic_cast<FollowingPlugin*>(plugin.get());
    std::string wrong = following == nullptr ? "" : following->CheckConsistency();
    if (!wrong.empty()) return absl::StrCat(plugin->Name(), ": ", wrong);
  }
  return "";
}

bool Framework::ByDomain(const state::PodClass& pod_class) const {
  if (!attached_) return false;
  for (const Filterer& filter : filters_) {
    if (filter.depends != Depends::kCluster || filter.domains != nullptr) continue;
    if (filter.plugin->FilterApplies(pod_class)) return false;
  }
  for (const Scorer& score : scores_) {
    if (score.depends != Depends::kCluster || score.domains != nullptr) continue;
    if (score.plugin->ScoreApplies(pod_class)) return false;
  }
  return true;
}

DomainDependence Framework::DependenceOf(const Context& context) const {
  DomainDependence all, one;
  const auto add = [](const TopologyKeys& from, TopologyKeys& to) {
    for (const TopologyKey* key : from) {
      if (std::find(to.begin(), to.end(), key) == to.end()) to.push_back(key);
    }
  };
  for (const Filterer& filter : filters_) {
    if (filter.domains == nullptr || !filter.plugin->FilterApplies(context.pod_class)) continue;
    one = {};
    filter.domains->AddDependence(context, one);
    add(one.filter, all.filter);
  }
  for (const Scorer& score : scores_) {
    if (score.domains == nullptr || !score.plugin->ScoreApplies(context.pod_class)) continue;
    one = {};
    score.domains->AddDependence(context, one);
    add(one.score, all.score);
  }
  return all;
}

bool Framework::AdmitsDomains(const Context& context, const state::NodeInfo& node,
                              const TopologyKeys& keys) const {
  return std::all_of(filters_.begin(), filters_.end(), [&](const Filterer& filter) {
    return filter.domains == nullptr || !filter.plugin->FilterApplies(context.pod_class) ||
           filter.domains->AdmitsDomains(context, node, keys);
  });
}

void Framework::AddThresholds(const Context& context, const TopologyKeys& keys,
                              std::vector<int64_t>& thresholds) const {
  for (const Filterer& filter : filters_) {
    if (filter.domains == nullptr || !filter.plugin->FilterApplies(context.pod_class)) continue;
    filter.domains->AddThresholds(context, keys, thresholds);
  }
}

bool Framework::ScoreVaries(const Context& context, const TopologyKeys& keys) const {
  return std::any_of(scores_.begin(), scores_.end(), [&](const Scorer& score) {
    return score.domains != nullptr && score.plugin->ScoreApplies(context.pod_class) &&
           score.domains->ScoreVaries(context, keys);
  });
}

}  // namespace fairlead::framework
