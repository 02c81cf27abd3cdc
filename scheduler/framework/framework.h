// The kube-scheduler framework's extension points in C++: what a plugin is, what it answers, and
// the profile that runs them. Names are upstream's (k8s.io/kube-scheduler/framework): Filter,
// Score, Status codes, profile, weight.
//
// Several profiles, each with plugins of its own, are one Framework: each question names a class of
// pods, and the class has a profile.
//
// Plugins are pure: they read the state and answer. They are asked many times a decision, so the
// hot path (does it fit?) makes no text; the reasons are asked for only when a verdict is written.
//
// Most plugins look at the node alone. One that looks at other nodes through their topology domains
// (DomainPlugin) counts through DomainCounters once it is attached, and says by which keys: then a
// class of pods can be ordered by domains instead of asking about every node for each placement.
//
// Ownership: a Framework owns its plugins, and borrows the counters. Thread-safety: the state's;
// plugins may keep what they have counted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "scheduler/framework/domain_counters.h"
#include "scheduler/framework/known_plugins.h"
#include "scheduler/framework/score_tiers.h"
#include "scheduler/framework/topology_key.h"
#include "scheduler/state/change_log.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::framework {

// Upstream's codes, as far as a filter can answer them.
enum class Code : uint8_t {
  kSuccess,
  kUnschedulable,                 // evicting pods from this node could help
  kUnschedulableAndUnresolvable,  // nothing that runs there is in the way: the node itself is wrong
  kError,
};

// What a refusal is made of. Filled only when asked for.
struct Status {
  Code code = Code::kSuccess;
  absl::string_view plugin;  // static storage
  std::string reason;        // "Insufficient nvidia.com/gpu": the same for all nodes refused alike
  // What upstream's reason does not say and a user has to know; told after it: "{gpu: a100}".
  std::string detail;
  struct Missing {
    model::ResourceIndex resource = 0;
    int64_t amount = 0;  // base units
  };
  std::vector<Missing> missing;
};

// What an answer depends on; decides how long it may be remembered.
enum class Depends : uint8_t {
  kNodeObject,  // the pod's class and the node object (labels, taints, conditions)
  kNodeUsage,   // also what is on this node
  kCluster,     // also what is on other nodes, or other objects
};

struct Context {
  const state::ClusterState& state;
  const state::PodClass& pod_class;
  state::PodClassId pod_class_id;
  Capacity capacity = Capacity::kNow;
};

// One object may implement several extension points (the interfaces below, and those of
// binding_points.h).
class Plugin {
 public:
  virtual ~Plugin() = default;
  [[nodiscard]] virtual absl::string_view Name() const = 0;
  // Of its filter and its score; of no interest for a plugin that has neither.
  [[nodiscard]] virtual Depends DependsOn() const { return Depends::kCluster; }
  // The keys of the labels of a pod that it reads, in PodSpec::labels_for_plugins. Pods that differ
  // in one of them are decided on one by one: a label that every pod has another value of costs
  // every decision.
  [[nodiscard]] virtual std::vector<std::string> PodLabels() const { return {}; }
};

class FilterPlugin : public virtual Plugin {
 public:
  // False for classes that it never refuses: they skip it (upstream's PreFilter Skip).
  [[nodiscard]] virtual bool FilterApplies(const state::PodClass&) const { return true; }
  // Why no node whatsoever would do for pods of the class, whatever its object and load: the field
  // of the pod and its fault. Empty: it depends on the node. (Upstream's PreFilter with
  // UnschedulableAndUnresolvable.)
  [[nodiscard]] virtual std::string RefusesEverywhere(const state::PodClass&) const { return ""; }
  // Why all nodes are left out before any filter has looked at one, or empty: upstream's PreFilter
  // that refuses. Filter() refuses them too.
  [[nodiscard]] virtual std::string LeavesOutAll(const state::PodClass&) const { return ""; }
  // The same for one node, if none leaves out all: upstream's PreFilter that names those that are
  // left.
  [[nodiscard]] virtual std::string LeavesOut(const state::PodClass&,
                                              const state::NodeInfo&) const {
    return "";
  }
  // What it waits for before it can judge all nodes for the class ("waits for .."): it refuses
  // those that are left until then. Empty: nothing. Pods that fit nowhere meanwhile evict none, and
  // no node is provisioned for them.
  [[nodiscard]] virtual std::string Awaits(const state::PodClass&) const { return ""; }
  // May a pod of the class go to the node? `why` may be null; if it is not and the answer is no, it
  // is filled.
  virtual bool Filter(const Context& context, const state::NodeInfo& node, Status* why) const = 0;
  // True if Filter() refuses every node on which less of the resource is free than the class
  // requests of it (PodClass::requests), so that sums of free amounts bound what fits.
  [[nodiscard]] virtual bool ChecksAmountOf(const state::ClusterState&,
                                            model::ResourceIndex) const {
    return false;
  }
};

