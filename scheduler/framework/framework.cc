#include "scheduler/framework/framework.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "scheduler/framework/binding_points.h"
#include "scheduler/framework/calling_plugin.h"
#include "scheduler/framework/enqueue_points.h"
#include "scheduler/framework/judging_plugin.h"
#include "scheduler/framework/scheduling_points.h"
#include "scheduler/model/api_names.h"

namespace fairlead::framework {
namespace {

constexpr char kGpuSharing[] = "GpuSharing";
constexpr char kNoShares[] = "shares of GPUs need plugin GpuSharing, which the profile leaves out";

}  // namespace

bool Implements(const Plugin& plugin, Point point) {
  switch (point) {
    case Point::kPreFilter:
    case Point::kFilter:
      return dynamic_cast<const FilterPlugin*>(&plugin) != nullptr;
    case Point::kPreScore:
    case Point::kScore:
      return dynamic_cast<const ScorePlugin*>(&plugin) != nullptr ||
             dynamic_cast<const NormalizedScorePlugin*>(&plugin) != nullptr;
    case Point::kReserve:
      return dynamic_cast<const ReservePlugin*>(&plugin) != nullptr ||
             dynamic_cast<const PreparingPlugin*>(&plugin) != nullptr;
    case Point::kPermit:
      return dynamic_cast<const PermitPlugin*>(&plugin) != nullptr;
    case Point::kPreBind:
      return dynamic_cast<const PreBindPlugin*>(&plugin) != nullptr ||
             dynamic_cast<const PreparingPlugin*>(&plugin) != nullptr;
    case Point::kPostBind:
      return dynamic_cast<const PostBindPlugin*>(&plugin) != nullptr;
    case Point::kPreEnqueue:
      return dynamic_cast<const PreEnqueuePlugin*>(&plugin) != nullptr;
    case Point::kQueueSort:
      return dynamic_cast<const QueueSortPlugin*>(&plugin) != nullptr;
    case Point::kPostFilter:
      return dynamic_cast<const PostFilterPlugin*>(&plugin) != nullptr;
    case Point::kBind:
      return dynamic_cast<const BindPlugin*>(&plugin) != nullptr;
  }
  return false;
}

absl::Status Registry::Register(absl::string_view name, PluginFactory factory) {
  if (name.empty() || name == "*") {
    return absl::InvalidArgumentError(
        absl::StrCat("plugin \"", name, "\": is no name of a plugin"));
  }
  if (factory == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("plugin ", name, ": the factory is missing"));
  }
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

absl::StatusOr<std::unique_ptr<Framework>> Framework::Make(const Profile& profile,
                                                           const Registry& registry) {
  return MakeAll({profile}, registry);
}

absl::StatusOr<std::unique_ptr<Framework>> Framework::MakeAll(const std::vector<Profile>& profiles,
                                                              const Registry& registry) {
  if (profiles.empty()) return absl::InvalidArgumentError("there is no profile");
  auto framework = std::make_unique<Framework>();
  for (const Profile& profile : profiles) {
    FAIRLEAD_RETURN_IF_ERROR(framework->Add(profile, registry));
  }
  return framework;
}

absl::Status Framework::Add(const Profile& profile, const Registry& registry) {
  Run run;
  run.idle_first = profile.idle_first;
  run.evicts = profile.default_preemption;
  run.points.default_binder = profile.default_binder;
  const QueueSortPlugin* sort = nullptr;
  std::string sort_args;
  int sorts = profile.priority_sort ? 1 : 0;
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
    const auto* normalized = dynamic_cast<const NormalizedScorePlugin*>(plugin->get());
    const bool binds = *plugin != nullptr && AddBindingPoints(entry, **plugin, run.points);
    const auto* pre_enqueue = dynamic_cast<const PreEnqueuePlugin*>(plugin->get());
    const auto* queue_sort = dynamic_cast<const QueueSortPlugin*>(plugin->get());
    const auto* post_filter = dynamic_cast<const PostFilterPlugin*>(plugin->get());
    if (filter == nullptr && score == nullptr && normalized == nullptr && !binds &&
        pre_enqueue == nullptr && queue_sort == nullptr && post_filter == nullptr) {
      return absl::InvalidArgumentError(at("it implements no extension point"));
    }
    // Refusals name the plugin by its Name(), and users look for that in their configuration.
    if ((*plugin)->Name() != entry.name) {
      return absl::InvalidArgumentError(at(absl::StrCat("it calls itself ", (*plugin)->Name())));
    }
    if (pre_enqueue != nullptr && entry.pre_enqueue) {
      run.pre_enqueue.push_back(pre_enqueue);
      pre_enqueue_.push_back(pre_enqueue);
    }
    if (queue_sort != nullptr && entry.queue_sort) {
      sort = queue_sort;
      sort_args = absl::StrCat(entry.name, " ", entry.args_json);
      ++sorts;
    }
    if (post_filter != nullptr && entry.post_filter) {
      (entry.post_filter_last ? run.post_filters.last : run.post_filters.first)
          .push_back(post_filter);
    }
    auto* const judging = dynamic_cast<JudgingPlugin*>(plugin->get());
    const bool judges = judging != nullptr && (entry.filter || entry.score);
    if (judges) {
      judging->JudgeAt(entry.filter, entry.score);
      run.judging.push_back(judging);
      judging_.push_back(judging);
    }
    const Depends depends = (*plugin)->DependsOn();
    const auto* domains = dynamic_cast<const DomainPlugin*>(plugin->get());
    if (filter != nullptr && (entry.filter || judges)) {
      run.filters.push_back({filter, depends, domains});
      run.knows_shares |= entry.name == kGpuSharing;
    }
    const bool scores = entry.score && entry.weight > 0;
    if (score != nullptr && scores) {
      const int64_t worth = model::SaturatingMultiply(entry.weight, score->Step());
      run.scores.push_back({score, entry.weight, worth, depends});
    }
    if (normalized != nullptr && scores) {
      run.normalized.push_back({normalized, entry.weight, depends, domains});
    }
    if (auto* calling = dynamic_cast<CallingPlugin*>(plugin->get())) calling_.push_back(calling);
    plugins_.push_back(*std::move(plugin));
  }
  FAIRLEAD_RETURN_IF_ERROR(AddQueueSort(profile, sorts, sort, std::move(sort_args)));
  if (!run.points.default_binder && run.points.bind.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("profile ", profile.scheduler_name, ": bind: at least one plugin is needed"));
  }
  runs_.push_back(std::move(run));
  return absl::OkStatus();
}

