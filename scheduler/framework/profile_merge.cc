#include "scheduler/framework/profile_merge.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace fairlead::framework {
namespace {

absl::string_view NameOf(Point point) { return kPointNames[static_cast<size_t>(point)]; }

bool HasPlugin(const std::vector<PluginRef>& refs, absl::string_view name) {
  return std::any_of(refs.begin(), refs.end(),
                     [name](const PluginRef& ref) { return ref.name == name; });
}

PluginRef ByName(const PluginRef& ref) { return {ref.name, ref.weight == 0 ? 1 : ref.weight}; }

// What runs everywhere unless a point says otherwise: the base, and what is enabled besides.
std::vector<PluginRef> MultiPoint(const std::vector<ProfilePlugin>& base, const PluginSet& set) {
  std::vector<PluginRef> out;
  const auto add_default = [&](const std::string& name, int64_t weight) {
    if (set.Disables(name)) return;
    const PluginRef* ref = set.Enabled(name);
    out.push_back(ref == nullptr ? PluginRef{name, weight} : ByName(*ref));
  };
  for (const char* name : {"SchedulingGates", "PrioritySort"}) add_default(name, 1);
  for (const ProfilePlugin& plugin : base) add_default(plugin.name, plugin.weight);
  for (const char* name : {"DefaultPreemption", "DefaultBinder"}) add_default(name, 1);
  for (const PluginRef& ref : set.enabled) {
    if (!HasPlugin(out, ref.name)) out.push_back(ByName(ref));
  }
  return out;
}

// The plugins of one point in the order in which they run there.
absl::StatusOr<std::vector<PluginRef>> AtPoint(const std::vector<PluginRef>& multi, Point point,
                                               const PluginSet& set) {
  for (const PluginRef& ref : set.enabled) {
    if (Extends(ref.name, point)) continue;
    return absl::InvalidArgumentError(absl::StrCat(NameOf(point), ".enabled: plugin \"", ref.name,
                                                   "\" does not extend ", NameOf(point)));
  }
  std::vector<PluginRef> out;
  for (const PluginRef& ref : set.enabled) {
    if (HasPlugin(multi, ref.name)) out.push_back(ByName(ref));
  }
  for (const PluginRef& ref : multi) {
    if (!Extends(ref.name, point) || set.Disables(ref.name)) continue;
    if (set.Enabled(ref.name) == nullptr) out.push_back(ref);
  }
  for (const PluginRef& ref : set.enabled) {
    if (!HasPlugin(multi, ref.name)) out.push_back(ByName(ref));
  }
  return out;
}

using ByPoint = std::array<std::vector<PluginRef>, kPoints>;

const std::vector<PluginRef>& At(const ByPoint& by_point, Point point) {
  return by_point[static_cast<size_t>(point)];
}

// Plugins of the base do not sort queues and bind nothing, whether they are listed there or not.
bool HasAnyOther(const std::vector<PluginRef>& refs, const std::vector<ProfilePlugin>& base) {
  return std::any_of(refs.begin(), refs.end(), [&](const PluginRef& ref) {
    return std::none_of(base.begin(), base.end(),
                        [&](const ProfilePlugin& plugin) { return plugin.name == ref.name; });
  });
}

absl::Status CheckBuiltIns(const ByPoint& by_point, const std::vector<ProfilePlugin>& base) {
  if (!HasAnyOther(At(by_point, Point::kQueueSort), base)) {
    return absl::InvalidArgumentError("queueSort: one plugin is needed: PrioritySort");
  }
  if (!HasAnyOther(At(by_point, Point::kBind), base)) {
    return absl::InvalidArgumentError("bind: at least one plugin is needed: DefaultBinder");
  }
  if (!HasPlugin(At(by_point, Point::kPreEnqueue), "SchedulingGates")) {
    return absl::InvalidArgumentError(
        "preEnqueue: SchedulingGates cannot be left out: the API server binds no pod with gates");
  }
  return absl::OkStatus();
}

// A filter that comes without what it prepares, or without what has to follow its answer.
absl::Status CheckStages(const ByPoint& by_point) {
  for (const PluginRef& ref : At(by_point, Point::kFilter)) {
    const KnownPlugin* const known = FindKnownPlugin(ref.name);
    if (known == nullptr) continue;
    for (const Point point : {Point::kPreFilter, Point::kReserve, Point::kPreBind}) {
      if (!known->points.Has(point) || HasPlugin(At(by_point, point), ref.name)) continue;
      return absl::UnimplementedError(absl::StrCat(NameOf(point), ": ", ref.name,
                                                   " filters, and needs its ", NameOf(point),
                                                   "; disable it at multiPoint"));
    }
  }
  return absl::OkStatus();
}

ProfilePlugin NowhereYet(const PluginRef& ref, const std::string& args_json) {
  ProfilePlugin entry{ref.name, ref.weight, args_json};
  entry.pre_enqueue = entry.filter = entry.score = entry.reserve = entry.permit = entry.pre_bind =
      entry.post_bind = entry.bind = entry.post_filter = entry.queue_sort = false;
  return entry;
}

// Besides Filter and Score.
constexpr std::pair<Point, bool ProfilePlugin::*> kOtherPoints[] = {
    {Point::kPreEnqueue, &ProfilePlugin::pre_enqueue},
    {Point::kReserve, &ProfilePlugin::reserve},
    {Point::kPermit, &ProfilePlugin::permit},
    {Point::kPreBind, &ProfilePlugin::pre_bind},
    {Point::kPostBind, &ProfilePlugin::post_bind},
    {Point::kQueueSort, &ProfilePlugin::queue_sort}};

absl::Status CheckSupport(absl::string_view path, const std::vector<PluginRef>& refs) {
  for (const PluginRef& ref : refs) {
    const KnownPlugin* const known = FindKnownPlugin(ref.name);
    if (known == nullptr || known->support != Support::kLacking) continue;
    return absl::UnimplementedError(
        absl::StrCat(path, ".enabled: Fairlead has no plugin ", ref.name));
  }
  return absl::OkStatus();
}

}  // namespace