class ScorePlugin : public virtual Plugin {
 public:
  // False for classes for which every node scores alike.
  [[nodiscard]] virtual bool ScoreApplies(const state::PodClass&) const { return true; }
  // Higher is better. Upstream's plugins score 0..100; others say their range in their header.
  [[nodiscard]] virtual int64_t Score(const Context& context,
                                      const state::NodeInfo& node) const = 0;
  // What one point of it counts in the sum (score_tiers.h).
  [[nodiscard]] virtual int64_t Step() const { return kPreferenceStep; }
};

// The topology keys that answers for a class read, each once. Owned by the counters.
using TopologyKeys = std::vector<const TopologyKey*>;
struct DomainDependence {
  TopologyKeys filter, score;
  friend bool operator==(const DomainDependence&, const DomainDependence&) = default;
};

// Nodes that score alike, of those that there are to choose from.
struct Kind {
  const state::NodeInfo* node;  // one of them
  int64_t nodes;                // 0: it is not to be chosen from, and only to be scored
};
using Marks = std::vector<int64_t>;

// A plugin whose score of a node depends on which nodes there are to choose from: upstream's
// PreScore, Score and NormalizeScore, asked together. Nodes are scored by kinds, of which there are
// few, so that nothing has to be ordered anew when what scores are normalised by changes.
class NormalizedScorePlugin : public virtual Plugin {
 public:
  // False for classes for which it scores every node alike, whatever the others are.
  [[nodiscard]] virtual bool ScoreApplies(const state::PodClass&) const { return true; }
  // The same for the cluster as it is: false only if it scores every node alike now.
  [[nodiscard]] virtual bool ScoresVary(const Context&) const { return true; }
  // Appends always as many numbers. Two nodes score alike if these are equal and they are in the
  // same domains of the plugin's score keys (DomainDependence) other than `by_node`. Each domain of
  // a key of `by_node` has one node.
  virtual void AddMarks(const Context& context, const state::NodeInfo& node,
                        const TopologyKeys& by_node, Marks& marks) const = 0;
  // kNodeObject, or kNodeUsage: what the numbers depend on.
  [[nodiscard]] virtual Depends MarksDependOn() const { return Depends::kNodeObject; }
  // The scores of all kinds in their order, 0..100. `scores` comes with zeros.
  virtual void ScoreKinds(const Context& context, absl::Span<const Kind> kinds,
                          absl::Span<int64_t> scores) const = 0;
};

// A plugin of Depends::kCluster whose answers about a node depend on other nodes only through the
// topology domains that the node is in: of two nodes in the same domains of all its keys it refuses
// both or neither.
class DomainPlugin : public virtual Plugin {
 public:
  // From now on it is asked about that state and counts through `counters`; null: no more. Without,
  // it counts again whenever the state has changed.
  virtual void Attach(DomainCounters* counters) = 0;
  // Appends the keys that its filter and its score read for the class.
  virtual void AddDependence(const Context& context, DomainDependence& dependence) const = 0;
  // The filter, as far as it reads these keys.
  [[nodiscard]] virtual bool AdmitsDomains(const Context& context, const state::NodeInfo& node,
                                           const TopologyKeys& keys) const = 0;
  // Appends numbers. While they stay the same, what AdmitsDomains() says of a node with these keys,
  // for this capacity or kFuture, changes only if a node in one of its domains of these keys has
  // changed (NodeInfo::version).
  virtual void AddThresholds(const Context& context, const TopologyKeys& keys,
                             std::vector<int64_t>& thresholds) const = 0;
};