// All profiles share the queues.
absl::Status Framework::AddQueueSort(const Profile& profile, int count,
                                     const QueueSortPlugin* plugin, std::string args) {
  const auto fails = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("profile ", profile.scheduler_name, ": queueSort: ", why));
  };
  if (count != 1) {
    return fails(absl::StrCat("one plugin is needed, but ", count, " are enabled",
                              count > 1 ? "; disable PrioritySort there" : ""));
  }
  if (runs_.empty()) {
    queue_sort_ = plugin;
    queue_sort_args_ = std::move(args);
    return absl::OkStatus();
  }
  return args == queue_sort_args_ ? absl::OkStatus()
                                  : fails("all profiles need the same plugin with the same args");
}

bool Framework::AddBindingPoints(const ProfilePlugin& entry, Plugin& plugin,
                                 BindingPoints& points) {
  bool any = false;
  const auto add = [&]<typename Point>(std::vector<Point*>& to, bool enabled) {
    auto* const point = dynamic_cast<Point*>(&plugin);
    if (point == nullptr) return;
    any = true;
    if (enabled) to.push_back(point);
  };
  // What was asked elsewhere is told how the binding ends, wherever it is enabled.
  const bool asks = dynamic_cast<CallingPlugin*>(&plugin) != nullptr;
  add(points.reserve, entry.reserve || (asks && (entry.permit || entry.pre_bind)));
  add(points.permit, entry.permit);
  add(points.pre_bind, entry.pre_bind);
  add(points.bind, entry.bind);
  add(points.post_bind, entry.post_bind);
  if (dynamic_cast<PreparingPlugin*>(&plugin) != nullptr) {
    any = true;
    if (entry.reserve && entry.pre_bind) points.preparing.push_back(plugin.Name());
  }
  has_binding_points_ = has_binding_points_ || !points.empty();
  return any;
}