bool PluginSet::Disables(absl::string_view name) const {
  return std::any_of(disabled.begin(), disabled.end(),
                     [name](const std::string& each) { return each == "*" || each == name; });
}

const PluginRef* PluginSet::Enabled(absl::string_view name) const {
  const auto found = std::find_if(enabled.begin(), enabled.end(),
                                  [name](const PluginRef& ref) { return ref.name == name; });
  return found == enabled.end() ? nullptr : &*found;
}

absl::StatusOr<Profile> MergeProfile(ProfileBase base, const PluginSets& sets) {
  Profile profile = DefaultProfile(base);
  const std::vector<ProfilePlugin> defaults = std::exchange(profile.plugins, {});
  const std::vector<PluginRef> multi = MultiPoint(defaults, sets.multi_point);
  FAIRLEAD_RETURN_IF_ERROR(CheckSupport("multiPoint", multi));
  ByPoint by_point;
  for (size_t i = 0; i < kPoints; ++i) {
    const auto point = static_cast<Point>(i);
    FAIRLEAD_ASSIGN_OR_RETURN(by_point[i], AtPoint(multi, point, sets.At(point)));
    FAIRLEAD_RETURN_IF_ERROR(CheckSupport(NameOf(point), by_point[i]));
  }
  FAIRLEAD_RETURN_IF_ERROR(CheckBuiltIns(by_point, defaults));
  FAIRLEAD_RETURN_IF_ERROR(CheckStages(by_point));
  profile.priority_sort = HasPlugin(At(by_point, Point::kQueueSort), "PrioritySort");
  profile.default_preemption = HasPlugin(At(by_point, Point::kPostFilter), "DefaultPreemption");
  profile.default_binder = HasPlugin(At(by_point, Point::kBind), "DefaultBinder");

  const auto default_of = [&](const std::string& name) {
    return std::find_if(defaults.begin(), defaults.end(),
                        [&name](const ProfilePlugin& plugin) { return plugin.name == name; });
  };
  for (const PluginRef& ref : At(by_point, Point::kFilter)) {
    const auto found = default_of(ref.name);
    profile.plugins.push_back(NowhereYet(ref, found == defaults.end() ? "" : found->args_json));
    profile.plugins.back().filter = true;
  }
  // The order of scores does not matter: they are added up.
  const auto entry_of = [&](const PluginRef& ref) {
    const auto it =
        std::find_if(profile.plugins.begin(), profile.plugins.end(),
                     [&](const ProfilePlugin& plugin) { return plugin.name == ref.name; });
    if (it != profile.plugins.end()) return it;
    const auto found = default_of(ref.name);
    return profile.plugins.insert(it,
                                  NowhereYet(ref, found == defaults.end() ? "" : found->args_json));
  };
  for (const PluginRef& ref : At(by_point, Point::kScore)) {
    // A default that only filters scores if it is enabled by name.
    const auto found = default_of(ref.name);
    const bool named = sets.At(Point::kScore).Enabled(ref.name) != nullptr ||
                       sets.multi_point.Enabled(ref.name) != nullptr;
    if (found != defaults.end() && !found->score && !named) continue;
    const auto it = entry_of(ref);
    it->weight = ref.weight;
    it->score = true;
  }
  for (const auto& [point, runs] : kOtherPoints) {
    for (const PluginRef& ref : At(by_point, point)) {
      // The core does what kube-scheduler's own plugins do there; at Reserve and PreBind under
      // their names (PreparingPlugin).
      const KnownPlugin* const known = FindKnownPlugin(ref.name);
      const bool prepares = (point == Point::kReserve || point == Point::kPreBind) &&
                            known != nullptr && known->support == Support::kPlugin;
      if (known == nullptr || prepares) (*entry_of(ref)).*runs = true;
    }
  }
  for (const PluginRef& ref : At(by_point, Point::kBind)) {
    if (ref.name == "DefaultBinder") break;
    entry_of(ref)->bind = true;
  }
  bool last = false;
  for (const PluginRef& ref : At(by_point, Point::kPostFilter)) {
    last = last || ref.name == "DefaultPreemption";
    if (FindKnownPlugin(ref.name) != nullptr) continue;
    entry_of(ref)->post_filter = true;
    entry_of(ref)->post_filter_last = last;
  }
  return profile;
}

}  // namespace fairlead::framework