// A plugin that derives something from more than one node, and follows the state's change log for
// it.
class FollowingPlugin : public virtual Plugin {
 public:
  // From now on it is asked about that state, and what it returns is subscribed to it; null: no
  // more. Null is returned if its arguments leave nothing to follow. Of a state that it does not
  // follow it counts again whenever that has changed.
  virtual state::StateSubscriber* Follow(const state::ClusterState* state) = 0;
  // The first difference between what it has derived and a recount, or empty.
  virtual std::string CheckConsistency() = 0;
};

// Arguments of a plugin: the JSON text of its `args` in KubeSchedulerConfiguration, "" if none.
using PluginFactory =
    std::function<absl::StatusOr<std::unique_ptr<Plugin>>(absl::string_view args_json)>;

// A plugin that a program brings. The name is what configurations call it, and what its Name()
// returns.
struct NamedPlugin {
  std::string name;
  PluginFactory make;
};

class Registry {
 public:
  // AlreadyExists for a name registered twice. InvalidArgument for a name that no configuration can
  // mean ("" or "*"), and for no factory.
  absl::Status Register(absl::string_view name, PluginFactory factory);
  absl::StatusOr<std::unique_ptr<Plugin>> Make(absl::string_view name,
                                               absl::string_view args_json) const;
  [[nodiscard]] std::vector<std::string> Names() const;  // sorted

 private:
  std::map<std::string, PluginFactory, std::less<>> factories_;
};
using RegistryPtr = std::shared_ptr<const Registry>;

struct ProfilePlugin {
  std::string name;
  int64_t weight = 1;          // of its score, 0..kMaxWeight
  std::string args_json = {};  // JSON, "" if none
  // At which of its extension points it runs; a point that it does not implement is skipped.
  bool filter = true;
  bool score = true;
  bool pre_enqueue = true;
  bool reserve = true;
  bool permit = true;
  bool pre_bind = true;
  bool post_bind = true;
  // Those that are listed behind what does it by default never have their turn at Bind, and at
  // PostFilter after DefaultPreemption.
  bool bind = true;
  bool post_filter = true;
  bool post_filter_last = false;
  bool queue_sort = true;
};
inline constexpr int64_t kMaxWeight = 100'000;

// One profile: which plugins run for the pods of which scheduler name, in order.
struct Profile {
  std::string scheduler_name;
  std::vector<ProfilePlugin> plugins = {};
  // Nodes with idle capacity come before those where the pod would have to wait, whatever the
  // scores, as in upstream, which never waits; and scores are normalised over them alone. Otherwise
  // as in KAI: all nodes on which it fits when promises are kept are scored together, and the tier
  // "fits now" decides below preferences (score_tiers.h).
  bool idle_first = false;
  // What the priorities of its pods mean.
  state::PriorityRules priority_rules = state::PriorityRules::kKai;
  // What is no plugin here, at the points of upstream's. Without DefaultPreemption pods are evicted
  // for pods of the profile where its PostFilter plugins say so alone.
  bool priority_sort = true, default_preemption = true, default_binder = true;
};

// What Fairlead runs if the configuration says nothing (default_profiles.h). scheduler/plugins
// registers these names.
Profile DefaultProfile();

// Whether it runs at the point if a profile enables it there. What upstream prepares in PreFilter
// and PreScore is part of Filter and Score here.
bool Implements(const Plugin& plugin, Point point);

// Which plugins of its profile look at a class, found out once: for who asks about many nodes.
// Valid as long as the class and the framework.
struct ClassPlugins {
  bool refused = false;     // no plugin of the profile knows the class's share of a GPU
  bool node_local = false;  // Framework::NodeLocal()
  std::vector<const FilterPlugin*> object_filters;  // of Depends::kNodeObject, in order
  std::vector<const FilterPlugin*> usage_filters;   // of Depends::kNodeUsage, in order
  struct Scorer {
    const ScorePlugin* plugin;
    int64_t worth;  // of one point
  };
  std::vector<Scorer> object_scores;  // of Depends::kNodeObject
  std::vector<Scorer> other_scores;
  // As Framework::FilterNodeObject(), FilterNodeUsage() without reasons, and Score() say.
  [[nodiscard]] bool FilterNodeObject(const Context& context, const state::NodeInfo& node) const;
  [[nodiscard]] bool FilterNodeUsage(const Context& context, const state::NodeInfo& node) const;
  [[nodiscard]] int64_t Score(const Context& context, const state::NodeInfo& node) const {
    return Score(context, node, ObjectScore(context, node));
  }
  // Its part that holds as long as the node's object; and the whole, with that part.
  [[nodiscard]] int64_t ObjectScore(const Context& context, const state::NodeInfo& node) const;
  [[nodiscard]] int64_t Score(const Context& context, const state::NodeInfo& node,
                              int64_t object_score) const;
};