namespace {

// Whether the filter, which looks at the class, lets it pass.
bool Passes(const FilterPlugin& plugin, const Context& context, const state::NodeInfo& node,
            Status* why) {
  if (plugin.Filter(context, node, why)) return true;
  if (why != nullptr) {
    why->plugin = plugin.Name();
    if (why->code == Code::kSuccess) why->code = Code::kUnschedulable;
  }
  return false;
}

Status LeftOut(const FilterPlugin& plugin, std::string reason) {
  Status status;
  status.plugin = plugin.Name();
  status.code = Code::kUnschedulableAndUnresolvable;
  status.reason = std::move(reason);
  return status;
}

}  // namespace

bool Framework::RunFilter(const FilterPlugin& plugin, const Context& context,
                          const state::NodeInfo& node, Status* why) {
  return !plugin.FilterApplies(context.pod_class) || Passes(plugin, context, node, why);
}

bool Framework::RefusesShare(const Run& run, const state::PodClass& pod_class, Status* why) {
  if (run.knows_shares || !pod_class.spec->gpu_share.IsSet()) return false;
  if (why != nullptr) {
    why->plugin = kGpuSharing;
    why->code = Code::kUnschedulableAndUnresolvable;
    why->reason = kNoShares;
  }
  return true;
}

ClassFilters Framework::FiltersOf(const state::PodClass& pod_class) const {
  const Run& run = RunOf(pod_class);
  ClassFilters found;
  for (const Filterer& filter : run.filters) {
    if (filter.plugin->FilterApplies(pod_class)) found.filters.push_back(filter.plugin);
  }
  if (RefusesShare(run, pod_class, &found.refused)) return found;
  for (const FilterPlugin* filter : found.filters) {
    std::string reason = filter->LeavesOutAll(pod_class);
    if (reason.empty()) continue;
    found.refused = LeftOut(*filter, std::move(reason));
    break;
  }
  return found;
}

bool ClassFilters::Filter(const Context& context, const state::NodeInfo& node, Status* why) const {
  if (refused.code != Code::kSuccess) {
    if (why != nullptr) *why = refused;
    return false;
  }
  // Without reasons the filters say the same.
  if (why != nullptr) {
    for (const FilterPlugin* filter : filters) {
      std::string reason = filter->LeavesOut(context.pod_class, node);
      if (reason.empty()) continue;
      *why = LeftOut(*filter, std::move(reason));
      return false;
    }
  }
  return std::all_of(filters.begin(), filters.end(), [&](const FilterPlugin* filter) {
    return Passes(*filter, context, node, why);
  });
}

bool Framework::Filter(const Context& context, const state::NodeInfo& node, Status* why) const {
  if (why != nullptr) return FiltersOf(context.pod_class).Filter(context, node, why);
  const Run& run = RunOf(context.pod_class);
  if (RefusesShare(run, context.pod_class, nullptr)) return false;
  return std::all_of(run.filters.begin(), run.filters.end(), [&](const Filterer& filter) {
    return RunFilter(*filter.plugin, context, node, nullptr);
  });
}

bool Framework::FilterNodeObject(const Context& context, const state::NodeInfo& node,
                                 Status* why) const {
  const Run& run = RunOf(context.pod_class);
  if (RefusesShare(run, context.pod_class, why)) return false;
  for (const Filterer& filter : run.filters) {
    if (filter.depends != Depends::kNodeObject) continue;
    if (!RunFilter(*filter.plugin, context, node, why)) return false;
  }
  return true;
}

bool Framework::FilterNodeUsage(const Context& context, const state::NodeInfo& node,
                                Status* why) const {
  for (const Filterer& filter : RunOf(context.pod_class).filters) {
    if (filter.depends != Depends::kNodeUsage) continue;
    if (!RunFilter(*filter.plugin, context, node, why)) return false;
  }
  return true;
}