// The filters that look at a class, found out once: for who asks many nodes for their reasons.
// Valid as long as the class and the framework.
struct ClassFilters {
  Status refused;                            // by every node, whatever it is; kSuccess: by none
  std::vector<const FilterPlugin*> filters;  // in order
  // As Framework::Filter() says.
  [[nodiscard]] bool Filter(const Context& context, const state::NodeInfo& node, Status* why) const;
};

class JudgingPlugin;
class PreEnqueuePlugin;
class ReservePlugin;
class PermitPlugin;
class PreBindPlugin;
class PostBindPlugin;
class BindPlugin;
class QueueSortPlugin;
class PostFilterPlugin;
class CallingPlugin;

// What runs for the pods of one profile once they have a node, in order (binding_points.h). The
// framework owns the plugins.
struct BindingPoints {
  std::vector<ReservePlugin*> reserve;
  std::vector<PermitPlugin*> permit;
  std::vector<PreBindPlugin*> pre_bind;
  std::vector<BindPlugin*> bind;
  bool default_binder = true;  // behind them
  std::vector<PostBindPlugin*> post_bind;
  std::vector<absl::string_view> preparing;  // names of PreparingPlugins; the core runs them
  // No plugin is to be asked by its interfaces.
  [[nodiscard]] bool empty() const {
    return reserve.empty() && permit.empty() && pre_bind.empty() && bind.empty() &&
           post_bind.empty();
  }
};

class Framework {
 public:
  // NotFound for an unknown plugin, with the known names; InvalidArgument for a plugin named twice,
  // a weight out of range, or a plugin with nothing to run or with another Name(); the factory's
  // error otherwise.
  static absl::StatusOr<std::unique_ptr<Framework>> Make(const Profile& profile,
                                                         const Registry& registry);

  // One for several profiles: what it is asked about a class is answered by the plugins of that
  // class's profile (model::PodSpec::profile), by position. At least one.
  static absl::StatusOr<std::unique_ptr<Framework>> MakeAll(const std::vector<Profile>& profiles,
                                                            const Registry& registry);

  // Filters in order; the first refusal decides and is reported. A refusal always names its plugin
  // and has a code other than kSuccess; `why` is left alone if the answer is yes.
  bool Filter(const Context& context, const state::NodeInfo& node, Status* why) const;
  // Only the filters that depend on nothing but the node object: may the class ever use this node?
  bool FilterNodeObject(const Context& context, const state::NodeInfo& node, Status* why) const;
  // Only the filters that depend on what is on this node, too.
  bool FilterNodeUsage(const Context& context, const state::NodeInfo& node, Status* why) const;

  // Each filter and each score that applies to the class, in order: for measurements. O(filters +
  // scores).
  struct ClassPoints {
    std::vector<const FilterPlugin*> filters;
    std::vector<const ScorePlugin*> scores;
    std::vector<const NormalizedScorePlugin*> normalized;
  };
  [[nodiscard]] ClassPoints PointsThatApply(const state::PodClass& pod_class) const;
  // Those that look at the class. O(filters + scores).
  [[nodiscard]] ClassPlugins PluginsOf(const state::PodClass& pod_class) const;
  [[nodiscard]] ClassFilters FiltersOf(const state::PodClass& pod_class) const;