Framework::ClassPoints Framework::PointsThatApply(const state::PodClass& pod_class) const {
  const Run& run = RunOf(pod_class);
  ClassPoints points;
  points.filters = FiltersOf(pod_class).filters;
  for (const Scorer& score : run.scores) {
    if (score.plugin->ScoreApplies(pod_class)) points.scores.push_back(score.plugin);
  }
  for (const NormalizedScorer& score : run.normalized) {
    if (score.plugin->ScoreApplies(pod_class)) points.normalized.push_back(score.plugin);
  }
  return points;
}

ClassPlugins Framework::PluginsOf(const state::PodClass& pod_class) const {
  const Run& run = RunOf(pod_class);
  ClassPlugins found;
  found.refused = !run.knows_shares && pod_class.spec->gpu_share.IsSet();
  found.node_local = NodeLocal(pod_class);
  for (const Filterer& filter : run.filters) {
    if (filter.depends == Depends::kCluster || !filter.plugin->FilterApplies(pod_class)) continue;
    (filter.depends == Depends::kNodeObject ? found.object_filters : found.usage_filters)
        .push_back(filter.plugin);
  }
  for (const Scorer& score : run.scores) {
    if (!score.plugin->ScoreApplies(pod_class)) continue;
    (score.depends == Depends::kNodeObject ? found.object_scores : found.other_scores)
        .push_back({score.plugin, score.worth});
  }
  return found;
}

namespace {

bool AllPass(const std::vector<const FilterPlugin*>& filters, const Context& context,
             const state::NodeInfo& node) {
  return std::all_of(filters.begin(), filters.end(), [&](const FilterPlugin* filter) {
    return filter->Filter(context, node, nullptr);
  });
}

int64_t SumOf(const std::vector<ClassPlugins::Scorer>& scores, const Context& context,
              const state::NodeInfo& node) {
  int64_t sum = 0;
  for (const ClassPlugins::Scorer& score : scores) {
    sum = model::SaturatingAdd(
        sum, model::SaturatingMultiply(score.worth, score.plugin->Score(context, node)));
  }
  return sum;
}

}  // namespace

bool ClassPlugins::FilterNodeObject(const Context& context, const state::NodeInfo& node) const {
  return !refused && AllPass(object_filters, context, node);
}

bool ClassPlugins::FilterNodeUsage(const Context& context, const state::NodeInfo& node) const {
  return AllPass(usage_filters, context, node);
}

int64_t ClassPlugins::ObjectScore(const Context& context, const state::NodeInfo& node) const {
  return SumOf(object_scores, context, node);
}

int64_t ClassPlugins::Score(const Context& context, const state::NodeInfo& node,
                            int64_t object_score) const {
  return model::SaturatingAdd(object_score, SumOf(other_scores, context, node));
}

bool Framework::ChecksAmountOf(const state::ClusterState& state,
                               model::ResourceIndex resource) const {
  // Of every profile: sums of free amounts are made for pods of all.
  return std::all_of(runs_.begin(), runs_.end(), [&](const Run& run) {
    return std::any_of(run.filters.begin(), run.filters.end(), [&](const Filterer& filter) {
      return filter.plugin->ChecksAmountOf(state, resource);
    });
  });
}

int64_t Framework::Score(const Context& context, const state::NodeInfo& node) const {
  // Summed as ClassPlugins does: sums that saturate depend on the order.
  int64_t by_object = 0, others = 0;
  for (const Scorer& score : RunOf(context.pod_class).scores) {
    if (!score.plugin->ScoreApplies(context.pod_class)) continue;
    int64_t& sum = score.depends == Depends::kNodeObject ? by_object : others;
    const int64_t points = score.plugin->Score(context, node);
    sum = model::SaturatingAdd(sum, model::SaturatingMultiply(score.worth, points));
  }
  return model::SaturatingAdd(by_object, others);
}