  // The sum of the scores that do not depend on which nodes there are to choose from.
  [[nodiscard]] int64_t Score(const Context& context, const state::NodeInfo& node) const;
  // The sums of the others, for each kind in order. Zeros if they do not vary. O(kinds) for each
  // plugin.
  [[nodiscard]] std::vector<int64_t> ScoreKinds(const Context& context,
                                                absl::Span<const Kind> kinds) const;
  // What each plugin scores the nodes, in their order: for tests, and for people who ask why. A
  // plugin that does not apply to the class has zeros.
  struct PluginScores {
    absl::string_view plugin;
    int64_t weight = 1;
    std::vector<int64_t> scores;
  };
  [[nodiscard]] std::vector<PluginScores> ScoresByPlugin(
      const Context& context, absl::Span<const state::NodeInfo* const> nodes) const;
  // NormalizedScorePlugin has what they say. O(scores).
  [[nodiscard]] bool Normalizes(const state::PodClass& pod_class) const;
  [[nodiscard]] bool ScoresVary(const Context& context) const;
  [[nodiscard]] bool MarksDependOnUsage(const state::PodClass& pod_class) const;
  void AddMarks(const Context& context, const state::NodeInfo& node, const TopologyKeys& by_node,
                Marks& marks) const;
  // True if a node where the class would have to wait can beat one where it could start. O(scores).
  [[nodiscard]] bool MayPreferWaiting(const Context& context) const;
  [[nodiscard]] bool IdleFirst(const state::PodClass& pod_class) const {
    return RunOf(pod_class).idle_first;
  }
  // DefaultPreemption: whether pods may be evicted for pods of the class by the engine's rules.
  [[nodiscard]] bool Evicts(const state::PodClass& pod_class) const {
    return RunOf(pod_class).evicts;
  }
  // Those that propose victims before it, and after it.
  struct PostFilters {
    std::vector<const PostFilterPlugin*> first, last;
    [[nodiscard]] bool empty() const { return first.empty() && last.empty(); }
  };
  [[nodiscard]] const PostFilters& PostFiltersOf(const state::PodClass& pod_class) const {
    return RunOf(pod_class).post_filters;
  }
  // True if some profile has any.
  [[nodiscard]] bool HasPostFilters() const {
    return std::any_of(runs_.begin(), runs_.end(),
                       [](const Run& run) { return !run.post_filters.empty(); });
  }
  // The one of all profiles; null: PrioritySort.
  [[nodiscard]] const QueueSortPlugin* queue_sort() const { return queue_sort_; }

  // True if some filter checks the amount (FilterPlugin::ChecksAmountOf). O(filters).
  [[nodiscard]] bool ChecksAmountOf(const state::ClusterState& state,
                                    model::ResourceIndex resource) const;
  // What the first filter says that refuses the class on every node; empty if none does.
  // O(filters).
  [[nodiscard]] std::string RefusesEverywhere(const state::PodClass& pod_class) const;
  // The first filter that waits for something, and for what (FilterPlugin::Awaits); or nothing.
  // O(filters).
  struct Awaited {
    absl::string_view plugin;
    std::string what;
  };
  [[nodiscard]] Awaited Awaits(const state::PodClass& pod_class) const;
  // Those that judge nodes for the class; and those of all profiles.
  [[nodiscard]] const std::vector<JudgingPlugin*>& Judging(const state::PodClass& pod_class) const {
    return RunOf(pod_class).judging;
  }
  [[nodiscard]] const std::vector<JudgingPlugin*>& judging() const { return judging_; }

  [[nodiscard]] const BindingPoints& PointsOf(const state::PodClass& pod_class) const {
    return RunOf(pod_class).points;
  }
  // Whether the profile enables that PreparingPlugin. O(those).
  [[nodiscard]] bool Prepares(const state::PodClass& pod_class, absl::string_view plugin) const {
    const std::vector<absl::string_view>& names = PointsOf(pod_class).preparing;
    return std::find(names.begin(), names.end(), plugin) != names.end();
  }
  // Those that hold back pods of the class, in order; those of all profiles (enqueue_points.h).
  [[nodiscard]] const std::vector<const PreEnqueuePlugin*>& PreEnqueueOf(
      const state::PodClass& pod_class) const {
    return RunOf(pod_class).pre_enqueue;
  }
  [[nodiscard]] const std::vector<const PreEnqueuePlugin*>& pre_enqueue() const {
    return pre_enqueue_;
  }
  // The plugins that ask other programs, of all profiles. Not const: they are brought answers.
  [[nodiscard]] const std::vector<CallingPlugin*>& calling() const { return calling_; }
  // True if some profile has plugins at these points.
  [[nodiscard]] bool HasBindingPoints() const { return has_binding_points_; }

  // What all plugins name in PodLabels(), sorted, each once. O(plugins).
  [[nodiscard]] std::vector<std::string> PodLabels() const;

  // True if every filter that applies to the class depends on the node alone. O(filters).
  [[nodiscard]] bool FiltersNodeLocal(const state::PodClass& pod_class) const;
  // True if every filter and score that applies to the class depends on the node alone, or on which
  // nodes there are to choose from, so that its answers may be kept in a per-class order of nodes.
  [[nodiscard]] bool NodeLocal(const state::PodClass& pod_class) const;

  // Counts for the plugins that look at other nodes, of the state that the framework is asked about
  // from now on; null: they count by themselves again. Not owned. The caller subscribes the
  // counters, and then Subscribers(), to that state.
  void Attach(DomainCounters* counters);
  // Of the plugins; until the next Attach().
  [[nodiscard]] const std::vector<state::StateSubscriber*>& Subscribers() const {
    return subscribers_;
  }
  // The first difference between what plugins have derived and a recount, or empty.
  [[nodiscard]] std::string CheckConsistency() const;
  // True if what applies to the class and does not depend on the node alone are attached
  // DomainPlugins. Only then the following may be asked.
  [[nodiscard]] bool ByDomain(const state::PodClass& pod_class) const;
  // What all of these say together: the keys, each once; DomainPlugin has the rest.
  [[nodiscard]] DomainDependence DependenceOf(const Context& context) const;
  [[nodiscard]] bool AdmitsDomains(const Context& context, const state::NodeInfo& node,
                                   const TopologyKeys& keys) const;
  void AddThresholds(const Context& context, const TopologyKeys& keys,
                     std::vector<int64_t>& thresholds) const;

 private:
  struct Filterer {
    const FilterPlugin* plugin;
    Depends depends;
    const DomainPlugin* domains;  // the same plugin, if it is one
  };
  struct Scorer {
    const ScorePlugin* plugin;
    int64_t weight;
    int64_t worth;  // of one point: its weight times its step
    Depends depends;
  };
  struct NormalizedScorer {
    const NormalizedScorePlugin* plugin;
    int64_t weight;
    Depends depends;
    const DomainPlugin* domains;
  };
  // What runs for one profile.
  struct Run {
    std::vector<Filterer> filters;
    std::vector<Scorer> scores;
    std::vector<NormalizedScorer> normalized;
    std::vector<const PreEnqueuePlugin*> pre_enqueue;
    std::vector<JudgingPlugin*> judging;
    BindingPoints points;
    bool knows_shares = false;  // plugin GpuSharing filters
    bool idle_first = false;
    bool evicts = true;
    PostFilters post_filters;
  };
  absl::Status Add(const Profile& profile, const Registry& registry);
  // The first one for a class of a profile that there is not.
  [[nodiscard]] const Run& RunOf(const state::PodClass& pod_class) const {
    const size_t profile = pod_class.spec->profile;
    return runs_[profile < runs_.size() ? profile : 0];
  }
  static bool RunFilter(const FilterPlugin& plugin, const Context& context,
                        const state::NodeInfo& node, Status* why);

  // A share of a GPU can be placed only with the plugin that knows GPUs: without it every node
  // refuses such a pod, and says why.
  static bool RefusesShare(const Run& run, const state::PodClass& pod_class, Status* why);

  // Of a profile with so many of them enabled; `plugin`: the one that is not PrioritySort.
  absl::Status AddQueueSort(const Profile& profile, int count, const QueueSortPlugin* plugin,
                            std::string args);
  // Files the plugin at the points after Score; false if it implements none of them.
  bool AddBindingPoints(const ProfilePlugin& entry, Plugin& plugin, BindingPoints& points);

  bool attached_ = false, has_binding_points_ = false;
  std::vector<state::StateSubscriber*> subscribers_;
  std::vector<std::unique_ptr<Plugin>> plugins_;  // owners of what the runs point to
  std::vector<const PreEnqueuePlugin*> pre_enqueue_;
  const QueueSortPlugin* queue_sort_ = nullptr;
  std::string queue_sort_args_;
  std::vector<CallingPlugin*> calling_;
  std::vector<JudgingPlugin*> judging_;  // of all profiles
  std::vector<Run> runs_;                // by profile
};

}  // namespace fairlead::framework