std::vector<int64_t> Framework::ScoreKinds(const Context& context,
                                           absl::Span<const Kind> kinds) const {
  std::vector<int64_t> totals(kinds.size(), 0);
  std::vector<int64_t> scores;
  for (const NormalizedScorer& score : RunOf(context.pod_class).normalized) {
    if (!score.plugin->ScoreApplies(context.pod_class) || !score.plugin->ScoresVary(context)) {
      continue;
    }
    scores.assign(kinds.size(), 0);
    score.plugin->ScoreKinds(context, kinds, absl::MakeSpan(scores));
    for (size_t i = 0; i < kinds.size(); ++i) {
      const int64_t points = std::clamp<int64_t>(scores[i], 0, kMaxNodeScore) * kPreferenceStep;
      totals[i] = model::SaturatingAdd(totals[i], model::SaturatingMultiply(score.weight, points));
    }
  }
  return totals;
}

std::vector<Framework::PluginScores> Framework::ScoresByPlugin(
    const Context& context, absl::Span<const state::NodeInfo* const> nodes) const {
  const Run& run = RunOf(context.pod_class);
  std::vector<PluginScores> all;
  for (const Scorer& score : run.scores) {
    PluginScores each{score.plugin->Name(), score.weight, std::vector<int64_t>(nodes.size(), 0)};
    if (score.plugin->ScoreApplies(context.pod_class)) {
      for (size_t i = 0; i < nodes.size(); ++i) {
        each.scores[i] = score.plugin->Score(context, *nodes[i]);
      }
    }
    all.push_back(std::move(each));
  }
  std::vector<Kind> kinds;
  for (const state::NodeInfo* node : nodes) kinds.push_back({node, 1});
  for (const NormalizedScorer& score : run.normalized) {
    PluginScores each{score.plugin->Name(), score.weight, std::vector<int64_t>(nodes.size(), 0)};
    if (score.plugin->ScoreApplies(context.pod_class)) {
      score.plugin->ScoreKinds(context, kinds, absl::MakeSpan(each.scores));
    }
    all.push_back(std::move(each));
  }
  return all;
}

bool Framework::Normalizes(const state::PodClass& pod_class) const {
  const Run& run = RunOf(pod_class);
  return std::any_of(run.normalized.begin(), run.normalized.end(),
                     [&](const auto& score) { return score.plugin->ScoreApplies(pod_class); });
}

bool Framework::ScoresVary(const Context& context) const {
  const Run& run = RunOf(context.pod_class);
  return std::any_of(run.normalized.begin(), run.normalized.end(), [&](const auto& score) {
    return score.plugin->ScoreApplies(context.pod_class) && score.plugin->ScoresVary(context);
  });
}

bool Framework::MarksDependOnUsage(const state::PodClass& pod_class) const {
  const Run& run = RunOf(pod_class);
  return std::any_of(run.normalized.begin(), run.normalized.end(), [&](const auto& score) {
    return score.plugin->MarksDependOn() != Depends::kNodeObject &&
           score.plugin->ScoreApplies(pod_class);
  });
}

void Framework::AddMarks(const Context& context, const state::NodeInfo& node,
                         const TopologyKeys& by_node, Marks& marks) const {
  for (const NormalizedScorer& score : RunOf(context.pod_class).normalized) {
    if (!score.plugin->ScoreApplies(context.pod_class)) continue;
    score.plugin->AddMarks(context, node, by_node, marks);
  }
}

bool Framework::MayPreferWaiting(const Context& context) const {
  const Run& run = RunOf(context.pod_class);
  if (run.idle_first) return false;
  return ScoresVary(context) ||
         std::any_of(run.scores.begin(), run.scores.end(), [&](const Scorer& score) {
           return score.worth > kFitsNowStep && score.plugin->ScoreApplies(context.pod_class);
         });
}

std::vector<std::string> Framework::PodLabels() const {
  std::set<std::string> keys;
  for (const auto& plugin : plugins_) {
    const std::vector<std::string> named = plugin->PodLabels();
    keys.insert(named.begin(), named.end());
  }
  return {keys.begin(), keys.end()};
}

std::string Framework::RefusesEverywhere(const state::PodClass& pod_class) const {
  const Run& run = RunOf(pod_class);
  if (!run.knows_shares && pod_class.spec->gpu_share.IsSet()) return kNoShares;
  for (const Filterer& filter : run.filters) {
    if (!filter.plugin->FilterApplies(pod_class)) continue;
    std::string why = filter.plugin->RefusesEverywhere(pod_class);
    if (!why.empty()) return why;
  }
  return "";
}

Framework::Awaited Framework::Awaits(const state::PodClass& pod_class) const {
  for (const Filterer& filter : RunOf(pod_class).filters) {
    if (!filter.plugin->FilterApplies(pod_class)) continue;
    std::string what = filter.plugin->Awaits(pod_class);
    if (!what.empty()) return {filter.plugin->Name(), std::move(what)};
  }
  return {};
}

bool Framework::FiltersNodeLocal(const state::PodClass& pod_class) const {
  const Run& run = RunOf(pod_class);
  return std::none_of(run.filters.begin(), run.filters.end(), [&](const Filterer& filter) {
    return filter.depends == Depends::kCluster && filter.plugin->FilterApplies(pod_class);
  });
}

bool Framework::NodeLocal(const state::PodClass& pod_class) const {
  const Run& run = RunOf(pod_class);
  const auto applies = [&](const auto& score) {
    return score.depends == Depends::kCluster && score.plugin->ScoreApplies(pod_class);
  };
  return FiltersNodeLocal(pod_class) &&
         std::none_of(run.scores.begin(), run.scores.end(), applies) &&
         std::none_of(run.normalized.begin(), run.normalized.end(), applies);
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
  const Run& run = RunOf(pod_class);
  const auto by_domain = [](const auto& entry) {
    return entry.depends != Depends::kCluster || entry.domains != nullptr;
  };
  return std::all_of(run.filters.begin(), run.filters.end(),
                     [&](const Filterer& filter) {
                       return by_domain(filter) || !filter.plugin->FilterApplies(pod_class);
                     }) &&
         std::all_of(run.normalized.begin(), run.normalized.end(),
                     [&](const NormalizedScorer& score) {
                       return by_domain(score) || !score.plugin->ScoreApplies(pod_class);
                     }) &&
         std::none_of(run.scores.begin(), run.scores.end(), [&](const Scorer& score) {
           return score.depends == Depends::kCluster && score.plugin->ScoreApplies(pod_class);
         });
}

DomainDependence Framework::DependenceOf(const Context& context) const {
  DomainDependence all, one;
  const auto add = [](const TopologyKeys& from, TopologyKeys& to) {
    for (const TopologyKey* key : from) {
      if (std::find(to.begin(), to.end(), key) == to.end()) to.push_back(key);
    }
  };
  const Run& run = RunOf(context.pod_class);
  for (const Filterer& filter : run.filters) {
    if (filter.domains == nullptr || !filter.plugin->FilterApplies(context.pod_class)) continue;
    one = {};
    filter.domains->AddDependence(context, one);
    add(one.filter, all.filter);
  }
  for (const NormalizedScorer& score : run.normalized) {
    if (score.domains == nullptr || !score.plugin->ScoreApplies(context.pod_class)) continue;
    one = {};
    score.domains->AddDependence(context, one);
    add(one.score, all.score);
  }
  return all;
}

bool Framework::AdmitsDomains(const Context& context, const state::NodeInfo& node,
                              const TopologyKeys& keys) const {
  const Run& run = RunOf(context.pod_class);
  return std::all_of(run.filters.begin(), run.filters.end(), [&](const Filterer& filter) {
    return filter.domains == nullptr || !filter.plugin->FilterApplies(context.pod_class) ||
           filter.domains->AdmitsDomains(context, node, keys);
  });
}

void Framework::AddThresholds(const Context& context, const TopologyKeys& keys,
                              std::vector<int64_t>& thresholds) const {
  for (const Filterer& filter : RunOf(context.pod_class).filters) {
    if (filter.domains == nullptr || !filter.plugin->FilterApplies(context.pod_class)) continue;
    filter.domains->AddThresholds(context, keys, thresholds);
  }
}

}  // namespace fairlead::framework
